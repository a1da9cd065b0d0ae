/* SPDX-License-Identifier: GPL-2.0 */
/*
 * order - one order for the whole host, with D requests in service
 *
 * A rule says which of two waiting requests goes first, each the first of its
 * flow in a queue.  While fewer than D requests are in service, the first of all
 * queues is dispatched.  So a queue waits that does not have this request, and
 * each dispatch and each completion wakes the queue that has it.  A real host
 * pays for that with messages between CPUs, which the simulator does not charge.
 *
 * A queue that its driver has stopped does not hold the others.
 *
 * Memory: sched.own begins with struct order, flow_own() with struct order_flow.
 */
#ifndef MQFAIR_SIM_ORDER_H
#define MQFAIR_SIM_ORDER_H

#include "comparator.h"
#include "none.h"

struct order_rule {
	/* Does the first request of @a go before that of @b? */
	bool (*before)(const struct comparator_lane *a,
		       const struct comparator_lane *b);
	/*
	 * Optional.  May the first request of @l go, which is the first of all?
	 * If it may not, the hook asks in @wake for the time to look again.
	 */
	bool (*may_go)(struct sched *s, const struct comparator_lane *l,
		       struct wake *wake);
	/* Optional.  The first request of @l goes. */
	void (*serve)(struct sched *s, const struct comparator_lane *l);
	/* Optional.  Time has moved to order.now_ns, by @passed_ns. */
	void (*pass)(struct sched *s, u64 passed_ns);
};

struct order {
	const struct order_rule *rule;	/* by the init hook */
	u64 now_ns;			/* of the last hook that knows the time */
	u32 out;			/* requests in service */
	bool blocked[QUEUES_MAX];
};

struct order_flow {
	u32 out;			/* requests in service */
	u64 done_ns;			/* the last completion */
};

/* These are hooks of struct sched_ops. */
enum dispatch_result order_dispatch(struct queue *q, u64 now, struct io **out,
				    struct wake *wake);
void order_block(struct queue *q, struct wake *wake);
void order_requeue(struct io *io, struct wake *wake);
void order_complete(struct io *io, u64 now, struct wake *wake);
void order_tick(struct sched *s, u64 now, struct wake *wake);
void order_tune(struct sched *s, const struct sched_params *p,
		struct wake *wake);

/* An insert hook calls this first.  Then it calls comparator_insert(). */
void order_pass(struct sched *s, u64 now);

#define ORDER_HOOKS						\
	.queue_bytes		= sizeof(struct comparator_queue), \
	.flow_queue_bytes	= sizeof(struct comparator_lane), \
	.exit			= none_exit,			\
	.merge			= comparator_merge,		\
	.dispatch		= order_dispatch,		\
	.block			= order_block,			\
	.complete		= order_complete,		\
	.requeue		= order_requeue,		\
	.tick			= order_tick,			\
	.tune			= order_tune,			\
	.flow_init		= engine_flow_init

#endif /* MQFAIR_SIM_ORDER_H */
