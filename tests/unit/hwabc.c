// SPDX-License-Identifier: GPL-2.0
/* The formula of the paper, with values computed by hand. */
#include "unit.h"
#include "sched/hwabc/hwabc.h"

#define ONE	(1U << HWABC_FACTOR_SHIFT)

TEST(factors_match_the_formula)
{
	static const struct {
		u32 alpha_pct;
		u64 valid, invalid, writes, total;
		double factor;
	} table[] = {
		/*  0 */ { 0, 900, 100, 1, 1, 2 },
		/*  1 */ { 100, 900, 100, 1, 1, 10 },
		/*  2 */ { 50, 900, 100, 1, 1, 1 + 4.5 + 0.5 },
		/*  3 */ { 50, 900, 100, 1, 4, 1 + 4.5 + 0.125 },
		/*  4 */ { 25, 300, 900, 3, 4, 1 + 0.25 / 3 + 0.75 * 0.75 },
		/*  5: a reader with cold data pays for its rare writes */
		{ 100, 5, 0, 0, 1, 6 },
		/*  6: capped */
		{ 100, 5000, 0, 0, 1, 17 },
		/*  7 */ { 100, 1ULL << 60, 3, 1, 1, 17 },
		/*  8 */ { 100, 15999, 1000, 1, 1, 16.999 },
		/*  9: no page is known, none was written */
		{ 50, 0, 0, 0, 1, 1 },
		/* 10 */ { 100, 1, 1ULL << 60, 1, 1, 1 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		u32 part = (u32)(table[i].writes * ONE / table[i].total);
		u32 ratio = hwabc_ratio(table[i].valid, table[i].invalid);
		double factor = hwabc_factor(table[i].alpha_pct, ratio, part);

		factor /= ONE;
		if (factor < table[i].factor - 1e-4 ||
		    factor > table[i].factor + 1e-4)
			fail_msg("row %zu: %f instead of %f", i, factor,
				 table[i].factor);
	}
}

/* Invariant I4 holds for all values that the tunables allow. */
TEST(factors_are_bounded)
{
	struct random r = random_seeded("hwabc");
	u64 i;

	for (i = 0; i < random_rounds(100000); i++) {
		u32 ratio =
			hwabc_ratio(random_next(&r) >> random_below(&r, 64),
				    random_next(&r) >> random_below(&r, 64));
		u32 factor = hwabc_factor(random_below(&r, 101), ratio,
					  random_below(&r, ONE + 1));

		assert_true(factor >= ONE);
		assert_true(factor <= (1 + HWABC_RATIO_MOST) * ONE);
	}
}
