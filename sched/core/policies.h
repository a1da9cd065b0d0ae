/* SPDX-License-Identifier: GPL-2.0 */
/* The table of schedulers is made from policies.def.  It is constant. */
#ifndef MQFAIR_POLICIES_H
#define MQFAIR_POLICIES_H

#include "port.h"

struct sched_ops;

enum {
	POLICIES_MAX	= 16,
};

#define SCHEDULER(symbol, name) extern const struct sched_ops symbol##_ops;
#define EXAMPLE(symbol, name) SCHEDULER(symbol, name)
#include "policies.def"
#undef EXAMPLE
#undef SCHEDULER

/* The array ends with NULL. */
extern const struct sched_ops *const sched_policies[];
u32 sched_policies_count(void);

/* Returns the scheduler of that name, or NULL. */
const struct sched_ops *sched_find(const char *name);

#endif /* MQFAIR_POLICIES_H */
