// SPDX-License-Identifier: GPL-2.0
/*
 * All schedulers on the same drive of flash/: shares of bytes, and of the time
 * that its planes are busy.  A P4500 of 1 GiB, 85 % full and collecting, 128
 * slots, four queues; each tenant asks for more than its part of the slots.
 * kyber-fair has as many for reads, and as many for writes.
 */
#include "fifo.h"
#include "scenario.h"
#include "sched/core/policies.h"

enum {
	DRIVE_SLOTS	= 128,
	/* The buffer is full, budgets have settled, hwabc has learned. */
	WARM_MS		= 1000,
	MEASURED_MS	= 1500,
};

/* Of one scheduler. */
struct result {
	u64 total;
	double of_bytes, of_time;	/* Jain's index, relative to weights */
	double first;			/* the first tenant's part of the time */
};

static void busy_of(const struct scenario *s, const struct flash *f, double *ns)
{
	struct flash_usage usage;
	u32 i;

	for (i = 0; i < s->n; i++) {
		flash_usage(f, s->flow[i]->id, &usage);
		ns[i] = (double)usage.busy_ns;
	}
}

static void judge_time(const struct scenario *s, const double *before,
		       const double *after, struct result *r)
{
	double sum = 0, squares = 0, all = 0;
	u32 i;

	for (i = 0; i < s->n; i++) {
		double part = (after[i] - before[i]) / s->tenant[i].weight;

		sum += part;
		squares += part * part;
		all += after[i] - before[i];
	}
	r->of_time = sum * sum / (s->n * squares);
	r->first = (after[0] - before[0]) / all;
}

static struct result play(struct test_case *t, const struct sched_ops *ops,
			  u32 cost, enum flash_ftl ftl, struct tenant *tenant,
			  u32 n)
{
	struct host_params p = { .seed = 1, .nr_queues = 4, .ops = ops };
	double before[SCENE_TENANTS], after[SCENE_TENANTS];
	struct test_case own = { .ops = ops };
	struct outcome o;
	struct result r;
	struct scenario s;
	u32 pages, i;

	p.device.flash = scenario_drive(ftl, &pages);
	for (i = 0; i < n; i++)
		tenant[i].pages = pages;
	sched_params_init(ops, &p.sched);
	p.sched.isolation = 0;
	p.sched.depth = ops == &fifo_ops ? DEPTH_MAX : DRIVE_SLOTS;
	p.sched.cost.kind = cost;
	scenario_open(&s, &own, &p, tenant, n);
	fixture_run(&s.r, WARM_MS * MS);
	scenario_begin(&s);
	busy_of(&s, p.device.flash, before);
	fixture_run(&s.r, MEASURED_MS * MS);
	scenario_end(&s, &o);
	busy_of(&s, p.device.flash, after);
	r = (struct result){ .total = o.total, .of_bytes = o.index };
	judge_time(&s, before, after, &r);
	scenario_close(&s);
	flash_destroy(p.device.flash);
	if (case_failed(&own))
		case_fail(t, "%s", own.failure);
	return r;
}

static struct result show(struct test_case *t, const struct sched_ops *ops,
			  u32 cost, enum flash_ftl ftl, struct tenant *tenant,
			  u32 n, u64 none)
{
	struct result r = play(t, ops, cost, ftl, tenant, n);

	printf("# %s%s%s: total / none %.3f, Jain of bytes %.4f, of time %.4f, the first has %.3f of the time\n",
	       ops == &fifo_ops ? "none" : ops->name,
	       cost == COST_LEARNED ? ", learned" : "",
	       ftl == FLASH_FTL_HOST ? ", map on the host" : "",
	       none ? (double)r.total / (double)none : 1.0, r.of_bytes,
	       r.of_time, r.first);
	return r;
}

enum {
	KYBER_FAIR	= 2,
};

static const struct sched_ops *const by_weight[] = {
	&mqfq_ops, &ifq_ops, [KYBER_FAIR] = &kyber_fair_ops, &wdt_ops,
};

/* Half reads and half writes: alike, so that equal bytes are equal time. */
static void test_mixed(struct test_case *t)
{
	struct tenant tenant[4];
	struct result none, r;
	u32 i;

	scenario_four(tenant, 192, 4 * KIB, 500);
	none = show(t, &fifo_ops, COST_BYTES, FLASH_FTL_DEVICE, tenant, 4, 0);
	for (i = 0; i <= ARRAY_SIZE(by_weight); i++) {
		bool last = i == ARRAY_SIZE(by_weight);

		r = show(t, last ? &hwabc_ops : by_weight[i],
			 last ? COST_LEARNED : COST_BYTES,
			 last ? FLASH_FTL_HOST : FLASH_FTL_DEVICE, tenant, 4,
			 none.total);
		if (min(r.of_bytes, r.of_time) < 0.99)
			case_fail(t, "%u: Jain of bytes %.4f, of time %.4f", i,
				  r.of_bytes, r.of_time);
		if (r.total * 1000 < none.total * 970)
			case_fail(t, "%u: %llu bytes, %llu without a scheduler",
				  i, r.total, none.total);
	}
}

/*
 * A reader and a writer of equal weight: by bytes the reader has a sixth of the
 * time.  hwabc charges a writer more than its time.  kyber-fair, for which a
 * buffered write is cheap, is shown.
 */
static void test_reader_writer(struct test_case *t)
{
	struct tenant tenant[2] = {
		{ .weight = 100, .depth = 2 * DRIVE_SLOTS, .bytes = 4 * KIB },
		{ .weight = 100,
		  .depth = 2 * DRIVE_SLOTS,
		  .bytes = 4 * KIB,
		  .write_permille = 1000 },
	};
	static const struct sched_ops *const learn[] = { &mqfq_ops, &wdt_ops };
	struct result none, r;
	u32 i;

	none = show(t, &fifo_ops, COST_BYTES, FLASH_FTL_DEVICE, tenant, 2, 0);
	for (i = 0; i < ARRAY_SIZE(by_weight); i++) {
		r = show(t, by_weight[i], COST_BYTES, FLASH_FTL_DEVICE, tenant,
			 2, none.total);
		if (i != KYBER_FAIR && (r.of_bytes < 0.97 || r.first > 0.25))
			case_fail(
				t,
				"%s: Jain of bytes %.4f, the reader has %.3f of the time",
				by_weight[i]->name, r.of_bytes, r.first);
	}
	for (i = 0; i < ARRAY_SIZE(learn); i++) {
		r = show(t, learn[i], COST_LEARNED, FLASH_FTL_HOST, tenant, 2,
			 none.total);
		if (r.of_time < 0.99)
			case_fail(t, "%s, learned: Jain of time %.4f",
				  learn[i]->name, r.of_time);
	}
	r = show(t, &hwabc_ops, COST_LEARNED, FLASH_FTL_HOST, tenant, 2,
		 none.total);
	if (r.first < 0.5)
		case_fail(t, "hwabc: the reader has %.3f of the time", r.first);
}

const struct test flash_tests[] = {
	{ "flash/mixed", test_mixed, false },
	{ "flash/reader-writer", test_reader_writer, false },
	{ NULL, NULL, false },
};
