/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tuning - tunables of a scheduler, set from text as the kernel's files are
 *
 * A value is a number, the name of a choice, a cost model, or `auto` for a
 * tunable that the host may choose.  `N auto` is a depth that begins with N.  The rules of `auto` are those of
 * kernel/attrs.c:
 *
 *	depth		the requests that the device can take, at most 128;
 *			for `N auto` N, at most the requests that it can take
 *	threshold	512 bytes for each slot of the depth in force
 *
 * Example.  A host of 4 queues with 16 tags each takes 64 requests, so the
 * automatic depth is 64 and the automatic threshold 32 KiB.
 */
#ifndef MQFAIR_SIM_TUNING_H
#define MQFAIR_SIM_TUNING_H

#include "sched/core/sched.h"

/* A value that a tunable is to get. */
struct setting {
	const struct tunable *tunable;
	bool automatic;
	u32 start;		/* of an automatic depth; 0: the rule's own */
	bool lines;		/* a cost with its coefficients */
	u32 value;
	struct cost_model cost;
};

struct tuning {
	const struct sched_ops *ops;
	u32 takes;		/* requests that the device can take; 0: any */
	u32 automatic;		/* bit i: tunable i is automatic */
	struct sched_params params;
};

/* Sets the defaults of @ops, `auto` wherever it is accepted. */
void tuning_init(struct tuning *t, const struct sched_ops *ops, u32 takes);

/*
 * Reads the @nr words of a value for the tunable @name of @ops.  Returns false
 * with the reason in @wrong, of @size bytes.
 */
bool setting_parse(struct setting *s, const struct sched_ops *ops,
		   const char *name, char *const *word, u32 nr, char *wrong,
		   size_t size);

/* Sets @s, which setting_parse() accepted. */
void tuning_set(struct tuning *t, const struct setting *s);

#endif /* MQFAIR_SIM_TUNING_H */
