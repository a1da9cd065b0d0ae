// SPDX-License-Identifier: GPL-2.0
#include "budget.h"
#include "sched/budget/budget.h"
#include "tests/params.h"

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
			   (u32)rng_between(rng, 1, 5000));
	if (rng_chance(rng, 200))
		params_set(ops, p, "write_lat_us",
			   (u32)rng_between(rng, 1, 5000));
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
	s64 used = 0, counted = 0;
	u32 domain, i;

	for (domain = 0; domain < b->ops->nr_domains; domain++) {
		used += slots_used(&b->slots[domain]);
		for (i = 0; i < h->params.nr_queues; i++)
			counted +=
				atomic64_read(&b->slots[domain].queue[i].used);
	}
	if (used != (s64)h->slots || counted != used)
		host_fail(
			h,
			"%llu ns: %lld slots are taken, queues have %lld and requests %u",
			host_now(h), used, counted, h->slots);
}

void budget_step(void *arg)
{
	const struct fixture *r = arg;

	check_credit(r->host);
	check_slots(r->host);
}

/* I3; and a lane that was put aside belongs to an exhausted flow. */
static u32 count_lanes(struct host *h, const struct budget_lane *lane,
		       bool exhausted)
{
	u32 requests = 0;
	const struct io *io;

	for (; lane; lane = lane->next) {
		const struct budget_flow *bf = budget_flow_of(lane->flow);

		if (exhausted && credit_left(&bf->credit) > 0)
			host_fail(
				h,
				"%llu ns: %lld of credit, and its requests are put aside",
				host_now(h), credit_left(&bf->credit));
		for (io = lane->fifo.head; io; io = io->next)
			requests++;
	}
	return requests;
}

static void check_waiting(struct host *h, const struct host_queue *hq)
{
	const struct budget *b = budget_of(&h->sched);
	const struct budget_queue *bq = budget_queue_of(&hq->q);
	u32 domain, runnable = 0, deferred = 0,
		    exhausted = count_lanes(h, bq->exhausted.head, true);
	const struct io *io;
	bool forgot = false;

	for (io = hq->q.deferred.head; io; io = io->next)
		deferred++;

	for (domain = 0; domain < b->ops->nr_domains; domain++) {
		runnable += count_lanes(h, bq->runnable[domain].head, false);
		forgot |= slots_forgot(&b->slots[domain], hq->q.index);
	}
	if (runnable + exhausted + deferred != hq->waiting)
		host_fail(h,
			  "%llu ns: %u ios wait in queue %u, its lanes have %u",
			  host_now(h), hq->waiting, hq->q.index,
			  runnable + exhausted + deferred);
	if (runnable && hq->q.state != DISPATCH_NO_SLOT)
		host_fail(h, "%llu ns: %u ios may go from queue %u (state %u)",
			  host_now(h), runnable, hq->q.index, hq->q.state);
	if (forgot)
		host_fail(h,
			  "%llu ns: queue %u waits for a slot beside free ones",
			  host_now(h), hq->q.index);
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
