// SPDX-License-Identifier: GPL-2.0
/*
 * stf - stall-time fair: the flow that is slowed down most goes first
 *
 * The slowdown of a flow is its stall time beside the others, divided by its
 * stall time alone.  While the greatest slowdown of any flow is at most
 * alpha_pct percent of the least, requests go in the order of their arrival.
 * Otherwise a request of the flow with the greatest slowdown goes first [P].
 *
 *	A reader waits 900 us for a read that takes 100 us: its slowdown is 9.
 *	The others have 1.5 each.  9 / 1.5 is above 1.1, so the reader is first.
 *
 * The paper is about memory, and the paper of ifq compares with the same idea
 * without a word on its form for a drive.  Our reading [R]:
 *   - A flow stalls while any of its requests is outstanding.
 *   - While none of them waits, the drive has all: the flow would stall alone, too.
 *   - While one waits, n of the N requests in the drive are the flow's own.  Alone
 *     it would be N / n times as fast, so n / N of the time counts as alone.
 *   - A slowdown of more than 1000 counts as 1000.
 *   - Both times are halved every interval_ms, where the paper clears them.
 *   - A weight w raises a slowdown S to 1 + (S - 1) * w / 100, as the paper's
 *     weights do.  So equal weights of 100 change nothing.
 *
 * Nothing here promises shares.  Two flows that always have requests get equal
 * numbers of places in the drive, and not equal bytes.
 *
 * Source: Mutlu, Moscibroda, Stall-Time Fair Memory Access Scheduling for Chip
 * Multiprocessors, MICRO 2007, which doc/ifq.md's paper names as STF.  Its abstract
 * was read; alpha, the interval and the form of the weights were not compared with
 * its text.  Tested by tests/sim/sim_run.py.
 */
#include "comparators.h"

enum {
	MS		= 1000 * 1000,
	ONE		= 1000,		/* a slowdown of 1 */
	SLOWDOWN_MOST	= 1000 * ONE,
	/* A tag has the slowdown above the time of arrival, of 73 minutes at most. */
	ARRIVAL_BITS	= 42,
};

struct stf_params {
	u32 alpha_pct, interval_ms;
};

struct stf {
	struct engine engine;		/* first */
	u64 now_ns;			/* of the last hook that knows the time */
	u32 out;			/* requests in the drive */
	u64 halve_ns;			/* end of the interval */
	bool unfair;			/* more than alpha_pct allows */
};

struct stf_flow {
	u32 out;			/* requests in the drive */
	u64 stall_ns, alone_ns;
	u32 slowdown;			/* in ONE, weighted */
};

static const struct stf_params *params_of(const struct sched *s)
{
	return (const void *)s->params.own;
}

static u32 slowdown_of(const struct flow *f)
{
	const struct stf_flow *sf = flow_own(f);
	u64 plain = ONE * sf->stall_ns / max(sf->alone_ns, (u64)1);

	plain = clamp(plain, (u64)ONE, (u64)SLOWDOWN_MOST);
	plain = ONE + (plain - ONE) * f->group.weight / WEIGHT_DEFAULT;
	return (u32)min(plain, (u64)SLOWDOWN_MOST);
}

/* The place of @io: by the slowdown of its flow if that is unfair, by arrival then. */
static vtime_t tag_of(const struct io *io)
{
	const struct stf_flow *sf = flow_own(io->flow);
	const struct stf *st = io->flow->sched->own;
	vtime_t rank = st->unfair ? SLOWDOWN_MOST - sf->slowdown : 0;

	return (rank << ARRIVAL_BITS) + io->insert_ns;
}

static struct lane *stf_next(struct queue *q)
{
	const struct io *first = NULL;
	struct flow *f;

	comparator_each(q->sched, f)
	{
		const struct io *io = comparator_head(q, f);

		if (io && (!first || tag_of(io) < tag_of(first)))
			first = io;
	}
	return first ? flow_queue_own(first->flow, q->index) : NULL;
}

static vtime_t stf_tag(struct queue *q)
{
	const struct lane *lane = stf_next(q);

	return lane ? tag_of(lane->fifo.head) : VTIME_NONE;
}

static void flow_pass(struct flow *f, u64 passed_ns, bool halves)
{
	const struct stf *st = f->sched->own;
	struct stf_flow *sf = flow_own(f);
	bool waits = atomic64_read(&f->queued) > 0;

	if (waits || sf->out) {
		sf->stall_ns += passed_ns;
		sf->alone_ns += waits && st->out ?
					passed_ns * sf->out / st->out :
					passed_ns;
	}
	if (halves) {
		sf->stall_ns /= 2;
		sf->alone_ns /= 2;
	}
	sf->slowdown = slowdown_of(f);
}

/* The queues that have published a tag publish the present one. */
static void publish_all(struct sched *s)
{
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		if (s->queue[i]->head_tag != VTIME_NONE)
			s->queue[i]->head_tag = stf_tag(s->queue[i]);
}

/* Counts the time until @now, and compares the slowdowns of the flows with requests. */
static void stf_pass(struct sched *s, u64 now)
{
	u32 least = SLOWDOWN_MOST, most = ONE;
	struct stf *st = s->own;
	u64 passed_ns = now - st->now_ns;
	bool halves = now >= st->halve_ns;
	struct flow *f;

	if (!passed_ns)
		return;
	st->now_ns = now;
	for (f = s->active; f; f = f->next_active) {
		const struct stf_flow *sf = flow_own(f);

		flow_pass(f, passed_ns, halves);
		if (!sf->out && !atomic64_read(&f->queued))
			continue;
		least = min(least, sf->slowdown);
		most = max(most, sf->slowdown);
	}
	if (halves)
		st->halve_ns = now + (u64)params_of(s)->interval_ms * MS;
	st->unfair = (u64)most * 100 > (u64)least * params_of(s)->alpha_pct;
	publish_all(s);
}

static void stf_insert(struct queue *q, struct io *io, u64 now,
		       struct wake *wake)
{
	stf_pass(q->sched, now);
	engine_insert(q, io, now, wake);
}

static void count_out(struct io *io, s32 by)
{
	struct stf_flow *sf = flow_own(io->flow);
	struct stf *st = io->flow->sched->own;

	sf->out += (u32)by;
	st->out += (u32)by;
}

static enum dispatch_result stf_dispatch(struct queue *q, u64 now,
					 struct io **out, struct wake *wake)
{
	enum dispatch_result why;

	stf_pass(q->sched, now);
	why = engine_dispatch(q, now, out, wake);
	if (why == DISPATCH_IO)
		count_out(*out, 1);
	return why;
}

static void stf_requeue(struct io *io, struct wake *wake)
{
	if (io->flags & IO_OUT)
		count_out(io, -1);
	engine_requeue(io, wake);
	engine_pass_turn(io->queue->sched, wake);
}

static void stf_complete(struct io *io, u64 now, struct wake *wake)
{
	stf_pass(io->queue->sched, now);
	if (io->flags & IO_OUT)
		count_out(io, -1);
	engine_complete(io, now, wake);
	engine_pass_turn(io->queue->sched, wake);
}

static void stf_tick(struct sched *s, u64 now, struct wake *wake)
{
	stf_pass(s, now);
	engine_tick(s, now, wake);
	engine_pass_turn(s, wake);
}

static const struct engine_ops stf_lanes = {
	.join	= comparator_join,
	.next	= stf_next,
	.pay	= comparator_pay,
	.leave	= comparator_join,
	.tag	= stf_tag,
};

static int stf_init(struct sched *s)
{
	return engine_init(s, &stf_lanes);
}

static const struct tunable stf_tunables[] = {
	{ TUNABLE_DEPTH(64) },
	{ TUNABLE_U32("alpha_pct", struct stf_params, alpha_pct, 100, 100000, 1,
		      110) },
	{ TUNABLE_U32("interval_ms", struct stf_params, interval_ms, 1, 1000000,
		      1, 1000) },
	{ }
};

const struct sched_ops stf_ops = {
	.name		= "stf",
	.tunables	= stf_tunables,
	.params_bytes	= sizeof(struct stf_params),
	.bytes		= sizeof(struct stf),
	.flow_bytes	= sizeof(struct stf_flow),
	.ordered	= true,
	.flow_queue_bytes = sizeof(struct lane),
	.init		= stf_init,
	.insert		= stf_insert,
	.dispatch	= stf_dispatch,
	.complete	= stf_complete,
	.requeue	= stf_requeue,
	.tick		= stf_tick,
	.tune		= engine_tune,
	COMPARATOR_HOOKS,
};
