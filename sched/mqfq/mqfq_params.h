/* SPDX-License-Identifier: GPL-2.0 */
/* These are the parameters of mqfq.c.  A scheduler that embeds it has them first. */
#ifndef MQFAIR_MQFQ_PARAMS_H
#define MQFAIR_MQFQ_PARAMS_H

#include "core/sched.h"

enum {
	THRESHOLD_MAX	= 1 << 30,	/* bytes */
};

struct mqfq_params {
	u32 threshold;			/* T, bytes of total service */
	/* T is worth so many small requests of each flow at least.  0: as stated. */
	u32 least_ios;
};
/* tunables_set_auto() sets the second with the first. */
static_assert(offsetof(struct mqfq_params, least_ios) == sizeof(u32));

static inline struct mqfq_params *mqfq_params(const struct sched_params *p)
{
	return (struct mqfq_params *)p->own;
}

#endif /* MQFAIR_MQFQ_PARAMS_H */
