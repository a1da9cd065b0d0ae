// SPDX-License-Identifier: GPL-2.0
/*
 * Tests that every scheduler passes which shares a drive by weight.
 *
 * One queue, a drive of 16 slots and 100 us for a request of any size, so
 * 160,000 requests a second.  The parameters are the scheduler's defaults.
 */
#include "sched/core/policies.h"
#include "fixture.h"

enum {
	/* The slowest scheduler learns the speed of the drive in this time. */
	SETTLE_MS	= 2000,
	MEASURE_MS	= 2000,
	PERMILLE	= 50,		/* how far a share may be off */
	NFLOWS		= 3,
};

static const u32 weights[NFLOWS] = { 100, 300, 600 };

/* Flows by weight; all of them ask for more than their shares. */
static void open_flows(struct fixture *r, struct test_case *t,
		       const struct host_params *p, struct host_flow **flow)
{
	u32 i;

	fixture_open(r, t, p);
	for (i = 0; i < NFLOWS; i++) {
		flow[i] = fixture_flow(r, NULL, weights[i]);
		fixture_closed(r, flow[i], 64, 4 * KIB);
	}
	fixture_run(r, SETTLE_MS * MS);
}

static void test_by_weight(struct test_case *t)
{
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[NFLOWS];
	struct fixture r;

	open_flows(&r, t, &p, flow);
	fixture_expect_parts(&r, flow, weights, NFLOWS, MEASURE_MS * MS,
			     PERMILLE, "by weight");
	fixture_close(&r);
}

/* A driver sends back one request of ten. */
static void test_requeued(struct test_case *t)
{
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[NFLOWS];
	struct fixture r;

	p.refuse_permille = 100;
	p.refuse_ns = 30 * US;
	open_flows(&r, t, &p, flow);
	fixture_expect_parts(&r, flow, weights, NFLOWS, MEASURE_MS * MS,
			     PERMILLE, "with requeues");
	fixture_close(&r);
}

static void test_after_reweigh(struct test_case *t)
{
	static const u32 after[NFLOWS] = { 600, 300, 100 };
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[NFLOWS];
	struct fixture r;
	u32 i;

	open_flows(&r, t, &p, flow);
	for (i = 0; i < NFLOWS; i++)
		host_flow_weigh(flow[i], after[i]);
	fixture_run(&r, SETTLE_MS * MS);
	fixture_expect_parts(&r, flow, after, NFLOWS, MEASURE_MS * MS, PERMILLE,
			     "after a change of weights");
	fixture_close(&r);
}

/* A parent of weight 300 has two children, and a sibling of weight 100. */
static void test_children(struct test_case *t)
{
	static const u32 parts[NFLOWS] = { 150, 150, 100 };
	struct host_params p = fixture_params(t, 1);
	struct host_flow *parent, *flow[NFLOWS];
	struct fixture r;
	u32 i;

	fixture_open(&r, t, &p);
	parent = fixture_flow(&r, NULL, 300);
	flow[0] = fixture_flow(&r, parent, 100);
	flow[1] = fixture_flow(&r, parent, 100);
	flow[2] = fixture_flow(&r, NULL, 100);
	for (i = 0; i < NFLOWS; i++)
		fixture_closed(&r, flow[i], 64, 4 * KIB);
	fixture_run(&r, SETTLE_MS * MS);
	fixture_expect_parts(&r, flow, parts, NFLOWS, MEASURE_MS * MS, PERMILLE,
			     "children of a parent");
	fixture_close(&r);
}

/*
 * A child with a read each @pace_ms leaves nearly all of its half to its sibling.  With
 * 50 it is active all the time, and with 200 it comes and goes.  It leaves its half as
 * well from a group of its own.  It has it again when it asks for it.
 */
static void quiet_child(struct test_case *t, u32 pace_ms, bool in_group)
{
	static const u32 rest[] = { 900, 100 }, all[] = { 450, 100, 450 };
	struct host_params p = fixture_params(t, 1);
	struct host_flow *prod, *parent, *flow[NFLOWS];
	struct load_params web = { .depth = 1,
				   .bytes = 4 * KIB,
				   .pace_ns = pace_ms * MS };
	struct fixture r;

	fixture_open(&r, t, &p);
	prod = fixture_flow(&r, NULL, 900);
	parent = in_group ? fixture_flow(&r, prod, 500) : prod;
	flow[0] = fixture_flow(&r, prod, 500);
	flow[1] = fixture_flow(&r, NULL, 100);
	flow[2] = fixture_flow(&r, parent, 500);
	fixture_closed(&r, flow[0], 64, 4 * KIB);
	fixture_closed(&r, flow[1], 64, 4 * KIB);
	web.flow = flow[2];
	fixture_load(&r, &web);
	fixture_run(&r, SETTLE_MS * MS);
	fixture_expect_parts(&r, flow, rest, 2, MEASURE_MS * MS, PERMILLE,
			     "beside a quiet child");
	fixture_closed(&r, flow[2], 64, 4 * KIB);
	fixture_run(&r, SETTLE_MS * MS);
	fixture_expect_parts(&r, flow, all, NFLOWS, MEASURE_MS * MS, PERMILLE,
			     "beside a child that was quiet");
	fixture_close(&r);
}

static void test_quiet_child(struct test_case *t)
{
	quiet_child(t, 50, false);
	quiet_child(t, 50, true);
	quiet_child(t, 200, false);
	quiet_child(t, 200, true);
}

/*
 * A cgroup that is due a tenth has a child of weight 1 with a backlog, and one of weight
 * 10000 that is quiet for @off_ms and asks for all in the next 100 ms.  The quiet one
 * leaves its share to its sibling alone, so the cgroup gains no more than 5 % of the drive.
 */
static void child_of_two_faces(struct test_case *t, u32 off_ms, bool reads_on)
{
	struct host_params p = fixture_params(t, 1);
	struct load_params reads = { .depth = 1,
				     .bytes = 4 * KIB,
				     .pace_ns = 20 * MS };
	struct load_params bursts = { .depth = 64,
				      .bytes = 4 * KIB,
				      .on_ns = 100 * MS,
				      .off_ns = off_ms * MS };
	struct host_flow *parent, *flow[NFLOWS];
	u64 before[NFLOWS], after[NFLOWS], got, other;
	struct fixture r;

	fixture_open(&r, t, &p);
	parent = fixture_flow(&r, NULL, 100);
	flow[0] = fixture_flow(&r, parent, 1);
	flow[1] = fixture_flow(&r, parent, 10000);
	flow[2] = fixture_flow(&r, NULL, 900);
	fixture_closed(&r, flow[0], 64, 4 * KIB);
	fixture_closed(&r, flow[2], 64, 4 * KIB);
	reads.flow = bursts.flow = flow[1];
	if (reads_on)
		fixture_load(&r, &reads);
	fixture_load(&r, &bursts);
	fixture_run(&r, SETTLE_MS * MS);
	fixture_bytes(flow, before, NFLOWS);
	fixture_run(&r, MEASURE_MS * MS);
	fixture_bytes(flow, after, NFLOWS);
	got = after[0] - before[0] + after[1] - before[1];
	other = after[2] - before[2];
	if (got * 100 > (got + other) * 15)
		case_fail(t, "a cgroup that is due 10 %% has %llu %%",
			  got * 100 / (got + other));
	fixture_close(&r);
}

/* It is active while it is quiet, by a read each 20 ms, or comes back from idleness. */
static void test_child_of_two_faces(struct test_case *t)
{
	child_of_two_faces(t, 100, true);
	child_of_two_faces(t, 100, false);
	child_of_two_faces(t, 300, false);
}

/* A flow that pauses gives its share away, and gets no more when it is back. */
static void test_after_pause(struct test_case *t)
{
	static const u32 equal[] = { 1, 1 };
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[2];
	struct fixture r;
	u64 before, most;

	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	fixture_add(&r, flow[0], .depth = 256, .bytes = 4 * KIB,
		    .on_ns = 2 * SEC, .off_ns = 2 * SEC);
	fixture_closed(&r, flow[1], 64, 4 * KIB);
	/* The flow has been away for a second. */
	fixture_run(&r, 3000 * MS);
	before = flow[1]->stats.bytes;
	fixture_run(&r, 400 * MS);
	most = 400 * MS / p.device.base_ns * p.device.slots * 4 * KIB;
	if (flow[1]->stats.bytes - before < most / 100 * 90)
		case_fail(
			t,
			"beside a flow that pauses a flow got %llu bytes of %llu",
			flow[1]->stats.bytes - before, most);
	/* The flow comes back after 4 s and has had time to settle. */
	fixture_run(&r, 1900 * MS);
	fixture_expect_parts(&r, flow, equal, 2, 600 * MS, PERMILLE,
			     "after a pause");
	fixture_close(&r);
}

/*
 * A flow that asks for little gains no right to more: when it asks for all that
 * it can get, it soon has its share.
 */
static void test_after_light(struct test_case *t)
{
	static const u32 equal[] = { 1, 1 };
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[2];
	struct fixture r;

	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	fixture_closed(&r, flow[0], 1, 4 * KIB);
	fixture_closed(&r, flow[1], 64, 4 * KIB);
	fixture_add(&r, flow[0], .depth = 128, .bytes = 4 * KIB,
		    .start_ns = 4 * SEC);
	fixture_run(&r, 5500 * MS);
	fixture_expect_parts(&r, flow, equal, 2, 400 * MS, PERMILLE,
			     "after a light phase");
	fixture_close(&r);
}

/*
 * Weights change while all requests are queued and no flow sends new ones.  The
 * requests that wait go by the new weights.
 */
static void test_queued_reweigh(struct test_case *t)
{
	static const u32 after[] = { 100, 300 };
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[2];
	struct load *load[2];
	struct fixture r;
	u32 i;

	fixture_open(&r, t, &p);
	for (i = 0; i < 2; i++) {
		flow[i] = fixture_flow(&r, NULL, 100);
		load[i] = fixture_closed(&r, flow[i], 48000, 4 * KIB);
	}
	fixture_run(&r, SEC);
	for (i = 0; i < 2; i++)
		load_stop(load[i]);
	host_flow_weigh(flow[1], after[1]);
	fixture_run(&r, 150 * MS);
	fixture_expect_parts(&r, flow, after, 2, 200 * MS, 2 * PERMILLE,
			     "queued requests after a change of weights");
	fixture_close(&r);
}

/* Urgent and polled requests pass, and the shares stay those of the weights. */
static void test_urgent_first(struct test_case *t)
{
	struct host_params p = fixture_params(t, 1);
	struct load_params urgent = {
		.depth = 64,
		.bytes = 4 * KIB,
		.urgent_permille = 300,
		.polled_permille = 50,
	};
	static const u32 equal[] = { 1, 1 };
	struct host_flow *flow[2];
	struct fixture r;

	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	urgent.flow = flow[0];
	r.watch_urgent = true;
	fixture_load(&r, &urgent);
	fixture_closed(&r, flow[1], 128, 4 * KIB);
	fixture_run(&r, SETTLE_MS * MS);
	fixture_expect_parts(&r, flow, equal, 2, MEASURE_MS * MS, PERMILLE,
			     "beside urgent requests");
	fixture_close(&r);
}

static void expect_slots(struct fixture *r, u32 depth)
{
	struct sched_params p = r->host->sched.params;

	p.depth = depth;
	host_tune(r->host, &p);
	fixture_run(r, 100 * MS);
	if (r->host->slots != depth)
		case_fail(r->test_case, "%u slots are in use, D is %u",
			  r->host->slots, depth);
}

/* All D slots are in use; a smaller or larger D holds soon. */
static void test_slots(struct test_case *t)
{
	struct host_params p = fixture_params(t, 1);
	struct host_flow *flow[NFLOWS];
	struct fixture r;

	open_flows(&r, t, &p, flow);
	/* A scheduler without the tunable finds D by itself. */
	if (tunable_find(t->ops->tunables, "depth")) {
		expect_slots(&r, 4);
		expect_slots(&r, 12);
	}
	fixture_close(&r);
}

/*
 * A heavy tenant asks for less than its weight is due, from one queue, beside a light
 * one that fills the drive from four.  The heavy one has what it asks for: each of its
 * requests waits for the next free slot, and no request of the other goes before it.
 * The sizes of the light one are spread, so that slots are not free in bunches.
 */
static void asks_for_less(struct test_case *t, u32 depth)
{
	struct host_params p = fixture_params(t, depth);
	struct load_params heavy = {
		.depth = depth,
		.bytes = 4 * KIB,
		.think_ns = 100 * US,
		.think_random = true,
	};
	struct host_flow *flow[2];
	u64 before[2], after[2], service = 100 * US, least, got;
	struct fixture r;
	u32 i;

	p.nr_queues = 5;
	p.sched.isolation = 0;
	p.device.ns_per_kib = 20 * US;
	p.device.base_ns = service - 4 * p.device.ns_per_kib;
	fixture_open(&r, t, &p);
	flow[0] = heavy.flow = fixture_flow(&r, NULL, 1000);
	flow[1] = fixture_flow(&r, NULL, 100);
	fixture_load(&r, &heavy);
	for (i = 1; i < 5; i++)
		fixture_add(&r, flow[1], .first_queue = i, .depth = 64,
			    .bytes = 1 * KIB, .bytes_max = 7 * KIB);
	fixture_run(&r, SETTLE_MS * MS);
	fixture_bytes(flow, before, 2);
	fixture_run(&r, MEASURE_MS * MS);
	fixture_bytes(flow, after, 2);
	/* A slot is free every service / D.  A request waits for three at most. */
	least = depth * MEASURE_MS * MS /
		(service + heavy.think_ns + 3 * service / p.device.slots);
	got = (after[0] - before[0]) / heavy.bytes;
	if (got < least)
		case_fail(
			t,
			"a heavy tenant with %u requests has had %llu, and not %llu",
			depth, got, least);
	fixture_close(&r);
}

static void test_asks_for_less(struct test_case *t)
{
	static const u32 depths[] = { 1, 3, 8, 16 };
	/* Queues share the slots of drr equally, whatever their flows weigh. */
	u32 i, nr = t->ops == &drr_ops ? 2 : ARRAY_SIZE(depths);

	for (i = 0; i < nr; i++)
		asks_for_less(t, depths[i]);
}

const struct test generic_tests[] = {
	{ "share/by_weight", test_by_weight, true },
	{ "share/requeued", test_requeued, true },
	{ "share/after_reweigh", test_after_reweigh, true },
	{ "share/children", test_children, true },
	{ "share/quiet_child", test_quiet_child, true },
	{ "share/child_of_two_faces", test_child_of_two_faces, true },
	{ "share/after_pause", test_after_pause, true },
	{ "share/after_light", test_after_light, true },
	{ "share/queued_reweigh", test_queued_reweigh, true },
	{ "share/urgent_first", test_urgent_first, true },
	{ "share/asks_for_less", test_asks_for_less, true },
	{ "share/slots", test_slots, false },
	{ NULL, NULL, false },
};
