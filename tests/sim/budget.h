/* SPDX-License-Identifier: GPL-2.0 */
/* What must hold of the schedulers that hand out budgets, all the time. */
#ifndef MQFAIR_TESTS_SIM_BUDGET_H
#define MQFAIR_TESTS_SIM_BUDGET_H

#include "fixture.h"

/* True if @ops is a scheduler that hands out budgets. */
bool budget_family(const struct sched_ops *ops);

/* Changes some of the family's parameters. */
void budget_chaos(struct rng *rng, const struct sched_ops *ops,
		  struct sched_params *p);

/* host_watch.step and .quiet; @arg: the fixture. */
void budget_step(void *arg);
void budget_quiet(void *arg);

#endif /* MQFAIR_TESTS_SIM_BUDGET_H */
