// SPDX-License-Identifier: GPL-2.0
/* One order for the whole host: see order.h. */
#include "order.h"

static struct order *order_of(const struct sched *s)
{
	return s->own;
}

void order_pass(struct sched *s, u64 now)
{
	struct order *o = order_of(s);
	u64 passed_ns = now - o->now_ns;

	o->now_ns = now;
	if (passed_ns && o->rule->pass)
		o->rule->pass(s, passed_ns);
}

/* Returns the lane of @q with the request that goes first, or NULL. */
static struct comparator_lane *queue_first(const struct queue *q)
{
	const struct order_rule *rule = order_of(q->sched)->rule;
	struct comparator_lane *l, *first = NULL;

	for (l = comparator_lanes(q); l; l = l->next)
		if (!first || rule->before(l, first))
			first = l;
	return first;
}

/* Returns the queue that can run and has the first request, and its @lane. */
static struct queue *sched_first(const struct sched *s,
				 struct comparator_lane **lane)
{
	const struct order *o = order_of(s);
	struct queue *first = NULL;
	u32 i;

	for (i = 0; i < s->nr_queues; i++) {
		struct comparator_lane *l = queue_first(s->queue[i]);

		if (!l || o->blocked[i])
			continue;
		if (!first || o->rule->before(l, *lane)) {
			first = s->queue[i];
			*lane = l;
		}
	}
	return first;
}

static bool may_go(struct sched *s, const struct comparator_lane *l,
		   struct wake *wake)
{
	const struct order_rule *rule = order_of(s)->rule;

	return !rule->may_go || rule->may_go(s, l, wake);
}

/* Wakes the queue with the first request if that may be dispatched. */
static void order_wake(struct sched *s, struct wake *wake)
{
	struct comparator_lane *lane = NULL;
	struct queue *first = sched_first(s, &lane);

	if (first && order_of(s)->out < s->params.depth &&
	    may_go(s, lane, wake))
		sched_wake(s, first->index, wake);
}

/* With may_go(), each queue may have to wait for a tick. */
static enum dispatch_result wait(struct queue *q, enum dispatch_result why)
{
	if (order_of(q->sched)->rule->may_go)
		why = DISPATCH_NO_BUDGET;
	return comparator_give_up(q, why);
}

static void order_serve(struct sched *s, struct comparator_lane *lane)
{
	struct order_flow *of = flow_own(lane->lane.flow);
	struct order *o = order_of(s);

	if (o->rule->serve)
		o->rule->serve(s, lane);
	o->out++;
	of->out++;
}

enum dispatch_result order_dispatch(struct queue *q, u64 now, struct io **out,
				    struct wake *wake)
{
	struct comparator_lane *lane, *first = NULL;
	struct sched *s = q->sched;
	struct order *o = order_of(s);

	queue_looked_at(q);
	order_pass(s, now);
	o->blocked[q->index] = false;
	lane = queue_first(q);
	if (q->urgent.head || (lane && q->drain)) {
		*out = comparator_take(q, lane, now);
		return DISPATCH_IO;
	}
	if (!lane) {
		order_wake(s, wake);
		return comparator_give_up(q, DISPATCH_EMPTY);
	}
	if (o->out >= s->params.depth)
		return wait(q, DISPATCH_NO_SLOT);
	if (sched_first(s, &first) != q) {
		order_wake(s, wake);
		return wait(q, DISPATCH_THROTTLED);
	}
	if (!may_go(s, lane, wake))
		return wait(q, DISPATCH_THROTTLED);
	order_serve(s, lane);
	*out = comparator_take(q, lane, now);
	(*out)->flags |= IO_SLOT;
	return DISPATCH_IO;
}

void order_block(struct queue *q, struct wake *wake)
{
	order_of(q->sched)->blocked[q->index] = true;
	order_wake(q->sched, wake);
}

void order_requeue(struct io *io, struct wake *wake)
{
	struct order_flow *of = flow_own(io->flow);
	struct sched *s = io->queue->sched;

	if (!io_returned_with_slot(io))
		return;
	order_of(s)->out--;
	of->out--;
	order_wake(s, wake);
}

void order_complete(struct io *io, u64 now, struct wake *wake)
{
	struct order_flow *of = flow_own(io->flow);

	order_pass(io->queue->sched, now);
	of->done_ns = now;
	order_requeue(io, wake);
	queue_completed(io, now, wake);
}

void order_tick(struct sched *s, u64 now, struct wake *wake)
{
	none_tick(s, now, wake);
	order_pass(s, now);
	if (order_of(s)->rule->may_go)
		order_wake(s, wake);
}

void order_tune(struct sched *s, const struct sched_params *p,
		struct wake *wake)
{
	if (p)
		s->params = *p;
	order_wake(s, wake);
}
