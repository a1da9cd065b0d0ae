// SPDX-License-Identifier: GPL-2.0
/* The parts that the tests of ifq share, and their table. */
#include <math.h>

#include "ifq.h"
#include "sched/core/policies.h"

struct host_params ifq_host_params(const struct test_case *t, u64 seed)
{
	struct host_params p = {
		.seed = seed,
		.nr_queues = 1,
		.ops = t->ops,
		.device = { .slots = 8, .base_ns = 100 * US },
	};

	sched_params_init(&ifq_ops, &p.sched);
	p.sched.depth = 8; /* the paper's */
	p.sched.isolation = 0;
	return p;
}

const struct mqfq *mqfq_state(const struct fixture *r)
{
	return r->host->sched.own;
}

u64 ifq_window_of(const struct fixture *r)
{
	return container_of(mqfq_state(r), struct ifq, mqfq)->ifq_weight.window;
}

u64 ifq_window_ns(const struct fixture *r)
{
	return ifq_params(&r->host->sched.params)->window_ms * MS;
}

void ifq_set_damping(struct fixture *r, u32 percent)
{
	struct sched_params p = r->host->sched.params;

	ifq_params(&p)->damping = percent;
	host_tune(r->host, &p);
}

bool off_by(double got, double want, double part)
{
	return fabs(got / want - 1) > part;
}

const struct test ifq_tests[] = {
	{ "ifq/example", ifq_example, true },
	{ "ifq/two-readers", ifq_two_readers, true },
	{ "ifq/undamped", ifq_undamped, true },
	{ "ifq/light-heavy-light", ifq_light_heavy_light, true },
	{ "ifq/weights", ifq_weights, true },
	{ "ifq/tree", ifq_tree, true },
	{ "ifq/roll", ifq_roll, false },
	{ "ifq/debt", ifq_debt, false },
	{ "ifq/wakes", ifq_wakes, false },
	{ "ifq/due-weights", ifq_due_weights, true },
	{ "ifq/sharing-incentive", ifq_sharing_incentive, true },
	{ "ifq/no-gain-from-more", ifq_no_gain_from_more, true },
	{ "ifq/monotony", ifq_monotony, false },
	{ "ifq/less-waits-less", ifq_less_waits_less, true },
	{ "ifq/tail", ifq_tail, true },
	{ "ifq/depth-curve", ifq_depth_curve, false },
	{ "ifq/virtual-time", ifq_virtual_time, false },
	{ "ifq/no-credit", ifq_no_credit, false },
	{ "ifq/window", ifq_window, false },
	{ NULL, NULL, false },
};
