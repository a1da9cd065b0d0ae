// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "sched/core/cost.h"

static const struct cost_model bytes_model = { .kind = COST_BYTES };
static const struct cost_model iops_model = { .kind = COST_IOPS };
static const struct cost_model linear_model = {
	.kind = COST_LINEAR,
	.read = { .base = 3072, .per_kib = 256 },
	.write = { .base = 8192, .per_kib = 1024 },
};
static const struct cost_model greatest_model = {
	.kind = COST_LINEAR,
	.read = { .base = ~0U, .per_kib = ~0U },
	.write = { .base = 0, .per_kib = 0 },
};
static const struct cost_model learned_model = {
	.kind = COST_LEARNED,
	.learned = { { .base = 3072, .per_kib = 256 }, { .base = 20000 } },
	.learned_known = true,
};

TEST(costs_match_the_table)
{
	static const struct {
		const struct cost_model *model;
		enum io_op op;
		u32 bytes, cost;
	} table[] = {
		/*  0 */ { &bytes_model, IO_READ, 4096, 4096 },
		/*  1 */ { &bytes_model, IO_WRITE, 1 << 20, 1 << 20 },
		/*  2 */ { &bytes_model, IO_READ, 0, COST_UNIT },
		/*  3 */ { &bytes_model, IO_READ, 512, COST_UNIT },
		/*  4 */ { &bytes_model, IO_WRITE, ~0U, COST_MOST },
		/*  5 */ { &bytes_model, IO_OTHER, ~0U, COST_MOST },
		/*  6 */ { &iops_model, IO_READ, 512, COST_UNIT },
		/*  7 */ { &iops_model, IO_WRITE, 1 << 20, COST_UNIT },
		/*  8 */ { &iops_model, IO_OTHER, 0, COST_UNIT },
		/*  9 */ { &linear_model, IO_READ, 4096, 4096 },
		/* 10 */ { &linear_model, IO_READ, 65536, 3072 + 64 * 256 },
		/* 11 */ { &linear_model, IO_WRITE, 4096, 8192 + 4 * 1024 },
		/* 12 */ { &linear_model, IO_WRITE, 512, 8192 + 512 },
		/* 13 */ { &linear_model, IO_OTHER, 1 << 20, 8192 + (1 << 20) },
		/* 14 */ { &greatest_model, IO_READ, ~0U, COST_MOST },
		/* 15 */ { &greatest_model, IO_READ, 0, COST_MOST },
		/* 16 */ { &greatest_model, IO_WRITE, ~0U, COST_LEAST },
		/* 17 */ { &linear_model, IO_DISCARD, 1U << 31, 1 << 21 },
		/* 18 */ { &learned_model, IO_READ, 4096, 4096 },
		/* 19 */ { &learned_model, IO_WRITE, 1 << 20, 20000 },
		/* 20 */ { &learned_model, IO_DISCARD, 1 << 20, COST_UNIT },
		/* 21 */ { &iops_model, IO_DISCARD, 1U << 31, 1 << 21 },
		/* 22 */ { &bytes_model, IO_DISCARD, 1 << 22, COST_UNIT },
		/* 23 */ { &bytes_model, IO_DISCARD, (1 << 22) + 1, 8192 },
		/* 24 */ { &bytes_model, IO_OTHER, 1 << 22, 1 << 22 },
		/* 25 */ { &bytes_model, IO_OTHER, 0, COST_UNIT },
		/* 26 */ { &learned_model, IO_OTHER, 1 << 22, 20000 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		u32 cost = cost_of(table[i].model, table[i].op, table[i].bytes);

		if (cost != table[i].cost)
			fail_msg("row %zu: %u instead of %u", i, cost,
				 table[i].cost);
	}
}

TEST(cost_set_copies_every_field)
{
	struct cost_model m = bytes_model;

	cost_set(&m, &linear_model);
	assert_int_equal(m.kind, COST_LINEAR);
	assert_int_equal(m.read.base, linear_model.read.base);
	assert_int_equal(m.read.per_kib, linear_model.read.per_kib);
	assert_int_equal(m.write.base, linear_model.write.base);
	assert_int_equal(m.write.per_kib, linear_model.write.per_kib);
}

TEST(cost_set_keeps_the_learned_lines)
{
	static const struct cost_line line[] = { { 1, 2 }, { 3, 4 } };
	struct cost_model m = learned_model;

	cost_learned_set(&m, line);
	cost_set(&m, &learned_model);
	assert_memory_equal(m.learned, line, sizeof(line));
	cost_learned_set(&m, NULL);
	assert_int_equal(cost_of(&m, IO_WRITE, 65536), 65536);
	assert_int_equal(cost_of(&m, IO_READ, 512), COST_UNIT);
	assert_int_equal(cost_of(&m, IO_OTHER, 0), COST_UNIT);
}
