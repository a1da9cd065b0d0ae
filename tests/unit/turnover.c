// SPDX-License-Identifier: GPL-2.0
/* The mean work of a request, with numbers computed by hand. */
#include "unit.h"
#include "sched/budget/turnover.h"

enum {
	PERIOD	= 1000,
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

static void new_round(struct scenario *s)
{
	turnover_round(&s->t, &s->c, PERIOD);
}

/* Requests of an earlier time do not count. */
static void scenario_init(struct scenario *s)
{
	*s = (struct scenario){
		.c = { .now = 7, .work = 5 * LONG, .dispatched = 5 }
	};
	turnover_start(&s->t, &s->c);
}

/* The example of turnover.h. */
TEST(mean_of_the_example)
{
	struct scenario s;

	scenario_init(&s);
	dispatch(&s, 1000, COST);
	dispatch(&s, 1000, LONG);
	assert_int_equal(turnover_of(&s.t, 32), 0);
	s.c.now += PERIOD;
	new_round(&s);
	assert_int_equal(s.t.mean, 34816);
	assert_int_equal(turnover_of(&s.t, 32), 1114112);
	assert_int_equal(turnover_of(&s.t, 0), 0);
}

TEST(first_measuring_period_ends_with_the_first_round)
{
	struct scenario s;

	scenario_init(&s);
	/* A round without requests yields no mean. */
	new_round(&s);
	assert_int_equal(s.t.mean, 0);
	dispatch(&s, 1, COST);
	new_round(&s);
	assert_int_equal(s.t.mean, COST);
}

TEST(mean_follows_after_a_period)
{
	struct scenario s;

	scenario_init(&s);
	dispatch(&s, 1, COST);
	new_round(&s);
	dispatch(&s, 10, LONG);
	s.c.now += PERIOD - 1;
	new_round(&s);
	assert_int_equal(s.t.mean, COST);
	s.c.now++;
	new_round(&s);
	assert_int_equal(s.t.mean, LONG);
	/* The next one takes a period as well. */
	dispatch(&s, 10, COST);
	s.c.now += PERIOD - 1;
	new_round(&s);
	assert_int_equal(s.t.mean, LONG);
	s.c.now++;
	new_round(&s);
	assert_int_equal(s.t.mean, COST);
}

/* It says nothing of the work of a request, and is over all the same. */
TEST(measuring_period_without_requests_keeps_the_mean)
{
	struct scenario s;

	scenario_init(&s);
	dispatch(&s, 1, COST);
	new_round(&s);
	s.c.now += PERIOD;
	new_round(&s);
	assert_int_equal(s.t.mean, COST);
	assert_int_equal(s.t.since.now, s.c.now);
}

/* After a time without flows the mean stays known. */
TEST(start_begins_a_measuring_period)
{
	struct scenario s;

	scenario_init(&s);
	dispatch(&s, 1, COST);
	new_round(&s);
	dispatch(&s, 100, LONG);
	s.c.now += 10 * PERIOD;
	turnover_start(&s.t, &s.c);
	assert_int_equal(s.t.mean, COST);
	dispatch(&s, 1, 2 * COST);
	s.c.now += PERIOD;
	new_round(&s);
	assert_int_equal(s.t.mean, 2 * COST);
}
