// SPDX-License-Identifier: GPL-2.0
/*
 * iolatency - latency targets: a flow that misses its target holds its siblings back
 *
 * Each flow has a target, target_us * 100 / weight.  A flow *misses* it in a window of
 * window_ms if a tenth of its requests took longer in the drive.  It is the *victim*
 * then, unless another one with a lesser target is.  All its siblings with a greater
 * target may have half as many requests inside.  While the victim meets its target,
 * they get a sixteenth of the host's tags more in each window.
 *
 *	1024 tags, the victim misses its target for 400 ms: 512, 256, 128, 64 requests
 *	for each of the others.  It takes 1.6 s without a miss to let them all go.
 *
 * A flow that did a twentieth of the requests or fewer is left out, because it is not
 * the cause.  A victim that sends nothing for 5 s is forgotten, and the others get
 * more each second.
 *
 * There are no weights.  A target stands for one here [R]: the ratio of two targets is
 * that of the weights.  Targets of groups inside the tree and the delays of tasks for
 * swap and metadata are left out.
 *
 * Source: the controller io.latency of Linux 4.19, Control Group v2
 * (Documentation/admin-guide/cgroup-v2.rst), and its rules as the kernel has them.
 * Tested by tests/sim/sim_run.py.
 */
#include "comparators.h"

enum {
	US		= 1000,
	MS		= 1000 * US,
	SECOND		= 1000 * MS,
	MISSED_PART	= 10,
	GOOD_LEAST	= 5,		/* requests that show that a target is met */
	SMALL_PERCENT	= 5,
	DOWN_SHIFT	= 2,
	UP_SHIFT	= 4,
	DEEPEST_SHIFT	= 3,
	TAGS		= 1024,		/* of the host, as for NVMe drives */
};

struct iolatency_params {
	u32 target_us, window_ms;
};

/* Of a flow with children. */
struct siblings {
	u32 held_back;			/* grows by a miss; 0: no flow is held back */
	u64 target_ns;			/* of the victim; 0: none */
	const struct flow *victim;
	u64 changed_ns;			/* the last time that it changed held_back */
	u64 requests;			/* of all, in their last windows */
	u64 lifted_ns;			/* by tick */
};

struct iolatency_flow {
	struct siblings children;
	u32 held_back;			/* that it has followed */
	u32 inside;			/* requests */
	u32 denied;			/* of TAGS, the most that may be inside */
	u64 begin_ns;			/* of its window */
	u32 done, missed;		/* in the window */
	u32 requests;			/* in the last one */
};

struct iolatency {
	struct engine engine;		/* first: see engine_of() */
	u64 lift_ns;			/* when flows without a victim are let go */
};

static const struct iolatency_params *params_of(const struct sched *s)
{
	return (const void *)s->params.own;
}

static struct iolatency_flow *own(const struct flow *f)
{
	return (struct iolatency_flow *)flow_own(f);
}

static struct siblings *siblings_of(const struct flow *f)
{
	/* The root has no siblings, and is counted with its children. */
	const struct share_group *g = f->group.parent ? f->group.parent :
							&f->group;

	return &own(container_of(g, const struct flow, group))->children;
}

static u64 target_ns(const struct flow *f)
{
	return (u64)params_of(f->sched)->target_us * US * 100 / f->group.weight;
}

/* ------------------------------------------------------------ holding back */

static void lower(struct siblings *b)
{
	if (b->held_back <= TAGS)
		b->held_back += TAGS >> DOWN_SHIFT;
	else if (b->held_back < TAGS << DEEPEST_SHIFT)
		b->held_back++;
}

static void lift(struct siblings *b)
{
	b->held_back -=
		min(b->held_back, b->held_back > TAGS ? 1U : TAGS >> UP_SHIFT);
}

/* The window of @f has ended. */
static void judge(struct flow *f, u64 now)
{
	struct iolatency_flow *o = own(f);
	struct siblings *b = siblings_of(f);
	bool missed = o->missed >= max(o->done / MISSED_PART, 1U);

	b->requests -= o->requests;
	b->requests += o->done;
	o->requests = o->done;
	if (missed) {
		if (b->target_ns && b->target_ns < target_ns(f))
			return;
		b->victim = f;
		b->target_ns = target_ns(f);
	} else if (b->victim != f || o->done < GOOD_LEAST) {
		return;
	}
	b->changed_ns = now;
	if (missed)
		lower(b);
	else
		lift(b);
}

/* Its siblings may have changed held_back since @f looked. */
static void follow(struct flow *f)
{
	struct iolatency_flow *o = own(f);
	const struct siblings *b = siblings_of(f);
	bool tighter = b->held_back > o->held_back;

	if (b->held_back == o->held_back)
		return;
	o->held_back = b->held_back;
	if (tighter && (target_ns(f) <= b->target_ns ||
			(u64)o->requests * 100 <= b->requests * SMALL_PERCENT))
		return;
	if (!b->held_back)
		o->denied = 0;
	else if (tighter)
		o->denied = TAGS - max((TAGS - o->denied) / 2, 1U);
	else
		o->denied -= min(o->denied, (u32)TAGS >> UP_SHIFT);
}

static bool may_have_more(struct flow *f)
{
	follow(f);
	return own(f)->inside < TAGS - own(f)->denied;
}

/* ------------------------------------------------------------- the I/O path */

/* Returns the lane of @q with the oldest io that may go, or else any lane, or NULL. */
static struct lane *iolatency_next(struct queue *q)
{
	const struct io *io, *oldest = NULL;
	struct flow *f, *any = NULL, *first = NULL;

	comparator_each(q->sched, f)
	{
		io = comparator_head(q, f);
		if (!io)
			continue;
		any = f;
		if (may_have_more(f) &&
		    (!oldest || io->insert_ns < oldest->insert_ns)) {
			oldest = io;
			first = f;
		}
	}
	first = first ? first : any;
	return first ? flow_queue_own(first, q->index) : NULL;
}

static bool iolatency_may_go(struct queue *q, struct lane *lane, u64 now,
			     struct wake *wake)
{
	(void)q;
	(void)now;
	(void)wake;
	return may_have_more(lane->flow);
}

static enum dispatch_result
iolatency_dispatch(struct queue *q, u64 now, struct io **out, struct wake *wake)
{
	enum dispatch_result why = engine_dispatch(q, now, out, wake);

	if (why == DISPATCH_IO)
		own((*out)->flow)->inside++;
	return why;
}

/* Wakes the queues of which no flow could have more requests inside. */
static void wake_waiting(struct sched *s, struct wake *wake)
{
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		if (s->queue[i]->state == DISPATCH_NO_BUDGET)
			sched_wake(s, i, wake);
}

/* A request of @f has left the drive. */
static void leaves(struct flow *f, struct wake *wake)
{
	own(f)->inside--;
	wake_waiting(f->sched, wake);
}

static void iolatency_complete(struct io *io, u64 now, struct wake *wake)
{
	struct iolatency_flow *o = own(io->flow);
	u64 window = (u64)params_of(io->flow->sched)->window_ms * MS;

	if (io->flags & IO_OUT) {
		o->done++;
		o->missed += now - io->dispatch_ns > target_ns(io->flow);
		leaves(io->flow, wake);
	}
	engine_complete(io, now, wake);
	if (now - o->begin_ns < window || !o->done)
		return;
	judge(io->flow, now);
	o->begin_ns = now;
	o->done = o->missed = 0;
}

static void iolatency_requeue(struct io *io, struct wake *wake)
{
	if (io->flags & IO_OUT)
		leaves(io->flow, wake);
	engine_requeue(io, wake);
}

/* ---------------------------------------------------------------- slow work */

/* A victim that sends nothing does not hold its siblings back. */
static void forget_victim(struct siblings *b, u64 now)
{
	if (!b->held_back || b->lifted_ns == now)
		return;
	if (b->victim && now - b->changed_ns >= 5ULL * SECOND) {
		b->victim = NULL;
		b->target_ns = 0;
	}
	if (!b->victim)
		lift(b);
	b->lifted_ns = now;
}

static void iolatency_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct iolatency *l = s->own;
	struct flow *f;

	engine_tick(s, now, wake);
	if (now >= l->lift_ns) {
		l->lift_ns = now + SECOND;
		for (f = s->active; f; f = f->next_active)
			forget_victim(siblings_of(f), now);
	}
	wake_at(wake, l->lift_ns);
	wake_waiting(s, wake);
}

static const struct engine_ops iolatency_lanes = {
	.join	= comparator_join,
	.next	= iolatency_next,
	.pay	= comparator_pay,
	.leave	= comparator_join,
	.may_go	= iolatency_may_go,
};

static int iolatency_init(struct sched *s)
{
	return engine_init(s, &iolatency_lanes);
}

static const struct tunable iolatency_tunables[] = {
	{ TUNABLE_U32("target_us", struct iolatency_params, target_us, 1,
		      10000000, 1, 1000) },
	{ TUNABLE_U32("window_ms", struct iolatency_params, window_ms, 1, 1000,
		      1, 100) },
	{ }
};

const struct sched_ops iolatency_ops = {
	.name			= "iolatency",
	.tunables		= iolatency_tunables,
	.params_bytes		= sizeof(struct iolatency_params),
	.bytes			= sizeof(struct iolatency),
	.flow_bytes		= sizeof(struct iolatency_flow),
	.flow_queue_bytes	= sizeof(struct lane),
	.init			= iolatency_init,
	.insert			= engine_insert,
	.dispatch		= iolatency_dispatch,
	.complete		= iolatency_complete,
	.requeue		= iolatency_requeue,
	.tick			= iolatency_tick,
	.tune			= engine_tune,
	COMPARATOR_HOOKS,
};
