// SPDX-License-Identifier: GPL-2.0
/*
 * The rate of a drive and the loss in wait spans, with numbers computed by
 * hand.  A check interval is 2^20 ns, so a rate is the work of one interval.
 */
#include "unit.h"
#include "sched/budget/throughput.h"

enum {
	CHECK	= 1 << 20,	/* ns */
	PERIOD	= 32 * CHECK,
	COST	= 4096,		/* of each request */
};

/* A drive, with the counts that a scheduler has of it. */
struct scenario {
	struct throughput t;
	struct throughput_counts c;
	u64 dispatched;
};

static void dispatch(struct scenario *s, u64 requests)
{
	s->dispatched += requests;
	s->c.in_device += requests;
	s->c.work += requests * COST;
}

static void complete(struct scenario *s, u64 requests)
{
	s->c.in_device -= requests;
}

static enum throughput_result wait(struct scenario *s)
{
	return throughput_wait(&s->t, &s->c, false, NULL);
}

static void new_round(struct scenario *s)
{
	throughput_round(&s->t, &s->c, s->dispatched);
}

/* A flow becomes active; one request shows the cost of each. */
static void scenario_init(struct scenario *s)
{
	*s = (struct scenario){ .c = { .now = 1, .period_ns = PERIOD } };
	throughput_start(&s->t, &s->c, 0);
	dispatch(s, 1);
	complete(s, 1);
	new_round(s);
	assert_int_equal(s->t.mean, COST);
}

/* The drive does four requests in each check interval; a gauge span found that. */
static void scenario_init_known(struct scenario *s)
{
	scenario_init(s);
	s->t.rate = 4 * COST;
	s->t.rate_until_ns = ~0ULL;
}

/* An interval in which @requests are dispatched and done. */
static void check_interval(struct scenario *s, u64 requests)
{
	dispatch(s, requests);
	complete(s, requests);
	s->c.now += CHECK;
}

/* The example of throughput.h: one request stays in the device. */
TEST(loss_of_the_example)
{
	struct scenario s;

	scenario_init_known(&s);
	assert_int_equal(throughput_check_ns(PERIOD), CHECK);
	dispatch(&s, 1);
	assert_int_equal(wait(&s), THROUGHPUT_USED);
	s.c.now += CHECK;
	assert_int_equal(wait(&s), THROUGHPUT_USED);
	assert_int_equal(s.t.wait_loss, 12288);
	s.c.now += CHECK;
	/* 24576 is more than 20480. */
	assert_int_equal(wait(&s), THROUGHPUT_IDLE);
	assert_int_equal(s.t.wait_loss, 0);
}

/* Three of four requests in each interval are enough, for any time. */
TEST(three_quarters_of_the_rate_lose_nothing)
{
	struct scenario s;
	u32 i;

	scenario_init_known(&s);
	for (i = 0; i < 1000; i++) {
		assert_int_equal(wait(&s), THROUGHPUT_USED);
		assert_int_equal(s.t.wait_loss, 0);
		check_interval(&s, 3);
	}
}

/* Two of four lose 4096 in each interval; the bound is 16384. */
TEST(half_of_the_rate_is_idle_after_four_intervals)
{
	struct scenario s;
	u32 i;

	scenario_init_known(&s);
	for (i = 0; i < 4; i++) {
		assert_int_equal(wait(&s), THROUGHPUT_USED);
		assert_int_equal(s.t.wait_loss, i * COST);
		check_interval(&s, 2);
	}
	assert_int_equal(wait(&s), THROUGHPUT_IDLE);
}

/* Six requests that take two intervals are three in each. */
TEST(requests_in_the_device_count_as_done)
{
	struct scenario s;
	u32 i;

	scenario_init_known(&s);
	dispatch(&s, 6);
	for (i = 0; i < 100; i++) {
		assert_int_equal(wait(&s), THROUGHPUT_USED);
		s.c.now += CHECK;
		if (i % 2) {
			complete(&s, 6);
			dispatch(&s, 6);
		}
	}
}

/* More than the rate pays a loss back, and is not saved up. */
TEST(work_above_the_rate_reduces_the_loss)
{
	struct scenario s;

	scenario_init_known(&s);
	wait(&s);
	check_interval(&s, 1);
	assert_int_equal(wait(&s), THROUGHPUT_USED);
	assert_int_equal(s.t.wait_loss, 2 * COST);
	check_interval(&s, 4);
	wait(&s);
	assert_int_equal(s.t.wait_loss, COST);
	check_interval(&s, 100);
	wait(&s);
	assert_int_equal(s.t.wait_loss, 0);
	check_interval(&s, 0);
	wait(&s);
	assert_int_equal(s.t.wait_loss, 3 * COST);
}

/* Time in which no flow waits is not part of a wait span. */
TEST(loss_grows_in_wait_spans_alone)
{
	struct scenario s;

	scenario_init_known(&s);
	wait(&s);
	s.c.now += CHECK / 2;
	throughput_end_wait(&s.t, &s.c);
	assert_int_equal(s.t.wait_loss, 3 * COST / 2);
	s.c.now += 100 * CHECK;
	throughput_end_wait(&s.t, &s.c);
	wait(&s);
	assert_int_equal(s.t.wait_loss, 3 * COST / 2);
	/* The end of a round ends the span as well. */
	s.c.now += CHECK / 2;
	new_round(&s);
	assert_int_equal(s.t.wait_loss, 3 * COST);
	assert_int_equal(s.t.wait_span.since_ns, 0);
	throughput_start(&s.t, &s.c, s.dispatched);
	assert_int_equal(s.t.wait_loss, 0);
}

/* The flows with credit use all the room that there is. */
TEST(full_device_and_backlog_lose_nothing)
{
	struct scenario s;
	u32 i;

	scenario_init_known(&s);
	for (i = 0; i < 100; i++) {
		s.c.full = i % 2;
		assert_int_equal(throughput_wait(&s.t, &s.c, !s.c.full, NULL),
				 THROUGHPUT_USED);
		s.c.now += CHECK;
	}
	assert_int_equal(s.t.wait_loss, 0);
	/* Only the interval since the last of these looks counts. */
	s.c.full = false;
	throughput_end_wait(&s.t, &s.c);
	assert_int_equal(s.t.wait_loss, 3 * COST);
}

/* --------------------------------------------------------------- the rate */

/* A gauge span that begins now; two requests are in the device. */
static void begin_gauge(struct scenario *s)
{
	scenario_init(s);
	dispatch(s, 2);
	assert_int_equal(wait(s), THROUGHPUT_GAUGE);
	assert_true(throughput_gauges(&s->t));
	assert_int_equal(s->t.gauge_until_ns, s->c.now + CHECK);
}

/* One request each interval: the eighth makes four turnovers. */
TEST(gauge_span_takes_four_turnovers)
{
	struct scenario s;
	u64 since;
	u32 i;

	begin_gauge(&s);
	s.t.wait_loss = 1;
	since = s.c.now;
	for (i = 1; i <= 8; i++) {
		s.c.now += CHECK - 1;
		throughput_check_gauge(&s.t, &s.c);
		assert_true(throughput_gauges(&s.t));
		s.c.now++;
		complete(&s, 1);
		dispatch(&s, 1);
		throughput_check_gauge(&s.t, &s.c);
		assert_int_equal(throughput_gauges(&s.t), i < 8);
	}
	assert_int_equal(s.t.rate, COST);
	/* 64 of its lengths are more than eight periods. */
	assert_int_equal(s.t.rate_until_ns, s.c.now + 64 * (s.c.now - since));
	assert_int_equal(s.t.wait_loss, 0);
}

/* Once a period is over, one turnover is enough. */
TEST(gauge_span_of_a_slow_drive_takes_one_turnover)
{
	struct scenario s;

	/* Exactly at its end, too. */
	begin_gauge(&s);
	complete(&s, 2);
	s.c.now += PERIOD - 1;
	throughput_check_gauge(&s.t, &s.c);
	assert_true(throughput_gauges(&s.t));
	assert_int_equal(s.t.gauge_until_ns, s.c.now + CHECK);
	begin_gauge(&s);
	complete(&s, 2);
	s.c.now += PERIOD;
	throughput_check_gauge(&s.t, &s.c);
	assert_false(throughput_gauges(&s.t));
	begin_gauge(&s);
	s.c.now += PERIOD;
	complete(&s, 1);
	throughput_check_gauge(&s.t, &s.c);
	assert_true(throughput_gauges(&s.t));
	s.c.now += PERIOD;
	complete(&s, 1);
	throughput_check_gauge(&s.t, &s.c);
	assert_false(throughput_gauges(&s.t));
	/* Two requests in 64 intervals. */
	assert_int_equal(s.t.rate, COST / 32);
}

/* The greatest number in the device counts, not that of the start. */
TEST(gauge_span_counts_the_most_in_the_device)
{
	struct scenario s;

	begin_gauge(&s);
	dispatch(&s, 8);
	s.c.now += CHECK;
	throughput_check_gauge(&s.t, &s.c);
	check_interval(&s, 39);
	throughput_check_gauge(&s.t, &s.c);
	assert_true(throughput_gauges(&s.t));
	check_interval(&s, 1);
	throughput_check_gauge(&s.t, &s.c);
	assert_false(throughput_gauges(&s.t));
}

/* A short gauge span is valid for eight periods, and then a new one begins. */
TEST(rate_is_known_for_eight_periods)
{
	struct scenario s;

	begin_gauge(&s);
	check_interval(&s, 8);
	throughput_check_gauge(&s.t, &s.c);
	assert_false(throughput_gauges(&s.t));
	assert_int_equal(s.t.rate, 8 * COST);
	dispatch(&s, 100);
	s.c.now += 8 * (u64)PERIOD - 1;
	assert_int_equal(wait(&s), THROUGHPUT_USED);
	s.c.now++;
	assert_int_equal(wait(&s), THROUGHPUT_GAUGE);
}

/* A time without flows: its end begins all spans anew. */
TEST(start_forgets_what_was_under_way)
{
	struct scenario s;

	begin_gauge(&s);
	s.t.rate = COST;
	s.t.wait_loss = 1;
	throughput_end_wait(&s.t, &s.c);
	s.t.wait_span.since_ns = s.c.now;
	s.c.now += 10 * (u64)PERIOD;
	throughput_start(&s.t, &s.c, s.dispatched);
	assert_false(throughput_gauges(&s.t));
	assert_int_equal(s.t.wait_span.since_ns, 0);
	assert_int_equal(s.t.wait_loss, 0);
	assert_int_equal(s.t.measuring.since_ns, s.c.now);
	assert_int_equal(s.t.measuring.work, s.c.work);
	assert_int_equal(s.t.dispatched, s.dispatched);
	/* The rate of the drive stays known, and the mean. */
	assert_int_equal(s.t.rate, COST);
	assert_int_equal(s.t.mean, COST);
}

/* --------------------------------------------------- the measuring period */

TEST(mean_follows_after_a_period)
{
	struct scenario s;

	scenario_init(&s);
	dispatch(&s, 10);
	s.c.work += 10 * COST;
	s.c.now += PERIOD - 1;
	new_round(&s);
	assert_int_equal(s.t.mean, COST);
	s.c.now++;
	new_round(&s);
	assert_int_equal(s.t.mean, 2 * COST);
	assert_int_equal(throughput_turnover(&s.t, 3), 6 * COST);
	/* A period without requests says nothing. */
	s.c.now += PERIOD;
	new_round(&s);
	assert_int_equal(s.t.mean, 2 * COST);
}

/*
 * 320 requests are dispatched in 32 intervals.  32 of them are in the device.
 * One turnover, 32 too, is not counted.  So 256 are done, 8 an interval.
 */
TEST(measuring_period_raises_the_rate)
{
	struct scenario s;

	scenario_init_known(&s);
	dispatch(&s, 320);
	complete(&s, 320 - 32);
	s.c.now += PERIOD;
	new_round(&s);
	assert_int_equal(s.t.rate, 8 * COST);
	/* It never lowers the rate: the load may have been light. */
	complete(&s, 32);
	s.c.now += PERIOD;
	new_round(&s);
	assert_int_equal(s.t.rate, 8 * COST);
}

/* ------------------------------------------------ the drive's own account */

/* Two planes; the recent time is a quarter of a period at least. */
TEST(planes_that_work_less_than_5_8_are_idle)
{
	static const struct {
		u64 worked; /* of 16 intervals that two planes have in 8 */
		bool backlog;
		enum throughput_result result;
	} table[] = {
		/* 0 */ { 0, false, THROUGHPUT_IDLE },
		/* 1 */ { 0, true, THROUGHPUT_USED },
		/* 2: 10 - 2 */ { 8, false, THROUGHPUT_USED },
		/* 3 */ { 7, false, THROUGHPUT_IDLE },
		/* 4 */ { 16, false, THROUGHPUT_USED },
	};
	struct scenario s;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		struct drive_time time = {
			.worked_ns = 1000ULL * CHECK,
			.could_ns = 5000ULL * CHECK,
		};

		scenario_init(&s);
		throughput_begin_account(&s.t, s.c.now, &time);
		s.c.now += 8 * CHECK - 1;
		assert_false(throughput_account_is_due(&s.t, s.c.now, PERIOD));
		s.c.now++;
		assert_true(throughput_account_is_due(&s.t, s.c.now, PERIOD));
		time.worked_ns += table[i].worked * CHECK;
		time.could_ns += 16 * CHECK;
		if (throughput_wait(&s.t, &s.c, table[i].backlog, &time) !=
		    table[i].result)
			fail_msg("row %zu", i);
		/* No gauge span is needed. */
		assert_false(throughput_gauges(&s.t));
	}
}

/* A drive that does at least 3/4 of the rate is never idle, however bunched. */
TEST(busy_drives_are_never_idle)
{
	struct random r = random_seeded("throughput");
	struct scenario s;
	u64 round, done;
	u32 i;

	for (round = 0; round < random_rounds(200); round++) {
		scenario_init_known(&s);
		dispatch(&s, 64);
		done = 0;
		for (i = 0; i < 1000; i++) {
			u64 due;

			assert_int_equal(wait(&s), THROUGHPUT_USED);
			assert_true(s.t.wait_loss >= 0);
			s.c.now += 1 + random_below(&r, 2 * CHECK);
			due = (s.c.now - 1) * 3 / CHECK + 1;
			if (due <= done)
				continue;
			complete(&s, min(due - done, s.c.in_device));
			dispatch(&s, due - done);
			done = due;
		}
	}
}
