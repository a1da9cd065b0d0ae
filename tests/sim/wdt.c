// SPDX-License-Identifier: GPL-2.0
/*
 * wdt on the simulator.  Unless said otherwise: a drive of 16 slots and 100 us
 * a request, hence 160,000 requests a second; four queues.
 */

#include "fifo.h"
#include "scenario.h"
#include "sched/core/policies.h"
#include "sched/wdt/wdt.h"

static struct host_params wdt_host_params(const struct test_case *t)
{
	struct host_params p = scenario_params(t, &wdt_ops);

	/* D is found. */
	p.sched.depth = 16;
	p.sched.depth_most = 1024;
	return p;
}

/* Four tenants, each 128 deep. */
static const struct fair_case four = {
	.depth = 128,
	.bytes = 4 * KIB,
	.warm_ns = 2 * SEC,
	.ns = 2 * SEC,
	.index = 0.97,
	.permille = 900,
};

static void test_weights(struct test_case *t)
{
	struct host_params p = wdt_host_params(t);
	struct fair_case c = four;

	c.warm_ns = SEC;
	p.device.write_times = 3;
	scenario_kinds(t, &p, &c, 1 * MIB, false);
}

/* Both totals, with the paper's clock alone and with our additions. */
static void test_total(struct test_case *t)
{
	static const char *const names[] = {
		"sum by the clock",
		"meet by the clock",
		"sum",
		"meet",
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		struct host_params p = wdt_host_params(t);
		struct outcome o;

		wdt_params(&p.sched)->total = i % 2 ? WDT_MEET : WDT_SUM;
		budget_params(&p.sched)->work_conserving = i / 2;
		scenario_fair(t, &p, &four, names[i], &o);
	}
}

/*
 * A light but active cgroup beside three heavy ones: no round waits for it, and
 * it is served.
 */
static void test_light(struct test_case *t)
{
	static const struct tenant tenant[] = {
		{ .weight = 100, .depth = 1, .bytes = 4 * KIB },
		{ .weight = 100, .depth = 128, .bytes = 4 * KIB },
		{ .weight = 250, .depth = 128, .bytes = 4 * KIB },
		{ .weight = 500, .depth = 128, .bytes = 4 * KIB },
	};
	struct host_params p = wdt_host_params(t);
	u64 none = scenario_none(&p, tenant, 4, SEC, 2 * SEC);
	struct outcome by_clock, o;
	u32 total;

	for (total = WDT_SUM; total <= WDT_MEET; total++) {
		wdt_params(&p.sched)->total = total;
		budget_params(&p.sched)->work_conserving = 1;
		scenario_play(t, &p, tenant, 4, SEC, 2 * SEC, &o);
		scenario_expect_total(t, o.total, none, 950,
				      "beside a light cgroup");
		if (o.p99_ns[0] > 2 * MS)
			case_fail(t, "the light cgroup's p99 is %llu us",
				  o.p99_ns[0] / US);
		budget_params(&p.sched)->work_conserving = 0;
		scenario_play(t, &p, tenant, 4, SEC, 2 * SEC, &by_clock);
		scenario_note_outcome(t, &o, none, total ? "meet" : "sum");
		scenario_note_outcome(t, &by_clock, none, "by the clock");
	}
}

/* The same on slow drives. */
static void test_light_slow(struct test_case *t)
{
	struct host_params p = wdt_host_params(t);

	p.sched.depth = 64;
	scenario_light(t, &p, 950);
}

/*
 * One of two cgroups is busy for two seconds and silent for two.  Within two
 * intervals of each change the shares are right, and the drive is never idle.
 */
enum {
	STEP_MS		= 100,
	HALF_STEPS	= 20,		/* of its cycle */
	SETTLE_STEPS	= 2,
};

static void expect_step(struct test_case *t, const struct outcome *o, u32 step,
			u64 none)
{
	bool busy = step % (2 * HALF_STEPS) < HALF_STEPS;
	u32 since = step % HALF_STEPS;
	u64 part = o->bytes[1] * 1000 / max(o->total, 1ULL);

	if (o->total * 1000 < none * 900)
		case_fail(t, "step %u: %llu bytes, the drive could do %llu",
			  step, o->total, none);
	if (since >= SETTLE_STEPS && (busy ? part < 735 || part > 765 : part))
		case_fail(t, "step %u: the moving cgroup has %llu permille",
			  step, part);
}

static u64 moves(struct test_case *t, const struct host_params *p, bool judge,
		 const char *what)
{
	static const struct tenant tenant[] = {
		{ .weight = 100, .depth = 128, .bytes = 4 * KIB },
		{ .weight = 300,
		  .depth = 128,
		  .bytes = 4 * KIB,
		  .on_ns = HALF_STEPS * STEP_MS * MS,
		  .off_ns = HALF_STEPS * STEP_MS * MS },
	};
	const u64 none =
		STEP_MS * MS / p->device.base_ns * p->device.slots * 4 * KIB;
	u64 total = 0, least = none;
	struct outcome o;
	struct scenario s;
	u32 step;

	scenario_open(&s, t, p, tenant, ARRAY_SIZE(tenant));
	for (step = 0; step < 6 * HALF_STEPS; step++) {
		scenario_begin(&s);
		fixture_run(&s.r, STEP_MS * MS);
		scenario_end(&s, &o);
		total += o.total;
		/* The first two intervals of all have nothing to go by. */
		if (step < SETTLE_STEPS)
			continue;
		least = min(least, o.total);
		if (judge)
			expect_step(t, &o, step, none);
	}
	scenario_close(&s);
	note(t, "%s%s %llu permille, in an interval at least %llu",
	     *t->note ? "; " : "", what, total * 1000 / none / step,
	     least * 1000 / none);
	return total;
}

static void test_moves(struct test_case *t)
{
	struct host_params p = wdt_host_params(t);
	u64 dynamic, capped;

	dynamic = moves(t, &p, true, "sum");
	wdt_params(&p.sched)->total = WDT_MEET;
	moves(t, &p, true, "meet");
	/* Beside it, what the paper tried first. */
	wdt_params(&p.sched)->caps_mbps = 655;
	capped = moves(t, &p, false, "static caps");
	if (capped * 10 > dynamic * 9)
		case_fail(t, "static caps serve %llu bytes, credits %llu",
			  capped, dynamic);
}

/*
 * 100 MB/s between weights 100, 300 and an idle 400, and 500 : 500 below the
 * second: 12.5, 37.5 halved, and no flow gets the rest.
 */
static void test_caps(struct test_case *t)
{
	static const u64 expected[] = { 12500, 18750, 18750 }; /* KB/s */
	struct host_params p = wdt_host_params(t);
	struct host_flow *flow[3], *parent;
	u64 before[3], got;
	struct fixture r;
	u32 i;

	wdt_params(&p.sched)->caps_mbps = 100;
	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	parent = fixture_flow(&r, NULL, 300);
	flow[1] = fixture_flow(&r, parent, 500);
	flow[2] = fixture_flow(&r, parent, 500);
	fixture_flow(&r, NULL, 400);
	for (i = 0; i < 3; i++)
		fixture_closed(&r, flow[i], 64, 4 * KIB);
	fixture_run(&r, 150 * MS);
	fixture_bytes(flow, before, 3);
	fixture_run(&r, 2 * SEC);
	for (i = 0; i < 3; i++) {
		got = (flow[i]->stats.bytes - before[i]) / 2000;
		if (got * 100 < expected[i] * 99 ||
		    got * 100 > expected[i] * 101)
			case_fail(t, "flow %u moved %llu KB/s, its cap is %llu",
				  i, got, expected[i]);
	}
	fixture_close(&r);
}

/* Cgroups that ask for a tenth of the drive between them wait for nothing. */
static void test_unsaturated(struct test_case *t)
{
	static const struct tenant tenant[] = {
		{ .weight = 10,
		  .depth = 2,
		  .bytes = 4 * KIB,
		  .think_ns = 200 * US },
		{ .weight = 1000,
		  .depth = 2,
		  .bytes = 4 * KIB,
		  .think_ns = 300 * US },
	};
	struct host_params p = wdt_host_params(t);
	struct outcome o;
	u32 total;

	for (total = WDT_SUM; total <= WDT_MEET; total++) {
		wdt_params(&p.sched)->total = total;
		scenario_play(t, &p, tenant, 2, SEC, 2 * SEC, &o);
		note(t, "%s p99 %llu us; ", total ? "meet" : "sum",
		     o.p99_ns[0] / US);
		if (o.p99_ns[0] > 2 * p.device.base_ns)
			case_fail(t, "on an idle drive the p99 is %llu us",
				  o.p99_ns[0] / US);
	}
}

/* The effect of an interval: exhausted flows wait for its end. */
static void test_interval(struct test_case *t)
{
	static const u32 intervals_ms[] = { 5, 20, 100, 500 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(intervals_ms); i++) {
		struct host_params p = wdt_host_params(t);
		struct fair_case c = four;
		struct outcome o;
		char what[32];

		budget_params(&p.sched)->period_ns = intervals_ms[i] * MS;
		snprintf(what, sizeof(what), "%u ms", intervals_ms[i]);
		c.depth = 32;
		scenario_fair(t, &p, &c, what, &o);
		note(t, ", p99 %llu us", o.p99_ns[0] / US);
	}
}

/* WDT- is the same but for the lock. */
static void test_single_lock(struct test_case *t)
{
	struct host_params p = wdt_host_params(t);
	struct tenant tenant[4];
	struct outcome own, single;
	u32 i;

	scenario_four(tenant, 128, 4 * KIB, 500);
	scenario_play(t, &p, tenant, 4, SEC, SEC, &own);
	wdt_params(&p.sched)->single_lock = 1;
	scenario_play(t, &p, tenant, 4, SEC, SEC, &single);
	for (i = 0; i < 4; i++)
		if (own.bytes[i] != single.bytes[i])
			case_fail(
				t,
				"flow %u got %llu bytes with a lock of its own, %llu with one for all",
				i, own.bytes[i], single.bytes[i]);
}

const struct test wdt_tests[] = {
	{ "wdt/weights", test_weights, true },
	{ "wdt/total", test_total, true },
	{ "wdt/light", test_light, false },
	{ "wdt/light-slow", test_light_slow, false },
	{ "wdt/moves", test_moves, true },
	{ "wdt/caps", test_caps, true },
	{ "wdt/unsaturated", test_unsaturated, false },
	{ "wdt/interval", test_interval, true },
	{ "wdt/single-lock", test_single_lock, false },
	{ NULL, NULL, false },
};
