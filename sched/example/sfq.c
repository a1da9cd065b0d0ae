// SPDX-License-Identifier: GPL-2.0
/*
 * sfq - SFQ(D): start-time fair queueing with D requests in service
 *
 * The problem.  Flows share a device by weight, whichever queues they use.
 * Round robin in each queue (drr.c) cannot do that: a queue knows its own flows
 * only.
 *
 * The idea (the paper, section 4).  A request that arrives gets a *start tag*:
 * the virtual time, or the finish tag of the flow's last request if that is
 * greater.  Its finish tag is the start tag plus its cost divided by the flow's
 * share.  While fewer than D requests are in service, the request with the least
 * start tag of all queues is sent, and virtual time becomes its start tag.
 *
 *	Flows of shares 3/4 and 1/4 with requests of cost 12 have the start
 *	tags 0, 16, 32, 48 and 0, 48: three requests of the first go for each of
 *	the second.
 *
 * flow.h has the tags, tag_order.h the order in a queue, and engine.h the order
 * among the queues.  Tags follow a change of weights [R], which the paper does not
 * have.
 *
 * Invariants
 *   I1  a lane is in the order of its queue if and only if it has requests.
 *   I2  virtual time never goes back.
 *
 * Limits.  Before each request a queue reads the tags of all queues, and the one
 * queue with the least tag may be slow to run.  mqfq lets the others go ahead by a
 * threshold, and finds the least tag in a tree.
 *
 * Source: Jin, Chase, Kaur, Interposed Proportional Sharing for a Storage
 * Service Utility, SIGMETRICS 2004, section 4.  Tested by tests/unit/sfq.c,
 * tests/sim, mt and vm.
 */
#include "sfq.h"
#include "core/policies.h"

static struct sfq *sfq_of(const struct sched *s)
{
	return s->own;
}

void sfq_join(struct queue *q, struct lane *lane)
{
	struct tag_lane *l = container_of(lane, struct tag_lane, lane);
	vtime_t tag = tag_lane_first(l);

	tag_order_add(q->own, l, tag, l->epoch);
}

vtime_t sfq_start(struct flow *f)
{
	return (vtime_t)atomic64_read(&sfq_of(f->sched)->now);
}

struct lane *sfq_next(struct queue *q)
{
	vtime_t vt = (vtime_t)atomic64_read(&sfq_of(q->sched)->now);
	struct tag_lane *l = tag_order_first(q->own, q, vt);

	return l ? &l->lane : NULL;
}

vtime_t sfq_tag(struct queue *q)
{
	const struct tag_lane *l = tag_order_top(q->own);

	return l ? l->node.key : VTIME_NONE;
}

/* Raises virtual time to @to if it is less. */
static void sfq_advance(struct sfq *sfq, vtime_t to)
{
	s64 now = atomic64_read(&sfq->now);

	while (vtime_before((vtime_t)now, to))
		if (atomic64_try_cmpxchg(&sfq->now, &now, (s64)to))
			break;
}

/* If the first request of the queue has gone, its lane gets a new place. */
void sfq_pay(struct queue *q, struct lane *lane, u32 cost)
{
	struct tag_lane *top = tag_order_top(q->own);

	(void)cost;
	if (!top || &top->lane != lane)
		return;
	sfq_advance(sfq_of(q->sched), top->node.key);
	tag_order_took(q->own);
}

/* sfq_pay() has taken the lane out. */
void sfq_leave(struct queue *q, struct lane *lane)
{
	(void)q;
	(void)lane;
}

static const struct engine_ops sfq_lanes = {
	.join	= sfq_join,
	.next	= sfq_next,
	.pay	= sfq_pay,
	.leave	= sfq_leave,
	.start	= sfq_start,
	.tag	= sfq_tag,
};

static int sfq_init(struct sched *s)
{
	return engine_init(s, &sfq_lanes);
}

static const struct tunable sfq_tunables[] = {
	{ TUNABLE_DEPTH(64) },
	{ TUNABLE_COST_OF(COST_BYTES) },
	{ }
};

const struct sched_ops sfq_ops = {
	.name			= "sfq",
	.tunables		= sfq_tunables,
	.ordered		= true,
	.bytes			= sizeof(struct sfq),
	.queue_bytes		= sizeof(struct tag_order),
	.flow_queue_bytes	= sizeof(struct tag_lane),
	.init			= sfq_init,
	ENGINE_HOOKS,
};
