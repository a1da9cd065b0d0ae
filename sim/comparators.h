/* SPDX-License-Identifier: GPL-2.0 */
/*
 * comparators - schedulers of the literature, to compare ours with
 *
 * The simulator has them, and the kernel module does not.  Each is one short
 * file that names its source, and stands on the engine (sched/core/engine.h).  It
 * shows the rule of the paper without a thought for many CPUs: a callback reads
 * the lanes of all queues, which the simulator calls one at a time.
 */
#ifndef MQFAIR_SIM_COMPARATORS_H
#define MQFAIR_SIM_COMPARATORS_H

#include "sched/core/engine.h"

enum {
	COMPARATOR_SHIFT	= 20,	/* of a share */
};

extern const struct sched_ops flashfq_ops, bwf2q_ops, cfq_ops, mfap_ops,
	stf_ops, iocost_ops, iolatency_ops, throttle_ops, deadline_ops,
	kyber_ops;

/* The hooks that all comparators leave to the engine. */
#define COMPARATOR_HOOKS			\
	.exit		= engine_exit,		\
	.merge		= engine_merge,		\
	.block		= engine_block,		\
	.report		= engine_report

/* NULL-terminated. */
extern const struct sched_ops *const comparators[];

/* Returns the comparator @name, or NULL. */
const struct sched_ops *comparator_find(const char *name);

/* Callbacks of the engine for a scheduler that keeps no order; join is also leave. */
void comparator_join(struct queue *q, struct lane *lane);
void comparator_pay(struct queue *q, struct lane *lane, u32 cost);

/* Returns @f or the first flow behind it that has ios in a lane; NULL: none. */
static inline struct flow *comparator_waiting(struct flow *f)
{
	while (f && !atomic64_read(&f->queued))
		f = f->next_active;
	return f;
}

/* Goes through the flows of @s that have ios in a lane. */
#define comparator_each(s, f)				\
	for (f = comparator_waiting((s)->active); f;	\
	     f = comparator_waiting(f->next_active))

/* The first io of @f in @q, or NULL. */
static inline const struct io *comparator_head(const struct queue *q,
					       const struct flow *f)
{
	const struct lane *lane = flow_queue_own(f, q->index);

	return lane->fifo.head;
}

/*
 * The present share of @f in units of 2^-COMPARATOR_SHIFT, at least 1; 0 if @f is
 * not active.  So a time of hours can be divided by it.
 */
static inline u64 comparator_share(struct flow *f)
{
	u64 share = flow_present_share(f);

	return share ? max(share >> (SHARE_SHIFT - COMPARATOR_SHIFT), (u64)1) :
		       0;
}

#endif /* MQFAIR_SIM_COMPARATORS_H */
