// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "sched/core/sched.h"

static const char *const colours[] = { "red", "green", NULL };

/* The table uses any members of sched_params. */
static const struct tunable table[] = {
	TUNABLE_DEPTH,
	TUNABLE_U32("threshold_kb", threshold, 4, 1000, 1024, 32),
	TUNABLE_NAMES("colour", cost.kind, colours, 1),
	TUNABLE_COST_LINE("line", cost.read),
	{ }
};

static const struct tunable *named(const char *name)
{
	const struct tunable *t = tunable_find(table, name);

	assert_non_null(t);
	return t;
}

static void defaults_are_valid(void **state)
{
	struct sched_params p;

	(void)state;
	memset(&p, 0xff, sizeof(p));
	tunables_init(table, &p);
	assert_int_equal(p.depth, 64);
	assert_int_equal(p.threshold, 32 * 1024);
	assert_int_equal(p.cost.kind, 1);
	assert_int_equal(p.cost.read.base, 0);
	assert_int_equal(p.cost.read.per_kib, 1024);
	assert_int_equal(tunables_check(table, &p), 0);
}

static void every_scheduler_has_a_valid_table(void **state)
{
	u32 i, n;

	(void)state;
	for (i = 0; sched_policies[i]; i++) {
		const struct sched_ops *ops = sched_policies[i];
		const struct tunable *t;
		struct sched_params p;

		sched_params_init(ops, &p);
		assert_int_equal(sched_params_check(ops, &p), 0);
		for (t = ops->tunables, n = 0; t->name; t++, n++) {
			assert_ptr_equal(tunable_find(ops->tunables, t->name),
					 t);
			assert_true(t->unit > 0);
			assert_true(t->offset + sizeof(u32) <= sizeof(p));
			/* The greatest value that is allowed fits the field. */
			assert_true((u64)t->most * t->unit <= UINT32_MAX);
		}
		assert_true(n > 0 && n <= TUNABLES_MAX);
	}
	assert_int_equal(i, sched_policies_count());
}

static void value_is_stored_in_its_unit(void **state)
{
	struct sched_params p;

	(void)state;
	tunables_init(table, &p);
	assert_int_equal(tunable_set(named("threshold_kb"), &p, 1000), 0);
	assert_int_equal(p.threshold, 1000 * 1024);
	assert_int_equal(tunable_get(named("threshold_kb"), &p), 1000);
	assert_int_equal(tunable_set_line(named("line"), &p, 7, COST_MOST), 0);
	assert_int_equal(p.cost.read.base, 7);
	assert_int_equal(p.cost.read.per_kib, COST_MOST);
}

static void value_out_of_range_changes_nothing(void **state)
{
	struct sched_params p, before;

	(void)state;
	tunables_init(table, &p);
	before = p;
	assert_int_equal(tunable_set(named("depth"), &p, 0), -EINVAL);
	assert_int_equal(tunable_set(named("depth"), &p, DEPTH_MAX + 1),
			 -EINVAL);
	assert_int_equal(tunable_set(named("threshold_kb"), &p, 3), -EINVAL);
	assert_int_equal(tunable_set(named("threshold_kb"), &p, UINT32_MAX),
			 -EINVAL);
	assert_int_equal(tunable_set(named("colour"), &p, 2), -EINVAL);
	assert_int_equal(tunable_set_line(named("line"), &p, COST_MOST + 1, 0),
			 -EINVAL);
	assert_int_equal(tunable_set_line(named("line"), &p, 0, COST_MOST + 1),
			 -EINVAL);
	assert_memory_equal(&p, &before, sizeof(p));
	assert_null(tunable_find(table, "depths"));
}

static void check_finds_each_bad_value(void **state)
{
	struct sched_params good, p;

	(void)state;
	tunables_init(table, &good);
	p = good;
	p.depth = 0;
	assert_int_equal(tunables_check(table, &p), -EINVAL);
	p = good;
	p.cost.kind = 2;
	assert_int_equal(tunables_check(table, &p), -EINVAL);
	p = good;
	p.cost.read.base = COST_MOST + 1;
	assert_int_equal(tunables_check(table, &p), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_valid),
		cmocka_unit_test(every_scheduler_has_a_valid_table),
		cmocka_unit_test(value_is_stored_in_its_unit),
		cmocka_unit_test(value_out_of_range_changes_nothing),
		cmocka_unit_test(check_finds_each_bad_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
