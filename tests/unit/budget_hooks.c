// SPDX-License-Identifier: GPL-2.0
/* Lanes, domains and slots of a scheduler with a budget, hook by hook. */
#include "hooks.h"
#include "tests/budget_mock.h"

enum {
	BYTES	= HOOKS_BYTES,
	TOTAL	= 1 << 20,
	PERIOD	= 40 * 1000 * 1000,
};

static struct hooks h;

static const struct budget_ops one = {
	.nr_domains = 1, .predict = budget_mock_predict,
};

/* A domain for each operation: as many as there may be. */
static u32 domain_of_op(const struct io *io)
{
	return io->op;
}

static const struct budget_ops four = {
	.nr_domains = 4, .batch = { 3, 2, 1, 1 }, .domain = domain_of_op,
	.predict = budget_mock_predict,
};

static void choose_mock(const struct budget_ops *ops, u64 total)
{
	budget_mock.ops = ops;
	budget_mock.rule = BUDGET_ALL_EXHAUSTED;
	budget_mock.total = total;
	budget_mock.predicted = 0;
	budget_mock.on_predict = NULL;
}

static struct sched_params mock_params(u32 depth)
{
	struct sched_params p;

	sched_params_init(&budget_mock_ops, &p);
	p.depth = depth;
	budget_params(&p)->period_ns = PERIOD;
	return p;
}

static void open_budget(const struct budget_ops *ops, u32 depth)
{
	struct sched_params p = mock_params(depth);

	choose_mock(ops, TOTAL);
	hooks_open(&h, &budget_mock_ops, &p, HOOKS_QUEUES);
}

static void close_budget(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

static const struct budget *budget(void)
{
	return h.sched.own;
}

static const struct slots *slots(u32 domain)
{
	return &budget()->slots[domain];
}

static struct budget_flow *budget_flow(struct flow *f)
{
	return budget_flow_of(f);
}

static bool waits_for_slot(u32 queue, u32 domain)
{
	return queue_set_has(&slots(domain)->ready, queue);
}

/* ------------------------------------------------------------ lanes, domains */

/* It is a donor until a time, and no more at that time. */
TEST(donor_passes_until_its_time)
{
	struct flow *donor, *other;
	struct io *first, *second;

	open_budget(&one, 64);
	donor = hooks_flow(&h, 100);
	other = hooks_flow(&h, 100);
	budget_flow(donor)->donor_until_ns = h.now + 1;
	/* Into an empty queue, and before another request. */
	first = hooks_read(&h, 0, donor);
	second = hooks_read(&h, 0, other);
	assert_ptr_equal(hooks_next(&h, 0), first);
	first = hooks_read(&h, 0, donor);
	assert_ptr_equal(hooks_next(&h, 0), first);
	assert_ptr_equal(hooks_next(&h, 0), second);
	h.now++;
	first = hooks_read(&h, 0, other);
	second = hooks_read(&h, 0, donor);
	assert_ptr_equal(hooks_next(&h, 0), first);
	assert_ptr_equal(hooks_next(&h, 0), second);
	hooks_dispatch(&h, 0, DISPATCH_EMPTY);
	close_budget();
}

/*
 * Three reads, two writes and a discard are a turn each.  After the last read
 * but one turn, the writes have a turn of two again.
 */
TEST(domains_take_turns)
{
	static const char wanted[] = "RRRWWDRWWDW";
	static const char letters[] = "RWD";
	struct flow *f;
	u32 i;

	open_budget(&four, 64);
	f = hooks_flow(&h, 100);
	for (i = 0; i < 5; i++) {
		if (i < 4)
			hooks_insert_op(&h, 0, f, IO_READ, BYTES, 0);
		hooks_insert_op(&h, 0, f, IO_WRITE, BYTES, 0);
		if (i < 2)
			hooks_insert_op(&h, 0, f, IO_DISCARD, BYTES, 0);
	}
	for (i = 0; wanted[i]; i++)
		assert_int_equal(letters[hooks_next(&h, 0)->op], wanted[i]);
	hooks_dispatch(&h, 0, DISPATCH_EMPTY);
	close_budget();
}

/* Two flows in one domain take turns as well. */
TEST(flows_take_turns)
{
	struct flow *f[3];
	u32 i;

	open_budget(&one, 64);
	for (i = 0; i < 3; i++)
		f[i] = hooks_flow(&h, 100);
	for (i = 0; i < 9; i++)
		hooks_read(&h, 0, f[i / 3]);
	for (i = 0; i < 9; i++)
		assert_ptr_equal(hooks_next(&h, 0)->flow, f[i % 3]);
	close_budget();
}

/* --------------------------------------------------------------------- slots */

TEST(queue_waits_for_a_slot)
{
	struct flow *f;
	struct io *io;

	open_budget(&one, 1);
	f = hooks_flow(&h, 100);
	hooks_read(&h, 0, f);
	io = hooks_next(&h, 0);
	assert_int_equal(h.queue[1].stats.no_slot, 0);
	hooks_send_in_vain(&h, 1, f);
	assert_int_equal(h.queue[1].stats.no_slot, 1);
	assert_int_equal(h.queue[1].stats.throttled, 0);
	assert_int_equal(h.queue[1].state, DISPATCH_NO_SLOT);
	assert_true(waits_for_slot(1, 0));
	hooks_complete(&h, io);
	assert_int_equal(h.woken, BIT_ULL(1));
	assert_true(h.queue[1].wake_pending);
	hooks_next(&h, 1);
	assert_int_equal(h.queue[1].state, DISPATCH_IO);
	assert_false(h.queue[1].wake_pending);
	assert_false(waits_for_slot(1, 0));
	hooks_dispatch(&h, 1, DISPATCH_EMPTY);
	/* An empty queue was refused nothing. */
	assert_int_equal(h.queue[1].stats.no_slot, 1);
	assert_int_equal(h.queue[1].stats.throttled, 0);
	close_budget();
}

/* The queue waits in two domains.  A discard goes all the same. */
TEST(queue_waits_in_several_domains)
{
	struct flow *f;
	u32 op;

	open_budget(&four, 1);
	f = hooks_flow(&h, 100);
	for (op = IO_READ; op <= IO_WRITE; op++) {
		hooks_insert_op(&h, 0, f, op, BYTES, 0);
		hooks_next(&h, 0);
		hooks_insert_op(&h, 1, f, op, BYTES, 0);
	}
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	assert_true(waits_for_slot(1, IO_READ));
	assert_true(waits_for_slot(1, IO_WRITE));
	assert_false(waits_for_slot(1, IO_DISCARD));
	hooks_insert_op(&h, 1, f, IO_DISCARD, BYTES, 0);
	assert_int_equal(hooks_next(&h, 1)->op, IO_DISCARD);
	hooks_block(&h, 1);
	for (op = IO_READ; op <= IO_DISCARD; op++) {
		assert_false(waits_for_slot(1, op));
		assert_int_equal(queue_set_count(&slots(op)->ready,
						 h.sched.nr_queues),
				 0);
	}
	close_budget();
}

/* An urgent request takes a slot if one is free, and goes in any case. */
TEST(urgent_request_passes_a_queue_that_waits)
{
	struct flow *f;

	open_budget(&one, 1);
	f = hooks_flow(&h, 100);
	hooks_insert(&h, 0, f, BYTES, IO_URGENT);
	hooks_next(&h, 0);
	assert_int_equal(slots_used(slots(0)), 1);
	hooks_send_in_vain(&h, 1, f);
	hooks_insert(&h, 1, f, BYTES, IO_URGENT);
	hooks_next(&h, 1);
	assert_int_equal(slots_used(slots(0)), 1);
	/* The other request of the queue goes on waiting. */
	assert_true(waits_for_slot(1, 0));
	close_budget();
}

TEST(blocked_queue_does_not_wait)
{
	struct flow *f;
	struct io *io;

	open_budget(&one, 1);
	f = hooks_flow(&h, 100);
	hooks_read(&h, 0, f);
	io = hooks_next(&h, 0);
	hooks_send_in_vain(&h, 1, f);
	hooks_send_in_vain(&h, 2, f);
	hooks_send_in_vain(&h, 3, f);
	hooks_block(&h, 1);
	assert_false(waits_for_slot(1, 0));
	assert_int_not_equal(h.queue[1].state, DISPATCH_NO_SLOT);
	hooks_complete(&h, io);
	assert_int_equal(h.woken, BIT_ULL(2));
	/* A block after the wake-up hands the slot over. */
	h.woken = 0;
	hooks_block(&h, 2);
	assert_int_equal(h.woken, BIT_ULL(3));
	close_budget();
}

TEST(refused_queue_hands_its_slot_over)
{
	open_budget(&one, 8);
	hooks_refused_queue_hands_over(&h);
	close_budget();
}

TEST(last_io_of_a_queue_hands_slots_over)
{
	open_budget(&one, 4);
	hooks_last_io_hands_over(&h);
	close_budget();
}

/* ------------------------------------------------------------- without credit */

TEST(queue_waits_for_credit)
{
	struct flow *f;

	open_budget(&one, 64);
	f = hooks_flow(&h, 100);
	hooks_insert(&h, 0, f, TOTAL, 0);
	hooks_next(&h, 0);
	assert_int_equal(credit_left(&budget_flow(f)->credit), 0);
	hooks_read(&h, 0, f);
	hooks_dispatch(&h, 0, DISPATCH_NO_BUDGET);
	assert_int_equal(h.queue[0].state, DISPATCH_NO_BUDGET);
	assert_int_equal(h.queue[0].stats.throttled, 1);
	assert_int_equal(h.queue[0].stats.no_slot, 0);
	/* No grant was made meanwhile: the lane stays aside. */
	hooks_dispatch(&h, 0, DISPATCH_NO_BUDGET);
	hooks_run(&h, PERIOD + 1);
	assert_int_equal(h.woken, BIT_ULL(0));
	hooks_next(&h, 0);
	close_budget();
}

/*
 * Its bit is gone, so the refill does not wake it.  Another flow keeps ticks
 * coming.
 */
TEST(queue_that_no_flow_knows_of_is_counted)
{
	struct flow *f, *other;

	open_budget(&four, 64);
	f = hooks_flow(&h, 100);
	other = hooks_flow(&h, 100);
	hooks_read(&h, 1, other);
	hooks_next(&h, 1);
	hooks_insert(&h, 0, f, TOTAL, 0);
	hooks_next(&h, 0);
	hooks_read(&h, 0, f);
	hooks_dispatch(&h, 0, DISPATCH_NO_BUDGET);
	atomic64_set(&budget_flow(f)->waits[0], 0);
	hooks_run(&h, h.now + (SUSPECT_SWEEPS - 1) * SWEEP_NS);
	assert_int_equal(atomic64_read(&h.sched.stats.watchdog), 0);
	hooks_run(&h, h.now + 3 * SWEEP_NS);
	assert_int_equal(atomic64_read(&h.sched.stats.watchdog), 1);
	assert_int_equal(h.woken, 0);
	close_budget();
}

/* Also while it waits for a slot in another domain. */
TEST(queue_that_waits_for_a_slot_has_no_other_reason)
{
	struct flow *f[2];

	open_budget(&four, 1);
	f[0] = hooks_flow(&h, 100);
	f[1] = hooks_flow(&h, 100);
	hooks_insert(&h, 0, f[0], TOTAL, 0);
	hooks_next(&h, 0);
	hooks_read(&h, 1, f[1]);
	hooks_insert_op(&h, 1, f[0], IO_WRITE, BYTES, 0);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	close_budget();
}

/* ---------------------------------------------------------------- life, tuning */

TEST(tune_changes_the_depth_of_one_domain)
{
	struct sched_params p;
	struct flow *f;

	open_budget(&one, 1);
	f = hooks_flow(&h, 100);
	hooks_send(&h, 0, f, 1);
	hooks_send_in_vain(&h, 1, f);
	hooks_run(&h, h.now);
	p = h.sched.params;
	p.depth = 3;
	budget_params(&p)->period_ns = 2 * PERIOD;
	hooks_tune(&h, &p);
	assert_int_equal(h.sched.params.depth, 3);
	assert_int_equal(slots(0)->depth, 3);
	assert_int_equal(budget_params(&h.sched.params)->period_ns, 2 * PERIOD);
	assert_int_equal(h.woken, BIT_ULL(1));
	close_budget();
	/* With several domains their scheduler does it. */
	open_budget(&four, 1);
	hooks_tune(&h, &p);
	assert_int_equal(slots(0)->depth, 1);
	close_budget();
}

/* A flow may have left for which all others waited. */
TEST(new_shares_ask_for_a_tick_at_once)
{
	open_budget(&one, 1);
	h.tick_ns = 0;
	hooks_tune(&h, NULL);
	assert_int_equal(h.tick_ns, 1);
	close_budget();
}

TEST(lock_of_a_flow_is_that_of_its_credit)
{
	struct port_lock lock;
	struct flow *f;

	open_budget(&one, 1);
	port_lock_init(&lock);
	f = hooks_flow(&h, 100);
	assert_null(budget_flow(f)->credit.lock);
	budget_set_lock(f, &lock);
	assert_ptr_equal(budget_flow(f)->credit.lock, &lock);
	close_budget();
	port_lock_deinit(&lock);
}

static int init_without_a_rule(struct sched *s)
{
	const u32 depth[] = { 1, 1, 1, 1 };

	return budget_init(s->own, s, &four, TOTAL, depth);
}

static const struct tunable with_cost[] = {
	{ TUNABLE_DEPTH(4) },
	{ TUNABLE_COST_OF(COST_BYTES) },
	{ }
};

/* The same with a cost estimator, for which init takes memory. */
static struct sched_ops ops_without_a_rule(void)
{
	struct sched_ops ops = budget_mock_ops;

	ops.tunables = with_cost;
	ops.init = init_without_a_rule;
	return ops;
}

TEST(rounds_end_with_the_credit_of_all_by_default)
{
	struct sched_ops ops = ops_without_a_rule();
	struct sched_params p = mock_params(1);

	hooks_open(&h, &ops, &p, 1);
	assert_int_equal(budget()->rule, BUDGET_ALL_EXHAUSTED);
	hooks_close(&h);
}

/* The clock of a host does not begin with the scheduler. */
TEST(first_round_begins_with_the_first_tick)
{
	open_budget(&one, 1);
	h.now = 3600 * 1000 * MS;
	hooks_read(&h, 0, hooks_flow(&h, 100));
	hooks_run(&h, h.now);
	assert_int_equal(budget()->start_ns, h.now);
	assert_int_equal(budget()->refills, 0);
	close_budget();
}

TEST(init_fails_without_memory)
{
	struct sched_ops ops = ops_without_a_rule();

	/* Topology, queues, scheduler, estimator, watchdog, parts and trees. */
	assert_true(hooks_init_without_memory(&ops) >= 11);
}
