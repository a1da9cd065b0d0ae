// SPDX-License-Identifier: GPL-2.0
/*
 * cfq - CFQ of Linux: time slices, and the drive's time divided by weight
 *
 * The flows take turns, and each has the drive for a slice of time (service.h).
 * A flow pays the time that it had the drive, divided by its share.  The flow
 * that has paid least is next.  A flow that comes back with a request is put
 * behind all others that wait.
 *
 *	Shares 3/4 and 1/4, slices of 100 and 75 ms.  The first pays 133 for each
 *	of its slices and the second 300, so the first has the drive for three
 *	times as long.
 *
 * A slice is target_ms times the share, at most slice_ms and at least twice
 * idle_us.  It ends early if the flow has sent no request for idle_us, and only
 * the time until its last completion is paid.  While other flows wait, at most
 * `quantum` requests of a flow are in the drive.
 *
 * CFQ-P is CFQ with the priority of the applications raised that wait for each
 * answer.  The paper of ifq says no more.  Here it is realtime_weight=W [R]: flows
 * of weight W or more are of the real-time class.  Their requests end the slice
 * of any other flow, and no other flow is served while they wait.
 *
 * Left out: queues of processes within a cgroup, the order by sector, queues for
 * asynchronous writes, and the mode that counts requests (slice_idle=0).
 *
 * Source: block/cfq-iosched.c and Documentation/block/cfq-iosched.txt of Linux
 * 4.20.  These are its defaults: slice_sync, target_latency, group_idle, and
 * quantum.  The length of a slice and the return of a flow were not compared with
 * the code.  Tested by tests/sim/sim_run.py.
 */
#include "service.h"

enum {
	MS		= 1000 * 1000,
	US		= 1000,
	/* A flow that comes back is so far behind the last one that waits. */
	BEHIND_NS	= 200 * MS,
};

struct cfq_params {
	struct service_params service;
	u32 slice_ms, target_ms, quantum, realtime_weight;
};

struct cfq {
	struct service service;
	u64 least_ns;			/* paid by the flow that was next last */
};

struct cfq_flow {
	struct service_flow service;
	u64 paid_ns;			/* divided by the share */
};

static const struct cfq_params *params_of(const struct sched *s)
{
	return (const void *)s->params.own;
}

static bool is_realtime(const struct flow *f)
{
	u32 weight = params_of(f->sched)->realtime_weight;

	return weight && f->group.weight >= weight;
}

/* Is @a, with requests that wait, served before @b? */
static bool before(const struct flow *a, const struct flow *b)
{
	const struct cfq_flow *fa = flow_own(a), *fb = flow_own(b);

	if (is_realtime(a) != is_realtime(b))
		return is_realtime(a);
	return fa->paid_ns < fb->paid_ns;
}

static u64 slice_ns(struct flow *f)
{
	const struct cfq_params *p = params_of(f->sched);
	u64 most = (u64)p->slice_ms * MS;
	u64 least = min((u64)p->service.idle_us * US * 2, most);
	u64 due = (comparator_share(f) * ((u64)p->target_ms * MS)) >>
		  COMPARATOR_SHIFT;

	return clamp(due, least, most);
}

static struct flow *cfq_next(struct sched *s, u64 now, u64 *time_ns)
{
	struct flow *f, *next = NULL;
	struct cfq *c = s->own;

	(void)now;
	comparator_each(s, f) if (!next || before(f, next)) next = f;
	if (!next)
		return NULL;
	c->least_ns =
		max(c->least_ns, ((struct cfq_flow *)flow_own(next))->paid_ns);
	*time_ns = slice_ns(next);
	return next;
}

static bool cfq_is_over(const struct sched *s)
{
	const struct cfq *c = s->own;
	struct flow *f;

	if (is_realtime(c->service.flow))
		return false;
	comparator_each(s, f) if (is_realtime(f)) return true;
	return false;
}

static bool cfq_may_serve(const struct sched *s)
{
	const struct cfq *c = s->own;
	const struct service_flow *sf = flow_own(c->service.flow);
	struct flow *f;

	if (sf->out < params_of(s)->quantum)
		return true;
	comparator_each(s, f) if (f != c->service.flow) return false;
	return true;
}

static void cfq_end(struct sched *s, u64 since, u64 until)
{
	struct cfq *c = s->own;
	struct flow *f = c->service.flow;
	struct cfq_flow *cf = flow_own(f);
	u64 share = comparator_share(f);

	/* A flow that has become inactive is put behind when it comes back. */
	if (share)
		cf->paid_ns += ((until - since) << COMPARATOR_SHIFT) / share;
}

static const struct service_rule rule = {
	.next		= cfq_next,
	.is_over	= cfq_is_over,
	.may_serve	= cfq_may_serve,
	.end		= cfq_end,
};

/* Puts @f behind the other flows that wait, unless it has the drive. */
static void come_back(struct flow *f)
{
	const struct cfq *c = f->sched->own;
	struct cfq_flow *cf = flow_own(f);
	u64 last_ns = c->least_ns;
	struct flow *other;

	if (c->service.flow == f)
		return;
	comparator_each(f->sched, other)
	{
		const struct cfq_flow *of = flow_own(other);

		if (other != f)
			last_ns = max(last_ns, of->paid_ns + BEHIND_NS);
	}
	cf->paid_ns = max(cf->paid_ns, last_ns);
}

static void cfq_join(struct queue *q, struct lane *lane)
{
	(void)q;
	if (atomic64_read(&lane->flow->queued) == 1)
		come_back(lane->flow);
}

static const struct engine_ops cfq_lanes = {
	.join	= cfq_join,
	SERVICE_LANES,
};

static int cfq_init(struct sched *s)
{
	return service_init(s, &rule, &cfq_lanes);
}

static const struct tunable cfq_tunables[] = {
	{ TUNABLE_U32("slice_ms", struct cfq_params, slice_ms, 1, 10000, 1,
		      100) },
	{ TUNABLE_U32("target_ms", struct cfq_params, target_ms, 1, 100000, 1,
		      300) },
	{ TUNABLE_SERVICE_IDLE },
	{ TUNABLE_U32("quantum", struct cfq_params, quantum, 1, 65536, 1, 8) },
	{ TUNABLE_U32("realtime_weight", struct cfq_params, realtime_weight, 0,
		      10000, 1, 0) },
	{ }
};

const struct sched_ops cfq_ops = {
	.name		= "cfq",
	.tunables	= cfq_tunables,
	.params_bytes	= sizeof(struct cfq_params),
	.bytes		= sizeof(struct cfq),
	.flow_bytes	= sizeof(struct cfq_flow),
	.init		= cfq_init,
	SERVICE_HOOKS,
};
