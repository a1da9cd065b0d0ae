// SPDX-License-Identifier: GPL-2.0
/* The work of requests and of times, with numbers computed by hand. */
#include "unit.h"
#include "sched/budget/turnover.h"

enum {
	PERIOD	= 100 * 1000 * 1000,
	COST	= 4096,		/* of a short request */
	LONG	= 65536,	/* of a long one */
};

struct scenario {
	struct turnover t;
	struct turnover_counts c;
};

static void dispatch(struct scenario *s, u64 requests, u64 cost)
{
	s->c.dispatched += requests;
	s->c.work += requests * cost;
}

/* A round ends after @ns, and the mean is @mean then. */
static void end_round(struct scenario *s, u64 ns, u64 mean)
{
	s->c.now += ns;
	turnover_round(&s->t, &s->c, PERIOD);
	assert_int_equal(s->t.mean, mean);
}

/* Requests of an earlier time do not count. */
static void scenario_init(struct scenario *s)
{
	*s = (struct scenario){
		.c = { .now = 7, .work = 5 * LONG, .dispatched = 5 }
	};
	turnover_start(&s->t, &s->c);
}

/* A measuring period has ended. */
static void scenario_init_measured(struct scenario *s)
{
	scenario_init(s);
	dispatch(s, 1, COST);
	end_round(s, 0, COST);
}

/* The example of turnover.h. */
TEST(mean_of_the_example)
{
	struct scenario s;

	scenario_init(&s);
	dispatch(&s, 1000, COST);
	dispatch(&s, 1000, LONG);
	assert_int_equal(turnover_of(&s.t, 32), 0);
	end_round(&s, PERIOD, 34816);
	assert_int_equal(turnover_of(&s.t, 32), 1114112);
	assert_int_equal(turnover_of(&s.t, 0), 0);
	/* 69632000 in 100 ms, and the rate is rounded down. */
	assert_in_range(turnover_in(&s.t, PERIOD / 100), 696319, 696320);
}

/* A round without requests yields no mean. */
TEST(first_measuring_period_ends_with_the_first_round)
{
	struct scenario s;

	scenario_init(&s);
	end_round(&s, 0, 0);
	dispatch(&s, 1, COST);
	end_round(&s, 0, COST);
}

TEST(mean_follows_after_a_period)
{
	struct scenario s;

	scenario_init_measured(&s);
	dispatch(&s, 10, LONG);
	end_round(&s, PERIOD - 1, COST);
	end_round(&s, 1, LONG);
	/* The next one takes a period as well. */
	dispatch(&s, 10, COST);
	end_round(&s, PERIOD - 1, LONG);
	end_round(&s, 1, COST);
}

/* It says nothing of the work of a request, and is over all the same. */
TEST(measuring_period_without_requests_keeps_the_mean)
{
	struct scenario s;

	scenario_init_measured(&s);
	end_round(&s, PERIOD, COST);
	assert_int_equal(s.t.since.now, s.c.now);
	assert_int_equal(s.t.rate, 0);
}

/* A period without requests does not change the work in a time either. */
TEST(measuring_period_without_requests_keeps_the_rate)
{
	struct scenario s;
	u64 rate;

	scenario_init_measured(&s);
	dispatch(&s, 100, COST);
	end_round(&s, PERIOD, COST);
	rate = s.t.rate;
	assert_int_equal(rate, rate_of(100 * COST, PERIOD));
	end_round(&s, PERIOD, COST);
	assert_int_equal(s.t.rate, rate);
}

/* After a time without flows the mean stays known. */
TEST(start_begins_a_measuring_period)
{
	struct scenario s;

	scenario_init_measured(&s);
	dispatch(&s, 100, LONG);
	s.c.now += 10 * PERIOD;
	turnover_start(&s.t, &s.c);
	assert_int_equal(s.t.mean, COST);
	dispatch(&s, 1, 2 * COST);
	end_round(&s, PERIOD, 2 * COST);
}
