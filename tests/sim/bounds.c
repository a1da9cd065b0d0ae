// SPDX-License-Identifier: GPL-2.0
/*
 * The inequalities of the paper, over random arrivals, weights, sizes, queues
 * and devices, for all intervals at once.
 */
#include "fixture.h"
#include "sched/mqfq/mqfq_params.h"

enum {
	SEEDS	= 12,
};

struct mix {
	u32 threshold, depth;
};

static u32 pick(struct rng *rng, const u32 *from, u32 n)
{
	return from[rng_between(rng, 0, n - 1)];
}

static struct host_params mix_params(struct test_case *t, const struct mix *mix,
				     u64 seed, struct rng *rng)
{
	static const u32 queues[] = { 1, 2, 3, 8 };
	static const u32 slots[] = { 1, 4, 16, 64 };
	struct host_params p = fixture_params(t, seed);

	p.nr_queues = pick(rng, queues, ARRAY_SIZE(queues));
	p.queues_per_core = (u32)rng_between(rng, 1, 2);
	p.cores_per_socket = (u32)rng_between(rng, 1, 3);
	mqfq_params(&p.sched)->threshold = mix->threshold;
	p.sched.depth = mix->depth;
	p.device.slots = pick(rng, slots, ARRAY_SIZE(slots));
	p.device.base_ns = rng_between(rng, 0, 20 * US);
	p.device.ns_per_kib = rng_between(rng, 1, 300);
	p.wake_ns = rng_chance(rng, 500) ? 5 * US : 0;
	/* No flow becomes inactive before the end: shares have to be constant. */
	p.no_tick = rng_chance(rng, 500);
	return p;
}

/* Steady, bursty, thinking and random tenants. */
static void mix_load(struct fixture *r, struct host_flow *flow, struct rng *rng)
{
	struct load_params p = {
		.flow = flow,
		.nr_queues = r->host->params.nr_queues,
		.depth = (u32)rng_between(rng, 1, 40),
		.bytes = 512U << rng_between(rng, 0, 11),
		.start_ns = MS,
	};

	if (rng_chance(rng, 600)) {
		p.bytes = 512;
		p.bytes_max = 1 * MIB;
	}
	if (rng_chance(rng, 300))
		p.arrival_ns = rng_between(rng, 1 * US, 100 * US);
	else if (rng_chance(rng, 500))
		p.think_ns = rng_between(rng, 0, 500 * US);
	p.think_random = true;
	if (rng_chance(rng, 300)) {
		p.on_ns = rng_between(rng, 100 * US, 5 * MS);
		p.off_ns = rng_between(rng, 100 * US, 5 * MS);
	}
	if (rng_chance(rng, 200)) {
		p.first_queue = (u32)rng_between(rng, 0, p.nr_queues - 1);
		p.nr_queues = 1;
	}
	fixture_load(r, &p);
}

/* Every flow becomes active, and sees that the others have. */
static void mix_activate(struct fixture *r, struct host_flow *flow)
{
	fixture_add(r, flow, .depth = 1, .bytes = 512, .stop_ns = MS / 2);
}

static void mix_run(struct test_case *t, const struct mix *mix, u64 seed,
		    u64 *tightest)
{
	struct host_params params;
	struct rng rng;
	struct fixture r;
	u32 i, flows;

	rng_init(&rng, seed);
	params = mix_params(t, mix, seed, &rng);
	fixture_open(&r, t, &params);
	flows = (u32)rng_between(&rng, 2, 6);
	for (i = 0; i < flows; i++) {
		u32 weight = (u32)rng_between(&rng, 1, 10) *
			     (u32)rng_between(&rng, 1, 30);
		struct host_flow *flow = fixture_flow(&r, NULL, weight);

		mix_activate(&r, flow);
		mix_load(&r, flow, &rng);
		if (rng_chance(&rng, 300))
			mix_load(&r, flow, &rng);
	}
	host_run(r.host, MS - 1);
	bound_start(&r);
	fixture_run(&r, 40 * MS);
	bound_check(&r);
	*tightest = max(*tightest, r.bound.tightest);
	fixture_close(&r);
}

static void mix_run_all(struct test_case *t, const struct mix *mix, u32 n)
{
	u64 tightest = 0, seed;
	u32 i;

	for (i = 0; i < n; i++)
		for (seed = 1; seed <= SEEDS; seed++) {
			mix_run(t, &mix[i], seed * 1000 + i, &tightest);
			if (case_failed(t))
				return;
		}
	/* A limit that nothing comes near would prove little. */
	if (tightest < 500)
		case_fail(t, "no case came near its bound: %llu permille",
			  tightest);
	case_note(t, "greatest difference is %llu permille of its bound",
		  tightest);
}

static void test_sfq(struct test_case *t)
{
	static const struct mix mix[] = { { 0, 1 } };

	mix_run_all(t, mix, ARRAY_SIZE(mix));
}

static void test_threshold(struct test_case *t)
{
	static const struct mix mix[] = {
		{ 1, 1 },
		{ 4 * KIB, 1 },
		{ 64 * KIB, 1 },
		{ 1 * MIB, 1 },
	};

	mix_run_all(t, mix, ARRAY_SIZE(mix));
}

static void test_depth(struct test_case *t)
{
	static const struct mix mix[] = {
		{ 0, 2 },	{ 0, 16 },	  { 0, 128 },
		{ 4 * KIB, 2 }, { 64 * KIB, 16 }, { 1 * MIB, 128 },
	};

	mix_run_all(t, mix, ARRAY_SIZE(mix));
}

const struct test bound_tests[] = {
	{ "bound/one-at-a-time", test_sfq, true },
	{ "bound/threshold", test_threshold, true },
	{ "bound/depth", test_depth, true },
	{ NULL, NULL, false },
};
