/* SPDX-License-Identifier: GPL-2.0 */
/*
 * overwrite - whose flash pages a drive must be full of, from what was written
 *
 * The problem.  A drive hides its translation layer, so nobody tells which of
 * its pages hold a flow's data and which its outdated data.  But pages become
 * outdated by being overwritten, and all writes pass by here.
 *
 * The idea [R].  A shadow of the drive's map, of a sample of its pages: who
 * wrote the page last.  A sampled page that is written
 *	- and known was somebody's: that one has a valid page less and an
 *	  outdated one more, and the writer has a valid one more;
 *	- and unknown is taken to replace what the writer had there before it was
 *	  watched: on a drive that collects most writes replace something.
 * Collecting takes outdated pages away, and that is not seen.  But a drive that
 * collects has as many outdated pages as it has room for: `spare` of its valid
 * ones.  What is counted beyond that has been collected, from everybody in
 * proportion.  While less is counted nothing is known to be collected.
 *
 *	spare 10 %; A has 900 valid pages in the sample and rewrites them all
 *	alike, B has 100 and writes as much: in the long run each gets half of
 *	the 100 outdated ones.  valid / invalid is 18 for A and 2 for B.
 *
 * The sample.  One page of each group of 16, chosen by a hash of the group, of
 * one group in 2^level: the table has OVERWRITE_ENTRIES of them, and when it is
 * three quarters full level goes up by one and half of it is dropped (SHARDS:
 * Waldspurger et al., FAST 2015).  Eight bytes each; a terabyte ends at level
 * 10, a page in 16384.
 *
 * On the I/O path: a hash for each 64 KiB that are written, and for what is in
 * the sample an exchange on a ring of the queue's own.  tick empties the rings;
 * what does not fit is lost, and counted.
 *
 *	          wrote  tick  flow_init, flow_exit
 *	wrote       -     -      X
 *	tick        -     X      -
 *	flow_*      X     -      -
 *
 * X: serialised, for flow_* by the contract of sched.h; -: may run at once.
 *
 * Limits.  What was written before the scheduler was there counts as valid only
 * once it is written again.  A cgroup that is removed leaves pages of nobody's.
 * Discards are not looked at: a discarded page stays valid here.  How good it
 * is: doc/hwabc.md.
 *
 * Tested by tests/unit/overwrite.c, and against the map of a drive by
 * tests/sim/hwabc.c.
 */
#ifndef MQFAIR_OVERWRITE_H
#define MQFAIR_OVERWRITE_H

#include "port.h"

enum {
	OVERWRITE_PAGE		= 4096,
	OVERWRITE_GROUP_SHIFT	= 4,	/* pages in a group */
	OVERWRITE_ENTRIES	= 1 << 15,
	OVERWRITE_RING		= 128,
	OVERWRITE_BUCKETS	= 256,
};

/* Letters as in sched.h; W: overwrites.lock; T: tick alone. */

/* A flow's. */
struct overwrite_flow {
	u32 tag;			/* I: not 0 */
	struct overwrite_flow *next, **link;	/* W: in a bucket */
	u64 valid;			/* W: pages of the sample */
	u64 invalid;			/* W: the same, 2^-INVALID_SHIFT */
};

struct overwrite_entry {
	u32 group;
	u32 tag;			/* 0: empty */
};

struct overwrite_ring {
	atomic64_t next;		/* A: written so far */
	atomic64_t lost;		/* A */
	u64 seen;			/* T */
	atomic64_t wrote[OVERWRITE_RING];	/* A: group and tag, or 0 */
} __port_cacheline;

struct overwrites {
	struct overwrite_ring *ring;	/* I: by queue */
	struct overwrite_entry *entry;	/* T: a hash table */
	u32 nr_queues;			/* I */
	u32 used;			/* T: entries */
	u32 level;			/* O, by T */
	struct port_lock lock;		/* leaf: the flows and their counts */
	u32 tags;			/* W: given out */
	struct overwrite_flow *bucket[OVERWRITE_BUCKETS];	/* W: by tag */
};

/* 0 or -ENOMEM with nothing left behind. */
int overwrites_init(struct overwrites *o, u32 nr_queues);
void overwrites_deinit(struct overwrites *o);

void overwrite_flow_init(struct overwrites *o, struct overwrite_flow *of);
void overwrite_flow_exit(struct overwrites *o, struct overwrite_flow *of);

/* A write of @bytes from @page on, submitted on @queue, is done. */
void overwrites_wrote(struct overwrites *o, const struct overwrite_flow *of,
		      u32 queue, u32 page, u32 bytes);

/* @spare_pct: outdated pages that the drive has room for, of the valid ones. */
void overwrites_tick(struct overwrites *o, u32 spare_pct);

/* Estimates, in pages; of ratios the sample is all that there is. */
u64 overwrites_valid(const struct overwrites *o,
		     const struct overwrite_flow *of);
u64 overwrites_invalid(const struct overwrites *o,
		       const struct overwrite_flow *of);

u64 overwrites_lost(const struct overwrites *o);

#endif /* MQFAIR_OVERWRITE_H */
