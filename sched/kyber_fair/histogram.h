/* SPDX-License-Identifier: GPL-2.0 */
/*
 * histogram - how long requests took: cheap to write, percentiles within 1/8
 *
 * A completion records its request in the histogram of the request's queue.
 * Now and then one thread drains all histograms into a *latency window*, and
 * reads the percentiles and the mean there.
 *
 * Buckets are log-linear: 1024 ns wide up to 8 us, then eight in each octave up
 * to 4.4 s.  So a percentile is never below the truth, and at most 1/8 above it
 * (1 us below 8 us).  That holds for a drive that answers in 10 us as for one
 * that takes 10 ms.  Kyber has a fixed number of buckets below a target [K]:
 * all requests of a fast drive are in the first one.  The mean is exact, for it
 * comes from the sum.
 *
 *	         record  drain
 *	record     -       -
 *	drain      -       X
 *
 * X: the caller serialises; -: may run at once.  A request that is recorded
 * during a drain may have its bucket in this window and its duration in the
 * next.  The mean of each window is then off by one request, and that of the
 * two together is right.
 *
 * Tested by tests/unit/histogram.c against a sorted array.
 */
#ifndef MQFAIR_HISTOGRAM_H
#define MQFAIR_HISTOGRAM_H

#include "port.h"

enum {
	LATENCY_UNIT_SHIFT	= 10,	/* 1024 ns */
	LATENCY_STEP_SHIFT	= 3,	/* eight buckets in an octave */
	LATENCY_OCTAVES		= 19,	/* above the first eight buckets */
	LATENCY_BUCKETS		= (LATENCY_OCTAVES + 1) << LATENCY_STEP_SHIFT,
};

struct latency_histogram {
	atomic64_t sum_ns;		/* A */
	atomic64_t bucket[LATENCY_BUCKETS];	/* A */
} __port_cacheline;

/* It belongs to the thread that drains. */
struct latency_window {
	u64 count;
	u64 sum_ns;
	u64 bucket[LATENCY_BUCKETS];
};

void histogram_record(struct latency_histogram *h, u64 ns);

/* Adds to @w the values recorded since the last drain. */
void histogram_drain(struct latency_histogram *h, struct latency_window *w);

void histogram_clear(struct latency_window *w);

/*
 * The least value that at least @percent of all values do not exceed.  It is
 * rounded up to the end of its bucket, and 0 for an empty window.
 */
u64 histogram_percentile(const struct latency_window *w, u32 percent);

#endif /* MQFAIR_HISTOGRAM_H */
