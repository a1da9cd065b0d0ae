/* SPDX-License-Identifier: GPL-2.0 */
/*
 * service - one flow at a time has the drive
 *
 * Only requests of the flow *in service* are dispatched.  Its service ends when
 * one of these is true:
 *
 *   - its time is over;
 *   - the rule of the scheduler says so;
 *   - it has no request left, and has sent none within idle_us of the last
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

#include "comparators.h"

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
};

/* sched_params.own begins with it. */
struct service_params {
	u32 idle_us;	/* the drive waits for a flow without requests; 0: not */
};

struct service {
	struct engine engine;		/* first */
	const struct service_rule *rule;
	struct flow *flow;		/* in service, or NULL */
	u64 begin_ns, end_ns;		/* of its service, at the latest */
};

struct service_flow {
	u32 out;			/* requests in the driver */
	u64 done_ns;			/* the last completion */
};

/* The init hook calls this.  Returns 0 or -ENOMEM. */
int service_init(struct sched *s, const struct service_rule *rule,
		 const struct engine_ops *ops);

/*
 * Callbacks of struct engine_ops.  @q offers a request of the flow in service,
 * or any other, which may not go.
 */
struct lane *service_next(struct queue *q);
bool service_may_go(struct queue *q, struct lane *lane, u64 now,
		    struct wake *wake);

/* These are hooks of struct sched_ops. */
enum dispatch_result service_dispatch(struct queue *q, u64 now,
				      struct io **out, struct wake *wake);
void service_requeue(struct io *io, struct wake *wake);
void service_complete(struct io *io, u64 now, struct wake *wake);
void service_tick(struct sched *s, u64 now, struct wake *wake);

#define TUNABLE_SERVICE_IDLE						\
	TUNABLE_U32("idle_us", struct service_params, idle_us, 0,	\
		    1000000, 1, 8000)

#define SERVICE_LANES				\
	.next		= service_next,		\
	.pay		= comparator_pay,	\
	.leave		= comparator_join,	\
	.may_go		= service_may_go

#define SERVICE_HOOKS						\
	.flow_queue_bytes	= sizeof(struct lane),		\
	COMPARATOR_HOOKS,					\
	.insert			= engine_insert,		\
	.dispatch		= service_dispatch,		\
	.complete		= service_complete,		\
	.requeue		= service_requeue,		\
	.tick			= service_tick,			\
	.tune			= engine_tune

#endif /* MQFAIR_SIM_SERVICE_H */
