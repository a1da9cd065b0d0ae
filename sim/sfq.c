// SPDX-License-Identifier: GPL-2.0
/*
 * sfq - SFQ(D): start-time fair queueing with D requests in service
 *
 * A request that arrives gets a start tag: the virtual time, or the finish tag
 * of the flow's last request if that is greater.  Its finish tag is the start
 * tag plus its cost divided by the flow's share.  While fewer than D requests
 * are in service, the request with the least start tag of all queues is
 * dispatched, and virtual time becomes its start tag.
 *
 *	Flows of shares 3/4 and 1/4 with requests of cost 12 have the start
 *	tags 0, 16, 32, 48 and 0, 48: three requests of the first go for each of
 *	the second.
 *
 * The order is one of the whole host, as in the paper (order.h).  Tags follow a
 * change of weights (flow.h), which the paper does not have.
 *
 * Source: Jin, Chase, Kaur, Interposed Proportional Sharing for a Storage
 * Service Utility, SIGMETRICS 2004, section 4.  Tested by tests/sim/sim_run.py.
 */
#include "order.h"

struct sfq {
	struct order order;
	vtime_t now;			/* virtual time */
};

static void sfq_serve(struct sched *s, const struct comparator_lane *l)
{
	struct sfq *sfq = s->own;

	sfq->now = vtime_max(sfq->now, comparator_tag(l));
}

static const struct order_rule rule = {
	.before		= comparator_tag_before,
	.serve		= sfq_serve,
};

static int sfq_init(struct sched *s)
{
	struct sfq *sfq = s->own;

	sfq->order.rule = &rule;
	return 0;
}

static void sfq_insert(struct queue *q, struct io *io, u64 now,
		       struct wake *wake)
{
	const struct sfq *sfq = q->sched->own;

	order_pass(q->sched, now);
	comparator_insert(q, io, sfq->now, now, wake);
}

static const struct tunable sfq_tunables[] = {
	{ TUNABLE_DEPTH(64) },
	{ TUNABLE_COST_OF(COST_BYTES) },
	{ }
};

const struct sched_ops sfq_ops = {
	.name		= "sfq",
	.tunables	= sfq_tunables,
	.bytes		= sizeof(struct sfq),
	.flow_bytes	= sizeof(struct order_flow),
	.init		= sfq_init,
	.insert		= sfq_insert,
	ORDER_HOOKS,
};
