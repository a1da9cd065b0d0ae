// SPDX-License-Identifier: GPL-2.0
/* Times are in ms and tokens in any unit: values can be checked by hand. */
#include "unit.h"
#include "sched/kyber_fair/predict.h"

enum { PERIOD = 100 };

TEST(prediction_begins_at_zero)
{
	struct predict p = { 0 };

	assert_int_equal(predict_mean(&p), 0);
}

TEST(means_match_values_by_hand)
{
	static const struct {
		u64 used, until, mean;
	} table[] = {
		/* 0: never throttled: the used tokens */
		{ 1000, 100, 1000 },
		/* 1: throttled at half time: (1000 + 2000) / 2 */
		{ 1000, 50, 1500 },
		/* 2: (1000 + 2000 + 600) / 3 */
		{ 600, 100, 1200 },
		/* 3: no token was used: the mean stays */
		{ 0, 100, 1200 },
		/* 4: (3600 + 4000) / 4 */
		{ 1000, 25, 1900 },
		/* 5: a long round counts as a period: (7600 + 1200 / 3) / 5 */
		{ 1200, 300, 1600 },
	};
	struct predict p = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		predict_add(&p, table[i].used, table[i].until, PERIOD, 0);
		if (predict_mean(&p) != table[i].mean)
			fail_msg("after period %zu: %llu instead of %llu", i,
				 predict_mean(&p), table[i].mean);
	}
}

/* A flow throttled early gets more than its grant, one never throttled less. */
TEST(throttled_flow_is_predicted_more)
{
	struct predict early = { 0 }, never = { 0 };

	predict_add(&early, 1000, 80, PERIOD, 0);
	assert_int_equal(predict_mean(&early), 1250);
	predict_add(&never, 800, PERIOD, PERIOD, 0);
	assert_int_equal(predict_mean(&never), 800);
}

TEST(history_has_eight_periods)
{
	struct predict p = { 0 };
	u32 i;

	predict_add(&p, 9000, PERIOD, PERIOD, 0);
	for (i = 0; i < PREDICT_PERIODS - 1; i++)
		predict_add(&p, 1000, PERIOD, PERIOD, 0);
	assert_int_equal(predict_mean(&p), 2000);
	predict_add(&p, 1000, PERIOD, PERIOD, 0);
	assert_int_equal(predict_mean(&p), 1000);
}

/* Even of a period that is too short for a 1024th of it. */
TEST(no_time_counts_as_a_part_of_the_period)
{
	struct predict p = { 0 };

	predict_add(&p, 10, 0, PERIOD, 0);
	assert_int_equal(predict_mean(&p), 10 * PERIOD);
}

/* The example at the head of predict.h. */
TEST(total_and_per_flow_readings_differ)
{
	struct predict total = { 0 }, a = { 0 }, b = { 0 };

	predict_add(&total, 500 + 500, 100, PERIOD, 0);
	predict_add(&a, 500, 50, PERIOD, 0);
	predict_add(&b, 500, 100, PERIOD, 0);
	assert_int_equal(predict_mean(&total), 1000);
	assert_int_equal(predict_mean(&a) + predict_mean(&b), 1500);
}

/* Four rounds of a quarter of a period each are one period. */
TEST(short_rounds_add_up_to_a_period)
{
	struct predict p = { 0 };
	u32 i;

	for (i = 0; i < 4; i++) {
		assert_int_equal(predict_mean(&p), 0);
		/* The first burst goes into the device at once. */
		predict_add(&p, i ? 100 : 700, i ? 30 : 10, PERIOD, PERIOD);
	}
	assert_int_equal(predict_mean(&p), 1000);
	predict_add(&p, 600, 60, PERIOD, PERIOD);
	assert_int_equal(predict_mean(&p), 1000);
	predict_add(&p, 600, 60, PERIOD, PERIOD);
	assert_int_equal(predict_mean(&p), 1000);
	predict_add(&p, 2500, 250, PERIOD, PERIOD);
	assert_int_equal(predict_mean(&p), 1000);
}

/* The model computes the sum again from a list of all amounts. */
TEST(mean_matches_a_list)
{
	struct random r = random_seeded("unit/predict");
	struct predict p = { 0 };
	u64 list[300];
	u32 nr = 0, i;

	while (nr < ARRAY_SIZE(list)) {
		u64 period = 1 + random_below(&r, 1000000);
		u64 until = period / 500 + 1;
		u64 used = 1 + random_below(&r, 1U << 31);
		u64 sum = 0;

		until += random_below(&r, (u32)(period - until + 1));
		until = min(until, period);
		predict_add(&p, used, until, period, 0);
		list[nr++] = used * period / until;
		for (i = nr > PREDICT_PERIODS ? nr - PREDICT_PERIODS : 0;
		     i < nr; i++)
			sum += list[i];
		assert_int_equal(predict_mean(&p),
				 sum / min(nr, (u32)PREDICT_PERIODS));
	}
}

/* The sum must hold eight of the greatest amounts. */
TEST(greatest_amounts_do_not_wrap)
{
	const u64 period = 10ULL * 1000 * 1000 * 1000;
	struct predict p = { 0 };
	u32 i;

	for (i = 0; i < 2 * PREDICT_PERIODS; i++)
		predict_add(&p, ~0ULL, 0, period, 0);
	assert_in_range(predict_mean(&p), (1ULL << 58) - (1ULL << 36),
			1ULL << 58);
}
