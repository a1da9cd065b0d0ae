// SPDX-License-Identifier: GPL-2.0
/* One flow at a time has the drive: see service.h. */
#include "service.h"

static struct service *service_of(const struct sched *s)
{
	return s->own;
}

static u64 idle_ns(const struct sched *s)
{
	const struct service_params *p = (const void *)s->params.own;

	return p->idle_us * 1000ULL;
}

/* The end of the time in which @f, without a request, may send one. */
static u64 idle_end_ns(const struct sched *s, const struct flow *f)
{
	const struct service_flow *sf = flow_own(f);

	return sf->done_ns + idle_ns(s);
}

/* Does the flow in service stay so, though it has no request that waits? */
static bool waits_for(const struct sched *s, const struct flow *f, u64 now)
{
	const struct service_flow *sf = flow_own(f);

	return idle_ns(s) && (sf->out || now < idle_end_ns(s, f));
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
		    comparator_head(s->queue[i], sv->flow))
			sched_wake(s, i, wake);
	sf = flow_own(sv->flow);
	if (!atomic64_read(&sv->flow->queued) && comparator_waiting(s->active))
		wake_at(wake,
			sf->out ? sv->end_ns :
				  min(sv->end_ns, idle_end_ns(s, sv->flow)));
}

struct lane *service_next(struct queue *q)
{
	struct flow *f = service_of(q->sched)->flow;

	if (!f || !comparator_head(q, f))
		comparator_each(q->sched, f) if (comparator_head(q, f)) break;
	return f ? flow_queue_own(f, q->index) : NULL;
}

bool service_may_go(struct queue *q, struct lane *lane, u64 now,
		    struct wake *wake)
{
	(void)now;
	(void)wake;
	return lane->flow == service_of(q->sched)->flow && may_serve(q->sched);
}

enum dispatch_result service_dispatch(struct queue *q, u64 now, struct io **out,
				      struct wake *wake)
{
	const struct service_rule *rule = service_of(q->sched)->rule;
	struct service_flow *sf;
	enum dispatch_result why;

	turn(q->sched, now, wake);
	why = engine_dispatch(q, now, out, wake);
	if (why != DISPATCH_IO)
		return why;
	sf = flow_own((*out)->flow);
	sf->out++;
	if (((*out)->flags & IO_URGENT) || q->drain)
		return DISPATCH_IO;
	if (rule->serve)
		rule->serve(q->sched, *out);
	turn(q->sched, now, wake);
	return DISPATCH_IO;
}

/* A second call for one dispatch changes nothing. */
void service_requeue(struct io *io, struct wake *wake)
{
	struct service_flow *sf = flow_own(io->flow);

	if (io->flags & IO_OUT)
		sf->out--;
	engine_requeue(io, wake);
}

void service_complete(struct io *io, u64 now, struct wake *wake)
{
	struct service_flow *sf = flow_own(io->flow);

	if (io->flags & IO_OUT)
		sf->out--;
	sf->done_ns = now;
	engine_complete(io, now, wake);
	turn(io->queue->sched, now, wake);
}

void service_tick(struct sched *s, u64 now, struct wake *wake)
{
	engine_tick(s, now, wake);
	turn(s, now, wake);
}

int service_init(struct sched *s, const struct service_rule *rule,
		 const struct engine_ops *ops)
{
	service_of(s)->rule = rule;
	return engine_init(s, ops);
}
