// SPDX-License-Identifier: GPL-2.0
/* Factors, counts and totals of hwabc, hook by hook. */
#include "hooks.h"
#include "sched/cost/cost_estimator.h"
#include "sched/hwabc/hwabc.h"
#include "sched/core/policies.h"

enum {
	BYTES		= 4096,
	PAGES		= 1 << 10,	/* of the device */
	LEAST_TOTAL	= 1 << 18,
	ONE		= 1 << HWABC_FACTOR_SHIFT,
};

#define JUDGE	(100 * MS)
#define PERIOD	(100 * MS)

static struct hooks h;
static struct flow *flow;

/* What the map of the host tells, if it does. */
static bool map_tells;
static struct flow_pages told;

static bool map_flow_pages(const struct sched *s, struct flow *f,
			   struct flow_pages *pages)
{
	(void)s;
	(void)f;
	*pages = told;
	return map_tells;
}

static struct flash_time told_time;

static bool map_flash_time(const struct sched *s, struct flash_time *time)
{
	(void)s;
	*time = told_time;
	return map_tells;
}

static const struct host_map map = {
	.flow_pages = map_flow_pages,
	.flash_time = map_flash_time,
};

static void open_hwabc(u32 alpha_pct, u32 gc_share)
{
	struct sched_params p;

	sched_params_init(&hwabc_ops, &p);
	p.isolation = 0;
	p.depth = 64;
	p.cost.kind = COST_BYTES;
	budget_params(&p)->work_conserving = 0;
	hwabc_params(&p)->alpha_pct = alpha_pct;
	hwabc_params(&p)->gc_share = gc_share;
	/* Forty periods. */
	hwabc_params(&p)->budget_ms = 4000;
	hooks_open_on(&h, &hwabc_ops, &p, 1, PAGES, &map);
	flow = hooks_flow(&h, 100);
}

static void close_hwabc(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

static const struct hwabc *hwabc(void)
{
	return h.sched.own;
}

static const struct hwabc_flow *hwabc_flow(void)
{
	return flow_own(flow);
}

static u64 work(void)
{
	const struct hwabc_queue *hq = h.queue[0].own;

	return hq->work;
}

/* Inserts a request, and the first one is done.  Returns the inserted cost. */
static u32 send(enum io_op op, u32 bytes)
{
	struct io *io = hooks_insert_op(&h, 0, flow, op, bytes, 0);
	u32 cost = io->cost;

	hooks_complete(&h, hooks_dispatch(&h, 0, DISPATCH_IO));
	return cost;
}

static void send_many(enum io_op op, u32 bytes, u32 n)
{
	while (n--)
		send(op, bytes);
}

/* ------------------------------------------------------------------- factors */

/* A judgement sees all requests since the last one, and 7/8 of the sums. */
TEST(part_of_writes_is_of_recent_requests)
{
	open_hwabc(0, GC_SHARE_FLOW);
	send_many(IO_READ, COST_UNIT, 3);
	send_many(IO_WRITE, COST_UNIT, 1);
	hooks_run(&h, 1);
	assert_int_equal(hwabc_flow()->writes_part, ONE / 4);
	send_many(IO_READ, COST_UNIT, 4);
	hooks_run(&h, JUDGE);
	assert_int_equal(hwabc_flow()->writes_part, ONE / 4);
	hooks_run(&h, JUDGE + 1);
	/* 7/8 * 1 of 7/8 * 4 + 4 */
	assert_int_equal(hwabc_flow()->writes_part, ONE * 35 / 300);
	close_hwabc();
}

TEST(flow_without_requests_has_no_part)
{
	open_hwabc(0, GC_SHARE_FLOW);
	hooks_insert(&h, 0, flow, BYTES, 0);
	hooks_run(&h, 1);
	assert_int_equal(hwabc_flow()->writes_part, 0);
	assert_int_equal(hwabc_flow()->factor, ONE);
	close_hwabc();
}

/* A factor is a penalty of writes.  The work of the device has no factor. */
TEST(factor_is_for_writes_alone)
{
	map_tells = true;
	told = (struct flow_pages){ .valid = 300, .invalid = 100 };
	open_hwabc(100, GC_SHARE_FLOW);
	assert_int_equal(send(IO_WRITE, BYTES), BYTES);
	hooks_run(&h, 1);
	assert_false(hwabc()->hidden);
	assert_int_equal(hwabc_flow()->ratio, 3 * ONE);
	assert_int_equal(hwabc_flow()->factor, 4 * ONE);
	assert_int_equal(send(IO_WRITE, BYTES), 4 * BYTES);
	assert_int_equal(send(IO_READ, BYTES), BYTES);
	assert_int_equal(work(), 3 * BYTES);
	/* The greatest cost of any request bounds it. */
	assert_int_equal(send(IO_WRITE, COST_MOST), COST_MOST);
	close_hwabc();
}

/* Pages copied for the flow over pages that it wrote, in recent time. */
TEST(victim_blocks_count_copies)
{
	map_tells = true;
	told = (struct flow_pages){ .valid = 7, .invalid = 1, .copied = 60 };
	open_hwabc(100, GC_SHARE_VICTIM);
	send_many(IO_WRITE, 2 * BYTES, 10);
	send_many(IO_READ, 2 * BYTES, 10);
	hooks_run(&h, 1);
	assert_int_equal(hwabc_flow()->ratio, 3 * ONE);
	/* The map counts from 0 again, so this adds no copies. */
	told.copied = 5;
	hooks_run(&h, JUDGE + 1);
	assert_int_equal(hwabc_flow()->ratio, 3 * ONE);
	/* 7/8 * 7/8 of 20 pages are 15.3: 5 copies more for them. */
	told.copied = 10;
	send(IO_READ, BYTES);
	hooks_run(&h, 2 * JUDGE + 1);
	assert_in_range(hwabc_flow()->ratio, 3 * ONE + ONE * 5 / 15.4,
			3 * ONE + ONE * 5 / 15.3);
	close_hwabc();
}

/* ------------------------------------------------------ a map that is hidden */

static u64 shadow_valid(void)
{
	return gc_shadow_valid(&hwabc()->gc_shadow, &hwabc_flow()->gc_shadow);
}

/* A request for the whole device, without credit. */
static void send_whole(enum io_op op)
{
	hooks_insert_op(&h, 0, flow, op, PAGES * GC_SHADOW_PAGE, IO_URGENT);
	hooks_complete(&h, hooks_dispatch(&h, 0, DISPATCH_IO));
}

/* The shadow FTL learns of a write when 10 ms are over, and of no read. */
TEST(shadow_counts_writes_of_a_hidden_map)
{
	map_tells = false;
	open_hwabc(100, GC_SHARE_FLOW);
	hooks_insert(&h, 0, flow, BYTES, 0);
	hooks_run(&h, 1);
	assert_true(hwabc()->hidden);
	send_whole(IO_READ);
	hooks_run(&h, 10 * MS + 1);
	assert_int_equal(shadow_valid(), 0);
	send_whole(IO_WRITE);
	hooks_run(&h, 20 * MS);
	assert_int_equal(shadow_valid(), 0);
	hooks_run(&h, 20 * MS + 1);
	assert_int_equal(shadow_valid(), PAGES);
	hooks_run(&h, JUDGE + 1);
	assert_int_equal(hwabc_flow()->ratio,
			 hwabc_ratio(PAGES, gc_shadow_invalid(
						    &hwabc()->gc_shadow,
						    &hwabc_flow()->gc_shadow)));
	close_hwabc();
}

/* The map may not be at hand for a while. */
TEST(map_may_come_and_go)
{
	u32 i;

	map_tells = false;
	open_hwabc(100, GC_SHARE_FLOW);
	assert_true(hwabc()->hidden);
	hooks_insert(&h, 0, flow, BYTES, 0);
	for (i = 0; i < 4; i++) {
		map_tells = i % 2;
		hooks_run(&h, i * JUDGE + 1);
		assert_int_equal(hwabc()->hidden, !map_tells);
	}
	close_hwabc();
}

TEST(known_map_needs_no_shadow)
{
	map_tells = true;
	open_hwabc(100, GC_SHARE_FLOW);
	hooks_insert(&h, 0, flow, BYTES, 0);
	hooks_run(&h, 1);
	send_whole(IO_WRITE);
	hooks_run(&h, 20 * MS + 1);
	assert_int_equal(shadow_valid(), 0);
	assert_int_equal(hwabc()->gc_shadow.ring[0].next.counter, 0);
	close_hwabc();
}

/* A flow that is removed is no more known to the shadow FTL. */
TEST(removed_flow_leaves_the_shadow)
{
	u32 unknown;

	map_tells = false;
	open_hwabc(100, GC_SHARE_FLOW);
	unknown = hwabc()->gc_shadow.unknown;
	assert_int_not_equal(unknown, 0);
	send_whole(IO_WRITE);
	hooks_run(&h, 1);
	assert_int_equal(hwabc()->gc_shadow.unknown, 0);
	hooks_flow_gone(&h, flow);
	assert_int_equal(hwabc()->gc_shadow.unknown, unknown);
	flow = hooks_flow(&h, 100);
	assert_int_equal(shadow_valid(), 0);
	close_hwabc();
}

/* -------------------------------------------------------------------- totals */

static u64 total(void)
{
	return hwabc()->budget.total;
}

/* Reads of @bytes in all, then the end of period @i. */
static void period(u32 i, u32 bytes)
{
	send_many(IO_READ, BYTES, bytes / BYTES);
	hooks_run(&h, i * PERIOD + 1);
	assert_int_equal(hwabc()->budget.refills, i);
}

static void expect_total(u64 want)
{
	assert_in_range(total(), want - want / 1000, want + want / 1000);
}

/* Forty periods of the best one.  It fades by 1/8 in each slower period. */
TEST(total_is_the_work_of_the_best_time)
{
	open_hwabc(0, GC_SHARE_FLOW);
	hooks_insert(&h, 0, flow, BYTES, 0);
	hooks_run(&h, 1);
	assert_int_equal(total(), LEAST_TOTAL);
	period(1, 200 << 10);
	expect_total(40 * (200 << 10));
	period(2, 100 << 10);
	expect_total(35 * (200 << 10));
	period(3, 400 << 10);
	expect_total(40 * (400 << 10));
	close_hwabc();
}

/* A round that ends soon is too short a time for a rate. */
TEST(short_rounds_are_measured_together)
{
	u32 i;

	open_hwabc(0, GC_SHARE_FLOW);
	for (i = 0; i < 3; i++) {
		send_many(IO_READ, BYTES, (u32)(total() / BYTES));
		hooks_run(&h, (20 + 20 * i) * MS + 1);
		assert_int_equal(hwabc()->budget.refills, i + 1);
		/* Each was spent at once. */
		assert_int_equal(total(), (u64)LEAST_TOTAL << (i + 1));
	}
	/* The last of these rounds began at 40 ms. */
	hooks_insert(&h, 0, flow, BYTES, 0);
	hooks_run(&h, 140 * MS + 1);
	assert_int_equal(hwabc()->budget.refills, 4);
	expect_total(7ULL * LEAST_TOTAL * 4000 / 140);
	close_hwabc();
}

/* Two turnovers of the device: see round_least_total(). */
TEST(total_is_worth_two_turnovers)
{
	u32 i;

	open_hwabc(0, GC_SHARE_FLOW);
	for (i = 0; i < 20; i++) {
		hooks_insert(&h, 0, flow, BYTES, 0);
		hooks_dispatch(&h, 0, DISPATCH_IO);
	}
	hwabc_params(&h.sched.params)->budget_ms = 1;
	hooks_run(&h, PERIOD + 1);
	assert_int_equal(total(), LEAST_TOTAL);
	for (i = 0; i < 40; i++) {
		hooks_insert(&h, 0, flow, 16 * BYTES, IO_URGENT);
		hooks_dispatch(&h, 0, DISPATCH_IO);
	}
	hooks_run(&h, 2 * PERIOD + 1);
	assert_int_equal(total(), 2 * 60 * 16 * BYTES);
	close_hwabc();
}

/* -------------------------------------------------------------------- costs */

/* Returns the cost of a read that keeps the planes busy for 100 us. */
static u32 read_of_100_us(u32 bytes)
{
	struct io *io = hooks_insert(&h, 0, flow, bytes, 0);
	u32 cost = io->cost;

	hooks_dispatch(&h, 0, DISPATCH_IO);
	h.now += MS / 10;
	told_time.read_ns += MS / 10;
	hooks_complete(&h, io);
	return cost;
}

/* Reads of 4 KiB and reads of 64 KiB take turns for a second, 20 ms each. */
static u32 cost_of_a_large_read(void)
{
	u32 i, cost = 0;

	for (i = 0; i < 10000; i++) {
		cost = read_of_100_us(i / 200 % 2 ? 16 * BYTES : BYTES);
		hooks_tick(&h);
	}
	return cost;
}

TEST(costs_are_bytes_unless_the_map_tells_the_time)
{
	struct sched_params p;

	open_hwabc(0, GC_SHARE_FLOW);
	p = h.sched.params;
	p.cost.kind = COST_LEARNED;
	hooks_tune(&h, &p);
	map_tells = false;
	assert_int_equal(cost_of_a_large_read(), 16 * BYTES);
	assert_int_equal(read_of_100_us(512), BYTES);
	assert_int_equal(h.sched.cost_estimator->cost_rls.samples, 0);
	map_tells = true;
	assert_in_range(cost_of_a_large_read(), BYTES - BYTES / 20,
			BYTES + BYTES / 20);
	map_tells = false;
	assert_int_equal(cost_of_a_large_read(), 16 * BYTES);
	assert_int_equal(h.sched.cost_estimator->cost_rls.samples, 0);
	close_hwabc();
}

/* ---------------------------------------------------------------------- life */

TEST(no_tick_without_flows)
{
	open_hwabc(0, GC_SHARE_FLOW);
	send(IO_READ, BYTES);
	hooks_run(&h, 10 * PERIOD);
	assert_null(h.sched.active);
	assert_int_equal(h.tick_ns, 0);
	close_hwabc();
}

TEST(work_conserving_chooses_the_rule)
{
	struct sched_params p;

	open_hwabc(0, GC_SHARE_FLOW);
	assert_int_equal(hwabc()->budget.rule, BUDGET_ALL_EXHAUSTED);
	p = h.sched.params;
	budget_params(&p)->work_conserving = 1;
	hooks_tune(&h, &p);
	assert_int_equal(hwabc()->budget.rule, BUDGET_CONSERVING);
	hooks_tune(&h, NULL);
	assert_int_equal(hwabc()->budget.rule, BUDGET_CONSERVING);
	close_hwabc();
	hooks_open(&h, &hwabc_ops, &p, 1);
	assert_int_equal(hwabc()->budget.rule, BUDGET_CONSERVING);
	hooks_close(&h);
}

TEST(init_fails_without_memory)
{
	/* Four pieces of the shadow FTL, the estimator, slots, queues. */
	assert_true(hooks_init_without_memory(&hwabc_ops) >= 9);
}
