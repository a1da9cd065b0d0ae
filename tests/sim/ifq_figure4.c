// SPDX-License-Identifier: GPL-2.0
/* The example: figure 4 of the paper. */
#include "ifq.h"

/* A unit is 1000 requests of 4 KiB, a time unit one second. */
enum { UNIT = 1000 };

struct need {
	struct host_flow *flow;
	struct load *load;
	u64 ios;
	u64 done_ns;
};

static void need_look(struct need *n, u64 now)
{
	if (n->flow->stats.ios + n->flow->outstanding >= n->ios)
		load_stop(n->load);
	if (!n->done_ns && n->flow->stats.ios >= n->ios)
		n->done_ns = now;
}

static void run_needs(struct fixture *r, struct need *need, u32 n, u64 until_ns)
{
	u32 i;

	while (host_now(r->host) < until_ns && !case_failed(r->test_case)) {
		fixture_run(r, MS);
		for (i = 0; i < n; i++)
			need_look(&need[i], host_now(r->host));
	}
}

static void expect_units(struct test_case *t, const struct host_flow *flow,
			 double units, double at)
{
	double got = (double)flow->stats.ios / UNIT;

	if (off_by(got, units, 0.01))
		case_fail(t, "at t = %g flow %u has moved %.3f units, not %g",
			  at, flow->id, got, units);
}

static void expect_done(struct test_case *t, const struct need *n, double at)
{
	double got = (double)n->done_ns / (double)SEC;

	if (off_by(got, at, 0.01))
		case_fail(t, "flow %u is done at %.3f, not at %g", n->flow->id,
			  got, at);
}

static void example_on(struct test_case *t, u32 queues)
{
	static const u32 weights[] = { 200, 200, 100 };
	struct host_params p = ifq_host_params(t, 1);
	struct need need[2];
	struct host_flow *flow[3];
	struct fixture r;
	u32 i;

	p.nr_queues = queues;
	p.sched.depth = 6;
	ifq_params(&p.sched)->damping = 0; /* weights by hand */
	p.device.slots = 6;
	p.device.base_ns = SEC / UNIT;
	fixture_open(&r, t, &p);
	for (i = 0; i < 3; i++) {
		struct load_params load = {
			.flow = flow[i] = fixture_flow(&r, NULL, weights[i]),
			.nr_queues = queues,
			.depth = i == 2 ? 32 : 16,
			.bytes = 4 * KIB,
			.start_ns = i == 1 ? 2 * SEC : 0,
		};
		struct load *l = fixture_load(&r, &load);

		if (i < 2)
			need[i] = (struct need){ flow[i], l, 18 * UNIT, 0 };
	}
	run_needs(&r, need, 2, 2 * SEC);
	expect_units(t, flow[0], 8, 2);
	expect_units(t, flow[2], 4, 2);
	run_needs(&r, need, 2, 4 * SEC);
	expect_units(t, flow[0], 8 + 2 * 2.4, 4);
	expect_units(t, flow[1], 2 * 2.4, 4);
	expect_units(t, flow[2], 4 + 2 * 1.2, 4);
	run_needs(&r, need, 2, 7 * SEC);
	expect_units(t, flow[1], 10 + 4 * (7 - 37 / 6.0), 7);
	expect_units(t, flow[2], 9 + 2 * (7 - 37 / 6.0), 7);
	run_needs(&r, need, 2, 12 * SEC);
	expect_done(t, &need[0], 37 / 6.0);
	expect_done(t, &need[1], 49 / 6.0);
	expect_units(t, flow[0], 18, 12);
	expect_units(t, flow[1], 18, 12);
	expect_units(t, flow[2], 36, 12);
	case_note(t, "done at %.3f and %.3f, C has %.2f at 12",
		  (double)need[0].done_ns / (double)SEC,
		  (double)need[1].done_ns / (double)SEC,
		  (double)flow[2]->stats.ios / UNIT);
	fixture_close(&r);
}

void ifq_example(struct test_case *t)
{
	example_on(t, 1);
	example_on(t, 3);
}
