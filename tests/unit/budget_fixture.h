/* SPDX-License-Identifier: GPL-2.0 */
/*
 * budget_fixture - four flows and three queues under the budget of a test
 *
 * A test calls the hooks by hooks.h and acts on wakes and ticks itself.
 */
#ifndef MQFAIR_UNIT_BUDGET_FIXTURE_H
#define MQFAIR_UNIT_BUDGET_FIXTURE_H

#include "hooks.h"
#include "sched/budget/budget.h"

enum {
	QUEUES	= 3,
	FLOWS	= 4,
	PERIOD	= 40 * MS,	/* no flow is idle for FLOW_GRACE_NS */
};

extern struct hooks scenario;

/* One domain; and two of them, writes apart from the rest. */
extern const struct budget_ops one_domain, two_domains;

/* The flows have the weights 100, 250, 500 and 1000. */
void scenario_init(const struct budget_ops *ops, enum budget_rule rule,
		   u64 total, u32 depth);

/* No request waits and none is in the device. */
void scenario_deinit(void);

static inline struct budget *budget(const struct hooks *s)
{
	return s->sched.own;
}

/* The total of the rounds that begin from now on. */
void set_total(u64 total);

/* A refill calls @on_predict from now on. */
void set_on_predict(void (*on_predict)(void));

/* Calls of predict. */
u32 predictions(void);

bool tick_is_requested(const struct hooks *s);

s64 left(const struct hooks *s, u32 flow);

/* The part of @total that is due to @flow. */
u64 part_of(const struct hooks *s, u32 flow, u64 total);

/* Spends all credit of @flow in reads of HOOKS_BYTES; returns their number. */
u32 spend_all(struct hooks *s, u32 flow);

/* I1. */
void check_conservation(const struct hooks *s);

#endif /* MQFAIR_UNIT_BUDGET_FIXTURE_H */
