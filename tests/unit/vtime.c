// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "sched/core/vtime.h"

TEST(order_holds_across_the_wrap)
{
	const vtime_t points[] = { 0,	       2,
				   1ULL << 62, (1ULL << 63) - 2,
				   1ULL << 63, (vtime_t)-4,
				   (vtime_t)-2 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(points); i++) {
		assert_false(vtime_before(points[i], points[i]));
		assert_true(vtime_before(points[i], points[i] + 2));
		assert_false(vtime_before(points[i] + 2, points[i]));
		assert_true(vtime_before(points[i], points[i] + (1ULL << 62)));
		assert_true(vtime_max(points[i], points[i] + 4) ==
			    points[i] + 4);
	}
}

TEST(none_is_the_greatest_tag)
{
	assert_true(vtime_min_tag(VTIME_NONE, VTIME_NONE) == VTIME_NONE);
	assert_true(vtime_min_tag(VTIME_NONE, 8) == 8);
	assert_true(vtime_min_tag(8, VTIME_NONE) == 8);
	assert_true(vtime_min_tag((vtime_t)-2, 4) == (vtime_t)-2);
	assert_true(vtime_min_tag(4, (vtime_t)-2) == (vtime_t)-2);
}

TEST(inverse_is_clamped)
{
	assert_true(share_inverse(SHARE_ONE) == 1ULL << INV_SHIFT);
	assert_true(share_inverse(SHARE_ONE / 10) / 10 == 1ULL << INV_SHIFT);
	assert_true(share_inverse(0) == 1ULL << (INV_SHIFT + SHARE_MIN_SHIFT));
	assert_true(share_inverse(1) == share_inverse(SHARE_MIN));
	assert_true(share_inverse(~0ULL) == 1ULL << INV_SHIFT);
}

/* The tag of a charge of @cost at @share is as exact as vtime.h promises. */
static void charge_is_exact(vtime_t base, u64 share, u64 cost)
{
	u64 inv = share_inverse(share);
	u64 exact = (u64)(((port_u128)cost << SHARE_SHIFT) / share);
	u64 ahead = vtime_at(base, 77, inv, 77 + cost) - base;
	u64 back = base - vtime_at(base, 77, inv, 77 - cost);

	assert_true(ahead <= exact);
	assert_true(exact - ahead <= (exact >> 20) + 2);
	assert_true(back <= exact + 2);
	assert_true(exact - min(back, exact) <= (exact >> 20) + 2);
}

TEST(tags_are_even_and_never_none)
{
	struct random r = random_seeded("vtime");
	u64 i;

	for (i = 0; i < random_rounds(100000); i++) {
		vtime_t base = random_next(&r) & ~1ULL;
		u64 inv = share_inverse(random_next(&r) >> 31);
		u64 pos = random_next(&r);
		vtime_t tag = vtime_at(base, pos, inv,
				       pos + random_next(&r) % (1 << 26));

		assert_true((tag & 1) == 0);
		assert_true(tag != VTIME_NONE);
	}
}

TEST(charges_are_exact_at_the_extremes)
{
	static const u64 costs[] = { 512, 4096, 65536, 1 << 20, 1 << 26 };
	static const vtime_t bases[] = { 0, 1000 << 10, (vtime_t)-2,
					 (vtime_t)0 - (1ULL << 30) };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(bases); i++)
		for (j = 0; j < ARRAY_SIZE(costs); j++) {
			/* Weights 1 and 10000; the least and the full share. */
			charge_is_exact(bases[i], SHARE_ONE / 10001, costs[j]);
			charge_is_exact(bases[i], SHARE_ONE / 10001 * 10000,
					costs[j]);
			charge_is_exact(bases[i], SHARE_MIN, costs[j]);
			charge_is_exact(bases[i], SHARE_ONE, costs[j]);
		}
}

/* The largest request at the least share: its tag must stay comparable. */
TEST(longest_step_is_far_below_a_wrap)
{
	vtime_t end = vtime_at(0, 0, share_inverse(SHARE_MIN), 1 << 26);

	assert_true(vtime_before(0, end));
	assert_true(end <= 1ULL << 46);
}
