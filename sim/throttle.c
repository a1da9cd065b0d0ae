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
#include "comparator.h"
#include "none.h"

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

static u64 *lane_clock(const struct comparator_lane *l)
{
	struct throttle_flow *tf = flow_own(l->lane.flow);

	return &tf->next_ns;
}

/* Returns the lane of @q that may go first, or NULL. */
static struct comparator_lane *queue_first(const struct queue *q)
{
	struct comparator_lane *l, *first = NULL;

	for (l = comparator_lanes(q); l; l = l->next)
		if (!first || *lane_clock(l) < *lane_clock(first))
			first = l;
	return first;
}

static void lane_pay(const struct comparator_lane *l, u32 bytes, u64 now)
{
	const struct sched *s = l->lane.flow->sched;
	u64 rate = (u64)throttle_params(s)->kib_per_weight *
		   l->lane.flow->group.weight * 1024;
	u64 *clock = lane_clock(l);

	*clock = max(*clock, now) + (u64)bytes * 1000000000 / rate;
}

static void throttle_insert(struct queue *q, struct io *io, u64 now,
			    struct wake *wake)
{
	comparator_insert(q, io, 0, now, wake);
}

static enum dispatch_result
throttle_dispatch(struct queue *q, u64 now, struct io **out, struct wake *wake)
{
	struct comparator_lane *lane = queue_first(q);

	queue_looked_at(q);
	if (!q->urgent.head && !lane)
		return comparator_give_up(q, DISPATCH_EMPTY);
	if (!q->urgent.head && !q->drain && *lane_clock(lane) > now) {
		wake_at(wake, *lane_clock(lane));
		return comparator_give_up(q, DISPATCH_NO_BUDGET);
	}
	if (!q->urgent.head)
		lane_pay(lane, lane->lane.fifo.head->bytes, now);
	*out = comparator_take(q, lane, now);
	return DISPATCH_IO;
}

static void throttle_block(struct queue *q, struct wake *wake)
{
	(void)q;
	(void)wake;
}

static void throttle_requeue(struct io *io, struct wake *wake)
{
	(void)wake;
	io_returned(io);
}

static void throttle_complete(struct io *io, u64 now, struct wake *wake)
{
	throttle_requeue(io, wake);
	queue_completed(io, now, wake);
}

static void throttle_tick(struct sched *s, u64 now, struct wake *wake)
{
	u32 i;

	none_tick(s, now, wake);
	for (i = 0; i < s->nr_queues; i++) {
		struct comparator_lane *first = queue_first(s->queue[i]);

		if (!first || s->queue[i]->state != DISPATCH_NO_BUDGET)
			continue;
		if (*lane_clock(first) <= now)
			sched_wake(s, i, wake);
		else
			wake_at(wake, *lane_clock(first));
	}
}

/* A new rate holds for the next request of each flow. */
static void throttle_tune(struct sched *s, const struct sched_params *p,
			  struct wake *wake)
{
	(void)wake;
	if (p)
		s->params = *p;
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
	.queue_bytes		= sizeof(struct comparator_queue),
	.flow_bytes		= sizeof(struct throttle_flow),
	.flow_queue_bytes	= sizeof(struct comparator_lane),
	.init			= none_init,
	.exit			= none_exit,
	.insert			= throttle_insert,
	.merge			= comparator_merge,
	.dispatch		= throttle_dispatch,
	.block			= throttle_block,
	.complete		= throttle_complete,
	.requeue		= throttle_requeue,
	.tick			= throttle_tick,
	.tune			= throttle_tune,
	.flow_init		= engine_flow_init,
};
