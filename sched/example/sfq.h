/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The callbacks of sfq, for schedulers that add a rule to its order.  sched.own
 * begins with struct sfq, queue.own with struct tag_order, and flow_queue_own()
 * with struct tag_lane.
 */
#ifndef MQFAIR_SFQ_H
#define MQFAIR_SFQ_H

#include "core/engine.h"
#include "core/tag_order.h"

struct sfq {
	struct engine engine;		/* first */
	atomic64_t now;			/* virtual time */
};

/* These are callbacks of struct engine_ops. */
void sfq_join(struct queue *q, struct lane *lane);
struct lane *sfq_next(struct queue *q);
void sfq_pay(struct queue *q, struct lane *lane, u32 cost);
void sfq_leave(struct queue *q, struct lane *lane);
vtime_t sfq_start(struct flow *f);
vtime_t sfq_tag(struct queue *q);

#endif /* MQFAIR_SFQ_H */
