/* SPDX-License-Identifier: GPL-2.0 */
/*
 * domain - requests of a kind: how long they take, how many may be out
 *
 * Kyber's part of kyber-fair.  Reads, writes, discards and the rest each have
 * a number of slots, their *depth*, so that writes, which a drive takes in far
 * faster than it can put them away, do not stand before the reads in it.  The
 * slots themselves are struct slots; here is how many there are to be.
 *
 * Every DOMAIN_PERIOD_NS the latencies are looked at.  The device is
 * *congested* when the 90th percentile of the time at the device is above the
 * target of any domain.  Then each domain's depth is multiplied by
 * p99 / target, at least 1/4 and at most 2, where p99 is of the time from when
 * a request could have gone to when it was done: who meets the target gives
 * way, who does not grows.  Without congestion depths only grow.  Percentiles
 * are taken of DOMAIN_SAMPLES requests or of a second; who has fewer goes by
 * what was known last [K].
 *
 *	reads:  target 2 ms, p90 3 ms, p99 with the wait 8 ms: 64 -> 128
 *	writes: target 10 ms,          p99 with the wait 5 ms: 64 -> 32
 *
 * What a write costs.  The mean time of a write at the device over that of a
 * read [P], in units of 2^-RATIO_SHIFT, from sums that decay by a quarter in
 * each period that has something to say [R].
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
 * A write cache answers before the flash does and a stalled one in a second:
 * the ratio may be anything but one that makes writes free, or one of them as
 * dear as all that a flow gets in a minute [R].
 */
#define RATIO_LEAST	(RATIO_ONE / 64)
#define RATIO_MOST	(RATIO_ONE * 1024)

/* Of the requests of one queue, written when they are done. */
struct domain_shard {
	struct latency_histogram device;	/* from dispatch */
	struct latency_histogram total;		/* from when it could go */
};

struct domain {
	struct domain_shard *shard;		/* I: by queue */
	u64 target_ns;				/* 0: of no concern */
	u32 depth;				/* slots there are to be */
	u64 since_ns;				/* of the windows; 0: none yet */
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

/* Where a depth begins, and the most it can be. */
u32 domain_depth_most(enum io_op op);

/* 0 or -ENOMEM with nothing left behind. */
int domains_init(struct domains *d, u32 nr_queues);
void domains_deinit(struct domains *d);

/* A request of @queue is done. */
void domain_done(struct domains *d, enum io_op op, u32 queue, u64 device_ns,
		 u64 total_ns);

/* Sets depths and ratio if it is time; true then. */
bool domains_adapt(struct domains *d, u64 now);

/* Mean time at the device, of late; 0: not known. */
u64 domain_mean_ns(const struct domain *d);

/* What @cost is for a write. */
static inline u64 domain_write_cost(const struct domains *d, u32 cost)
{
	return ((u64)cost * READ_ONCE(d->ratio)) >> RATIO_SHIFT;
}

#endif /* MQFAIR_DOMAIN_H */
