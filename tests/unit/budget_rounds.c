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

/* Each of a donor's requests passes those that wait already. */
TEST(donors_go_first)
{
	struct hooks *s = &scenario;
	struct io *io[6];
	u32 i;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, DEPTH);
	budget_flow_of(s->flow[2])->donor_until_ns = s->now + PERIOD;
	for (i = 0; i < 4; i++)
		hooks_read(s, 0, s->flow[i % 2]);
	io[0] = hooks_next(s, 0);
	io[1] = hooks_read(s, 0, s->flow[2]);
	io[2] = hooks_read(s, 0, s->flow[2]);
	assert_ptr_equal(hooks_next(s, 0), io[1]);
	assert_ptr_equal(hooks_next(s, 0), io[2]);
	/* Then it is the other flows' turn. */
	for (i = 3; i < 6; i++)
		io[i] = hooks_next(s, 0);
	for (i = 0; i < 6; i++)
		hooks_complete(s, io[i]);
	scenario_deinit();
}

/* Two donors with two requests each: one of each in turn, before the other flow. */
TEST(donors_take_turns)
{
	struct hooks *s = &scenario;
	struct io *io[5];
	u32 i;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, DEPTH);
	hooks_read(s, 0, s->flow[0]);
	for (i = 0; i < 4; i++) {
		budget_flow_of(s->flow[1 + i / 2])->donor_until_ns =
			s->now + PERIOD;
		hooks_read(s, 0, s->flow[1 + i / 2]);
	}
	for (i = 0; i < 5; i++) {
		io[i] = hooks_next(s, 0);
		assert_ptr_equal(io[i]->flow, s->flow[i < 4 ? 1 + i % 2 : 0]);
	}
	for (i = 0; i < 5; i++)
		hooks_complete(s, io[i]);
	scenario_deinit();
}

/*
 * Queue 0 has sent @io[], @depth of them, which have all slots.  Queue 1 waits for a slot,
 * and is the next in the ring.  Queue 2 waits as well, with an io of a donor.
 */
static void open_with_a_donor(struct hooks *s, struct io **io, u32 depth)
{
	u32 i;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, depth);
	budget_flow_of(s->flow[2])->donor_until_ns = s->now + PERIOD;
	for (i = 0; i < depth; i++) {
		hooks_read(s, 0, s->flow[0]);
		io[i] = hooks_next(s, 0);
	}
	hooks_read(s, 1, s->flow[1]);
	hooks_dispatch(s, 1, DISPATCH_NO_SLOT);
	hooks_read(s, 2, s->flow[2]);
	hooks_dispatch(s, 2, DISPATCH_NO_SLOT);
}

TEST(slot_is_for_the_queue_of_a_donor)
{
	struct hooks *s = &scenario;
	struct io *io;

	open_with_a_donor(s, &io, 1);
	s->woken = 0;
	hooks_complete(s, io);
	assert_int_equal(s->woken, BIT_ULL(2));
	io = hooks_next(s, 2);
	assert_ptr_equal(io->flow, s->flow[2]);
	s->woken = 0;
	hooks_complete(s, io);
	assert_int_equal(s->woken, BIT_ULL(1));
	hooks_complete(s, hooks_next(s, 1));
	scenario_deinit();
}

/* The flow is a donor no more when its queue looks for a slot again. */
TEST(queue_of_a_former_donor_has_no_rank)
{
	struct hooks *s = &scenario;
	struct io *io;

	open_with_a_donor(s, &io, 1);
	s->now += PERIOD;
	hooks_dispatch(s, 2, DISPATCH_NO_SLOT);
	s->woken = 0;
	hooks_complete(s, io);
	assert_int_equal(s->woken, BIT_ULL(1));
	hooks_complete(s, hooks_next(s, 1));
	hooks_complete(s, hooks_next(s, 2));
	scenario_deinit();
}

/* Two slots, two queues that wait: the donor is due one slot, which is a part. */
TEST(queue_of_a_donor_that_is_due_its_part_has_no_rank)
{
	struct hooks *s = &scenario;
	struct io *io[2];

	open_with_a_donor(s, io, 2);
	s->woken = 0;
	hooks_complete(s, io[0]);
	assert_int_equal(s->woken, BIT_ULL(1));
	hooks_complete(s, hooks_next(s, 1));
	hooks_complete(s, hooks_next(s, 2));
	hooks_complete(s, io[1]);
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

/* A device while flow 0 is exhausted, and flow 1 has credit. */
struct device {
	u32 depth;
	u32 inside;	/* requests of flow 1 */
	u32 queued;	/* requests of flow 0, at least one */
	bool backlog;	/* of flow 1 */
};

static void send(u32 requests)
{
	struct hooks *s = &scenario;
	u32 i;

	for (i = 0; i < requests; i++)
		hooks_read(s, 1, s->flow[1]);
	for (i = 0; i < requests; i++)
		hooks_next(s, 1);
}

/* Ends with the first check. */
static void hold(const struct device *d)
{
	struct hooks *s = &scenario;
	u32 i;

	scenario_init(&one_domain, BUDGET_CONSERVING, 4 << 20, d->depth);
	for (i = 0; i < 2; i++) {
		hooks_read(s, i, s->flow[i]);
		hooks_complete(s, hooks_next(s, i));
	}
	hooks_tick(s);
	spend_all(s, 0);
	send(d->inside);
	for (i = 0; i < d->queued; i++)
		hooks_read(s, 0, s->flow[0]);
	hooks_dispatch(s, 0, DISPATCH_NO_BUDGET);
	if (d->backlog)
		hooks_read(s, 1, s->flow[1]);
	hooks_tick(s);
}

static void release(void)
{
	struct hooks *s = &scenario;

	hooks_set_drain(s, true);
	hooks_drain(s);
	scenario_deinit();
}

/* Check intervals later, by the ticks that were requested. */
static bool refilled_in(struct hooks *s, u64 intervals)
{
	u64 refills = budget(s)->refills;

	hooks_run(s, s->now + intervals * 1000 * 1000);
	return budget(s)->refills != refills;
}

TEST(round_ends_if_the_flow_in_credit_leaves_the_device_idle)
{
	static const struct {
		struct device device;
		bool idle;
	} table[] = {
		/* 0 */ { { 128, 4, 200, false }, true },
		/* 1: more than an eighth is free */
		{ { 16, 13, 1, false }, true },
		/* 2: an eighth is free */ { { 16, 14, 64, false }, false },
		/* 3: the flow in credit would send more */
		{ { 128, 0, 64, true }, false },
		/* 4 */ { { 128, 4, 200, true }, false },
		/* 5: D of one, and nothing inside */
		{ { 1, 0, 64, false }, true },
	};
	struct hooks *s = &scenario;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		hold(&table[i].device);
		if (budget(s)->early != table[i].idle)
			fail_msg("row %zu", i);
		if (!table[i].idle)
			assert_false(refilled_in(s, 10));
		release();
	}
}

/* The exhausted flow does not wait for a donor again. */
TEST(round_ends_at_once_beside_a_donor)
{
	static const struct device device = { 16, 0, 64, false };
	struct hooks *s = &scenario;

	hold(&device);
	assert_int_equal(budget(s)->early, 1);
	spend_all(s, 0);
	hooks_read(s, 0, s->flow[0]);
	hooks_dispatch(s, 0, DISPATCH_NO_BUDGET);
	assert_true(refilled_in(s, 0));
	release();
}

/* One domain has no slot left: its requests are no fewer than there is room for. */
TEST(full_domain_is_in_use)
{
	struct hooks *s = &scenario;
	struct io *io;

	scenario_init(&two_domains, BUDGET_CONSERVING, 1 << 20, 1);
	io = hooks_insert_op(s, 1, s->flow[1], IO_WRITE, 4096, 0);
	assert_ptr_equal(hooks_next(s, 1), io);
	hooks_read(s, 0, s->flow[0]);
	hooks_complete(s, hooks_next(s, 0));
	hooks_tick(s);
	spend_all(s, 0);
	hooks_read(s, 0, s->flow[0]);
	hooks_dispatch(s, 0, DISPATCH_NO_BUDGET);
	hooks_tick(s);
	assert_int_equal(budget(s)->early, 0);
	hooks_complete(s, io);
	hooks_tick(s);
	assert_int_equal(budget(s)->early, 1);
	release();
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
