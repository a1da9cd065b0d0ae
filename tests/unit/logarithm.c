// SPDX-License-Identifier: GPL-2.0
#include <math.h>

#include "unit.h"
#include "sched/ifq/logarithm.h"

static void check_log(u64 x)
{
	double exact = log2((double)x) * LOG_ONE;
	double got = log2_fixed(x);

	/* A double holds the argument itself exactly up to 2^53 only. */
	assert_true(got <= exact + 0.001);
	assert_true(got > exact - 2);
}

static void check_exp(u32 log)
{
	double exact = exp2((double)log / LOG_ONE) * LOG_ONE;
	double got = (double)exp2_fixed(log);

	assert_true(got <= exact * (1 + 1e-12));
	assert_true(got >= exact * (1 - 1.0 / (1 << 27)) - 1);
}

TEST(powers_of_two_are_exact)
{
	u32 i;

	for (i = 0; i < 64; i++)
		assert_int_equal(log2_fixed(1ULL << i), i * LOG_ONE);
	for (i = 0; i <= 32; i++)
		assert_true(exp2_fixed(i * LOG_ONE) == (u64)LOG_ONE << i);
}

TEST(small_arguments_stay_within_the_bounds)
{
	u32 i;

	for (i = 1; i < 1 << 17; i++)
		check_log(i);
	for (i = 0; i < 3 * LOG_ONE; i++)
		check_exp(i);
}

TEST(random_arguments_stay_within_the_bounds)
{
	struct random r = random_seeded("logarithm");
	u64 i;

	for (i = 0; i < random_rounds(200000); i++) {
		u64 x = random_next(&r) >> random_below(&r, 64);

		check_log(x ? x : 1);
		check_exp(random_below(&r, LOG_MOST + 1));
	}
	check_log(~0ULL);
	check_exp(LOG_MOST);
}

TEST(both_functions_are_monotone)
{
	u64 last = 0;
	u32 i;

	for (i = 0; i < 20 * LOG_ONE; i += 7) {
		u64 x = exp2_fixed(i);

		assert_true(x >= last);
		last = x;
	}
	for (i = 2; i < 1 << 16; i++)
		assert_true(log2_fixed(i) >= log2_fixed(i - 1));
}
