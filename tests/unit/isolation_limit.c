// SPDX-License-Identifier: GPL-2.0
/* The requests that a paced drive may have: the limit, and the slots held back. */
#include "isolation_scene.h"

/* ----------------------------------------------------------------------- limit */

/* Mean requests inside that keep a limit of @limit as it is. */
static void inside(struct scene *x, u32 limit)
{
	x->other.service_ns = (u64)limit * LOOK_NS / x->other.done;
}

static void limit_grows_while_it_keeps_requests_out(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	x.other.done = 92;
	inside(&x, FIRST_LIMIT);
	looks(&x, 3);
	assert_int_equal(iso(&x)->limit, FIRST_LIMIT);
	/* The pace would have let more go: next_ns stays in the past. */
	atomic64_set(&iso(&x)->next_ns, (s64)iso(&x)->at_ns - LOOK_NS / 64);
	look_behind(&x);
	assert_int_equal(iso(&x)->limit, 63);
	assert_int_equal(slots(&x)->limit, 63);
	/* A little behind is on time. */
	inside(&x, 63);
	atomic64_set(&iso(&x)->next_ns, (s64)iso(&x)->at_ns - LOOK_NS / 65);
	look_behind(&x);
	assert_int_equal(iso(&x)->limit, 63);
	scene_close(&x);
}

static void limit_shrinks_while_half_of_it_is_free(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	x.other.done = 92;
	inside(&x, 5);
	look(&x);
	assert_int_equal(iso(&x)->limit, 45);
	inside(&x, 3);
	looks(&x, 40);
	assert_int_equal(iso(&x)->limit, 7);
	assert_int_equal(slots(&x)->limit, 7);
	scene_close(&x);
}

/* A limit of D limits nothing, so the drive has become slower than the pace. */
static void limit_that_reaches_depth_asks_for_a_probe(void **state)
{
	struct scene x;
	u32 n = 0;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	inside(&x, 60);
	while (iso(&x)->limit < DEPTH) {
		look_behind(&x);
		assert_true(iso(&x)->limit <= DEPTH);
		assert_true(++n < 10);
	}
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	scene_close(&x);
}

/* --------------------------------------------------------------- slots held back */

/* Each request that is sent moves the time of the next by its bytes. */
static void requests_advance_the_pace(void **state)
{
	struct scene x;
	s64 before;

	(void)state;
	open_and_pace(&x, 8);
	before = atomic64_read(&iso(&x)->next_ns);
	hold_slots(&x, 3);
	assert_int_equal(atomic64_read(&iso(&x)->next_ns) - before,
			 3 * iso(&x)->pace);
	assert_int_equal(atomic64_read(&slots(&x)->held), 3);
	scene_close(&x);
}

static void held_slots_are_released_in_time(void **state)
{
	struct scene x;
	u64 due;
	u32 i;

	(void)state;
	open_and_pace(&x, 8);
	hold_slots(&x, 4);
	due = (u64)atomic64_read(&iso(&x)->next_ns);
	hooks_insert(&x.h, 1, x.others, 65536, 0);
	hooks_dispatch(&x.h, 1, DISPATCH_IO);
	x.h.now = due - 1;
	tick(&x);
	assert_int_equal(atomic64_read(&slots(&x)->held), 4);
	assert_true(x.wake.release_ns <= due + LOOK_NS / 64 + iso(&x)->pace);
	/* One for each step of the pace. */
	due = (u64)atomic64_read(&iso(&x)->next_ns);
	for (i = 0; i < 3; i++) {
		atomic64_set(&iso(&x)->next_ns, (s64)due);
		x.h.now = due;
		tick(&x);
		assert_int_equal(atomic64_read(&slots(&x)->held), 3 - i);
	}
	hooks_drain(&x.h);
	scene_close(&x);
}

/* A time without requests lets at most 1/64 of a look go at once. */
static void silence_gives_no_right_to_a_burst(void **state)
{
	struct scene x;
	u64 step;
	s64 held;

	(void)state;
	open_and_pace(&x, 8);
	/* 16 KiB each, so that several are due within 1/64 of a look. */
	iso(&x)->mean_bytes = 16384;
	step = (16384ULL * iso(&x)->pace) >> PACE_SHIFT;
	hold_slots(&x, FIRST_LIMIT - 1);
	held = atomic64_read(&slots(&x)->held);
	assert_int_equal(held, FIRST_LIMIT - 1);
	atomic64_set(&iso(&x)->next_ns, 1);
	x.h.now += LOOK_NS / 2;
	tick(&x);
	held -= atomic64_read(&slots(&x)->held);
	assert_int_equal(held, LOOK_NS / 64 / step + 1);
	scene_close(&x);
}

static void all_held_slots_are_released_at_the_end(void **state)
{
	struct scene x;
	u32 way;

	(void)state;
	for (way = 0; way < 3; way++) {
		open_and_pace(&x, 8);
		hold_slots(&x, FIRST_LIMIT - 2);
		assert_int_equal(atomic64_read(&slots(&x)->held),
				 FIRST_LIMIT - 2);
		/* No slot becomes due. */
		atomic64_set(&iso(&x)->next_ns, (s64)x.h.now + 1000 * LOOK_NS);
		if (way == 0) {
			x.reads = nothing;
			looks(&x, 2);
		} else if (way == 1) {
			x.h.sched.params.isolation = 0;
			tick(&x);
		} else {
			iso(&x)->probe_at = 1;
			look(&x);
		}
		assert_false(slots_held(slots(&x)));
		assert_int_equal(token_total(&slots(&x)->tree), DEPTH);
		scene_close(&x);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit_grows_while_it_keeps_requests_out),
		cmocka_unit_test(limit_shrinks_while_half_of_it_is_free),
		cmocka_unit_test(limit_that_reaches_depth_asks_for_a_probe),
		cmocka_unit_test(requests_advance_the_pace),
		cmocka_unit_test(held_slots_are_released_in_time),
		cmocka_unit_test(silence_gives_no_right_to_a_burst),
		cmocka_unit_test(all_held_slots_are_released_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
