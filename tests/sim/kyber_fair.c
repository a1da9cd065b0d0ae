// SPDX-License-Identifier: GPL-2.0
/*
 * kyber-fair on the simulator.  Unless said otherwise: a drive of 16 slots and
 * 100 us a request, hence 160,000 requests a second; four queues.  Totals are
 * in thousandths of what the drive does without a scheduler.
 */

#include "scenario.h"
#include "sched/kyber_fair/kyber_fair.h"
#include "sched/core/policies.h"

enum {
	PERIOD_NS	= 100 * 1000 * 1000,
	DEPTH		= 16,	/* at first: D is found */
	DEPTH_MOST	= 1024,
};

static const struct kyber_fair *kyber_of(const struct fixture *r)
{
	return r->host->sched.own;
}

static struct host_params kyber_host_params(const struct test_case *t)
{
	struct host_params p = scenario_params(t, &kyber_fair_ops);

	p.sched.depth = DEPTH;
	p.sched.depth_most = DEPTH_MOST;
	return p;
}

/* ----------------------------------------------------------------- shares */

/* Four cgroups of four jobs, each 32 deep: figure 4. */
static const struct fair_case four = {
	.depth = 128,
	.bytes = 4 * KIB,
	.warm_ns = SEC,
	.ns = 2 * SEC,
	.index = 0.99,
	.permille = 950,
};

static void test_weights(struct test_case *t)
{
	struct host_params p = kyber_host_params(t);

	p.device.write_times = 3;
	scenario_kinds(t, &p, &four, 1 * MIB, true);
}

/*
 * A drive that takes longer for a request than a round of a fast one lasts:
 * 4,000 requests a second, 64 at a time.
 */
static void test_slow(struct test_case *t)
{
	static const struct {
		const char *what;
		u32 depth, bytes;
	} cases[] = {
		{ "64 of 4 KiB", 64, 4 * KIB },
		{ "128 of 4 KiB", 128, 4 * KIB },
		{ "64 of 1 MiB", 64, 1 * MIB },
	};
	struct host_params p = kyber_host_params(t);
	struct fair_case c = four;
	struct outcome o;
	u32 i;

	p.nr_queues = 1;
	p.device.slots = 64;
	p.device.base_ns = 16 * MS;
	c.warm_ns = 2 * SEC;
	c.ns = 4 * SEC;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		c.depth = cases[i].depth;
		c.bytes = cases[i].bytes;
		scenario_fair(t, &p, &c, cases[i].what, &o);
	}
}

/*
 * Both readings of Algorithm 1.  As published, the literal reading grants more
 * than the drive can do: see predict.h.
 */
static void test_predict(struct test_case *t)
{
	static const struct {
		const char *what;
		u32 conserving, predict;
		double least;
	} cases[] = {
		{ "total, as published", 0, KYBER_TOTAL, 0.99 },
		{ "per-flow, as published", 0, KYBER_PER_FLOW, 0.94 },
		{ "total", 1, KYBER_TOTAL, 0.99 },
		{ "per-flow", 1, KYBER_PER_FLOW, 0.99 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct host_params p = kyber_host_params(t);
		struct fair_case c = four;
		struct outcome o;

		budget_params(&p.sched)->work_conserving = cases[i].conserving;
		kyber_params(&p.sched)->predict = cases[i].predict;
		c.index = cases[i].least;
		scenario_fair(t, &p, &c, cases[i].what, &o);
	}
}

/*
 * Weights change, and a cgroup goes away at once: right within two periods,
 * over the two that follow.
 */
static void test_change(struct test_case *t)
{
	static const u32 before[] = { 1, 2, 4 }, after[] = { 8, 2, 4 };
	static const u32 left[] = { 2, 4 };
	struct host_params p = kyber_host_params(t);
	struct host_flow *flow[3];
	struct load *load[3];
	struct fixture r;
	u32 i;

	fixture_open(&r, t, &p);
	for (i = 0; i < 3; i++) {
		flow[i] = fixture_flow(&r, NULL, 100 * before[i]);
		load[i] = fixture_closed(&r, flow[i], 128, 4 * KIB);
	}
	fixture_run(&r, 5 * PERIOD_NS);
	fixture_expect_parts(&r, flow, before, 3, 5 * PERIOD_NS, 30,
			     "at first");
	host_flow_weigh(flow[0], 800);
	fixture_run(&r, 2 * PERIOD_NS);
	fixture_expect_parts(&r, flow, after, 3, 5 * PERIOD_NS, 30,
			     "reweighed");
	load_stop(load[0]);
	while (flow[0]->outstanding && !host_failed(r.host))
		fixture_run(&r, MS);
	host_flow_destroy(flow[0]);
	fixture_drop_load(&r, load[0]);
	fixture_run(&r, 2 * PERIOD_NS);
	fixture_expect_parts(&r, flow + 1, left, 2, 5 * PERIOD_NS, 30,
			     "removed");
	fixture_close(&r);
}

/* ------------------------------------------------------ work conservation */

static const struct tenant light_and_heavy[] = {
	{ .weight = 100, .depth = 1, .bytes = 4 * KIB },
	{ .weight = 100, .depth = 128, .bytes = 4 * KIB },
	{ .weight = 250, .depth = 128, .bytes = 4 * KIB },
	{ .weight = 500, .depth = 128, .bytes = 4 * KIB },
};

/* What a drive does in a period. */
static u64 period_bytes(const struct host_params *p)
{
	return (u64)PERIOD_NS / p->device.base_ns * p->device.slots * 4 * KIB;
}

/* A light but active cgroup beside three heavy ones. */
static void test_light(struct test_case *t)
{
	const struct tenant *tenant = light_and_heavy;
	struct host_params p = kyber_host_params(t);
	u64 none = scenario_none(&p, tenant, 4, SEC, 2 * SEC);
	u64 published = 0;
	u32 i;

	for (i = 0; i < 2; i++) {
		struct outcome o;

		budget_params(&p.sched)->work_conserving = i;
		scenario_play(t, &p, tenant, 4, SEC, 2 * SEC, &o);
		if (i)
			scenario_expect_total(t, o.total,
					      max(none, 2 * published), 950,
					      "beside a light cgroup");
		published = o.total;
		note(t, "%s%llu, p99 %llu us of the light, %llu of the heavy; ",
		     i ? "" : "as published ", o.total * 1000 / none,
		     o.p99_ns[0] / US, o.p99_ns[1] / US);
	}
}

/* The same on slow drives. */
static void test_light_slow(struct test_case *t)
{
	struct host_params p = kyber_host_params(t);

	scenario_light(t, &p, 950);
}

/*
 * There the prediction is right at all times, though rounds are ended while
 * not all are out.
 */
static void test_predicted(struct test_case *t)
{
	struct host_params p = kyber_host_params(t);
	u64 full = period_bytes(&p), least = ~0ULL, most = 0;
	struct scenario s;
	u32 i;

	scenario_open(&s, t, &p, light_and_heavy, 4);
	fixture_run(&s.r, SEC);
	for (i = 0; i < 2000; i++) {
		u64 now;

		fixture_run(&s.r, MS);
		now = kyber_of(&s.r)->predicted * 1000 / full;
		least = min(least, now);
		most = max(most, now);
	}
	if (least < 700 || most > 1300)
		case_fail(t, "%llu to %llu permille of a period are predicted",
			  least, most);
	note(t, "%llu to %llu permille of a period", least, most);
	scenario_close(&s);
}

/* No stop and go: the lightest waits for rounds, not for periods. */
static void test_tail(struct test_case *t)
{
	struct tenant tenant[4];
	struct outcome o[2];
	u32 i;

	scenario_four(tenant, 32, 4 * KIB, 0);
	for (i = 0; i < 2; i++) {
		struct host_params p = kyber_host_params(t);

		budget_params(&p.sched)->work_conserving = i;
		scenario_play(t, &p, tenant, 4, SEC, 2 * SEC, &o[i]);
		scenario_expect_index(t, &o[i], 0.99,
				      i ? "conserving" : "published");
		note(t, "%sp99 of weight 100 %llu us, 1000 %llu; ",
		     i ? "" : "as published ", o[i].p99_ns[0] / US,
		     o[i].p99_ns[3] / US);
	}
	if (o[1].p99_ns[0] * 4 > o[0].p99_ns[0])
		case_fail(t,
			  "p99 of the lightest is %llu us, as published %llu",
			  o[1].p99_ns[0] / US, o[0].p99_ns[0] / US);
}

/*
 * Two seconds busy, two seconds idle, beside one that is always busy.  From the
 * third period after each change on, each period's part is right; and only the
 * one in which the other stops may lose the window in which that is noticed.
 */
static void test_moves(struct test_case *t)
{
	enum {
		PHASE = 20
	};
	static const struct tenant tenant[] = {
		{ .weight = 100, .depth = 128, .bytes = 4 * KIB },
		{ .weight = 300,
		  .depth = 128,
		  .bytes = 4 * KIB,
		  .on_ns = 2 * SEC,
		  .off_ns = 2 * SEC },
	};
	struct host_params p = kyber_host_params(t);
	const u64 full = period_bytes(&p);
	u64 least[2] = { ~0ULL, ~0ULL }, off = 0;
	struct scenario s;
	u32 i;

	scenario_open(&s, t, &p, tenant, 2);
	for (i = 0; i < 6 * PHASE; i++) {
		u64 want = i / PHASE % 2 ? 0 : 750, part;
		bool changes = i % PHASE == 0;
		struct outcome o;

		scenario_begin(&s);
		fixture_run(&s.r, PERIOD_NS);
		scenario_end(&s, &o);
		if (i == 0)
			continue;
		least[changes] = min(least[changes], o.total * 1000 / full);
		part = o.bytes[1] * 1000 / max(o.total, 1ULL);
		if (i % PHASE >= 2)
			off = max(off, part > want ? part - want : want - part);
	}
	scenario_close(&s);
	if (off > 35)
		case_fail(t, "a part is off by %llu permille of the drive",
			  off);
	if (least[0] < 990 || least[1] < 850)
		case_fail(
			t,
			"the drive does %llu permille of what it can, %llu when demand changes",
			least[0], least[1]);
	note(t, "off by %llu at most; at least %llu, %llu when demand changes",
	     off, least[0], least[1]);
}

/* --------------------------------------------------------- Kyber's domains */

/* A write costs three times as much on a drive of 10 us and on one of 10 ms. */
static void test_ratio(struct test_case *t)
{
	static const struct tenant tenant[] = {
		{ .weight = 100, .depth = 8, .bytes = 4 * KIB },
		{ .weight = 100,
		  .depth = 8,
		  .bytes = 4 * KIB,
		  .write_permille = 1000 },
	};
	static const u64 speeds[] = { 10 * US, 10 * MS };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(speeds); i++) {
		struct host_params p = kyber_host_params(t);
		u64 ratio, spent, bytes;
		struct scenario s;

		p.device.base_ns = speeds[i];
		p.device.write_times = 3;
		scenario_open(&s, t, &p, tenant, 2);
		fixture_run(&s.r, SEC);
		spent = budget_spent(s.flow[1]->flow);
		bytes = s.flow[1]->stats.bytes;
		fixture_run(&s.r, SEC);
		ratio = kyber_of(&s.r)->domains.ratio * 1000ULL >> RATIO_SHIFT;
		spent = budget_spent(s.flow[1]->flow) - spent;
		bytes = s.flow[1]->stats.bytes - bytes;
		if (ratio < 2990 || ratio > 3010)
			case_fail(
				t,
				"%llu us: a write costs %llu permille of a read",
				speeds[i] / US, ratio);
		if (spent * 100 < bytes * 290 || spent * 100 > bytes * 310)
			case_fail(t,
				  "%llu us: %llu spent for %llu bytes of writes",
				  speeds[i] / US, spent, bytes);
		scenario_close(&s);
	}
}

struct in_device {
	struct fixture *r;
	u32 writes, most;
};

static void saw_dispatch(void *arg, struct host_io *hio)
{
	struct in_device *d = arg;

	d->r->dispatched++;
	if (hio->io.op == IO_WRITE)
		d->most = max(d->most, ++d->writes);
}

static void saw_completion(void *arg, struct host_io *hio)
{
	struct in_device *d = arg;

	d->r->completed++;
	if (hio->io.op == IO_WRITE)
		d->writes--;
}

static void saw_insert(void *arg, struct host_io *hio)
{
	struct in_device *d = arg;

	(void)hio;
	d->r->inserted++;
}

/*
 * There are never more writes in the device than their domain has slots: 128
 * alone; and fewer when readers miss Kyber's target and writes meet theirs.
 */
static void test_domains(struct test_case *t)
{
	static const struct tenant tenant[] = {
		{ .weight = 100,
		  .depth = 200,
		  .bytes = 4 * KIB,
		  .start_ns = SEC },
		{ .weight = 100,
		  .depth = 300,
		  .bytes = 4 * KIB,
		  .write_permille = 1000,
		  .stop_ns = SEC },
		{ .weight = 1000,
		  .depth = 24,
		  .bytes = 4 * KIB,
		  .write_permille = 1000,
		  .start_ns = SEC },
	};
	struct host_params p = kyber_host_params(t);
	struct in_device d = { 0 };
	struct scenario s;

	/* No less than what the domains have. */
	p.sched.depth = DEPTH_MOST;
	p.sched.depth_most = 0;
	kyber_params(&p.sched)->read_lat_us = 2000;
	kyber_params(&p.sched)->write_lat_us = 10000;
	p.device.base_ns = 400 * US;
	scenario_open(&s, t, &p, tenant, 3);
	d.r = &s.r;
	s.r.host->watch = (struct host_watch){
		.arg = &d,
		.inserted = saw_insert,
		.dispatched = saw_dispatch,
		.completed = saw_completion,
	};
	fixture_run(&s.r, SEC - MS);
	if (d.most != 128)
		case_fail(t, "%u writes were in the device, the domain has 128",
			  d.most);
	fixture_run(&s.r, 3 * SEC);
	d.most = 0;
	fixture_run(&s.r, PERIOD_NS);
	if (d.most >= 24)
		case_fail(t, "readers wait, and %u writes are in the device",
			  d.most);
	note(t, "128 alone, %u beside readers that wait", d.most);
	scenario_close(&s);
}

const struct test kyber_tests[] = {
	{ "kyber-fair/weights", test_weights, true },
	{ "kyber-fair/slow", test_slow, true },
	{ "kyber-fair/predict", test_predict, true },
	{ "kyber-fair/change", test_change, true },
	{ "kyber-fair/light", test_light, false },
	{ "kyber-fair/light-slow", test_light_slow, false },
	{ "kyber-fair/predicted", test_predicted, false },
	{ "kyber-fair/tail", test_tail, true },
	{ "kyber-fair/moves", test_moves, true },
	{ "kyber-fair/ratio", test_ratio, false },
	{ "kyber-fair/domains", test_domains, false },
	{ NULL, NULL, false },
};
