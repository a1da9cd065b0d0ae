/* SPDX-License-Identifier: GPL-2.0 */
/*
 * wheel - throttled queues, by the virtual time at which each may go on
 *
 * The wheel has WHEEL_BUCKETS buckets of @width units of virtual time, each a
 * bit mask of queues.  Each group of WHEEL_GROUP queues has masks of its own.  A
 * turn of the wheel advances one index, `turned`, and empties every bucket that
 * starts at or before it.  A queue due later than the wheel reaches waits in the
 * last bucket and looks again when it is woken.
 *
 * A queue is put into the bucket that starts at or after its due time.  So the
 * wheel itself wakes it less than @width after that time and never before.
 * Races cause early and repeated wake-ups, which cost one look each.
 *
 * Let @width be no larger than the threshold T.  The queue that holds virtual
 * time back is due at VT - T, so its bucket has always passed, and at least one
 * queue can run.
 *
 * Synchronisation
 *	              park(a)  park(b)  unpark(a)  turn  flush  set_shift
 *	park(a)          X        -         X        -     -        -
 *	unpark(a)        X        -         X        -     -        -
 *	turn             -        -         -        -     -        -
 *	flush            -        -         -        -     -        -
 *	set_shift        -        -         -        -     -        X
 *   X: the caller serialises these calls (park, unpark: by the queue's lock).
 *   -: these calls may run concurrently.
 *
 * Why no queue is forgotten.  The parker sets its bit (fully ordered), then
 * reads `turned` again.  The turner advances `turned` (fully ordered), then
 * empties the buckets that have passed.  One of the two sees the other: the
 * parker finds its bucket passed and withdraws, or the turner finds the bit.
 *
 * @width and the number of buckets are powers of two.  So a bucket's place in
 * the ring is the same whether or not virtual time has wrapped.
 *
 * Source: Hedayati et al., Multi-Queue Fair Queueing, ATC 2019, section 3.3.
 * Tested by tests/unit/wheel.c, tests/mt/wheel.c.
 */
#ifndef MQFAIR_WHEEL_H
#define MQFAIR_WHEEL_H

#include "core/vtime.h"

enum {
	WHEEL_BUCKETS	= 32,	/* with width T/8: reaches 4 T ahead */
	/*
	 * The queues of a group have their bits in the same words.  CPUs that
	 * park their queues at the same time write the same bucket, and 64 CPUs
	 * on one cache line wait for each other.
	 */
	WHEEL_GROUP	= 16,
};

struct wheel {
	u32 nr_queues;
	u32 groups;
	u32 shift;		/* log2 of the width */
	atomic64_t turned;	/* vtime_t, a multiple of that turn's width */
	atomic64_t *mask;	/* [groups][WHEEL_BUCKETS] */
	atomic64_t turns;	/* statistics */
};

/* @shift: log2 of the bucket width; @vt: virtual time now.  0 or -ENOMEM. */
int wheel_init(struct wheel *w, u32 nr_queues, u32 shift, vtime_t vt);
void wheel_deinit(struct wheel *w);

/*
 * Parks @queue until virtual time reaches @due, and stores the bucket in
 * *@bucket, for wheel_unpark().  False when @queue is due already: the caller
 * must go on by itself, and *@bucket is not set.
 */
bool wheel_park(struct wheel *w, u32 queue, vtime_t due, u32 *bucket);

/* Is @queue still in @bucket, in which it was put?  A snapshot. */
bool wheel_has(const struct wheel *w, u32 queue, u32 bucket);

/* Takes @queue out of @bucket.  False if a turn or a flush has done so. */
bool wheel_unpark(struct wheel *w, u32 queue, u32 bucket);

/*
 * Turns the wheel to @vt and calls @wake for each queue in a bucket that has
 * passed.  False, at the cost of one read, when @vt stays in the same bucket.
 */
bool wheel_turn(struct wheel *w, vtime_t vt,
		void (*wake)(void *arg, u32 queue), void *arg);

/*
 * Changes the width while other threads park and turn.  The caller flushes
 * afterwards.  A parker that used the old width is found by that flush, or it
 * sees the new width when it looks again.  A turner that emptied buckets by the
 * old width flushes as well.
 */
void wheel_set_shift(struct wheel *w, u32 shift);

/*
 * Takes all queues out, whenever due, and calls @wake for each.  The caller has
 * changed the tags by which they are due.
 */
void wheel_flush(struct wheel *w, void (*wake)(void *arg, u32 queue), void *arg);

#endif /* MQFAIR_WHEEL_H */
