// SPDX-License-Identifier: GPL-2.0
/* One flow at a time has the drive: see service.h. */
#include "service.h"
#include "none.h"

static struct service *service_of(const struct sched *s)
{
	return s->own;
}

static struct comparator_lane *lane_of(const struct queue *q,
				       const struct flow *f)
{
	struct comparator_lane *l = comparator_lanes(q);

	while (l && l->lane.flow != f)
		l = l->next;
	return l;
}

static bool any_waits(const struct sched *s)
{
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		if (comparator_lanes(s->queue[i]))
			return true;
	return false;
}

/* The end of the time in which @f, without a request, may send one. */
static u64 idle_end_ns(const struct sched *s, const struct flow *f)
{
	const struct service_flow *sf = flow_own(f);

	return sf->done_ns + service_of(s)->rule->idle_ns(s);
}

/* Does the flow in service stay so, though it has no request that waits? */
static bool waits_for(const struct sched *s, const struct flow *f, u64 now)
{
	const struct service_flow *sf = flow_own(f);

	return service_of(s)->rule->idle_ns(s) &&
	       (sf->out || now < idle_end_ns(s, f));
}

static bool is_over(const struct sched *s, u64 now)
{
	const struct service *sv = service_of(s);

	if (now >= sv->end_ns || (sv->rule->is_over && sv->rule->is_over(s)))
		return true;
	return !atomic64_read(&sv->flow->queued) &&
	       !waits_for(s, sv->flow, now);
}

static void end_service(struct sched *s, u64 now)
{
	struct service *sv = service_of(s);
	const struct service_flow *sf = flow_own(sv->flow);

	if (sv->rule->end)
		sv->rule->end(s, sv->begin_ns,
			      sf->out ? now : max(sv->begin_ns, sf->done_ns));
	sv->flow = NULL;
}

static void begin_service(struct sched *s, u64 now)
{
	struct service *sv = service_of(s);
	u64 time_ns = 0;

	sv->flow = sv->rule->next(s, now, &time_ns);
	sv->begin_ns = now;
	sv->end_ns = now + time_ns;
}

static bool may_serve(const struct sched *s)
{
	const struct service_rule *rule = service_of(s)->rule;

	return !rule->may_serve || rule->may_serve(s);
}

/* Chooses the flow in service, and wakes the queues that have requests of it. */
static void turn(struct sched *s, u64 now, struct wake *wake)
{
	struct service *sv = service_of(s);
	const struct service_flow *sf;
	u32 i;

	if (sv->flow && is_over(s, now))
		end_service(s, now);
	if (!sv->flow)
		begin_service(s, now);
	if (!sv->flow || !may_serve(s))
		return;
	for (i = 0; i < s->nr_queues; i++)
		if (s->queue[i]->state == DISPATCH_NO_BUDGET &&
		    lane_of(s->queue[i], sv->flow))
			sched_wake(s, i, wake);
	sf = flow_own(sv->flow);
	if (!atomic64_read(&sv->flow->queued) && any_waits(s))
		wake_at(wake,
			sf->out ? sv->end_ns :
				  min(sv->end_ns, idle_end_ns(s, sv->flow)));
}

enum dispatch_result service_dispatch(struct queue *q, u64 now, struct io **out,
				      struct wake *wake)
{
	struct comparator_lane *lane;
	struct service_flow *sf;
	struct sched *s = q->sched;
	bool passes;

	queue_looked_at(q);
	turn(s, now, wake);
	passes = q->urgent.head || (comparator_lanes(q) && q->drain);
	if (!passes && !comparator_lanes(q))
		return comparator_give_up(q, DISPATCH_EMPTY);
	lane = passes ? comparator_lanes(q) : lane_of(q, service_of(s)->flow);
	if (!passes && (!lane || !may_serve(s)))
		return comparator_give_up(q, DISPATCH_NO_BUDGET);
	*out = comparator_take(q, lane, now);
	sf = flow_own((*out)->flow);
	sf->out++;
	if (passes)
		return DISPATCH_IO;
	if (service_of(s)->rule->serve)
		service_of(s)->rule->serve(s, *out);
	turn(s, now, wake);
	return DISPATCH_IO;
}

void service_block(struct queue *q, struct wake *wake)
{
	(void)q;
	(void)wake;
}

void service_requeue(struct io *io, struct wake *wake)
{
	struct service_flow *sf = flow_own(io->flow);

	(void)wake;
	io_returned(io);
	sf->out--;
}

void service_complete(struct io *io, u64 now, struct wake *wake)
{
	struct service_flow *sf = flow_own(io->flow);

	service_requeue(io, wake);
	sf->done_ns = now;
	turn(io->queue->sched, now, wake);
	queue_completed(io, now, wake);
}

void service_tick(struct sched *s, u64 now, struct wake *wake)
{
	none_tick(s, now, wake);
	turn(s, now, wake);
}

void service_tune(struct sched *s, const struct sched_params *p,
		  struct wake *wake)
{
	(void)wake;
	if (p)
		s->params = *p;
}
