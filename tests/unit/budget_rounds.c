// SPDX-License-Identifier: GPL-2.0
/* The end of a round: when it comes, and which flows it waits for. */
#include "budget_fixture.h"

enum {
	DEPTH	= 64,
};

/* The example of budget.h; the last request goes into debt. */
TEST(refills_follow_the_example)
{
	struct hooks *s = &scenario;
	s64 debt;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 12 << 20, DEPTH);
	flow_set_weight(s->flow[0], 100);
	flow_set_weight(s->flow[1], 500);
	/* The first comes alone and has all; then the shares are 1/6 and 5/6. */
	hooks_read(s, 1, s->flow[0]);
	hooks_read(s, 1, s->flow[1]);
	hooks_complete(s, hooks_next(s, 1));
	hooks_complete(s, hooks_next(s, 1));
	hooks_tick(s);
	s->now += PERIOD;
	hooks_tick(s);
	assert_in_range(left(s, 0), (2 << 20) - 16, 2 << 20);
	assert_in_range(left(s, 1), (10 << 20) - 16, 10 << 20);
	assert_int_equal(spend_all(s, 0), 512);
	s->now += 1000;
	hooks_tick(s);
	assert_int_equal(budget(s)->refills, 1);
	assert_int_equal(spend_all(s, 1), 2560);
	debt = left(s, 0);
	assert_in_range(-debt, 0, 4095);
	/* The flow that spent the last credit has requested a tick. */
	assert_true(tick_is_requested(s));
	hooks_tick(s);
	assert_int_equal(budget(s)->refills, 2);
	assert_int_equal(budget(s)->past.used, (512 + 2560) * 4096);
	assert_int_equal(left(s, 0), debt + (s64)part_of(s, 0, 12 << 20));
	scenario_deinit();
}

/* A donor's requests pass those that wait already. */
TEST(donors_go_first)
{
	struct hooks *s = &scenario;
	struct io *io[3];
	u32 i;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, DEPTH);
	budget_flow_of(s->flow[2])->donor_until_ns = s->now + PERIOD;
	for (i = 0; i < 4; i++)
		hooks_read(s, 0, s->flow[i % 2]);
	io[0] = hooks_next(s, 0);
	io[1] = hooks_read(s, 0, s->flow[2]);
	hooks_read(s, 0, s->flow[2]);
	assert_ptr_equal(hooks_next(s, 0), io[1]);
	io[2] = hooks_next(s, 0);
	/* Then it is the other flows' turn. */
	assert_ptr_not_equal(io[2]->flow, s->flow[2]);
	hooks_complete(s, io[0]);
	hooks_complete(s, io[1]);
	hooks_complete(s, io[2]);
	for (i = 0; i < 3; i++)
		hooks_complete(s, hooks_next(s, 0));
	scenario_deinit();
}

/* No flow requests a tick, and no credit of the last period is kept. */
TEST(periodic_rounds_end_by_the_clock_alone)
{
	struct hooks *s = &scenario;

	scenario_init(&one_domain, BUDGET_PERIODIC, 1 << 20, DEPTH);
	hooks_read(s, 0, s->flow[0]);
	hooks_complete(s, hooks_next(s, 0));
	hooks_tick(s);
	spend_all(s, 0);
	hooks_read(s, 0, s->flow[0]);
	hooks_dispatch(s, 0, DISPATCH_NO_BUDGET);
	assert_false(tick_is_requested(s));
	s->now = budget(s)->start_ns + PERIOD - 1;
	hooks_tick(s);
	assert_int_equal(budget(s)->refills, 0);
	s->woken = 0;
	s->now++;
	assert_true(tick_is_requested(s));
	hooks_tick(s);
	assert_int_equal(budget(s)->refills, 1);
	assert_int_equal(s->woken, BIT_ULL(0));
	hooks_complete(s, hooks_next(s, 0));
	s->now += PERIOD;
	hooks_tick(s);
	assert_int_equal(left(s, 0), (s64)part_of(s, 0, 1 << 20));
	scenario_deinit();
}

/* All wait for one flow, and its cgroup is removed: that ends the round. */
TEST(round_ends_when_the_last_flow_in_credit_leaves)
{
	struct hooks *s = &scenario;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, DEPTH);
	hooks_read(s, 1, s->flow[1]);
	hooks_complete(s, hooks_next(s, 1));
	hooks_read(s, 0, s->flow[0]);
	hooks_complete(s, hooks_next(s, 0));
	hooks_tick(s);
	spend_all(s, 0);
	hooks_read(s, 0, s->flow[0]);
	hooks_dispatch(s, 0, DISPATCH_NO_BUDGET);
	hooks_tick(s);
	assert_int_equal(budget(s)->refills, 0);
	s->woken = 0;
	hooks_flow_gone(s, s->flow[1]);
	assert_true(tick_is_requested(s));
	hooks_tick(s);
	assert_int_equal(budget(s)->refills, 1);
	assert_int_equal(s->woken, BIT_ULL(0));
	hooks_complete(s, hooks_next(s, 0));
	scenario_deinit();
}

/*
 * Flow 0 is exhausted and has requests.  Flow 1 has credit, and @out requests
 * in a device that can do four in a check interval of PERIOD / 32.
 */
static void hold(u32 out, struct io **io)
{
	struct hooks *s = &scenario;
	u32 i;

	scenario_init(&one_domain, BUDGET_CONSERVING, 1 << 20, DEPTH);
	hooks_read(s, 0, s->flow[0]);
	for (i = 0; i < out; i++)
		hooks_read(s, 1, s->flow[1]);
	hooks_complete(s, hooks_next(s, 0));
	for (i = 0; i < out; i++)
		io[i] = hooks_next(s, 1);
	hooks_tick(s);
	budget(s)->throughput.mean = 4096;
	budget(s)->throughput.rate = (4ULL * 4096 << 20) / (PERIOD / 32);
	budget(s)->throughput.rate_until_ns = ~0ULL;
	spend_all(s, 0);
	hooks_read(s, 0, s->flow[0]);
	hooks_dispatch(s, 0, DISPATCH_NO_BUDGET);
	hooks_tick(s);
}

/* Check intervals later, by the ticks that were requested. */
static bool refilled_in(struct hooks *s, u64 intervals)
{
	u64 refills = budget(s)->refills;

	hooks_run(s, s->now + intervals * PERIOD / 32);
	return budget(s)->refills != refills;
}

/*
 * Its one request stays in the device.  Four requests' work may be lost, and
 * that one; each check interval loses three.
 */
TEST(round_ends_when_the_flow_in_credit_loses_too_much)
{
	struct hooks *s = &scenario;
	struct io *io;

	hold(1, &io);
	assert_false(refilled_in(s, 1));
	assert_true(refilled_in(s, 1));
	assert_int_equal(budget(s)->early, 1);
	/* It is a donor: the exhausted flow does not wait for it. */
	spend_all(s, 0);
	assert_true(refilled_in(s, 1));
	hooks_complete(s, io);
	hooks_complete(s, hooks_next(s, 0));
	scenario_deinit();
}

/* Isolation measures what the drive does if no request is kept from it. */
TEST(round_waits_for_no_flow_while_the_capacity_is_measured)
{
	struct hooks *s = &scenario;
	struct io *io;

	hold(1, &io);
	s->sched.isolation.measures = true;
	assert_true(refilled_in(s, 1));
	assert_int_equal(budget(s)->early, 1);
	hooks_complete(s, io);
	hooks_complete(s, hooks_next(s, 0));
	scenario_deinit();
}

/*
 * Isolation paces the others for a short flow, and so holds its share.  With an
 * account of the drive's time the round waits nevertheless.
 */
TEST(round_waits_for_no_flow_that_isolation_holds)
{
	static const struct {
		bool paces, is_short, accounted;
	} cases[] = {
		{ .paces = true, .is_short = true },
		{ .paces = true },
		{ .is_short = true },
		{ .paces = true, .is_short = true, .accounted = true },
	};
	struct hooks *s = &scenario;
	struct io *io;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		hold(1, &io);
		s->sched.isolation.paces = cases[i].paces;
		s->flow[1]->isolation.is_short = cases[i].is_short;
		budget(s)->accounted = cases[i].accounted;
		assert_int_equal(refilled_in(s, 1), i == 0);
		s->sched.isolation.paces = false;
		hooks_complete(s, io);
		s->now += 2 * PERIOD;
		hooks_tick(s);
		hooks_complete(s, hooks_next(s, 0));
		scenario_deinit();
	}
}

/*
 * Three requests in a check interval are enough.  Requests in the device count,
 * or six that take two intervals would seem to be none.
 */
TEST(round_waits_for_a_flow_that_keeps_the_device_busy)
{
	enum {
		OUT = 6
	};
	struct hooks *s = &scenario;
	struct io *io[OUT];
	u32 i, turn;

	hold(OUT, io);
	for (turn = 0; turn < 10; turn++) {
		assert_false(refilled_in(s, 2));
		for (i = 0; i < OUT; i++) {
			hooks_complete(s, io[i]);
			hooks_read(s, 1, s->flow[1]);
			io[i] = hooks_next(s, 1);
		}
	}
	for (i = 0; i < OUT; i++)
		hooks_complete(s, io[i]);
	s->now += 2 * PERIOD;
	hooks_tick(s);
	hooks_complete(s, hooks_next(s, 0));
	scenario_deinit();
}

static void weigh_all_alike(void)
{
	struct hooks *s = &scenario;
	u32 i;

	for (i = 0; i < FLOWS; i++)
		flow_set_weight(s->flow[i], 100);
}

/* Weights that change in the middle of a refill hold for that refill. */
TEST(weights_set_during_a_refill_hold_at_once)
{
	struct hooks *s = &scenario;
	u32 i;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, DEPTH);
	for (i = 0; i < FLOWS; i++) {
		hooks_read(s, 0, s->flow[i]);
		hooks_complete(s, hooks_next(s, 0));
	}
	hooks_tick(s);
	set_on_predict(weigh_all_alike);
	s->now += PERIOD;
	hooks_tick(s);
	assert_int_equal(predictions(), 1);
	for (i = 0; i < FLOWS; i++)
		assert_int_equal(left(s, i), 1 << 18);
	check_conservation(s);
	scenario_deinit();
}
