// SPDX-License-Identifier: GPL-2.0
/*
 * iocost - the controller iocost of Linux: virtual time by a model of the drive
 *
 * The cost of a request is the drive's time for it, by a linear model.  There is
 * a cost for each 4 KiB, and one for each request.  The latter is that of a
 * random request if it begins more than 16 MiB from the end of the flow's last
 * one.  Six rates of the saturated drive give the costs.
 *
 *	rbps 4096 MB/s, rrandiops 500,000: 1 us for each 4 KiB, and 2 - 1 = 1 us
 *	for each random read.  A read of 64 KiB costs 17 us.
 *
 * The drive's virtual time goes on at vrate_pct of the clock.  Each flow has a
 * virtual time of its own, which a request moves on by its cost divided by the
 * flow's share.  A request may go if that does not outrun the drive's.  A flow
 * without a waiting request saves at most half of a period.
 *
 * At the end of a period, a flow gives a part of its share away if it used clearly
 * less and has nothing waiting.  It keeps 1.25 times its greatest use of the last
 * three periods, and 2 %.  The others divide the rest by their shares.  A flow that
 * runs short takes its share back at once.
 *
 * Departures.  vrate_pct is fixed, so the latencies and the waits for tags do not
 * change the rate.  The bench sets it so in a guest, too, with min = max = 95
 * (mqfair/bench/iocost.py).  Shares that were given away go to all flows, and
 * not to siblings first.  A merge costs nothing.  The kernel charges a cgroup as
 * soon as its bio comes; here each queue sends the oldest request that may go.
 *
 * Source: the head comment and the constants of block/blk-iocost.c, Linux 5.4.
 * The period is that of a drive without a latency target.  `mqfair sim` measures
 * the six rates first; the defaults are those of no drive.  The gifts of shares were
 * not compared with the code in full.  Tested by tests/sim/sim_run.py.
 */
#include "comparators.h"

enum {
	US		= 1000,
	SECOND		= 1000 * 1000 * 1000,
	PAGE		= 4096,
	RANDOM_PAGES	= 4096,		/* 16 MiB */
	PERIODS		= 3,		/* of which the greatest use counts */
	WHOLE		= 1 << COMPARATOR_SHIFT,
	MORE		= WHOLE / 50,	/* than 1.25 times the use */
	LEAST_DONATION	= WHOLE / 33,
};

struct iocost_params {
	u32 rbps_kib, rseqiops, rrandiops;	/* in this order */
	u32 wbps_kib, wseqiops, wrandiops;
	u32 vrate_pct, period_us;
};

struct iocost {
	struct engine engine;		/* first */
	u64 begin_ns, begin_vns;	/* of the present vrate */
	u64 now_ns;			/* of the last hook that knows the time */
	u64 period_end_ns;
	u64 lent;			/* factor of the shares of the others */
};

struct iocost_flow {
	u64 vns;			/* its virtual time */
	u64 keeps;			/* of the whole; 0: its share */
	u64 used_ns[PERIODS];		/* the present period first */
	u64 end_page;			/* of its last request */
};

static const struct iocost_params *params_of(const struct sched *s)
{
	return (const void *)s->params.own;
}

static u64 virtual_ns(struct sched *s, u64 now)
{
	struct iocost *ic = s->own;

	ic->now_ns = now;
	return ic->begin_vns +
	       (now - ic->begin_ns) * params_of(s)->vrate_pct / 100;
}

static u64 saved_ns(const struct sched *s)
{
	return (u64)params_of(s)->period_us * US / 2 * params_of(s)->vrate_pct /
	       100;
}

/* The drive's time for @io, in ns. */
static u64 cost_ns(const struct io *io)
{
	const struct iocost_params *p = params_of(io->flow->sched);
	const struct iocost_flow *f = flow_own(io->flow);
	const u32 *rate = io->op == IO_READ ? &p->rbps_kib : &p->wbps_kib;
	u64 first = io_first_page(io);
	u64 away = first > f->end_page ? first - f->end_page :
					 f->end_page - first;
	u64 page_ns = (u64)SECOND * PAGE / 1024 / rate[0];
	u64 one_ns = SECOND / rate[away > RANDOM_PAGES ? 2 : 1];

	if (!io_op_transfers(io->op))
		return 0;
	return (one_ns > page_ns ? one_ns - page_ns : 0) +
	       page_ns * max(io->bytes, (u32)PAGE) / PAGE;
}

/* The part of the drive that @f may use, in units of 2^-COMPARATOR_SHIFT. */
static u64 part_of(struct flow *f)
{
	const struct iocost *ic = f->sched->own;
	const struct iocost_flow *own = flow_own(f);
	u64 share = comparator_share(f);

	if (own->keeps)
		return own->keeps;
	return max((share * ic->lent) >> COMPARATOR_SHIFT, (u64)1);
}

/* Sets the factor by which the others' shares grow. */
static void divide_rest(struct sched *s)
{
	u64 kept = 0, given = 0;
	struct iocost *ic = s->own;
	struct flow *f;

	for (f = s->active; f; f = f->next_active) {
		const struct iocost_flow *own = flow_own(f);

		if (!own->keeps)
			continue;
		kept += own->keeps;
		given += comparator_share(f);
	}
	ic->lent = given < WHOLE ? ((u64)(WHOLE - kept) << COMPARATOR_SHIFT) /
					   (WHOLE - given) :
				   WHOLE;
}

/* A donor that runs short takes its share back. */
static void take_back(struct flow *f)
{
	struct iocost_flow *own = flow_own(f);

	if (!own->keeps)
		return;
	own->keeps = 0;
	divide_rest(f->sched);
}

/* The time at which @io, the first of its flow in a queue, may go. */
static u64 due_vns(const struct io *io)
{
	const struct iocost_flow *own = flow_own(io->flow);

	return own->vns + (cost_ns(io) << COMPARATOR_SHIFT) / part_of(io->flow);
}

/*
 * Returns the oldest io in @q that may go at @vns, or the one that may go first if
 * none may yet; NULL: no lane has an io.
 */
static const struct io *queue_first(const struct queue *q, u64 vns)
{
	const struct io *oldest = NULL, *first = NULL;
	struct flow *f;

	comparator_each(q->sched, f)
	{
		const struct io *io = comparator_head(q, f);

		if (!io)
			continue;
		if (due_vns(io) > vns)
			take_back(f);
		if (!first || due_vns(io) < due_vns(first))
			first = io;
		if (due_vns(io) <= vns &&
		    (!oldest || io->insert_ns < oldest->insert_ns))
			oldest = io;
	}
	return oldest ?: first;
}

static void ask_for(const struct sched *s, u64 vns, u64 now, struct wake *wake)
{
	const struct iocost *ic = s->own;
	u64 at_ns = ic->begin_ns +
		    ((vns - ic->begin_vns) * 100 + params_of(s)->vrate_pct -
		     1) / params_of(s)->vrate_pct;

	wake_at(wake, max(at_ns, now + 1));
}

static struct lane *iocost_next(struct queue *q)
{
	const struct iocost *ic = q->sched->own;
	const struct io *io = queue_first(q, virtual_ns(q->sched, ic->now_ns));

	return io ? flow_queue_own(io->flow, q->index) : NULL;
}

static bool iocost_may_go(struct queue *q, struct lane *lane, u64 now,
			  struct wake *wake)
{
	u64 due = due_vns(lane->fifo.head);

	if (due <= virtual_ns(q->sched, now))
		return true;
	ask_for(q->sched, due, now, wake);
	return false;
}

static void flow_pay(const struct io *io)
{
	struct iocost_flow *own = flow_own(io->flow);
	u64 ns = cost_ns(io);

	own->vns += (ns << COMPARATOR_SHIFT) / part_of(io->flow);
	own->used_ns[0] += ns;
	own->end_page = io_first_page(io) + (io->bytes + PAGE - 1) / PAGE;
}

static void iocost_insert(struct queue *q, struct io *io, u64 now,
			  struct wake *wake)
{
	u64 least = virtual_ns(q->sched, now) - saved_ns(q->sched);
	struct iocost_flow *own = flow_own(io->flow);

	if (!atomic64_read(&io->flow->queued))
		own->vns = max(own->vns, least);
	engine_insert(q, io, now, wake);
}

/* A request that passes or drains costs its flow nothing. */
static enum dispatch_result iocost_dispatch(struct queue *q, u64 now,
					    struct io **out, struct wake *wake)
{
	struct iocost *ic = q->sched->own;
	enum dispatch_result why;

	ic->now_ns = now;
	why = engine_dispatch(q, now, out, wake);
	if (why == DISPATCH_IO && !((*out)->flags & IO_URGENT) && !q->drain)
		flow_pay(*out);
	return why;
}

/* Makes @f a donor if it used clearly less than its share. */
static void donate(struct flow *f, u64 period_vns)
{
	struct iocost_flow *own = flow_own(f);
	u64 used_ns =
		max(own->used_ns[0], max(own->used_ns[1], own->used_ns[2]));
	u64 keeps = ((used_ns << COMPARATOR_SHIFT) / period_vns) * 5 / 4 + MORE;

	own->keeps = 0;
	if (!atomic64_read(&f->queued) &&
	    keeps + LEAST_DONATION < comparator_share(f))
		own->keeps = keeps;
	own->used_ns[2] = own->used_ns[1];
	own->used_ns[1] = own->used_ns[0];
	own->used_ns[0] = 0;
}

static void end_period(struct sched *s, u64 now)
{
	u64 period_ns = (u64)params_of(s)->period_us * US;
	u64 period_vns = period_ns * params_of(s)->vrate_pct / 100;
	u64 least = virtual_ns(s, now) - saved_ns(s);
	struct iocost *ic = s->own;
	struct flow *f;

	ic->period_end_ns = now + period_ns;
	for (f = s->active; f; f = f->next_active) {
		struct iocost_flow *own = flow_own(f);

		donate(f, period_vns);
		if (!atomic64_read(&f->queued))
			own->vns = max(own->vns, least);
	}
	divide_rest(s);
}

static void iocost_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct iocost *ic = s->own;
	u32 i;

	engine_tick(s, now, wake);
	if (now >= ic->period_end_ns)
		end_period(s, now);
	if (s->active)
		wake_at(wake, ic->period_end_ns);
	for (i = 0; i < s->nr_queues; i++) {
		const struct io *io;

		if (s->queue[i]->state != DISPATCH_NO_BUDGET)
			continue;
		io = queue_first(s->queue[i], virtual_ns(s, now));
		if (!io)
			continue;
		if (due_vns(io) <= virtual_ns(s, now))
			sched_wake(s, i, wake);
		else
			ask_for(s, due_vns(io), now, wake);
	}
}

/* Virtual time goes on from here at the new rate. */
static void iocost_tune(struct sched *s, const struct sched_params *p,
			struct wake *wake)
{
	struct iocost *ic = s->own;

	if (!p)
		return;
	ic->begin_vns = virtual_ns(s, ic->now_ns);
	ic->begin_ns = ic->now_ns;
	engine_tune(s, p, wake);
}

static const struct engine_ops iocost_lanes = {
	.join	= comparator_join,
	.next	= iocost_next,
	.pay	= comparator_pay,
	.leave	= comparator_join,
	.may_go	= iocost_may_go,
};

static int iocost_init(struct sched *s)
{
	struct iocost *ic = s->own;

	/* No time that is saved is before 0. */
	ic->begin_vns = SECOND;
	ic->lent = WHOLE;
	return engine_init(s, &iocost_lanes);
}

#define RATE(name, initial)						\
	{ TUNABLE_U32(#name, struct iocost_params, name, 1, 0xffffffff, \
		      1, initial) }

static const struct tunable iocost_tunables[] = {
	RATE(rbps_kib, 1000000),
	RATE(rseqiops, 250000),
	RATE(rrandiops, 250000),
	RATE(wbps_kib, 1000000),
	RATE(wseqiops, 250000),
	RATE(wrandiops, 250000),
	{ TUNABLE_U32("vrate_pct", struct iocost_params, vrate_pct, 1, 10000, 1,
		      95) },
	{ TUNABLE_U32("period_us", struct iocost_params, period_us, 100,
		      1000000, 1, 1000) },
	{ }
};

const struct sched_ops iocost_ops = {
	.name			= "iocost",
	.tunables		= iocost_tunables,
	.params_bytes		= sizeof(struct iocost_params),
	.bytes			= sizeof(struct iocost),
	.flow_bytes		= sizeof(struct iocost_flow),
	.flow_queue_bytes	= sizeof(struct lane),
	.init			= iocost_init,
	.insert			= iocost_insert,
	.dispatch		= iocost_dispatch,
	.complete		= engine_complete,
	.requeue		= engine_requeue,
	.tick			= iocost_tick,
	.tune			= iocost_tune,
	COMPARATOR_HOOKS,
};
