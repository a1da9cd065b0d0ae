/* SPDX-License-Identifier: GPL-2.0 */
/*
 * domain - how long the requests of a domain take, and how many slots it has
 *
 * Kyber's part of kyber-fair.  Reads, writes, discards and others are one
 * domain each.  A domain has a number of slots, its *depth*.  So writes, which
 * a drive accepts faster than it can store, do not queue up before the reads.
 * The slots themselves are struct slots; this file sets their number.
 *
 * Without a target for reads and one for writes each domain has its greatest depth,
 * and the window of isolation.h bounds it [R].  That is the default.  Kyber's targets,
 * 2 and 10 ms, are those of fast drives.  A slow drive misses them with one request
 * inside, and its writes and discards would go one by one.  With both targets, the
 * latencies are judged every DOMAIN_PERIOD_NS [K].
 *   - The device is *congested* if in some domain the 90th percentile of the
 *     time at the device exceeds the domain's target.
 *   - Then each domain's depth is multiplied by p99 / target, at least by 1/4
 *     and at most by 2.  p99 is of the time from when a request could have gone
 *     until it was done.  A domain that meets its target gives way, and one
 *     that misses it grows.
 *   - Without congestion depths only grow.
 *   - Percentiles are taken of DOMAIN_SAMPLES requests, or of those of a
 *     second.  A domain with fewer keeps the last known value.
 *
 *	reads:  target 2 ms, p90 3 ms, p99 with the wait 8 ms: 64 -> 128
 *	writes: target 10 ms,          p99 with the wait 5 ms: 64 -> 32
 *
 * The cost of a write is the mean time of a write at the device over that of a
 * read [P], in units of 2^-RATIO_SHIFT.  The sums behind these means decay by a
 * quarter in each period that has requests [R].
 *
 *	          done  adapt  others
 *	done       -      -      -
 *	adapt      -      X      X
 *
 * X: the caller serialises; -: may run at once.
 *
 * Sources: Sandoval, Kyber, LWN 720071, 2017, and its constants [K].  Son, Oh,
 * Ahn, Kyber-fairness, section IV.2 [P].
 * Tested by tests/unit/domain.c, tests/sim/kyber_fair.c.
 */
#ifndef MQFAIR_DOMAIN_H
#define MQFAIR_DOMAIN_H

#include "core/cost.h"
#include "histogram.h"

enum {
	DOMAINS			= IO_OPS,	/* by enum io_op */
	DOMAIN_PERIOD_NS	= 100 * 1000 * 1000,	/* [K] */
	DOMAIN_SAMPLES		= 500,			/* [K] */
	DOMAIN_PATIENCE_NS	= 1000 * 1000 * 1000,	/* [K] */

	RATIO_SHIFT		= 16,
};

#define RATIO_ONE	(1U << RATIO_SHIFT)
/*
 * A write cache answers before the flash does, and a stalled one in a second,
 * so the ratio varies widely.  The bounds keep a write from being free, and
 * from costing as much as a flow gets in a minute [R].
 */
#define RATIO_LEAST	(RATIO_ONE / 64)
#define RATIO_MOST	(RATIO_ONE * 1024)

/* The requests of one queue, recorded by their completions. */
struct domain_shard {
	struct latency_histogram device;	/* from dispatch */
	struct latency_histogram total;		/* from when it could go */
};

struct domain {
	struct domain_shard *shard;		/* I: by queue */
	u64 target_ns;				/* 0: none */
	u32 depth;				/* slots */
	u64 since_ns;				/* start of the windows, or 0 */
	u64 p90_ns, p99_ns;			/* when last judged */
	u64 mean_count, mean_sum_ns;		/* decaying, x 2^8 */
	struct latency_window device, total;
};

struct domains {
	u32 nr_queues;				/* I */
	u32 ratio;				/* O, by adapt */
	u64 next_ns;				/* when to adapt */
	struct domain domain[DOMAINS];
};

const char *domain_name(enum io_op op);

/* The greatest depth, with which a domain begins. */
u32 domain_depth_most(enum io_op op);

/* 0 or -ENOMEM with nothing left behind. */
int domains_init(struct domains *d, u32 nr_queues);
void domains_deinit(struct domains *d);

/* A request of @queue is done. */
void domain_done(struct domains *d, enum io_op op, u32 queue, u64 device_ns,
		 u64 total_ns);

/* Sets depths and ratio, and returns true, if it is time. */
bool domains_adapt(struct domains *d, u64 now);

/* Recent mean time at the device; 0: not known. */
u64 domain_mean_ns(const struct domain *d);

/* The cost of a write that would cost @cost as a read. */
static inline u64 domain_write_cost(const struct domains *d, u32 cost)
{
	return ((u64)cost * READ_ONCE(d->ratio)) >> RATIO_SHIFT;
}

#endif /* MQFAIR_DOMAIN_H */
