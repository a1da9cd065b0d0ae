/* SPDX-License-Identifier: GPL-2.0 */
/*
 * depth - the number of slots, D, found while running
 *
 * The problem.  With few slots a drive is idle in part.  With many, the
 * requests inside wait for each other, and the drive orders them, not the
 * scheduler.  The right number depends on the drive and on the mix of requests.
 * Reads of 64 KiB that lie in order need 16, on a drive that needs 500 for
 * random 4 KiB.
 *
 * The rule.  D grows only if throughput grows with it.  D begins with 128, or
 * with the start that a user gave (tunable_set_start()).  Tick compares the
 * work at D with the work at half or double of it, in a *depth trial*:
 *
 *	double	is taken if it does at least 2 % more work;
 *	half	is taken if it does at least 99 % of the work.
 *
 * Double is not taken if flows then miss their shares by 1 % of the work more,
 * or if a flow becomes short (isolation.h).  Too few requests wait outside then,
 * and the drive orders them.
 *
 *	D = 128, 3180 MB/s: a trial of 256 brings 3190, so D stays.  A trial of
 *	64 brings 3090, less than 3148, so D stays.  The next trial comes after
 *	twice the time.
 *
 * The price.  A trial ends after TRIAL_DONE requests, or earlier if it does
 * much less work.  A trial that changes nothing doubles the time to the next
 * one, up to WAIT_MOST looks.  A trial of half may cost much of the work: if the
 * slots are the limit of the drive, it does half.  So the work lost by trials is
 * at most 1 % of the work since D began.  Each look allows a hundredth of its
 * work, and a trial of half waits until its price is allowed.  A trial of double
 * loses nothing on most drives, so it need not wait, and is the first.
 *
 *	32 slots of 16 ms, 2000 requests a second, a look of 32 ms: the first
 *	trial of 16 comes after 200 looks or 6.4 s.  It takes four looks and
 *	loses two, so the next comes 6.4 s later.
 *
 * Limits.  D changes only while queues wait for slots.  Otherwise it does not
 * matter.  A drive that alternates between two mixes within a trial misleads
 * it; the next one corrects that.
 *
 * Locking: tick.  Tested by tests/unit/depth.c, tests/sim/isolation.c.
 */
#ifndef MQFAIR_DEPTH_H
#define MQFAIR_DEPTH_H

#include "port.h"

/* The counts between two looks of tick. */
struct depth_look {
	u64 ns, bytes, cost, done;
	u64 missed;		/* cost below their share, since D was changed */
	bool waits;		/* a queue found no slot */
};

enum {
	DEPTH_FILL_LOOKS = 2,	/* until the drive is as full as D allows */
};

struct depth {
	u32 base;		/* D outside of trials; 0: not begun */
	u32 trial;		/* D under trial, or 0 */
	bool up;		/* the direction of trials */
	u32 looks;		/* since D was changed */
	u32 wait;		/* looks before the next trial */
	u32 allowed;		/* work that trials may lose: thousandths of a look */
	u64 ns, bytes, cost, done;	/* sums since D was changed and the drive full */
	u64 rate;		/* bytes in 2^20 ns at base */
	u64 missed;		/* in thousandths of the cost, at base */
};

/*
 * Returns the D to use from now on, in [1, @most].  @d is zeroed memory at
 * first.
 */
u32 depth_next(struct depth *d, const struct depth_look *l, u32 now, u32 most);

/*
 * Ends a trial, which has failed: a flow has become short.  Returns the D to
 * use.
 */
u32 depth_settle(struct depth *d, u32 now);

#endif /* MQFAIR_DEPTH_H */
