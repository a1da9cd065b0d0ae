/* SPDX-License-Identifier: GPL-2.0 */
/*
 * budget_mock - a scheduler with a budget and nothing else, for tests
 *
 * Each round has the total that the test has set.  A test sets budget_mock
 * before sched_init(); one program has one such scheduler at a time.
 */
#ifndef MQFAIR_TESTS_BUDGET_MOCK_H
#define MQFAIR_TESTS_BUDGET_MOCK_H

#include "sched/budget/round.h"

static struct {
	const struct budget_ops *ops;
	enum budget_rule rule;
	u64 total;			/* of each round */
	u32 predicted;			/* calls of predict */
	void (*on_predict)(void);	/* or NULL */
} budget_mock;

static void budget_mock_predict(struct budget *b, u64 now)
{
	(void)now;
	budget_mock.predicted++;
	b->total = budget_mock.total;
	if (budget_mock.on_predict)
		budget_mock.on_predict();
}

static int budget_mock_init(struct sched *s)
{
	u32 depth[BUDGET_DOMAINS], i;
	struct budget *b = s->own;

	for (i = 0; i < BUDGET_DOMAINS; i++)
		depth[i] = s->params.depth;
	if (budget_init(b, s, budget_mock.ops, budget_mock.total, depth))
		return -ENOMEM;
	budget_set_rule(b, budget_mock.rule);
	return 0;
}

static void budget_mock_exit(struct sched *s)
{
	budget_deinit(s->own);
}

static const struct tunable budget_mock_tunables[] = { { .name = NULL } };

static const struct sched_ops budget_mock_ops = {
	.name			= "test",
	.tunables		= budget_mock_tunables,
	.bytes			= sizeof(struct budget),
	.queue_bytes		= sizeof(struct budget_queue),
	.params_bytes		= sizeof(struct budget_params),
	.flow_bytes		= sizeof(struct budget_flow),
	.flow_queue_bytes	= BUDGET_FLOW_QUEUE_BYTES(BUDGET_DOMAINS),
	.init			= budget_mock_init,
	.exit			= budget_mock_exit,
	.insert			= budget_insert,
	.merge			= budget_merge,
	.dispatch		= budget_dispatch,
	.block			= budget_block,
	.complete		= budget_complete,
	.requeue		= budget_requeue,
	.tick			= round_tick,
	.tune			= budget_tune,
};

#endif /* MQFAIR_TESTS_BUDGET_MOCK_H */
