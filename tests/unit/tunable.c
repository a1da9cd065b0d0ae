// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "sched/core/policies.h"
#include "sched/core/sched.h"

enum {
	USER_TUNABLES_MOST	= 4,	/* see tunable.h */
};

struct own_params {
	u32 unused;
	u32 threshold;
	u32 least_ios;
	u32 colour;
};

static const char *const colours[] = { "red", "green", NULL };

static const struct tunable table[] = {
	{ TUNABLE_DEPTH_AUTO },
	{ TUNABLE_U32("threshold_kb", struct own_params, threshold, 4, 1000,
		      1024, 32) },
	{
		TUNABLE_NAMES("colour", struct own_params, colour, colours, 1),
		.research = true,
	},
	{ TUNABLE_COST_OF(COST_IOPS) },
	{ }
};

static struct own_params *own(struct sched_params *p)
{
	return (struct own_params *)p->own;
}

static const struct tunable *named(const char *name)
{
	const struct tunable *t = tunable_find(table, name);

	assert_non_null(t);
	return t;
}

TEST(defaults_are_valid)
{
	struct sched_params p;

	memset(&p, 0xff, sizeof(p));
	tunables_init(table, &p);
	assert_int_equal(p.depth, 64);
	assert_int_equal(own(&p)->threshold, 32 * 1024);
	assert_int_equal(own(&p)->colour, 1);
	assert_int_equal(p.cost.kind, COST_IOPS);
	assert_int_equal(p.cost.read.base, 0);
	assert_int_equal(p.cost.read.per_kib, 1024);
	assert_int_equal(p.cost.write.per_kib, 1024);
	assert_int_equal(tunables_check(table, &p), 0);
}

/* Each value that may be written can be stored, in memory of the scheduler. */
static void check_tunable(const struct sched_ops *ops, const struct tunable *t)
{
	u32 own_end = offsetof(struct sched_params, own) + ops->params_bytes;

	assert_ptr_equal(tunable_find(ops->tunables, t->name), t);
	assert_true(t->unit > 0);
	assert_true((u64)t->most * t->unit <= UINT32_MAX);
	if (t->offset >= offsetof(struct sched_params, own))
		assert_true(t->offset + sizeof(u32) <= own_end);
}

TEST(every_scheduler_has_a_sound_table)
{
	u32 i, n, for_users;

	for (i = 0; sched_policies[i]; i++) {
		const struct sched_ops *ops = sched_policies[i];
		const struct tunable *t;
		struct sched_params p;

		sched_params_init(ops, &p);
		assert_int_equal(sched_params_check(ops, &p), 0);
		assert_true(ops->params_bytes <= sizeof(p.own));
		for (t = ops->tunables, n = 0, for_users = 0; t->name;
		     t++, n++) {
			check_tunable(ops, t);
			for_users += !t->research;
		}
		assert_true(n > 0 && n <= TUNABLES_MAX);
		assert_true(for_users <= USER_TUNABLES_MOST);
	}
	assert_int_equal(i, sched_policies_count());
}

TEST(a_value_is_kept_in_its_unit)
{
	const struct cost_model linear = {
		.kind = COST_LINEAR,
		.read = { 7, COST_MOST },
		.write = { 9, 1 },
	};
	struct sched_params p;

	tunables_init(table, &p);
	assert_int_equal(tunable_set(named("threshold_kb"), &p, 1000), 0);
	assert_int_equal(own(&p)->threshold, 1000 * 1024);
	assert_int_equal(tunable_get(named("threshold_kb"), &p), 1000);
	tunable_put(named("threshold_kb"), &p, 4096 + 512);
	assert_int_equal(own(&p)->threshold, 4096 + 512);
	assert_int_equal(tunable_set_cost(named("cost"), &p, &linear), 0);
	assert_memory_equal(&tunable_get_cost(named("cost"), &p)->read,
			    &linear.read, sizeof(linear.read));
	assert_int_equal(p.cost.write.base, 9);
	assert_int_equal(p.cost.kind, COST_LINEAR);
}

static const struct tunable automatic[] = {
	{ TUNABLE_DEPTH_AUTO },
	{ TUNABLE_U32("threshold_kb", struct own_params, threshold, 4, 1000,
		      1024, 32),
	  .automatic = AUTO_THRESHOLD },
	{ }
};

TEST(auto_is_read_with_the_start_of_a_depth)
{
	static const struct {
		const char *text;
		u32 start;
		bool depth, threshold;
	} cases[] = {
		{ "auto", 0, true, true },
		{ "auto\n", 0, true, true },
		{ "32 auto\n", 32, true, false },
		{ "1 auto", 1, true, false },
		{ "65536  auto", DEPTH_MAX, true, false },
		{ "0 auto", 0, false, false },
		{ "65537 auto", 0, false, false },
		{ "4294967297 auto", 0, false, false },
		{ "99999999999999999999 auto", 0, false, false },
		{ "-1 auto", 0, false, false },
		{ "+1 auto", 0, false, false },
		{ " auto", 0, false, false },
		{ "32auto", 0, false, false },
		{ "32 auto 1", 0, false, false },
		{ "32 auto\n\n", 0, false, false },
		{ "32 autos", 0, false, false },
		{ "32 aut", 0, false, false },
		{ "auto 32", 0, false, false },
		{ "auto auto", 0, false, false },
		{ "32", 0, false, false },
		{ "32 ", 0, false, false },
		{ "\n", 0, false, false },
		{ "", 0, false, false },
	};
	u32 i, start;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *text = cases[i].text;

		assert_int_equal(tunable_parse_auto(&automatic[0], text,
						    &start),
				 cases[i].depth);
		if (cases[i].depth)
			assert_int_equal(start, cases[i].start);
		assert_int_equal(tunable_parse_auto(&automatic[1], text,
						    &start),
				 cases[i].threshold);
		assert_false(tunable_parse_auto(named("threshold_kb"), text,
						&start));
	}
}

/* The automatic threshold follows the requests that the device takes alone. */
TEST(automatic_depth_begins_with_its_start)
{
	static const struct {
		u32 start, takes, depth;
	} cases[] = {
		{ 32, 100, 32 }, { 0, 100, 16 },     { 500, 100, 100 },
		{ 500, 0, 500 }, { 65536, 0, 1024 }, { 0, 0, 16 },
		{ 0, 8, 8 },
	};
	struct sched_params p;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 usual = cases[i].takes ? min(cases[i].takes, 128U) : 128;

		tunables_init(automatic, &p);
		p.depth_most = 0;
		tunable_set_start(&automatic[0], &p, cases[i].start);
		tunables_set_auto(automatic, 3, cases[i].takes, &p);
		assert_int_equal(p.depth, cases[i].depth);
		/* It stays when another tunable is set. */
		tunables_set_auto(automatic, 3, cases[i].takes, &p);
		assert_int_equal(p.depth, cases[i].depth);
		assert_int_equal(own(&p)->threshold, usual * 512);
		assert_true(own(&p)->least_ios);
		/* A threshold of the user is in force as it is. */
		tunables_set_auto(automatic, 1, cases[i].takes, &p);
		assert_int_equal(own(&p)->least_ios, 0);
		/* A start takes the place of a depth that was found. */
		tunable_set_start(&automatic[0], &p, 7);
		tunables_set_auto(automatic, 3, cases[i].takes, &p);
		assert_int_equal(p.depth, 7);
	}
}

TEST(a_cost_out_of_range_is_refused)
{
	struct cost_model bad[] = {
		{ .kind = COST_KINDS },
		{ .read.base = COST_MOST + 1 },
		{ .read.per_kib = COST_MOST + 1 },
		{ .write.base = COST_MOST + 1 },
		{ .write.per_kib = COST_MOST + 1 },
	};
	struct sched_params p, before;
	u32 i;

	tunables_init(table, &p);
	before = p;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(tunable_set_cost(named("cost"), &p, &bad[i]),
				 -EINVAL);
		assert_memory_equal(&p, &before, sizeof(p));
	}
}

TEST(out_of_range_changes_nothing)
{
	struct sched_params p, before;

	tunables_init(table, &p);
	before = p;
	assert_int_equal(tunable_set(named("depth"), &p, 0), -EINVAL);
	assert_int_equal(tunable_set(named("depth"), &p, DEPTH_MAX + 1),
			 -EINVAL);
	assert_int_equal(tunable_set(named("threshold_kb"), &p, 3), -EINVAL);
	assert_int_equal(tunable_set(named("threshold_kb"), &p, UINT32_MAX),
			 -EINVAL);
	assert_int_equal(tunable_set(named("colour"), &p, 2), -EINVAL);
	assert_memory_equal(&p, &before, sizeof(p));
	assert_null(tunable_find(table, "depths"));
}

TEST(check_finds_each_bad_value)
{
	struct sched_params good, p;

	tunables_init(table, &good);
	p = good;
	p.depth = 0;
	assert_int_equal(tunables_check(table, &p), -EINVAL);
	p = good;
	own(&p)->colour = 2;
	assert_int_equal(tunables_check(table, &p), -EINVAL);
	p = good;
	p.cost.kind = COST_KINDS;
	assert_int_equal(tunables_check(table, &p), -EINVAL);
	p = good;
	p.cost.read.base = COST_MOST + 1;
	assert_int_equal(tunables_check(table, &p), -EINVAL);
}
