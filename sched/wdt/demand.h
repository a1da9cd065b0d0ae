/* SPDX-License-Identifier: GPL-2.0 */
/*
 * demand - how much a container is likely to ask for in the next interval
 *
 * The 80th percentile of a normal distribution with the mean and the deviation
 * of the last samples: mu + 0.8416 sigma.  Four intervals of 90, 110, 90 and
 * 110 MB have mu = 100 and sigma = 10.  Expect no more than 108.4 MB, four
 * times out of five.
 *
 * The percentile and the normal distribution are the paper's [P]; 0.8416 is
 * the probit of 0.8 [K].  The number of samples is our reading, and so is that
 * all samples count alike [R].  The numbers are in fixed point.  The result is
 * exact to 2^-20 of the largest sample, or to a byte.
 *
 * Source: Ahn, La, Kim, Improving I/O Resource Sharing of Linux Cgroup for
 * NVMe SSDs on Multi-core Systems, USENIX HotStorage 2016.
 * Tested by tests/unit/demand.c.
 */
#ifndef MQFAIR_DEMAND_H
#define MQFAIR_DEMAND_H

#include "port.h"

enum {
	DEMAND_SAMPLES	= 64,	/* remembered at most */
};

/* Zeroed memory is an empty history.  The caller serialises. */
struct demand {
	u64 sample[DEMAND_SAMPLES];	/* a ring */
	u32 nr;			/* samples in it */
	u32 next;		/* index of the next one */
};

void demand_add(struct demand *d, u64 sample);

/* @history samples count, 1 or more.  0 when there are none. */
u64 demand_percentile(const struct demand *d, u32 history);

#endif /* MQFAIR_DEMAND_H */
