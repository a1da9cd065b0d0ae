/* SPDX-License-Identifier: GPL-2.0 */
/*
 * params - sets a tunable by name, for tests that run under any scheduler
 *
 * A scheduler without a tunable of that name keeps its parameters.
 */
#ifndef MQFAIR_TESTS_PARAMS_H
#define MQFAIR_TESTS_PARAMS_H

#include "sched/core/sched.h"

/* @stored is in the unit of use and in range, for a number. */
static inline void params_put(const struct sched_ops *ops,
			      struct sched_params *p, const char *name,
			      u32 stored)
{
	const struct tunable *t = tunable_find(ops->tunables, name);

	if (t)
		tunable_put(t, p, stored);
}

/* As written; 0 without such a tunable. */
static inline u32 params_get(const struct sched_ops *ops,
			     const struct sched_params *p, const char *name)
{
	const struct tunable *t = tunable_find(ops->tunables, name);

	return t ? tunable_get(t, p) : 0;
}

/* @value is as written, in range, for a number or a choice. */
static inline void params_set(const struct sched_ops *ops,
			      struct sched_params *p, const char *name,
			      u32 value)
{
	const struct tunable *t = tunable_find(ops->tunables, name);

	if (t)
		port_assert(!tunable_set(t, p, value));
}

/* Of a choice with two names or a flag: the other one. */
static inline void params_flip(const struct sched_ops *ops,
			       struct sched_params *p, const char *name)
{
	params_set(ops, p, name, !params_get(ops, p, name));
}

#endif /* MQFAIR_TESTS_PARAMS_H */
