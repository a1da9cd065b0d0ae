// SPDX-License-Identifier: GPL-2.0
/*
 * hwabc and cost=learned on the simulator.  Unless said otherwise: a drive of
 * 16 slots, 400 us for a read and three times that for a write; four queues.
 */
#include <math.h>
#include <stdarg.h>

#include "scene.h"
#include "sched/hwabc.h"
#include "sched/learner.h"
#include "sched/policies.h"

enum {
	READ_US		= 400,
	WRITE_TIMES	= 3,
};

static struct host_params hwabc_params(const struct trial *t)
{
	struct host_params p = {
		.seed = 1,
		.nr_queues = 4,
		.ops = t->ops,
		.device = {
			.slots = 16,
			.base_ns = READ_US * US,
			.write_times = WRITE_TIMES,
		},
	};

	sched_params_init(&hwabc_ops, &p.sched);
	p.sched.depth = 16;
	/* No pages to speak of: what a write is charged more is by its number. */
	p.sched.hwabc.alpha_pct = 0;
	return p;
}

static void expect_total(struct trial *t, u64 total, u64 none, u32 permille,
			 const char *what)
{
	if (total * 1000 < none * permille)
		trial_fail(t, "%s: %llu bytes, %llu without a scheduler", what,
			   total, none);
}

__attribute__((format(printf, 2, 3)))
static void note(struct trial *t, const char *fmt, ...)
{
	size_t used = strlen(t->note);
	va_list args;

	va_start(args, fmt);
	vsnprintf(t->note + used, sizeof(t->note) - used, fmt, args);
	va_end(args);
}

/* ----------------------------------------------------------------- shares */

static void test_weights(struct trial *t)
{
	static const struct {
		const char *what;
		u32 bytes, write_permille;
		u64 ns_per_kib;
	} cases[] = {
		{ "random read", 4 * KIB, 0, 0 },
		{ "random write", 4 * KIB, 1000, 0 },
		{ "sequential read", 256 * KIB, 0, 2 * US },
		{ "sequential write", 256 * KIB, 1000, 2 * US },
		{ "mixed", 4 * KIB, 500, 0 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct host_params p = hwabc_params(t);
		struct tenant tenant[4];
		struct outcome o;
		u64 none;

		p.device.ns_per_kib = cases[i].ns_per_kib;
		scene_four(tenant, 128, cases[i].bytes,
			   cases[i].write_permille);
		none = scene_none(&p, tenant, 4, SEC, 2 * SEC);
		scene_play(t, &p, tenant, 4, SEC, 2 * SEC, &o);
		if (o.index < 0.98)
			trial_fail(t, "%s: index %.4f", cases[i].what, o.index);
		expect_total(t, o.total, none, 950, cases[i].what);
		note(t, "%s %.4f %llu permille; ", cases[i].what, o.index,
		     o.total * 1000 / none);
	}
}

/*
 * A reader and a writer of equal weight.  The writer's factor is 2, so of the
 * device's time it gets half of what the reader does; in that it does a third
 * as many requests.
 */
static void test_writer(struct trial *t)
{
	static const struct tenant tenant[] = {
		{ .weight = 100, .depth = 64, .bytes = 4 * KIB },
		{ .weight = 100, .depth = 64, .bytes = 4 * KIB,
		  .write_permille = 1000 },
	};
	struct host_params p = hwabc_params(t);
	struct outcome o;
	double times;

	scene_play(t, &p, tenant, 2, 2 * SEC, 4 * SEC, &o);
	times = (double)o.bytes[0] / (double)max(o.bytes[1], 1ULL);
	note(t, "the reader has %.3f times as much", times);
	if (fabs(times - 2 * WRITE_TIMES) > 0.3)
		trial_fail(t, "the reader has %.3f times as much", times);
}

/* -------------------------------------------------------- work conservation */

static void beside(struct trial *t, const char *what, const struct tenant *tenant,
		   u32 n, u32 permille)
{
	struct host_params p = hwabc_params(t);
	u64 none = scene_none(&p, tenant, n, SEC, 2 * SEC);
	struct outcome o;

	scene_play(t, &p, tenant, n, SEC, 2 * SEC, &o);
	note(t, "%s %llu permille of none; ", what, o.total * 1000 / none);
	expect_total(t, o.total, none, permille, what);
}

/* Nobody waits for those who do not use what they have. */
static void test_conserving(struct trial *t)
{
	static const struct tenant light[] = {
		{ .weight = 100, .depth = 1, .bytes = 4 * KIB },
		{ .weight = 100, .depth = 128, .bytes = 4 * KIB },
		{ .weight = 250, .depth = 128, .bytes = 4 * KIB },
	};
	/* Ten of sixteen slots, and an endless budget. */
	static const struct tenant heavy[] = {
		{ .weight = 10000, .depth = 10, .bytes = 4 * KIB },
		{ .weight = 1, .depth = 64, .bytes = 4 * KIB },
	};
	static const struct tenant thinking[] = {
		{ .weight = 1000, .depth = 8, .bytes = 4 * KIB,
		  .think_ns = 800 * US },
		{ .weight = 100, .depth = 64, .bytes = 4 * KIB },
	};
	static const struct tenant pausing[] = {
		{ .weight = 1000, .depth = 64, .bytes = 4 * KIB,
		  .on_ns = 200 * MS, .off_ns = 300 * MS },
		{ .weight = 100, .depth = 64, .bytes = 4 * KIB },
	};

	beside(t, "light", light, ARRAY_SIZE(light), 970);
	beside(t, "of ten slots", heavy, ARRAY_SIZE(heavy), 970);
	beside(t, "thinking", thinking, ARRAY_SIZE(thinking), 970);
	beside(t, "pausing", pausing, ARRAY_SIZE(pausing), 970);
}

/* -------------------------------------------------------------- regression */

static double learned_us(const struct host *h, u32 class)
{
	const struct regression *g = &h->sched.learner->regression;

	u64 sector_ps = regression_cost_ps(g, 2 * class + 1);

	if (class == IO_WRITE)
		sector_ps += regression_cost_ps(g, WRITTEN_SECTOR);
	return (double)(regression_cost_ps(g, 2 * class) + 8 * sector_ps) / 1e6;
}

static void expect_learned(struct trial *t, const struct host *h,
			   double read_us, double write_us, const char *when)
{
	double read = learned_us(h, IO_READ), write = learned_us(h, IO_WRITE);

	note(t, "%s %.1f and %.1f us; ", when, read, write);
	if (fabs(read - read_us) > read_us / 10 ||
	    fabs(write - write_us) > write_us / 10)
		trial_fail(t, "%s: %.1f and %.1f us instead of %.1f and %.1f",
			   when, read, write, read_us, write_us);
}

static void costs_of(struct trial *t, const struct sched_ops *ops)
{
	static const struct tenant tenant[] = {
		{ .weight = 100, .depth = 32, .bytes = 4 * KIB },
		{ .weight = 100, .depth = 32, .bytes = 4 * KIB,
		  .write_permille = 1000 },
		{ .weight = 200, .depth = 32, .bytes = 4 * KIB,
		  .write_permille = 300 },
	};
	struct host_params p = hwabc_params(t);
	struct trial own = { .ops = ops };
	struct scene s;

	p.ops = ops;
	p.sched.cost.kind = COST_LEARNED;
	scene_open(&s, &own, &p, tenant, ARRAY_SIZE(tenant));
	rig_run(&s.r, 5 * SEC);
	expect_learned(t, s.r.host, READ_US, READ_US * WRITE_TIMES, ops->name);
	s.r.host->device.params.write_times = 3 * WRITE_TIMES;
	rig_run(&s.r, 10 * SEC);
	expect_learned(t, s.r.host, READ_US, READ_US * 3 * WRITE_TIMES,
		       "slower");
	scene_close(&s);
	if (trial_failed(&own))
		trial_fail(t, "%s", own.failure);
}

/* After 5 s; and 10 s after the truth has moved. */
static void test_costs(struct trial *t)
{
	costs_of(t, &hwabc_ops);
	costs_of(t, &mqfq_ops);
}

/*
 * Readers of 4 and of 64 KiB, for which the device takes 416 and 656 us.  By
 * bytes the small ones get nearly all of its time; as learned, half.
 */
static double time_of_the_small(struct trial *t, const struct sched_ops *ops,
				u32 cost)
{
	static const struct tenant tenant[] = {
		{ .weight = 100, .depth = 64, .bytes = 4 * KIB },
		{ .weight = 100, .depth = 64, .bytes = 64 * KIB },
	};
	struct host_params p = hwabc_params(t);
	struct trial own = { .ops = ops };
	double small, large;
	struct outcome o;

	p.ops = ops;
	sched_params_init(ops, &p.sched);
	p.sched.depth = 16;
	p.device.ns_per_kib = 4 * US;
	p.sched.cost.kind = cost;
	p.sched.threshold = 64 * KIB;
	scene_play(&own, &p, tenant, 2, 3 * SEC, SEC, &o);
	if (trial_failed(&own))
		trial_fail(t, "%s", own.failure);
	small = (double)o.bytes[0] / 4 / KIB * 416;
	large = (double)o.bytes[1] / 64 / KIB * 656;
	return small / (small + large);
}

static void test_sizes(struct trial *t)
{
	static const struct sched_ops *const ops[] = {
		&hwabc_ops, &mqfq_ops, &wdt_ops,
	};
	double bytes, learned;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		bytes = time_of_the_small(t, ops[i], COST_BYTES);
		learned = time_of_the_small(t, ops[i], COST_LEARNED);
		note(t, "%s: %.3f by bytes, %.3f learned; ", ops[i]->name, bytes,
		     learned);
		if (fabs(learned - 0.5) > 0.05 || fabs(bytes - 0.5) < 0.2)
			trial_fail(t, "%s: the small have %.3f of the time by bytes, %.3f as learned",
				   ops[i]->name, bytes, learned);
	}
}

const struct test hwabc_tests[] = {
	{ "hwabc/weights", test_weights, true },
	{ "hwabc/writer", test_writer, true },
	{ "hwabc/conserving", test_conserving, false },
	{ "hwabc/costs", test_costs, false },
	{ "hwabc/sizes", test_sizes, false },
	{ NULL, NULL, false },
};
