// SPDX-License-Identifier: GPL-2.0
/* Histograms of latencies, and goals; latency.h has the model. */
#include "latency.h"
#include "core/log_bucket.h"
#include "core/report.h"
#include "core/sched.h"

enum {
	HALF_BITS	= 32,
	BOTH_HALVES	= 2,
	NS_PER_SEC	= 1000 * 1000 * 1000,
};

void latency_init(struct flow_latency *l)
{
	WRITE_ONCE(l->mask, LATENCY_FIRST_MASK);
}

void latency_record(struct flow *f, u64 ns)
{
	struct flow_latency *l = &f->latency;
	u32 word = log_bucket(ns / LATENCY_UNIT_NS, LATENCY_SHIFT);

	atomic64_add((s64)BIT_ULL(HALF_BITS * READ_ONCE(l->half)),
		     &l->word[min(word, (u32)LATENCY_WORDS - 1)]);
}

/* ------------------------------------------------------------- percentiles */

/* Returns the samples of one half, or of both, in @word. */
static u64 samples_in(const struct flow_latency *l, u32 word, u32 half)
{
	u64 value = (u64)atomic64_read(&l->word[word]);
	u64 low = (u32)value, high = value >> HALF_BITS;

	if (half == BOTH_HALVES)
		return low + high;
	return half ? high : low;
}

static u64 samples(const struct flow_latency *l, u32 half)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < LATENCY_WORDS; i++)
		sum += samples_in(l, i, half);
	return sum;
}

static u64 percentile(const struct flow_latency *l, u32 half, u32 permille)
{
	u64 count = samples(l, half), before = 0, n = 0, start, end;
	u64 rank = max(div64_u64(count * permille + 999, 1000), 1ULL);
	u32 i;

	if (!count)
		return 0;
	for (i = 0; i < LATENCY_WORDS - 1; i++) {
		n = samples_in(l, i, half);
		if (before + n >= rank)
			break;
		before += n;
	}
	start = log_bucket_start(i, LATENCY_SHIFT) * LATENCY_UNIT_NS;
	end = log_bucket_start(i + 1, LATENCY_SHIFT) * LATENCY_UNIT_NS;
	/* The last bucket has no end, and samples may have been cleared. */
	if (i == LATENCY_WORDS - 1 || before + n < rank)
		return start;
	return start + div64_u64((end - start) * (rank - before), n);
}

u64 latency_percentile(const struct flow *f, u32 permille)
{
	return percentile(&f->latency, BOTH_HALVES, permille);
}

/* -------------------------------------------------------------------- goals */

void latency_set_goal(struct flow *f, u64 ns, u32 permille)
{
	WRITE_ONCE(f->latency.goal_permille, (u16)permille);
	WRITE_ONCE(f->latency.goal_ns, ns);
}

bool latency_has_goal(const struct flow *f)
{
	return READ_ONCE(f->latency.goal_ns);
}

/* @mean: of the latencies since the last tick. */
static void set_goal_mean(struct flow_latency *l, u64 mean)
{
	u64 goal = READ_ONCE(l->goal_ns);
	u64 ns = percentile(l, BOTH_HALVES, READ_ONCE(l->goal_permille));

	if (ns && mean)
		l->goal_mean_ns = mul_u64_u64_div_u64(goal, mean, ns);
}

/* --------------------------------------------------------------------- tick */

/* A sample that comes meanwhile stays in the half. */
static void clear_half(struct flow_latency *l, u32 half)
{
	u32 i;

	for (i = 0; i < LATENCY_WORDS; i++) {
		u64 n = samples_in(l, i, half);

		if (n)
			atomic64_sub((s64)(n << (HALF_BITS * half)),
				     &l->word[i]);
	}
}

static void end_half(struct flow_latency *l, u64 count)
{
	u32 other = !l->half;

	if (!count || l->half_ns < LATENCY_HALF_NS ||
	    (count < LATENCY_ENOUGH && l->half_ns < LATENCY_HALF_MOST_NS))
		return;
	clear_half(l, other);
	WRITE_ONCE(l->half, other);
	l->half_ns = 0;
}

/* The flow completed @done requests in @ns.  After a pause it is often as fast as before. */
static void set_mask(struct flow_latency *l, u64 done, u64 ns)
{
	u64 most = div64_u64(LATENCY_SAMPLES * ns, NS_PER_SEC);
	u32 mask = 0;

	if (!done)
		return;
	while (done / (mask + 1ULL) > most)
		mask = 2 * mask + 1;
	if (mask != l->mask)
		WRITE_ONCE(l->mask, mask);
}

static u32 mean_x100(u64 sum_ns, u64 ns)
{
	return (u32)min(div64_u64(100 * sum_ns, ns), (u64)(u32)-1);
}

static void tick_flow(struct flow *f)
{
	u64 done, ns = f->sched->latency_span_ns;
	struct flow_latency *l = &f->latency;
	const struct flow_totals t = f->counted;

	done = t.done - l->seen.done;
	l->cost = t.cost - l->seen.cost;
	set_mask(l, done, ns);
	l->half_ns += ns;
	end_half(l, samples(l, l->half));
	WRITE_ONCE(l->usage.inside_x100,
		   mean_x100(t.service_ns - l->seen.service_ns, ns));
	WRITE_ONCE(l->usage.waiting_x100,
		   mean_x100(t.wait_ns - l->seen.wait_ns, ns));
	if (done)
		WRITE_ONCE(l->usage.mean_cost, (u32)div64_u64(l->cost, done));
	if (done && latency_has_goal(f))
		set_goal_mean(l, div64_u64(t.service_ns - l->seen.service_ns +
						   t.wait_ns - l->seen.wait_ns,
					   done));
	l->seen.done = t.done;
	l->seen.cost = t.cost;
	l->seen.wait_ns = t.wait_ns;
	l->seen.service_ns = t.service_ns;
	f->sched->latency_cost += l->cost;
}

static void set_part(struct flow *f)
{
	u64 sum = f->sched->latency_cost, part = 0;

	/* A flow that became active meanwhile has the work of an older tick. */
	if (sum)
		part = mul_u64_u64_div_u64(min(f->latency.cost, sum), 1000000,
					   sum);
	WRITE_ONCE(f->latency.usage.part_ppm, (u32)part);
}

void latency_tick(struct sched *s, u64 now)
{
	u64 ns = now - s->latency_ns;
	struct flow_walk w;
	struct flow *f;

	if (ns < LATENCY_TICK_NS)
		return;
	s->latency_ns = now;
	/* Was no flow active meanwhile? */
	if (ns > 4ULL * LATENCY_TICK_NS)
		return;
	s->latency_span_ns = ns;
	s->latency_cost = 0;
	flows_count(s);
	for_each_active_flow(f, &w, s)
		tick_flow(f);
	for_each_active_flow(f, &w, s)
		set_part(f);
}

/* ------------------------------------------------------------------ reports */

static void report_usage(const struct flow *f, struct report *r)
{
	const struct flow_usage *u = &f->latency.usage;
	bool active = atomic64_read(&f->active);
	struct flow_totals t;
	u64 inside;

	flow_totals(f, &t);
	inside = t.dispatched > t.done ? t.dispatched - t.done : 0;
	report_number(r, "part_ppm", active ? READ_ONCE(u->part_ppm) : 0);
	report_number(r, "inside_x100", active ? READ_ONCE(u->inside_x100) : 0);
	report_number(r, "waiting_x100",
		      active ? READ_ONCE(u->waiting_x100) : 0);
	report_number(r, "cost_inside",
		      (s64)(inside * READ_ONCE(u->mean_cost)));
	report_number(r, "done", (s64)t.done);
	report_number(r, "drive_us", (s64)div64_u64(t.service_ns, 1000));
	report_number(r, "cost", (s64)t.cost);
}

void latency_report_flow(const struct flow *f, struct report *r)
{
	report_number(r, "p50_us",
		      (s64)div64_u64(latency_percentile(f, 500), 1000));
	report_number(r, "p99_us",
		      (s64)div64_u64(latency_percentile(f, 990), 1000));
	report_number(r, "goal_us",
		      (s64)div64_u64(READ_ONCE(f->latency.goal_ns), 1000));
	report_usage(f, r);
}
