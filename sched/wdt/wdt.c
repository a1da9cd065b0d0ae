// SPDX-License-Identifier: GPL-2.0
/*
 * wdt - weight-based dynamic throttling
 *
 * The problem.  Static limits (io.max) divide a drive by weight only if every
 * container always wants its part.  But demand fluctuates, and the part that a
 * container leaves is lost.  And the layer that enforces the limits takes one
 * lock of the device for every request of every container.
 *
 * The idea (the paper).  Each container gets *credits* in proportion to its
 * weight, and they are replenished every interval.  A container without credit
 * is throttled.  The total follows the demand: the amount that the containers
 * are expected to ask for, four times out of five.  So the drive does not idle,
 * and no more is promised than it can serve.  Each container has a lock of its
 * own [P].
 *
 * Example.  Interval 100 ms, a drive of 300 MB/s, weights 100 and 500, and
 * both containers want all that they can get.  In the last intervals the drive
 * did 30 MB each.  The total is 30 MB, and the containers get 5 and 25.  Both
 * use the drive alike until the first has used its 5 MB, after 33 ms.  The
 * other one has the drive to itself for the remaining 67 ms.  If the drive
 * turns out to be faster, both are exhausted after 90 ms.  The interval ends
 * there, and the next total is 30 / 0.9 = 33 MB.
 *
 * The total
 *
 *   The demand of a container in an interval is the amount that it was served
 *   and the amount that it has waiting at the end [R].  If the interval was cut
 *   short, the served part is scaled to a full one.  The expected demand is the
 *   80th percentile of a normal distribution, fitted to the last `history`
 *   demands [P]: demand.h.
 *	total=sum    the sum of the expected demands
 *	total=meet   the least total of which the share of each container meets
 *		     its expected demand: max(demand / share)
 *   Both are limited to the measured service of the drive in an interval [R].
 *   At saturation all containers want more than there is.  Without the limit
 *   the total would never throttle any of them, and each would be served by its
 *   number of requests.  A drive is saturated if requests wait at the end.
 *
 * Our additions, switched by work_conserving [R]
 *   - The paper replenishes by the clock alone.  Here an interval also ends
 *     when all containers are exhausted, and it does not wait for one that
 *     leaves the drive idle (budget.h).  So shares follow a change of demand
 *     at the next refill, and not when the history has forgotten the past.
 *   - Intervals shorter than a quarter are added up until they make a sample,
 *     for the requests that an empty drive takes at once do not show its rate.
 *     Until the first sample the total doubles.
 *
 * Slots.  The paper leaves the order in the drive to the drive.  With `depth`
 * slots, a container with few requests does not queue behind hundreds of those
 * containers that were just replenished [R].
 *
 * caps_mbps=N: the paper's first attempt.  In an interval each container may
 * use N * w / (sum of the weights of all its siblings, with and without I/O),
 * level by level.  Nothing is redistributed or predicted.  The root cgroup,
 * which has no setting, has no cap.
 *
 * single_lock=1: the paper's WDT-, one lock for all containers.  All else is
 * the same code, so the difference is the cost of the lock.
 *
 * Invariants: those of budget.h.  Wakes: budget.h for a container without
 * credit, slots.h for a queue without slot.
 *
 * Limits.  Between refills there is no order: while others still use their
 * credits, a container waits up to an interval for its next ones.
 *
 * Source: Ahn, La, Kim, Improving I/O Resource Sharing of Linux Cgroup for
 * NVMe SSDs on Multi-core Systems, USENIX HotStorage 2016.
 * Tested by tests/unit/{budget,budget_rounds,demand}.c, tests/sim/wdt.c,
 * tests/mt/{budget,replay_budget}.c.
 */
#include "wdt.h"
#include "core/policies.h"

enum {
	/* A first guess, soon doubled: 4 MiB. */
	FIRST_TOTAL = 1 << 22,
	/* Part of an interval that is long enough to be a sample. */
	SAMPLE_SHARE = 4,
	BYTES_PER_MB = 1000 * 1000,
	NS_PER_S = 1000 * 1000 * 1000,
};

static struct wdt *wdt_of(const struct sched *s)
{
	return s->own;
}

static struct wdt_flow *wdt_flow_of(const struct flow *f)
{
	return flow_own(f);
}

static u64 interval_ns(const struct wdt *w)
{
	return READ_ONCE(budget_params(&w->budget.sched->params)->period_ns);
}

/* ----------------------------------------------------------------- demand */

/* The cost of the requests that were charged and not yet paid. */
static u64 waiting(const struct flow *f)
{
	const struct budget_flow *bf = budget_flow_of(f);
	u64 spent = (u64)(bf->granted - bf->mark);
	u64 pos = (u64)atomic64_read(&f->pos);

	return pos - min(pos, spent);
}

/* Adds up the rounds.  True when they are long enough for a sample. */
static bool sample_is_due(struct wdt *w)
{
	struct flow_walk walk;
	struct flow *f;

	for_each_active_flow(f, &walk, w->budget.sched)
		wdt_flow_of(f)->used += budget_flow_of(f)->past.used;
	w->used += w->budget.past.used;
	w->ran_ns += w->budget.past.ran_ns;
	return w->ran_ns >= interval_ns(w) / SAMPLE_SHARE;
}

/* The use @used in w->ran_ns, scaled to an interval. */
static u64 scaled(const struct wdt *w, u64 used)
{
	return mul_u64_u64_div_u64(used, interval_ns(w), w->ran_ns);
}

static void learn_service(struct wdt *w)
{
	u64 service = scaled(w, w->used);
	bool saturated = false;
	struct flow_walk walk;
	struct flow *f;

	for_each_active_flow(f, &walk, w->budget.sched)
		saturated |= atomic64_read(&f->queued) > 0;
	if (!saturated)
		service = max(service, w->service);
	w->service = service;
}

/* The least total that meets @demand at the flow's present share. */
static u64 total_to_meet(struct flow *f, u64 demand)
{
	u64 share = flow_present_share(f);

	if (!share)
		return demand;
	return mul_u64_u64_div_u64(demand, SHARE_ONE, share);
}

static bool meets_demands(const struct wdt *w)
{
	return READ_ONCE(wdt_params(&w->budget.sched->params)->total) ==
	       WDT_MEET;
}

static void learn_demand(struct flow *f)
{
	const struct wdt_params *p = wdt_params(&f->sched->params);
	const struct wdt *w = wdt_of(f->sched);
	struct wdt_flow *wf = wdt_flow_of(f);
	u64 demand = scaled(w, wf->used) + waiting(f);

	demand_add(&wf->demand, min(demand, w->service));
	wf->used = 0;
	wf->asks = demand_percentile(&wf->demand, READ_ONCE(p->history));
	if (meets_demands(w))
		wf->asks = total_to_meet(f, wf->asks);
}

static u64 total_of_demands(const struct wdt *w)
{
	u64 sum = 0, most = 0;
	struct flow_walk walk;
	struct flow *f;

	for_each_active_flow(f, &walk, w->budget.sched) {
		sum += wdt_flow_of(f)->asks;
		most = max(most, wdt_flow_of(f)->asks);
	}
	return meets_demands(w) ? most : sum;
}

static void wdt_predict(struct budget *b, u64 now)
{
	struct wdt *w = wdt_of(b->sched);
	struct flow_walk walk;
	struct flow *f;

	(void)now;
	if (!sample_is_due(w)) {
		if (!w->service)
			WRITE_ONCE(b->total, b->total * 2);
		return;
	}
	learn_service(w);
	for_each_active_flow(f, &walk, b->sched)
		learn_demand(f);
	w->used = 0;
	w->ran_ns = 0;
	WRITE_ONCE(b->total, min(total_of_demands(w), w->service));
}

/* ------------------------------------------------------------ static caps */

static u64 cap_bytes(const struct wdt *w)
{
	u64 mbps = READ_ONCE(wdt_params(&w->budget.sched->params)->caps_mbps);

	return mul_u64_u64_div_u64(mbps * BYTES_PER_MB, interval_ns(w),
				   NS_PER_S);
}

static u64 wdt_grant(const struct budget *b, const struct flow *f, u64 share)
{
	if (READ_ONCE(wdt_params(&b->sched->params)->caps_mbps))
		return f->group.parent ?
			       share_divide(&b->sched->share, &f->group,
					    cap_bytes(wdt_of(b->sched))) :
			       1ULL << BUDGET_MOST_SHIFT;
	return mul_u64_u64_shr(READ_ONCE(b->total), share, SHARE_SHIFT);
}

/* ----------------------------------------------------------- life, tuning */

static void choose_lock(struct wdt *w, struct wdt_flow *wf)
{
	bool single =
		READ_ONCE(wdt_params(&w->budget.sched->params)->single_lock);

	budget_set_lock(wf->flow, single ? &w->single : &wf->lock);
}

static void wdt_flow_init(struct flow *f)
{
	struct wdt *w = wdt_of(f->sched);
	struct wdt_flow *wf = wdt_flow_of(f);
	unsigned long flags;

	wf->flow = f;
	port_lock_init(&wf->lock);
	flags = port_lock(&w->lock);
	choose_lock(w, wf);
	wf->next = w->flows;
	wf->link = &w->flows;
	if (wf->next)
		wf->next->link = &wf->next;
	w->flows = wf;
	port_unlock(&w->lock, flags);
}

static void wdt_flow_exit(struct flow *f)
{
	struct wdt *w = wdt_of(f->sched);
	struct wdt_flow *wf = wdt_flow_of(f);
	unsigned long flags = port_lock(&w->lock);

	*wf->link = wf->next;
	if (wf->next)
		wf->next->link = wf->link;
	port_unlock(&w->lock, flags);
}

/* With caps, the part that a container leaves is not given to others. */
static void choose_rule(struct wdt *w)
{
	const struct sched_params *p = &w->budget.sched->params;

	budget_set_rule(&w->budget, budget_params(p)->work_conserving &&
						    !wdt_params(p)->caps_mbps ?
					    BUDGET_CONSERVING :
					    BUDGET_PERIODIC);
}

static void wdt_tune(struct sched *s, const struct sched_params *p,
		     struct wake *wake)
{
	struct wdt *w = wdt_of(s);
	struct wdt_flow *wf;
	unsigned long flags;

	budget_tune(s, p, wake);
	if (!p)
		return;
	choose_rule(w);
	flags = port_lock(&w->lock);
	for (wf = w->flows; wf; wf = wf->next)
		choose_lock(w, wf);
	port_unlock(&w->lock, flags);
}

static void wdt_report(const struct sched *s, struct report *r)
{
	budget_report(s, r);
	report_number(r, "service", (s64)READ_ONCE(wdt_of(s)->service));
}

static void wdt_exit(struct sched *s)
{
	struct wdt *w = wdt_of(s);

	port_assert(!w->flows);
	budget_deinit(&w->budget);
}

static const struct budget_ops wdt_budget_ops = {
	.nr_domains	= 1,
	.predict	= wdt_predict,
	.grant		= wdt_grant,
};

static int wdt_init(struct sched *s)
{
	struct wdt *w = wdt_of(s);

	if (budget_init(&w->budget, s, &wdt_budget_ops, FIRST_TOTAL,
			&s->params.depth))
		return -ENOMEM;
	port_lock_init(&w->single);
	port_lock_init(&w->lock);
	choose_rule(w);
	return 0;
}

static const char *const total_names[] = {
	[WDT_SUM]	= "sum",
	[WDT_MEET]	= "meet",
	NULL,
};

static const struct tunable wdt_tunables[] = {
	{ TUNABLE_DEPTH_AUTO },
	{ TUNABLE_BUDGET_PERIOD("interval_ms") },
	{ TUNABLE_COST_OF(COST_BYTES) },
	{ TUNABLE_ISOLATION },
	{
		TUNABLE_U32("history", struct wdt_params, history, 1,
			    DEMAND_SAMPLES, 1, 16),
		.research = true,
	},
	{
		TUNABLE_NAMES("total", struct wdt_params, total, total_names,
			      WDT_SUM),
		.research = true,
	},
	{ TUNABLE_WORK_CONSERVING },
	{
		TUNABLE_U32("caps_mbps", struct wdt_params, caps_mbps, 0,
			    1000000, 1, 0),
		.research = true,
	},
	{
		TUNABLE_FLAG("single_lock", struct wdt_params, single_lock, 0),
		.research = true,
	},
	{ }
};

const struct sched_ops wdt_ops = {
	.name			= "wdt",
	.tunables		= wdt_tunables,
	.bytes			= sizeof(struct wdt),
	.queue_bytes		= sizeof(struct budget_queue),
	.params_bytes		= sizeof(struct wdt_params),
	.flow_bytes		= sizeof(struct wdt_flow),
	.flow_queue_bytes	= BUDGET_FLOW_QUEUE_BYTES(1),
	.init			= wdt_init,
	.exit			= wdt_exit,
	.insert			= budget_insert,
	.merge			= budget_merge,
	.dispatch		= budget_dispatch,
	.block			= budget_block,
	.send			= budget_send,
	.complete		= budget_complete,
	.requeue		= budget_requeue,
	.tick			= round_tick,
	.tune			= wdt_tune,
	.flow_init		= wdt_flow_init,
	.flow_exit		= wdt_flow_exit,
	.report			= wdt_report,
	.report_flow		= budget_report_flow,
};
