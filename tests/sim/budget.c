// SPDX-License-Identifier: GPL-2.0
#include "budget.h"
#include "sched/budget/budget.h"
#include "tests/params.h"

enum {
	/* About so many ios are counted at each look, over many looks. */
	COUNTED		= 32,
};

bool budget_family(const struct sched_ops *ops)
{
	return ops->insert == budget_insert;
}

void budget_chaos(struct rng *rng, const struct sched_ops *ops,
		  struct sched_params *p)
{
	u32 period_ms;

	if (rng_chance(rng, 300)) {
		period_ms = (u32)rng_between(rng, 1, 20);
		params_set(ops, p, "period_ms", period_ms);
		params_set(ops, p, "interval_ms", period_ms);
	}
	if (rng_chance(rng, 300))
		params_flip(ops, p, "work_conserving");
	if (rng_chance(rng, 500))
		params_flip(ops, p, "single_lock");
	if (rng_chance(rng, 200))
		params_flip(ops, p, "total");
	if (rng_chance(rng, 100))
		params_set(ops, p, "caps_mbps",
			   params_get(ops, p, "caps_mbps") ? 0 : 100);
	if (rng_chance(rng, 300))
		params_set(ops, p, "alpha_pct", (u32)rng_between(rng, 0, 100));
	if (rng_chance(rng, 300))
		params_set(ops, p, "budget_ms", (u32)rng_between(rng, 1, 50));
	if (rng_chance(rng, 100))
		params_flip(ops, p, "gc_share");
	if (rng_chance(rng, 200))
		params_flip(ops, p, "predict");
	if (rng_chance(rng, 200))
		params_set(ops, p, "read_lat_us",
			   (u32)rng_between(rng, 0, 5000));
	if (rng_chance(rng, 200))
		params_set(ops, p, "write_lat_us",
			   (u32)rng_between(rng, 0, 5000));
}

/* I1: granted = spent + left. */
static void check_credit(struct host *h)
{
	const struct host_flow *hf;

	for (hf = h->flows; hf; hf = hf->next) {
		const struct budget_flow *bf = budget_flow_of(hf->flow);
		s64 spent = (s64)budget_spent(hf->flow);
		s64 left = credit_left(&bf->credit);

		if (bf->granted != spent + left)
			host_fail(
				h,
				"%llu ns: flow %u was granted %lld, spent %lld and has %lld",
				host_now(h), hf->id, bf->granted, spent, left);
		if ((u64)spent != hf->dispatched_cost)
			host_fail(
				h,
				"%llu ns: flow %u spent %lld for requests that cost %llu",
				host_now(h), hf->id, spent,
				hf->dispatched_cost);
	}
}

static void check_slots(struct host *h)
{
	const struct budget *b = budget_of(&h->sched);
	s64 used = 0, counted = 0, leased = 0;
	u32 domain, i;

	for (domain = 0; domain < b->ops->nr_domains; domain++) {
		used += slots_used(&b->slots[domain]);
		leased += slots_leased(&b->slots[domain]);
		for (i = 0; i < h->params.nr_queues; i++)
			counted += atomic64_read(
				&b->slots[domain].tree.leaf[i].used);
	}
	if (used != h->slots + leased || counted != used)
		host_fail(
			h,
			"%llu ns: %lld slots are taken, queues have %lld, requests %u and leases %lld",
			host_now(h), used, counted, h->slots, leased);
}

void budget_step(void *arg)
{
	const struct fixture *r = arg;

	check_credit(r->host);
	check_slots(r->host);
}

/* A lane that was put aside belongs to an exhausted flow. */
static void check_exhausted(struct host *h, const struct budget_lane *lane)
{
	for (; lane; lane = lane->next) {
		const struct budget_flow *bf = budget_flow_of(lane->flow);

		if (credit_left(&bf->credit) > 0)
			host_fail(
				h,
				"%llu ns: %lld of credit, and its requests are put aside",
				host_now(h), credit_left(&bf->credit));
	}
}

static u32 count_fifo(const struct io *io)
{
	u32 requests = 0;

	for (; io; io = io->next)
		requests++;
	return requests;
}

static u32 count_lanes(const struct budget_lane *lane)
{
	u32 requests = 0;

	for (; lane; lane = lane->next)
		requests += count_fifo(lane->fifo.head);
	return requests;
}

/* I3 */
static void check_lanes(struct host *h, const struct host_queue *hq)
{
	const struct budget *b = budget_of(&h->sched);
	const struct budget_queue *bq = budget_queue_of(&hq->q);
	u32 domain, counted = count_lanes(bq->exhausted.head) +
			      count_fifo(hq->q.to_adopt.head) +
			      count_fifo(hq->q.passing.head);

	for (domain = 0; domain < b->ops->nr_domains; domain++)
		counted += count_lanes(bq->runnable[domain].head) +
			   count_lanes(bq->donors[domain].head);
	if (counted != hq->waiting)
		host_fail(h,
			  "%llu ns: %u ios wait in queue %u, its lanes have %u",
			  host_now(h), hq->waiting, hq->q.index, counted);
}

static void check_waiting(struct host *h, const struct host_queue *hq)
{
	const struct budget *b = budget_of(&h->sched);
	const struct budget_queue *bq = budget_queue_of(&hq->q);
	bool forgot = false, runnable = false;
	u32 domain;

	check_exhausted(h, bq->exhausted.head);
	for (domain = 0; domain < b->ops->nr_domains; domain++) {
		runnable |= bq->runnable[domain].head ||
			    bq->donors[domain].head;
		forgot |= slots_forgot(&b->slots[domain], hq->q.index);
	}
	if (runnable && hq->q.state != DISPATCH_NO_SLOT)
		host_fail(h, "%llu ns: ios may go from queue %u (state %u)",
			  host_now(h), hq->q.index, hq->q.state);
	if (forgot)
		host_fail(h,
			  "%llu ns: queue %u waits for a slot beside free ones",
			  host_now(h), hq->q.index);
	if (h->timeline.fired % (1 + hq->waiting / COUNTED) == 0)
		check_lanes(h, hq);
}

void budget_quiet(void *arg)
{
	const struct fixture *r = arg;
	u32 i;

	for (i = 0; i < r->host->params.nr_queues; i++) {
		const struct host_queue *hq = &r->host->queues[i];

		if (hq->waiting && !hq->blocked && !host_queue_is_full(hq))
			check_waiting(r->host, hq);
	}
}
