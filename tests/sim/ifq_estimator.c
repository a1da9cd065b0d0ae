// SPDX-License-Identifier: GPL-2.0
/* The estimator of weights. */
#include <math.h>

#include "ifq.h"
#include "sched/core/policies.h"

/* Bytes of two flows in a window, and what they had when it began. */
struct couple {
	struct host_flow *flow[2];
	u64 before[2];
	double copied[2];
};

static double couple_window(struct fixture *r, struct couple *c)
{
	u32 i;

	fixture_bytes(c->flow, c->before, 2);
	fixture_run(r, ifq_window_ns(r));
	for (i = 0; i < 2; i++)
		c->copied[i] = (double)(c->flow[i]->stats.bytes - c->before[i]);
	return c->copied[0] / c->copied[1];
}

/* The weights in force, first to second: of siblings. */
static double couple_weights(const struct fixture *r, const struct couple *c)
{
	if (r->test_case->ops != &ifq_ops)
		return 1;
	return (double)c->flow[0]->flow->group.scale /
	       c->flow[1]->flow->group.scale;
}

/*
 * One window in which the first asks for a third of what the second gets, and
 * the rule is literal: then the first asks for more than it can get, with three
 * times the weight.
 */
static void couple_open(struct fixture *r, struct test_case *t,
			struct couple *c)
{
	struct host_params p = ifq_host_params(t, 1);
	double ratio;

	ifq_params(&p.sched)->window_ms = 100;
	ifq_params(&p.sched)->damping = 100;
	fixture_open(r, t, &p);
	c->flow[0] = fixture_flow(r, NULL, 100);
	c->flow[1] = fixture_flow(r, NULL, 100);
	fixture_closed(r, c->flow[0], 4, 4 * KIB);
	fixture_closed(r, c->flow[1], 64, 4 * KIB);
	fixture_run(r, US);
	couple_window(r, c);
	fixture_closed(r, c->flow[0], 64, 4 * KIB);
	ratio = couple_window(r, c);
	if (off_by(ratio, 3, 0.2))
		case_fail(t, "two readers start at %.2f : 1, not 3 : 1", ratio);
}

void ifq_two_readers(struct test_case *t)
{
	struct couple c;
	struct fixture r;
	double ratio = 0, worst = 0;
	u32 i;

	couple_open(&r, t, &c);
	ifq_set_damping(&r, 50);
	for (i = 1; i <= 30; i++) {
		ratio = couple_window(&r, &c);
		if (i >= 5)
			worst = max(worst, fabs(ratio - 1));
	}
	if (worst > 0.02)
		case_fail(
			t,
			"five windows after 3 : 1 two readers differ by %.1f %%",
			100 * worst);
	case_note(t, "from the fifth window on never off by more than %.2f %%",
		  100 * worst);
	fixture_close(&r);
}

/* The literal rule: the reason for the damping. */
void ifq_undamped(struct test_case *t)
{
	struct couple c;
	struct fixture r;
	u32 i;

	couple_open(&r, t, &c);
	for (i = 0; i < 20; i++) {
		double ratio = couple_window(&r, &c);

		if (i % 2)
			ratio = 1 / ratio;
		/* The first window after the start is the third of them all. */
		if (ratio > 0.5)
			case_fail(
				t,
				"undamped, two readers come to rest at %.2f : 1",
				i % 2 ? 1 / ratio : ratio);
	}
	case_note(t, "3 : 1, 1 : 3, 3 : 1, .. for %u windows", i);
	fixture_close(&r);
}

struct phase {
	const char *name;
	u32 windows;
	u32 settled;		/* from this window on */
	double within;
};

/* Estimated weights beside those that what is moved now makes due. */
static void run_phase(struct fixture *r, struct couple *c,
		      const struct phase *p)
{
	u32 i;

	for (i = 1; i <= p->windows; i++) {
		double weights = couple_weights(r, c);
		double due = 1 / couple_window(r, c);

		printf("# %s, window %2u: weights %7.2f : 1, due %7.2f : 1\n",
		       p->name, i, weights, due);
		if (i >= p->settled && off_by(weights, due, p->within))
			case_fail(
				r->test_case,
				"%s, window %u: weights are %.2f : 1, due are %.2f : 1",
				p->name, i, weights, due);
	}
}

void ifq_light_heavy_light(struct test_case *t)
{
	static const struct phase phases[] = {
		{ "light", 10, 8, 0.05 },
		{ "heavy", 10, 5, 0.02 },
		{ "light again", 12, 9, 0.05 },
	};
	struct host_params p = ifq_host_params(t, 1);
	struct load_params light = {
		.depth = 1,
		.bytes = 4 * KIB,
		.think_ns = 900 * US,
	};
	struct load *heavy;
	struct couple c;
	struct fixture r;

	ifq_params(&p.sched)->window_ms = 200;
	fixture_open(&r, t, &p);
	c.flow[0] = fixture_flow(&r, NULL, 100);
	c.flow[1] = fixture_flow(&r, NULL, 100);
	light.flow = c.flow[0];
	fixture_load(&r, &light);
	fixture_closed(&r, c.flow[1], 64, 4 * KIB);
	fixture_run(&r, US);
	run_phase(&r, &c, &phases[0]);
	heavy = fixture_closed(&r, c.flow[0], 64, 4 * KIB);
	run_phase(&r, &c, &phases[1]);
	load_stop(heavy);
	run_phase(&r, &c, &phases[2]);
	fixture_close(&r);
}

/* With weights set: a flow that takes all it can get has its share of them. */
void ifq_weights(struct test_case *t)
{
	static const u32 weights[] = { 100, 250, 500, 1000 };
	struct host_params p = ifq_host_params(t, 1);
	struct host_flow *flow[4];
	struct fixture r;
	u32 i;

	p.nr_queues = 2;
	ifq_params(&p.sched)->window_ms = 100;
	fixture_open(&r, t, &p);
	for (i = 0; i < 4; i++) {
		flow[i] = fixture_flow(&r, NULL, weights[i]);
		fixture_closed(&r, flow[i], 64, 4 * KIB);
	}
	fixture_run(&r, SEC);
	fixture_expect_parts(&r, flow, weights, 4, 500 * MS, 20, "weights");
	fixture_close(&r);
}

/* A parent's share is split among its children, however many and however busy. */
void ifq_tree(struct test_case *t)
{
	static const u32 parts[] = { 45, 45, 10 };
	struct host_params p = ifq_host_params(t, 1);
	struct host_flow *prod, *flow[3];
	struct fixture r;
	u32 i;

	ifq_params(&p.sched)->window_ms = 100;
	fixture_open(&r, t, &p);
	prod = fixture_flow(&r, NULL, 900);
	flow[0] = fixture_flow(&r, prod, 500);
	flow[1] = fixture_flow(&r, prod, 500);
	flow[2] = fixture_flow(&r, NULL, 100);
	for (i = 0; i < 3; i++)
		fixture_closed(&r, flow[i], 32 << i, 4 * KIB);
	fixture_run(&r, SEC);
	fixture_expect_parts(&r, flow, parts, 3, 500 * MS, 20, "tree");
	fixture_close(&r);
}
