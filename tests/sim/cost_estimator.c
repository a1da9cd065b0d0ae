// SPDX-License-Identifier: GPL-2.0
/*
 * cost=learned on a drive with a known account of its time: the part of each
 * flow in that time.  A P4500 of 1 GiB, 85 % full and collecting, 128 slots; two
 * tenants of equal weight, each with twice as many requests.
 */
#include <math.h>

#include "scenario.h"
#include "tests/params.h"
#include "sched/cost/cost_estimator.h"
#include "sched/core/policies.h"

enum {
	DRIVE_SLOTS	= 128,
	/* The first trial is over, and the rest after it has not ended. */
	LEARNED_MS	= 4000,
	TOLD_MS		= 1000,
	FULL_MS		= 500,		/* the write buffer, by then */
	MEASURED_MS	= 1000,
	/* Of a device without flash. */
	READ_US		= 400,
	WRITE_TIMES	= 3,
};

struct asks {
	u32 bytes, write_permille;
};

struct owned {
	struct flash *flash;
	struct fixture r;
	struct host_flow *flow[2];
	u64 before[2];
};

static void owned_open(struct owned *o, struct test_case *t,
		       const struct sched_ops *ops, u32 cost,
		       enum flash_ftl ftl, const struct asks *asks)
{
	struct host_params p = { .seed = 1, .nr_queues = 4, .ops = ops };
	u32 pages, i;

	*o = (struct owned){ .flash = scenario_drive(ftl, &pages) };
	sched_params_init(ops, &p.sched);
	p.sched.isolation = 0;
	p.sched.depth = DRIVE_SLOTS;
	params_put(ops, &p.sched, "threshold_kb", 64 * KIB);
	p.sched.cost.kind = cost;
	p.device.flash = o->flash;
	fixture_open(&o->r, t, &p);
	for (i = 0; i < 2; i++) {
		const struct load_params load = {
			.flow = o->flow[i] = fixture_flow(&o->r, NULL, 100),
			.nr_queues = p.nr_queues,
			.depth = 2 * DRIVE_SLOTS,
			.bytes = asks[i].bytes,
			.write_permille = asks[i].write_permille,
			.pages = pages,
		};

		fixture_load(&o->r, &load);
	}
}

static u64 busy_ns(const struct owned *o, u32 i)
{
	struct flash_usage usage;

	flash_usage(o->flash, o->flow[i]->id, &usage);
	return usage.busy_ns;
}

static void owned_close(struct owned *o)
{
	fixture_close(&o->r);
	flash_destroy(o->flash);
}

/* The first tenant's part of the drive's time. */
static double part_of_time(struct test_case *t, const struct sched_ops *ops,
			   u32 cost, enum flash_ftl ftl,
			   const struct asks *asks, u64 warm_ms)
{
	struct test_case own = { .ops = ops };
	double got[2];
	struct owned o;
	u32 i;

	owned_open(&o, &own, ops, cost, ftl, asks);
	fixture_run(&o.r, warm_ms * MS);
	for (i = 0; i < 2; i++)
		o.before[i] = busy_ns(&o, i);
	fixture_run(&o.r, MEASURED_MS * MS);
	for (i = 0; i < 2; i++)
		got[i] = (double)(busy_ns(&o, i) - o.before[i]);
	owned_close(&o);
	if (case_failed(&own))
		case_fail(t, "%s", own.failure);
	return got[0] / (got[0] + got[1]);
}

static void both_costs(struct test_case *t, const struct asks *asks,
		       double bytes_most, double off)
{
	static const struct sched_ops *const ops[] = { &mqfq_ops, &wdt_ops };
	char said[128] = "";
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		double bytes = part_of_time(t, ops[i], COST_BYTES,
					    FLASH_FTL_DEVICE, asks, FULL_MS);
		double learned = part_of_time(t, ops[i], COST_LEARNED,
					      FLASH_FTL_DEVICE, asks,
					      LEARNED_MS);
		size_t used = strlen(said);

		snprintf(said + used, sizeof(said) - used,
			 "%s: %.3f by bytes, %.3f learned; ", ops[i]->name,
			 bytes, learned);
		if (bytes > bytes_most || learned < 0.5 - off ||
		    learned > 0.5 + off)
			case_fail(
				t,
				"%s: the first has %.3f of the time by bytes, %.3f learned",
				ops[i]->name, bytes, learned);
	}
	case_note(t, "%s", said);
}

/* By bytes the reader has a sixth: a write keeps dies busy for 5.4 reads. */
static void test_writer(struct test_case *t)
{
	static const struct asks asks[] = {
		{ 4 * KIB, 0 },
		{ 4 * KIB, 1000 },
	};

	both_costs(t, asks, 0.25, 0.1);
}

/*
 * Pages lie where they were written last, so 64 KiB are sixteen reads: bytes are
 * right, and what is learned may not be much worse.
 */
static void test_large(struct test_case *t)
{
	static const struct asks asks[] = {
		{ 4 * KIB, 0 },
		{ 64 * KIB, 0 },
	};

	both_costs(t, asks, 0.51, 0.06);
}

/* Where the host has the map, the planes' account is learned from at once. */
static void test_told(struct test_case *t)
{
	static const struct asks asks[][2] = {
		{ { 4 * KIB, 0 }, { 4 * KIB, 1000 } },
		{ { 4 * KIB, 0 }, { 64 * KIB, 0 } },
		{ { 4 * KIB, 500 }, { 16 * KIB, 0 } },
	};
	static const struct sched_ops *const ops[] = { &mqfq_ops, &wdt_ops };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(asks); i++)
		for (k = 0; k < ARRAY_SIZE(ops); k++) {
			double part = part_of_time(t, ops[k], COST_LEARNED,
						   FLASH_FTL_HOST, asks[i],
						   TOLD_MS);

			note(t, "%s %.3f; ", ops[k]->name, part);
			if (part < 0.46 || part > 0.54)
				case_fail(
					t,
					"%s, case %u: the first has %.3f of the time",
					ops[k]->name, i, part);
		}
}

/* No trial measures writes for which no flow waits, and reads pay for none. */
static void test_few_writes(struct test_case *t)
{
	static const struct asks asks[] = {
		{ 4 * KIB, 0 },
		{ 4 * KIB, 5 },
	};
	struct test_case own = { .ops = &mqfq_ops };
	struct owned o;

	owned_open(&o, &own, &mqfq_ops, COST_LEARNED, FLASH_FTL_DEVICE, asks);
	fixture_run(&o.r, SEC);
	if (o.r.host->sched.cost_estimator->trials ||
	    o.r.host->sched.cost_estimator->deferred)
		case_fail(t, "tried for a write in four hundred requests");
	owned_close(&o);
	if (case_failed(&own))
		case_fail(t, "%s", own.failure);
}

static void expect_learned(struct test_case *t, const struct host *h,
			   double read_us, double write_us, const char *when)
{
	double read = scenario_learned_us(h, IO_READ),
	       write = scenario_learned_us(h, IO_WRITE);

	note(t, "%s %.1f and %.1f us; ", when, read, write);
	if (fabs(read - read_us) > read_us / 10 ||
	    fabs(write - write_us) > write_us / 10)
		case_fail(t, "%s: %.1f and %.1f us instead of %.1f and %.1f",
			  when, read, write, read_us, write_us);
}

/*
 * A device of 16 slots.  mqfq finds the costs after 5 s, and 10 s after they have
 * changed.
 */
static void test_costs(struct test_case *t)
{
	static const struct tenant tenant[] = {
		{ .weight = 100, .depth = 32, .bytes = 4 * KIB },
		{ .weight = 100,
		  .depth = 32,
		  .bytes = 4 * KIB,
		  .write_permille = 1000 },
		{ .weight = 200,
		  .depth = 32,
		  .bytes = 4 * KIB,
		  .write_permille = 300 },
	};
	struct host_params p = scenario_params(t, &mqfq_ops);
	struct scenario s;

	p.device.base_ns = READ_US * US;
	p.device.write_times = WRITE_TIMES;
	p.sched.depth = 16;
	params_put(&mqfq_ops, &p.sched, "threshold_kb", 0);
	p.sched.cost.kind = COST_LEARNED;
	scenario_open(&s, t, &p, tenant, ARRAY_SIZE(tenant));
	fixture_run(&s.r, 5 * SEC);
	expect_learned(t, s.r.host, READ_US, READ_US * WRITE_TIMES, "at first");
	s.r.host->device.params.write_times = 3 * WRITE_TIMES;
	fixture_run(&s.r, 10 * SEC);
	expect_learned(t, s.r.host, READ_US, READ_US * 3 * WRITE_TIMES,
		       "slower");
	scenario_close(&s);
}

const struct test cost_estimator_tests[] = {
	{ "learner/writer", test_writer, false },
	{ "learner/large", test_large, false },
	{ "learner/told", test_told, false },
	{ "learner/few-writes", test_few_writes, false },
	{ "learner/costs", test_costs, false },
	{ NULL, NULL, false },
};
