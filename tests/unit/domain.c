// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "sched/kyber_fair/domain.h"

#define US	1000ULL
#define MS	(1000 * US)

enum { QUEUES = 3 };

struct fixture {
	struct domains d;
	u64 now;
};

static struct fixture *fixture_open(void)
{
	struct fixture *b = port_zalloc(sizeof(*b));

	assert_non_null(b);
	assert_int_equal(domains_init(&b->d, QUEUES), 0);
	/* Those of Kyber. */
	b->d.domain[IO_READ].target_ns = 2 * MS;
	b->d.domain[IO_WRITE].target_ns = 10 * MS;
	/* The clock of a host does not begin with the scheduler. */
	b->now = 3600 * 1000 * MS;
	domains_adapt(&b->d, b->now);
	return b;
}

static void fixture_close(struct fixture *b)
{
	domains_deinit(&b->d);
	port_free(b);
}

static void done(struct fixture *b, enum io_op op, u32 n, u64 device_ns,
		 u64 total_ns)
{
	while (n--)
		domain_done(&b->d, op, n % QUEUES, device_ns, total_ns);
}

static void next_period(struct fixture *b)
{
	b->now += DOMAIN_PERIOD_NS;
	assert_true(domains_adapt(&b->d, b->now));
}

static u32 depth(const struct fixture *b, enum io_op op)
{
	return b->d.domain[op].depth;
}

/* ------------------------------------------------------------------- ratio */

TEST(write_cost_follows_the_write_time)
{
	static const struct {
		u64 read_ns, write_ns;
		u32 ratio;
	} table[] = {
		/* 0 */ { 10 * US, 30 * US, 3 * RATIO_ONE },
		/* 1 */ { 10 * MS, 30 * MS, 3 * RATIO_ONE },
		/* 2 */ { 10 * US, 10 * MS, 1000 * RATIO_ONE },
		/* 3 */ { 10 * US, 11 * US, RATIO_ONE + RATIO_ONE / 10 },
		/* 4 */ { 10 * MS, 11 * MS, RATIO_ONE + RATIO_ONE / 10 },
		/* 5 */ { 80 * US, 20 * US, RATIO_ONE / 4 },
		/* 6 */ { 1000 * MS, 1, RATIO_LEAST },
		/* 7 */ { 1, 1000 * MS, RATIO_MOST },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct fixture *b = fixture_open();

		done(b, IO_READ, 600, table[i].read_ns, table[i].read_ns);
		done(b, IO_WRITE, 600, table[i].write_ns, table[i].write_ns);
		next_period(b);
		if (b->d.ratio != table[i].ratio)
			fail_msg("row %zu: ratio %u instead of %u", i,
				 b->d.ratio, table[i].ratio);
		/* A write is never free, however fast it is. */
		assert_true(domain_write_cost(&b->d, COST_LEAST) > 0);
		fixture_close(b);
	}
}

TEST(ratio_needs_reads_and_writes)
{
	struct fixture *b = fixture_open();
	struct domains d = { 0 };

	assert_int_equal(domains_init(&d, QUEUES), 0);
	assert_int_equal(d.ratio, RATIO_ONE);
	domains_deinit(&d);
	assert_int_equal(b->d.ratio, RATIO_ONE);
	done(b, IO_WRITE, 600, 5 * MS, 5 * MS);
	next_period(b);
	assert_int_equal(b->d.ratio, RATIO_ONE);
	assert_int_equal(domain_write_cost(&b->d, 4096), 4096);
	fixture_close(b);
}

/* Writes become ten times as slow; the ratio follows within a second. */
TEST(ratio_follows_a_change_within_a_second)
{
	struct fixture *b = fixture_open();
	u32 before, i;

	for (i = 0; i < 10; i++) {
		done(b, IO_READ, 100, 50 * US, 50 * US);
		done(b, IO_WRITE, 100, 100 * US, 100 * US);
		next_period(b);
	}
	assert_in_range(b->d.ratio, 2 * RATIO_ONE - 8, 2 * RATIO_ONE + 8);
	for (i = 0; i < 10; i++) {
		before = b->d.ratio;
		done(b, IO_READ, 100, 50 * US, 50 * US);
		done(b, IO_WRITE, 100, 1000 * US, 1000 * US);
		next_period(b);
		assert_true(b->d.ratio > before);
	}
	assert_in_range(b->d.ratio, 18 * RATIO_ONE, 20 * RATIO_ONE);
	fixture_close(b);
}

TEST(period_without_writes_keeps_the_ratio)
{
	struct fixture *b = fixture_open();
	u32 i;

	done(b, IO_READ, 10, 50 * US, 50 * US);
	done(b, IO_WRITE, 10, 200 * US, 200 * US);
	next_period(b);
	for (i = 0; i < 100; i++) {
		done(b, IO_READ, 10, 50 * US, 50 * US);
		next_period(b);
	}
	assert_in_range(b->d.ratio, 4 * RATIO_ONE - 8, 4 * RATIO_ONE + 8);
	fixture_close(b);
}

/* ------------------------------------------------------------------- depth */

/* Halves the depth of writes. */
static void halve(struct fixture *b)
{
	/* Reads wait long, so there is congestion: only writes give way. */
	done(b, IO_READ, 600, 3 * MS, 9 * MS);
	done(b, IO_WRITE, 600, 4 * MS, 5 * MS);
	next_period(b);
}

TEST(depths_begin_at_their_maximum)
{
	struct fixture *b = fixture_open();

	assert_int_equal(depth(b, IO_READ), 256);
	assert_int_equal(depth(b, IO_WRITE), 128);
	assert_int_equal(depth(b, IO_DISCARD), 64);
	assert_int_equal(depth(b, IO_OTHER), 16);
	fixture_close(b);
}

TEST(domain_within_target_shrinks_under_congestion)
{
	struct fixture *b = fixture_open();

	halve(b);
	assert_int_equal(depth(b, IO_READ), 256);
	/* Writes took 5 ms of 10; a bucket is up to an eighth wide. */
	assert_in_range(depth(b, IO_WRITE), 64, 72);
	fixture_close(b);
}

/* Without one of the targets no latency is too long, and lost slots come back. */
TEST(depths_are_the_greatest_without_a_target)
{
	struct fixture *b = fixture_open();
	u32 op;

	done(b, IO_DISCARD, 600, 1 * MS, 1 * MS);
	halve(b);
	assert_true(depth(b, IO_WRITE) < 128);
	assert_true(depth(b, IO_DISCARD) < 64);
	for (op = IO_READ; op <= IO_WRITE; op++) {
		u64 target_ns = b->d.domain[op].target_ns;

		b->d.domain[op].target_ns = 0;
		halve(b);
		assert_int_equal(depth(b, IO_READ), 256);
		assert_int_equal(depth(b, IO_WRITE), 128);
		assert_int_equal(depth(b, IO_DISCARD), 64);
		b->d.domain[op].target_ns = target_ns;
	}
	fixture_close(b);
}

TEST(no_domain_shrinks_without_congestion)
{
	struct fixture *b = fixture_open();

	done(b, IO_READ, 600, 100 * US, 100 * US);
	done(b, IO_WRITE, 600, 100 * US, 100 * US);
	next_period(b);
	assert_int_equal(depth(b, IO_READ), 256);
	assert_int_equal(depth(b, IO_WRITE), 128);
	fixture_close(b);
}

/* Writes are overdue without congestion: they wait for their own slots. */
TEST(overdue_domain_grows_without_congestion)
{
	struct fixture *b = fixture_open();
	u32 before;

	halve(b);
	before = depth(b, IO_WRITE);
	done(b, IO_READ, 600, 100 * US, 100 * US);
	done(b, IO_WRITE, 600, 4 * MS, 15 * MS);
	next_period(b);
	assert_in_range(depth(b, IO_WRITE), before * 14 / 10, 128);
	fixture_close(b);
}

TEST(depths_stay_in_range)
{
	struct fixture *b = fixture_open();
	u32 i;

	for (i = 0; i < 20; i++) {
		done(b, IO_READ, 600, 90 * MS, 90 * MS);
		done(b, IO_WRITE, 600, 1 * US, 1 * US);
		next_period(b);
		assert_int_equal(depth(b, IO_READ), 256);
	}
	assert_int_equal(depth(b, IO_WRITE), 1);
	/* The depth at most doubles in one period. */
	for (i = 0; i < 20; i++) {
		u32 before = depth(b, IO_WRITE);

		done(b, IO_WRITE, 600, 1 * US, 900 * MS);
		next_period(b);
		assert_in_range(depth(b, IO_WRITE), before, 2 * before);
	}
	assert_int_equal(depth(b, IO_WRITE), 128);
	fixture_close(b);
}

TEST(few_requests_decide_only_after_a_second)
{
	struct fixture *b = fixture_open();
	u32 i;

	for (i = 0; i < 9; i++) {
		done(b, IO_READ, 10, 3 * MS, 9 * MS);
		done(b, IO_WRITE, 10, 4 * MS, 4 * MS);
		next_period(b);
		assert_int_equal(depth(b, IO_WRITE), 128);
	}
	next_period(b);
	assert_in_range(depth(b, IO_WRITE), 40, 60);
	fixture_close(b);
}

/* After a judgement of few requests the second begins anew. */
TEST(patience_begins_anew)
{
	struct fixture *b = fixture_open();
	u32 i, after;

	for (i = 0; i < 10; i++) {
		done(b, IO_READ, 10, 3 * MS, 9 * MS);
		done(b, IO_WRITE, 10, 4 * MS, 4 * MS);
		next_period(b);
	}
	after = depth(b, IO_WRITE);
	assert_true(after < 128);
	for (i = 0; i < 9; i++) {
		done(b, IO_READ, 10, 3 * MS, 9 * MS);
		done(b, IO_WRITE, 10, 4 * MS, 4 * MS);
		next_period(b);
		assert_int_equal(depth(b, IO_WRITE), after);
	}
	next_period(b);
	assert_true(depth(b, IO_WRITE) < after);
	fixture_close(b);
}

TEST(five_hundred_requests_decide_at_once)
{
	struct fixture *b = fixture_open();

	done(b, IO_READ, DOMAIN_SAMPLES - 1, 3 * MS, 9 * MS);
	done(b, IO_WRITE, DOMAIN_SAMPLES, 4 * MS, 5 * MS);
	next_period(b);
	assert_int_equal(b->d.domain[IO_READ].p99_ns, 0);
	assert_true(b->d.domain[IO_WRITE].p99_ns > 0);
	done(b, IO_READ, 1, 3 * MS, 9 * MS);
	next_period(b);
	assert_true(b->d.domain[IO_READ].p99_ns > 0);
	fixture_close(b);
}

/* A slow time that was judged is forgotten. */
TEST(percentiles_are_of_new_requests)
{
	struct fixture *b = fixture_open();
	const struct domain *reads = &b->d.domain[IO_READ];

	done(b, IO_READ, 600, 3 * MS, 9 * MS);
	next_period(b);
	assert_true(reads->p90_ns >= 3 * MS && reads->p99_ns >= 9 * MS);
	done(b, IO_READ, 600, 100 * US, 200 * US);
	next_period(b);
	assert_true(reads->p90_ns < 130 * US && reads->p99_ns < 260 * US);
	fixture_close(b);
}

/* A domain that is exactly at its target has met it. */
TEST(target_is_met_exactly)
{
	struct fixture *b = fixture_open();
	struct domain *reads = &b->d.domain[IO_READ];
	u32 before;

	halve(b);
	before = depth(b, IO_WRITE);
	reads->target_ns = reads->p90_ns;
	done(b, IO_READ, 600, 3 * MS, 3 * MS);
	done(b, IO_WRITE, 600, 4 * MS, 5 * MS);
	next_period(b);
	assert_int_equal(reads->p90_ns, reads->target_ns);
	assert_int_equal(reads->p99_ns, reads->target_ns);
	assert_int_equal(depth(b, IO_WRITE), before);
	fixture_close(b);
}

TEST(depths_adapt_once_per_period)
{
	struct fixture *b = fixture_open();

	assert_false(domains_adapt(&b->d, b->now + DOMAIN_PERIOD_NS - 1));
	assert_true(domains_adapt(&b->d, b->now + DOMAIN_PERIOD_NS));
	fixture_close(b);
}
