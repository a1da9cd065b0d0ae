// SPDX-License-Identifier: GPL-2.0
/* The table of schedulers. */
#include "policies.h"
#include "sched.h"

#define SCHEDULER(symbol, name_) &symbol##_ops,
#ifdef MQFAIR_EXAMPLES
#define EXAMPLE(symbol, name_) &symbol##_ops,
#else
#define EXAMPLE(symbol, name_)
#endif

const struct sched_ops *const sched_policies[] = {
#include "policies.def"
	NULL,
};
static_assert(ARRAY_SIZE(sched_policies) - 1 <= POLICIES_MAX);

u32 sched_policies_count(void)
{
	return ARRAY_SIZE(sched_policies) - 1;
}

const struct sched_ops *sched_find(const char *name)
{
	const struct sched_ops *const *p;

	for (p = sched_policies; *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	return NULL;
}
