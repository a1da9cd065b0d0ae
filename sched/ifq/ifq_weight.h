/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ifq_weight - weights by which tenants disturb each other equally
 *
 * The problem.  Of two tenants of equal rank one reads all day, and the other
 * asks for a little now and then.  Equal shares are no justice for the second.
 * It is served a tenth of the bytes of the first and yet waits for it every
 * time.
 *
 * The idea (the paper).  Time is cut into windows.  While tenants compete,
 * their shares are inversely proportional to their served bytes of the last
 * window: 100 MB and 200 MB give 2 : 1.  A weight is no reservation: a tenant
 * that is alone has the whole device.
 *
 * Bytes are those that requests cost (core/cost.h) [R]: for reads and writes what
 * they transfer, 4 KiB at least.  A discard transfers nothing.  A tenant that sends
 * nothing else would have served no bytes, and the greatest weight.
 *
 * The rule.  A tenant's *log usage* is the logarithm of its served bytes,
 * smoothed over windows:
 *
 *	log usage' = (1 - a) * log usage + a * log2(served / weight)
 *	scale = 2^(highest log usage among the siblings - log usage)
 *
 * Its weight counts weight * scale.  Without the logarithm:
 * w' ~ w^(1-a) * (1 / served)^a.
 *
 * Why it is damped [R].  Two tenants take all they can get and have shares of
 * 3 : 1, so they are served 3 : 1.  The literal rule (a = 1) then gives them
 * 1 : 3, then 3 : 1, for ever.  For such a pair a window multiplies the
 * logarithm of the ratio by 1 - 2a: with a = 1/2 they are equal after one
 * window.  A tenant with a demand that does not depend on its weight is within
 * 1 % of its due after seven windows.
 *
 * Why served / weight [R].  With the cgroup's weight times 1 / served, tenants
 * that take all they can get settle at the square root of their weights.  4 : 1
 * becomes 2 : 1.  So served bytes count per unit of weight: those of a tenant
 * of weight 400 count a quarter.  Then such tenants settle at 4 : 1, and with
 * equal weights the rule is the paper's.
 *
 * Trees [R].  Tenants are siblings: the children of a cgroup, and its own
 * processes.  The served bytes of a cgroup include those of all cgroups below
 * it, so it competes with its siblings as one tenant.  The share of a parent is
 * split among its children, and a tenant gains nothing if it spreads its work
 * over ten children.
 *
 * Light tenants.  Served bytes count as `floor` bytes at least, and a scale is
 * at most `clamp`.  The log usage is never less than the highest - log2(clamp):
 * a long silence saves up no more than the scale is worth.
 *
 * Idle tenants.  Weights follow from served bytes and from nothing else.  A
 * window in which a tenant was idle counts with no served bytes, even if no
 * tick ended that window.  The log usage is computed for such windows when the
 * tenant returns.  A new tenant starts at the mean log usage of its siblings
 * [R].
 *
 * Adopted requests [R].  Beyond a bound the root pays for a light tenant's
 * metadata (core/urgent.h).  A root that was silent would pay with its scale:
 *
 *	weights 10 and 1000; 2 s after its last request the root has a scale of
 *	about 300.  200 ms of metadata of the first tenant get 96 % of the drive,
 *	and 10 % without that scale.
 *
 * So the root's own processes have the scale 1 in each window in which the root
 * adopts or has adopted requests waiting, and in the next one.  If they never had
 * a scale, a journal would wait for a tenant that turns from light to heavy:
 *
 *	all weights 100, but 1000 for a heavy tenant; the first requests of the
 *	journal and of a light tenant after 2 s: a commit takes 51 ms, and 0.2 ms
 *	with the scale.
 *
 * Callers.  All functions but ifq_weight_join() and ifq_weight_adopt() are slow
 * work, once per window or tick, over the active flows and their ancestors.
 *
 * Source: Sui, Ye, Yang, Tong, An Interference Fair Queueing I/O Scheduler
 * under High Performance Processors, 2020, section 3.1 and 3.2.
 * Tested by tests/unit/ifq_weight.c against a model in floating point.
 */
#ifndef MQFAIR_IFQ_WEIGHT_H
#define MQFAIR_IFQ_WEIGHT_H

#include "mqfq/mqfq.h"

/* L: protected by sched.active_lock; O: written under it, read anywhere. */

/* A cgroup among its siblings, or its own processes among its children. */
struct tenant {
	u64 served_bytes;	/* O: in this window */
	u64 last_bytes;		/* O: in the window before, 0 if it was idle */
	u64 window;		/* L: the last that was computed; 0: none */
	u32 log_usage;		/* L: in units of 2^-LOG_SHIFT */
};

/* The tenants of one cgroup that were active in the last window. */
struct family {
	u64 window;		/* L: its number; 0: none yet */
	u64 sum;		/* L: of their log usages */
	u32 nr;			/* L */
	u32 highest;		/* L: the highest log usage */
};

/* sched_params.own */
struct ifq_params {
	struct mqfq_params mqfq;	/* T = 0 */
	u32 window_ms;
	u32 floor;			/* bytes in a window */
	u32 clamp;			/* greatest ratio of two scales */
	u32 damping;			/* percent; 100: none */
	u32 virtual_time;		/* enum ifq_virtual_time */
};

static inline struct ifq_params *ifq_params(const struct sched_params *p)
{
	return (struct ifq_params *)p->own;
}

/* flow_own() */
struct ifq_weight_flow {
	struct tenant group;	/* the cgroup */
	struct tenant own;	/* its own processes */
	struct family family;	/* of its children and its own processes */
	u64 counted_bytes;	/* L: cost of the flow already counted */
};

struct ifq_weight {
	u64 window;		/* O: number of windows that ended, from 1 */
	u64 start_ns;		/* O: of the present one */
	u64 adopted;		/* O: the last in which the root adopted; or 0 */
};

void ifq_weight_init(struct ifq_weight *e);

/* The time at which the present window ends. */
u64 ifq_weight_end_ns(const struct ifq_weight *e, const struct sched *s);

/*
 * Counts the bytes that the active flows were served.  The caller does so
 * before each flow_sweep(), so a flow that is deactivated has been counted to
 * its end.
 */
void ifq_weight_account(struct sched *s);

/* Ends the window: counts bytes, and sets the scales of all active tenants. */
void ifq_weight_roll(struct ifq_weight *e, struct sched *s, u64 now);

/* The caller has made @f active: sets its scales. */
void ifq_weight_join(struct ifq_weight *e, struct flow *f, u64 now);

/*
 * The active flow @root has adopted an io.  Returns true if its scale, and so
 * all shares, changed by that.  The caller has a queue's lock.
 */
bool ifq_weight_adopt(struct ifq_weight *e, struct flow *root);

#endif /* MQFAIR_IFQ_WEIGHT_H */
