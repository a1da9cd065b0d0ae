// SPDX-License-Identifier: GPL-2.0
/*
 * bwf2q - B-WF2Q+: one flow in service at a time, for a budget of bytes
 *
 * A flow with waiting requests has a start tag, which its service so far gives,
 * and a finish tag: the start tag plus the budget divided by the flow's share.
 * Virtual time has reached the start tags of some flows.  The one of these with
 * the least finish tag is the next in service (service.h).  Its service ends when
 * it has got the budget, after timeout_ms, or when it has sent no request for
 * idle_us.
 *
 * Virtual time goes on by the bytes that are served.  A flow pays for the bytes
 * that it got, and not for its whole budget.
 *
 *	Shares 3/4 and 1/4, budget 4096 KiB.  Both start at 0, and finish at
 *	5461 and 16384.  The first is served, and starts at 5461 then.  Virtual
 *	time is 4096, so only the second may go.
 *
 * With one flow in service the drive has no more requests than that flow.  With
 * idle_us it waits while the flow thinks.  Both cost throughput on a drive with
 * many planes, which is the reason for schedulers that mix flows.
 *
 * This is the engine of BFQ without its heuristics: budgets do not adapt, and
 * no flow has its weight raised.
 *
 * Source: Valente, Checconi, High Throughput Disk Scheduling with Fair
 * Bandwidth Distribution, IEEE Transactions on Computers 59(9), 2010.  The
 * defaults are those of Linux 6.1 (block/bfq-iosched.c).  Tested by
 * tests/sim/sim_run.py.
 */
#include "service.h"

enum {
	MS	= 1000 * 1000,
};

struct bwf2q_params {
	struct service_params service;
	u32 budget_kb, timeout_ms;
};

struct bwf2q {
	struct service service;
	vtime_t now;			/* virtual time */
	u64 got;			/* bytes of the flow in service since it is */
};

struct bwf2q_flow {
	struct service_flow service;
	u64 pos;			/* of the next byte that it gets */
};

static const struct bwf2q_params *params_of(const struct sched *s)
{
	return (const void *)s->params.own;
}

static u64 budget(const struct sched *s)
{
	return (u64)params_of(s)->budget_kb * 1024;
}

/* The tag that @f has after @more bytes of service from now on. */
static vtime_t tag_after(const struct flow *f, u64 more)
{
	const struct bwf2q_flow *bf = flow_own(f);
	u64 epoch;

	return flow_tag(f, bf->pos + more, &epoch);
}

/*
 * Returns the flow with the least tag after @more bytes, or NULL.  Only flows
 * count that have a request waiting, and a start tag of at most @latest.
 */
static struct flow *least_flow(const struct sched *s, u64 more, vtime_t latest)
{
	struct flow *f, *least = NULL;

	comparator_each(s, f)
	{
		if (vtime_before(latest, tag_after(f, 0)))
			continue;
		if (!least ||
		    vtime_before(tag_after(f, more), tag_after(least, more)))
			least = f;
	}
	return least;
}

static struct flow *bwf2q_next(struct sched *s, u64 now, u64 *time_ns)
{
	struct bwf2q *b = s->own;
	struct flow *least = least_flow(s, 0, b->now + ((vtime_t)1 << 62));

	(void)now;
	b->got = 0;
	*time_ns = (u64)params_of(s)->timeout_ms * MS;
	if (!least)
		return NULL;
	b->now = vtime_max(b->now, tag_after(least, 0));
	return least_flow(s, budget(s), b->now);
}

static void bwf2q_serve(struct sched *s, const struct io *io)
{
	struct bwf2q_flow *bf = flow_own(io->flow);
	struct bwf2q *b = s->own;

	bf->pos += io->cost;
	b->got += io->cost;
	b->now += io->cost;
}

static bool bwf2q_is_over(const struct sched *s)
{
	const struct bwf2q *b = s->own;

	return b->got >= budget(s);
}

static const struct service_rule rule = {
	.next		= bwf2q_next,
	.serve		= bwf2q_serve,
	.is_over	= bwf2q_is_over,
};

/* A flow that had nothing waiting goes on where its request begins. */
static void bwf2q_join(struct queue *q, struct lane *lane)
{
	struct bwf2q_flow *bf = flow_own(lane->flow);

	(void)q;
	if (atomic64_read(&lane->flow->queued) == 1)
		bf->pos = lane->fifo.head->pos;
}

static vtime_t bwf2q_start(struct flow *f)
{
	const struct bwf2q *b = f->sched->own;

	return b->now;
}

static const struct engine_ops bwf2q_lanes = {
	.join	= bwf2q_join,
	.start	= bwf2q_start,
	SERVICE_LANES,
};

static int bwf2q_init(struct sched *s)
{
	return service_init(s, &rule, &bwf2q_lanes);
}

static const struct tunable bwf2q_tunables[] = {
	{ TUNABLE_U32("budget_kb", struct bwf2q_params, budget_kb, 1, 1000000,
		      1, 8192) },
	{ TUNABLE_U32("timeout_ms", struct bwf2q_params, timeout_ms, 1, 100000,
		      1, 125) },
	{ TUNABLE_SERVICE_IDLE },
	{ TUNABLE_COST_OF(COST_BYTES) },
	{ }
};

const struct sched_ops bwf2q_ops = {
	.name		= "bwf2q",
	.tunables	= bwf2q_tunables,
	.params_bytes	= sizeof(struct bwf2q_params),
	.bytes		= sizeof(struct bwf2q),
	.flow_bytes	= sizeof(struct bwf2q_flow),
	.init		= bwf2q_init,
	SERVICE_HOOKS,
};
