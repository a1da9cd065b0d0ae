/* SPDX-License-Identifier: GPL-2.0 */
/*
 * params - the parameters of a scheduler in force
 *
 * Depth and cost are common to all schedulers.  The rest belongs to the
 * scheduler: a struct of sched_ops.params_bytes, kept in `own`, in which each
 * parameter is a u32.  The scheduler's table of tunables (tunable.h) says which
 * of them may be set, and within which range.
 *
 * Locking: tune writes sched.params field by field with WRITE_ONCE; any hook
 * reads it with READ_ONCE.  A copy belongs to its owner.
 */
#ifndef MQFAIR_PARAMS_H
#define MQFAIR_PARAMS_H

#include "cost.h"

struct sched;
struct sched_ops;

enum {
	PARAMS_WORDS	= 8,		/* room for a scheduler's parameters */
};

struct sched_params {
	u32 depth;			/* D, slots */
	u32 depth_most;			/* of a D that is found; 0: D is set */
	u32 isolation;			/* percent; isolation.h */
	struct cost_model cost;
	u64 own[PARAMS_WORDS];		/* sched_ops.params_bytes */
};

/* Sets the defaults of the tunables of @ops, and 0 elsewhere. */
void sched_params_init(const struct sched_ops *ops, struct sched_params *p);

/* Tune calls this.  It takes cost and own from @p, word by word; not depth. */
void sched_params_take(struct sched *s, const struct sched_params *p);

/* Returns 0, or -EINVAL if a tunable is out of range. */
int sched_params_check(const struct sched_ops *ops, const struct sched_params *p);

#endif /* MQFAIR_PARAMS_H */
