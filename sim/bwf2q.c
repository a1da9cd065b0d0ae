// SPDX-License-Identifier: GPL-2.0
/*
 * bwf2q - B-WF2Q+: one flow in service at a time, for a budget of bytes
 *
 * A flow with waiting requests has a start tag, which its service so far gives,
 * and a finish tag: the start tag plus the budget divided by the flow's share.
 * Virtual time has reached the start tags of some flows.  The one of these with
 * the least finish tag is the next in service.  Only its requests are
 * dispatched, until one of these is true:
 *
 *   - it has got the budget;
 *   - it has been in service for timeout_ms;
 *   - it has no request left, and has sent none within idle_us of the last
 *     completion.
 *
 * If its requests are in a queue that the driver has stopped, all others wait.
 * BFQ has a single queue and waits in the same way.
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
#include "comparator.h"
#include "none.h"

enum {
	MS	= 1000 * 1000,
	US	= 1000,
};

struct bwf2q_params {
	u32 budget_kb, timeout_ms, idle_us;
};

struct bwf2q {
	vtime_t now;			/* virtual time */
	struct flow *service;		/* the flow in service, or NULL */
	u64 got;			/* its bytes since it is */
	u64 end_ns;			/* of its timeout */
};

struct bwf2q_flow {
	u64 pos;			/* of the next byte that it gets */
	u32 out;			/* requests in the driver */
	u64 idle_end_ns;		/* it may send a request until then */
};

static const struct bwf2q_params *params_of(const struct sched *s)
{
	return (const void *)s->params.own;
}

static u64 budget(const struct sched *s)
{
	return (u64)params_of(s)->budget_kb * 1024;
}

static struct comparator_lane *lane_of(const struct queue *q,
				       const struct flow *f)
{
	struct comparator_lane *l = comparator_lanes(q);

	while (l && l->lane.flow != f)
		l = l->next;
	return l;
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
	struct comparator_lane *l;
	struct flow *least = NULL;
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		for (l = comparator_lanes(s->queue[i]); l; l = l->next) {
			struct flow *f = l->lane.flow;

			if (vtime_before(latest, tag_after(f, 0)))
				continue;
			if (!least || vtime_before(tag_after(f, more),
						   tag_after(least, more)))
				least = f;
		}
	return least;
}

/* Returns the flow with the least start tag, or NULL. */
static struct flow *least_start(const struct sched *s)
{
	const struct bwf2q *b = s->own;

	return least_flow(s, 0, b->now + ((vtime_t)1 << 62));
}

static struct flow *next_in_service(struct sched *s)
{
	struct flow *least = least_start(s);
	struct bwf2q *b = s->own;

	if (!least)
		return NULL;
	b->now = vtime_max(b->now, tag_after(least, 0));
	return least_flow(s, budget(s), b->now);
}

/* Does the flow in service stay so, though it has no request that waits? */
static bool waits_for(const struct sched *s, struct flow *f, u64 now)
{
	const struct bwf2q_flow *bf = flow_own(f);

	return params_of(s)->idle_us && (bf->out || now < bf->idle_end_ns);
}

static bool ends_service(const struct sched *s, u64 now)
{
	const struct bwf2q *b = s->own;

	if (b->got >= budget(s) || now >= b->end_ns)
		return true;
	return !atomic64_read(&b->service->queued) &&
	       !waits_for(s, b->service, now);
}

/* Chooses the flow in service, and wakes the queues that have requests of it. */
static void bwf2q_turn(struct sched *s, u64 now, struct wake *wake)
{
	struct bwf2q *b = s->own;
	u32 i;

	if (b->service && ends_service(s, now))
		b->service = NULL;
	if (!b->service) {
		b->service = next_in_service(s);
		b->got = 0;
		b->end_ns = now + (u64)params_of(s)->timeout_ms * MS;
	}
	if (!b->service)
		return;
	for (i = 0; i < s->nr_queues; i++)
		if (s->queue[i]->state == DISPATCH_NO_BUDGET &&
		    lane_of(s->queue[i], b->service))
			sched_wake(s, i, wake);
	if (!atomic64_read(&b->service->queued) && least_start(s)) {
		const struct bwf2q_flow *bf = flow_own(b->service);

		wake_at(wake,
			bf->out ? b->end_ns : min(b->end_ns, bf->idle_end_ns));
	}
}

static void bwf2q_insert(struct queue *q, struct io *io, u64 now,
			 struct wake *wake)
{
	bool backlogged = atomic64_read(&io->flow->queued);
	struct bwf2q_flow *bf = flow_own(io->flow);
	const struct bwf2q *b = q->sched->own;

	comparator_insert(q, io, b->now, now, wake);
	if (!backlogged)
		bf->pos = io->pos;
}

static enum dispatch_result bwf2q_dispatch(struct queue *q, u64 now,
					   struct io **out, struct wake *wake)
{
	struct comparator_lane *lane;
	struct bwf2q_flow *bf;
	struct sched *s = q->sched;
	struct bwf2q *b = s->own;
	bool passes;

	queue_looked_at(q);
	bwf2q_turn(s, now, wake);
	passes = q->urgent.head || (comparator_lanes(q) && s->drain);
	if (!passes && !comparator_lanes(q))
		return comparator_give_up(q, DISPATCH_EMPTY);
	lane = passes ? comparator_lanes(q) : lane_of(q, b->service);
	if (!passes && !lane)
		return comparator_give_up(q, DISPATCH_NO_BUDGET);
	*out = comparator_take(q, lane, now);
	bf = flow_own((*out)->flow);
	bf->out++;
	if (!passes) {
		bf->pos += (*out)->cost;
		b->got += (*out)->cost;
		b->now += (*out)->cost;
		bwf2q_turn(s, now, wake);
	}
	return DISPATCH_IO;
}

static void bwf2q_block(struct queue *q, struct wake *wake)
{
	(void)q;
	(void)wake;
}

static void bwf2q_requeue(struct io *io, struct wake *wake)
{
	struct bwf2q_flow *bf = flow_own(io->flow);

	(void)wake;
	io_returned(io);
	bf->out--;
}

static void bwf2q_complete(struct io *io, u64 now, struct wake *wake)
{
	struct sched *s = io->queue->sched;
	struct bwf2q_flow *bf = flow_own(io->flow);

	bwf2q_requeue(io, wake);
	bf->idle_end_ns = now + (u64)params_of(s)->idle_us * US;
	bwf2q_turn(s, now, wake);
	queue_completed(io, now, wake);
}

static void bwf2q_tick(struct sched *s, u64 now, struct wake *wake)
{
	none_tick(s, now, wake);
	bwf2q_turn(s, now, wake);
}

/* New values hold for the present flow in service, too. */
static void bwf2q_tune(struct sched *s, const struct sched_params *p,
		       struct wake *wake)
{
	(void)wake;
	if (p)
		s->params = *p;
}

static const struct tunable bwf2q_tunables[] = {
	{ TUNABLE_U32("budget_kb", struct bwf2q_params, budget_kb, 1, 1000000,
		      1, 8192) },
	{ TUNABLE_U32("timeout_ms", struct bwf2q_params, timeout_ms, 1, 100000,
		      1, 125) },
	{ TUNABLE_U32("idle_us", struct bwf2q_params, idle_us, 0, 1000000, 1,
		      8000) },
	{ TUNABLE_COST_OF(COST_BYTES) },
	{ }
};

const struct sched_ops bwf2q_ops = {
	.name			= "bwf2q",
	.tunables		= bwf2q_tunables,
	.params_bytes		= sizeof(struct bwf2q_params),
	.bytes			= sizeof(struct bwf2q),
	.queue_bytes		= sizeof(struct comparator_queue),
	.flow_bytes		= sizeof(struct bwf2q_flow),
	.flow_queue_bytes	= sizeof(struct comparator_lane),
	.init			= none_init,
	.exit			= none_exit,
	.insert			= bwf2q_insert,
	.merge			= comparator_merge,
	.dispatch		= bwf2q_dispatch,
	.block			= bwf2q_block,
	.complete		= bwf2q_complete,
	.requeue		= bwf2q_requeue,
	.tick			= bwf2q_tick,
	.tune			= bwf2q_tune,
	.flow_init		= engine_flow_init,
};
