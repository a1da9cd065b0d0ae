/* SPDX-License-Identifier: GPL-2.0 */
/*
 * comparator - schedulers of the literature, to compare ours with
 *
 * The simulator has them, and the kernel module does not.  Each is one short
 * file that names its source.  It shows the rule of the paper, on plain lists
 * and without a thought for many CPUs.
 *
 * This file has the parts that they share.  A lane is the FIFO of one flow in
 * one queue.  The lanes of a queue that have ios stand in a list.  An io that is
 * urgent or was sent back passes the lanes.
 *
 * Memory: queue.own begins with struct comparator_queue, flow_queue_own() with
 * struct comparator_lane.
 */
#ifndef MQFAIR_SIM_COMPARATOR_H
#define MQFAIR_SIM_COMPARATOR_H

#include "sched/core/engine.h"

enum {
	COMPARATOR_SHIFT	= 20,	/* of a share */
};

struct comparator_lane {
	struct lane lane;		/* first: engine_flow_init() */
	struct comparator_lane *next;	/* Q: in comparator_queue */
};

struct comparator_queue {
	struct comparator_lane *lanes;	/* Q: that have ios */
};

/* NULL-terminated. */
extern const struct sched_ops *const comparators[];

/* Returns the comparator @name, or NULL. */
const struct sched_ops *comparator_find(const char *name);

/* Inserts @io: its flow starts at @vt or later if it has nothing waiting. */
void comparator_insert(struct queue *q, struct io *io, vtime_t vt, u64 now,
		       struct wake *wake);

void comparator_merge(struct queue *q, struct io *io, u32 bytes);

/* Takes the first urgent io, or the first io of @lane if there is none. */
struct io *comparator_take(struct queue *q, struct comparator_lane *lane,
			   u64 now);

/* Sets the state of @q and returns it. */
enum dispatch_result comparator_give_up(struct queue *q,
					enum dispatch_result why);

/* The start tag of the first io of @l, which is not empty. */
static inline vtime_t comparator_tag(const struct comparator_lane *l)
{
	u64 epoch;

	return flow_tag(l->lane.flow, l->lane.fifo.head->pos, &epoch);
}

/* Does the first io of @a go before that of @b by start tags? */
static inline bool comparator_tag_before(const struct comparator_lane *a,
					 const struct comparator_lane *b)
{
	return vtime_before(comparator_tag(a), comparator_tag(b));
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

static inline struct comparator_lane *comparator_lanes(const struct queue *q)
{
	return ((const struct comparator_queue *)q->own)->lanes;
}

extern const struct sched_ops sfq_ops, flashfq_ops, bwf2q_ops, cfq_ops,
	mfap_ops, stf_ops, iocost_ops, throttle_ops;

#endif /* MQFAIR_SIM_COMPARATOR_H */
