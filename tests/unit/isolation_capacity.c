// SPDX-License-Identifier: GPL-2.0
/* The capacity that looks at an open drive measure. */
#include "isolation_scene.h"
#include "sched/core/policies.h"

/* One look was eight times as full, and such a look does not come again. */
static void fullest_look_is_forgotten(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	x.other.service_ns = 8 * MS;
	look(&x);
	x.other = deep;
	looks(&x, KNOWN);
	assert_open(&x);
	looks(&x, 60);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	scene_close(&x);
}

/* The drive does half of its work until it is full. */
static void first_two_looks_do_not_measure(void **state)
{
	u64 full = rate_of_bytes(100 * 65536 + 2 * 4096);
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	x.other.done = 50;
	x.other.service_ns = 2 * MS;
	looks(&x, 2);
	x.other = deep;
	looks(&x, KNOWN - 2);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	assert_near(iso(&x)->capacity, full, 1);
	scene_close(&x);
}

/* The others do @done requests in a look, and the drive is as full as ever. */
static void do_in_a_look(struct scene *x, u32 done)
{
	x->other.done = done;
	x->other.service_ns = 100 * MS / done;
	x->other.inside = 16;
	look(x);
}

/* Four looks measure a drive that does not become faster. */
static void drive_that_speeds_up_is_measured_anew(void **state)
{
	static const struct {
		u32 done[7], looks, mean;
	} cases[] = {
		/* No more than an eighth. */
		{ { 80, 80, 80, 88 }, 4, 82 },
		{ { 80, 80, 60, 80 }, 4, 75 },
		{ { 80, 80, 80, 92, 92, 92, 92 }, 7, 92 },
		{ { 60, 80, 100, 100, 100, 100 }, 6, 100 },
	};
	struct scene x;
	u32 i, n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		scene_open(&x, 8);
		do_in_a_look(&x, 80);
		do_in_a_look(&x, 80);
		for (n = 0; n < cases[i].looks; n++) {
			assert_open(&x);
			do_in_a_look(&x, cases[i].done[n]);
		}
		assert_int_equal(iso(&x)->state, ISOLATION_PACED);
		assert_near(iso(&x)->capacity,
			    rate_of_bytes(cases[i].mean * 65536), 10);
		scene_close(&x);
	}
}

/* Once the capacity is known, a faster look counts as any other. */
static void known_capacity_is_kept_when_the_drive_speeds_up(void **state)
{
	struct scene x;
	u32 n;

	(void)state;
	scene_open(&x, 8);
	x.reads = nothing;
	for (n = 0; n < KNOWN; n++)
		do_in_a_look(&x, 80);
	assert_near(iso(&x)->capacity, rate_of_bytes(80 * 65536), 5);
	do_in_a_look(&x, 100);
	assert_near(iso(&x)->capacity, rate_of_bytes(84 * 65536), 5);
	scene_close(&x);
}

/* Its last looks count, after sixteen in all. */
static void drive_that_always_speeds_up_is_paced(void **state)
{
	u32 done = 20, n;
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	for (n = 0; n < 16; n++) {
		assert_open(&x);
		do_in_a_look(&x, done);
		done += done / 6;
	}
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	scene_close(&x);
}

/* It is the mean of sixteen looks, and the drive has been open for longer. */
static void capacity_of_an_open_drive_is_a_recent_one(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	flow_set_weight(x.reader, 1);
	x.reads = nothing;
	looks(&x, 100);
	assert_near(iso(&x)->capacity, rate_of_bytes(100 * 65536), 1);
	/* As full, it does less. */
	x.other.done = 60;
	x.other.service_ns = MS * 100 / 60;
	looks(&x, 100);
	assert_near(iso(&x)->capacity, rate_of_bytes(60 * 65536), 10);
	scene_close(&x);
}

/* Work that was done while the tunable was 0 is not of the first look. */
static void work_without_isolation_is_not_measured(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 0);
	do_work(x.reader, &slow_reads, 1000 * LOOK_NS);
	do_work(x.others, &deep, 1000 * LOOK_NS);
	x.h.sched.params.isolation = 8;
	tick(&x);
	looks(&x, KNOWN);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	assert_near(iso(&x)->capacity, rate_of_bytes(100 * 65536 + 2 * 4096),
		    1);
	scene_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fullest_look_is_forgotten),
		cmocka_unit_test(first_two_looks_do_not_measure),
		cmocka_unit_test(drive_that_speeds_up_is_measured_anew),
		cmocka_unit_test(
			known_capacity_is_kept_when_the_drive_speeds_up),
		cmocka_unit_test(drive_that_always_speeds_up_is_paced),
		cmocka_unit_test(capacity_of_an_open_drive_is_a_recent_one),
		cmocka_unit_test(work_without_isolation_is_not_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
