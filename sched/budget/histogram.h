/* SPDX-License-Identifier: GPL-2.0 */
/*
 * histogram - how long requests took, near enough and cheap to write
 *
 * Who completes a request records it in the histogram of the request's queue;
 * now and then one thread drains all of them into a *window* and reads the
 * percentiles and the mean there.
 *
 * Buckets are log-linear: 1024 ns wide up to 8 us, from there eight in each
 * octave up to 4.4 s.  So a percentile is at most 1/8 (below 8 us: 1 us) above
 * the truth and never below it, on a drive that answers in 10 us as on one that
 * takes 10 ms.  A fixed number of buckets below a target, as in Kyber, puts all
 * that a fast drive does into the first one [K].  The mean is exact: it is of
 * the sum, not of the buckets.
 *
 *	         record  drain
 *	record     -       -
 *	drain      -       X
 *
 * X: the caller serialises; -: may run at once.  A request recorded during a
 * drain may have its bucket in this window and its duration in the next: the
 * mean is off by one request in the window, and right over the two.
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

/* Belongs to whoever drains. */
struct latency_window {
	u64 count;
	u64 sum_ns;
	u64 bucket[LATENCY_BUCKETS];
};

void histogram_record(struct latency_histogram *h, u64 ns);

/* Moves what was recorded since the last time into @w. */
void histogram_drain(struct latency_histogram *h, struct latency_window *w);

void histogram_clear(struct latency_window *w);

/*
 * End of the bucket that holds the least value which at least @percent of all
 * do not exceed; 0 for an empty window.
 */
u64 histogram_percentile(const struct latency_window *w, u32 percent);

#endif /* MQFAIR_HISTOGRAM_H */
