// SPDX-License-Identifier: GPL-2.0
/*
 * Nothing is lost, nothing is forgotten, whatever comes and goes.  The checks
 * themselves are in fixture.c and in the host.  After every event they look at
 * slots and virtual time, which never goes back.  Before time moves, no queue
 * waits that could run.  In the end every io was completed and charged.
 */
#include "budget.h"
#include "tests/params.h"
#include "fixture.h"

/* A kind of chaos. */
struct chaos {
	u32 steps;
	u64 step_ns;		/* at most, from one change to the next */
	bool no_tick;
	bool isolation;		/* of any percentage; and D is set or found */
};

static u32 pick(struct rng *rng, const u32 *from, u32 n)
{
	return from[rng_between(rng, 0, n - 1)];
}

static struct host_params chaos_params(struct test_case *t, struct rng *rng,
				       u64 seed)
{
	static const u32 queues[] = { 1, 2, 3, 8, 65, 130 };
	static const u32 thresholds[] = {
		0, 1, 512, 4 * KIB, 64 * KIB, 1 * MIB,
	};
	static const u32 depths[] = { 1, 2, 3, 16, 128 };
	struct host_params p = fixture_params(t, seed);

	p.nr_queues = pick(rng, queues, ARRAY_SIZE(queues));
	p.queues_per_core = (u32)rng_between(rng, 1, 2);
	p.cores_per_socket = (u32)rng_between(rng, 0, 4);
	params_put(t->ops, &p.sched, "threshold_kb",
		   pick(rng, thresholds, ARRAY_SIZE(thresholds)));
	p.sched.depth = pick(rng, depths, ARRAY_SIZE(depths));
	if (budget_family(t->ops))
		budget_chaos(rng, t->ops, &p.sched);
	p.device.slots = (u32)rng_between(rng, 1, 64);
	p.device.base_ns = rng_between(rng, 0, 50 * US);
	p.device.ns_per_kib = rng_between(rng, 1, 100);
	p.wake_ns = rng_chance(rng, 700) ? rng_between(rng, 0, 20 * US) : 0;
	if (rng_chance(rng, 300))
		p.dispatch_delay_ns = rng_between(rng, 1, 10 * US);
	if (rng_chance(rng, 400)) {
		p.refuse_permille = 100;
		p.refuse_ns = rng_between(rng, 0, 50 * US);
	}
	return p;
}

static struct load *chaos_load(struct fixture *r, struct host_flow *flow,
			       struct rng *rng)
{
	struct load_params p = {
		.flow = flow,
		.nr_queues = r->host->params.nr_queues,
		.depth = (u32)rng_between(rng, 1, 64),
		.bytes = 512,
		.bytes_max = 512U << rng_between(rng, 0, 11),
		.write_permille = 300,
		.think_ns = rng_between(rng, 0, 200 * US),
		.think_random = true,
	};

	if (rng_chance(rng, 300))
		p.urgent_permille = 50;
	if (rng_chance(rng, 200))
		p.polled_permille = 100;
	if (rng_chance(rng, 300))
		p.merge_bytes = 4 * KIB;
	if (rng_chance(rng, 300))
		p.arrival_ns = rng_between(rng, 500, 50 * US);
	if (rng_chance(rng, 400)) {
		p.on_ns = rng_between(rng, 10 * US, 3 * MS);
		p.off_ns = rng_between(rng, 10 * US, 3 * MS);
	}
	if (rng_chance(rng, 300)) {
		p.first_queue = (u32)rng_between(rng, 0, p.nr_queues - 1);
		p.nr_queues = 1;
	}
	return fixture_load(r, &p);
}

/* As a user sets it; with a depth of "auto" the number of slots moves, too. */
static void chaos_isolation(struct rng *rng, const struct sched_ops *ops,
			    struct sched_params *p)
{
	const struct tunable *depth = tunable_find(ops->tunables, "depth");
	static const u32 percents[] = { 0, ISOLATION_AUTO, ISOLATION_AUTO,
					ISOLATION_MOST };

	p->isolation = pick(rng, percents, ARRAY_SIZE(percents));
	p->depth_most = 0;
	if (depth && depth->automatic == AUTO_DEPTH && rng_chance(rng, 500))
		p->depth_most = 64;
}

static void chaos_tune(struct fixture *r, const struct chaos *c,
		       struct rng *rng)
{
	static const u32 thresholds[] = { 0, 4 * KIB, 300 * KIB, 1 * MIB };
	static const u32 depths[] = { 1, 4, 40 };
	const struct sched_ops *ops = r->test_case->ops;
	struct sched_params p = r->host->sched.params;

	if (rng_chance(rng, 500))
		params_put(ops, &p, "threshold_kb",
			   pick(rng, thresholds, ARRAY_SIZE(thresholds)));
	if (rng_chance(rng, 500))
		p.depth = pick(rng, depths, ARRAY_SIZE(depths));
	if (rng_chance(rng, 200))
		p.cost.kind = p.cost.kind == COST_BYTES ? COST_IOPS :
							  COST_BYTES;
	if (budget_family(ops))
		budget_chaos(rng, ops, &p);
	if (c->isolation && rng_chance(rng, 200))
		chaos_isolation(rng, ops, &p);
	host_tune(r->host, &p);
}

static void chaos_block(struct fixture *r, struct rng *rng)
{
	struct host *h = r->host;
	u32 queue = (u32)rng_between(rng, 0, h->params.nr_queues - 1);

	if (!h->queues[queue].blocked)
		host_block(h, queue, host_now(h) + rng_between(rng, 0, MS));
}

static void chaos_weigh(struct fixture *r, struct rng *rng)
{
	struct host_flow *hf = r->host->flows;
	u64 skip = rng_between(rng, 0, r->host->nr_flows - 1);

	while (skip-- && hf->next)
		hf = hf->next;
	host_flow_weigh(hf, (u32)rng_between(rng, WEIGHT_MIN, WEIGHT_MAX));
}

/* Changes at random moments. */
static void chaos_run(struct fixture *r, const struct chaos *c, struct rng *rng)
{
	u32 steps = c->steps;

	while (steps-- && !host_failed(r->host)) {
		fixture_run(r, rng_between(rng, 0, c->step_ns));
		switch (rng_between(rng, 0, 3)) {
		case 0:
			chaos_tune(r, c, rng);
			break;
		case 1:
			chaos_block(r, rng);
			break;
		case 2:
			chaos_weigh(r, rng);
			break;
		default:
			break;
		}
	}
}

/* Returns a digest of the run.  *@trials grows by the trials of its window. */
static u64 chaos(struct test_case *t, u64 seed, const struct chaos *c,
		 u64 *trials)
{
	struct host_flow *parent = NULL;
	struct host_params params;
	struct rng rng;
	struct fixture r;
	u64 flows;

	rng_init(&rng, seed);
	params = chaos_params(t, &rng, seed);
	params.no_tick = c->no_tick;
	if (c->isolation)
		chaos_isolation(&rng, t->ops, &params.sched);
	fixture_open(&r, t, &params);
	for (flows = rng_between(&rng, 1, 6); flows; flows--) {
		struct host_flow *flow;

		flow = fixture_flow(&r, parent,
				    (u32)rng_between(&rng, 1, 1000));
		chaos_load(&r, flow, &rng);
		if (rng_chance(&rng, 300))
			parent = flow;
	}
	if (c->isolation)
		fixture_closed(&r, fixture_flow(&r, NULL, 10000), 1, 4 * KIB);
	chaos_run(&r, c, &rng);
	*trials += r.host->sched.isolation.window.trials;
	if (rng_chance(&rng, 300))
		host_drain(r.host);
	fixture_close(&r);
	if (case_failed(t))
		case_note(t, "seed %llu", seed);
	return r.digest;
}

/* Returns the trials of windows. */
static u64 chaos_seeds(struct test_case *t, u64 first, u64 last,
		       const struct chaos *c)
{
	u64 seed, trials = 0;

	last = min(last, first + t->most_seeds - 1);
	for (seed = first; seed <= last && !case_failed(t); seed++)
		chaos(t, seed, c, &trials);
	return trials;
}

/* No blind timer: with tick never called all goes on as well. */
static void test_no_tick(struct test_case *t)
{
	chaos_seeds(t, 1, 60,
		    &(struct chaos){
			    .steps = 12, .step_ns = MS, .no_tick = true });
}

static void test_tick(struct test_case *t)
{
	chaos_seeds(t, 1001, 1010,
		    &(struct chaos){ .steps = 600, .step_ns = MS });
}

static void test_isolation(struct test_case *t)
{
	static const struct chaos c = { .steps = 150,
					.step_ns = 4 * MS,
					.isolation = true };
	u64 trials = chaos_seeds(t, 2001, 2016, &c);

	case_note(t, "%llu trials of windows", trials);
	if (trials < 20 && t->most_seeds >= 10)
		case_fail(t, "only %llu trials of windows", trials);
}

static void test_determinism(struct test_case *t)
{
	static const struct chaos c = { .steps = 20,
					.step_ns = MS,
					.isolation = true };
	u64 trials = 0, one = chaos(t, 7, &c, &trials);

	if (chaos(t, 7, &c, &trials) != one)
		case_fail(t, "the same seed gave another run");
	if (chaos(t, 8, &c, &trials) == one)
		case_fail(t, "another seed gave the same run");
}

/* Cgroups that live for some milliseconds, a hundred times over. */
static void test_flows(struct test_case *t)
{
	struct host_params p = fixture_params(t, 1);
	struct host_flow *stays;
	struct rng rng;
	struct fixture r;
	u32 i;

	p.nr_queues = 2;
	p.device.base_ns = 400 * US;
	rng_init(&rng, 1);
	fixture_open(&r, t, &p);
	stays = fixture_flow(&r, NULL, 100);
	fixture_closed(&r, stays, 32, 4 * KIB);
	for (i = 0; i < 100 && !host_failed(r.host); i++) {
		struct host_flow *flow;
		struct load *load;

		flow = fixture_flow(&r, NULL, (u32)rng_between(&rng, 1, 10000));
		load = fixture_closed(&r, flow, (u32)rng_between(&rng, 1, 64),
				      4 * KIB);
		fixture_run(&r, rng_between(&rng, 0, 5 * MS));
		load_stop(load);
		while (flow->outstanding && !host_failed(r.host))
			fixture_run(&r, 100 * US);
		/* Half of them go while they still count as active. */
		if (rng_chance(&rng, 500))
			fixture_run(&r, 2 * FLOW_GRACE_NS);
		host_flow_destroy(flow);
		fixture_drop_load(&r, load);
	}
	fixture_close(&r);
}

/* The counter of virtual time starts just before its wrap, and goes on. */
static void test_wrap(struct test_case *t)
{
	static const u32 weights[] = { 1, 10000, 300, 3000 };
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[4];
	struct fixture r;
	u64 from;
	u32 i;

	p.nr_queues = 2;
	params_put(t->ops, &p.sched, "threshold_kb", 4 * MIB);
	fixture_open(&r, t, &p);
	for (i = 0; i < 4; i++) {
		flow[i] = fixture_flow(&r, NULL, weights[i]);
		fixture_closed(&r, flow[i], 64, 1 * MIB);
	}
	from = r.vt;
	/* 160 GB/s: 64 GiB take 0.41 s. */
	fixture_run(&r, 350 * MS);
	fixture_expect_parts(&r, flow + 1, weights + 1, 3, 150 * MS, 20,
			     "around the wrap");
	if (r.vt >= from)
		case_fail(t,
			  "virtual time went from %llu to %llu and did not wrap",
			  from, r.vt);
	fixture_close(&r);
}

/* Once the host says drain, T and D hold nothing back. */
static void test_drain(struct test_case *t)
{
	struct host_params p = fixture_params(t, 1);
	struct fixture r;
	u32 i;

	p.nr_queues = 3;
	fixture_open(&r, t, &p);
	for (i = 0; i < 3; i++)
		fixture_closed(&r, fixture_flow(&r, NULL, 1 + 100 * i), 64,
			       64 * KIB);
	fixture_run(&r, 10 * MS);
	if (!r.host->queued)
		case_fail(t, "nothing waits before the drain");
	host_drain(r.host);
	fixture_run(&r, 0);
	if (r.host->queued)
		case_fail(t, "%u ios are held back in a drain", r.host->queued);
	fixture_close(&r);
}

/*
 * All queues have requests, and completions come at the same time.  Each queue
 * gets at least half of its part of the device in each step.  Returns how much of
 * the device was used, in permille.
 */
static u64 every_queue_is_served(struct test_case *t, u32 queues, u64 wake_ns)
{
	struct host_params p = fixture_params(t, 1);
	u64 seen[9] = { 0 }, steps, all = 0;
	struct host_flow *flow;
	struct fixture r;
	u32 i;

	p.nr_queues = queues;
	p.wake_ns = wake_ns;
	fixture_open(&r, t, &p);
	flow = fixture_flow(&r, NULL, 100);
	for (i = 0; i < queues; i++)
		fixture_add(&r, flow, .first_queue = i, .depth = 32,
			    .bytes = 4 * KIB);
	for (steps = 0; steps < 20; steps++) {
		u64 step = flow->stats.ios - all;

		all += step;
		for (i = 0; i < queues; i++) {
			const struct queue *q = r.host->sched.queue[i];
			u64 got = q->stats.dispatched - seen[i];

			seen[i] += got;
			if (steps && got * 2 * queues < step)
				case_fail(
					t,
					"queue %u of %u got %llu of %llu requests, with wake-ups of %llu ns",
					i, queues, got, step, wake_ns);
		}
		fixture_run(&r, 20 * MS);
	}
	fixture_close(&r);
	/* 16 slots of 100 us, for 19 steps of 20 ms. */
	return all * 1000 / (160 * 20 * 19);
}

static void test_queues(struct test_case *t)
{
	static const u32 queues[] = { 2, 4, 5, 9 };
	u64 used[3] = { 0 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		used[0] = every_queue_is_served(t, queues[i], 0);
		used[1] = every_queue_is_served(t, queues[i], 5 * US);
		used[2] = every_queue_is_served(t, queues[i], 20 * US);
	}
	case_note(
		t,
		"nine queues use %llu, %llu, %llu permille with wake-ups of 0, 5, 20 us",
		used[0], used[1], used[2]);
}

struct stall {
	u32 queues;
	u64 ns;
	bool defaults;		/* of the tunables; otherwise of the fixture */
};

/*
 * The drive completes nothing for a while, three times.  Returns the least number
 * of requests in the 100 ms that begin 100 ms after a stall.  fixture_close()
 * checks the watchdog, and that no request is lost.
 */
static u64 least_after_stall(struct test_case *t, const struct stall *s)
{
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[2];
	u64 before, least = ~0ULL;
	struct fixture r;
	u32 i;

	p.nr_queues = s->queues;
	p.wake_ns = 5 * US;
	if (s->defaults)
		fixture_defaults(t->ops, &p.sched);
	fixture_open(&r, t, &p);
	for (i = 0; i < 2; i++) {
		flow[i] = fixture_flow(&r, NULL, i ? 300 : 100);
		fixture_closed(&r, flow[i], 256, 4 * KIB);
	}
	fixture_run(&r, 500 * MS);
	for (i = 0; i < 3; i++) {
		device_stall(&r.host->device, host_now(r.host) + s->ns);
		fixture_run(&r, s->ns + 100 * MS);
		before = flow[0]->stats.ios + flow[1]->stats.ios;
		fixture_run(&r, 100 * MS);
		least = min(least,
			    flow[0]->stats.ios + flow[1]->stats.ios - before);
	}
	fixture_close(&r);
	return least;
}

static void test_stalls(struct test_case *t)
{
	static const u64 stall_ms[] = { 300, 600, 1000, 5000 };
	static const u32 queues[] = { 1, 4, 8 };
	/* 16 slots of 100 us, for 100 ms, without a tenth. */
	const u64 enough = 16000 * 9 / 10;
	u32 i, j;
	struct stall s;
	u64 got;

	for (i = 0; i < ARRAY_SIZE(stall_ms); i++)
		for (j = 0; j < 2 * ARRAY_SIZE(queues); j++) {
			s = (struct stall){ .queues = queues[j / 2],
					    .ns = stall_ms[i] * MS,
					    .defaults = j % 2 };
			got = least_after_stall(t, &s);
			if (got < enough)
				case_fail(
					t,
					"%u queues, %llu ms: %llu requests in 100 ms",
					s.queues, s.ns / MS, got);
		}
}

const struct test life_tests[] = {
	{ "life/stalls", test_stalls, false },
	{ "life/tick", test_tick, false },
	{ "life/isolation", test_isolation, false },
	{ "life/determinism", test_determinism, false },
	{ "life/flows", test_flows, false },
	{ "life/queues", test_queues, false },
	{ "life/drain", test_drain, true },
	{ NULL, NULL, false },
};

/* Of schedulers with a virtual time, that need no other clock. */
const struct test own_clock_tests[] = {
	{ "life/no-tick", test_no_tick, false },
	{ "life/wrap", test_wrap, true },
	{ NULL, NULL, false },
};
