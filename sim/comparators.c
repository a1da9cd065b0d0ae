// SPDX-License-Identifier: GPL-2.0
#include "comparators.h"

const struct sched_ops *const comparators[] = {
	&flashfq_ops,
	&bwf2q_ops,
	&cfq_ops,
	&mfap_ops,
	&stf_ops,
	&iocost_ops,
	&iolatency_ops,
	&throttle_ops,
	&deadline_ops,
	&kyber_ops,
	NULL,
};

const struct sched_ops *comparator_find(const char *name)
{
	const struct sched_ops *const *p;

	for (p = comparators; *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	return NULL;
}

/* The order among the lanes of a queue is computed when it is needed. */
void comparator_join(struct queue *q, struct lane *lane)
{
	(void)q;
	(void)lane;
}

void comparator_pay(struct queue *q, struct lane *lane, u32 cost)
{
	(void)q;
	(void)lane;
	(void)cost;
}
