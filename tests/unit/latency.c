// SPDX-License-Identifier: GPL-2.0
/*
 * Histograms of latencies: the percentiles against a sorted array, and the
 * halves, masks and goals with exact figures.
 */
#include "unit.h"
#include "sched/core/sched.h"
#include "sched/isolation/latency.h"
#include "sched/core/log_bucket.h"

enum {
	VALUES	= 3000,
	US	= 1000,
	SECOND	= 1000 * 1000 * 1000,
};

/* A flow of a scheduler, which the fixture makes active. */
struct fixture {
	struct sched sched;
	struct flow *root, *flow;
	u64 now;
};

static const struct sched_ops plain_ops = { .name = "plain" };

static void fixture_init(struct fixture *b)
{
	struct flow_start start;

	*b = (struct fixture){ .now = 100ULL * SECOND };
	b->sched.ops = &plain_ops;
	b->sched.nr_queues = 2;
	share_tree_init(&b->sched.share);
	port_lock_init(&b->sched.active_lock);
	b->root = port_zalloc(flow_size(&plain_ops, 2));
	flow_init(b->root, &b->sched, NULL, WEIGHT_DEFAULT);
	b->flow = port_zalloc(flow_size(&plain_ops, 2));
	flow_init(b->flow, &b->sched, b->root, WEIGHT_DEFAULT);
	flow_charge(b->flow, 4096, 0, false, &start);
	latency_tick(&b->sched, b->now);
}

static void fixture_deinit(struct fixture *b)
{
	flow_exit(b->flow);
	flow_exit(b->root);
	port_free(b->flow);
	port_free(b->root);
}

/* A request took @ns; tick finds it by the counter of requests done. */
static void sample(struct fixture *b, u64 ns)
{
	atomic64_inc(&b->flow->fq[0]->done);
	latency_record(b->flow, ns);
}

/* A tick after each quarter of a second of @ns. */
static void pass(struct fixture *b, u64 ns)
{
	u64 until = b->now + ns;

	while (b->now < until) {
		b->now += LATENCY_TICK_NS;
		latency_tick(&b->sched, b->now);
	}
}

/* @n samples of @ns, then a second. */
static void second(struct fixture *b, u32 n, u64 ns)
{
	while (n--)
		sample(b, ns);
	pass(b, SECOND);
}

TEST(buckets_begin_where_they_should)
{
	static const u64 start[] = { 0,	 1,  2,	 3,  4,	 5,  6,	 7, 8,
				     10, 12, 14, 16, 20, 24, 28, 32 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(start); i++) {
		assert_int_equal(log_bucket_start(i, 2), start[i]);
		assert_int_equal(log_bucket(start[i], 2), i);
		if (i)
			assert_int_equal(log_bucket(start[i] - 1, 2), i - 1);
	}
	/* 2^24 units of 1024 ns are 17.2 s, the start of the last bucket. */
	assert_int_equal(log_bucket(1 << 24, 2), LATENCY_WORDS - 1);
}

static int by_size(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* A percentile is within a fourth of the one of a sorted array. */
TEST(percentiles_match_a_sorted_array)
{
	static const u32 permille[] = { 1, 10, 500, 900, 990, 999 };
	struct random r = random_seeded("unit/latency");
	static u64 value[VALUES];
	u32 bits, i;

	for (bits = 12; bits <= 34; bits += 2) {
		struct fixture b;

		fixture_init(&b);
		for (i = 0; i < VALUES; i++) {
			value[i] = random_next(&r) >> (64 - bits);
			sample(&b, value[i]);
		}
		qsort(value, VALUES, sizeof(*value), by_size);
		for (i = 0; i < ARRAY_SIZE(permille); i++) {
			u64 rank = (VALUES * permille[i] + 999ULL) / 1000;
			u64 truth = value[rank - 1];
			u64 got = latency_percentile(b.flow, permille[i]);
			u64 most = max(truth / 4, (u64)LATENCY_UNIT_NS);

			if (got + most < truth || got > truth + most)
				fail_msg("p%u is %llu, the histogram says %llu",
					 permille[i], truth, got);
		}
		fixture_deinit(&b);
	}
}

/* 100 values in the bucket [8192, 10240): each is a hundredth further on. */
TEST(percentile_is_interpolated)
{
	struct fixture b;
	u32 i;

	fixture_init(&b);
	assert_int_equal(latency_percentile(b.flow, 500), 0);
	for (i = 0; i < 100; i++)
		sample(&b, 9000);
	assert_int_equal(latency_percentile(b.flow, 10), 8192 + 20);
	assert_int_equal(latency_percentile(b.flow, 500), 8192 + 1024);
	assert_int_equal(latency_percentile(b.flow, 990), 8192 + 2027);
	/* A hundred above, in [16384, 20480): the median stays below. */
	for (i = 0; i < 100; i++)
		sample(&b, 17000);
	assert_int_equal(latency_percentile(b.flow, 500), 10240);
	assert_int_equal(latency_percentile(b.flow, 505), 16384 + 40);
	fixture_deinit(&b);
}

TEST(longest_latency_is_in_the_last_bucket)
{
	struct fixture b;

	fixture_init(&b);
	sample(&b, 1ULL << 60);
	assert_int_equal(latency_percentile(b.flow, 990), 1ULL << 34);
	fixture_deinit(&b);
}

/* Samples count in their half and in the next, and then no more. */
TEST(halves_forget)
{
	struct fixture b;
	u32 i;

	fixture_init(&b);
	second(&b, 1000, 9000);
	assert_int_equal(latency_percentile(b.flow, 500), 9216);
	for (i = 0; i < 1000; i++)
		sample(&b, 17000);
	pass(&b, 3ULL * LATENCY_TICK_NS);
	assert_int_equal(latency_percentile(b.flow, 500), 10240);
	assert_int_equal(latency_percentile(b.flow, 990), 16384 + 4014);
	/* The second half ends, and the first one is forgotten. */
	pass(&b, LATENCY_TICK_NS);
	assert_int_equal(latency_percentile(b.flow, 500), 16384 + 2048);
	assert_int_equal(latency_percentile(b.flow, 1), 16384 + 4);
	fixture_deinit(&b);
}

/* With fewer than 200 samples a half lasts up to ten seconds. */
TEST(half_of_a_slow_flow_is_longer)
{
	struct fixture b;
	u32 i;

	fixture_init(&b);
	for (i = 0; i < 3; i++) {
		second(&b, 60, 9000);
		assert_int_equal(b.flow->latency.half, 0);
	}
	second(&b, 20, 9000);
	assert_int_equal(b.flow->latency.half, 1);
	for (i = 0; i < 9; i++) {
		second(&b, 1, 9000);
		assert_int_equal(b.flow->latency.half, 1);
	}
	second(&b, 1, 9000);
	assert_int_equal(b.flow->latency.half, 0);
	/* A half without a sample does not end: the figures stand. */
	pass(&b, 100ULL * SECOND);
	assert_int_equal(b.flow->latency.half, 0);
	assert_int_equal(latency_percentile(b.flow, 500), 9216);
	fixture_deinit(&b);
}

/* Time in which no tick came is a time without I/O. */
TEST(pause_of_all_flows_does_not_count)
{
	struct fixture b;

	fixture_init(&b);
	second(&b, 10, 9000);
	b.now += 60ULL * SECOND;
	latency_tick(&b.sched, b.now);
	assert_int_equal(b.flow->latency.half_ns, SECOND);
	fixture_deinit(&b);
}

/* 500 samples in a quarter of a second are the most. */
TEST(mask_follows_the_rate)
{
	static const struct {
		u64 done;
		u32 mask;
	} c[] = {
		{ 1, 0 },
		{ 500, 0 },
		{ 1001, 1 },
		{ 1002, 3 },
		{ 2500, 7 },
		/* It stays while the flow completes nothing. */
		{ 20000, 63 },
		{ 0, 63 },
		{ 0, 63 },
		{ 500, 0 },
	};
	struct fixture b;
	u32 i;

	fixture_init(&b);
	assert_int_equal(b.flow->latency.mask, LATENCY_FIRST_MASK);
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		atomic64_add((s64)c[i].done, &b.flow->fq[i % 2]->done);
		pass(&b, LATENCY_TICK_NS);
		assert_int_equal(b.flow->latency.mask, c[i].mask);
	}
	fixture_deinit(&b);
}

/* @done requests took @ns each, a quarter of it outside the drive. */
static void serve_in(struct fixture *b, u32 done, u64 ns)
{
	struct flow_queue *fq = b->flow->fq[0];
	u32 i;

	for (i = 0; i < done; i++)
		sample(b, ns);
	fq->dispatched += done;
	fq->wait_ns += done * ns / 4;
	atomic64_add((s64)(done * ns * 3 / 4), &fq->service_ns);
}

static u64 goal_mean(const struct fixture *b)
{
	return latency_goal_mean(&b->flow->latency);
}

/*
 * 1000 requests of 300 us: the 990th is at 327.02 us, for it is interpolated.  So
 * the mean is to be 500 * 300 / 327.02 us.
 */
TEST(goal_is_turned_into_one_for_the_mean)
{
	u64 p99, mean;
	struct fixture b;

	fixture_init(&b);
	serve_in(&b, 1000, 300 * US);
	pass(&b, LATENCY_TICK_NS);
	assert_int_equal(goal_mean(&b), 0);
	latency_set_goal(b.flow, 500 * US, 990);
	/* Nothing is known of it before requests are done. */
	pass(&b, LATENCY_TICK_NS);
	assert_int_equal(goal_mean(&b), 0);
	serve_in(&b, 1000, 300 * US);
	pass(&b, LATENCY_TICK_NS);
	p99 = latency_percentile(b.flow, 990);
	assert_in_range(p99, 327020, 327029);
	mean = goal_mean(&b);
	assert_int_equal(mean, 500ULL * US * 300 * US / p99);
	/* Without requests it stands. */
	pass(&b, LATENCY_TICK_NS);
	assert_int_equal(goal_mean(&b), mean);
	latency_set_goal(b.flow, 0, 990);
	assert_int_equal(goal_mean(&b), 0);
	fixture_deinit(&b);
}

/* One request in ten takes 3 ms, so the mean may be less than half of the goal. */
TEST(goal_of_a_long_tail_is_a_short_mean)
{
	struct fixture b;
	u64 p99;

	fixture_init(&b);
	latency_set_goal(b.flow, 500 * US, 990);
	serve_in(&b, 900, 100 * US);
	serve_in(&b, 100, 3000 * US);
	pass(&b, LATENCY_TICK_NS);
	p99 = latency_percentile(b.flow, 990);
	assert_in_range(p99, 2900 * US, 3500 * US);
	assert_int_equal(goal_mean(&b), 500ULL * US * 390 * US / p99);
	fixture_deinit(&b);
}

struct numbers {
	struct report report;
	s64 part_ppm, inside, waiting, cost_inside, p50_us;
};

static void put(struct report *r, const char *name, const char *part, s64 value)
{
	struct numbers *n = container_of(r, struct numbers, report);

	assert_null(part);
	if (!strcmp(name, "part_ppm"))
		n->part_ppm = value;
	if (!strcmp(name, "inside_x100"))
		n->inside = value;
	if (!strcmp(name, "waiting_x100"))
		n->waiting = value;
	if (!strcmp(name, "cost_inside"))
		n->cost_inside = value;
	if (!strcmp(name, "p50_us"))
		n->p50_us = value;
}

static struct numbers report_of(const struct flow *f)
{
	struct numbers n = { .report.put = put };

	latency_report_flow(f, &n.report);
	return n;
}

/* @done requests of @cost leave the drive, each after 1 ms out and 2 ms in. */
static void serve(struct flow *f, u32 done, u32 cost)
{
	struct flow_queue *fq = f->fq[1];

	fq->dispatched += done;
	fq->wait_ns += done * 1000000ULL;
	atomic64_add(done, &fq->done);
	atomic64_add((s64)done * cost, &fq->cost);
	atomic64_add(done * 2000000LL, &fq->service_ns);
}

/* 250 requests in 250 ms: one waits and two are in the drive, on average. */
TEST(usage_is_that_of_the_last_tick)
{
	struct flow_start start;
	struct fixture b;
	struct numbers n;

	fixture_init(&b);
	flow_charge(b.root, 4096, 0, false, &start);
	serve(b.flow, 250, 4096);
	serve(b.root, 750, 4096);
	latency_record(b.flow, 3000 * US);
	b.flow->fq[0]->dispatched += 3;
	pass(&b, LATENCY_TICK_NS);
	n = report_of(b.flow);
	assert_int_equal(n.part_ppm, 250000);
	assert_int_equal(n.inside, 200);
	assert_int_equal(n.waiting, 100);
	assert_int_equal(n.cost_inside, 3 * 4096);
	assert_int_equal(n.p50_us, 3145);
	/* No request completes before the next tick.  Three are in the drive. */
	pass(&b, LATENCY_TICK_NS);
	n = report_of(b.flow);
	assert_int_equal(n.part_ppm, 0);
	assert_int_equal(n.inside, 0);
	assert_int_equal(n.cost_inside, 3 * 4096);
	/* An idle flow uses nothing, whatever it did last. */
	serve(b.flow, 250, 4096);
	pass(&b, LATENCY_TICK_NS);
	assert_int_equal(report_of(b.flow).part_ppm, 1000000);
	atomic64_set(&b.flow->active, 0);
	assert_int_equal(report_of(b.flow).part_ppm, 0);
	assert_int_equal(report_of(b.flow).inside, 0);
	atomic64_set(&b.flow->active, 1);
	fixture_deinit(&b);
}
