// SPDX-License-Identifier: GPL-2.0
/*
 * The share of each flow.  Unless said otherwise: D = 16 on a drive of 16 slots and
 * 100 us a request, hence 160,000 requests a second.
 */
#include "fixture.h"
#include "sched/mqfq/mqfq_params.h"

static const u32 four_weights[] = { 100, 250, 500, 1000 };

/* ------------------------------------------------------------- by weight */

static void weights_on(struct test_case *t, const struct host_params *params,
		       u32 depth, u32 bytes, u64 ns, const char *what)
{
	struct host_flow *flow[4];
	struct fixture r;
	u32 i;

	fixture_open(&r, t, params);
	for (i = 0; i < 4; i++) {
		flow[i] = fixture_flow(&r, NULL, four_weights[i]);
		fixture_closed(&r, flow[i], depth, bytes);
	}
	fixture_run(&r, ns / 4);
	fixture_expect_parts(&r, flow, four_weights, 4, ns, 10, what);
	fixture_close(&r);
}

static void test_weights(struct test_case *t)
{
	static const u32 queues[] = { 1, 2, 8, 70 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(queues); i++) {
		struct host_params p = fixture_params(t, i + 1);
		char what[32];

		p.nr_queues = queues[i];
		p.queues_per_core = 2;
		p.cores_per_socket = 2;
		snprintf(what, sizeof(what), "%u queues", queues[i]);
		weights_on(t, &p, max(64U, 2 * queues[i]), 4 * KIB, 300 * MS,
			   what);
	}
}

static void test_weights_large(struct test_case *t)
{
	struct host_params p = fixture_params(t, 5);

	p.nr_queues = 2;
	mqfq_params(&p.sched)->threshold = 1 * MIB;
	weights_on(t, &p, 64, 1 * MIB, 300 * MS, "1 MiB");
}

/* For each T and D the service time that keeps the drive at 160,000 a second. */
static void test_parameters(struct test_case *t)
{
	static const u32 thresholds[] = { 0, 4 * KIB, 64 * KIB, 1 * MIB };
	static const u32 depths[] = { 1, 2, 16, 128 };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++)
		for (k = 0; k < ARRAY_SIZE(depths); k++) {
			struct host_params p = fixture_params(t, i * 4 + k);
			char what[64];

			p.nr_queues = 4;
			mqfq_params(&p.sched)->threshold = thresholds[i];
			p.sched.depth = depths[k];
			p.device.slots = depths[k];
			p.device.base_ns = depths[k] * 6250;
			snprintf(what, sizeof(what), "T %u, D %u",
				 thresholds[i], depths[k]);
			weights_on(t, &p, 256, 4 * KIB, 200 * MS, what);
		}
}

/* -------------------------------------------------------- unequal demand */

/* Two flows of equal weight must get equally much. */
static void test_sizes(struct test_case *t)
{
	static const u32 equal[] = { 1, 1 };
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[2];
	struct fixture r;

	p.nr_queues = 2;
	p.device.base_ns = 20 * US;
	p.device.ns_per_kib = 2 * US;
	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	fixture_closed(&r, flow[0], 64, 4 * KIB);
	fixture_closed(&r, flow[1], 64, 64 * KIB);
	fixture_run(&r, 50 * MS);
	fixture_expect_parts(&r, flow, equal, 2, 400 * MS, 10,
			     "4K against 64K");
	fixture_close(&r);
}

static void test_queues(struct test_case *t)
{
	static const u32 equal[] = { 1, 1 };
	struct host_params p = fixture_params(t, 1);
	struct load_params one = { .depth = 32, .bytes = 4 * KIB };
	struct host_flow *flow[2];
	struct fixture r;

	p.nr_queues = 4;
	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	one.flow = flow[0];
	fixture_load(&r, &one);
	fixture_closed(&r, flow[1], 4 * 32, 4 * KIB);
	fixture_run(&r, 50 * MS);
	fixture_expect_parts(&r, flow, equal, 2, 300 * MS, 10,
			     "1 queue against 4");
	fixture_close(&r);
}

static void test_depths(struct test_case *t)
{
	static const u32 equal[] = { 1, 1 };
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[2];
	struct fixture r;

	/*
	 * Half of D = 4 is less than the shallow flow asks for.  T is small
	 * against its demand as well: whenever all four of its requests are in
	 * the drive it is not backlogged and virtual time moves up to T.
	 */
	p.sched.depth = 4;
	mqfq_params(&p.sched)->threshold = 8 * KIB;
	p.device.slots = 4;
	p.nr_queues = 2;
	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	fixture_closed(&r, flow[0], 4, 4 * KIB);
	fixture_closed(&r, flow[1], 64, 4 * KIB);
	fixture_run(&r, 50 * MS);
	fixture_expect_parts(&r, flow, equal, 2, 400 * MS, 10,
			     "depth 4 against 64");
	fixture_close(&r);
}

/* What joins a waiting request by merging is paid for. */
static void test_merges(struct test_case *t)
{
	static const u32 equal[] = { 1, 1 };
	struct host_params p = fixture_params(t, 1);
	struct load_params merging = { .depth = 64, .bytes = 4 * KIB };
	struct host_flow *flow[2];
	struct fixture r;

	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	merging.flow = flow[0];
	merging.merge_bytes = 60 * KIB;
	fixture_load(&r, &merging);
	fixture_closed(&r, flow[1], 64, 4 * KIB);
	fixture_run(&r, 50 * MS);
	fixture_expect_parts(&r, flow, equal, 2, 300 * MS, 10, "merged bytes");
	fixture_close(&r);
}

/* An urgent request never waits, and its flow has paid for it. */
static void test_urgent(struct test_case *t)
{
	static const u32 equal[] = { 1, 1 };
	struct host_params p = fixture_params(t, 1);
	struct load_params urgent = {
		.depth = 40,
		.bytes = 4 * KIB,
		.urgent_permille = 100,
	};
	struct host_flow *flow[2];
	struct fixture r;

	p.nr_queues = 2;
	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	urgent.flow = flow[0];
	urgent.nr_queues = 2;
	r.watch_urgent = true;
	fixture_load(&r, &urgent);
	fixture_closed(&r, flow[1], 160, 4 * KIB);
	fixture_run(&r, 50 * MS);
	fixture_expect_parts(&r, flow, equal, 2, 300 * MS, 10,
			     "urgent requests");
	fixture_close(&r);
}

/* A driver that sends back every fifth request, at once or to the device. */
static void test_requeue(struct test_case *t)
{
	struct host_params p = fixture_params(t, 1);

	p.nr_queues = 2;
	p.refuse_permille = 200;
	p.refuse_ns = 30 * US;
	weights_on(t, &p, 128, 4 * KIB, 600 * MS, "requeues");
}

/* ------------------------------------------------------------- hierarchy */

static void test_nested(struct test_case *t)
{
	static const u32 all[] = { 45, 45, 10 }, rest[] = { 90, 10 };
	struct host_params p = fixture_params(t, 1);
	struct load_params web = { .depth = 64, .bytes = 4 * KIB };
	struct host_flow *prod, *flow[3], *left[2];
	struct fixture r;

	p.nr_queues = 2;
	fixture_open(&r, t, &p);
	prod = fixture_flow(&r, NULL, 900);
	flow[0] = fixture_flow(&r, prod, 500);
	flow[1] = fixture_flow(&r, prod, 500);
	flow[2] = fixture_flow(&r, NULL, 100);
	web.flow = flow[1];
	web.nr_queues = 2;
	web.stop_ns = 400 * MS;
	fixture_closed(&r, flow[0], 64, 4 * KIB);
	fixture_load(&r, &web);
	fixture_closed(&r, flow[2], 64, 4 * KIB);
	fixture_run(&r, 50 * MS);
	fixture_expect_parts(&r, flow, all, 3, 350 * MS, 10, "db, web, batch");

	/* The grace period and, for the tick that sees it, half of that. */
	fixture_run(&r, FLOW_GRACE_NS * 3 / 2 + 5 * MS);
	left[0] = flow[0];
	left[1] = flow[2];
	fixture_expect_parts(&r, left, rest, 2, 300 * MS, 10, "db, batch");
	fixture_close(&r);
}

/*
 * The owner of a cgroup of weight 100 gives its children any weights.  All together
 * they get the share of the cgroup, beside one of weight 300.
 */
static void test_weights_of_an_owner(struct test_case *t)
{
	static const u32 weight[] = { 10000, 1, 10000, 300 };
	static const u32 due[] = { 250, 750 };
	enum {
		CHILDREN = ARRAY_SIZE(weight)
	};
	struct host_params p = fixture_params(t, 1);
	struct host_flow *parent, *other, *child[CHILDREN];
	u64 before[2] = { 0 }, got[2] = { 0 };
	struct fixture r;
	u32 i;

	p.nr_queues = 2;
	fixture_open(&r, t, &p);
	parent = fixture_flow(&r, NULL, 100);
	other = fixture_flow(&r, NULL, 300);
	fixture_closed(&r, other, 64, 4 * KIB);
	for (i = 0; i < CHILDREN; i++) {
		child[i] = fixture_flow(&r, parent, weight[i]);
		fixture_closed(&r, child[i], 64, 4 * KIB);
	}
	fixture_run(&r, 200 * MS);
	for (i = 0; i < CHILDREN; i++)
		before[0] += child[i]->stats.bytes;
	before[1] = other->stats.bytes;
	fixture_run(&r, 400 * MS);
	for (i = 0; i < CHILDREN; i++)
		got[0] += child[i]->stats.bytes;
	got[0] -= before[0];
	got[1] = other->stats.bytes - before[1];
	for (i = 0; i < 2; i++) {
		u64 part = got[i] * 1000 / (got[0] + got[1]);

		if (part + 10 < due[i] || part > due[i] + 10)
			case_fail(t, "%s got %llu permille for %u",
				  i ? "the other" : "the children", part,
				  due[i]);
	}
	fixture_close(&r);
}

/*
 * Weights 1 and 10000 change places with 256 requests queued in each flow:
 * within 20 ms the heavy one has all but a thousandth, in every 20 ms; the
 * light one goes on once it has paid for the T that it was ahead, which at its
 * new share takes T / (share * speed), a second.
 */
static void weights_swap(struct test_case *t, u32 threshold, u32 queues,
			 bool own)
{
	struct host_params p = fixture_params(t, queues);
	struct load_params deep = { .depth = 256, .bytes = 4 * KIB };
	struct host_flow *flow[2];
	u64 before[2], start[2];
	struct fixture r;
	u32 i;

	p.nr_queues = queues;
	mqfq_params(&p.sched)->threshold = threshold;
	fixture_open(&r, t, &p);
	for (i = 0; i < 2; i++) {
		flow[i] = fixture_flow(&r, NULL, i ? 10000 : 1);
		deep.flow = flow[i];
		deep.first_queue = own ? i : 0;
		deep.nr_queues = own ? 1 : queues;
		fixture_load(&r, &deep);
	}
	fixture_run(&r, 200 * MS);
	host_flow_weigh(flow[0], 10000);
	host_flow_weigh(flow[1], 1);
	fixture_run(&r, 20 * MS);
	fixture_bytes(flow, start, 2);
	for (i = 0; i < 90; i++) {
		fixture_bytes(flow, before, 2);
		fixture_run(&r, 20 * MS);
		if (fixture_part(flow, before, 2, 0) < 999000)
			case_fail(
				t,
				"T %u, %u queues, %u ms after the change the heavy flow had %llu ppm in 20 ms",
				threshold, queues, 20 * (i + 1),
				fixture_part(flow, before, 2, 0));
	}
	if (flow[1]->stats.bytes - start[1] < 8 * 4 * KIB)
		case_fail(
			t,
			"T %u, %u queues: the light flow got %llu bytes in 1.8 s",
			threshold, queues, flow[1]->stats.bytes - start[1]);
	fixture_close(&r);
}

/*
 * A flow of weight 1 with its next request ten thousand requests ahead, on a
 * queue of its own that is throttled until then, becomes as heavy as its
 * neighbour: it must not have to wait for the tag that it no longer has, at
 * 16,000 requests a second more than half a second.
 */
static void weight_raise(struct test_case *t, u32 threshold)
{
	static const u32 equal[] = { 1, 1 };
	struct host_params p = fixture_params(t, 1);
	struct load_params deep = { .depth = 64, .bytes = 4 * KIB };
	struct host_flow *flow[2];
	struct fixture r;
	u32 i;

	p.nr_queues = 2;
	mqfq_params(&p.sched)->threshold = threshold;
	p.device.base_ns = MS;
	fixture_open(&r, t, &p);
	for (i = 0; i < 2; i++) {
		deep.flow = flow[i] = fixture_flow(&r, NULL, i ? 10000 : 1);
		deep.first_queue = i;
		deep.depth = i ? 192 : 64;
		fixture_load(&r, &deep);
	}
	fixture_run(&r, 20 * MS);
	host_flow_weigh(flow[0], 10000);
	fixture_run(&r, FLOW_GRACE_NS);
	fixture_expect_parts(&r, flow, equal, 2, 200 * MS, 10, "weight raised");
	fixture_close(&r);
}

/*
 * The same while the neighbour pauses for a moment.  Virtual time must not
 * follow the tag that the throttled request had at its old weight: the flow's
 * new tags would all lie far behind it, and until they have caught up the
 * neighbour would get nothing.
 */
static void weight_raise_in_pause(struct test_case *t, u32 threshold,
				  u32 permille)
{
	static const u32 equal[] = { 1, 1 };
	struct host_params p = fixture_params(t, 1);
	struct load_params deep = { .depth = 64, .bytes = 4 * KIB };
	struct host_flow *flow[2];
	struct fixture r;

	p.nr_queues = 3;
	mqfq_params(&p.sched)->threshold = threshold;
	p.device.base_ns = MS;
	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 1);
	flow[1] = fixture_flow(&r, NULL, 10000);
	deep.flow = flow[0];
	fixture_load(&r, &deep);
	deep.flow = flow[1];
	deep.first_queue = 1;
	deep.on_ns = 20 * MS;
	deep.off_ns = 20 * MS;
	deep.stop_ns = 40 * MS;
	fixture_load(&r, &deep);
	fixture_add(&r, flow[0], .first_queue = 2, .depth = 1, .bytes = 4 * KIB,
		    .start_ns = 20 * MS, .stop_ns = 20 * MS + 1);
	deep.start_ns = 40 * MS;
	deep.off_ns = 0;
	deep.stop_ns = 0;
	fixture_load(&r, &deep);
	host_run(r.host, 20 * MS - 1);
	host_flow_weigh(flow[0], 10000);
	host_run(r.host, 60 * MS);
	fixture_expect_parts(&r, flow, equal, 2, 200 * MS, permille,
			     "weight raised in a pause");
	fixture_close(&r);
}

static void test_reweigh(struct test_case *t)
{
	weight_raise(t, 64 * KIB);
	weights_swap(t, 64 * KIB, 1, false);
	weights_swap(t, 64 * KIB, 4, false);
	weights_swap(t, 0, 2, false);
	weights_swap(t, 64 * KIB, 2, true);
	weights_swap(t, 0, 2, true);
}

/*
 * A flow that had a twenty-thousandth gets half when its heavy sibling stops,
 * or is removed at once: not only when the tag that it no longer has is due,
 * at 16,000 requests a second after more than a second.
 */
static void sibling_leaves(struct test_case *t, u32 threshold, bool removed)
{
	static const u32 equal[] = { 1, 1 };
	struct host_params p = fixture_params(t, 1);
	struct load_params deep = { .depth = 64, .bytes = 4 * KIB };
	struct host_flow *group, *sibling, *flow[2];
	struct load *load;
	struct fixture r;

	p.nr_queues = 3;
	mqfq_params(&p.sched)->threshold = threshold;
	p.device.base_ns = MS;
	fixture_open(&r, t, &p);
	group = fixture_flow(&r, NULL, 100);
	flow[0] = fixture_flow(&r, group, 1);
	flow[1] = fixture_flow(&r, NULL, 100);
	sibling = fixture_flow(&r, group, 10000);
	deep.flow = flow[0];
	fixture_load(&r, &deep);
	deep.flow = flow[1];
	deep.first_queue = 1;
	deep.depth = 192;
	fixture_load(&r, &deep);
	deep.flow = sibling;
	deep.first_queue = 2;
	load = fixture_load(&r, &deep);
	fixture_run(&r, 20 * MS);
	load_stop(load);
	while (sibling->outstanding && !host_failed(r.host))
		fixture_run(&r, MS);
	if (removed) {
		host_flow_destroy(sibling);
		fixture_drop_load(&r, load);
	}
	fixture_run(&r, 2 * FLOW_GRACE_NS);
	fixture_expect_parts(&r, flow, equal, 2, 200 * MS, 10,
			     removed ? "sibling removed" : "sibling idle");
	fixture_close(&r);
}

static void test_sibling(struct test_case *t)
{
	sibling_leaves(t, 64 * KIB, false);
	sibling_leaves(t, 0, false);
	sibling_leaves(t, 64 * KIB, true);
}

/* Queues throttled by a tag of old shares look again at once. */
static void test_reshare(struct test_case *t)
{
	weight_raise(t, 0);
	sibling_leaves(t, 0, true);
	/* What a flow may be owed, 64 KiB for each slot, is 3 % of 200 ms here. */
	weight_raise_in_pause(t, 0, 40);
	/*
	 * All that the two have waiting lies within T.  A flow with half of the
	 * drive may be T / 2 ahead: 8 % of its part of 200 ms.
	 */
	weight_raise_in_pause(t, 1 * MIB, 80);
}

/* -------------------------------------------------------------- in time */

/*
 * Two flows, one of which is silent for five seconds and comes back with all
 * it has: in each 200 ms after that it gets at most half, T and D requests.
 */
static void test_comeback(struct test_case *t)
{
	enum {
		STEP_MS = 10,
		WINDOW = 20,
		STEPS = 100
	};
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[2];
	u64 got[STEPS + 1], both[STEPS + 1];
	struct fixture r;
	u32 i;

	p.nr_queues = 2;
	p.device.base_ns = 400 * US;
	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	fixture_add(&r, flow[0], .depth = 512, .bytes = 4 * KIB,
		    .on_ns = 200 * MS, .off_ns = 5 * SEC, .nr_queues = 2);
	fixture_closed(&r, flow[1], 32, 4 * KIB);
	host_run(r.host, 200 * MS + 5 * SEC - 1);
	for (i = 0; i <= STEPS; i++) {
		got[i] = flow[0]->stats.bytes;
		both[i] = got[i] + flow[1]->stats.bytes;
		fixture_run(&r, STEP_MS * MS);
	}
	for (i = 0; i + WINDOW <= STEPS; i++) {
		u64 most = (both[i + WINDOW] - both[i]) / 2 +
			   mqfq_params(&p.sched)->threshold +
			   p.sched.depth * 4 * KIB;

		if (got[i + WINDOW] - got[i] > most)
			case_fail(
				t,
				"%u ms after its return the flow gets %llu bytes in 200 ms, at most %llu allowed",
				i * STEP_MS, got[i + WINDOW] - got[i], most);
	}
	fixture_close(&r);
}

/* Three deep tenants, the drive's slots evenly staggered in time. */
static void light_neighbours(struct fixture *r)
{
	const struct host_params *p = &r->host->params;
	struct load_params deep = {
		.depth = 64,
		.bytes = 4 * KIB,
		.start_ns = p->device.base_ns,
	};
	u32 i;

	for (i = 0; i < 3; i++) {
		struct load_params first = {
			.first_queue = i + 1,
			.depth = 1,
			.bytes = 4 * KIB,
			.stop_ns = p->device.base_ns,
		};

		deep.flow = fixture_flow(r, NULL, 100);
		deep.first_queue = i + 1;
		first.flow = deep.flow;
		while (r->nr_loads < (i + 1) * p->device.slots / 3) {
			first.start_ns = r->nr_loads * p->device.base_ns /
					 p->device.slots;
			fixture_load(r, &first);
		}
		fixture_load(r, &deep);
	}
}

/*
 * One request at a time beside three times 64.  While it waits, the others
 * dispatch at most T bytes by tag and one request each; its own place is then
 * the next free one.
 */
static void test_light(struct test_case *t)
{
	struct host_params p = fixture_params(t, 1);
	struct load_params light = {
		.depth = 1,
		.bytes = 4 * KIB,
		.think_ns = 30 * US,
		.think_random = true,
	};
	struct host_flow *flow;
	struct fixture r;
	u64 service = p.device.base_ns, ahead, most, alone, got;

	p.nr_queues = 4;
	mqfq_params(&p.sched)->threshold = 8 * KIB;
	fixture_open(&r, t, &p);
	light_neighbours(&r);
	flow = fixture_flow(&r, NULL, 100);
	light.flow = flow;
	light.start_ns = MS;
	fixture_load(&r, &light);
	fixture_run(&r, 501 * MS);
	/* Served at an even pace, one slot in service / D. */
	ahead = mqfq_params(&p.sched)->threshold / (4 * KIB) + 3;
	most = service + (ahead + 1) * service / p.sched.depth;
	if (flow->stats.latency.max_ns > most)
		case_fail(
			t,
			"a lone request took %llu ns beside three deep tenants, at most %llu allowed",
			flow->stats.latency.max_ns, most);
	alone = 500 * MS / (service + light.think_ns);
	got = flow->stats.ios * 1000 / alone;
	if (got < 850)
		case_fail(
			t,
			"a light tenant has %llu permille of its requests alone",
			got);
	case_note(t, "%llu permille of alone, at most %llu ns of %llu", got,
		  flow->stats.latency.max_ns, most);
	fixture_close(&r);
}

/*
 * The same where requests that were sent together complete together.  The next
 * free slot may be most of a service time away, so isolation has to help.
 */
static void test_light_among_bunches(struct test_case *t)
{
	struct host_params p = fixture_params(t, 1);
	struct load_params deep = { .depth = 64, .bytes = 4 * KIB };
	struct load_params light = {
		.depth = 1,
		.bytes = 4 * KIB,
		.think_ns = 30 * US,
		.think_random = true,
		.start_ns = MS,
	};
	u64 service = p.device.base_ns, alone, got, total = 0;
	struct host_flow *flow[4];
	struct fixture r;
	u32 i;

	p.nr_queues = 4;
	p.sched.isolation = 6;
	mqfq_params(&p.sched)->threshold = 8 * KIB;
	fixture_open(&r, t, &p);
	for (i = 0; i < 3; i++) {
		flow[i] = fixture_flow(&r, NULL, 100);
		deep.flow = flow[i];
		deep.first_queue = i + 1;
		deep.start_ns = i * service / 3;
		fixture_load(&r, &deep);
	}
	flow[3] = fixture_flow(&r, NULL, 100);
	light.flow = flow[3];
	fixture_load(&r, &light);
	fixture_run(&r, 501 * MS);
	alone = 500 * MS / (service + light.think_ns);
	got = flow[3]->stats.ios * 1000 / alone;
	for (i = 0; i < 4; i++)
		total += flow[i]->stats.ios;
	total = total * 1000 / (501 * MS / service * p.device.slots);
	/*
	 * If all others complete together, the next slot is half a service time away,
	 * and it does 722.
	 */
	if (got < 780)
		case_fail(
			t,
			"a light tenant has %llu permille of its requests alone",
			got);
	if (total < 950)
		case_fail(t, "the drive does %llu permille of what it can",
			  total);
	case_note(t, "%llu permille of alone, the drive %llu permille busy",
		  got, total);
	fixture_close(&r);
}

/* A queue that its driver stops does not stop the others' clock. */
static void test_blocked(struct test_case *t)
{
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[2];
	u64 before[2], most;
	struct fixture r;
	u32 i;

	p.nr_queues = 2;
	fixture_open(&r, t, &p);
	for (i = 0; i < 2; i++) {
		struct load_params own = {
			.first_queue = i,
			.depth = 64,
			.bytes = 4 * KIB,
		};

		own.flow = flow[i] = fixture_flow(&r, NULL, 100);
		fixture_load(&r, &own);
	}
	fixture_run(&r, 50 * MS);
	host_block(r.host, 0, host_now(r.host) + 100 * MS);
	fixture_run(&r, 1 * MS);
	fixture_bytes(flow, before, 2);
	fixture_run(&r, 98 * MS);
	most = 98 * MS / p.device.base_ns * p.device.slots * 4 * KIB;
	if (flow[0]->stats.bytes != before[0])
		case_fail(t, "a blocked queue was served");
	if (flow[1]->stats.bytes - before[1] < most / 100 * 99)
		case_fail(
			t,
			"beside a blocked queue a flow got %llu bytes, the drive could do %llu",
			flow[1]->stats.bytes - before[1], most);
	fixture_close(&r);
}

const struct test share_tests[] = {
	{ "share/weights", test_weights, true },
	{ "share/weights-large", test_weights_large, true },
	{ "share/parameters", test_parameters, true },
	{ "share/sizes", test_sizes, true },
	{ "share/queues", test_queues, true },
	{ "share/depths", test_depths, true },
	{ "share/merges", test_merges, true },
	{ "share/urgent", test_urgent, true },
	{ "share/requeue", test_requeue, true },
	{ "share/nested", test_nested, true },
	{ "share/weights of an owner", test_weights_of_an_owner, true },
	{ "share/reweigh", test_reweigh, true },
	{ "share/sibling", test_sibling, true },
	{ "share/reshare", test_reshare, true },
	{ "share/comeback", test_comeback, true },
	{ "share/light", test_light, true },
	{ "share/light_among_bunches", test_light_among_bunches, true },
	{ "share/blocked", test_blocked, false },
	{ NULL, NULL, false },
};
