// SPDX-License-Identifier: GPL-2.0
/* Looks at flows: which of them are short, and which pass. */
#include "isolation_scene.h"
#include "sched/core/policies.h"

enum {
	PRESENT = 8,		/* looks until all is known of a flow */
};

/* ------------------------------------------------------ the flows that are short */

/* Returns whether the drive is ever paced in 100 looks. */
static bool is_paced_for(const struct act *reads, u32 weight)
{
	struct scene x;
	u32 i;
	bool paced = false;

	scene_open(&x, 8);
	flow_set_weight(x.reader, weight);
	x.reads = *reads;
	for (i = 0; i < 100; i++) {
		look(&x);
		paced |= iso(&x)->paces;
	}
	scene_close(&x);
	return paced;
}

static void flow_that_waits_outside_is_not_short(void **state)
{
	struct act reads = slow_reads;

	(void)state;
	assert_true(is_paced_for(&reads, 1000));
	/* As long as in the drive: it may have no more requests. */
	reads.wait_ns = reads.service_ns;
	assert_true(is_paced_for(&reads, 1000));
	reads.wait_ns = reads.service_ns * 5 / 4;
	assert_false(is_paced_for(&reads, 1000));
}

/* Its requests wait outside for many looks, as those of a spent budget do. */
static void flow_that_sends_nothing_is_not_short(void **state)
{
	struct act reads = nothing;

	(void)state;
	reads.inside = 1;
	assert_true(is_paced_for(&reads, 1000));
	reads.waiting = 1;
	assert_false(is_paced_for(&reads, 1000));
}

/* 99 requests in 100, of 64 KiB, are the others'. */
static void flow_with_its_share_is_not_short(void **state)
{
	struct act reads = slow_reads;

	(void)state;
	reads.bytes = 65536;
	/* It has 2 / 102, and 100 / 5100 are due to weight 2. */
	assert_false(is_paced_for(&reads, 2));
	/* 7/8 of the due part: 2 / 102 is 0.84 of 2.4 / 102.4. */
	assert_false(is_paced_for(&reads, 1));
	assert_true(is_paced_for(&reads, 3));
}

/* Half of 64 slots are due to the reader.  They count by cost. */
static void flow_with_its_slots_is_not_short(void **state)
{
	struct act reads = slow_reads;

	(void)state;
	reads.bytes = 65536;
	reads.service_ns = LOOK_NS;
	reads.done = 30;
	assert_true(is_paced_for(&reads, 100));
	reads.done = 34;
	assert_false(is_paced_for(&reads, 100));
	reads.bytes = 4096;
	assert_true(is_paced_for(&reads, 100));
	/* One request is never too much, whatever is due. */
	reads.bytes = 65536;
	reads.done = 1;
	assert_true(is_paced_for(&reads, 3));
}

static void absent_flow_is_not_short(void **state)
{
	(void)state;
	assert_false(is_paced_for(&nothing, 1000));
}

/* A flow counts as present from the second look with requests on. */
static void flow_is_short_from_its_second_look_on(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	x.reads = nothing;
	looks(&x, 10);
	assert_int_equal(reader(&x)->present, 0);
	x.reads = slow_reads;
	look(&x);
	assert_false(reader(&x)->passes);
	assert_open(&x);
	look(&x);
	assert_true(reader(&x)->passes);
	assert_true(reader(&x)->is_short);
	assert_true(iso(&x)->paces);
	scene_close(&x);
}

/* ------------------------------------------------ flows that come now and then */

/* The reader is away for @away looks, and then has requests in a look. */
static void come_after(struct scene *x, u32 away)
{
	x->reads = nothing;
	looks(x, away);
	x->reads = iso(x)->paces ? fast_reads : slow_reads;
	look(x);
}

static void flow_that_comes_now_and_then_stays_short(void **state)
{
	struct scene x;
	u32 away, i;

	(void)state;
	for (away = 1; away <= 4; away++) {
		scene_open(&x, 8);
		looks(&x, 2);
		for (i = 0; i < 20; i++)
			come_after(&x, away);
		assert_int_equal(reader(&x)->gap, away);
		for (i = 0; i < 20; i++) {
			come_after(&x, away);
			assert_true(reader(&x)->is_short);
			assert_int_not_equal(iso(&x)->state, ISOLATION_OPEN);
		}
		/* It is expected for so many looks, and no longer. */
		x.reads = nothing;
		looks(&x, away);
		assert_true(reader(&x)->is_short);
		look(&x);
		assert_false(reader(&x)->is_short);
		assert_int_equal(reader(&x)->present, 0);
		looks(&x, 15 - away);
		assert_open(&x);
		assert_int_equal(reader(&x)->gap, away);
		look(&x);
		assert_int_equal(reader(&x)->gap, 0);
		scene_close(&x);
	}
	/* Rarer than that: each request is a first one. */
	scene_open(&x, 8);
	for (i = 0; i < 20; i++) {
		come_after(&x, 5);
		assert_false(reader(&x)->passes);
		assert_open(&x);
	}
	scene_close(&x);
}

/* The longest of the recent absences counts, until the flow has come to stay. */
static void flow_that_stays_is_not_expected(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	come_after(&x, 1);
	come_after(&x, 3);
	assert_int_equal(reader(&x)->gap, 3);
	come_after(&x, 2);
	assert_int_equal(reader(&x)->gap, 3);
	looks(&x, 6);
	assert_int_equal(reader(&x)->gap, 3);
	look(&x);
	assert_int_equal(reader(&x)->gap, 0);
	assert_true(reader(&x)->is_short);
	x.reads = nothing;
	look(&x);
	assert_false(reader(&x)->is_short);
	scene_close(&x);
}

/* It was not active at the look before, and comes as a new flow. */
static void flow_that_was_not_active_is_forgotten(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	come_after(&x, 1);
	come_after(&x, 1);
	assert_true(reader(&x)->is_short);
	assert_int_equal(reader(&x)->gap, 1);
	/* As if looks had gone by without it. */
	reader(&x)->look -= 3;
	x.reads = slow_reads;
	look(&x);
	assert_int_equal(reader(&x)->present, 1);
	assert_int_equal(reader(&x)->gap, 0);
	assert_int_equal(reader(&x)->pass_until, 0);
	assert_false(reader(&x)->is_short);
	scene_close(&x);
}

/* It is short at its second request.  While it is away, its means are kept. */
static void absence_of_an_expected_flow_teaches_nothing(void **state)
{
	struct isolation_flow before;
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	come_after(&x, 0);
	come_after(&x, 2);
	assert_int_equal(reader(&x)->present, 2);
	assert_true(reader(&x)->is_short);
	before = *reader(&x);
	x.reads = nothing;
	looks(&x, 2);
	assert_true(reader(&x)->is_short);
	assert_int_equal(reader(&x)->present, before.present);
	assert_int_equal(reader(&x)->got, before.got);
	assert_int_equal(reader(&x)->due, before.due);
	scene_close(&x);
}

/*
 * Before such a flow is known, a scheduler by budget keeps requests of the others
 * for it.  The drive does less then, and those looks do not measure it.
 */
static void drive_is_measured_anew_for_a_flow_that_is_expected(void **state)
{
	u64 whole = rate_of_bytes(100 * 65536);
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	x.other.done = 80;
	x.other.service_ns = 5 * MS / 4;
	x.reads = nothing;
	looks(&x, 12);
	come_after(&x, 0);
	assert_false(isolation_measures(iso(&x)));
	come_after(&x, 2);
	assert_true(isolation_measures(iso(&x)));
	x.other = deep;
	come_after(&x, 2);
	/* These are four looks of six. */
	assert_true(reader(&x)->is_short);
	assert_int_equal(iso(&x)->state, ISOLATION_OPEN);
	come_after(&x, 2);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	assert_near(iso(&x)->capacity, whole, 10);
	scene_close(&x);
}

/* One request in the drive for many looks is presence too. */
static void flow_with_a_long_request_is_present(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	x.reads.done = 0;
	looks(&x, 5);
	assert_int_equal(reader(&x)->present, 5);
	assert_true(reader(&x)->is_short);
	scene_close(&x);
}

/* Once below its share a flow stays so until it has 9/8 of it. */
static void flow_passes_until_it_clearly_has_its_share(void **state)
{
	static const struct {
		u32 done;
		bool passes;
	} steps[] = {
		/* of 100 + done, one third is due: weight 50 */
		{ 20, true },  { 43, true },  { 54, true },
		{ 70, false }, { 46, false }, { 30, true },
	};
	struct scene x;
	u32 i;

	(void)state;
	scene_open(&x, 8);
	flow_set_weight(x.reader, 50);
	x.reads.bytes = 65536;
	x.reads.service_ns = MS / 4;
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		x.reads.done = steps[i].done;
		looks(&x, 40);
		assert_int_equal(reader(&x)->passes, steps[i].passes);
	}
	scene_close(&x);
}

/* ------------------------------------------------------------------- benefit */

/* The drive is not the cause if its requests take as long while it is paced. */
static void flow_that_does_not_gain_is_not_short(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	looks(&x, TRIAL - 1);
	assert_true(reader(&x)->is_short);
	assert_true(iso(&x)->paces);
	looks(&x, 3);
	assert_false(reader(&x)->is_short);
	/* It is below its share, so its requests pass. */
	assert_true(reader(&x)->passes);
	assert_true(reader(&x)->pass_until > 0);
	assert_open(&x);
	looks(&x, 100);
	assert_open(&x);
	/* Its requests take half more than the least time now. */
	x.reads.service_ns = 3 * MS / 2;
	looks(&x, 10);
	assert_open(&x);
	x.reads.service_ns = 8 * MS / 5;
	looks(&x, 10);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	scene_close(&x);
}

/* A quarter less is a gain: 4/3 of the paced time is less than the open one. */
static void flow_that_gains_a_quarter_stays_short(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.reads.service_ns = MS * 74 / 100;
	looks(&x, TRIAL + 20);
	assert_true(reader(&x)->is_short);
	assert_true(iso(&x)->paces);
	x.reads.service_ns = MS * 76 / 100;
	looks(&x, 4);
	assert_false(reader(&x)->is_short);
	assert_open(&x);
	scene_close(&x);
}

/* The times of reads of 4 KiB are not those of reads of 16 KiB. */
static void times_are_those_of_one_size(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	looks(&x, TRIAL + 5);
	assert_open(&x);
	looks(&x, 10);
	assert_false(reader(&x)->is_short);
	x.reads.bytes = 6144;
	looks(&x, 10);
	assert_false(reader(&x)->is_short);
	x.reads.bytes = 16384;
	looks(&x, 10);
	assert_true(iso(&x)->paces);
	assert_int_equal(reader(&x)->mean_cost, 16384);
	/* Less than half as large, too. */
	looks(&x, TRIAL + 5);
	assert_open(&x);
	x.reads.bytes = 8192;
	looks(&x, 10);
	assert_open(&x);
	x.reads.bytes = 4096;
	looks(&x, 10);
	assert_true(iso(&x)->paces);
	scene_close(&x);
}

/* Beside others an open drive does not show the least time of a request. */
static void least_time_is_learned_alone_or_paced(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	looks(&x, KNOWN);
	assert_int_equal(reader(&x)->least_ns, 0);
	x.reads = fast_reads;
	look(&x);
	assert_int_equal(reader(&x)->least_ns, MS / 4);
	assert_near(reader(&x)->open_ns, MS, 1);
	scene_close(&x);
	scene_open(&x, 8);
	x.other = nothing;
	x.reads = fast_reads;
	looks(&x, 2);
	assert_int_equal(reader(&x)->least_ns, MS / 4);
	/* Alone it has its share. */
	looks(&x, 20);
	assert_open(&x);
	scene_close(&x);
}

/* --------------------------------------------------------------- their times */

static void least_time_only_falls(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.reads.service_ns = MS / 2;
	look(&x);
	assert_int_equal(reader(&x)->least_ns, MS / 2);
	x.reads.service_ns = MS / 4;
	look(&x);
	assert_int_equal(reader(&x)->least_ns, MS / 4);
	x.reads.service_ns = MS / 3;
	look(&x);
	assert_int_equal(reader(&x)->least_ns, MS / 4);
	scene_close(&x);
}

/* While paced, the time in the open drive of other requests is not known. */
static void open_time_is_that_of_one_size(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	assert_near(reader(&x)->open_ns, MS, 1);
	x.reads.bytes = 16384;
	look(&x);
	assert_int_equal(reader(&x)->open_ns, 0);
	scene_close(&x);
	/* The same of the time in a paced drive, where the first look is slow. */
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	looks(&x, 5);
	assert_near(reader(&x)->paced_ns, MS / 4, 1);
	x.reads = slow_reads;
	x.reads.bytes = 16384;
	look(&x);
	assert_near(reader(&x)->paced_ns, MS, 1);
	scene_close(&x);
}

/* The work of a flow before it was away does not count when it is back. */
static void flow_that_was_away_counts_anew(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	flow_set_weight(x.reader, 100);
	x.reads.bytes = 65536;
	x.reads.done = 300;
	looks(&x, 4);
	assert_false(reader(&x)->passes);
	x.reads = nothing;
	/* So long that it is not expected back. */
	looks(&x, 5);
	assert_int_equal(reader(&x)->present, 0);
	x.reads = slow_reads;
	look(&x);
	assert_false(reader(&x)->passes);
	look(&x);
	assert_true(reader(&x)->passes);
	scene_close(&x);
}

/* ------------------------------------------------------------ requests that pass */

/*
 * All are due a part, and a third tenant does nearly all of the work.  The others
 * wait outside and get @done requests in a look.  Does the reader pass, once their
 * lack is known?
 */
static bool passes_beside(u32 done)
{
	const struct act third = deep;
	struct scene x;
	struct flow *f;
	bool passes;
	u32 i;

	scene_open(&x, 8);
	f = hooks_flow(&x.h, 100);
	first_io(&x, f);
	see(f);
	flow_set_weight(x.reader, 100);
	x.reads.bytes = 65536;
	x.reads.done = 20;
	x.other.done = done;
	x.other.inside = 0;
	x.other.waiting = 10;
	for (i = 0; i < 200; i++) {
		do_work(f, &third, LOOK_NS);
		look(&x);
		/* A lack of 250 ms is a lack. */
		if (i > PRESENT && i < 120)
			assert_true(reader(&x)->passes);
	}
	passes = reader(&x)->passes;
	scene_close(&x);
	return passes;
}

/* The reader has half of its share. */
static void flow_does_not_pass_beside_one_that_lacks_more(void **state)
{
	(void)state;
	assert_false(passes_beside(0));
	assert_false(passes_beside(10));
	assert_true(passes_beside(40));
	assert_true(passes_beside(20));
}

static void short_flow_passes_up_to_two_looks_of_its_share(void **state)
{
	u64 due = (100 * 65536 + 2 * 4096) * 2 * 10ULL / 11, until;
	struct scene x;
	struct io *io;
	u32 n = 0;

	(void)state;
	open_and_pace(&x, 8);
	until = reader(&x)->pass_until;
	assert_near(until - (u64)atomic64_read(&x.reader->pos), due, 1);
	assert_int_equal(x.others->isolation.pass_until, 0);
	/* Requests before that position pass, and take no slot. */
	for (;;) {
		u64 pos = (u64)atomic64_read(&x.reader->pos);
		bool passes;

		io = hooks_insert(&x.h, 0, x.reader, 1 << 20, 0);
		passes = io->flags & IO_EXEMPT;
		assert_int_equal(passes, pos < until);
		assert_int_equal(!!(io->flags & IO_URGENT), passes);
		assert_ptr_equal(hooks_dispatch(&x.h, 0, DISPATCH_IO), io);
		assert_int_equal(!!(io->flags & IO_SLOT), !passes);
		hooks_complete(&x.h, io);
		if (!passes)
			break;
		n++;
	}
	assert_in_range(n, due >> 20, (due >> 20) + 1);
	/* Requests of the others do not pass. */
	io = hooks_insert(&x.h, 0, x.others, 4096, 0);
	assert_int_equal(io->flags & (IO_EXEMPT | IO_URGENT), 0);
	hooks_drain(&x.h);
	/* The next look lets the reader pass again. */
	look(&x);
	assert_true(reader(&x)->pass_until > until);
	/* A flow that is not short any more does not pass. */
	x.reads = nothing;
	look(&x);
	assert_int_equal(reader(&x)->pass_until, 0);
	scene_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_does_not_pass_beside_one_that_lacks_more),
		cmocka_unit_test(flow_that_waits_outside_is_not_short),
		cmocka_unit_test(flow_that_sends_nothing_is_not_short),
		cmocka_unit_test(flow_with_its_share_is_not_short),
		cmocka_unit_test(flow_with_its_slots_is_not_short),
		cmocka_unit_test(absent_flow_is_not_short),
		cmocka_unit_test(flow_is_short_from_its_second_look_on),
		cmocka_unit_test(flow_that_comes_now_and_then_stays_short),
		cmocka_unit_test(flow_that_stays_is_not_expected),
		cmocka_unit_test(flow_that_was_not_active_is_forgotten),
		cmocka_unit_test(absence_of_an_expected_flow_teaches_nothing),
		cmocka_unit_test(
			drive_is_measured_anew_for_a_flow_that_is_expected),
		cmocka_unit_test(flow_with_a_long_request_is_present),
		cmocka_unit_test(flow_passes_until_it_clearly_has_its_share),
		cmocka_unit_test(flow_that_does_not_gain_is_not_short),
		cmocka_unit_test(flow_that_gains_a_quarter_stays_short),
		cmocka_unit_test(times_are_those_of_one_size),
		cmocka_unit_test(least_time_is_learned_alone_or_paced),
		cmocka_unit_test(least_time_only_falls),
		cmocka_unit_test(open_time_is_that_of_one_size),
		cmocka_unit_test(flow_that_was_away_counts_anew),
		cmocka_unit_test(short_flow_passes_up_to_two_looks_of_its_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
