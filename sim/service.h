/* SPDX-License-Identifier: GPL-2.0 */
/*
 * service - one flow at a time has the drive
 *
 * Only requests of the flow *in service* are dispatched.  Its service ends when
 * one of these is true:
 *
 *   - its time is over;
 *   - the rule of the scheduler says so;
 *   - it has no request left, and has sent none within idle_ns of the last
 *     completion.
 *
 * The rule then names the next flow.  If the requests of the flow in service are
 * in a queue that the driver has stopped, all others wait.  A host with a single
 * queue waits in the same way.
 *
 * A request that was dispatched stays in the drive when the service of its flow
 * ends.  So a drive with many slots has requests of several flows for a while.
 *
 * Memory: sched.own begins with struct service, flow_own() with struct
 * service_flow.
 */
#ifndef MQFAIR_SIM_SERVICE_H
#define MQFAIR_SIM_SERVICE_H

#include "comparator.h"

struct service_rule {
	/*
	 * The flow that is next, of those with requests that wait, or NULL.
	 * *@time_ns is the most that its service may last.
	 */
	struct flow *(*next)(struct sched *s, u64 now, u64 *time_ns);
	/* Optional.  @io, of the flow in service, goes to the driver. */
	void (*serve)(struct sched *s, const struct io *io);
	/* Optional.  Is the service over, though there is time left? */
	bool (*is_over)(const struct sched *s);
	/*
	 * Optional.  May one more request of the flow in service go?  It may when
	 * none of them is in the driver.
	 */
	bool (*may_serve)(const struct sched *s);
	/*
	 * Optional.  The service is over.  The flow used the drive from @since
	 * to @until, the last completion if none of its requests is out.
	 */
	void (*end)(struct sched *s, u64 since, u64 until);
	/* How long the drive waits for a flow without requests; 0: not at all. */
	u64 (*idle_ns)(const struct sched *s);
};

struct service {
	const struct service_rule *rule;	/* by the init hook */
	struct flow *flow;		/* in service, or NULL */
	u64 begin_ns, end_ns;		/* of its service, at the latest */
};

struct service_flow {
	u32 out;			/* requests in the driver */
	u64 done_ns;			/* the last completion */
};

/* Goes through all lanes with requests, queue by queue.  A flow may have several. */
#define service_each_waiting(s, i, l)				\
	for (i = 0; i < (s)->nr_queues; i++)			\
		for (l = comparator_lanes((s)->queue[i]); l; l = l->next)

/* These are hooks of struct sched_ops. */
enum dispatch_result service_dispatch(struct queue *q, u64 now,
				      struct io **out, struct wake *wake);
void service_block(struct queue *q, struct wake *wake);
void service_requeue(struct io *io, struct wake *wake);
void service_complete(struct io *io, u64 now, struct wake *wake);
void service_tick(struct sched *s, u64 now, struct wake *wake);
/* New values hold for the present flow in service, too. */
void service_tune(struct sched *s, const struct sched_params *p,
		  struct wake *wake);

#define SERVICE_HOOKS						\
	.queue_bytes		= sizeof(struct comparator_queue), \
	.flow_queue_bytes	= sizeof(struct comparator_lane), \
	.exit			= none_exit,			\
	.merge			= comparator_merge,		\
	.dispatch		= service_dispatch,		\
	.block			= service_block,		\
	.complete		= service_complete,		\
	.requeue		= service_requeue,		\
	.tick			= service_tick,			\
	.tune			= service_tune,			\
	.flow_init		= engine_flow_init

#endif /* MQFAIR_SIM_SERVICE_H */
