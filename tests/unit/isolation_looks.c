// SPDX-License-Identifier: GPL-2.0
/* The times, goals and numbers of slots that looks learn. */
#include "isolation_scene.h"
#include "sched/core/policies.h"

/* --------------------------------------------------------- looks and their times */

/* All requests that were inside, and sixteen at least. */
static void look_needs_a_turnover_and_16_requests(void **state)
{
	static const struct {
		u32 done, inside, present;
	} cases[] = {
		{ 100, 99, 1 }, { 100, 100, 1 }, { 100, 101, 0 },
		{ 16, 1, 1 },	{ 15, 1, 0 },
	};
	struct scene x;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		scene_open(&x, 8);
		x.other = nothing;
		x.reads.done = cases[i].done;
		x.reads.inside = cases[i].inside;
		look(&x);
		assert_int_equal(reader(&x)->present, cases[i].present);
		scene_close(&x);
	}
}

/* A flow alone is not short.  When another comes, the look is taken at once. */
static void lone_flow_is_looked_at_rarely(void **state)
{
	struct sched_params p;
	struct scene x = { .reads = deep };

	(void)state;
	sched_params_init(&drr_ops, &p);
	p.isolation = 8;
	hooks_open(&x.h, &drr_ops, &p, 2);
	x.reader = hooks_flow(&x.h, 100);
	x.others = hooks_flow(&x.h, 100);
	first_io(&x, x.reader);
	see(x.reader);
	tick(&x);
	look(&x);
	assert_int_equal(iso(&x)->at_ns - x.h.now, 16 * LOOK_NS);
	do_work(x.reader, &x.reads, LOOK_NS);
	x.h.now += LOOK_NS;
	tick(&x);
	assert_int_equal(reader(&x)->present, 1);
	first_io(&x, x.others);
	tick(&x);
	assert_int_equal(reader(&x)->present, 2);
	assert_int_equal(iso(&x)->at_ns - x.h.now, LOOK_NS);
	scene_close(&x);
}

static void look_without_completions_teaches_nothing(void **state)
{
	struct isolation_flow before;
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	look(&x);
	before = *reader(&x);
	assert_int_equal(before.least_ns, MS / 4);
	x.reads.done = 0;
	looks(&x, 3);
	assert_int_equal(reader(&x)->least_ns, before.least_ns);
	assert_int_equal(reader(&x)->recent_ns, before.recent_ns);
	assert_int_equal(reader(&x)->open_ns, before.open_ns);
	assert_int_equal(reader(&x)->mean_cost, before.mean_cost);
	scene_close(&x);
}

/* ----------------------------------------------------------------------- goals */

/* The reader has its share, and misses a latency goal. */
static void open_with_goal(struct scene *x)
{
	scene_open(x, 8);
	flow_set_weight(x->reader, 1);
	x->reads.bytes = 65536;
	latency_set_goal(x->reader, MS / 2, 990);
	x->reader->latency.pursued = true;
}

static void look_with_verdict(struct scene *x, enum latency_verdict verdict)
{
	x->reader->latency.verdict = (u8)verdict;
	look(x);
}

static void flow_that_misses_its_goal_is_short(void **state)
{
	struct scene x;

	(void)state;
	open_with_goal(&x);
	looks(&x, KNOWN);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	assert_true(reader(&x)->is_short);
	assert_true(reader(&x)->passes);
	/* Met with ease for some time: its goal is not pursued any more. */
	x.reader->latency.pursued = false;
	looks(&x, 2);
	assert_false(reader(&x)->is_short);
	assert_open(&x);
	scene_close(&x);
}

/* Its requests wait outside, so an emptier drive would not help. */
static void goal_of_a_flow_that_waits_outside_is_not_pursued(void **state)
{
	struct scene x;

	(void)state;
	open_with_goal(&x);
	x.reads.wait_ns = 5 * MS;
	looks(&x, 2 * KNOWN);
	assert_false(reader(&x)->is_short);
	assert_open(&x);
	scene_close(&x);
}

/* One step for each verdict: up if missed, down if met with ease. */
static void loss_follows_the_verdicts(void **state)
{
	static const struct {
		enum latency_verdict verdict;
		u32 looks, loss;
	} steps[] = {
		{ LATENCY_MISSED, 3, 30 },     { LATENCY_NO_VERDICT, 5, 30 },
		{ LATENCY_MET, 2, 30 },	       { LATENCY_EASY, 1, 20 },
		{ LATENCY_NO_VERDICT, 5, 20 }, { LATENCY_MISSED, 20, 80 },
		{ LATENCY_EASY, 20, 0 },
	};
	struct scene x;
	u32 i, n;

	(void)state;
	open_with_goal(&x);
	looks(&x, KNOWN);
	assert_int_equal(iso(&x)->loss, 0);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		for (n = 0; n < steps[i].looks; n++)
			look_with_verdict(&x, steps[i].verdict);
		assert_int_equal(iso(&x)->loss, steps[i].loss);
	}
	scene_close(&x);
}

/* The flow comes back: its last loss is tried first, if the goal is not missed. */
static void loss_of_a_goal_is_remembered(void **state)
{
	u32 missed, last, i;

	(void)state;
	for (missed = 0; missed <= 1; missed++) {
		struct scene x;

		open_with_goal(&x);
		looks(&x, KNOWN);
		for (i = 0; i < 3; i++)
			look_with_verdict(&x, LATENCY_MISSED);
		x.reader->latency.pursued = false;
		looks(&x, 2);
		assert_open(&x);
		last = iso(&x)->loss;
		assert_in_range(last, 20, 30);
		x.reader->latency.pursued = true;
		while (iso(&x)->state != ISOLATION_PACED)
			look_with_verdict(&x, missed ? LATENCY_MISSED :
						       LATENCY_NO_VERDICT);
		assert_int_equal(iso(&x)->loss, missed ? 80 : last);
		scene_close(&x);
	}
}

/* The user has lowered the tunable meanwhile. */
static void remembered_loss_is_bounded(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	open_with_goal(&x);
	looks(&x, KNOWN);
	for (i = 0; i < 8; i++)
		look_with_verdict(&x, LATENCY_MISSED);
	x.reader->latency.pursued = false;
	looks(&x, 2);
	assert_true(iso(&x)->loss > 10);
	x.h.sched.params.isolation = 1;
	x.reader->latency.pursued = true;
	while (iso(&x)->state != ISOLATION_PACED)
		look(&x);
	assert_int_equal(iso(&x)->loss, 10);
	scene_close(&x);
}

/* A probe makes requests slow, and a goal is about the slowest ones. */
static void probes_are_rarer_beside_a_goal(void **state)
{
	struct scene x;

	(void)state;
	open_with_goal(&x);
	while (!iso(&x)->probes)
		look(&x);
	looks(&x, PROBE_GOAL_LOOKS - 1);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	assert_int_equal(iso(&x)->probes, 1);
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	scene_close(&x);
}

/* ----------------------------------------------------------------- correction */

/* A new capacity is paced as it is: the correction was that of the old one. */
static void probe_ends_the_correction(void **state)
{
	u64 short_rate = rate_of_bytes(2 * 4096);
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	x.other.done = 85;
	while (iso(&x)->state == ISOLATION_PACED)
		look(&x);
	x.reads = slow_reads;
	x.other.done = 100;
	while (iso(&x)->state == ISOLATION_PROBE)
		look(&x);
	assert_near((1ULL << 36) / iso(&x)->pace,
		    iso(&x)->capacity * 92 / 100 - short_rate, 2);
	scene_close(&x);
}

/* ----------------------------------------------------------- pacing ends and begins */

/* Each pacing ends after two looks without a short flow, also the second one. */
static void each_pacing_ends_after_two_quiet_looks(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	open_and_pace(&x, 8);
	for (i = 0; i < 2; i++) {
		x.reads = nothing;
		look(&x);
		assert_int_equal(iso(&x)->state, ISOLATION_PACED);
		look(&x);
		assert_open(&x);
		x.reads = slow_reads;
		looks(&x, 2);
		assert_int_equal(iso(&x)->state, ISOLATION_PACED);
		x.reads = fast_reads;
		/* So long that it is not expected back. */
		looks(&x, 8);
		assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	}
	scene_close(&x);
}

/* The drive has been paced for 12 looks, and open for @away of them since. */
static void leave(struct scene *x, u32 away)
{
	open_and_pace(x, 8);
	x->reads = fast_reads;
	looks(x, 10);
	x->reads = nothing;
	looks(x, 2);
	assert_open(x);
	/* It is not full, and so it is not measured. */
	x->other.service_ns = MS / 2;
	looks(x, away);
	x->other = deep;
	x->reads = slow_reads;
}

/* Is the drive paced after the second look at the reader? */
static void assert_resumes(struct scene *x, bool resumes)
{
	look(x);
	assert_open(x);
	look(x);
	assert_true(reader(x)->is_short);
	assert_int_equal(iso(x)->paces, resumes);
}

/* A tenant that comes in bursts does not wait until the drive is measured. */
static void flow_that_returns_soon_is_isolated_at_once(void **state)
{
	struct scene x;
	u64 capacity;
	u32 i;

	(void)state;
	leave(&x, 7);
	capacity = iso(&x)->capacity;
	assert_resumes(&x, false);
	scene_close(&x);
	leave(&x, 6);
	assert_resumes(&x, true);
	assert_int_equal(iso(&x)->capacity, capacity);
	/* The first probe comes after 96 paced looks in all, 11 of them before. */
	x.reads = fast_reads;
	x.other.done = 92;
	for (i = 11; iso(&x)->state == ISOLATION_PACED; i++)
		look(&x);
	assert_int_equal(i, FIRST_PROBE);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	scene_close(&x);
}

/* The capacity was that of another load. */
static void flow_that_returns_beside_another_load_waits(void **state)
{
	struct scene x;

	(void)state;
	/* Requests of a quarter of the size. */
	leave(&x, 0);
	x.other.bytes = 16384;
	x.other.done = 400;
	assert_resumes(&x, false);
	scene_close(&x);
	/* The drive is more than twice as full. */
	leave(&x, 0);
	x.other.service_ns = 3 * MS;
	assert_resumes(&x, false);
	scene_close(&x);
	/* It has been measured meanwhile. */
	leave(&x, 0);
	x.reads = nothing;
	x.other.done = 80;
	x.other.service_ns = 5 * MS / 4;
	looks(&x, KNOWN);
	assert_near(iso(&x)->capacity, rate_of_bytes(80 * 65536), 5);
	x.reads = slow_reads;
	assert_resumes(&x, true);
	assert_near(iso(&x)->capacity, rate_of_bytes(80 * 65536), 5);
	assert_int_equal(iso(&x)->looks, 0);
	scene_close(&x);
	/* The others keep more requests: the first paced look asks for a probe. */
	leave(&x, 3);
	x.other.waiting = 200;
	assert_resumes(&x, true);
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	scene_close(&x);
}

/* Pacing ended because it brought nothing, so it does not begin at once. */
static void flow_without_benefit_waits_for_the_next_trial(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	while (iso(&x)->state == ISOLATION_PACED)
		look(&x);
	assert_open(&x);
	assert_true(reader(&x)->passes);
	x.reads.service_ns = 2 * MS;
	looks(&x, KNOWN - 1);
	assert_true(reader(&x)->is_short);
	assert_open(&x);
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	scene_close(&x);
}

/* At the same pace a faster drive has fewer requests inside. */
static void faster_drive_is_probed_at_once(void **state)
{
	struct scene x;
	u32 n = 0;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	x.other.done = 92;
	looks(&x, 20);
	/* A third less is not enough. */
	x.other.service_ns = MS * 2 / 3;
	looks(&x, 20);
	/* A single look is not, either, with more than a quarter. */
	x.other.service_ns = MS * 2 / 7;
	look(&x);
	x.other.service_ns = MS;
	looks(&x, 20);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	x.other.service_ns = MS / 4;
	while (iso(&x)->state == ISOLATION_PACED) {
		look(&x);
		n++;
	}
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	assert_in_range(n, 1, 3);
	scene_close(&x);
	/* It does not if it was so from the beginning. */
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	x.other.done = 92;
	x.other.service_ns = MS / 4;
	looks(&x, 40);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	scene_close(&x);
}

static void drive_that_is_far_faster_is_probed_after_one_look(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	x.other.done = 92;
	looks(&x, 20);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	x.other.service_ns = MS / 5;
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	scene_close(&x);
}

/*
 * The drive becomes faster six looks after a probe, before it has emptied.  The
 * usual number inside is that of the looks before the probe.
 */
static void drive_that_is_faster_soon_after_a_probe_is_probed(void **state)
{
	struct scene x;
	u32 i, n = 0;

	(void)state;
	open_and_pace(&x, 8);
	for (i = 0; i < FIRST_PROBE + PROBE; i++) {
		bool paced = iso(&x)->state == ISOLATION_PACED;

		x.reads = paced ? fast_reads : slow_reads;
		x.other.done = paced ? 92 : 100;
		look(&x);
	}
	assert_int_equal(iso(&x)->probes, 1);
	x.reads = fast_reads;
	x.other.done = 92;
	looks(&x, 6);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	x.other.service_ns = MS / 8;
	while (iso(&x)->state == ISOLATION_PACED && ++n < 40)
		look(&x);
	assert_in_range(n, 1, 3);
	scene_close(&x);
}

/*
 * The others change their size while the drive is paced, so a probe follows.  The
 * drive becomes faster after it.  The number inside is then unusual below a
 * sixteenth of those in the open drive.
 */
static void drive_is_probed_if_it_is_faster_beside_another_load(void **state)
{
	struct scene x;
	u32 i, n = 0;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	x.other.done = 92;
	looks(&x, 20);
	x.other.bytes = 2 * 65536;
	for (i = 0; i < 40 && !iso(&x)->probes; i++)
		look(&x);
	assert_int_equal(iso(&x)->probes, 1);
	looks(&x, 6);
	/* The usual number may be a twelfth of those in the open drive. */
	x.other.service_ns = MS / 12;
	looks(&x, 4);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	x.other.service_ns = MS / 32;
	while (iso(&x)->state == ISOLATION_PACED && ++n < 40)
		look(&x);
	assert_in_range(n, 1, 3);
	scene_close(&x);
}

/*
 * A paced drive that never has more than a fiftieth inside is as fast as it was.
 * Alarms after each probe would open it for most of the time.
 */
static void false_alarms_become_rare(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	open_and_pace(&x, 8);
	for (i = 0; i < 1000; i++) {
		bool paced = iso(&x)->state == ISOLATION_PACED;

		x.reads = paced ? fast_reads : slow_reads;
		x.other = deep;
		x.other.done = paced ? 92 : 100;
		x.other.service_ns = paced ? MS / 50 : MS;
		look(&x);
	}
	assert_in_range(iso(&x)->probes, 3, 8);
	scene_close(&x);
}

/*
 * With a little loss a paced drive empties slowly: here for 24 looks after each
 * probe.  That is not a faster drive, so probes remain rare.
 */
static void drive_that_empties_slowly_is_not_faster(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	open_and_pace(&x, 8);
	for (i = 0; i < 600; i++) {
		bool paced = iso(&x)->state == ISOLATION_PACED;
		u32 looks = paced ? iso(&x)->looks : 0;

		x.reads = paced ? fast_reads : slow_reads;
		x.other = deep;
		x.other.done = paced ? 92 : 100;
		x.other.service_ns = MS - min(looks, 24U) * (MS / 32);
		look(&x);
	}
	assert_in_range(iso(&x)->probes, 1, 5);
	/* A drive that is faster later is found as before. */
	while (iso(&x)->state != ISOLATION_PACED || iso(&x)->looks < 40) {
		x.reads = fast_reads;
		look(&x);
	}
	x.other.service_ns = MS / 16;
	looks(&x, 12);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	scene_close(&x);
}

/* ------------------------------------------------------------- depth and shares */

/*
 * Two flows of one weight wait for slots.  At D = 128 they do 110 requests in a
 * look, and the reader @at_double of them; at less, it does 47 of 100.  Returns
 * how many of the last 100 looks had D = 128.
 */
static u32 looks_at_double_depth(u32 at_double)
{
	struct scene x;
	u32 n, found = 0;

	depth_scene(&x, 2 * DEPTH);
	flow_set_weight(x.reader, 100);
	x.reads = x.other = deep;
	for (n = 0; n < 600; n++) {
		u32 depth = x.h.sched.params.depth;
		bool twice = depth == 2 * DEPTH;
		/* Half of the slots do less work. */
		u32 done = twice ? 110 : depth == DEPTH ? 100 : 80;

		x.reads.done = twice ? at_double : done * 47 / 100;
		x.other.done = done - x.reads.done;
		found += twice && n >= 500;
		waiting_look(&x);
		assert_false(reader(&x)->is_short);
	}
	scene_close(&x);
	return found;
}

static void depth_that_costs_a_flow_its_share_is_not_taken(void **state)
{
	(void)state;
	/* As far from its half as before. */
	assert_true(looks_at_double_depth(52) > 80);
	assert_true(looks_at_double_depth(40) < 80);
}

/* A queue waited once.  That is no reason to try another D later. */
static void old_wait_for_a_slot_does_not_count(void **state)
{
	struct scene x;

	(void)state;
	depth_scene(&x, 256);
	waiting_look(&x);
	looks(&x, 200);
	assert_int_equal(x.h.sched.params.depth, DEPTH);
	scene_close(&x);
}

/* Only a change of D is a reason to look for slots again. */
static void look_that_keeps_depth_wakes_no_queue(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	depth_scene(&x, 256);
	for (i = 0; i <= DEPTH; i++)
		hooks_insert(&x.h, 0, x.others, 65536, 0);
	for (i = 0; i < DEPTH; i++)
		hooks_dispatch(&x.h, 0, DISPATCH_IO);
	hooks_dispatch(&x.h, 0, DISPATCH_NO_SLOT);
	for (i = 0; i < 10; i++) {
		look(&x);
		assert_int_equal(x.h.sched.params.depth, DEPTH);
		assert_int_equal(wake_next(&x.wake), QUEUES_MAX);
	}
	hooks_drain(&x.h);
	scene_close(&x);
}

/* The next request is due in 1 ns, and a timer for each would be too many. */
static void timers_are_a_part_of_a_look_apart(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	hold_slots(&x, 4);
	hooks_insert(&x.h, 1, x.others, 65536, 0);
	hooks_dispatch(&x.h, 1, DISPATCH_IO);
	atomic64_set(&iso(&x)->next_ns, (s64)x.h.now + 1);
	tick(&x);
	assert_int_equal(atomic64_read(&slots(&x)->held), 4);
	assert_int_equal(x.wake.release_ns, x.h.now + LOOK_NS / 64);
	hooks_drain(&x.h);
	scene_close(&x);
}

/* Tick has the flows' use of the drive measured, with isolation or without. */
static void tick_measures_the_use_of_the_drive(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	scene_open(&x, 0);
	for (i = 0; i < 3; i++) {
		do_work(x.reader, &x.reads, LATENCY_TICK_NS);
		do_work(x.others, &x.other, LATENCY_TICK_NS);
		x.h.now += LATENCY_TICK_NS;
		tick(&x);
		/* In 2 ms, 100 requests wait for 3 ms and take 1 ms. */
		assert_near(x.others->latency.usage.waiting_x100, 15000, 10);
		assert_near(x.others->latency.usage.inside_x100, 5000, 10);
		assert_in_range(x.others->latency.usage.part_ppm, 998000,
				999999);
	}
	scene_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(look_needs_a_turnover_and_16_requests),
		cmocka_unit_test(lone_flow_is_looked_at_rarely),
		cmocka_unit_test(look_without_completions_teaches_nothing),
		cmocka_unit_test(flow_that_misses_its_goal_is_short),
		cmocka_unit_test(
			goal_of_a_flow_that_waits_outside_is_not_pursued),
		cmocka_unit_test(loss_follows_the_verdicts),
		cmocka_unit_test(loss_of_a_goal_is_remembered),
		cmocka_unit_test(remembered_loss_is_bounded),
		cmocka_unit_test(probes_are_rarer_beside_a_goal),
		cmocka_unit_test(probe_ends_the_correction),
		cmocka_unit_test(each_pacing_ends_after_two_quiet_looks),
		cmocka_unit_test(flow_that_returns_soon_is_isolated_at_once),
		cmocka_unit_test(flow_that_returns_beside_another_load_waits),
		cmocka_unit_test(flow_without_benefit_waits_for_the_next_trial),
		cmocka_unit_test(faster_drive_is_probed_at_once),
		cmocka_unit_test(
			drive_that_is_far_faster_is_probed_after_one_look),
		cmocka_unit_test(
			drive_that_is_faster_soon_after_a_probe_is_probed),
		cmocka_unit_test(
			drive_is_probed_if_it_is_faster_beside_another_load),
		cmocka_unit_test(false_alarms_become_rare),
		cmocka_unit_test(drive_that_empties_slowly_is_not_faster),
		cmocka_unit_test(depth_that_costs_a_flow_its_share_is_not_taken),
		cmocka_unit_test(old_wait_for_a_slot_does_not_count),
		cmocka_unit_test(look_that_keeps_depth_wakes_no_queue),
		cmocka_unit_test(timers_are_a_part_of_a_look_apart),
		cmocka_unit_test(tick_measures_the_use_of_the_drive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
