/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stats - the service that a flow has received
 *
 * Latencies, in nanoseconds, are counted in buckets of 1/16 of an octave (from
 * a power of two to the next).  So a percentile is never below the truth, and
 * at most 1/16 above it.
 *
 * Example.  Latencies of 1000, 1020 and 5000 ns fall into the buckets that end
 * at 1023, 1023 and 5119.  The median is given as 1023 ns, the maximum as 5000
 * ns.
 */
#ifndef MQFAIR_SIM_STATS_H
#define MQFAIR_SIM_STATS_H

#include "port.h"

enum {
	HISTOGRAM_SHIFT		= 4,	/* log2 of the buckets of an octave */
	HISTOGRAM_BUCKETS	= (64 - HISTOGRAM_SHIFT + 1) << HISTOGRAM_SHIFT,
};

struct histogram {
	u64 count;
	u64 sum_ns, max_ns;
	u32 bucket[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, u64 ns);

/*
 * Returns the upper end of the bucket of the @permille-th value, but at most
 * the maximum; 0 if @h is empty.
 */
u64 histogram_at(const struct histogram *h, u32 permille);

struct flow_stats {
	u64 ios, bytes;			/* completed */
	u64 tag_waits;			/* ios that waited for a scheduler tag */
	u64 wait_ns;			/* from insert to dispatch */
	u64 backlog_ns;			/* while it had an io waiting: host_settle() */
	struct histogram latency;	/* from submission to completion, or reap */
};

#endif /* MQFAIR_SIM_STATS_H */
