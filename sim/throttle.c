// SPDX-License-Identifier: GPL-2.0
/*
 * throttle - static throttling: a fixed rate for each flow
 *
 * Each flow has a rate of kib_per_weight * weight KiB per second.  A request may
 * go when the flow's clock has been reached, and it moves the clock on by its
 * bytes divided by the rate.  A clock that lies behind the present time is set to
 * the present time first, so a flow saves nothing for later.
 *
 *	weight 100, 10 KiB/s for each unit: 1000 KiB/s.  A request of 64 KiB
 *	keeps the next one of the flow back for 64 ms.
 *
 * The rates do not depend on the other flows.  So a flow gets no more while
 * others are idle, and all flows together get less than the drive has if the
 * administrator was careful.  This is the price of the rule, and the reason for
 * schedulers that conserve work.
 *
 * Source: the limits `rbps` and `wbps` of the file io.max, Linux, Control Group
 * v2 (Documentation/admin-guide/cgroup-v2.rst).  The kernel grants bytes in time
 * slices; here each request has its time.  Reads and writes have one rate.
 * Tested by tests/sim/sim_run.py.
 */
#include "comparators.h"

struct throttle_params {
	u32 kib_per_weight;
};

struct throttle_flow {
	u64 next_ns;			/* the clock */
};

static const struct throttle_params *throttle_params(const struct sched *s)
{
	return (const void *)s->params.own;
}

static u64 *flow_clock(const struct flow *f)
{
	return &((struct throttle_flow *)flow_own(f))->next_ns;
}

/* Returns the lane of @q that may go first, or NULL. */
static struct lane *throttle_next(struct queue *q)
{
	struct flow *f, *first = NULL;

	comparator_each(q->sched,
			f) if (comparator_head(q, f) &&
			       (!first || *flow_clock(f) < *flow_clock(first)))
		first = f;
	return first ? flow_queue_own(first, q->index) : NULL;
}

static bool throttle_may_go(struct queue *q, struct lane *lane, u64 now,
			    struct wake *wake)
{
	const u64 *clock = flow_clock(lane->flow);

	(void)q;
	if (*clock > now)
		wake_at(wake, *clock);
	return *clock <= now;
}

/* A request that passes or drains moves no clock. */
static void flow_pay(const struct flow *f, u32 bytes, u64 now)
{
	u64 rate = (u64)throttle_params(f->sched)->kib_per_weight *
		   f->group.weight * 1024;
	u64 *clock = flow_clock(f);

	*clock = max(*clock, now) + (u64)bytes * 1000000000 / rate;
}

static enum dispatch_result
throttle_dispatch(struct queue *q, u64 now, struct io **out, struct wake *wake)
{
	enum dispatch_result why = engine_dispatch(q, now, out, wake);

	if (why == DISPATCH_IO && !((*out)->flags & IO_URGENT) && !q->drain)
		flow_pay((*out)->flow, (*out)->bytes, now);
	return why;
}

static void throttle_tick(struct sched *s, u64 now, struct wake *wake)
{
	u32 i;

	engine_tick(s, now, wake);
	for (i = 0; i < s->nr_queues; i++) {
		struct lane *first = throttle_next(s->queue[i]);

		if (first && s->queue[i]->state == DISPATCH_NO_BUDGET &&
		    throttle_may_go(s->queue[i], first, now, wake))
			sched_wake(s, i, wake);
	}
}

static const struct engine_ops throttle_lanes = {
	.join	= comparator_join,
	.next	= throttle_next,
	.pay	= comparator_pay,
	.leave	= comparator_join,
	.may_go	= throttle_may_go,
};

static int throttle_init(struct sched *s)
{
	return engine_init(s, &throttle_lanes);
}

static const struct tunable throttle_tunables[] = {
	{ TUNABLE_U32("kib_per_weight", struct throttle_params, kib_per_weight,
		      1, 10000000, 1, 1000) },
	{ }
};

const struct sched_ops throttle_ops = {
	.name			= "throttle",
	.tunables		= throttle_tunables,
	.params_bytes		= sizeof(struct throttle_params),
	.bytes			= sizeof(struct engine),
	.flow_bytes		= sizeof(struct throttle_flow),
	.flow_queue_bytes	= sizeof(struct lane),
	.init			= throttle_init,
	.insert			= engine_insert,
	.dispatch		= throttle_dispatch,
	.complete		= engine_complete,
	.requeue		= engine_requeue,
	.tick			= throttle_tick,
	.tune			= engine_tune,
	COMPARATOR_HOOKS,
};
