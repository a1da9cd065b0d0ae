// SPDX-License-Identifier: GPL-2.0
#include "budget_fixture.h"
#include "tests/budget_mock.h"

struct hooks scenario;

const struct budget_ops one_domain = {
	.nr_domains = 1, .predict = budget_mock_predict,
};

static u32 domain_of(const struct io *io)
{
	return io->op == IO_WRITE;
}

const struct budget_ops two_domains = {
	.nr_domains = 2, .batch = { 3, 2 }, .domain = domain_of,
	.predict = budget_mock_predict,
};

void set_total(u64 total)
{
	budget_mock.total = total;
}

void set_on_predict(void (*on_predict)(void))
{
	budget_mock.on_predict = on_predict;
}

u32 predictions(void)
{
	return budget_mock.predicted;
}

void scenario_init(const struct budget_ops *ops, enum budget_rule rule,
		   u64 total, u32 depth)
{
	static const u32 weights[FLOWS] = { 100, 250, 500, 1000 };
	struct sched_params p;
	u32 i;

	budget_mock.ops = ops;
	budget_mock.rule = rule;
	budget_mock.total = total;
	budget_mock.predicted = 0;
	budget_mock.on_predict = NULL;
	sched_params_init(&budget_mock_ops, &p);
	p.depth = depth;
	budget_params(&p)->period_ns = PERIOD;
	hooks_open(&scenario, &budget_mock_ops, &p, QUEUES);
	for (i = 0; i < FLOWS; i++)
		hooks_flow(&scenario, weights[i]);
}

void scenario_deinit(void)
{
	hooks_close(&scenario);
}

bool tick_is_requested(const struct hooks *s)
{
	return s->tick_ns && s->tick_ns <= s->now;
}

s64 left(const struct hooks *s, u32 flow)
{
	return credit_left(&budget_flow_of(s->flow[flow])->credit);
}

void check_conservation(const struct hooks *s)
{
	u32 i;

	for (i = 0; i < FLOWS; i++)
		assert_int_equal(budget_flow_of(s->flow[i])->granted,
				 (s64)budget_spent(s->flow[i]) + left(s, i));
}

u64 part_of(const struct hooks *s, u32 flow, u64 total)
{
	u64 generation, share, part;

	share = share_of((struct share_tree *)&s->sched.share,
			 &s->flow[flow]->group, &generation);
	part = mul_u64_u64_shr(total, share, SHARE_SHIFT);
	return max(part, 1ULL);
}

u32 spend_all(struct hooks *s, u32 flow)
{
	u32 n = 0;

	for (; left(s, flow) > 0; n++) {
		hooks_read(s, 0, s->flow[flow]);
		hooks_complete(s, hooks_next(s, 0));
	}
	return n;
}
