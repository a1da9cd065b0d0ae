// SPDX-License-Identifier: GPL-2.0
/*
 * Budgets, one call after the other: against a twin that knows only who has
 * how much credit and what waits where.
 */
#include "unit.h"
#include "sched/budget/budget.h"

enum {
	QUEUES	= 3,
	FLOWS	= 4,
	IOS	= 64,
	MS	= 1000 * 1000,
	PERIOD	= 40 * MS,	/* nobody is idle for FLOW_GRACE_NS */
};

static const struct topo_place apart[QUEUES] = { { 0, 0 }, { 1, 0 }, { 2, 1 } };

struct scenario {
	struct sched sched;
	struct queue queue[QUEUES];
	struct queue *index[QUEUES];
	struct flow *root, *flow[FLOWS];
	struct port_lock lock[FLOWS];
	struct io io[IOS];
	bool busy[IOS];
	u64 now, tick_ns;		/* 0: nobody asked */
	u64 named;			/* queues, since last looked */
	u32 predicted;			/* calls of predict */
	/* The twin. */
	s64 credit[FLOWS];
	struct io *fifo[QUEUES][FLOWS][IOS];
	u32 nr[QUEUES][FLOWS];
	u32 skipped[QUEUES][FLOWS];	/* while it could have gone */
	enum dispatch_result result[QUEUES];
};

static struct scenario scenario;

static bool always(const struct queue *q)
{
	(void)q;
	return true;
}

static struct budget *budget(struct scenario *s)
{
	return s->sched.own;
}

/* ------------------------------------------------- a scheduler to test with */

static u64 next_total;
static void (*in_predict)(struct scenario *s);

static void test_predict(struct budget *b, u64 now)
{
	(void)now;
	scenario.predicted++;
	b->total = next_total;
	if (in_predict)
		in_predict(&scenario);
}

static const struct budget_ops one_domain = {
	.nr_domains = 1, .predict = test_predict,
};

static u32 domain_of(const struct io *io)
{
	return io->op == IO_WRITE;
}

static const struct budget_ops two_domains = {
	.nr_domains = 2, .batch = { 3, 2 }, .domain = domain_of,
	.predict = test_predict,
};

static const struct budget_ops *test_budget_ops;
static enum budget_rule test_rule;

static int test_init(struct sched *s)
{
	const u32 depth[BUDGET_DOMAINS] = { s->params.depth, s->params.depth };
	struct budget *b = s->own;

	if (budget_init(b, s, test_budget_ops, next_total, depth))
		return -ENOMEM;
	budget_set_rule(b, test_rule);
	return 0;
}

static void test_exit(struct sched *s)
{
	budget_deinit(s->own);
}

static const struct tunable no_tunables[] = { { .name = NULL } };

static const struct sched_ops test_ops = {
	.name			= "test",
	.tunables		= no_tunables,
	.bytes			= sizeof(struct budget),
	.queue_bytes		= sizeof(struct budget_queue),
	.params_bytes		= sizeof(struct budget_params),
	.flow_bytes		= sizeof(struct budget_flow),
	.flow_queue_bytes	= BUDGET_FLOW_QUEUE_BYTES(2),
	.init			= test_init,
	.exit			= test_exit,
	.insert			= budget_insert,
	.merge			= budget_merge,
	.dispatch		= budget_dispatch,
	.block			= budget_block,
	.complete		= budget_complete,
	.requeue		= budget_requeue,
	.tick			= budget_tick,
	.tune			= budget_tune,
	.flow_init		= budget_flow_init,
};

/* -------------------------------------------------------------- the scenes */

static struct flow *flow_create(struct scenario *s, struct flow *parent,
				u32 weight)
{
	struct flow *f = port_zalloc(flow_size(&test_ops, QUEUES));

	assert_non_null(f);
	flow_init(f, &s->sched, parent, weight);
	return f;
}

static void flow_destroy(struct flow *f)
{
	flow_exit(f);
	port_free(f);
}

static void scenario_init(const struct budget_ops *ops, enum budget_rule rule,
			  u64 total, u32 depth)
{
	static const u32 weights[FLOWS] = { 100, 250, 500, 1000 };
	struct scenario *s = &scenario;
	struct sched_params p;
	u32 i;

	*s = (struct scenario){ .now = 1 };
	test_budget_ops = ops;
	test_rule = rule;
	next_total = total;
	in_predict = NULL;
	port_queue_is_mine = always;
	s->sched.queue = s->index;
	s->sched.nr_queues = QUEUES;
	for (i = 0; i < QUEUES; i++) {
		queue_init(&s->queue[i], &s->sched, i);
		s->index[i] = &s->queue[i];
	}
	sched_params_init(&test_ops, &p);
	p.depth = depth;
	budget_params(&p)->period_ns = PERIOD;
	assert_int_equal(sched_init(&s->sched, &test_ops, &p, apart), 0);
	s->root = flow_create(s, NULL, WEIGHT_DEFAULT);
	for (i = 0; i < FLOWS; i++)
		s->flow[i] = flow_create(s, s->root, weights[i]);
}

/* Called with nothing waiting and nothing out. */
static void scenario_deinit(void)
{
	struct scenario *s = &scenario;
	u32 i;

	for (i = 0; i < FLOWS; i++)
		if (s->flow[i])
			flow_destroy(s->flow[i]);
	flow_destroy(s->root);
	sched_exit(&s->sched);
}

static void act(struct scenario *s, struct wake *wake)
{
	u32 queue;

	while ((queue = wake_next(wake)) != QUEUES_MAX)
		s->named |= BIT_ULL(queue);
	if (wake->at_ns && (!s->tick_ns || wake->at_ns < s->tick_ns))
		s->tick_ns = wake->at_ns;
}

static bool tick_is_requested(const struct scenario *s)
{
	return s->tick_ns && s->tick_ns <= s->now;
}

static void tick(struct scenario *s)
{
	struct wake wake;

	s->tick_ns = 0;
	wake_init(&wake);
	budget_tick(&s->sched, s->now, &wake);
	act(s, &wake);
}

static struct io *insert(struct scenario *s, u32 queue, u32 flow, u32 bytes,
			 enum io_op op, u8 flags)
{
	struct wake wake;
	u32 i = 0;

	while (i < IOS && s->busy[i])
		i++;
	if (i == IOS)
		return NULL;
	s->busy[i] = true;
	s->io[i] = (struct io){ .flow = s->flow[flow],
				.bytes = bytes,
				.op = (u8)op,
				.flags = flags };
	wake_init(&wake);
	budget_insert(&s->queue[queue], &s->io[i], s->now, &wake);
	act(s, &wake);
	return &s->io[i];
}

static struct io *dispatch(struct scenario *s, u32 queue,
			   enum dispatch_result expected)
{
	struct io *io = NULL;
	struct wake wake;

	wake_init(&wake);
	assert_int_equal(budget_dispatch(&s->queue[queue], s->now, &io, &wake),
			 expected);
	act(s, &wake);
	return expected == DISPATCH_IO ? io : NULL;
}

static void complete(struct scenario *s, struct io *io)
{
	struct wake wake;

	wake_init(&wake);
	budget_complete(io, s->now, &wake);
	act(s, &wake);
	s->busy[io - s->io] = false;
}

static void reshare(struct scenario *s)
{
	struct wake wake;

	wake_init(&wake);
	budget_tune(&s->sched, NULL, &wake);
	act(s, &wake);
}

static s64 left(const struct scenario *s, u32 flow)
{
	return credit_left(&budget_flow_of(s->flow[flow])->credit);
}

/* I1. */
static void check_conservation(const struct scenario *s)
{
	u32 i;

	for (i = 0; i < FLOWS; i++)
		if (s->flow[i])
			assert_int_equal(budget_flow_of(s->flow[i])->granted,
					 (s64)budget_spent(s->flow[i]) +
						 left(s, i));
}

static u64 part_of(const struct scenario *s, u32 flow, u64 total)
{
	u64 generation, share, part;

	share = share_of((struct share_tree *)&s->sched.share,
			 &s->flow[flow]->group, &generation);
	part = mul_u64_u64_shr(total, share, SHARE_SHIFT);
	return max(part, 1ULL);
}

/* ------------------------------------------------------------------ the twin */

static bool twin_runnable(const struct scenario *s, u32 queue, u32 flow)
{
	return s->nr[queue][flow] && s->credit[flow] > 0;
}

static void twin_insert(struct scenario *s, u32 queue, u32 flow, u32 bytes)
{
	bool was_active = atomic64_read(&s->flow[flow]->active);
	struct budget_flow *bf = budget_flow_of(s->flow[flow]);
	u64 round = bf->round;
	struct io *io = insert(s, queue, flow, bytes, IO_READ, 0);

	if (!io)
		return;
	s->fifo[queue][flow][s->nr[queue][flow]++] = io;
	if (!was_active && round != budget(s)->round)
		s->credit[flow] = min(s->credit[flow], 0LL) +
				  (s64)part_of(s, flow, budget(s)->total);
}

static void twin_dispatch(struct scenario *s, u32 queue)
{
	enum dispatch_result expected = DISPATCH_EMPTY;
	struct io *io;
	u32 i, flow = FLOWS;

	for (i = 0; i < FLOWS; i++) {
		if (twin_runnable(s, queue, i))
			expected = DISPATCH_IO;
		else if (s->nr[queue][i] && expected == DISPATCH_EMPTY)
			expected = DISPATCH_NO_BUDGET;
	}
	io = dispatch(s, queue, expected);
	s->result[queue] = expected;
	if (!io)
		return;
	for (i = 0; i < FLOWS; i++)
		if (s->flow[i] == io->flow)
			flow = i;
	assert_true(twin_runnable(s, queue, flow));
	assert_ptr_equal(io, s->fifo[queue][flow][0]);
	memmove(s->fifo[queue][flow], s->fifo[queue][flow] + 1,
		--s->nr[queue][flow] * sizeof(io));
	s->credit[flow] -= io->cost;
	for (i = 0; i < FLOWS; i++) {
		/* Lanes take turns. */
		if (i != flow && twin_runnable(s, queue, i))
			assert_true(++s->skipped[queue][i] < FLOWS);
		else
			s->skipped[queue][i] = 0;
	}
	complete(s, io);
}

static bool twin_active(const struct scenario *s, u32 flow)
{
	return s->flow[flow] && atomic64_read(&s->flow[flow]->active);
}

/* Rounds until somebody is out of debt; 0: somebody may spend already. */
static void twin_refill(struct scenario *s, u64 total)
{
	u64 rounds = ~0ULL, part, due;
	u32 i;

	for (i = 0; i < FLOWS; i++) {
		if (!twin_active(s, i))
			continue;
		part = part_of(s, i, total);
		due = s->credit[i] > 0 ? 1 : (u64)-s->credit[i] / part + 1;
		rounds = min(rounds, due);
	}
	for (i = 0; i < FLOWS; i++)
		if (twin_active(s, i))
			s->credit[i] = min(s->credit[i], 0LL) +
				       (s64)(part_of(s, i, total) * rounds);
}

static bool twin_all_out(const struct scenario *s)
{
	u32 i;

	for (i = 0; i < FLOWS; i++)
		if (twin_active(s, i) && s->credit[i] > 0)
			return false;
	return true;
}

/* Just the queues that have work for a flow that has credit now. */
static void check_named(struct scenario *s)
{
	u32 q, i;

	for (q = 0; q < QUEUES; q++) {
		bool named = s->named & BIT_ULL(q), runnable = false;

		for (i = 0; i < FLOWS; i++)
			runnable |= twin_runnable(s, q, i);
		if (named)
			assert_true(runnable);
		if (runnable && s->result[q] == DISPATCH_NO_BUDGET)
			assert_true(named);
	}
	s->named = 0;
}

static void twin_tick(struct scenario *s)
{
	u64 refills = budget(s)->refills;
	bool over = s->now - budget(s)->start_ns >= PERIOD, any = false;
	u32 i, q;

	for (q = 0; q < QUEUES; q++)
		twin_dispatch(s, q);
	s->named = 0;
	if (!tick_is_requested(s) && !over)
		return;
	tick(s);
	for (i = 0; i < FLOWS; i++)
		any |= twin_active(s, i);
	if (!any)
		return;
	if (twin_all_out(s) || over) {
		assert_int_equal(budget(s)->refills, refills + 1);
		twin_refill(s, next_total);
		check_named(s);
	} else {
		assert_int_equal(budget(s)->refills, refills);
	}
}

static void twin_check(struct scenario *s)
{
	u32 i, q;

	check_conservation(s);
	for (i = 0; i < FLOWS; i++)
		assert_int_equal(left(s, i), s->credit[i]);
	/* It lost its turn elsewhere. */
	for (q = 0; q < QUEUES; q++)
		for (i = 0; i < FLOWS; i++)
			if (!twin_runnable(s, q, i))
				s->skipped[q][i] = 0;
	assert_int_equal(atomic64_read(&s->sched.stats.watchdog), 0);
}

static void twin_step(struct scenario *s, struct random *r)
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
			reshare(s);
		}
		if (random_once_in(r, 4))
			next_total = 1 + random_next(r) % (1 << 22);
		s->now += random_below(r, PERIOD / 16);
	}
	twin_check(s);
}

/* Whatever the rest of it owes. */
static void twin_finish(struct scenario *s)
{
	u32 q;

	s->sched.drain = true;
	for (q = 0; q < QUEUES; q++)
		while (s->queue[q].nr)
			complete(s, dispatch(s, q, DISPATCH_IO));
}

static void twin_play(struct random *r, bool locks)
{
	u32 step, i;

	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, IOS);
	for (i = 0; locks && i < FLOWS; i++) {
		port_lock_init(&scenario.lock[i]);
		budget_set_lock(scenario.flow[i], &scenario.lock[i]);
	}
	for (step = 0; step < 2000; step++) {
		/* Of the locks one may take another's place at any time. */
		if (locks && random_once_in(r, 20))
			budget_set_lock(scenario.flow[random_below(r, FLOWS)],
					&scenario.lock[random_below(r, FLOWS)]);
		twin_step(&scenario, r);
	}
	twin_finish(&scenario);
	check_conservation(&scenario);
	scenario_deinit();
	for (i = 0; locks && i < FLOWS; i++)
		port_lock_deinit(&scenario.lock[i]);
}

static void test_twin(void **state)
{
	struct random r = random_seeded("unit/budget");
	u64 round;

	(void)state;
	for (round = 0; round < random_rounds(20); round++)
		twin_play(&r, round % 2);
}

/* ---------------------------------------------------------- the end of a round */

/* Spends all that flow @flow has in requests of 4 KiB on queue 0. */
static u32 spend_all(struct scenario *s, u32 flow)
{
	u32 n = 0;

	for (; left(s, flow) > 0; n++) {
		insert(s, 0, flow, 4096, IO_READ, 0);
		complete(s, dispatch(s, 0, DISPATCH_IO));
	}
	return n;
}

/* The example of budget.h; the last request goes into debt. */
static void test_example(void **state)
{
	struct scenario *s = &scenario;
	s64 debt;

	(void)state;
	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 12 << 20, IOS);
	flow_set_weight(s->flow[0], 100);
	flow_set_weight(s->flow[1], 500);
	/* The first comes alone and has all; then the shares are 1/6 and 5/6. */
	insert(s, 1, 0, 4096, IO_READ, 0);
	insert(s, 1, 1, 4096, IO_READ, 0);
	complete(s, dispatch(s, 1, DISPATCH_IO));
	complete(s, dispatch(s, 1, DISPATCH_IO));
	tick(s);
	s->now += PERIOD;
	tick(s);
	assert_in_range(left(s, 0), (2 << 20) - 16, 2 << 20);
	assert_in_range(left(s, 1), (10 << 20) - 16, 10 << 20);
	assert_int_equal(spend_all(s, 0), 512);
	s->now += 1000;
	tick(s);
	assert_int_equal(budget(s)->refills, 1);
	assert_int_equal(spend_all(s, 1), 2560);
	debt = left(s, 0);
	assert_in_range(-debt, 0, 4095);
	/* The one who took the last of it has asked for a tick. */
	assert_true(tick_is_requested(s));
	tick(s);
	assert_int_equal(budget(s)->refills, 2);
	assert_int_equal(budget(s)->past.used, (512 + 2560) * 4096);
	assert_int_equal(left(s, 0), debt + (s64)part_of(s, 0, 12 << 20));
	scenario_deinit();
}

/* Who leaves the device idle goes before those who have been waiting. */
static void test_donors_first(void **state)
{
	struct scenario *s = &scenario;
	struct io *io[3];
	u32 i;

	(void)state;
	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, IOS);
	budget_flow_of(s->flow[2])->donor_until_ns = s->now + PERIOD;
	for (i = 0; i < 4; i++)
		insert(s, 0, i % 2, 4096, IO_READ, 0);
	io[0] = dispatch(s, 0, DISPATCH_IO);
	io[1] = insert(s, 0, 2, 4096, IO_READ, 0);
	insert(s, 0, 2, 4096, IO_READ, 0);
	assert_ptr_equal(dispatch(s, 0, DISPATCH_IO), io[1]);
	io[2] = dispatch(s, 0, DISPATCH_IO);
	/* And then it is the turn of the others. */
	assert_ptr_not_equal(io[2]->flow, s->flow[2]);
	complete(s, io[0]);
	complete(s, io[1]);
	complete(s, io[2]);
	for (i = 0; i < 3; i++)
		complete(s, dispatch(s, 0, DISPATCH_IO));
	scenario_deinit();
}

/* By the clock alone: nobody asks, and nothing is left of the last period. */
static void test_periodic(void **state)
{
	struct scenario *s = &scenario;

	(void)state;
	scenario_init(&one_domain, BUDGET_PERIODIC, 1 << 20, IOS);
	insert(s, 0, 0, 4096, IO_READ, 0);
	complete(s, dispatch(s, 0, DISPATCH_IO));
	tick(s);
	spend_all(s, 0);
	insert(s, 0, 0, 4096, IO_READ, 0);
	dispatch(s, 0, DISPATCH_NO_BUDGET);
	assert_false(tick_is_requested(s));
	s->now = budget(s)->start_ns + PERIOD - 1;
	tick(s);
	assert_int_equal(budget(s)->refills, 0);
	s->named = 0;
	s->now++;
	assert_true(tick_is_requested(s));
	tick(s);
	assert_int_equal(budget(s)->refills, 1);
	assert_int_equal(s->named, BIT_ULL(0));
	complete(s, dispatch(s, 0, DISPATCH_IO));
	s->now += PERIOD;
	tick(s);
	assert_int_equal(left(s, 0), (s64)part_of(s, 0, 1 << 20));
	scenario_deinit();
}

/* The one for whom all wait goes away: that is the end of the round. */
static void test_holder_leaves(void **state)
{
	struct scenario *s = &scenario;

	(void)state;
	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, IOS);
	insert(s, 1, 1, 4096, IO_READ, 0);
	complete(s, dispatch(s, 1, DISPATCH_IO));
	insert(s, 0, 0, 4096, IO_READ, 0);
	complete(s, dispatch(s, 0, DISPATCH_IO));
	tick(s);
	spend_all(s, 0);
	insert(s, 0, 0, 4096, IO_READ, 0);
	dispatch(s, 0, DISPATCH_NO_BUDGET);
	tick(s);
	assert_int_equal(budget(s)->refills, 0);
	s->named = 0;
	flow_destroy(s->flow[1]);
	s->flow[1] = NULL;
	reshare(s);
	assert_true(tick_is_requested(s));
	tick(s);
	assert_int_equal(budget(s)->refills, 1);
	assert_int_equal(s->named, BIT_ULL(0));
	complete(s, dispatch(s, 0, DISPATCH_IO));
	scenario_deinit();
}

/*
 * One is out and has requests; the other may spend and has @out in a device
 * that can do four requests in a window of PERIOD / 32.
 */
static void hold(u32 out, struct io **io)
{
	struct scenario *s = &scenario;
	u32 i;

	scenario_init(&one_domain, BUDGET_CONSERVING, 1 << 20, IOS);
	insert(s, 0, 0, 4096, IO_READ, 0);
	for (i = 0; i < out; i++)
		insert(s, 1, 1, 4096, IO_READ, 0);
	complete(s, dispatch(s, 0, DISPATCH_IO));
	for (i = 0; i < out; i++)
		io[i] = dispatch(s, 1, DISPATCH_IO);
	tick(s);
	budget(s)->throughput.mean = 4096;
	budget(s)->throughput.rate = (4ULL * 4096 << 20) / (PERIOD / 32);
	budget(s)->throughput.rate_until_ns = ~0ULL;
	spend_all(s, 0);
	insert(s, 0, 0, 4096, IO_READ, 0);
	dispatch(s, 0, DISPATCH_NO_BUDGET);
	tick(s);
}

/* A window later, by the ticks that were asked for. */
static bool refilled_in(struct scenario *s, u64 windows)
{
	u64 until_ns = s->now + windows * PERIOD / 32;
	u64 refills = budget(s)->refills;

	while (s->tick_ns && s->tick_ns <= until_ns) {
		s->now = max(s->now, s->tick_ns);
		tick(s);
	}
	s->now = until_ns;
	return budget(s)->refills != refills;
}

/*
 * Its one request stays in the device: four requests' work may be lost, and
 * that one, in windows in which it loses three.
 */
static void test_holder_loses(void **state)
{
	struct scenario *s = &scenario;
	struct io *io;

	(void)state;
	hold(1, &io);
	assert_false(refilled_in(s, 1));
	assert_true(refilled_in(s, 1));
	assert_int_equal(budget(s)->early, 1);
	/* It is spare: whoever is out waits for nobody. */
	spend_all(s, 0);
	assert_true(refilled_in(s, 1));
	complete(s, io);
	complete(s, dispatch(s, 0, DISPATCH_IO));
	scenario_deinit();
}

/*
 * Three requests in a window are enough; and what is in the device counts, or
 * six that take two windows would seem to be none.
 */
static void test_holder_keeps(void **state)
{
	enum {
		OUT = 6
	};
	struct scenario *s = &scenario;
	struct io *io[OUT];
	u32 i, turn;

	(void)state;
	hold(OUT, io);
	for (turn = 0; turn < 10; turn++) {
		assert_false(refilled_in(s, 2));
		for (i = 0; i < OUT; i++) {
			complete(s, io[i]);
			insert(s, 1, 1, 4096, IO_READ, 0);
			io[i] = dispatch(s, 1, DISPATCH_IO);
		}
	}
	for (i = 0; i < OUT; i++)
		complete(s, io[i]);
	s->now += 2 * PERIOD;
	tick(s);
	complete(s, dispatch(s, 0, DISPATCH_IO));
	scenario_deinit();
}

static void weigh_all_alike(struct scenario *s)
{
	u32 i;

	for (i = 0; i < FLOWS; i++)
		flow_set_weight(s->flow[i], 100);
}

/* Weights that change in the middle of a refill hold from there on. */
static void test_weights_during_refill(void **state)
{
	struct scenario *s = &scenario;
	u32 i;

	(void)state;
	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, IOS);
	for (i = 0; i < FLOWS; i++) {
		insert(s, 0, i, 4096, IO_READ, 0);
		complete(s, dispatch(s, 0, DISPATCH_IO));
	}
	tick(s);
	in_predict = weigh_all_alike;
	s->now += PERIOD;
	tick(s);
	assert_int_equal(s->predicted, 1);
	for (i = 0; i < FLOWS; i++)
		assert_int_equal(left(s, i), 1 << 18);
	check_conservation(s);
	scenario_deinit();
}

/* ------------------------------------------------------------ special requests */

static void test_urgent(void **state)
{
	struct scenario *s = &scenario;
	struct wake wake;
	struct io *io;
	s64 before;

	(void)state;
	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, 1);
	insert(s, 1, 1, 4096, IO_READ, 0);
	complete(s, dispatch(s, 1, DISPATCH_IO));
	insert(s, 0, 0, 4096, IO_READ, 0);
	complete(s, dispatch(s, 0, DISPATCH_IO));
	spend_all(s, 0);
	insert(s, 0, 0, 4096, IO_READ, 0);
	dispatch(s, 0, DISPATCH_NO_BUDGET);
	/* It passes who waits, without credit and without a slot, and pays. */
	insert(s, 1, 1, 4096, IO_READ, 0);
	io = dispatch(s, 1, DISPATCH_IO);
	assert_true(io->flags & IO_SLOT);
	before = left(s, 0);
	insert(s, 0, 0, 8192, IO_WRITE, IO_URGENT);
	io = dispatch(s, 0, DISPATCH_IO);
	assert_false(io->flags & IO_SLOT);
	assert_int_equal(left(s, 0), before - 8192);
	/* Sent back, it comes again, and does not pay again. */
	wake_init(&wake);
	budget_requeue(io, &wake);
	budget_requeue(io, &wake);
	budget_insert(&s->queue[0], io, s->now, &wake);
	assert_ptr_equal(dispatch(s, 0, DISPATCH_IO), io);
	assert_int_equal(left(s, 0), before - 8192);
	complete(s, io);
	check_conservation(s);
	twin_finish(s);
	for (io = s->io; io < s->io + IOS; io++)
		if (io->flags & IO_OUT)
			complete(s, io);
	scenario_deinit();
}

/* A polled request spends, but takes no slot. */
static void test_exempt(void **state)
{
	struct scenario *s = &scenario;
	struct io *io, *polled;
	s64 before;

	(void)state;
	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, 1);
	insert(s, 0, 0, 4096, IO_READ, 0);
	io = dispatch(s, 0, DISPATCH_IO);
	insert(s, 0, 0, 4096, IO_READ, 0);
	dispatch(s, 0, DISPATCH_NO_SLOT);
	before = left(s, 0);
	insert(s, 1, 0, 4096, IO_READ, IO_EXEMPT);
	polled = dispatch(s, 1, DISPATCH_IO);
	assert_false(polled->flags & IO_SLOT);
	assert_int_equal(left(s, 0), before - 4096);
	s->named = 0;
	complete(s, polled);
	assert_int_equal(s->named, 0);
	complete(s, io);
	assert_int_equal(s->named, BIT_ULL(0));
	complete(s, dispatch(s, 0, DISPATCH_IO));
	scenario_deinit();
}

/* A merge is paid for when the request goes. */
static void test_merge(void **state)
{
	struct scenario *s = &scenario;
	struct io *io;
	s64 before;

	(void)state;
	scenario_init(&one_domain, BUDGET_ALL_EXHAUSTED, 1 << 20, IOS);
	io = insert(s, 0, 0, 4096, IO_READ, 0);
	before = left(s, 0);
	budget_merge(&s->queue[0], io, 65536);
	assert_int_equal(left(s, 0), before);
	assert_ptr_equal(dispatch(s, 0, DISPATCH_IO), io);
	assert_int_equal(left(s, 0), before - 65536);
	assert_int_equal(atomic64_read(&s->flow[0]->pos), 65536);
	complete(s, io);
	scenario_deinit();
}

/*
 * Classes take turns, three of the first and two of the second; one without a
 * slot does not stop the other.
 */
static void test_domains(void **state)
{
	static const u32 order[] = { 0, 0, 0, 1, 1, 0, 0, 0, 1, 1 };
	struct scenario *s = &scenario;
	struct io *io[ARRAY_SIZE(order)];
	u32 i;

	(void)state;
	scenario_init(&two_domains, BUDGET_ALL_EXHAUSTED, 64 << 20, 6);
	for (i = 0; i < 8; i++) {
		insert(s, 0, 0, 4096, IO_READ, 0);
		insert(s, 0, 0, 4096, IO_WRITE, 0);
	}
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		io[i] = dispatch(s, 0, DISPATCH_IO);
		assert_int_equal(domain_of(io[i]), order[i]);
	}
	/* All six slots for reads are in use, and four of those for writes. */
	assert_int_equal(domain_of(dispatch(s, 0, DISPATCH_IO)), 1);
	assert_int_equal(domain_of(dispatch(s, 0, DISPATCH_IO)), 1);
	dispatch(s, 0, DISPATCH_NO_SLOT);
	s->named = 0;
	complete(s, io[0]);
	assert_int_equal(s->named, BIT_ULL(0));
	assert_int_equal(domain_of(dispatch(s, 0, DISPATCH_IO)), 0);
	twin_finish(s);
	for (i = 0; i < IOS; i++)
		if (s->io[i].flags & IO_OUT)
			complete(s, &s->io[i]);
	scenario_deinit();
}

static void test_no_memory(void **state)
{
	static struct budget b;
	const u32 depth[] = { 4, 4 };
	u32 allowed;

	(void)state;
	scenario_init(&two_domains, BUDGET_ALL_EXHAUSTED, 1 << 20, 4);
	/* Two allocations for the slots of each domain. */
	for (allowed = 0; allowed < 4; allowed++) {
		port_zalloc_fail_after(allowed);
		assert_int_equal(budget_init(&b, &scenario.sched, &two_domains,
					     1, depth),
				 -ENOMEM);
		port_zalloc_fail_never();
	}
	scenario_deinit();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_twin),
		cmocka_unit_test(test_example),
		cmocka_unit_test(test_donors_first),
		cmocka_unit_test(test_periodic),
		cmocka_unit_test(test_holder_loses),
		cmocka_unit_test(test_holder_keeps),
		cmocka_unit_test(test_holder_leaves),
		cmocka_unit_test(test_weights_during_refill),
		cmocka_unit_test(test_urgent),
		cmocka_unit_test(test_exempt),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_domains),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
