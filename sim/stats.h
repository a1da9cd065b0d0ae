/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stats - what a flow got
 *
 * Latencies are counted in buckets of 1/16 of an octave, so a percentile is
 * never more than 1/16 above the truth and never below it.
 */
#ifndef MQFAIR_SIM_STATS_H
#define MQFAIR_SIM_STATS_H

#include "port.h"

enum {
	HISTOGRAM_SHIFT		= 4,
	HISTOGRAM_BUCKETS	= (64 - HISTOGRAM_SHIFT + 1) << HISTOGRAM_SHIFT,
};

struct histogram {
	u64 count;
	u64 sum_ns, max_ns;
	u32 bucket[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, u64 ns);

/* Upper end of the bucket in which the @permille-th value lies; 0 if empty. */
u64 histogram_at(const struct histogram *h, u32 permille);

struct flow_stats {
	u64 ios, bytes;			/* completed */
	u64 wait_ns;			/* from insert to dispatch */
	struct histogram latency;	/* from submission to completion */
};

#endif /* MQFAIR_SIM_STATS_H */
