// SPDX-License-Identifier: GPL-2.0
/* The protocol of budget.h: accounts, joins, sentinels, watches, watchdog. */
#include "hooks.h"
#include "sched/budget/round.h"
#include "tests/budget_mock.h"

enum {
	BYTES	= 4096,
	FLOWS	= 4,
	PART	= 1 << 20,		/* of a round, for each flow */
	PERIOD	= 40 * 1000 * 1000,
	CHECK	= 1000 * 1000,		/* while a flow waits */
};

static struct hooks h;
/* Of equal weight.  Flow i sends to queue i. */
static struct flow *flow[FLOWS];
/* The start of the second round, in which each has its part of the credit. */
static u64 start_ns;

static u64 fixed_grant(const struct budget *b, const struct flow *f, u64 share)
{
	(void)b;
	(void)share;
	return f == flow[1] ? 5 * BYTES : BYTES;
}

static const struct budget_ops by_share = {
	.nr_domains = 1, .predict = budget_mock_predict,
}, by_grant = {
	.nr_domains = 1, .predict = budget_mock_predict, .grant = fixed_grant,
}, four_domains = {
	.nr_domains = 4, .predict = budget_mock_predict,
};

static struct budget *budget(void)
{
	return h.sched.own;
}

static struct budget_flow *budget_flow(u32 i)
{
	return budget_flow_of(flow[i]);
}

static s64 left(u32 i)
{
	return credit_left(&budget_flow(i)->credit);
}

static struct io *insert(u32 i)
{
	return hooks_insert(&h, i, flow[i], BYTES, 0);
}

static struct io *dispatch(u32 i)
{
	return hooks_dispatch(&h, i, DISPATCH_IO);
}

static void finish(u32 i)
{
	hooks_complete(&h, dispatch(i));
}

/* Flow @i has a request again. */
static void insert_if_empty(u32 i)
{
	if (!h.queue[i].nr)
		insert(i);
}

/* The flow spends what it has, but for @rest.  It waits for nothing then. */
static void spend_but(u32 i, s64 rest)
{
	while (left(i) > rest) {
		insert_if_empty(i);
		finish(i);
	}
}

static void exhaust(u32 i)
{
	spend_but(i, 0);
}

/* The flow is exhausted, and a request of it waits. */
static void exhaust_and_wait(u32 i)
{
	exhaust(i);
	insert(i);
	hooks_dispatch(&h, i, DISPATCH_NO_BUDGET);
}

static void open_flows(const struct budget_ops *ops, enum budget_rule rule,
		       u32 period_ns, u32 n)
{
	struct sched_params p;
	u32 i;

	budget_mock.ops = ops;
	budget_mock.rule = rule;
	budget_mock.total = n * PART;
	budget_mock.predicted = 0;
	budget_mock.on_predict = NULL;
	sched_params_init(&budget_mock_ops, &p);
	p.depth = 64;
	budget_params(&p)->period_ns = period_ns;
	hooks_open(&h, &budget_mock_ops, &p, HOOKS_QUEUES);
	for (i = 0; i < n; i++)
		flow[i] = hooks_flow(&h, 100);
}

/* @n flows, each with a request that waits, at the start of a round. */
static void open_rounds(const struct budget_ops *ops, enum budget_rule rule,
			u32 n)
{
	u32 i;

	open_flows(ops, BUDGET_PERIODIC, PERIOD, n);
	for (i = 0; i < n; i++)
		insert(i);
	start_ns = h.now + PERIOD;
	hooks_run(&h, start_ns);
	assert_int_equal(budget()->refills, 1);
	assert_int_equal(budget()->start_ns, start_ns);
	budget_set_rule(budget(), rule);
	h.woken = 0;
}

static void close_rounds(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

/* The ticks that are asked for until @ns after the start of the round. */
static void run_to(u64 ns)
{
	hooks_run(&h, start_ns + ns);
}

/* Of a flow other than that at hand, or of the host, nothing is needed now. */
static bool tick_is_asked_for_now(void)
{
	return h.tick_ns && h.tick_ns <= h.now;
}

/* ------------------------------------------------------------------- accounts */

static struct budget_past past_of_all, past[FLOWS];

static void note_past(void)
{
	u32 i;

	past_of_all = budget()->past;
	for (i = 0; i < FLOWS; i++)
		past[i] = budget_flow(i)->past;
}

static void expect_past(const struct budget_past *p, u64 used, u64 ran_ns,
			bool exhausted)
{
	assert_int_equal(p->used, used);
	assert_int_equal(p->ran_ns, ran_ns);
	assert_int_equal(p->exhausted, exhausted);
}

TEST(round_is_accounted_for_each_flow)
{
	u32 i;

	open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, FLOWS);
	budget_mock.on_predict = note_past;
	for (i = 0; i < FLOWS; i++) {
		run_to((i + 1) * 5 * MS);
		assert_int_equal(budget()->refills, 1);
		exhaust(i);
		assert_int_equal(left(i), 0);
	}
	/* The last of them has asked for a tick at once. */
	hooks_run(&h, h.now);
	assert_int_equal(budget()->refills, 2);
	expect_past(&past_of_all, FLOWS * PART, FLOWS * 5 * MS, true);
	for (i = 0; i < FLOWS; i++)
		expect_past(&past[i], PART, (i + 1) * 5 * MS, true);
	assert_int_equal(budget()->used, FLOWS * PART);
	/* In the next round one flow is exhausted, and two are not. */
	start_ns = h.now;
	run_to(5 * MS);
	exhaust(0);
	insert(0);
	insert(1);
	finish(1);
	insert(1);
	insert(2);
	insert(3);
	run_to(PERIOD - 1);
	assert_int_equal(budget()->refills, 2);
	run_to(PERIOD);
	assert_int_equal(budget()->refills, 3);
	expect_past(&past_of_all, PART + BYTES, PERIOD, false);
	expect_past(&past[0], PART, 5 * MS, true);
	expect_past(&past[1], BYTES, PERIOD, false);
	expect_past(&past[2], 0, PERIOD, false);
	assert_int_equal(budget()->used, FLOWS * PART + PART + BYTES);
	close_rounds();
}

/* A debt of seven rounds: the flow was exhausted in an earlier round. */
TEST(flow_in_debt_runs_for_no_time)
{
	u32 i;

	open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, FLOWS);
	hooks_insert(&h, 0, flow[0], 8 * PART, IO_URGENT);
	finish(0);
	run_to(10 * MS);
	for (i = 1; i < FLOWS; i++) {
		exhaust(i);
		insert(i);
	}
	hooks_run(&h, h.now);
	assert_int_equal(budget()->refills, 2);
	assert_int_equal(left(0), -6 * PART);
	budget_mock.on_predict = note_past;
	run_to(10 * MS + PERIOD);
	assert_int_equal(budget()->refills, 3);
	expect_past(&past[0], 0, 0, true);
	close_rounds();
}

/* Its own donation ends, and the round is accounted without it. */
TEST(donor_does_not_count_as_not_exhausted)
{
	open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, FLOWS);
	budget_mock.on_predict = note_past;
	budget_flow(0)->donor_until_ns = start_ns + 10 * PERIOD;
	budget_flow(1)->donor_until_ns = start_ns + 10 * PERIOD;
	run_to(10 * MS);
	finish(0);
	exhaust(1);
	exhaust(2);
	exhaust(3);
	insert(1);
	hooks_dispatch(&h, 1, DISPATCH_NO_BUDGET);
	hooks_tick(&h);
	/* One donor has credit.  The other has used all of its. */
	assert_int_equal(budget()->refills, 2);
	assert_true(past_of_all.exhausted);
	assert_int_equal(past_of_all.ran_ns, 10 * MS);
	assert_int_equal(budget_flow(0)->donor_until_ns,
			 start_ns + 10 * PERIOD);
	assert_int_equal(budget_flow(1)->donor_until_ns, 0);
	close_rounds();
}

/* All are exhausted at the moment at which the period is over. */
TEST(round_ends_once_for_two_reasons)
{
	open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, 2);
	h.now = start_ns + PERIOD;
	exhaust_and_wait(0);
	exhaust_and_wait(1);
	hooks_tick(&h);
	assert_int_equal(budget()->refills, 2);
	assert_int_equal(budget()->early, 0);
	close_rounds();
}

TEST(total_is_kept_within_bounds)
{
	static const u64 table[][2] = {
		{ 0, 1 },
		{ 12345, 12345 },
		{ ~0ULL, 1ULL << BUDGET_MOST_SHIFT },
	};
	u32 i;

	open_rounds(&by_share, BUDGET_PERIODIC, 1);
	for (i = 0; i < ARRAY_SIZE(table); i++) {
		budget_mock.total = table[i][0];
		run_to((i + 1) * PERIOD);
		assert_int_equal(budget()->total, table[i][1]);
		assert_int_equal(left(0), table[i][1]);
	}
	close_rounds();
}

TEST(scheduler_may_choose_the_grants)
{
	open_rounds(&by_grant, BUDGET_PERIODIC, FLOWS);
	assert_int_equal(left(0), BYTES);
	assert_int_equal(left(1), 5 * BYTES);
	close_rounds();
}

/* -------------------------------------------------------- flows come and go */

TEST(flow_asks_for_a_tick_when_it_joins)
{
	open_flows(&by_share, BUDGET_ALL_EXHAUSTED, PERIOD, 1);
	insert(0);
	assert_true(tick_is_asked_for_now());
	close_rounds();
}

/* Flow 0 is active, or asks for too little; flow 1 comes and goes. */
static void leave_and_run_to(u64 ns)
{
	run_to(ns);
	assert_int_equal(atomic64_read(&flow[1]->active), 0);
	assert_int_equal(atomic64_read(&flow[0]->active), 1);
}

TEST(flow_that_returns_in_its_round_gets_no_second_grant)
{
	open_flows(&by_share, BUDGET_PERIODIC, 4000 * MS, 2);
	insert(0);
	insert(1);
	finish(1);
	leave_and_run_to(1000 * MS);
	assert_int_equal(left(1), PART - BYTES);
	insert(1);
	assert_int_equal(left(1), PART - BYTES);
	close_rounds();
}

/* While no flow is active there is no round. */
TEST(flow_that_returns_alone_gets_a_grant)
{
	open_flows(&by_share, BUDGET_PERIODIC, 4000 * MS, 1);
	insert(0);
	finish(0);
	hooks_run(&h, 1000 * MS);
	assert_null(h.sched.active);
	assert_int_equal(left(0), PART - BYTES);
	insert(0);
	assert_int_equal(left(0), PART);
	close_rounds();
}

/* What it spent before it left was in another round. */
TEST(flow_that_returns_later_has_spent_nothing)
{
	u32 i;

	open_flows(&by_share, BUDGET_PERIODIC, 400 * MS, FLOWS);
	start_ns = 0;
	for (i = 0; i < FLOWS; i++)
		insert(i);
	spend_but(1, PART / 2);
	leave_and_run_to(500 * MS);
	assert_int_equal(budget()->refills, 1);
	insert(1);
	/* Credit that was left is forfeited. */
	assert_int_equal(left(1), PART);
	finish(1);
	insert(1);
	budget_mock.on_predict = note_past;
	run_to(800 * MS + 1);
	assert_int_equal(budget()->refills, 2);
	assert_int_equal(past[1].used, BYTES);
	close_rounds();
}

/* The first flow after a time without any begins a round. */
TEST(round_begins_anew_after_a_time_without_flows)
{
	const struct turnover *t;

	open_rounds(&by_grant, BUDGET_ALL_EXHAUSTED, 2);
	t = &budget()->turnover;
	insert(1);
	finish(1);
	finish(1);
	finish(0);
	run_to(1000 * MS);
	assert_null(h.sched.active);
	assert_int_equal(h.tick_ns, 0);
	assert_int_equal(atomic64_read(&budget()->sentinel), 0);
	insert(1);
	assert_int_equal(left(1), 5 * BYTES);
	start_ns = budget()->refills;
	hooks_run(&h, h.now);
	assert_int_equal(budget()->start_ns, h.now);
	assert_int_equal(budget()->refills, start_ns);
	/* Nothing that was measured before counts. */
	assert_int_equal(t->since.now, h.now);
	assert_int_equal(t->since.dispatched, 3);
	assert_int_equal(t->since.work, 3 * BYTES);
	close_rounds();
}

/*
 * A CPU has made a flow active, and stands still before the grant.  Another CPU
 * finds the flow without credit.  The grant wakes its queue.
 */
TEST(grant_of_a_join_wakes_queues)
{
	struct flow_start start;
	struct wake wake;

	open_flows(&by_share, BUDGET_ALL_EXHAUSTED, PERIOD, 1);
	flow_charge(flow[0], 0, 0, false, &start);
	assert_true(start.woke);
	insert(0);
	hooks_dispatch(&h, 0, DISPATCH_NO_BUDGET);
	wake_init(&wake);
	round_join(budget(), flow[0], h.now, &wake);
	assert_int_equal(wake_next(&wake), 0);
	finish(0);
	close_rounds();
}

/* ------------------------------------------------------- sentinels, announcements */

/* The flow with the most credit asks for the tick that ends the round. */
TEST(sentinel_has_the_most_credit)
{
	u32 most;

	for (most = 0; most < FLOWS; most++) {
		u32 i;

		open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, FLOWS);
		for (i = 0; i < FLOWS; i++)
			spend_but(i, i == most ? PART / 2 : PART / 4);
		insert_if_empty(most);
		hooks_tick(&h);
		assert_int_equal(atomic64_read(&budget()->sentinel),
				 (s64)(unsigned long)budget_flow(most));
		for (i = 0; i < FLOWS; i++)
			if (i != most)
				exhaust(i);
		assert_false(tick_is_asked_for_now());
		exhaust(most);
		assert_true(tick_is_asked_for_now());
		close_rounds();
	}
}

TEST(donor_is_no_sentinel)
{
	open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, 2);
	spend_but(0, PART / 2);
	insert(0);
	finish(1);
	budget_flow(1)->donor_until_ns = h.now + PERIOD;
	hooks_tick(&h);
	assert_int_equal(atomic64_read(&budget()->sentinel),
			 (s64)(unsigned long)budget_flow(0));
	close_rounds();
}

/* Credit came between the look at it and the announcement. */
TEST(announcement_with_credit_is_withdrawn)
{
	struct wake wake;

	open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, 1);
	wake_init(&wake);
	assert_true(round_announce(budget(), budget_flow(0), 2, h.now, &wake));
	assert_int_equal(atomic64_read(&budget_flow(0)->waits[0]), 0);
	exhaust(0);
	assert_false(round_announce(budget(), budget_flow(0), 2, h.now, &wake));
	assert_int_equal(atomic64_read(&budget_flow(0)->waits[0]), BIT_ULL(2));
	close_rounds();
}

/* ------------------------------------------------------------- work conservation */

/* The first flow that waits asks for a tick, which then watches the device. */
TEST(device_is_watched_while_a_flow_waits)
{
	open_rounds(&by_share, BUDGET_CONSERVING, 2);
	assert_int_equal(atomic64_read(&budget()->watched), 0);
	exhaust_and_wait(0);
	assert_true(tick_is_asked_for_now());
	hooks_run(&h, h.now);
	assert_int_equal(budget()->early, 0);
	assert_int_equal(atomic64_read(&budget()->watched), 1);
	assert_int_equal(h.tick_ns, h.now + CHECK);
	/* When no flow waits any more, neither is the device watched. */
	hooks_set_drain(&h, true);
	finish(0);
	hooks_tick(&h);
	assert_int_equal(atomic64_read(&budget()->watched), 0);
	assert_int_equal(budget()->early, 0);
	close_rounds();
}

/* P4: one tick that watches is enough. */
TEST(announcement_asks_for_a_tick_if_none_watches)
{
	u32 watched;

	open_rounds(&by_share, BUDGET_CONSERVING, 1);
	exhaust(0);
	for (watched = 0; watched < 2; watched++) {
		struct wake wake;

		wake_init(&wake);
		atomic64_set(&budget()->tick_requested, 0);
		atomic64_set(&budget()->watched, watched);
		assert_false(round_announce(budget(), budget_flow(0), 0, h.now,
					    &wake));
		assert_int_equal(wake.at_ns, watched ? 0 : h.now);
	}
	close_rounds();
}

/* The flows in credit are donors for eight periods. */
TEST(flow_that_leaves_the_device_idle_becomes_a_donor)
{
	u64 since_ns;

	open_rounds(&by_share, BUDGET_CONSERVING, 2);
	exhaust_and_wait(0);
	hooks_run(&h, h.now);
	since_ns = h.now;
	finish(1);
	hooks_run(&h, since_ns + CHECK - 1);
	assert_int_equal(budget()->early, 0);
	assert_int_equal(budget_flow(1)->donor_until_ns, 0);
	hooks_run(&h, since_ns + CHECK);
	assert_int_equal(budget()->early, 1);
	assert_int_equal(budget_flow(1)->donor_until_ns, h.now + 8 * PERIOD);
	assert_int_equal(budget_flow(0)->donor_until_ns, 0);
	close_rounds();
}

/* A flow waits for a donor with @requests, waiting or in the device.  Ends the round? */
static bool ends_with_donor_of(u32 requests)
{
	bool ends;
	u32 i;

	open_rounds(&by_share, BUDGET_CONSERVING, 2);
	budget_flow(1)->donor_until_ns = h.now + PERIOD;
	for (i = 1; i < requests; i++)
		insert(1);
	exhaust_and_wait(0);
	hooks_tick(&h);
	ends = budget()->early == 1;
	finish(1);
	close_rounds();
	return ends;
}

/* D is 64.  Others could use no place of it meanwhile. */
TEST(round_waits_for_donors_that_fill_the_device)
{
	assert_true(ends_with_donor_of(1));
	assert_true(ends_with_donor_of(33));
	assert_true(ends_with_donor_of(63));
	assert_false(ends_with_donor_of(64));
	assert_false(ends_with_donor_of(100));
}

/* An exhausted flow without requests has nothing to wait for. */
TEST(round_goes_on_while_no_flow_waits)
{
	open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, 2);
	exhaust(0);
	finish(1);
	budget_flow(1)->donor_until_ns = h.now + PERIOD;
	hooks_tick(&h);
	assert_int_equal(budget()->refills, 1);
	insert(0);
	hooks_dispatch(&h, 0, DISPATCH_NO_BUDGET);
	hooks_tick(&h);
	assert_int_equal(budget()->refills, 2);
	close_rounds();
}

/* The round waits for the flow from the time at which it is no donor. */
TEST(donor_is_one_until_its_time)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, 2);
		exhaust_and_wait(0);
		finish(1);
		budget_flow(1)->donor_until_ns = h.now + i;
		hooks_tick(&h);
		assert_int_equal(budget()->refills, 1 + i);
		close_rounds();
	}
}

/* Flow 0 owes three rounds.  They are granted at once, though a donor is rich. */
TEST(debt_is_granted_in_spite_of_a_donor)
{
	open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, 2);
	hooks_insert(&h, 0, flow[0], 4 * PART, IO_URGENT);
	finish(0);
	assert_int_equal(left(0), -3 * PART);
	hooks_dispatch(&h, 0, DISPATCH_NO_BUDGET);
	finish(1);
	budget_flow(1)->donor_until_ns = h.now + PERIOD;
	hooks_tick(&h);
	assert_int_equal(budget()->refills, 2);
	assert_int_equal(left(0), PART);
	close_rounds();
}

/* The grants of flow 0 in a round beside a donor, if the device does @work in 2 ms. */
static u64 grants_beside_a_donor(u64 work)
{
	u64 grants;

	open_rounds(&by_grant, BUDGET_CONSERVING, 2);
	budget()->turnover.mean = BYTES;
	budget()->turnover.rate = rate_of(work, 2 * MS);
	exhaust_and_wait(0);
	finish(1);
	budget_flow(1)->donor_until_ns = h.now + PERIOD;
	hooks_tick(&h);
	assert_int_equal(budget()->refills, 2);
	assert_int_equal(left(0) % BYTES, 0);
	grants = (u64)left(0) / BYTES;
	close_rounds();
	return grants;
}

/*
 * It gets the work of two milliseconds, so it ends few rounds in that time.  It gets no
 * more than the total of a round.
 */
TEST(flow_beside_a_donor_gets_the_work_of_two_milliseconds)
{
	assert_int_equal(grants_beside_a_donor(0), 1);
	assert_int_equal(grants_beside_a_donor(10 * BYTES + BYTES / 4), 10);
	assert_int_equal(grants_beside_a_donor(100 * PART), 2 * PART / BYTES);
}

/* Without a donor the grants are the total. */
TEST(flows_without_a_donor_get_one_grant)
{
	open_rounds(&by_share, BUDGET_CONSERVING, 2);
	budget()->turnover.mean = BYTES;
	budget()->turnover.rate = rate_of(100 * PART, MS);
	exhaust(1);
	exhaust_and_wait(0);
	hooks_tick(&h);
	assert_int_equal(budget()->refills, 2);
	assert_int_equal(left(0), PART);
	assert_int_equal(left(1), PART);
	close_rounds();
}

/* ---------------------------------------------------------- time, measurements */

/* Two periods, if two turnovers of the device were used meanwhile. */
TEST(conserving_round_has_a_least_use)
{
	u32 i;

	open_rounds(&by_share, BUDGET_CONSERVING, 1);
	run_to(2 * PERIOD - 1);
	assert_int_equal(budget()->refills, 1);
	/* Nothing is in the device: the least use is none. */
	run_to(2 * PERIOD);
	assert_int_equal(budget()->refills, 2);
	/* Eight requests are in it at the end of the next round. */
	for (i = 0; i < 8; i++) {
		insert(0);
		dispatch(0);
	}
	run_to(4 * PERIOD);
	assert_int_equal(budget()->refills, 3);
	assert_int_equal(budget()->turnover.mean, BYTES);
	assert_int_equal(budget()->least_used, 2 * 8 * BYTES);
	run_to(6 * PERIOD);
	assert_int_equal(budget()->refills, 3);
	assert_true(h.tick_ns > h.now && h.tick_ns <= h.now + PERIOD);
	for (i = 0; i < 16; i++) {
		hooks_tick(&h);
		assert_int_equal(budget()->refills, 3);
		insert_if_empty(0);
		finish(0);
	}
	hooks_tick(&h);
	assert_int_equal(budget()->refills, 4);
	close_rounds();
}

TEST(next_tick_is_at_the_end_of_the_round)
{
	open_rounds(&by_share, BUDGET_ALL_EXHAUSTED, 1);
	assert_int_equal(h.tick_ns, start_ns + PERIOD / 4);
	close_rounds();
}

/* --------------------------------------------------------------- the watchdog */

static s64 forgotten(void)
{
	return atomic64_read(&h.sched.stats.watchdog);
}

static void run_sweeps(u32 n)
{
	hooks_run(&h, h.now + n * SWEEP_NS);
}

/* A queue waits for a flow that has credit: a wake-up was lost. */
TEST(flow_with_credit_and_a_queue_that_waits_is_counted)
{
	atomic64_t *waits;

	open_flows(&by_share, BUDGET_PERIODIC, 4000 * MS, 1);
	insert(0);
	hooks_run(&h, h.now);
	waits = &budget_flow(0)->waits[0];
	atomic64_set(waits, 1);
	run_sweeps(SUSPECT_SWEEPS - 1);
	assert_int_equal(forgotten(), 0);
	/* A pause begins the count anew. */
	atomic64_set(waits, 0);
	run_sweeps(1);
	atomic64_set(waits, 1);
	run_sweeps(SUSPECT_SWEEPS - 1);
	assert_int_equal(forgotten(), 0);
	run_sweeps(1);
	assert_int_equal(forgotten(), 1);
	run_sweeps(2 * SUSPECT_SWEEPS);
	assert_int_equal(forgotten(), 1);
	close_rounds();
}

/* It has no credit, so the queue waits with reason. */
TEST(queue_of_an_exhausted_flow_is_not_forgotten)
{
	open_flows(&by_share, BUDGET_PERIODIC, 4000 * MS, 1);
	insert(0);
	hooks_run(&h, h.now);
	exhaust_and_wait(0);
	run_sweeps(3 * SUSPECT_SWEEPS);
	assert_int_equal(forgotten(), 0);
	close_rounds();
}

/* A queue waits for a slot, and one is free, in the last of the domains. */
TEST(queue_that_waits_for_a_free_slot_is_counted)
{
	open_flows(&four_domains, BUDGET_PERIODIC, 4000 * MS, 1);
	insert(0);
	hooks_run(&h, h.now);
	run_sweeps(2 * SUSPECT_SWEEPS);
	assert_int_equal(forgotten(), 0);
	queue_set_add(&budget()->slots[3].ready, 0);
	run_sweeps(SUSPECT_SWEEPS + 1);
	assert_int_equal(forgotten(), 1);
	slots_withdraw(&budget()->slots[3], 0);
	close_rounds();
}
