// SPDX-License-Identifier: GPL-2.0
/*
 * Budgets, one hook after the other: against a twin that knows only the credit
 * of each flow and the requests that wait.  And the requests that do not wait.
 */
#include "budget_fixture.h"

enum {
	IOS	= 64,
};

/* --------------------------------------------------------------- the twin */

struct twin {
	s64 credit[FLOWS];
	struct io *fifo[QUEUES][FLOWS][IOS];
	u32 nr[QUEUES][FLOWS], waiting;
	u32 skipped[QUEUES][FLOWS];	/* while it could have gone */
	enum dispatch_result result[QUEUES];
	u64 total;
	struct port_lock lock[FLOWS];
};

static struct twin twin;

static bool twin_runnable(u32 queue, u32 flow)
{
	return twin.nr[queue][flow] && twin.credit[flow] > 0;
}

static void twin_insert(struct hooks *s, u32 queue, u32 flow, u32 bytes)
{
	bool was_active = atomic64_read(&s->flow[flow]->active);
	struct budget_flow *bf = budget_flow_of(s->flow[flow]);
	u64 round = bf->round;
	struct io *io;

	if (twin.waiting == IOS)
		return;
	io = hooks_insert(s, queue, s->flow[flow], bytes, 0);
	twin.waiting++;
	twin.fifo[queue][flow][twin.nr[queue][flow]++] = io;
	if (!was_active && round != budget(s)->round)
		twin.credit[flow] = min(twin.credit[flow], 0LL) +
				    (s64)part_of(s, flow, budget(s)->total);
}

static void twin_dispatch(struct hooks *s, u32 queue)
{
	enum dispatch_result expected = DISPATCH_EMPTY;
	struct io *io;
	u32 i, flow = FLOWS;

	for (i = 0; i < FLOWS; i++) {
		if (twin_runnable(queue, i))
			expected = DISPATCH_IO;
		else if (twin.nr[queue][i] && expected == DISPATCH_EMPTY)
			expected = DISPATCH_NO_BUDGET;
	}
	io = hooks_dispatch(s, queue, expected);
	twin.result[queue] = expected;
	if (!io)
		return;
	for (i = 0; i < FLOWS; i++)
		if (s->flow[i] == io->flow)
			flow = i;
	assert_true(twin_runnable(queue, flow));
	assert_ptr_equal(io, twin.fifo[queue][flow][0]);
	memmove(twin.fifo[queue][flow], twin.fifo[queue][flow] + 1,
		--twin.nr[queue][flow] * sizeof(io));
	twin.waiting--;
	twin.credit[flow] -= io->cost;
	for (i = 0; i < FLOWS; i++) {
		/* Lanes take turns. */
		if (i != flow && twin_runnable(queue, i))
			assert_true(++twin.skipped[queue][i] < FLOWS);
		else
			twin.skipped[queue][i] = 0;
	}
	hooks_complete(s, io);
}

static bool twin_active(const struct hooks *s, u32 flow)
{
	return atomic64_read(&s->flow[flow]->active);
}

/* As many rounds as the first flow needs to pay its debt. */
static void twin_refill(struct hooks *s, u64 total)
{
	u64 rounds = ~0ULL, part, due;
	u32 i;

	for (i = 0; i < FLOWS; i++) {
		if (!twin_active(s, i))
			continue;
		part = part_of(s, i, total);
		due = twin.credit[i] > 0 ? 1 : (u64)-twin.credit[i] / part + 1;
		rounds = min(rounds, due);
	}
	for (i = 0; i < FLOWS; i++)
		if (twin_active(s, i))
			twin.credit[i] = min(twin.credit[i], 0LL) +
					 (s64)(part_of(s, i, total) * rounds);
}

static bool twin_all_exhausted(const struct hooks *s)
{
	u32 i;

	for (i = 0; i < FLOWS; i++)
		if (twin_active(s, i) && twin.credit[i] > 0)
			return false;
	return true;
}

/* A refill wakes the queues with requests of a flow in credit, and no other. */
static void check_woken(struct hooks *s)
{
	u32 q, i;

	for (q = 0; q < QUEUES; q++) {
		bool woken = s->woken & BIT_ULL(q), runnable = false;

		for (i = 0; i < FLOWS; i++)
			runnable |= twin_runnable(q, i);
		if (woken)
			assert_true(runnable);
		if (runnable && twin.result[q] == DISPATCH_NO_BUDGET)
			assert_true(woken);
	}
	s->woken = 0;
}

static void twin_tick(struct hooks *s)
{
	u64 refills = budget(s)->refills;
	bool over = s->now - budget(s)->start_ns >= PERIOD, any = false;
	u32 i, q;

	for (q = 0; q < QUEUES; q++)
		twin_dispatch(s, q);
	s->woken = 0;
	if (!tick_is_requested(s) && !over)
		return;
	hooks_tick(s);
	for (i = 0; i < FLOWS; i++)
		any |= twin_active(s, i);
	if (!any)
		return;
	if (twin_all_exhausted(s) || over) {
		assert_int_equal(budget(s)->refills, refills + 1);
		twin_refill(s, twin.total);
		check_woken(s);
	} else {
		assert_int_equal(budget(s)->refills, refills);
	}
}

static void twin_check(struct hooks *s)
{
	u32 i, q;

	check_conservation(s);
	for (i = 0; i < FLOWS; i++)
		assert_int_equal(left(s, i), twin.credit[i]);
	/* Another queue spent the credit for which the flow was skipped. */
	for (q = 0; q < QUEUES; q++)
		for (i = 0; i < FLOWS; i++)
			if (!twin_runnable(q, i))
				twin.skipped[q][i] = 0;
	assert_int_equal(atomic64_read(&s->sched.stats.watchdog), 0);
}

static void twin_step(struct hooks *s, struct random *r)
{
	static const u32 sizes[] = { 512, 4096, 4096, 65536, 1 << 20 };
	u32 queue = random_below(r, QUEUES), flow = random_below(r, FLOWS);

	switch (random_below(r, 8)) {
	case 0:
	case 1:
	case 2:
		twin_insert(s, queue, flow, sizes[random_below(r, 5)]);
		break;
	case 3:
	case 4:
	case 5:
		twin_dispatch(s, queue);
		break;
	case 6:
		twin_tick(s);
		break;
	default:
		if (random_once_in(r, 4)) {
			flow_set_weight(s->flow[flow],
					1 + random_below(r, WEIGHT_MAX));
			hooks_tune(s, NULL);
		}
		if (random_once_in(r, 4))
			twin.total = 1 + random_next(r) % (1 << 22);
		set_total(twin.total);
		s->now += random_below(r, PERIOD / 16);
	}
	twin_check(s);
}

static void twin_play(struct random *r, bool locks)
{
	u32 step, i;

	twin = (struct twin){ .total = 1 << 20 };
	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, twin.total, IOS);
	for (i = 0; locks && i < FLOWS; i++) {
		port_lock_init(&twin.lock[i]);
		budget_set_lock(scenario.flow[i], &twin.lock[i]);
	}
	for (step = 0; step < 2000; step++) {
		/* A lock may take the place of another at any time. */
		if (locks && random_once_in(r, 20))
			budget_set_lock(scenario.flow[random_below(r, FLOWS)],
					&twin.lock[random_below(r, FLOWS)]);
		twin_step(&scenario, r);
	}
	hooks_drain(&scenario);
	check_conservation(&scenario);
	scenario_deinit();
	for (i = 0; locks && i < FLOWS; i++)
		port_lock_deinit(&twin.lock[i]);
}

TEST(credit_and_queues_match_the_twin)
{
	struct random r = random_seeded("unit/budget");
	u64 round;

	for (round = 0; round < random_rounds(20); round++)
		twin_play(&r, round % 2);
}

/* ------------------------------------------------------- special requests */

TEST(urgent_request_passes_and_pays_once)
{
	struct hooks *s = &scenario;
	struct io *io;
	s64 before;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, 1);
	hooks_read(s, 1, s->flow[1]);
	hooks_complete(s, hooks_next(s, 1));
	hooks_read(s, 0, s->flow[0]);
	hooks_complete(s, hooks_next(s, 0));
	spend_all(s, 0);
	hooks_read(s, 0, s->flow[0]);
	hooks_dispatch(s, 0, DISPATCH_NO_BUDGET);
	/* It passes the one that waits, without credit or slot, and pays. */
	hooks_read(s, 1, s->flow[1]);
	io = hooks_next(s, 1);
	assert_true(io->flags & IO_SLOT);
	before = left(s, 0);
	io = hooks_insert_op(s, 0, s->flow[0], IO_WRITE, 8192, IO_URGENT);
	assert_int_equal(io->flags & (IO_CHARGED | IO_PAID), IO_CHARGED);
	assert_ptr_equal(hooks_next(s, 0), io);
	assert_true(io->flags & IO_PAID);
	assert_false(io->flags & IO_SLOT);
	assert_int_equal(left(s, 0), before - 8192);
	/* The driver sends it back: it comes again, and does not pay again. */
	hooks_requeue(s, io);
	hooks_requeue(s, io);
	hooks_insert_again(s, io);
	assert_ptr_equal(hooks_next(s, 0), io);
	assert_int_equal(left(s, 0), before - 8192);
	hooks_complete(s, io);
	check_conservation(s);
	hooks_drain(s);
	scenario_deinit();
}

/* A request passes for isolation: the next slot is for it. */
static struct io *insert_passer(struct hooks *s, u32 queue, struct flow *f,
				enum io_op op)
{
	struct io *io;

	WRITE_ONCE(f->isolation.pass_until, UINT64_MAX);
	io = hooks_insert_op(s, queue, f, op, 4096, 0);
	WRITE_ONCE(f->isolation.pass_until, 0);
	return io;
}

/*
 * The first one goes beyond D = 1.  The second one spends without credit, and goes
 * before a queue that has waited for longer.
 */
TEST(request_that_passes_pays_and_has_the_next_slot)
{
	struct hooks *s = &scenario;
	struct io *io, *beyond, *passer;
	s64 before;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, 1);
	hooks_read(s, 0, s->flow[0]);
	io = hooks_next(s, 0);
	hooks_read(s, 0, s->flow[0]);
	hooks_dispatch(s, 0, DISPATCH_NO_SLOT);
	beyond = insert_passer(s, 1, s->flow[1], IO_READ);
	assert_ptr_equal(hooks_next(s, 1), beyond);
	passer = insert_passer(s, 1, s->flow[1], IO_READ);
	hooks_dispatch(s, 1, DISPATCH_NO_SLOT);
	before = left(s, 1);
	s->woken = 0;
	hooks_complete(s, beyond);
	assert_int_equal(s->woken, 0);
	hooks_complete(s, io);
	assert_int_equal(s->woken, BIT_ULL(1));
	assert_ptr_equal(hooks_next(s, 1), passer);
	assert_true(passer->flags & IO_SLOT);
	assert_int_equal(left(s, 1), before - 4096);
	s->woken = 0;
	hooks_complete(s, passer);
	assert_int_equal(s->woken, BIT_ULL(0));
	hooks_complete(s, hooks_next(s, 0));
	scenario_deinit();
}

/*
 * A read passes, and waits for a slot.  Another read does not go.  Writes that came
 * later do, and one that passes goes before one that does not.
 */
TEST(request_that_passes_waits_for_its_domain_alone)
{
	struct hooks *s = &scenario;
	struct io *io, *beyond, *passer, *write;

	scenario_init(&two_domains, BUDGET_ALL_EXHAUSTED, 1 << 20, 1);
	hooks_read(s, 0, s->flow[0]);
	io = hooks_next(s, 0);
	insert_passer(s, 0, s->flow[1], IO_READ);
	beyond = hooks_next(s, 0);
	passer = insert_passer(s, 0, s->flow[1], IO_READ);
	hooks_read(s, 0, s->flow[0]);
	hooks_insert_op(s, 0, s->flow[0], IO_WRITE, 4096, 0);
	write = hooks_next(s, 0);
	assert_int_equal(write->op, IO_WRITE);
	hooks_complete(s, write);
	hooks_insert_op(s, 0, s->flow[0], IO_WRITE, 4096, 0);
	write = insert_passer(s, 0, s->flow[1], IO_WRITE);
	assert_ptr_equal(hooks_next(s, 0), write);
	hooks_dispatch(s, 0, DISPATCH_NO_SLOT);
	hooks_complete(s, beyond);
	hooks_complete(s, io);
	assert_ptr_equal(hooks_next(s, 0), passer);
	hooks_drain(s);
	scenario_deinit();
}

/* The flow pays for a merge when the request goes. */
TEST(dispatch_pays_for_a_merge)
{
	struct hooks *s = &scenario;
	struct io *io;
	s64 before;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, IOS);
	io = hooks_read(s, 0, s->flow[0]);
	before = left(s, 0);
	hooks_merge(s, io, 65536);
	assert_int_equal(left(s, 0), before);
	assert_ptr_equal(hooks_next(s, 0), io);
	assert_int_equal(left(s, 0), before - 65536);
	assert_int_equal(atomic64_read(&s->flow[0]->pos), 65536);
	hooks_complete(s, io);
	scenario_deinit();
}

/*
 * Domains take turns, three of the first and two of the second; one without a
 * slot does not stop the other.
 */
TEST(domains_take_turns_and_have_own_slots)
{
	static const enum io_op order[] = {
		IO_READ, IO_READ, IO_READ, IO_WRITE, IO_WRITE,
		IO_READ, IO_READ, IO_READ, IO_WRITE, IO_WRITE,
	};
	struct hooks *s = &scenario;
	struct io *io[ARRAY_SIZE(order)];
	u32 i;

	scenario_init(&two_domains, BUDGET_ALL_EXHAUSTED, 64 << 20, 6);
	for (i = 0; i < 8; i++) {
		hooks_read(s, 0, s->flow[0]);
		hooks_insert_op(s, 0, s->flow[0], IO_WRITE, 4096, 0);
	}
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		io[i] = hooks_next(s, 0);
		assert_int_equal(io[i]->op, order[i]);
	}
	/* All six slots for reads are in use, and four of those for writes. */
	assert_int_equal(hooks_next(s, 0)->op, IO_WRITE);
	assert_int_equal(hooks_next(s, 0)->op, IO_WRITE);
	hooks_dispatch(s, 0, DISPATCH_NO_SLOT);
	s->woken = 0;
	hooks_complete(s, io[0]);
	assert_int_equal(s->woken, BIT_ULL(0));
	assert_int_equal(hooks_next(s, 0)->op, IO_READ);
	hooks_drain(s);
	scenario_deinit();
}

TEST(init_without_memory_leaves_nothing)
{
	static struct budget b;
	const u32 depth[] = { 4, 4 };
	u32 allowed;

	scenario_init(&two_domains, BUDGET_ALL_EXHAUSTED, 1 << 20, 4);
	/* Two allocations for the slots of each domain, one for the watchdog. */
	for (allowed = 0; allowed < 5; allowed++) {
		port_zalloc_fail_after(allowed);
		assert_int_equal(budget_init(&b, &scenario.sched, &two_domains,
					     1, depth),
				 -ENOMEM);
		port_zalloc_fail_never();
	}
	scenario_deinit();
}
