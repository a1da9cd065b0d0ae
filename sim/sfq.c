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
 * The order is one of the whole host, as in the paper.  A queue of which the
 * first request is not the least of all waits.  So does a queue while D requests
 * are in service.  Each dispatch and each completion wakes the queue with the
 * least tag.  A real host pays for that with messages between CPUs, which the
 * simulator does not charge.
 *
 * Departures.  Tags follow a change of weights (flow.h).  A queue that its
 * driver has stopped does not hold the others.
 *
 * Source: Jin, Chase, Kaur, Interposed Proportional Sharing for a Storage
 * Service Utility, SIGMETRICS 2004, section 4.  Tested by tests/sim/sim_run.py.
 */
#include "comparator.h"
#include "none.h"

struct sfq {
	vtime_t now;			/* virtual time */
	u32 out;			/* requests in service */
	bool blocked[QUEUES_MAX];
};

static vtime_t lane_tag(const struct comparator_lane *l)
{
	u64 epoch;

	return flow_tag(l->lane.flow, l->lane.fifo.head->pos, &epoch);
}

/* Returns the lane of @q with the least start tag, or NULL. */
static struct comparator_lane *queue_least(const struct queue *q)
{
	struct comparator_lane *l, *least = NULL;

	for (l = comparator_lanes(q); l; l = l->next)
		if (!least || vtime_before(lane_tag(l), lane_tag(least)))
			least = l;
	return least;
}

/* Returns the queue with the least start tag that can run, or NULL. */
static struct queue *sched_least(const struct sched *s)
{
	const struct sfq *sfq = s->own;
	struct queue *least = NULL;
	vtime_t tag = 0;
	u32 i;

	for (i = 0; i < s->nr_queues; i++) {
		struct comparator_lane *l = queue_least(s->queue[i]);

		if (!l || sfq->blocked[i])
			continue;
		if (!least || vtime_before(lane_tag(l), tag)) {
			least = s->queue[i];
			tag = lane_tag(l);
		}
	}
	return least;
}

/* Wakes the queue with the least start tag if a request may be dispatched. */
static void sfq_wake(struct sched *s, struct wake *wake)
{
	const struct sfq *sfq = s->own;
	struct queue *least = sched_least(s);

	if (least && sfq->out < s->params.depth)
		sched_wake(s, least->index, wake);
}

static void sfq_insert(struct queue *q, struct io *io, u64 now,
		       struct wake *wake)
{
	const struct sfq *sfq = q->sched->own;

	comparator_insert(q, io, sfq->now, now, wake);
}

static enum dispatch_result sfq_dispatch(struct queue *q, u64 now,
					 struct io **out, struct wake *wake)
{
	struct comparator_lane *lane = queue_least(q);
	struct sched *s = q->sched;
	struct sfq *sfq = s->own;
	bool passes;

	queue_looked_at(q);
	sfq->blocked[q->index] = false;
	passes = q->urgent.head || (lane && s->drain);
	if (!passes && !lane) {
		sfq_wake(s, wake);
		return comparator_give_up(q, DISPATCH_EMPTY);
	}
	if (!passes && sfq->out >= s->params.depth)
		return comparator_give_up(q, DISPATCH_NO_SLOT);
	if (!passes && sched_least(s) != q) {
		sfq_wake(s, wake);
		return comparator_give_up(q, DISPATCH_THROTTLED);
	}
	if (!passes)
		sfq->now = vtime_max(sfq->now, lane_tag(lane));
	*out = comparator_take(q, lane, now);
	if (passes)
		return DISPATCH_IO;
	(*out)->flags |= IO_SLOT;
	sfq->out++;
	return DISPATCH_IO;
}

static void sfq_block(struct queue *q, struct wake *wake)
{
	struct sfq *sfq = q->sched->own;

	sfq->blocked[q->index] = true;
	sfq_wake(q->sched, wake);
}

static void sfq_requeue(struct io *io, struct wake *wake)
{
	struct sched *s = io->queue->sched;
	struct sfq *sfq = s->own;

	if (!engine_take_back(io))
		return;
	sfq->out--;
	sfq_wake(s, wake);
}

static void sfq_complete(struct io *io, u64 now, struct wake *wake)
{
	sfq_requeue(io, wake);
	queue_completed(io, now, wake);
}

static void sfq_tune(struct sched *s, const struct sched_params *p,
		     struct wake *wake)
{
	if (p)
		s->params = *p;
	sfq_wake(s, wake);
}

static const struct tunable sfq_tunables[] = {
	{ TUNABLE_DEPTH(64) },
	{ TUNABLE_COST_OF(COST_BYTES) },
	{ }
};

const struct sched_ops sfq_ops = {
	.name			= "sfq",
	.tunables		= sfq_tunables,
	.bytes			= sizeof(struct sfq),
	.queue_bytes		= sizeof(struct comparator_queue),
	.flow_queue_bytes	= sizeof(struct comparator_lane),
	.init			= none_init,
	.exit			= none_exit,
	.insert			= sfq_insert,
	.merge			= comparator_merge,
	.dispatch		= sfq_dispatch,
	.block			= sfq_block,
	.complete		= sfq_complete,
	.requeue		= sfq_requeue,
	.tick			= none_tick,
	.tune			= sfq_tune,
	.flow_init		= engine_flow_init,
};
