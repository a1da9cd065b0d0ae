// SPDX-License-Identifier: GPL-2.0
/*
 * hwabc - host-level workload-aware budget compensation
 *
 * The problem.  A flash drive cannot overwrite.  It writes elsewhere and
 * collects the garbage later: it copies the valid pages of a block and erases
 * the block.  The copies delay every tenant, but not every tenant causes them.
 * A tenant that reads, beside one that writes at random, gets the less, the
 * more the other one writes, though each asks for equally much.
 *
 * The idea (the paper).  Each tenant gets an equal *budget*, from which the
 * cost of each request is deducted.  A tenant without budget is not scheduled
 * [P].  Regression on the work of the device finds the costs of reads and
 * writes [P].  A write costs more, the more its tenant has to do with the
 * collection:
 *
 *	cost'_w = cost_w * (1 + alpha * valid / invalid
 *			      + (1 - alpha) * write / total)		[P]
 *
 * valid and invalid are the tenant's flash pages in that state; write and total
 * its requests.  Reads keep their cost [P].
 *
 * Example.  A read takes 80 us of the device, a write 400; alpha is 1/2.  A
 * reads.  B only writes, at random over a quarter of a full drive: 90 of its
 * pages are valid for 10 that are not.  A write of B costs 400 us *
 * (1 + 9/2 + 1/2) = 2.4 ms.  Of equal budgets A gets 30 reads for each write of
 * B, and the device spends 2.4 ms on A for 0.4 on B.
 *
 * Budgets
 *   - Their total is the work of the device in `budget_ms`, at its recent best,
 *     and at least twice the work in the device.
 *   - Each tenant gets its share by weight; with equal weights equal parts [R].
 *   - They return when every active flow is exhausted [R], or after
 *     `period_ms`.
 *   - With work_conserving=1, the default, they also return when the flows in
 *     credit leave the device idle (budget.h) [R].
 *   - A factor is a penalty and not work, so the work of the device in
 *     `budget_ms` is counted without factors.
 *
 * Where the numbers come from
 *   cost_r, cost_w	cost=learned, the default: cost_estimator.h.  With a
 *			host-managed FTL the estimator learns the work of the
 *			planes.  A drive-managed FTL does not tell it.  Then a
 *			request costs its bytes [R].  Any other cost of cost.h
 *			may take its place.
 *   write / total	Requests dispatched in about the last second [R].
 *   valid, invalid	A host-managed FTL tells them (sched.map.flow_pages).
 *	gc_share=flow	all pages of the flow: the paper's formula
 *	gc_share=victim	pages that were copied for the flow against pages that
 *			it wrote, each of which made one invalid, in about the
 *			last second.  That is the paper's principle: the owner
 *			of the valid pages in victim blocks pays [R]
 *			A drive-managed FTL hides them.  Then gc_shadow.h
 *			estimates them; it knows no victims, so both values of
 *			gc_share are the same.
 * invalid = 0 counts as 1, and the ratio is capped [R].
 *
 * tick sets the factors every 100 ms, and insert charges them.
 *
 * Invariants: those of budget.h, and
 *   I4  a factor is between 1 and 1 + HWABC_RATIO_MOST.
 *   I5  equal requests of two tenants cost the same, but for the factor.
 *
 * Wakes: budget.h for a flow without budget, slots.h for a queue without slot.
 *
 * Limits.  A flow that leaves places of the device free cannot delay the end of a
 * round (budget.h, donors).
 *
 * Source: Lee, Han, Shin, Host-Level Workload-Aware Budget Compensation I/O
 * Scheduling for Open-Channel SSDs, section II.
 * Tested by tests/unit/{hwabc,hwabc_hooks,cost_rls,gc_shadow,budget}.c,
 * tests/mt/budget.c, tests/sim/hwabc.c.
 */
#include "hwabc.h"
#include "cost/cost_estimator.h"
#include "core/policies.h"
#include "core/rate.h"

enum {
	DRAIN_NS	= 10 * 1000 * 1000,
	JUDGE_NS	= 100 * 1000 * 1000,
	RECENT_SHIFT	= 3,		/* recent: 8 times JUDGE_NS */
	RECENT_FRACTION	= 8,
	WRITTEN_SHIFT	= 12,		/* pages of 4 KiB */
	RATE_FADE_SHIFT	= 3,		/* the best decays by 1/8 a period */
	PERCENT		= 100,
	NS_PER_MS	= 1000 * 1000,
};

/* The first total, and the least one: some dozens of requests. */
#define TOTAL_LEAST	(1ULL << 18)
#define FACTOR_ONE	(1U << HWABC_FACTOR_SHIFT)

static const char *const gc_share_names[] = {
	[GC_SHARE_FLOW]		= "flow",
	[GC_SHARE_VICTIM]	= "victim",
	NULL
};

static struct hwabc *hwabc_of(const struct sched *s)
{
	return s->own;
}

static struct hwabc_queue *hwabc_queue_of(const struct queue *q)
{
	return q->own;
}

static struct hwabc_flow *hwabc_flow_of(const struct flow *f)
{
	return flow_own(f);
}

static struct hwabc_flow_queue *flow_queue_of(const struct flow *f, u32 queue)
{
	return (void *)((char *)flow_queue_own(f, queue) +
			BUDGET_FLOW_QUEUE_BYTES(1));
}

/* ------------------------------------------------------------ the formula */

u32 hwabc_ratio(u64 valid, u64 invalid)
{
	if (!invalid)
		invalid = 1;
	if (div64_u64(valid, invalid) >= HWABC_RATIO_MOST)
		return HWABC_RATIO_MOST * FACTOR_ONE;
	return (u32)mul_u64_u64_div_u64(valid, FACTOR_ONE, invalid);
}

u32 hwabc_factor(u32 alpha_pct, u32 ratio, u32 writes_part)
{
	u64 more = (u64)alpha_pct * ratio +
		   (u64)(PERCENT - alpha_pct) * writes_part;

	return FACTOR_ONE + (u32)div64_u64(more, PERCENT);
}

/* --------------------------------------------------- the counts of a flow */

struct counts {
	u64 requests, writes, written;
};

static struct counts count(const struct flow *f)
{
	struct counts c = { 0 };
	u32 i;

	for (i = 0; i < f->nr_queues; i++) {
		const struct hwabc_flow_queue *fq = flow_queue_of(f, i);

		c.requests += READ_ONCE(fq->requests);
		c.writes += READ_ONCE(fq->writes);
		c.written += READ_ONCE(fq->written);
	}
	return c;
}

static void decay(u64 *recent, u64 *seen, u64 now)
{
	*recent -= *recent >> RECENT_SHIFT;
	*recent += (now - *seen) << RECENT_FRACTION;
	*seen = now;
}

/* write / total, the second part of the paper's factor. */
static u32 writes_part(struct hwabc_flow *hf, const struct counts *c)
{
	decay(&hf->recent_requests, &hf->requests, c->requests);
	decay(&hf->recent_writes, &hf->writes, c->writes);
	decay(&hf->recent_written, &hf->written, c->written);
	if (!hf->recent_requests)
		return 0;
	return (u32)mul_u64_u64_div_u64(hf->recent_writes, FACTOR_ONE,
					hf->recent_requests);
}

/* valid / invalid, the first part. */
static u32 pages_ratio(struct hwabc *hw, struct flow *f)
{
	const struct sched *s = hw->budget.sched;
	struct hwabc_flow *hf = hwabc_flow_of(f);
	struct flow_pages pages;

	if (!s->map.flow_pages || !s->map.flow_pages(s, f, &pages)) {
		WRITE_ONCE(hw->hidden, true);
		return hwabc_ratio(gc_shadow_valid(&hw->gc_shadow,
						   &hf->gc_shadow),
				   gc_shadow_invalid(&hw->gc_shadow,
						     &hf->gc_shadow));
	}
	WRITE_ONCE(hw->hidden, false);
	/* A count that is less than before has begun anew. */
	hf->copied = min(hf->copied, pages.copied);
	decay(&hf->recent_copied, &hf->copied, pages.copied);
	if (READ_ONCE(hwabc_params(&s->params)->gc_share) == GC_SHARE_VICTIM)
		return hwabc_ratio(hf->recent_copied, hf->recent_written);
	return hwabc_ratio(pages.valid, pages.invalid);
}

static void judge(struct flow *f)
{
	struct hwabc *hw = hwabc_of(f->sched);
	u32 alpha_pct =
		READ_ONCE(hwabc_params(&hw->budget.sched->params)->alpha_pct);
	struct hwabc_flow *hf = hwabc_flow_of(f);
	struct counts c = count(f);

	WRITE_ONCE(hf->writes_part, writes_part(hf, &c));
	WRITE_ONCE(hf->ratio, pages_ratio(hw, f));
	WRITE_ONCE(hf->factor,
		   hwabc_factor(alpha_pct, hf->ratio, hf->writes_part));
}

static void hwabc_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct hwabc *hw = hwabc_of(s);
	struct flow_walk w;
	struct flow *f;

	if (now >= hw->drain_ns) {
		hw->drain_ns = now + DRAIN_NS;
		if (hw->hidden)
			gc_shadow_tick(&hw->gc_shadow,
				       READ_ONCE(hwabc_params(&s->params)
							 ->spare_pct));
	}
	if (now >= hw->judge_ns) {
		hw->judge_ns = now + JUDGE_NS;
		for_each_active_flow(f, &w, s)
			judge(f);
	}
	if (flow_any_active(s))
		wake_at(wake, hw->drain_ns);
	round_tick(s, now, wake);
}

/* ---------------------------------------------------------------- budgets */

static u32 hwabc_charge(const struct budget *b, const struct io *io, u32 bytes)
{
	u64 cost = cost_of(&b->sched->params.cost, io->op, bytes);
	const struct hwabc_flow *hf = hwabc_flow_of(io->flow);

	if (io->op == IO_WRITE)
		cost = mul_u64_u32_shr(cost, READ_ONCE(hf->factor),
				       HWABC_FACTOR_SHIFT);
	return (u32)min(cost, (u64)COST_MOST);
}

/* The work that was dispatched so far. */
static u64 work_of(const struct sched *s)
{
	u64 work = 0;
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		work += READ_ONCE(hwabc_queue_of(s->queue[i])->work);
	return work;
}

static void learn_rate(struct hwabc *hw, u64 now)
{
	const struct sched *s = hw->budget.sched;
	u64 work = work_of(s), ns = now - hw->rate_ns, rate;

	if (ns < READ_ONCE(budget_params(&s->params)->period_ns))
		return;
	rate = rate_of(work - hw->rate_work, ns);
	hw->rate = max(rate, hw->rate - (hw->rate >> RATE_FADE_SHIFT));
	hw->rate_ns = now;
	hw->rate_work = work;
}

static void hwabc_predict(struct budget *b, u64 now)
{
	struct hwabc *hw = hwabc_of(b->sched);
	u64 ns = (u64)READ_ONCE(hwabc_params(&b->sched->params)->budget_ms) *
		 NS_PER_MS;
	u64 total;

	learn_rate(hw, now);
	total = hw->rate ? max(work_at(hw->rate, ns), TOTAL_LEAST) :
			   round_longer_total(b, now, ns);
	WRITE_ONCE(b->total, max(total, round_least_total(b)));
}

/* --------------------------------------------------------------- requests */

static void count_dispatched(struct queue *q, const struct io *io)
{
	struct hwabc_flow_queue *fq = flow_queue_of(io->flow, q->index);
	u32 cost = cost_of(&q->sched->params.cost, io->op, io->bytes);
	struct hwabc_queue *hq = hwabc_queue_of(q);

	WRITE_ONCE(hq->work, hq->work + cost);
	WRITE_ONCE(fq->requests, fq->requests + 1);
	if (io->op != IO_WRITE)
		return;
	WRITE_ONCE(fq->writes, fq->writes + 1);
	WRITE_ONCE(fq->written, fq->written + (io->bytes >> WRITTEN_SHIFT));
}

static enum dispatch_result hwabc_dispatch(struct queue *q, u64 now,
					   struct io **io, struct wake *wake)
{
	enum dispatch_result result = budget_dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		count_dispatched(q, *io);
	return result;
}

static bool hwabc_send(struct queue *q, struct io *first, u32 nr, u64 now,
		       struct wake *wake)
{
	const struct io *io;

	if (!budget_send(q, first, nr, now, wake))
		return false;
	for (io = first; io; io = io->next)
		count_dispatched(q, io);
	return true;
}

static void hwabc_complete(struct io *io, u64 now, struct wake *wake)
{
	struct hwabc *hw = hwabc_of(io->queue->sched);

	if (io->op == IO_WRITE && (io->flags & IO_OUT) && READ_ONCE(hw->hidden))
		gc_shadow_wrote(&hw->gc_shadow,
				&hwabc_flow_of(io->flow)->gc_shadow,
				io->queue->index, io_first_page(io), io->bytes);
	budget_complete(io, now, wake);
}

/* ----------------------------------------------------------- life, tuning */

static void hwabc_flow_init(struct flow *f)
{
	struct hwabc_flow *hf = hwabc_flow_of(f);

	hf->factor = FACTOR_ONE;
	gc_shadow_flow_init(&hwabc_of(f->sched)->gc_shadow, &hf->gc_shadow);
}

static void hwabc_flow_exit(struct flow *f)
{
	gc_shadow_flow_exit(&hwabc_of(f->sched)->gc_shadow,
			    &hwabc_flow_of(f)->gc_shadow);
}

static void choose_rule(struct hwabc *hw, const struct sched_params *p)
{
	budget_set_rule(&hw->budget, budget_params(p)->work_conserving ?
					     BUDGET_CONSERVING :
					     BUDGET_ALL_EXHAUSTED);
}

static void hwabc_tune(struct sched *s, const struct sched_params *p,
		       struct wake *wake)
{
	budget_tune(s, p, wake);
	if (p)
		choose_rule(hwabc_of(s), p);
}

static void hwabc_exit(struct sched *s)
{
	struct hwabc *hw = hwabc_of(s);

	budget_deinit(&hw->budget);
	gc_shadow_deinit(&hw->gc_shadow);
}

static const struct budget_ops hwabc_budget_ops = {
	.nr_domains	= 1,
	.charge		= hwabc_charge,
	.predict	= hwabc_predict,
};

static int hwabc_init(struct sched *s)
{
	struct hwabc *hw = hwabc_of(s);

	hw->hidden = true;
	if (gc_shadow_init(&hw->gc_shadow, s->nr_queues, s->pages))
		return -ENOMEM;
	if (budget_init(&hw->budget, s, &hwabc_budget_ops, TOTAL_LEAST,
			&s->params.depth)) {
		gc_shadow_deinit(&hw->gc_shadow);
		return -ENOMEM;
	}
	choose_rule(hw, &s->params);
	return 0;
}

/* ------------------------------------------------------------- for people */

static s64 permille(u32 factor)
{
	return (s64)(((u64)factor * 1000) >> HWABC_FACTOR_SHIFT);
}

static void hwabc_report(const struct sched *s, struct report *r)
{
	const struct hwabc *hw = hwabc_of(s);

	budget_report(s, r);
	report_number(r, "ftl_hidden", READ_ONCE(hw->hidden));
	report_number(r, "sampled_pages", hw->gc_shadow.regions);
	report_number(r, "sample_lost", (s64)gc_shadow_lost(&hw->gc_shadow));
}

static void hwabc_report_flow(const struct flow *f, struct report *r)
{
	const struct hwabc_flow *hf = hwabc_flow_of(f);

	budget_report_flow(f, r);
	report_number(r, "write_factor_permille",
		      permille(READ_ONCE(hf->factor)));
	report_number(r, "valid_invalid_permille",
		      permille(READ_ONCE(hf->ratio)));
	report_number(r, "write_total_permille",
		      permille(READ_ONCE(hf->writes_part)));
}

static const struct tunable hwabc_tunables[] = {
	{ TUNABLE_DEPTH_AUTO },
	{ TUNABLE_U32("budget_ms", struct hwabc_params, budget_ms, 1, 4000, 1,
		      10) },
	{ TUNABLE_COST_OF(COST_LEARNED) },
	{ TUNABLE_ISOLATION },
	{
		TUNABLE_U32("alpha_pct", struct hwabc_params, alpha_pct, 0,
			    PERCENT, 1, 10),
		.research = true,
	},
	{ TUNABLE_BUDGET_PERIOD("period_ms"), .research = true },
	{ TUNABLE_WORK_CONSERVING },
	{
		TUNABLE_NAMES("gc_share", struct hwabc_params, gc_share,
			      gc_share_names, GC_SHARE_FLOW),
		.research = true,
	},
	{
		TUNABLE_U32("spare_pct", struct hwabc_params, spare_pct, 1,
			    PERCENT, 1, 20),
		.research = true,
	},
	{ }
};

const struct sched_ops hwabc_ops = {
	.name			= "hwabc",
	.exact_costs		= true,
	.tunables		= hwabc_tunables,
	.bytes			= sizeof(struct hwabc),
	.queue_bytes		= sizeof(struct hwabc_queue),
	.params_bytes		= sizeof(struct hwabc_params),
	.flow_bytes		= sizeof(struct hwabc_flow),
	.flow_queue_bytes	= BUDGET_FLOW_QUEUE_BYTES(1) +
				  sizeof(struct hwabc_flow_queue),
	.init			= hwabc_init,
	.exit			= hwabc_exit,
	.insert			= budget_insert,
	.merge			= budget_merge,
	.dispatch		= hwabc_dispatch,
	.block			= budget_block,
	.send			= hwabc_send,
	.complete		= hwabc_complete,
	.requeue		= budget_requeue,
	.tick			= hwabc_tick,
	.tune			= hwabc_tune,
	.flow_init		= hwabc_flow_init,
	.flow_exit		= hwabc_flow_exit,
	.report			= hwabc_report,
	.report_flow		= hwabc_report_flow,
};
