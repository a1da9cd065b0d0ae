// SPDX-License-Identifier: GPL-2.0
/*
 * kyber-fair - Kyber, with tokens for each cgroup
 *
 * The problem.  A scheduler that keeps several queues fair by comparing them
 * pays for the comparison with every request.
 *
 * The idea (the paper).  Compare rarely.  Each flow gets *tokens* in
 * proportion to its weight, worth the predicted service of the device in a
 * period.  Every CPU spends its flows' tokens without asking the others.  A
 * flow that has none left is throttled.  Tokens are refilled when the period
 * is over, or when every active flow is exhausted.  Below that is Kyber:
 * reads, writes, discards and others have a number of slots each, which
 * may follow their latencies (domain.h).
 *
 * Example.  A drive that reads 400 MB/s, weights 100 and 300, period 100 ms.
 * The prediction is 40 MB, the flows get 10 and 30.  Both read 4 KiB with the
 * same depth, so both get 200 MB/s.  After 50 ms the first is exhausted, having
 * read its 10 MB.  The second goes on alone, with 400 MB/s, until at 100 ms it
 * has read its 30.  Then both are exhausted and the next period begins.  Over
 * each period they read 10 and 30.  If the first one writes, and a write takes
 * three times as long as a read, it is exhausted after 3.3 MB.
 *
 * The tokens of a period (predict.h): those used so far, over the time in which
 * they were used, in the mean of eight periods.  After too low a prediction,
 * tokens are refilled more often.  After too high a one, no flow is throttled,
 * and the order of arrival decides.
 *
 * work_conserving=0: the paper's two conditions and nothing else.
 *   - A flow that is active and asks for little keeps its tokens, so all others
 *     wait for the end of the period.  The tokens that they could not use are
 *     missing in the next prediction.
 *   - All flows get the tokens of a whole period at once.  The light ones spend
 *     theirs at its beginning and then wait for its end.
 *
 * D [R].  Kyber's depths are those of the fastest drives: 256 reads.  If all
 * requests of the tenants fit in there, the drive serves them by their number.  So each domain has D
 * slots at most, the window of isolation.h.
 *
 * work_conserving=1, the default, avoids both [R].
 *   - A round also ends when a flow waits and the flows in credit leave the
 *     device idle (BUDGET_CONSERVING in budget.h).
 *   - A round is worth a ROUNDS-th of a period, so that no flow stands still
 *     for longer than that.  It is never worth less than goes into the device
 *     at once.
 *   Shares are the same: they come from the grants of a round, not its length.
 *
 * Invariants: those of budget.h, and
 *   I4  a request with IO_SLOT holds a slot of the domain of its operation.
 *   I5  a write costs at least COST_LEAST, whatever the ratio.
 *
 * Wakes: budget.h for a flow without tokens, slots.h for a queue without slot.
 *
 * Limits.  A period is 100 ms, and a flow is active for 100 ms after its last
 * request (FLOW_GRACE_NS).  With a longer period, a flow without requests is
 * taken for one without "request in the last period" [P] too soon.  The time of
 * a write is that of the mean write.  Where small writes meet large reads, the
 * ratio depends on the sizes as well as on the operations [P].
 *
 * Sources: Son, Oh, Ahn, the Kyber-fairness scheduler, Journal of Semiconductor
 * Technology and Science, sections IV.1 to IV.4 and Algorithm 1 [P].  Kyber
 * [K]: see domain.h.
 * Tested by tests/sim/kyber_fair.c, tests/mt/budget.c, tests/vm.
 */
#include "kyber_fair.h"
#include "core/policies.h"

enum {
	/*
	 * Work-conserving rounds in a period: 6 ms of the default 100.  That is
	 * above the latency of any fast drive, and too short to be noticed.
	 */
	ROUNDS		= 16,
	ROUND_LEAST	= 1 << 20,	/* a refill has a cost of its own */
	FLOW_LEAST	= 1 << 16,	/* so have each flow's wait and wake */
};

/*
 * Tokens of the first period, and the least of any: a few hundred requests, so
 * that a flow of the least weight is granted some.
 */
#define TOTAL_FIRST	(1ULL << 20)
#define TOTAL_LEAST	(1ULL << 16)
#define TOTAL_MOST	(1ULL << BUDGET_MOST_SHIFT)

static const char *const predict_names[] = {
	[KYBER_TOTAL]		= "total",
	[KYBER_PER_FLOW]	= "per-flow",
	NULL
};

static struct kyber_fair *kyber_of(const struct sched *s)
{
	return s->own;
}

static struct kyber_flow *kyber_flow_of(const struct flow *f)
{
	return flow_own(f);
}

/* ------------------------------------------------------------- prediction */

static u64 predict_total(struct kyber_fair *k, u64 period_ns, u64 least_ns)
{
	const struct budget_past *past = &k->budget.past;

	predict_add(&k->total, past->used, past->ran_ns, period_ns, least_ns);
	return predict_mean(&k->total);
}

/* Algorithm 1 to the letter: each flow by itself. */
static u64 predict_flows(struct kyber_fair *k, u64 period_ns, u64 least_ns)
{
	struct flow_walk w;
	struct flow *f;
	u64 sum = 0;

	for_each_active_flow(f, &w, k->budget.sched) {
		struct kyber_flow *kf = kyber_flow_of(f);
		const struct budget_past *past = &kf->budget.past;

		predict_add(&kf->own, past->used, past->ran_ns, period_ns,
			    least_ns);
		sum += predict_mean(&kf->own);
	}
	return sum;
}

/* The total of a round that is to be short. */
static u64 short_round(const struct budget *b, u64 total)
{
	u64 flows = READ_ONCE(b->sched->share.nr_active);
	u64 least = max((u64)ROUND_LEAST, flows * FLOW_LEAST);

	return max(min(max(total / ROUNDS, least), total),
		   round_least_total(b));
}

static void count_throttled(const struct budget *b, u64 now)
{
	struct flow_walk w;
	struct flow *f;

	for_each_active_flow(f, &w, b->sched) {
		struct kyber_flow *kf = kyber_flow_of(f);
		u64 ran_ns = kf->budget.past.ran_ns;

		if (kf->budget.past.exhausted)
			WRITE_ONCE(kf->throttled_ns,
				   kf->throttled_ns + (now - b->start_ns) -
					   ran_ns);
	}
}

static void kyber_predict(struct budget *b, u64 now)
{
	struct kyber_fair *k = kyber_of(b->sched);
	const struct sched_params *p = &b->sched->params;
	u32 conserving = READ_ONCE(budget_params(p)->work_conserving);
	u64 period_ns = READ_ONCE(budget_params(p)->period_ns);
	u64 least_ns = conserving ? period_ns : 0, total, known;

	count_throttled(b, now);
	if (READ_ONCE(kyber_params(p)->predict) == KYBER_PER_FLOW)
		total = predict_flows(k, period_ns, least_ns);
	else
		total = predict_total(k, period_ns, least_ns);
	known = total;
	if (!known)
		total = round_longer_total(b, now, period_ns / ROUNDS);
	total = clamp(total, (u64)TOTAL_LEAST, (u64)TOTAL_MOST);
	WRITE_ONCE(k->predicted, total);
	WRITE_ONCE(b->total,
		   conserving && known ? short_round(b, total) : total);
	WRITE_ONCE(k->last_round_ns, k->round_ns);
	WRITE_ONCE(k->round_ns, now);
}

/* ------------------------------------------------------------ the request */

static u32 kyber_domain(const struct io *io)
{
	return io->op;
}

static u32 kyber_charge(const struct budget *b, const struct io *io, u32 bytes)
{
	const struct kyber_fair *k = kyber_of(b->sched);
	u64 cost = cost_of(&b->sched->params.cost, io->op, bytes);

	if (io->op == IO_WRITE)
		cost = domain_write_cost(&k->domains, (u32)cost);
	return (u32)clamp(cost, (u64)COST_LEAST, (u64)COST_MOST);
}

/*
 * Returns the start of the round in which @io was dispatched, if at most one
 * round has begun since.
 */
static u64 round_of(const struct kyber_fair *k, const struct io *io)
{
	u64 start = READ_ONCE(k->round_ns);

	return start <= io->dispatch_ns ? start : READ_ONCE(k->last_round_ns);
}

/*
 * The time from which only the slots of its domain kept the request waiting.
 * That is its arrival, or the start of the round in which it was dispatched if
 * its flow was exhausted after its arrival [R].
 */
static u64 ready_ns(const struct kyber_fair *k, const struct io *io)
{
	const struct budget_flow *bf = budget_flow_of(io->flow);
	u64 exhausted_ns = (u64)atomic64_read(&bf->exhausted_ns),
	    ready = io->insert_ns;

	if (exhausted_ns > io->insert_ns)
		ready = max(ready, round_of(k, io));
	/* CPUs read their clocks at different times. */
	return min(ready, io->dispatch_ns);
}

static void record(struct kyber_fair *k, const struct io *io, u64 now)
{
	if (now > io->dispatch_ns)
		domain_done(&k->domains, io->op, io->queue->index,
			    now - io->dispatch_ns, now - ready_ns(k, io));
}

static void kyber_complete(struct io *io, u64 now, struct wake *wake)
{
	/*
	 * A polled request ends when its tenant reaps it, at any time.  One that passes
	 * for isolation goes first, so its time is not that of its domain.
	 */
	if ((io->flags & (IO_OUT | IO_FIRST | IO_POLLED)) == IO_OUT)
		record(kyber_of(io->queue->sched), io, now);
	budget_complete(io, now, wake);
}

/* -------------------------------------------------------------- slow work */

static void resize(struct kyber_fair *k, struct wake *wake)
{
	u32 op;

	for (op = 0; op < DOMAINS; op++) {
		struct slots *slots = &k->budget.slots[op];
		u32 depth = k->domains.domain[op].depth;

		if (slots->depth != depth)
			slots_resize(slots, depth, wake);
	}
}

static void kyber_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct kyber_fair *k = kyber_of(s);

	if (domains_adapt(&k->domains, now))
		resize(k, wake);
	round_tick(s, now, wake);
	/* round_tick() asks for another tick while a flow is active. */
	if (wake->at_ns)
		wake_at(wake, k->domains.next_ns);
}

static void set_params(struct kyber_fair *k, const struct sched_params *p)
{
	bool conserving = budget_params(p)->work_conserving;

	WRITE_ONCE(k->domains.domain[IO_READ].target_ns,
		   kyber_params(p)->read_lat_us * 1000ULL);
	WRITE_ONCE(k->domains.domain[IO_WRITE].target_ns,
		   kyber_params(p)->write_lat_us * 1000ULL);
	budget_set_rule(&k->budget,
			conserving ? BUDGET_CONSERVING : BUDGET_ALL_EXHAUSTED);
}

static void kyber_tune(struct sched *s, const struct sched_params *p,
		       struct wake *wake)
{
	if (p)
		set_params(kyber_of(s), p);
	budget_tune(s, p, wake);
}

/* ------------------------------------------------------------------- life */

static const struct budget_ops kyber_budget_ops = {
	.nr_domains	= DOMAINS,
	.batch		= {			/* [K] */
		[IO_READ]	= 16,
		[IO_WRITE]	= 8,
		[IO_DISCARD]	= 1,
		[IO_OTHER]	= 1,
	},
	.domain		= kyber_domain,
	.charge		= kyber_charge,
	.predict	= kyber_predict,
};
static_assert((u32)DOMAINS <= (u32)BUDGET_DOMAINS);

static int kyber_init(struct sched *s)
{
	u32 depth[DOMAINS], op;
	struct kyber_fair *k = kyber_of(s);
	int ret;

	ret = domains_init(&k->domains, s->nr_queues);
	if (ret)
		return ret;
	for (op = 0; op < DOMAINS; op++)
		depth[op] = domain_depth_most(op);
	ret = budget_init(&k->budget, s, &kyber_budget_ops, TOTAL_FIRST, depth);
	if (ret)
		domains_deinit(&k->domains);
	else
		set_params(k, &s->params);
	return ret;
}

static void kyber_exit(struct sched *s)
{
	struct kyber_fair *k = kyber_of(s);

	budget_deinit(&k->budget);
	domains_deinit(&k->domains);
}

/* ------------------------------------------------------------- for people */

static void report_domain(const struct kyber_fair *k, enum io_op op,
			  struct report *r)
{
	const struct domain *d = &k->domains.domain[op];
	const struct slots *slots = &k->budget.slots[op];

	report_part(r, "domain_depth", domain_name(op),
		    READ_ONCE(slots->depth));
	report_part(r, "domain_used", domain_name(op), slots_used(slots));
	report_part(r, "domain_mean_ns", domain_name(op),
		    (s64)domain_mean_ns(d));
	report_part(r, "domain_p90_ns", domain_name(op), (s64)d->p90_ns);
	report_part(r, "domain_p99_ns", domain_name(op), (s64)d->p99_ns);
}

static void kyber_report(const struct sched *s, struct report *r)
{
	const struct kyber_fair *k = kyber_of(s);
	u32 op;

	for (op = 0; op < DOMAINS; op++)
		report_domain(k, op, r);
	report_number(r, "write_cost_permille",
		      (s64)((READ_ONCE(k->domains.ratio) * 1000ULL) >>
			    RATIO_SHIFT));
	report_number(r, "predicted", (s64)READ_ONCE(k->predicted));
	budget_report(s, r);
}

static void kyber_report_flow(const struct flow *f, struct report *r)
{
	budget_report_flow(f, r);
	report_number(r, "throttled_us",
		      (s64)div64_u64(READ_ONCE(kyber_flow_of(f)->throttled_ns),
				     1000));
}

static const struct tunable kyber_tunables[] = {
	{ TUNABLE_DEPTH_AUTO, .research = true },
	{ TUNABLE_BUDGET_PERIOD("period_ms") },
	{ TUNABLE_U32("read_lat_us", struct kyber_params, read_lat_us, 0,
		      10000000, 1, 0) },
	{ TUNABLE_U32("write_lat_us", struct kyber_params, write_lat_us, 0,
		      10000000, 1, 0) },
	{ TUNABLE_ISOLATION },
	{ TUNABLE_WORK_CONSERVING },
	{
		TUNABLE_NAMES("predict", struct kyber_params, predict,
			      predict_names, KYBER_TOTAL),
		.research = true,
	},
	{ }
};

const struct sched_ops kyber_fair_ops = {
	.name		= "kyber-fair",
	.tunables	= kyber_tunables,
	.bytes			= sizeof(struct kyber_fair),
	.queue_bytes		= sizeof(struct budget_queue),
	.params_bytes		= sizeof(struct kyber_params),
	.flow_bytes	= sizeof(struct kyber_flow),
	.flow_queue_bytes = BUDGET_FLOW_QUEUE_BYTES(DOMAINS),
	.init		= kyber_init,
	.exit		= kyber_exit,
	.insert		= budget_insert,
	.merge		= budget_merge,
	.dispatch	= budget_dispatch,
	.block		= budget_block,
	.send		= budget_send,
	.complete	= kyber_complete,
	.requeue	= budget_requeue,
	.tick		= kyber_tick,
	.tune		= kyber_tune,
	.report		= kyber_report,
	.report_flow	= kyber_report_flow,
};
