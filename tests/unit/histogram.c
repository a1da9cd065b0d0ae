// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "sched/kyber_fair/histogram.h"

enum {
	VALUES	= 5000,
};

static int by_size(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* The model: the least value that @percent of the values do not exceed. */
static u64 sorted_percentile(const u64 *sorted, size_t n, u32 percent)
{
	size_t rank = (n * percent + 99) / 100;

	return sorted[rank ? rank - 1 : 0];
}

static void assert_percentiles(const struct latency_window *w, u64 *value,
			       size_t n)
{
	static const u32 percent[] = { 1, 10, 50, 90, 99, 100 };
	size_t i;

	qsort(value, n, sizeof(*value), by_size);
	for (i = 0; i < ARRAY_SIZE(percent); i++) {
		u64 truth = sorted_percentile(value, n, percent[i]);
		u64 got = histogram_percentile(w, percent[i]);
		u64 most = truth + max(truth / 8, 1024ULL);

		if (got < truth || got > most)
			fail_msg("p%u of %zu is %llu, the histogram says %llu",
				 percent[i], n, truth, got);
	}
}

/* Records values of 0 to @bits bits in @shards. */
static void fill(struct latency_histogram *shard, u32 shards, u64 *value,
		 size_t n, u32 bits, struct random *r)
{
	size_t i;

	for (i = 0; i < n; i++) {
		value[i] = random_next(r) >> (64 - 1 - random_below(r, bits));
		histogram_record(&shard[random_below(r, shards)], value[i]);
	}
}

TEST(percentiles_match_a_sorted_array)
{
	static const size_t sizes[] = { 1, 2, 9, 10, 11, 99, 100, 101, VALUES };
	static struct latency_histogram shard[4];
	static struct latency_window w;
	struct random r = random_seeded("unit/histogram");
	u64 value[VALUES];
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		for (k = 1; k <= 31; k += 5) {
			u32 s;

			histogram_clear(&w);
			fill(shard, ARRAY_SIZE(shard), value, sizes[i], (u32)k,
			     &r);
			for (s = 0; s < ARRAY_SIZE(shard); s++)
				histogram_drain(&shard[s], &w);
			assert_int_equal(w.count, sizes[i]);
			assert_percentiles(&w, value, sizes[i]);
		}
}

/* From 10 us to 10 ms a latency and 5/4 of it are in different buckets. */
TEST(buckets_separate_drives_of_any_speed)
{
	static const u64 speed[] = { 10000, 100000, 1000000, 10000000 };
	static struct latency_histogram h;
	static struct latency_window w;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(speed); i++) {
		u64 fast, slow;

		histogram_clear(&w);
		histogram_record(&h, speed[i]);
		histogram_drain(&h, &w);
		fast = histogram_percentile(&w, 50);
		histogram_clear(&w);
		histogram_record(&h, speed[i] + speed[i] / 4);
		histogram_drain(&h, &w);
		slow = histogram_percentile(&w, 50);
		assert_true(slow > fast);
	}
}

TEST(mean_is_exact)
{
	static struct latency_histogram h;
	static struct latency_window w;
	u64 sum = 0;
	u32 i;

	for (i = 1; i <= 1000; i++) {
		histogram_record(&h, i * 7919);
		sum += i * 7919;
	}
	histogram_drain(&h, &w);
	assert_int_equal(w.sum_ns, sum);
	assert_int_equal(w.count, 1000);
}

/* A latency beyond the range is counted as the longest one. */
TEST(longest_latency_is_counted)
{
	static struct latency_histogram h;
	static struct latency_window w;

	histogram_record(&h, 0);
	histogram_record(&h, ~0ULL >> 1);
	histogram_drain(&h, &w);
	assert_int_equal(w.count, 2);
	assert_true(histogram_percentile(&w, 50) < 2048);
	assert_true(histogram_percentile(&w, 99) > 4ULL * 1000 * 1000 * 1000);
}

TEST(empty_window_has_no_percentile)
{
	static struct latency_histogram h;
	static struct latency_window w;

	histogram_drain(&h, &w);
	assert_int_equal(histogram_percentile(&w, 99), 0);
}

TEST(drain_empties_the_histogram)
{
	static struct latency_histogram h;
	static struct latency_window w;

	histogram_record(&h, 0);
	histogram_record(&h, 5000);
	histogram_drain(&h, &w);
	histogram_drain(&h, &w);
	assert_int_equal(w.count, 2);
	assert_int_equal(w.sum_ns, 5001);
}
