// SPDX-License-Identifier: GPL-2.0
/*
 * flashfq - FlashFQ: SFQ(D) with throttled dispatch and anticipation
 *
 * The order is that of SFQ(D) (sched/example/sfq.c).  With it, a flow with many requests
 * fills the D places of the drive as soon as another flow has none waiting.  So
 * FlashFQ adds two rules, and the text at hand states their purpose only [P]:
 *
 *   throttled dispatch	exploits the restricted parallelism of flash "without
 *			losing fairness"
 *   anticipation	minimises the unfairness "due to deceptive idleness": a
 *			flow waits for an answer, and will send the next request
 *
 * Our reading [R]:
 *   - The progress of a flow is the start tag of its first waiting request, or
 *     of its next one if none waits.
 *   - A request waits while its start tag is more than threshold_kb ahead of the
 *     flow that lags most.
 *   - A flow counts for that while a request of it waits or is in the drive, and
 *     for anticipate_us after its last completion.
 *   - The defaults are ours.
 *
 *	A flow reads 4 KiB at a time and thinks for 50 us between.  Another of
 *	the same weight has 64 reads outstanding.  Both get the same bytes.  With
 *	anticipate_us=0 the second one goes ahead while the first thinks.
 *
 * The price is that the drive idles: a flow with one request at a time holds the
 * others to its own rate.
 *
 * The paper also charges reads and writes by their cost for the drive.  The tunable
 * `cost` has bytes as the default and a linear model as a choice.
 *
 * Source: the abstract of Shen, Park, FlashFQ, USENIX ATC 2013.  Tested by
 * tests/sim/sim_run.py.
 */
#include "comparators.h"
#include "sched/example/sfq.h"

enum {
	US	= 1000,
};

struct flashfq_params {
	u32 threshold_kb, anticipate_us;
};

struct flashfq {
	struct sfq sfq;			/* first */
	u64 now_ns;			/* of the last hook that knows the time */
};

struct flashfq_flow {
	u32 out;			/* requests in service */
	u64 done_ns;			/* the last completion */
};

static const struct flashfq_params *params_of(const struct sched *s)
{
	return (const void *)s->params.own;
}

/*
 * The time until which @f without a waiting request holds the others, or 0 if it
 * does not.  A flow in the drive does so until it has its answer.
 */
static u64 held_until_ns(const struct flow *f)
{
	const struct flashfq *ff = f->sched->own;
	const struct flashfq_flow *of = flow_own(f);
	u64 end_ns = of->done_ns + (u64)params_of(f->sched)->anticipate_us * US;

	if (of->out)
		return ~0ULL;
	return of->done_ns && ff->now_ns < end_ns ? end_ns : 0;
}

/*
 * May the first of all requests go?  The other waiting requests are not behind
 * it, so only flows without one are compared with it.
 */
static bool flashfq_may_go(struct queue *q, struct lane *lane, u64 now,
			   struct wake *wake)
{
	struct sched *s = q->sched;
	vtime_t latest =
		sfq_tag(q) - (vtime_t)params_of(s)->threshold_kb * 1024;
	u64 until_ns = 0, epoch;
	struct flow *f;

	(void)lane;
	(void)now;
	for (f = s->active; f; f = f->next_active) {
		u64 held_ns = held_until_ns(f);

		if (!held_ns || atomic64_read(&f->queued))
			continue;
		if (vtime_before(flow_tag(f, (u64)atomic64_read(&f->pos),
					  &epoch),
				 latest))
			until_ns = max(until_ns, held_ns);
	}
	if (until_ns && until_ns != ~0ULL)
		wake_at(wake, until_ns);
	return !until_ns;
}

/* A flow that was awaited goes on from where it was. */
static vtime_t flashfq_start(struct flow *f)
{
	u64 epoch;

	if (held_until_ns(f))
		return flow_tag(f, (u64)atomic64_read(&f->pos), &epoch);
	return sfq_start(f);
}

static const struct engine_ops flashfq_lanes = {
	.join	= sfq_join,
	.next	= sfq_next,
	.pay	= sfq_pay,
	.leave	= sfq_leave,
	.start	= flashfq_start,
	.tag	= sfq_tag,
	.may_go	= flashfq_may_go,
};

static int flashfq_init(struct sched *s)
{
	return engine_init(s, &flashfq_lanes);
}

static void flashfq_insert(struct queue *q, struct io *io, u64 now,
			   struct wake *wake)
{
	struct flashfq *ff = q->sched->own;

	ff->now_ns = now;
	engine_insert(q, io, now, wake);
}

/* A flow is in service while it has a slot. */
static enum dispatch_result flashfq_dispatch(struct queue *q, u64 now,
					     struct io **out, struct wake *wake)
{
	struct flashfq *ff = q->sched->own;
	enum dispatch_result why;

	ff->now_ns = now;
	why = engine_dispatch(q, now, out, wake);
	if (why == DISPATCH_IO)
		((struct flashfq_flow *)flow_own((*out)->flow))->out++;
	return why;
}

static void flashfq_requeue(struct io *io, struct wake *wake)
{
	struct flashfq_flow *of = flow_own(io->flow);

	if (io->flags & IO_OUT)
		of->out--;
	engine_requeue(io, wake);
	engine_pass_turn(io->queue->sched, wake);
}

static void flashfq_complete(struct io *io, u64 now, struct wake *wake)
{
	struct flashfq_flow *of = flow_own(io->flow);
	struct flashfq *ff = io->queue->sched->own;

	if (io->flags & IO_OUT)
		of->out--;
	of->done_ns = now;
	ff->now_ns = now;
	engine_complete(io, now, wake);
	engine_pass_turn(io->queue->sched, wake);
}

static void flashfq_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct flashfq *ff = s->own;

	ff->now_ns = now;
	engine_tick(s, now, wake);
	engine_pass_turn(s, wake);
}

static void flashfq_tune(struct sched *s, const struct sched_params *p,
			 struct wake *wake)
{
	engine_tune(s, p, wake);
	engine_pass_turn(s, wake);
}

static const struct tunable flashfq_tunables[] = {
	{ TUNABLE_DEPTH(64) },
	{ TUNABLE_U32("threshold_kb", struct flashfq_params, threshold_kb, 0,
		      1000000, 1, 1024) },
	{ TUNABLE_U32("anticipate_us", struct flashfq_params, anticipate_us, 0,
		      1000000, 1, 1000) },
	{ TUNABLE_COST_OF(COST_BYTES) },
	{ }
};

const struct sched_ops flashfq_ops = {
	.name		= "flashfq",
	.tunables	= flashfq_tunables,
	.params_bytes	= sizeof(struct flashfq_params),
	.bytes		= sizeof(struct flashfq),
	.ordered	= true,
	.queue_bytes	= sizeof(struct tag_order),
	.flow_bytes	= sizeof(struct flashfq_flow),
	.flow_queue_bytes = sizeof(struct tag_lane),
	.init		= flashfq_init,
	.insert		= flashfq_insert,
	.dispatch	= flashfq_dispatch,
	.complete	= flashfq_complete,
	.requeue	= flashfq_requeue,
	.tick		= flashfq_tick,
	.tune		= flashfq_tune,
	COMPARATOR_HOOKS,
};
