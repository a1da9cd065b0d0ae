// SPDX-License-Identifier: GPL-2.0
/*
 * Isolation at its default on a 980 PRO of 256 MiB, filled at random.  In case A
 * a reader of weight 1000 keeps one read of 4 KiB.  Jobs of weight 100 keep 128
 * of 64 KiB.  The figures are relative to none on the same drive.
 *
 * A trial of the window takes tens of milliseconds, and its drive time belongs to the
 * figures of the spans that it meets.  So spans of less than a second are played with
 * several seeds, and the judge has the sums.
 */
#include <string.h>

#include "fifo.h"
#include "scenario.h"
#include "sched/core/policies.h"

enum {
	QUEUES		= 4,
	MODEL_MIB	= 256,
	WINDOWS_MOST	= 3,
	SEEDS_MOST	= 6,
	/* A flow that is short may cost this, and a wrong capacity a little. */
	BOUND		= 10 * ISOLATION_AUTO + 30,
};

#define WARM	(200 * MS)
#define MEASURED (400 * MS)
#define MEASURED_LEAST (1200 * MS)

/* A change of the drive, at the beginning of a span. */
enum event_kind {
	NO_CHANGE,
	STALL,			/* for 300 ms, which belong to no span */
	SLOWER,			/* all times are doubled */
	FASTER,			/* as at first */
};

/* A run has spans, one after the other, of a time each. */
struct span {
	enum event_kind change;
	u64 skip_ns, ns;	/* not measured; measured */
};

struct setting {
	const struct sched_ops *ops;
	u32 depth;		/* 0: found */
	u32 start;		/* D is found from here on; 0: as by default */
	bool off;		/* isolation=0 */
	enum flash_ftl ftl;	/* the drive keeps its map, or the host */
};

struct run {
	struct outcome window[WINDOWS_MOST];
	u32 size, trials;		/* of the window, at the end */
};

static void slow_down(struct flash *f)
{
	struct flash_params p = *flash_params_of(f);

	p.command_ns *= 2;
	p.read_fixed_ns *= 2;
	p.write_fixed_ns *= 2;
	p.link_ns *= 2;
	p.channel_ns *= 2;
	p.read_ns *= 2;
	p.program_ns *= 2;
	p.erase_ns *= 2;
	flash_retime(f, &p);
}

static void change(struct scenario *s, struct flash *f, enum event_kind kind)
{
	struct host *h = s->r.host;

	if (kind == SLOWER)
		slow_down(f);
	if (kind == FASTER)
		flash_retime(f, flash_model("980pro"));
	if (kind != STALL)
		return;
	device_stall(&h->device, host_now(h) + 300 * MS);
	fixture_run(&s->r, 300 * MS);
}

/* Adds the outcome of one seed. */
static void sum_up(struct outcome *sum, const struct outcome *o, u32 seeds)
{
	u32 i;

	for (i = 0; i < SCENE_TENANTS; i++) {
		sum->bytes[i] += o->bytes[i];
		sum->p50_ns[i] += o->p50_ns[i] / seeds;
		sum->p99_ns[i] += o->p99_ns[i] / seeds;
	}
	sum->total += o->total;
	sum->index += o->index / seeds;
}

static void play_seed(struct test_case *t, const struct setting *setting,
		      const struct tenant *tenant, u32 n,
		      const struct span *window, u32 windows, u32 seed,
		      struct run *run)
{
	struct test_case own = { .ops = setting->ops };
	struct host_params p = { .seed = seed,
				 .nr_queues = QUEUES,
				 .ops = setting->ops,
				 .wake_ns = 2 * US,
				 .audit_at_end = true };
	struct tenant readers[SCENE_TENANTS];
	struct scenario s;
	struct flash *f;
	u32 i, pages;

	f = fixture_full_drive(setting->ftl, MODEL_MIB, SCENE_TENANTS);
	pages = flash_pages(f);
	p.device.flash = f;
	fixture_defaults(setting->ops, &p.sched);
	if (setting->off)
		p.sched.isolation = 0;
	if (setting->depth || setting->ops == &fifo_ops) {
		p.sched.depth = setting->depth ? setting->depth : DEPTH_MAX;
		p.sched.depth_most = 0;
	}
	/* depth_most is set, so D is found. */
	if (setting->start)
		p.sched.depth = setting->start;
	for (i = 0; i < n; i++) {
		readers[i] = tenant[i];
		readers[i].pages = pages;
	}
	scenario_open(&s, &own, &p, readers, n);
	for (i = 0; i < windows; i++) {
		change(&s, f, window[i].change);
		fixture_run(&s.r, window[i].skip_ns);
		scenario_begin(&s);
		fixture_run(&s.r, window[i].ns);
		scenario_end(&s, &run->window[i]);
	}
	run->size = s.r.host->sched.isolation.window.size;
	run->trials = s.r.host->sched.isolation.window.trials;
	scenario_close(&s);
	flash_destroy(f);
	if (!case_failed(&own))
		return;
	case_fail(t, "%s", own.failure);
	t->host_failed = own.host_failed;
}

/* Returns the seeds with which the shortest span of @window is MEASURED_LEAST. */
static u32 seeds_of(const struct span *window, u32 windows)
{
	u64 least = MEASURED_LEAST;
	u32 i;

	for (i = 0; i < windows; i++)
		least = min(least, window[i].ns);
	return min((u32)(MEASURED_LEAST / least), (u32)SEEDS_MOST);
}

/* The size of the window and the trials in @run are those of the last seed. */
static void play(struct test_case *t, const struct setting *setting,
		 const struct tenant *tenant, u32 n, const struct span *window,
		 u32 windows, struct run *run)
{
	u32 seeds = seeds_of(window, windows), seed, i;
	struct run one;

	*run = (struct run){ 0 };
	for (seed = 1; seed <= seeds; seed++) {
		play_seed(t, setting, tenant, n, window, windows, seed, &one);
		for (i = 0; i < windows; i++)
			sum_up(&run->window[i], &one.window[i], seeds);
		run->size = one.size;
		run->trials = one.trials;
	}
}

static const struct setting none = { .ops = &fifo_ops,
				     .depth = DEPTH_MAX,
				     .off = true };
static const struct span once = { .skip_ns = WARM, .ns = MEASURED };

static const struct tenant case_a[] = {
	{ .weight = 1000, .depth = 1, .bytes = 4 * KIB },
	{ .weight = 100, .depth = 128, .bytes = 64 * KIB },
};
static const struct tenant case_b[] = {
	{ .weight = 1000, .depth = 64, .bytes = 4 * KIB },
	{ .weight = 100, .depth = 256, .bytes = 4 * KIB },
};

/* One part in a thousand of @whole. */
static u64 permille(u64 part, u64 whole)
{
	return part * 1000 / max(whole, 1ULL);
}

/*
 * The reader is slowed at most half as much as under none, at @least_total
 * thousandths of the throughput.
 */
static void expect_isolated(struct test_case *t, const char *what,
			    const struct outcome *o, const struct outcome *n,
			    u32 least_total)
{
	u64 total = permille(o->total, n->total);
	u64 gain = permille(o->bytes[0], n->bytes[0]);

	note(t, "%s: the reader %llu permille of none's, total %llu; ", what,
	     gain, total);
	if (gain < 2000)
		case_fail(t, "%s: the reader does %llu permille of none's",
			  what, gain);
	if (total < least_total)
		case_fail(t, "%s: the total is %llu permille of none's", what,
			  total);
}

/* --------------------------------------------------------------------- tests */

/*
 * Under each scheduler, whatever its order outside the drive.  hwabc needs 0.6 s
 * to settle.
 */
static void test_reader(struct test_case *t)
{
	const struct setting own = { .ops = t->ops };
	const struct span settled = { .skip_ns = 800 * MS, .ns = 300 * MS };
	struct run r, n;

	play(t, &none, case_a, 2, &settled, 1, &n);
	play(t, &own, case_a, 2, &settled, 1, &r);
	expect_isolated(t, "A", &r.window[0], &n.window[0], 870);
}

/* Enough slots for all: no calibration is better than a wrong one. */
static void test_many_slots(struct test_case *t)
{
	const struct setting own = { .ops = t->ops, .depth = 512 };
	const struct setting start = { .ops = t->ops, .start = 512 };
	struct run r, n;

	play(t, &none, case_a, 2, &once, 1, &n);
	play(t, &own, case_a, 2, &once, 1, &r);
	expect_isolated(t, "D = 512", &r.window[0], &n.window[0], 880);
	/* As `mqfair enable --calibrate` sets it: a start. */
	play(t, &start, case_a, 2, &once, 1, &r);
	expect_isolated(t, "512 auto", &r.window[0], &n.window[0], 880);
}

/*
 * Returns the greatest part of the first tenant with a fixed depth that keeps the
 * total within the price of isolation, in thousandths.
 */
static u64 best_part(struct test_case *t, const struct tenant *tenant,
		     const struct span *span, u64 total_none)
{
	struct setting fixed = { .ops = t->ops, .off = true };
	u64 best = 0;
	struct run r;

	for (fixed.depth = 32; fixed.depth <= 512; fixed.depth *= 2) {
		play(t, &fixed, tenant, 2, span, 1, &r);
		if (permille(r.window[0].total, total_none) >=
		    1000 - 10 * ISOLATION_AUTO)
			best = max(best, permille(r.window[0].bytes[0],
						  r.window[0].total));
	}
	return best;
}

/*
 * A tenant with 64 requests, which is due ten elevenths.  It gets as much of it as
 * with any fixed depth, at the same price.
 */
static void test_deep_reader(struct test_case *t)
{
	const struct setting own = { .ops = t->ops };
	const struct span settled = { .skip_ns = 800 * MS, .ns = 400 * MS };
	u64 part, best, total;
	struct run r, n;

	play(t, &none, case_b, 2, &settled, 1, &n);
	play(t, &own, case_b, 2, &settled, 1, &r);
	best = best_part(t, case_b, &settled, n.window[0].total);
	part = permille(r.window[0].bytes[0], r.window[0].total);
	total = permille(r.window[0].total, n.window[0].total);
	note(t, "part %llu permille, %llu with the best depth, total %llu",
	     part, best, total);
	if (total < 870)
		case_fail(t, "the total is %llu permille of none's", total);
	if (part * 10 < best * 8)
		case_fail(t, "the part is %llu permille, %llu were possible",
			  part, best);
}

/* Tenants with enough requests outside are not short: nothing is given up. */
static void test_no_short_flow(struct test_case *t)
{
	const struct setting on = { .ops = t->ops },
			     off = { .ops = t->ops, .depth = 256, .off = true };
	const struct span settled = { .skip_ns = 1000 * MS, .ns = 1000 * MS };
	struct tenant tenant[4];
	struct run r, without;
	u64 total;

	scenario_four(tenant, 256, 4 * KIB, 0);
	play(t, &on, tenant, 4, &settled, 1, &r);
	play(t, &off, tenant, 4, &settled, 1, &without);
	total = permille(r.window[0].total, without.window[0].total);
	note(t, "index %.5f, total %llu permille, window %u, %u trials",
	     r.window[0].index, total, r.size, r.trials);
	scenario_expect_index(t, &r.window[0], 0.999, "on");
	if (total < 990)
		case_fail(t, "the total is %llu permille of isolation=0",
			  total);
}

/*
 * Tenants of 4 and 64 KiB with deep queues.  The drive shares by number, so the
 * heavier tenant of 4 KiB needs more than half of all requests inside.  With
 * 512 slots it has none left to wait outside, and is short.  Each trial of 512
 * then misses its share.
 */
static void test_two_sizes(struct test_case *t)
{
	const struct setting on = { .ops = t->ops };
	struct tenant tenant[4];
	struct run r;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tenant); i++)
		tenant[i] = (struct tenant){
			.weight = 100 * (1 + i),
			.depth = 256,
			.bytes = i % 2 ? 64 * KIB : 4 * KIB,
		};
	play(t, &on, tenant, 4, &once, 1, &r);
	note(t, "index %.5f, window %u, %u trials", r.window[0].index, r.size,
	     r.trials);
	scenario_expect_index(t, &r.window[0], 0.999, "two sizes");
}

/* The others have the whole drive again soon after the reader has gone. */
static void test_visit(struct test_case *t)
{
	const struct setting own = { .ops = t->ops };
	const struct span windows[] = {
		{ .skip_ns = WARM, .ns = 200 * MS },
		{ .skip_ns = 100 * MS, .ns = 200 * MS },
		/* The reader stops at 700 ms. */
		{ .skip_ns = 100 * MS, .ns = 200 * MS },
	};
	struct tenant tenant[2] = { case_a[0], case_a[1] };
	struct run r, n;

	tenant[0].start_ns = 400 * MS;
	tenant[0].stop_ns = 700 * MS;
	play(t, &none, tenant, 2, windows, 3, &n);
	play(t, &own, tenant, 2, windows, 3, &r);
	expect_isolated(t, "visit", &r.window[1], &n.window[1], 880);
	note(t, "before %llu, after %llu permille",
	     permille(r.window[0].total, n.window[0].total),
	     permille(r.window[2].total, n.window[2].total));
	/* A smaller window was taken for the reader; what that may cost is the price. */
	if (r.window[2].total * 1000 < n.window[2].total * 900)
		case_fail(t, "after the visit: %llu bytes, %llu under none",
			  r.window[2].total, n.window[2].total);
}

/*
 * The reader comes for 50 ms in 100.  So short a time is isolated as well,
 * from the first 30 ms on: the others' requests inside go first.
 */
static void test_bursts(struct test_case *t)
{
	const struct setting own = { .ops = t->ops };
	const struct span windows[] = {
		{ .skip_ns = WARM + 200 * MS, .ns = 30 * MS },
		{ .skip_ns = 70 * MS, .ns = 30 * MS },
		{ .skip_ns = 70 * MS, .ns = 30 * MS },
	};
	struct tenant tenant[2] = { case_a[0], case_a[1] };
	struct outcome all = { 0 }, all_none = { 0 };
	struct run r, n;
	u32 i;

	tenant[0].on_ns = 50 * MS;
	tenant[0].off_ns = 50 * MS;
	play(t, &none, tenant, 2, windows, 3, &n);
	play(t, &own, tenant, 2, windows, 3, &r);
	for (i = 0; i < 3; i++) {
		sum_up(&all, &r.window[i], 3);
		sum_up(&all_none, &n.window[i], 3);
	}
	expect_isolated(t, "bursts", &all, &all_none, 880);
}

/*
 * The reader pauses for 12 ms on average after each read.  So it is away for some
 * looks in between.  It is isolated all the same, and the loss is that of a reader
 * that stays.
 */
static void test_now_and_then(struct test_case *t)
{
	const struct setting own = { .ops = t->ops };
	const struct span settled = { .skip_ns = 800 * MS, .ns = 400 * MS };
	struct tenant tenant[2] = { case_a[0], case_a[1] };
	struct run r, n;
	u64 total, most;

	tenant[0].think_ns = 12 * MS;
	play(t, &none, tenant, 2, &settled, 1, &n);
	play(t, &own, tenant, 2, &settled, 1, &r);
	total = permille(r.window[0].total, n.window[0].total);
	note(t, "median %llu us, %llu under none, total %llu permille",
	     r.window[0].p50_ns[0] / US, n.window[0].p50_ns[0] / US, total);
	/* Under wdt it may wait for the next interval, and no window helps. */
	most = strcmp(t->ops->name, "wdt") ? 800 : 1100;
	if (1000 * r.window[0].p50_ns[0] > most * n.window[0].p50_ns[0])
		case_fail(t, "a read takes %llu us, and %llu under none",
			  r.window[0].p50_ns[0] / US,
			  n.window[0].p50_ns[0] / US);
	if (total < 890)
		case_fail(t, "the total is %llu permille of none's", total);
}

/*
 * The host keeps the queues of the planes.  The reader's requests go ahead there
 * too, which costs no throughput.  The pacing is tried and ends.
 */
static void test_host_ftl(struct test_case *t)
{
	const struct setting own = { .ops = t->ops, .ftl = FLASH_FTL_HOST };
	const struct setting fifo = { .ops = &fifo_ops,
				      .depth = DEPTH_MAX,
				      .off = true,
				      .ftl = FLASH_FTL_HOST };
	struct run r, n;
	u64 gain;

	play(t, &fifo, case_a, 2, &once, 1, &n);
	play(t, &own, case_a, 2, &once, 1, &r);
	expect_isolated(t, "host", &r.window[0], &n.window[0], 920);
	gain = permille(r.window[0].bytes[0], n.window[0].bytes[0]);
	if (gain < 7000)
		case_fail(t, "host: the reader does %llu permille of none's",
			  gain);
}

/*
 * Others that ask for little when the drive is paced, and later for much.  The
 * first capacity is far too low for them.
 */
static void test_growing_demand(struct test_case *t)
{
	const struct setting own = { .ops = t->ops };
	const struct span windows[] = {
		{ .skip_ns = WARM, .ns = 100 * MS },
		/* They begin at 300 ms. */
		{ .skip_ns = 20 * MS, .ns = 80 * MS },
	};
	struct tenant tenant[3] = {
		case_a[0],
		{ .weight = 50, .depth = 2, .bytes = 64 * KIB },
		{ .weight = 50,
		  .depth = 126,
		  .bytes = 64 * KIB,
		  .start_ns = 300 * MS },
	};
	struct run r, n;

	play(t, &none, tenant, 3, windows, 2, &n);
	play(t, &own, tenant, 3, windows, 2, &r);
	/* In the first twenty latencies a tenant gets .8 of its due: doc/gauntlet.md, P5. */
	expect_isolated(t, "grown", &r.window[1], &n.window[1], 800);
}

/* No tenant gains above its share, and the others lose no more than agreed. */
static void expect_harmless(struct test_case *t, const char *what,
			    const struct tenant *tenant, u32 n)
{
	const struct setting on = { .ops = t->ops },
			     off = { .ops = t->ops, .off = true };
	const struct span settled = { .skip_ns = 1000 * MS, .ns = 600 * MS };
	struct run r, without;
	u64 total, weights = 0;
	u32 i;

	play(t, &on, tenant, n, &settled, 1, &r);
	play(t, &off, tenant, n, &settled, 1, &without);
	total = permille(r.window[0].total, without.window[0].total);
	note(t, "%s: total %llu permille, window %u, %u trials; ", what, total,
	     r.size, r.trials);
	if (total < 1000 - BOUND)
		case_fail(t, "%s: the total is %llu permille of isolation=0",
			  what, total);
	for (i = 0; i < n; i++)
		weights += tenant[i].weight;
	/* The last one is the victim. */
	for (i = 0; i < n - 1; i++) {
		u64 part = r.window[0].bytes[i] * 1000000 / r.window[0].total;
		u64 due = tenant[i].weight * 1000000ULL / weights;

		if (part * 10 > due * 11)
			case_fail(t, "%s: tenant %u has %llu ppm, %llu are due",
				  what, i, part, due);
	}
}

static void test_adversaries(struct test_case *t)
{
	static const struct tenant victim = { .weight = 1000,
					      .depth = 384,
					      .bytes = 64 * KIB };
	struct tenant tenant[17];
	u32 i;

	tenant[0] = (struct tenant){ .weight = 1000,
				     .depth = 1,
				     .bytes = 4 * KIB,
				     .on_ns = 2 * MS,
				     .off_ns = 2 * MS };
	tenant[1] = victim;
	expect_harmless(t, "pretender", tenant, 2);
	/* It could do far more than its share with requests that pass. */
	tenant[0] = (struct tenant){ .weight = 50,
				     .depth = 8,
				     .bytes = 256 * KIB,
				     .on_ns = 6 * MS,
				     .off_ns = 6 * MS };
	expect_harmless(t, "large requests", tenant, 2);
	for (i = 0; i < 16; i++)
		tenant[i] = (struct tenant){ .weight = 10,
					     .depth = 1,
					     .bytes = 4 * KIB };
	tenant[16] = victim;
	expect_harmless(t, "cgroups", tenant, 17);
}

/* The drive does nothing for 300 ms, or takes twice as long for all. */
static void expect_recovery(struct test_case *t, const char *what,
			    enum event_kind kind)
{
	const struct setting own = { .ops = t->ops };
	const struct span windows[] = {
		{ .skip_ns = WARM, .ns = 200 * MS },
		{ .change = kind, .skip_ns = 200 * MS, .ns = 400 * MS },
	};
	struct run r, n;

	play(t, &none, case_a, 2, windows, 2, &n);
	play(t, &own, case_a, 2, windows, 2, &r);
	expect_isolated(t, what, &r.window[1], &n.window[1], 880);
}

static void test_stall(struct test_case *t)
{
	expect_recovery(t, "stall", STALL);
}

static void test_slower_drive(struct test_case *t)
{
	expect_recovery(t, "twice as slow", SLOWER);
}

/*
 * The drive is slower for a time, and fast again when it has just been paced at
 * the lower rate.  It still empties then.
 */
static void test_faster_drive(struct test_case *t)
{
	const struct setting own = { .ops = t->ops };
	const struct span windows[] = {
		{ .skip_ns = WARM, .ns = 10 * MS },
		{ .change = SLOWER, .skip_ns = 10 * MS, .ns = 10 * MS },
		{ .change = FASTER, .skip_ns = 150 * MS, .ns = 400 * MS },
	};
	struct run r, n;

	play(t, &none, case_a, 2, windows, 3, &n);
	play(t, &own, case_a, 2, windows, 3, &r);
	expect_isolated(t, "fast again", &r.window[2], &n.window[2], 880);
}

/*
 * The driver has fewer tags than D, so a request that passes may wait for a tag,
 * before all others.  A tenant with nearly all of the weight keeps more requests
 * than there are tags.  It is below its share at first, while another tenant's
 * metadata goes on.  Afterwards it leaves the other one its share.
 */
static void test_few_tags(struct test_case *t)
{
	enum {
		LIGHT = 10,
		HEAVY = 1000,
		TAGS = 16
	};
	struct host_params p = fixture_params(t, 1);
	struct load_params metadata = { .depth = 2,
					.bytes = 4 * KIB,
					.urgent_permille = 1000,
					.stop_ns = 1100 * MS };
	struct load_params reads = { .bytes = 4 * KIB };
	struct host_flow *light, *heavy;
	struct fixture r;
	u64 got, all;

	p.device.base_ns = 8 * MS;
	p.tags = TAGS;
	p.sched_tags = 4 * TAGS;
	p.quotas = true;
	p.submit_ns = 300 * US;
	sched_params_init(t->ops, &p.sched);
	fixture_open(&r, t, &p);
	/* This check takes a queue whose driver has no tag for one that may run. */
	r.host->watch.quiet = NULL;
	light = fixture_flow(&r, NULL, LIGHT);
	heavy = fixture_flow(&r, NULL, HEAVY);
	metadata.flow = light;
	fixture_load(&r, &metadata);
	reads.flow = light;
	reads.depth = 1;
	fixture_load(&r, &reads);
	reads.flow = heavy;
	reads.depth = 4 * TAGS;
	reads.start_ns = 1003 * MS;
	fixture_load(&r, &reads);
	fixture_run(&r, 2000 * MS);
	got = light->stats.ios;
	all = got + heavy->stats.ios;
	fixture_run(&r, 12000 * MS);
	got = light->stats.ios - got;
	all = max(light->stats.ios + heavy->stats.ios - all, 1ULL);
	got = got * 1000 * (LIGHT + HEAVY) / (all * LIGHT);
	case_note(t, "%llu permille of its share", got);
	if (got < 900)
		case_fail(t,
			  "a tenant of weight %u got %llu permille of its share",
			  LIGHT, got);
	fixture_close(&r);
}

/*
 * Two queues with as many tags as half of the slots.  The heaviest tenant is due
 * 54 %, and sends to one of them alone.  So it is below its share, though all its
 * requests are in the drive.  It leaves another tenant of that queue its part.
 */
static void play_confined(struct test_case *t, u64 base_ns)
{
	static const u32 weight[] = { 100, 250, 500, 1000 };
	enum {
		TENANTS = 4,
		TAGS = 32
	};
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[TENANTS];
	struct load_params reads = { .bytes = 4 * KIB, .depth = 2 * TAGS };
	struct fixture r;
	u64 got, all;
	u32 i;

	p.nr_queues = 2;
	p.device.slots = 2 * TAGS;
	p.device.base_ns = base_ns;
	p.tags = TAGS;
	p.sched_tags = 2 * TAGS;
	p.quotas = true;
	fixture_defaults(t->ops, &p.sched);
	fixture_open(&r, t, &p);
	/* To this check a queue without a driver tag is one that may run. */
	r.host->watch.quiet = NULL;
	for (i = 0; i < TENANTS; i++) {
		flow[i] = fixture_flow(&r, NULL, weight[i]);
		reads.flow = flow[i];
		reads.first_queue = i / 2;
		fixture_load(&r, &reads);
	}
	fixture_run(&r, 250 * base_ns);
	got = flow[2]->stats.ios;
	all = got + flow[3]->stats.ios;
	fixture_run(&r, 250 * base_ns);
	got = flow[2]->stats.ios - got;
	all = flow[2]->stats.ios + flow[3]->stats.ios - all;
	note(t, "%llu permille of its queue for 333; ", permille(got, all));
	if (permille(got, all) < 300)
		case_fail(t,
			  "a third of the weight got %llu permille of its queue",
			  permille(got, all));
	fixture_close(&r);
}

/* A look is 16 ms or more, and 128 ms or more. */
static void test_confined(struct test_case *t)
{
	play_confined(t, 8 * MS);
	play_confined(t, 64 * MS);
}

const struct test isolation_tests[] = {
	{ "isolation/few-tags", test_few_tags, false },
	{ "isolation/confined", test_confined, false },
	{ "isolation/reader", test_reader, true },
	{ "isolation/now-and-then", test_now_and_then, true },
	{ "isolation/host-ftl", test_host_ftl, true },
	{ NULL, NULL, false },
};

const struct test isolation_long_tests[] = {
	{ "isolation/deep-reader", test_deep_reader, false },
	{ NULL, NULL, false },
};

/* Of mqfq. */
const struct test isolation_mqfq_tests[] = {
	{ "isolation/many-slots", test_many_slots, true },
	{ "isolation/no-short-flow", test_no_short_flow, true },
	{ "isolation/two-sizes", test_two_sizes, true },
	{ "isolation/visit", test_visit, true },
	{ "isolation/bursts", test_bursts, true },
	{ "isolation/growing-demand", test_growing_demand, true },
	{ "isolation/adversaries", test_adversaries, false },
	{ "isolation/stall", test_stall, true },
	{ "isolation/slower-drive", test_slower_drive, true },
	{ "isolation/faster-drive", test_faster_drive, true },
	{ NULL, NULL, false },
};
