/* SPDX-License-Identifier: GPL-2.0 */
/*
 * wheel - throttled queues, by the virtual time at which each may go on
 *
 * WHEEL_BUCKETS buckets of @width units of virtual time, each a bit mask of
 * queues.  The wheel is turned by moving one index, `turned`: every bucket
 * that ends at or before it has been emptied.  A queue due later than the
 * wheel reaches waits in the last bucket and looks again when it is woken.
 *
 * A queue is put into the bucket that starts at or after its due time, so it
 * is woken up to @width late and never early by the wheel's own doing; early
 * and repeated wake-ups do happen in races and cost one look each.  With
 * @width no larger than the threshold T the holder of virtual time, due at
 * VT - T, is always past its bucket: somebody can always run.
 *
 *	              park(a)  park(b)  unpark(a)  turn  flush  set_shift
 *	park(a)          X        -         X        -     -        -
 *	unpark(a)        X        -         X        -     -        -
 *	turn             -        -         -        -     -        -
 *	flush            -        -         -        -     -        -
 *	set_shift        -        -         -        -     -        X
 *
 * X: serialised by the queue's lock, or by the caller for set_shift;
 * -: may run at once.
 *
 * Why nobody is forgotten.  park sets the bit (full order), then reads
 * `turned` again; turn moves `turned` (full order), then empties the buckets
 * passed.  One of the two sees the other: either the parker finds its bucket
 * passed and withdraws, or the turner finds the bit.
 *
 * @width and the number of buckets are powers of two, so a bucket's place in
 * the ring is the same whether or not virtual time has wrapped.
 *
 * Source: Hedayati et al., Multi-Queue Fair Queueing, ATC 2019, section 3.3.
 * Tested by tests/unit/wheel.c, tests/mt/wheel.c.
 */
#ifndef MQFAIR_WHEEL_H
#define MQFAIR_WHEEL_H

#include "port.h"
#include "core/vtime.h"

enum {
	WHEEL_BUCKETS	= 32,	/* with width T/8: reaches 4 T ahead */
};

struct wheel {
	u32 nr_queues;
	u32 words;		/* u64 words of a mask */
	u32 shift;		/* log2 of the width */
	atomic64_t turned;	/* vtime_t, a multiple of the width then */
	atomic64_t *mask;	/* [WHEEL_BUCKETS][words] */
	atomic64_t turns;	/* statistics */
};

/* @shift: log2 of the bucket width; @vt: virtual time now.  0 or -ENOMEM. */
int wheel_init(struct wheel *w, u32 nr_queues, u32 shift, vtime_t vt);
void wheel_deinit(struct wheel *w);

/*
 * Parks @queue until virtual time reaches @due; the bucket taken goes to
 * *@bucket, for wheel_unpark().  False when it is due already: the caller must
 * go on by itself, and *@bucket is not set.
 */
bool wheel_park(struct wheel *w, u32 queue, vtime_t due, u32 *bucket);

/* Takes @queue out of @bucket again.  False if a turn had already done so. */
bool wheel_unpark(struct wheel *w, u32 queue, u32 bucket);

/*
 * Turns the wheel to @vt and calls @wake for each queue that was waiting for
 * it.  False, at the cost of one read, when @vt is still in the same bucket.
 */
bool wheel_turn(struct wheel *w, vtime_t vt,
		void (*wake)(void *arg, u32 queue), void *arg);

/*
 * Changes the width while others park and turn.  The caller flushes afterwards:
 * a parker that still saw the old width either is flushed or sees the new one
 * when it looks again, and a turner that emptied by the old width flushes too.
 */
void wheel_set_shift(struct wheel *w, u32 shift);

/* Takes everybody out, whenever due: the tags they waited for have changed. */
void wheel_flush(struct wheel *w, void (*wake)(void *arg, u32 queue), void *arg);

#endif /* MQFAIR_WHEEL_H */
