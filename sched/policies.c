// SPDX-License-Identifier: GPL-2.0
/* The table of schedulers. */
#include "sched.h"
#include "policies.h"

const struct sched_ops *const sched_policies[] = {
	&mqfq_ops,
	NULL,
};

static bool name_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

const struct sched_ops *sched_find(const char *name)
{
	const struct sched_ops *const *p;

	for (p = sched_policies; *p; p++)
		if (name_equal((*p)->name, name))
			return *p;
	return NULL;
}
