/* SPDX-License-Identifier: GPL-2.0 */
/*
 * interference - weights that make tenants disturb each other equally
 *
 * The problem.  Of two tenants of equal rank one reads all day, the other asks
 * for a little now and then.  Equal shares are no justice for the second: it
 * moves a tenth of what the first does and yet waits for it every time.
 *
 * The idea (the paper).  Time is cut into windows.  While tenants compete,
 * their shares are inversely proportional to what they moved in the last
 * window: 100 MB and 200 MB give 2 : 1.  A weight is no reservation: whoever
 * is alone has everything.
 *
 * The rule.  A tenant's *level* is the logarithm of what it moves, smoothed:
 *
 *	level' = (1 - a) * level + a * log2(moved / weight)
 *	scale = 2^(highest level among the siblings - level)
 *
 * and its weight counts weight * scale.  Without the logarithm: w' ~ w^(1-a) *
 * (1 / moved)^a.
 *
 * Why it is damped [R].  Two tenants that ask for all they can get and stand
 * at 3 : 1 move 3 : 1.  Literally (a = 1) they then get 1 : 3, then 3 : 1, for
 * ever.  For such a pair the logarithm of the ratio becomes (1 - 2a) times
 * what it was: a = 1/2 has them equal after one window, and a tenant that does
 * not depend on its weight within 1 % of its due after seven.
 *
 * Why moved / weight [R].  With the cgroup's weight times 1 / moved, tenants
 * that take all they can get settle at the square root of their weights: 4 : 1
 * becomes 2 : 1.  What a tenant of weight 400 moves is a quarter as much,
 * reckoned by its rank; then such tenants settle at 4 : 1, and with equal
 * weights the rule is the paper's.
 *
 * Trees [R].  Tenants are siblings: the children of a cgroup, and its own
 * processes.  A cgroup's moved bytes are those of everybody below it, so it
 * competes with its siblings as one, a parent's share is split among its
 * children, and who spreads its work over ten children gains nothing.
 *
 * Who moves little.  What was moved counts as `floor` bytes at least, a scale
 * is at most `clamp`: level is never less than the highest - log2(clamp), so
 * that a long silence saves up no more than the scale is worth.
 *
 * Who is away.  Weights follow from what was moved and from nothing else: a
 * window in which a tenant was idle is one in which it moved nothing, whether
 * or not anybody looked.  It is made up for when the tenant comes back.  One
 * that was never here before starts at the mean level of its siblings [R].
 *
 * Who calls.  All functions but ifq_weight_join() are for slow work, once per
 * window or tick, and go over the active flows and their ancestors.
 *
 * Source: Sui, Ye, Yang, Tong, An Interference Fair Queueing I/O Scheduler
 * under High Performance Processors, 2020, section 3.1 and 3.2.
 * Tested by tests/unit/ifq_weight.c against a model in floating point.
 */
#ifndef MQFAIR_IFQ_WEIGHT_H
#define MQFAIR_IFQ_WEIGHT_H

#include "core/sched.h"

/* L: sched.active_lock; O: written under it, read anywhere. */

/* A cgroup among its siblings, or its own processes among its children. */
struct tenant {
	u64 served_bytes;		/* O: bytes in this window */
	u64 last_bytes;		/* O: in the last one that it was looked at */
	u64 window;		/* L: that ended when it was; 0: never */
	u32 log_usage;		/* L: LOG_SHIFT */
};

/* The active children of a cgroup and its own processes, last window. */
struct family {
	u64 window;		/* L: that the rest is of; 0: none yet */
	u64 sum;		/* L: of the levels */
	u32 nr;			/* L */
	u32 highest;		/* L */
};

/* A flow's, at flow_engine(). */
struct ifq_weight_flow {
	struct tenant group;	/* the cgroup */
	struct tenant own;	/* its own processes */
	struct family family;	/* of its children and its own processes */
	u64 counted_bytes;		/* L: bytes of the flow already counted */
};

struct ifq_weight {
	u64 window;		/* L: the number of those that ended, from 1 */
	u64 start_ns;		/* O: of the present one */
};

void ifq_weight_init(struct ifq_weight *e);

/* When the present window ends. */
u64 ifq_weight_end_ns(const struct ifq_weight *e, const struct sched *s);

/*
 * Counts what the active flows have moved.  Before each flow_sweep(), so that
 * a flow that is retired has been counted to the end.
 */
void ifq_weight_account(struct sched *s);

/* The window is over: accounts, and sets the scales of all active. */
void ifq_weight_roll(struct ifq_weight *e, struct sched *s, u64 now);

/* @f has become active. */
void ifq_weight_join(struct ifq_weight *e, struct flow *f, u64 now);

#endif /* MQFAIR_IFQ_WEIGHT_H */
