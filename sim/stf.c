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
#include "order.h"

enum {
	MS		= 1000 * 1000,
	ONE		= 1000,		/* a slowdown of 1 */
	SLOWDOWN_MOST	= 1000 * ONE,
};

struct stf_params {
	u32 alpha_pct, interval_ms;
};

struct stf {
	struct order order;
	u64 halve_ns;			/* end of the interval */
	bool unfair;			/* more than alpha_pct allows */
};

struct stf_flow {
	struct order_flow order;
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
	return (u32)(ONE + (plain - ONE) * f->group.weight / WEIGHT_DEFAULT);
}

static bool stf_before(const struct comparator_lane *a,
		       const struct comparator_lane *b)
{
	const struct stf_flow *fa = flow_own(a->lane.flow);
	const struct stf_flow *fb = flow_own(b->lane.flow);
	const struct stf *st = a->lane.flow->sched->own;

	if (st->unfair && fa->slowdown != fb->slowdown)
		return fa->slowdown > fb->slowdown;
	return a->lane.fifo.head->insert_ns < b->lane.fifo.head->insert_ns;
}

static void flow_pass(struct flow *f, u64 passed_ns, bool halves)
{
	const struct stf *st = f->sched->own;
	struct stf_flow *sf = flow_own(f);
	bool waits = atomic64_read(&f->queued) > 0;

	if (waits || sf->order.out) {
		sf->stall_ns += passed_ns;
		sf->alone_ns +=
			waits && st->order.out ?
				passed_ns * sf->order.out / st->order.out :
				passed_ns;
	}
	if (halves) {
		sf->stall_ns /= 2;
		sf->alone_ns /= 2;
	}
	sf->slowdown = slowdown_of(f);
}

/* Counts the time, and compares the slowdowns of the flows with requests. */
static void stf_pass(struct sched *s, u64 passed_ns)
{
	u32 least = SLOWDOWN_MOST, most = ONE;
	struct stf *st = s->own;
	bool halves = st->order.now_ns >= st->halve_ns;
	struct flow *f;

	for (f = s->active; f; f = f->next_active) {
		const struct stf_flow *sf = flow_own(f);

		flow_pass(f, passed_ns, halves);
		if (!sf->order.out && !atomic64_read(&f->queued))
			continue;
		least = min(least, sf->slowdown);
		most = max(most, sf->slowdown);
	}
	if (halves)
		st->halve_ns =
			st->order.now_ns + (u64)params_of(s)->interval_ms * MS;
	st->unfair = (u64)most * 100 > (u64)least * params_of(s)->alpha_pct;
}

static const struct order_rule rule = {
	.before		= stf_before,
	.pass		= stf_pass,
};

static int stf_init(struct sched *s)
{
	struct stf *st = s->own;

	st->order.rule = &rule;
	return 0;
}

static void stf_insert(struct queue *q, struct io *io, u64 now,
		       struct wake *wake)
{
	order_pass(q->sched, now);
	comparator_insert(q, io, 0, now, wake);
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
	.init		= stf_init,
	.insert		= stf_insert,
	ORDER_HOOKS,
};
