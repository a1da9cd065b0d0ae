// SPDX-License-Identifier: GPL-2.0
/* Demands, totals, caps and locks of wdt, hook by hook. */
#include "hooks.h"
#include "sched/wdt/wdt.h"
#include "sched/core/policies.h"

enum {
	BYTES	= 4096,
	KIB	= 1024,
	MIB	= 1024 * KIB,
	HELD	= 2 * BYTES,		/* of hold() */
	FIRST	= 4 * MIB,		/* the first total */
	MB	= 1000 * 1000,
};

#define INTERVAL	(100 * MS)

static struct hooks h;
static struct flow *flow[2];

/* Intervals end by the clock alone, and the last demand is the expected one. */
static struct sched_params wdt_test_params(void)
{
	struct sched_params p;

	sched_params_init(&wdt_ops, &p);
	p.depth = 64;
	budget_params(&p)->work_conserving = 0;
	wdt_params(&p)->history = 1;
	return p;
}

/* Flow i has a weight of its own, and sends to queue i. */
static void open_flows(const struct sched_params *p, u32 weight0, u32 weight1)
{
	hooks_open(&h, &wdt_ops, p, 2);
	flow[0] = hooks_flow(&h, weight0);
	flow[1] = hooks_flow(&h, weight1);
}

static void close_wdt(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

static struct wdt *wdt(void)
{
	return h.sched.own;
}

static u64 total(void)
{
	return wdt()->budget.total;
}

static s64 left(const struct flow *f)
{
	return credit_left(&budget_flow_of(f)->credit);
}

/* Requests of flow @i for @bytes are done. */
static void serve(u32 i, u64 bytes)
{
	hooks_insert(&h, i, flow[i], (u32)bytes, 0);
	hooks_complete(&h, hooks_dispatch(&h, i, DISPATCH_IO));
}

/* A request of flow @i for @bytes waits. */
static struct io *await(u32 i, u32 bytes)
{
	return hooks_insert(&h, i, flow[i], bytes, 0);
}

/* A small request of each flow stays in the device: they are active. */
static void hold(void)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		hooks_insert(&h, i, flow[i], BYTES, 0);
		hooks_dispatch(&h, i, DISPATCH_IO);
	}
}

static void run_to(u64 ns)
{
	hooks_run(&h, ns + 1);
}

static void expect_near(u64 got, u64 want)
{
	assert_in_range(got, want - want / 1000, want + want / 1000);
}

/* -------------------------------------------------------------------- totals */

/* The service of an interval, and the sum of the demands. */
TEST(total_is_the_sum_of_the_demands)
{
	struct sched_params p = wdt_test_params();

	open_flows(&p, 100, 300);
	hold();
	assert_int_equal(total(), FIRST);
	serve(0, 512 * KIB);
	serve(1, 2 * MIB);
	run_to(INTERVAL - 1);
	assert_int_equal(total(), FIRST);
	run_to(INTERVAL);
	expect_near(total(), 2560 * KIB + HELD);
	expect_near(wdt()->service, 2560 * KIB + HELD);
	/* Less is asked for.  The drive could do more, as it has shown. */
	serve(0, 256 * KIB);
	serve(1, 256 * KIB);
	run_to(2 * INTERVAL);
	expect_near(total(), 512 * KIB);
	expect_near(wdt()->service, 2560 * KIB + HELD);
	close_wdt();
}

/* A quarter of the total is to be the 256 KiB of the first flow. */
TEST(total_meets_each_demand)
{
	struct sched_params p = wdt_test_params();

	wdt_params(&p)->total = WDT_MEET;
	open_flows(&p, 100, 300);
	hold();
	serve(0, 512 * KIB);
	serve(1, 2 * MIB);
	run_to(INTERVAL);
	serve(0, 256 * KIB);
	serve(1, 256 * KIB);
	run_to(2 * INTERVAL);
	expect_near(total(), 4 * 256 * KIB);
	close_wdt();
}

/* Requests wait: the drive did all it could, and that bounds the total. */
TEST(saturated_drive_bounds_the_total)
{
	struct sched_params p = wdt_test_params();
	struct io *io;

	open_flows(&p, 100, 300);
	hold();
	serve(0, 512 * KIB);
	serve(1, 2 * MIB);
	run_to(INTERVAL);
	serve(0, 256 * KIB);
	serve(1, 512 * KIB);
	io = await(0, 384 * KIB);
	run_to(2 * INTERVAL);
	/* The demand of the first is 640 KiB, and 768 KiB were served. */
	expect_near(wdt()->service, 768 * KIB);
	expect_near(demand_percentile(
			    &((struct wdt_flow *)flow_own(flow[0]))->demand, 1),
		    640 * KIB);
	expect_near(total(), 768 * KIB);
	/* No demand is larger than the service. */
	hooks_merge(&h, io, 8 * MIB);
	run_to(3 * INTERVAL);
	assert_int_equal(wdt()->service, 0);
	assert_int_equal(total(), 1);
	close_wdt();
}

/* Rounds that end early are added up to a quarter of an interval. */
TEST(short_rounds_make_one_sample)
{
	struct sched_params p = wdt_test_params();

	budget_params(&p)->work_conserving = 1;
	open_flows(&p, 100, 300);
	serve(0, FIRST);
	run_to(0);
	assert_int_equal(wdt()->budget.refills, 1);
	/* Nothing is known of the drive: the total doubles. */
	assert_int_equal(total(), 2 * FIRST);
	run_to(10 * MS);
	serve(0, 2 * FIRST);
	run_to(10 * MS);
	assert_int_equal(total(), 4 * FIRST);
	run_to(25 * MS);
	serve(0, 4 * FIRST);
	run_to(25 * MS);
	/* 7 * 4 MiB in a quarter of an interval. */
	assert_int_equal(wdt()->budget.refills, 3);
	expect_near(wdt()->service, 4 * 7 * FIRST);
	expect_near(total(), 4 * 7 * FIRST);
	assert_int_equal(wdt()->used, 0);
	assert_int_equal(wdt()->ran_ns, 0);
	/* The next round is too short for a sample, and the total stays. */
	run_to(30 * MS);
	/* A single request never costs that much. */
	serve(0, 4 * 7 * FIRST / 2);
	serve(0, (u64)left(flow[0]));
	run_to(30 * MS);
	assert_int_equal(wdt()->budget.refills, 4);
	expect_near(total(), 4 * 7 * FIRST);
	expect_near(wdt()->used, 4 * 7 * FIRST);
	assert_int_equal(wdt()->ran_ns, 5 * MS);
	close_wdt();
}

/* ---------------------------------------------------------------------- caps */

/*
 * 100 MB/s are 10 MB in an interval.  Siblings count with and without requests,
 * level by level.
 */
TEST(caps_are_parts_by_weight)
{
	struct sched_params p = wdt_test_params();
	struct flow *child[2];

	budget_params(&p)->work_conserving = 1;
	wdt_params(&p)->caps_mbps = 100;
	open_flows(&p, 100, 300);
	child[0] = hooks_flow_below(&h, flow[1], 100);
	child[1] = hooks_flow_below(&h, flow[1], 400);
	assert_int_equal(wdt()->budget.rule, BUDGET_PERIODIC);
	hooks_insert(&h, 0, flow[0], BYTES, 0);
	assert_int_equal(left(flow[0]), 10 * MB / 4);
	hooks_insert(&h, 0, flow[1], BYTES, 0);
	assert_int_equal(left(flow[1]), 10 * MB / 4 * 3);
	hooks_insert(&h, 0, child[0], BYTES, 0);
	assert_int_equal(left(child[0]), 10 * MB / 4 * 3 / 5);
	/* The root has no cap. */
	hooks_insert(&h, 0, h.root, BYTES, 0);
	assert_int_equal(left(h.root), 1LL << BUDGET_MOST_SHIFT);
	/* They follow the weights from the next interval on. */
	flow_set_weight(flow[0], 700);
	flow_set_weight(child[1], 100);
	hooks_tune(&h, NULL);
	run_to(INTERVAL);
	assert_int_equal(left(flow[0]), 7 * MB);
	assert_int_equal(left(child[0]), 10 * MB * 3 / 10 / 2);
	hooks_flow_gone(&h, child[1]);
	run_to(2 * INTERVAL);
	assert_int_equal(left(child[0]), 3 * MB);
	close_wdt();
}

TEST(tune_switches_caps_and_rule)
{
	struct sched_params p = wdt_test_params();

	open_flows(&p, 100, 300);
	assert_int_equal(wdt()->budget.rule, BUDGET_PERIODIC);
	budget_params(&p)->work_conserving = 1;
	hooks_tune(&h, &p);
	assert_int_equal(wdt()->budget.rule, BUDGET_CONSERVING);
	hooks_tune(&h, NULL);
	assert_int_equal(wdt()->budget.rule, BUDGET_CONSERVING);
	wdt_params(&p)->caps_mbps = 8;
	p.depth = 3;
	hooks_tune(&h, &p);
	assert_int_equal(wdt()->budget.rule, BUDGET_PERIODIC);
	assert_int_equal(h.sched.params.depth, 3);
	await(0, BYTES);
	assert_int_equal(left(flow[0]), 8 * MB / 10 / 4);
	close_wdt();
}

/* --------------------------------------------------------------------- locks */

static bool has_own_lock(struct flow *f)
{
	struct wdt_flow *wf = flow_own(f);
	struct port_lock *lock = wf->budget.credit.lock;

	assert_true(lock == &wf->lock || lock == &wdt()->single);
	return lock == &wf->lock;
}

/* A flow comes, one goes, and each of the rest has the lock that is chosen. */
TEST(single_lock_is_that_of_all_flows)
{
	struct sched_params p = wdt_test_params();
	struct flow *f[3];
	u32 gone, i;

	for (gone = 0; gone < 3; gone++) {
		wdt_params(&p)->single_lock = 0;
		open_flows(&p, 100, 100);
		for (i = 0; i < 3; i++) {
			f[i] = hooks_flow(&h, 100);
			assert_true(has_own_lock(f[i]));
		}
		hooks_flow_gone(&h, f[gone]);
		wdt_params(&p)->single_lock = 1;
		hooks_tune(&h, &p);
		assert_false(has_own_lock(h.root));
		assert_false(has_own_lock(flow[0]));
		for (i = 0; i < 3; i++)
			if (i != gone)
				assert_false(has_own_lock(f[i]));
		assert_false(has_own_lock(hooks_flow(&h, 100)));
		/* They can be used. */
		serve(0, BYTES);
		close_wdt();
	}
}

/* Flows go in the order in which they came, or the other way round. */
TEST(flows_leave_the_list)
{
	struct sched_params p = wdt_test_params();
	struct flow *f[4];
	u32 i, k, nr;

	for (k = 0; k < 2; k++) {
		open_flows(&p, 100, 100);
		for (i = 0; i < 4; i++)
			f[i] = hooks_flow(&h, 100);
		for (i = 0; i < 4; i++) {
			const struct wdt_flow *wf;

			hooks_flow_gone(&h, f[k ? i : 3 - i]);
			nr = 0;
			for (wf = wdt()->flows; wf; wf = wf->next)
				nr++;
			/* The root and the two flows of each test. */
			assert_int_equal(nr, 3 + 3 - i);
		}
		close_wdt();
	}
}

TEST(init_fails_without_memory)
{
	/* Topology, queues, scheduler, estimator, watchdog, parts and tree. */
	assert_true(hooks_init_without_memory(&wdt_ops) >= 8);
}
