// SPDX-License-Identifier: GPL-2.0
/* The decisions of isolation.c, from counters that the test sets. */
#include "isolation_scene.h"

/* ------------------------------------------------------------ beginning, end */

static void pacing_waits_for_the_capacity(void **state)
{
	u64 short_rate = rate_of_bytes(2 * 4096),
	    capacity = rate_of_bytes(100 * 65536) + short_rate;
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	looks(&x, KNOWN - 1);
	assert_true(reader(&x)->is_short);
	assert_open(&x);
	assert_int_equal(iso(&x)->capacity, 0);
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	assert_true(iso(&x)->paces);
	assert_near(iso(&x)->capacity, capacity, 1);
	/* The others have 92 % less the short flow's: 64 KiB every 22 us. */
	assert_int_equal(iso(&x)->loss, 80);
	assert_near(iso(&x)->pace,
		    (1ULL << 36) / (capacity * 92 / 100 - short_rate), 1);
	assert_near(iso(&x)->pace, 21740, 2);
	assert_int_equal(iso(&x)->limit, FIRST_LIMIT);
	assert_int_equal(slots(&x)->limit, FIRST_LIMIT);
	scene_close(&x);
}

/*
 * Of the 51 requests inside 5 are usual, which is 92 % of an eighth.  The drive
 * does the other 46 before the next one enters.
 */
static void pacing_begins_with_an_emptier_drive(void **state)
{
	struct scene x;
	u64 each;

	(void)state;
	open_and_pace(&x, 8);
	assert_int_equal(iso(&x)->usual_inside >> 8, 5);
	each = (iso(&x)->mean_bytes * iso(&x)->pace) >> 16;
	assert_in_range(each, 19000, 21740);
	assert_int_equal(atomic64_read(&iso(&x)->next_ns), x.h.now + 46 * each);
	scene_close(&x);
	/* No more are inside than usual. */
	open_and_pace(&x, 8);
	x.reads = nothing;
	looks(&x, 2);
	assert_open(&x);
	iso(&x)->usual_inside = 51 << 8;
	x.reads = slow_reads;
	looks(&x, 2);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	assert_int_equal(atomic64_read(&iso(&x)->next_ns), x.h.now);
	scene_close(&x);
}

/* Tick asks for the next look, and takes none before. */
static void looks_come_at_their_time(void **state)
{
	struct scene x;
	u64 at;

	(void)state;
	scene_open(&x, 8);
	at = x.h.now + LOOK_NS;
	assert_int_equal(x.wake.at_ns, at);
	do_work(x.reader, &x.reads, LOOK_NS);
	do_work(x.others, &x.other, LOOK_NS);
	x.h.now = at - 1;
	tick(&x);
	assert_int_equal(x.wake.at_ns, at);
	assert_int_equal(reader(&x)->present, 0);
	x.h.now = at;
	tick(&x);
	assert_int_equal(x.wake.at_ns, at + LOOK_NS);
	assert_int_equal(reader(&x)->present, 1);
	scene_close(&x);
}

/* It lasts until as many requests are done as are inside, or for a second. */
static void look_lasts_for_a_turnover(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	x.other.inside = 130;
	look(&x);
	assert_int_equal(reader(&x)->present, 0);
	look(&x);
	assert_int_equal(reader(&x)->present, 1);
	x.reads = x.other = nothing;
	x.reads.inside = 1;
	while (iso(&x)->at_ns < x.h.now + LOOK_MOST_NS / 5)
		look(&x);
	assert_int_equal(reader(&x)->present, 1);
	looks(&x, 5);
	assert_true(reader(&x)->present > 1);
	scene_close(&x);
}

/* A look takes two mean times in the open drive, but at most a second. */
static void looks_are_as_long_as_the_drive_is_slow(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	x.other.service_ns = 5 * MS;
	x.reads.service_ns = 5 * MS;
	looks(&x, 10);
	assert_near(iso(&x)->at_ns - x.h.now, 10 * MS, 1);
	scene_close(&x);
	scene_open(&x, 8);
	x.other.service_ns = 5000 * MS;
	x.reads.service_ns = 5000 * MS;
	looks(&x, 40);
	assert_int_equal(iso(&x)->at_ns - x.h.now, LOOK_MOST_NS);
	scene_close(&x);
}

static void pacing_ends_when_the_short_flow_is_gone(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = nothing;
	look(&x);
	assert_true(iso(&x)->paces);
	assert_false(reader(&x)->is_short);
	look(&x);
	assert_open(&x);
	scene_close(&x);
}

static void pacing_ends_when_no_flow_is_active(void **state)
{
	struct scene x;
	bool changed;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = x.other = nothing;
	do_work(x.reader, &nothing, LOOK_NS);
	do_work(x.others, &nothing, LOOK_NS);
	flow_sweep(&x.h.sched, x.h.now, &changed);
	while (flow_sweep(&x.h.sched, x.h.now += FLOW_GRACE_NS, &changed))
		;
	tick(&x);
	assert_open(&x);
	assert_int_equal(x.wake.at_ns, 0);
	assert_int_equal(iso(&x)->capacity, 0);
	assert_int_equal(iso(&x)->look_ns, 0);
	scene_close(&x);
}

/* -------------------------------------------------------------- loss and bound */

/* Reads with about the share that is due to weight 50, in requests of 64 KiB. */
static void reads_of_a_third(struct scene *x, u32 done)
{
	flow_set_weight(x->reader, 50);
	x->reads.bytes = 65536;
	x->reads.done = done;
}

static void loss_follows_the_short_flow(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	scene_open(&x, 8);
	reads_of_a_third(&x, 20);
	looks(&x, KNOWN);
	assert_true(iso(&x)->paces);
	assert_int_equal(iso(&x)->loss, 80);
	/* It never grows beyond the tunable. */
	x.reads.service_ns = MS / 2;
	for (i = 0; i < 20; i++) {
		look(&x);
		assert_int_equal(iso(&x)->loss, 80);
	}
	/* It has 51 of 151: its share, and not clearly more. */
	x.reads.done = 51;
	looks(&x, 20);
	assert_true(reader(&x)->is_short);
	assert_int_equal(iso(&x)->loss, 0);
	/* An eighth at a look. */
	x.reads.done = 20;
	looks(&x, 3);
	assert_in_range(iso(&x)->loss, 20, 30);
	looks(&x, 6);
	assert_int_equal(iso(&x)->loss, 80);
	/* The user sets less. */
	x.h.sched.params.isolation = 3;
	look(&x);
	assert_int_equal(iso(&x)->loss, 30);
	scene_close(&x);
}

/* Pacing lets in capacity * (1 - loss), however little the short flow does. */
static void pace_keeps_the_bound(void **state)
{
	static const u32 percents[] = { 1, 6, 25, 90 };
	struct scene x;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(percents); i++) {
		u64 total, rate;

		open_and_pace(&x, percents[i]);
		rate = (1ULL << 36) / iso(&x)->pace + rate_of_bytes(2 * 4096);
		total = iso(&x)->capacity * (100 - percents[i]) / 100;
		assert_near(rate, total, 2);
		/*
		 * The drive does all that is let in: the pace does not drift.
		 * The work of a look is what the bound allows.
		 */
		x.other.done = 100 - percents[i];
		x.other.service_ns = x.reads.service_ns = MS / 2;
		looks(&x, 60);
		assert_true(iso(&x)->paces);
		rate = (1ULL << 36) / iso(&x)->pace + rate_of_bytes(2 * 4096);
		assert_true(rate >=
			    total - iso(&x)->capacity / 32 - total / 500);
		assert_true(rate <=
			    total + iso(&x)->capacity / 32 + total / 500);
		scene_close(&x);
	}
}

/* If requests come late the pace rises, but by no more than 1/32. */
static void late_requests_raise_the_pace_a_little(void **state)
{
	struct scene x;
	u64 before, rate;

	(void)state;
	open_and_pace(&x, 8);
	before = (1ULL << 36) / iso(&x)->pace;
	x.reads.service_ns = MS / 2;
	x.other.done = 85;
	look(&x);
	rate = (1ULL << 36) / iso(&x)->pace;
	assert_true(rate > before);
	looks(&x, 60);
	rate = (1ULL << 36) / iso(&x)->pace;
	assert_near(rate, before + iso(&x)->capacity / 32, 2);
	/* It falls again, and a drive that does more than wanted is slowed. */
	x.other.done = 99;
	looks(&x, 25);
	rate = (1ULL << 36) / iso(&x)->pace;
	assert_near(rate, before - iso(&x)->capacity / 32, 2);
	scene_close(&x);
}

static void auto_gives_more_to_a_flow_that_does_much(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, ISOLATION_AUTO);
	x.h.sched.params.isolation_auto = 1;
	/* Weight 1000 is due 91 %, and it does a third of the work. */
	x.reads = (struct act){ 50, 65536, MS, 0, 25, 0 };
	looks(&x, KNOWN);
	assert_true(iso(&x)->paces);
	assert_int_equal(iso(&x)->loss, 60 + 30 / 3);
	scene_close(&x);
	open_and_pace(&x, ISOLATION_AUTO);
	assert_int_equal(iso(&x)->loss, 60);
	scene_close(&x);
}

/* A short flow that does nearly all of the work leaves the others a little. */
static void the_others_always_get_a_little(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 50);
	x.reads = (struct act){ 75, 65536, MS, 0, 38, 0 };
	x.other.done = 25;
	looks(&x, KNOWN);
	assert_true(iso(&x)->paces);
	assert_near((1ULL << 36) / iso(&x)->pace, iso(&x)->capacity / 64, 1);
	scene_close(&x);
}

/* ---------------------------------------------------------------------- probes */

static void probe_opens_the_drive_for_six_looks(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	x.other.done = 92;
	looks(&x, FIRST_PROBE - 1);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	assert_false(iso(&x)->paces);
	assert_int_equal(slots(&x)->limit, DEPTH_MAX);
	x.reads = slow_reads;
	x.other.done = 100;
	for (i = 0; i < PROBE - 1; i++) {
		look(&x);
		assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	}
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	assert_int_equal(iso(&x)->probes, 1);
	assert_true(iso(&x)->paces);
	/* Later probes come after 256 looks. */
	x.reads = fast_reads;
	x.other.done = 92;
	looks(&x, PROBE_LOOKS - 1);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	scene_close(&x);
}

/* Runs until a probe has ended in which the others do @done in a look. */
static u64 capacity_after_probe(struct scene *x, u32 done)
{
	u64 probes = iso(x)->probes;

	x->reads = fast_reads;
	x->other.done = 92;
	while (iso(x)->state == ISOLATION_PACED)
		look(x);
	x->other.done = done;
	x->reads = slow_reads;
	while (iso(x)->probes == probes)
		look(x);
	return iso(x)->capacity;
}

static void capacity_follows_the_probes(void **state)
{
	u64 full = rate_of_bytes(100 * 65536 + 2 * 4096);
	struct scene x;

	(void)state;
	/* More is believed by half, less by a quarter, much less at once. */
	open_and_pace(&x, 8);
	assert_near(capacity_after_probe(&x, 110), full * 105 / 100, 2);
	scene_close(&x);
	open_and_pace(&x, 8);
	assert_near(capacity_after_probe(&x, 90), full * 975 / 1000, 2);
	scene_close(&x);
	open_and_pace(&x, 8);
	x.other.inside = 25;
	assert_near(capacity_after_probe(&x, 92), full * 98 / 100, 2);
	scene_close(&x);
}

/* The drive has become much slower: as full as before, it does half. */
static void capacity_falls_at_once_if_it_is_much_less(void **state)
{
	u64 half = rate_of_bytes(50 * 65536 + 2 * 4096);
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.other.service_ns = 2 * MS;
	assert_near(capacity_after_probe(&x, 50), half, 2);
	scene_close(&x);
}

static void other_sizes_ask_for_a_probe(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	/* A ninth more is the same mix. */
	x.other.bytes = 65536 / 9 * 10;
	looks(&x, 30);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	x.other.bytes = 65536 * 5 / 4;
	for (i = 0; iso(&x)->state == ISOLATION_PACED; i++)
		look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	assert_in_range(i, 1, 8);
	scene_close(&x);
	/* Not before sixteen looks. */
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	x.other.bytes = 32768;
	looks(&x, 15);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	scene_close(&x);
}

static void growing_demand_asks_for_a_probe(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	/* There were 51, all in the drive.  Half as many again is no growth. */
	x.other.waiting = 25;
	looks(&x, 30);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	x.other.waiting = 60;
	for (i = 0; iso(&x)->state == ISOLATION_PACED; i++)
		look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PROBE);
	assert_in_range(i, 1, 4);
	scene_close(&x);
}

/* Work that was done for few requests does not show the capacity for many. */
static void a_fuller_drive_is_measured_anew(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 8);
	/* Each flow has its share, so none is short. */
	x.reads = (struct act){ 8, 1 << 20, MS / 4, 0, 1, 0 };
	x.other = (struct act){ 15, 65536, MS / 4, 0, 2, 0 };
	looks(&x, 20);
	assert_open(&x);
	assert_near(iso(&x)->capacity, rate_of_bytes(15 * 65536 + (8 << 20)),
		    1);
	x.reads = slow_reads;
	x.other = deep;
	looks(&x, KNOWN - 1);
	assert_true(reader(&x)->is_short);
	assert_open(&x);
	look(&x);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	assert_near(iso(&x)->capacity, rate_of_bytes(100 * 65536 + 2 * 4096),
		    1);
	scene_close(&x);
}

/* ------------------------------------------------------------ nothing to decide */

static void isolation_0_does_nothing(void **state)
{
	struct scene x;

	(void)state;
	scene_open(&x, 0);
	assert_int_equal(x.wake.at_ns, 0);
	for (x.h.now = LOOK_NS; x.h.now < 100 * (u64)LOOK_NS;
	     x.h.now += LOOK_NS) {
		do_work(x.reader, &x.reads, LOOK_NS);
		do_work(x.others, &x.other, LOOK_NS);
		tick(&x);
		assert_int_equal(x.wake.at_ns, 0);
	}
	assert_open(&x);
	assert_int_equal(iso(&x)->look_ns, 0);
	assert_int_equal(reader(&x)->present, 0);
	assert_int_equal(reader(&x)->pass_until, 0);
	hold_slots(&x, 4);
	assert_int_equal(atomic64_read(&iso(&x)->next_ns), 0);
	scene_close(&x);
}

static void isolation_0_ends_the_pacing(void **state)
{
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.h.sched.params.isolation = 0;
	tick(&x);
	assert_open(&x);
	assert_false(reader(&x)->is_short);
	assert_false(reader(&x)->passes);
	assert_int_equal(reader(&x)->pass_until, 0);
	assert_int_equal(x.wake.at_ns, 0);
	/* Set again, all is learned anew. */
	x.h.sched.params.isolation = 8;
	tick(&x);
	assert_int_equal(x.wake.at_ns, x.h.now + LOOK_NS);
	looks(&x, KNOWN - 1);
	assert_open(&x);
	look(&x);
	assert_true(iso(&x)->paces);
	scene_close(&x);
}

/* The device does nothing for a second, as one that collects or resets. */
static void a_drive_that_stands_still_decides_nothing(void **state)
{
	struct isolation before;
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.reads.done = 0;
	x.other.done = 0;
	look(&x);
	before = *iso(&x);
	looks(&x, 500);
	assert_int_equal(iso(&x)->state, ISOLATION_PACED);
	assert_int_equal(iso(&x)->pace, before.pace);
	assert_int_equal(iso(&x)->capacity, before.capacity);
	assert_int_equal(iso(&x)->loss, before.loss);
	assert_int_equal(iso(&x)->limit, before.limit);
	assert_int_equal(iso(&x)->looks, before.looks);
	assert_int_equal(iso(&x)->trial, before.trial);
	scene_close(&x);
	/* Nor in an open drive: the capacity is not that of a stall. */
	scene_open(&x, 8);
	looks(&x, KNOWN - 1);
	x.reads.done = 0;
	x.other.done = 0;
	looks(&x, 100);
	assert_open(&x);
	scene_close(&x);
}

/* A look in which the flows leave the drive idle does not show its capacity. */
static void idle_looks_do_not_measure(void **state)
{
	u64 full = rate_of_bytes(100 * 65536 + 2 * 4096);
	struct scene x;
	u32 i;

	(void)state;
	scene_open(&x, 8);
	for (i = 0; i < 2 * KNOWN; i++) {
		x.other = deep;
		if (i % 2) {
			x.other.done = 40;
			x.other.inside = 20;
		}
		look(&x);
	}
	/* Each second look counted. */
	assert_near(iso(&x)->capacity, full, 1);
	scene_close(&x);
}

/* ----------------------------------------------------------------------- depth */

static void depth_is_tried_in_the_open_drive(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	depth_scene(&x, DEPTH);
	for (i = 0; i < 300 && x.h.sched.params.depth == DEPTH; i++)
		waiting_look(&x);
	assert_int_equal(x.h.sched.params.depth, DEPTH / 2);
	assert_int_equal(slots(&x)->depth, DEPTH / 2);
	assert_int_equal(token_total(&slots(&x)->tree), DEPTH / 2);
	/* The work is the same at half of D, so it is taken, again and again. */
	for (i = 0; i < 400; i++)
		waiting_look(&x);
	assert_true(x.h.sched.params.depth <= 8);
	scene_close(&x);
}

static void depth_stays_if_it_is_set_or_if_no_queue_waits(void **state)
{
	struct scene x;
	u32 i;

	(void)state;
	depth_scene(&x, 0);
	for (i = 0; i < 200; i++)
		waiting_look(&x);
	assert_int_equal(x.h.sched.params.depth, DEPTH);
	scene_close(&x);
	depth_scene(&x, 256);
	looks(&x, 200);
	assert_int_equal(x.h.sched.params.depth, DEPTH);
	/* The queue that waits may be any. */
	for (i = 0; i < 100 && x.h.sched.params.depth == DEPTH; i++) {
		x.h.queue[i % 2].stats.no_slot++;
		look(&x);
	}
	assert_int_not_equal(x.h.sched.params.depth, DEPTH);
	scene_close(&x);
}

/* A trial ends when a flow becomes short, and none begins while one is. */
static void depth_is_not_tried_beside_a_short_flow(void **state)
{
	struct scene x;
	bool paced = false;
	u32 i;

	(void)state;
	depth_scene(&x, 256);
	for (i = 0; i < 100 && x.h.sched.params.depth == DEPTH; i++)
		waiting_look(&x);
	assert_int_not_equal(x.h.sched.params.depth, DEPTH);
	flow_set_weight(x.reader, 1000);
	x.reads = slow_reads;
	for (i = 0; i < 200; i++) {
		waiting_look(&x);
		paced |= iso(&x)->paces;
		if (reader(&x)->is_short) {
			assert_int_equal(x.h.sched.params.depth, DEPTH);
			assert_int_equal(slots(&x)->depth, DEPTH);
		}
		/* So that it goes on being short. */
		if (iso(&x)->paces)
			x.reads.service_ns = MS / 2;
	}
	assert_true(paced);
	scene_close(&x);
}

/* --------------------------------------------------------------------- reports */

struct numbers {
	struct report report;
	s64 paced, loss, limit, probes, paced_ms, capacity;
	s64 short_ms, service_us, slowdown;
};

static void put_number(struct report *r, const char *name, const char *part,
		       s64 value)
{
	struct numbers *n = container_of(r, struct numbers, report);
	const struct {
		const char *name;
		s64 *to;
	} table[] = {
		{ "isolation_paced", &n->paced },
		{ "isolation_loss_permille", &n->loss },
		{ "isolation_limit", &n->limit },
		{ "isolation_probes", &n->probes },
		{ "isolation_paced_ms", &n->paced_ms },
		{ "capacity_mb_per_s", &n->capacity },
		{ "short_ms", &n->short_ms },
		{ "service_us", &n->service_us },
		{ "slowdown_percent", &n->slowdown },
	};
	u32 i;

	assert_null(part);
	for (i = 0; i < ARRAY_SIZE(table); i++)
		if (!strcmp(table[i].name, name))
			*table[i].to = value;
}

static void reports_tell_units(void **state)
{
	struct numbers n = { .report.put = put_number };
	struct scene x;

	(void)state;
	open_and_pace(&x, 8);
	x.reads = fast_reads;
	looks(&x, 50);
	x.reads.service_ns = MS / 2;
	look(&x);
	isolation_report(&x.h.sched, &n.report);
	isolation_report_flow(reader(&x), &n.report);
	assert_int_equal(n.paced, 1);
	assert_int_equal(n.loss, 80);
	assert_int_equal(n.limit, iso(&x)->limit);
	assert_int_equal(n.probes, 0);
	assert_int_equal(n.paced_ms, 51 * 2);
	/* 3.13 GiB/s, of 2^20 ns each second. */
	assert_in_range(n.capacity, 3120, 3300);
	assert_in_range(n.short_ms, 51 * 2, 60 * 2);
	assert_int_equal(n.service_us, 500);
	assert_int_equal(n.slowdown, 200);
	scene_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pacing_waits_for_the_capacity),
		cmocka_unit_test(pacing_begins_with_an_emptier_drive),
		cmocka_unit_test(looks_come_at_their_time),
		cmocka_unit_test(look_lasts_for_a_turnover),
		cmocka_unit_test(looks_are_as_long_as_the_drive_is_slow),
		cmocka_unit_test(pacing_ends_when_the_short_flow_is_gone),
		cmocka_unit_test(pacing_ends_when_no_flow_is_active),
		cmocka_unit_test(loss_follows_the_short_flow),
		cmocka_unit_test(pace_keeps_the_bound),
		cmocka_unit_test(late_requests_raise_the_pace_a_little),
		cmocka_unit_test(auto_gives_more_to_a_flow_that_does_much),
		cmocka_unit_test(the_others_always_get_a_little),
		cmocka_unit_test(probe_opens_the_drive_for_six_looks),
		cmocka_unit_test(capacity_follows_the_probes),
		cmocka_unit_test(capacity_falls_at_once_if_it_is_much_less),
		cmocka_unit_test(other_sizes_ask_for_a_probe),
		cmocka_unit_test(growing_demand_asks_for_a_probe),
		cmocka_unit_test(a_fuller_drive_is_measured_anew),
		cmocka_unit_test(isolation_0_does_nothing),
		cmocka_unit_test(isolation_0_ends_the_pacing),
		cmocka_unit_test(a_drive_that_stands_still_decides_nothing),
		cmocka_unit_test(idle_looks_do_not_measure),
		cmocka_unit_test(depth_is_tried_in_the_open_drive),
		cmocka_unit_test(depth_stays_if_it_is_set_or_if_no_queue_waits),
		cmocka_unit_test(depth_is_not_tried_beside_a_short_flow),
		cmocka_unit_test(reports_tell_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
