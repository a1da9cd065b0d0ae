// SPDX-License-Identifier: GPL-2.0
#include <math.h>

#include "unit.h"
#include "sched/wdt/demand.h"

/* The model remembers all samples and computes in floating point. */
struct model {
	u64 sample[400];
	u32 nr;
};

static double model_percentile(const struct model *t, u32 history)
{
	u32 n = min(min(t->nr, history), (u32)DEMAND_SAMPLES), i;
	const u64 *last = &t->sample[t->nr - n];
	double mean = 0, variance = 0;

	if (!n)
		return 0;
	for (i = 0; i < n; i++)
		mean += (double)last[i] / n;
	for (i = 0; i < n; i++)
		variance +=
			((double)last[i] - mean) * ((double)last[i] - mean) / n;
	return mean + 0.8416212336 * sqrt(variance);
}

static void check(const struct demand *d, const struct model *t, u32 history)
{
	double exact = model_percentile(t, history), off, most = 0;
	u32 i;

	for (i = 0; i < t->nr; i++)
		most = fmax(most, (double)t->sample[i]);
	off = fabs((double)demand_percentile(d, history) - exact);
	/* It rounds twice by 1/16 and once to a byte, or by 2^-20 of all. */
	if (off > 1.25 + most / (1 << 20))
		fail_msg("%u samples, history %u: %llu, exactly %f", t->nr,
			 history, demand_percentile(d, history), exact);
}

/* Samples have every size up to that of a total, and every spread. */
static u64 random_sample(struct random *r, u32 kind)
{
	u64 size = 1ULL << (kind % 41);

	switch (kind / 41 % 3) {
	case 0:
		return size;
	case 1:
		return size + random_next(r) % (size / 8 + 1);
	default:
		return random_once_in(r, 3) ? 0 : random_next(r) % (2 * size);
	}
}

TEST(percentile_matches_floating_point)
{
	struct random r = random_seeded("unit/demand");
	u64 round;

	for (round = 0; round < random_rounds(400); round++) {
		u32 kind = random_below(&r, 3 * 41);
		struct demand d = { .nr = 0 };
		struct model t = { .nr = 0 };

		while (t.nr < ARRAY_SIZE(t.sample)) {
			t.sample[t.nr] = random_sample(&r, kind);
			demand_add(&d, t.sample[t.nr++]);
			check(&d, &t, 1 + random_below(&r, DEMAND_SAMPLES));
			check(&d, &t, 16);
		}
	}
}

/* The example of demand.h. */
TEST(example_of_the_header_holds)
{
	static const u64 mb[] = { 90, 110, 90, 110 };
	struct demand d = { .nr = 0 };
	u64 expected;
	u32 i;

	assert_int_equal(demand_percentile(&d, 16), 0);
	for (i = 0; i < ARRAY_SIZE(mb); i++)
		demand_add(&d, mb[i] * 1000000);
	expected = demand_percentile(&d, 16);
	assert_in_range(expected, 108416212 - 200, 108416212 + 200);
	/* The last sample alone has no deviation. */
	assert_in_range(demand_percentile(&d, 1), 110000000 - 1, 110000000);
}

/* 100 + 0.8416 * 6 is 105.05, and a root of one sixteenth less gives 104. */
TEST(roots_of_squares_are_exact)
{
	struct demand d = { .nr = 0 };

	demand_add(&d, 94);
	demand_add(&d, 106);
	assert_int_equal(demand_percentile(&d, 16), 105);
}

TEST(samples_beyond_the_history_have_no_effect)
{
	struct demand d = { .nr = 0 };
	u32 i;

	for (i = 0; i < DEMAND_SAMPLES; i++)
		demand_add(&d, 1ULL << 40);
	for (i = 0; i < 16; i++)
		demand_add(&d, 5000);
	assert_int_equal(demand_percentile(&d, 16), 5000);
	assert_true(demand_percentile(&d, 17) > 5000);
}
