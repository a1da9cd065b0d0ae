// SPDX-License-Identifier: GPL-2.0
/*
 * hwabc and cost=learned on the simulator.  Unless said otherwise: a drive of
 * 16 slots, 400 us for a read and three times that for a write; four queues.
 */
#include <math.h>

#include "fifo.h"
#include "tests/params.h"
#include "scenario.h"
#include "sched/hwabc/hwabc.h"
#include "sched/core/policies.h"

enum {
	READ_US		= 400,
	WRITE_TIMES	= 3,
};

static struct host_params hwabc_host_params(const struct test_case *t)
{
	struct host_params p = scenario_params(t, &hwabc_ops);

	p.device.base_ns = READ_US * US;
	p.device.write_times = WRITE_TIMES;
	p.sched.depth = 16;
	/* The device has no pages: the factor of writes is a fixed number. */
	hwabc_params(&p.sched)->alpha_pct = 0;
	return p;
}

/* ----------------------------------------------------------------- shares */

static void test_weights(struct test_case *t)
{
	static const struct fair_case four = {
		.depth = 128,
		.warm_ns = SEC,
		.ns = 2 * SEC,
		.index = 0.98,
		.permille = 950,
	};
	struct host_params p = hwabc_host_params(t);

	scenario_kinds(t, &p, &four, 256 * KIB, true);
}

/*
 * Drives that take longer for a request than `budget_ms`.  Each of two queues
 * has tags for half of the requests that the drive serves at once.
 */
static void test_slow(struct test_case *t)
{
	static const struct fair_case four = {
		.depth = 96,
		.bytes = 4 * KIB,
		.warm_ns = 4 * SEC,
		.ns = 16 * SEC,
		.index = 0.99,
		.permille = 950,
	};
	static const u64 base_ms[] = { 16, 64, 256 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(base_ms); i++) {
		struct host_params p = hwabc_host_params(t);
		struct outcome o;
		char what[32];

		p.nr_queues = 2;
		p.tags = 16;
		p.sched.depth = 32;
		p.device = (struct device_params){
			.slots = 32,
			.base_ns = base_ms[i] * MS,
		};
		snprintf(what, sizeof(what), "%llu ms", base_ms[i]);
		scenario_fair(t, &p, &four, what, &o);
	}
}

/*
 * A reader and a writer of equal weight.  The writer's factor is 2, so of the
 * device's time it gets half of what the reader does; in that it does a third
 * as many requests.
 */
static void test_writer(struct test_case *t)
{
	static const struct tenant tenant[] = {
		{ .weight = 100, .depth = 64, .bytes = 4 * KIB },
		{ .weight = 100,
		  .depth = 64,
		  .bytes = 4 * KIB,
		  .write_permille = 1000 },
	};
	struct host_params p = hwabc_host_params(t);
	struct outcome o;
	double times;

	p.sched.cost = (struct cost_model){
		.kind = COST_LINEAR,
		.read = { .base = COST_UNIT },
		.write = { .base = WRITE_TIMES * COST_UNIT },
	};
	scenario_play(t, &p, tenant, 2, 2 * SEC, 4 * SEC, &o);
	times = (double)o.bytes[0] / (double)max(o.bytes[1], 1ULL);
	note(t, "the reader has %.3f times as much", times);
	if (fabs(times - 2 * WRITE_TIMES) > 0.3)
		case_fail(t, "the reader has %.3f times as much", times);
}

/* -------------------------------------------------------- work conservation */

/* One with one request at a time beside three that are deep, on slow drives. */
static void test_light_slow(struct test_case *t)
{
	struct host_params p = hwabc_host_params(t);

	p.sched.depth = 64;
	scenario_light(t, &p, 950);
}

static void beside(struct test_case *t, const char *what,
		   const struct tenant *tenant, u32 n, u32 permille)
{
	struct host_params p = hwabc_host_params(t);
	u64 none = scenario_none(&p, tenant, n, SEC, 2 * SEC);
	struct outcome o;

	scenario_play(t, &p, tenant, n, SEC, 2 * SEC, &o);
	note(t, "%s %llu permille of none; ", what, o.total * 1000 / none);
	scenario_expect_total(t, o.total, none, permille, what);
}

/* No round waits for a flow that leaves its credit unused. */
static void test_conserving(struct test_case *t)
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
		{ .weight = 1000,
		  .depth = 8,
		  .bytes = 4 * KIB,
		  .think_ns = 800 * US },
		{ .weight = 100, .depth = 64, .bytes = 4 * KIB },
	};
	static const struct tenant pausing[] = {
		{ .weight = 1000,
		  .depth = 64,
		  .bytes = 4 * KIB,
		  .on_ns = 200 * MS,
		  .off_ns = 300 * MS },
		{ .weight = 100, .depth = 64, .bytes = 4 * KIB },
	};

	beside(t, "light", light, ARRAY_SIZE(light), 970);
	beside(t, "of ten slots", heavy, ARRAY_SIZE(heavy), 970);
	beside(t, "thinking", thinking, ARRAY_SIZE(thinking), 970);
	beside(t, "pausing", pausing, ARRAY_SIZE(pausing), 970);
}

/* ------------------------------------------------------------ learned costs */

/*
 * Readers of 4 and of 64 KiB, for which the device takes 416 and 656 us.  By
 * bytes the small ones get nearly all of its time.  mqfq and wdt learn the costs and
 * give them half.  hwabc charges bytes, because the device does not tell its time.
 */
static double time_of_the_small(struct test_case *t,
				const struct sched_ops *ops, u32 cost)
{
	static const struct tenant tenant[] = {
		{ .weight = 100, .depth = 64, .bytes = 4 * KIB },
		{ .weight = 100, .depth = 64, .bytes = 64 * KIB },
	};
	struct host_params p = hwabc_host_params(t);
	struct test_case own = { .ops = ops };
	double small, large;
	struct outcome o;

	p.ops = ops;
	sched_params_init(ops, &p.sched);
	p.sched.isolation = 0;
	p.sched.depth = 16;
	p.device.ns_per_kib = 4 * US;
	p.sched.cost.kind = cost;
	params_put(ops, &p.sched, "threshold_kb", 64 * KIB);
	scenario_play(&own, &p, tenant, 2, 3 * SEC, SEC, &o);
	if (case_failed(&own))
		case_fail(t, "%s", own.failure);
	small = (double)o.bytes[0] / 4 / KIB * 416;
	large = (double)o.bytes[1] / 64 / KIB * 656;
	return small / (small + large);
}

static void test_sizes(struct test_case *t)
{
	static const struct sched_ops *const ops[] = {
		&hwabc_ops,
		&mqfq_ops,
		&wdt_ops,
	};
	double bytes, learned, due;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		bytes = time_of_the_small(t, ops[i], COST_BYTES);
		learned = time_of_the_small(t, ops[i], COST_LEARNED);
		note(t, "%s: %.3f by bytes, %.3f learned; ", ops[i]->name,
		     bytes, learned);
		due = ops[i]->exact_costs ? bytes : 0.5;
		if (fabs(learned - due) > 0.05 || fabs(bytes - 0.5) < 0.2)
			case_fail(
				t,
				"%s: the small have %.3f of the time by bytes, %.3f as learned",
				ops[i]->name, bytes, learned);
	}
}

/* --------------------------------------------------------- a drive of flash */

enum {
	DRIVE_BYTES	= 512 * MIB,
	DRIVE_PAGES	= DRIVE_BYTES / 4096,
	DRIVE_DEPTH	= 16,		/* of each tenant, and D */
	PAPER_SLOTS	= 24,
};

/* The part of the drive that is filled with the data of one flow. */
struct owner_load {
	u32 percent;		/* of the drive */
	u32 turns;		/* how often it is overwritten before */
	u32 write_permille;
	bool in_order;
	u32 depth;		/* 0: DRIVE_DEPTH */
	u32 host_us;		/* until a request that is done is sent again */
};

struct flash_scenario {
	struct flash *flash;
	struct fixture r;
	struct host_flow *flow[2];
	u64 before[2];
};

/* Of everybody in turn, so that their pages lie side by side. */
static void fill(struct flash *f, const struct owner_load *load,
		 const u32 *first, struct rng *rng)
{
	u32 i, k, turn;

	for (i = 0; i < 2; i++) {
		struct flash_fill all = {
			.first = first[i],
			.pages = first[i + 1] - first[i],
			.owner = i + 1,
			.seed = i,
		};

		while (flash_fill(f, &all, DRIVE_PAGES))
			;
	}
	for (turn = 0; turn < 1000; turn++)
		for (i = 0; i < 2; i++)
			for (k = 0;
			     k <
			     load[i].turns * (first[i + 1] - first[i]) / 1000;
			     k++) {
				struct flash_fill one = {
					.first = (u32)rng_between(rng, first[i],
								  first[i + 1] -
									  1),
					.pages = 1,
					.owner = i + 1,
				};

				while (flash_fill(f, &one, DRIVE_PAGES))
					;
			}
}

/* @only: one of them alone, or 2. */
static void flash_open(struct flash_scenario *s, struct test_case *t,
		       struct host_params *p, enum flash_ftl ftl,
		       const struct owner_load *load, u32 only)
{
	const struct flash_config config = {
		.params = flash_model("four-dies"),
		.bytes = DRIVE_BYTES,
		.owners = 8,
		.ftl = ftl,
	};
	u32 first[3] = { 0 }, i;
	struct rng rng;

	*s = (struct flash_scenario){ .flash = flash_create(&config) };
	port_assert(s->flash);
	rng_init(&rng, 1);
	for (i = 0; i < 2; i++)
		first[i + 1] = first[i] + DRIVE_PAGES / 100 * load[i].percent;
	fill(s->flash, load, first, &rng);
	p->device.flash = s->flash;
	fixture_open(&s->r, t, p);
	for (i = 0; i < 2; i++) {
		const struct load_params params = {
			.flow = s->flow[i] = fixture_flow(&s->r, NULL, 100),
			.nr_queues = p->nr_queues,
			.depth = load[i].depth ?: DRIVE_DEPTH,
			.bytes = 4 * KIB,
			.write_permille = load[i].write_permille,
			.first_page = first[i],
			.pages = first[i + 1] - first[i],
			.in_order = load[i].in_order,
			.think_ns = load[i].host_us * US,
			.think_random = load[i].host_us,
		};

		/* The fill knows them by their numbers. */
		port_assert(s->flow[i]->id == i + 1);
		if (only == i || only == 2)
			fixture_load(&s->r, &params);
	}
}

static void flash_close(struct flash_scenario *s)
{
	fixture_close(&s->r);
	flash_destroy(s->flash);
}

/* MB/s of each in @ns after @warm_ns. */
static void flash_run(struct flash_scenario *s, u64 warm_ns, u64 ns,
		      double *mbps)
{
	u32 i;

	fixture_run(&s->r, warm_ns);
	fixture_bytes(s->flow, s->before, 2);
	fixture_run(&s->r, ns);
	for (i = 0; i < 2; i++)
		mbps[i] = (double)(s->flow[i]->stats.bytes - s->before[i]) *
			  1e3 / (double)ns;
}

static void flash_play(struct test_case *t, struct host_params *p,
		       enum flash_ftl ftl, const struct owner_load *load,
		       u32 only, double *mbps)
{
	struct flash_scenario s;

	flash_open(&s, t, p, ftl, load, only);
	flash_run(&s, 2 * SEC, 4 * SEC, mbps);
	flash_close(&s);
}

static void flash_none(const struct host_params *p,
		       const struct owner_load *load, u32 only, double *mbps)
{
	struct test_case t = { .ops = &fifo_ops };
	struct host_params none = *p;

	none.ops = &fifo_ops;
	none.sched.depth = DEPTH_MAX;
	flash_play(&t, &none, FLASH_FTL_HOST, load, only, mbps);
}

static struct host_params flash_params(const struct test_case *t)
{
	struct host_params p = {
		.seed = 1,
		.nr_queues = 4,
		.ops = t->ops,
	};

	sched_params_init(&hwabc_ops, &p.sched);
	p.sched.isolation = 0;
	p.sched.depth = DRIVE_DEPTH;
	return p;
}

/*
 * The paper's experiment: 85 % full, a reader of cold data in order, a random
 * writer.  Under none the writer wins, under hwabc the reader.  As in the paper,
 * budgets return when all are exhausted.
 */
static double paper(struct test_case *t, struct host_params *p, u32 host_us)
{
	const struct owner_load load[] = {
		{ .percent = 40, .in_order = true, .host_us = host_us },
		{ .percent = 45,
		  .turns = 3,
		  .write_permille = 1000,
		  .host_us = host_us },
	};
	double none[2], got[2], total;

	p->sched.depth = PAPER_SLOTS;
	budget_params(&p->sched)->work_conserving = 0;
	flash_none(p, load, 2, none);
	flash_play(t, p, FLASH_FTL_HOST, load, 2, got);
	total = (got[0] + got[1]) / (none[0] + none[1]);
	note(t, "%.1f %.1f, %.1f %.1f: %.3f; ", none[0], none[1], got[0],
	     got[1], total);
	if (none[0] >= none[1] || got[0] <= got[1])
		case_fail(
			t,
			"the reader has %.1f MB/s beside %.1f of the writer, without a scheduler %.1f beside %.1f",
			got[0], got[1], none[0], none[1]);
	return total;
}

/* One run has 3 % more or less than another, as programs meet reads. */
static void expect_mean(struct test_case *t, double sum, u32 runs)
{
	if (sum / runs < 0.96)
		case_fail(t,
			  "the total is %.3f of what it is without a scheduler",
			  sum / runs);
}

static void test_paper(struct test_case *t)
{
	double sum = 0;
	u32 seed;

	for (seed = 1; seed <= 5; seed++) {
		struct host_params p = flash_params(t);

		p.seed = seed;
		sum += paper(t, &p, 0);
	}
	expect_mean(t, sum, 5);
}

/*
 * On a host of one processor, which takes a while until it sends the next
 * request: so the reader alone leaves slots free.
 */
static void test_slow_host(struct test_case *t)
{
	static const u32 host_us[] = { 5, 10, 20, 40, 80 };
	double sum = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(host_us); i++) {
		struct host_params p = flash_params(t);

		p.nr_queues = 1;
		sum += paper(t, &p, host_us[i]);
	}
	expect_mean(t, sum, ARRAY_SIZE(host_us));
}

/* No round waits for a light flow, where the time of the drive is known. */
static void test_light_flash(struct test_case *t)
{
	static const struct owner_load load[][2] = {
		{ { .percent = 40, .depth = 1 }, { .percent = 40 } },
		{ { .percent = 40, .depth = 1 },
		  { .percent = 40, .turns = 3, .write_permille = 1000 } },
		{ { .percent = 40,
		    .depth = 1,
		    .turns = 1,
		    .write_permille = 1000 },
		  { .percent = 40 } },
	};
	struct host_params p = flash_params(t);
	double none[2], got[2], total;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(load); i++) {
		flash_none(&p, load[i], 2, none);
		flash_play(t, &p, FLASH_FTL_HOST, load[i], 2, got);
		total = (got[0] + got[1]) / (none[0] + none[1]);
		note(t, "%.1f %.1f, %.1f %.1f: %.3f; ", none[0], none[1],
		     got[0], got[1], total);
		if (total < 0.95)
			case_fail(
				t,
				"%.1f and %.1f MB/s, without a scheduler %.1f and %.1f",
				got[0], got[1], none[0], none[1]);
	}
}

/* What a write costs in reads, beside what the flash spent since @before. */
static void expect_spent(struct test_case *t, const struct flash_scenario *s,
			 const struct flash_spent *before,
			 const struct flash_stats *were, const char *when)
{
	struct flash_stats stats = flash_stats(s->flash);
	struct flash_spent now;
	double truth, got;

	port_assert(flash_host_spent(s->flash, &now));
	truth = (double)(now.write_ns - before->write_ns) /
		(double)(stats.written - were->written) /
		((double)(now.read_ns - before->read_ns) /
		 (double)(stats.read - were->read));
	got = scenario_learned_us(s->r.host, IO_WRITE) /
	      scenario_learned_us(s->r.host, IO_READ);
	note(t, "%s %.2f, truth %.2f; ", when, got, truth);
	if (fabs(got / truth - 1) > 0.1)
		case_fail(t, "%s: a write is %.2f reads instead of %.2f", when,
			  got, truth);
}

/*
 * The estimate is learned for @ns.  In a single second garbage collection may cost
 * a fifth more or less, so the flash is observed for four.
 */
static void spend(struct test_case *t, struct flash_scenario *s, u64 ns,
		  const char *when)
{
	struct flash_stats were;
	struct flash_spent before;

	fixture_run(&s->r, ns);
	were = flash_stats(s->flash);
	flash_host_spent(s->flash, &before);
	fixture_run(&s->r, 4 * SEC);
	expect_spent(t, s, &before, &were, when);
}

/* A write's cost in reads, where the map is the host's. */
static void test_spent(struct test_case *t)
{
	static const struct owner_load low[] = {
		{ .percent = 5 },
		{ .percent = 5, .write_permille = 1000 },
	}, high[] = {
		{ .percent = 45 },
		{ .percent = 45, .turns = 2, .write_permille = 1000 },
	};
	struct host_params p = flash_params(t);
	struct flash_params slower;
	struct flash_scenario s;

	flash_open(&s, t, &p, FLASH_FTL_HOST, low, 2);
	spend(t, &s, 4 * SEC, "10 % full");
	flash_close(&s);
	flash_open(&s, t, &p, FLASH_FTL_HOST, high, 2);
	spend(t, &s, 4 * SEC, "90 % full");
	slower = *flash_params_of(s.flash);
	slower.program_ns *= 3;
	slower.erase_ns *= 3;
	flash_retime(s.flash, &slower);
	spend(t, &s, 6 * SEC, "slower");
	flash_close(&s);
}

/* A small hot set, and one spread over cold data; both only write. */
static const struct owner_load writers[] = {
	{ .percent = 5, .turns = 12, .write_permille = 1000 },
	{ .percent = 80, .turns = 2, .write_permille = 1000 },
};

/* Alpha moves the drive to the hot one, whichever way pages are counted. */
static void test_alpha(struct test_case *t)
{
	static const u32 alphas[] = { 0, 10, 100 };
	struct host_params p = flash_params(t);
	double alone[2], both[2], got[2], last;
	u32 share, i;

	flash_none(&p, writers, 0, got);
	alone[0] = got[0];
	flash_none(&p, writers, 1, got);
	alone[1] = got[1];
	flash_none(&p, writers, 2, both);
	note(t, "none %.2f %.2f;", alone[0] / both[0], alone[1] / both[1]);
	for (share = GC_SHARE_FLOW; share <= GC_SHARE_VICTIM; share++)
		for (i = 0, last = 0; i < ARRAY_SIZE(alphas); i++) {
			hwabc_params(&p.sched)->gc_share = share;
			hwabc_params(&p.sched)->alpha_pct = alphas[i];
			flash_play(t, &p, FLASH_FTL_HOST, writers, 2, got);
			note(t, " %s %u: %.2f %.2f;", share ? "victim" : "flow",
			     alphas[i], alone[0] / got[0], alone[1] / got[1]);
			if (got[0] <= last)
				case_fail(
					t,
					"alpha %u, share %u: the hot one has %.1f MB/s, less than with less",
					alphas[i], share, got[0]);
			last = got[0];
			if (got[0] + got[1] < 0.96 * (both[0] + both[1]))
				case_fail(
					t,
					"alpha %u, share %u: %.1f MB/s in all, %.1f without a scheduler",
					alphas[i], share, got[0] + got[1],
					both[0] + both[1]);
		}
	hwabc_params(&p.sched)->gc_share = GC_SHARE_FLOW;
	hwabc_params(&p.sched)->alpha_pct = 10;
	flash_play(t, &p, FLASH_FTL_DEVICE, writers, 2, got);
	note(t, " hidden 10: %.2f %.2f", alone[0] / got[0], alone[1] / got[1]);
	if (got[0] <= both[0])
		case_fail(
			t,
			"hidden: the hot one has %.1f MB/s, %.1f without a scheduler",
			got[0], both[0]);
}

static double true_ratio(const struct flash_scenario *s, u32 i)
{
	struct flash_usage usage;

	port_assert(flash_usage(s->flash, s->flow[i]->id, &usage));
	return (double)usage.valid / (double)max(usage.invalid, 1ULL);
}

static double judged_ratio(const struct flash_scenario *s, u32 i)
{
	const struct hwabc_flow *hf = flow_own(s->flow[i]->flow);

	return (double)hf->ratio / (1U << HWABC_FACTOR_SHIFT);
}

/*
 * The estimate for a drive that hides its map, beside the truth.  The drive has
 * room for outdated pages of 22 % of its capacity, 8 of spare and 15 unused.
 * The parameter says 20.
 */
static void test_estimate(struct test_case *t)
{
	struct host_params p = flash_params(t);
	struct flash_scenario s;
	double mbps[2], truth, guess;
	u32 window, i;

	flash_open(&s, t, &p, FLASH_FTL_DEVICE, writers, 2);
	flash_run(&s, 2 * SEC, SEC, mbps);
	for (window = 0; window < 8; window++) {
		fixture_run(&s.r, SEC);
		for (i = 0; i < 2; i++) {
			truth = true_ratio(&s, i);
			guess = judged_ratio(&s, i);
			note(t, "%s %.2f, truth %.2f; ", i ? "spread" : "hot",
			     guess, truth);
			if (guess > 1.5 * truth || guess < truth / 1.5)
				case_fail(
					t,
					"flow %u after %u s: %.2f instead of %.2f",
					i, window + 4, guess, truth);
		}
	}
	flash_close(&s);
	/* Where it is not hidden nothing is guessed. */
	flash_open(&s, t, &p, FLASH_FTL_HOST, writers, 2);
	flash_run(&s, SEC, SEC, mbps);
	for (i = 0; i < 2; i++)
		if (fabs(judged_ratio(&s, i) - true_ratio(&s, i)) >
		    0.05 * true_ratio(&s, i))
			case_fail(
				t,
				"flow %u: %.2f instead of %.2f, which is known",
				i, judged_ratio(&s, i), true_ratio(&s, i));
	flash_close(&s);
}

const struct test hwabc_tests[] = {
	{ "hwabc/weights", test_weights, true },
	{ "hwabc/slow", test_slow, true },
	{ "hwabc/writer", test_writer, true },
	{ "hwabc/conserving", test_conserving, false },
	{ "hwabc/light-slow", test_light_slow, false },
	{ "hwabc/sizes", test_sizes, false },
	{ "hwabc/paper", test_paper, true },
	{ "hwabc/slow-host", test_slow_host, true },
	{ "hwabc/light-flash", test_light_flash, false },
	{ "hwabc/spent", test_spent, false },
	{ "hwabc/alpha", test_alpha, true },
	{ "hwabc/estimate", test_estimate, false },
	{ NULL, NULL, false },
};
