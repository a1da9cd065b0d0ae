// SPDX-License-Identifier: GPL-2.0
/* Turns, quanta, forfeited deficits and debts of drr, hook by hook. */
#include "hooks.h"
#include "sched/cost/cost_estimator.h"
#include "sched/core/policies.h"

enum {
	ROUND		= 1 << 16,
	QUANTUM		= ROUND / 2 + 1,	/* of each of two equal flows */
	FIRST		= ROUND + 1,		/* of a flow alone */
};

static struct hooks h;
static struct flow *flow[2];

static void open_drr(u32 weight0, u32 weight1)
{
	struct sched_params p;

	sched_params_init(&drr_ops, &p);
	p.depth = HOOKS_IOS;
	p.isolation = 0;
	hooks_open(&h, &drr_ops, &p, 1);
	flow[0] = hooks_flow(&h, weight0);
	flow[1] = hooks_flow(&h, weight1);
}

static void close_drr(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

static void insert(u32 i, u32 bytes, u32 n)
{
	while (n--)
		hooks_insert(&h, 0, flow[i], bytes, 0);
}

static void expect_order(const char *digits)
{
	hooks_expect_order(&h, 0, digits);
}

/* With a deficit of 0 the turn is over. */
TEST(flows_with_requests_of_a_quantum_alternate)
{
	open_drr(100, 100);
	insert(0, FIRST, 1);
	insert(0, QUANTUM, 3);
	insert(1, QUANTUM, 3);
	expect_order("0101010");
	close_drr();
}

/*
 * Quanta of 48 and 16 KiB, requests of 33.  Flow 0 sends two and one by turns,
 * and flow 1 one and none.
 */
TEST(debt_shortens_the_next_turn)
{
	open_drr(300, 100);
	/* Both are active after this, and neither has a deficit. */
	insert(0, FIRST, 1);
	insert(1, ROUND / 4 + 1, 1);
	expect_order("01");
	insert(0, 33 << 10, 9);
	insert(1, 33 << 10, 5);
	expect_order("0010001000");
	close_drr();
}

TEST(empty_lane_forfeits_its_deficit)
{
	open_drr(100, 100);
	insert(0, 4096, 1);
	expect_order("0");
	insert(1, QUANTUM, 3);
	insert(0, QUANTUM, 3);
	expect_order("101010");
	close_drr();
}

TEST(empty_lane_keeps_its_debt)
{
	open_drr(100, 100);
	/* Its debt is nearly two quanta of the next turns. */
	insert(0, 2 * ROUND, 1);
	expect_order("0");
	insert(1, QUANTUM, 4);
	insert(0, QUANTUM, 2);
	expect_order("11010");
	close_drr();
}

/* One request of 100 us after another, for samples of 10 ms. */
TEST(costs_are_learned_from_completions)
{
	struct sched_params p;
	u32 i;

	open_drr(100, 100);
	p = h.sched.params;
	p.cost.kind = COST_LEARNED;
	hooks_tune(&h, &p);
	for (i = 0; i < 1000; i++) {
		struct io *io;

		hooks_read(&h, 0, flow[0]);
		io = hooks_next(&h, 0);
		hooks_run(&h, h.now + 100 * 1000);
		hooks_complete(&h, io);
	}
	assert_true(h.sched.cost_estimator->cost_rls.samples > 0);
	close_drr();
}
