/* SPDX-License-Identifier: GPL-2.0 */
/*
 * overwrite - whose flash pages a drive must be full of, from what was written
 *
 * The problem.  A drive hides its translation layer, so nobody tells which of
 * its pages hold a flow's data and which its outdated data.  But pages become
 * outdated by being overwritten, and all writes pass by here.
 *
 * The idea [R].  A miniature of the drive, of a sample of its pages: a log of
 * blocks, filled with what is written as it comes, and collected as a drive
 * would: the block with the fewest valid pages, what is valid of it is copied.
 * A drive that collects has as many outdated pages as it has room for, so the
 * miniature collects while it has more than `spare` of its pages.  It begins
 * full of data of nobody's, that of before the scheduler was there.
 *
 *	spare 27 %; a hot writer on 5 % of the drive, one spread over 80 %.
 *	Were outdated pages collected from all in proportion, valid / invalid
 *	would be 0.4 and 8.  But blocks with much of the hot one are outdated
 *	soon and collected early, and the spread one's pages wait in blocks that
 *	are mostly valid: the miniature has it at 0.6 and 6, as the drive has.
 *
 * What was there before.  A flow's pages are known as its own once it has
 * written them.  How many more there are follows from how often it meets those
 * that are known: of N pages, written at random, K known ones are met by K / N
 * of its writes (Schnabel, The Estimation of the Total Fish Population of a
 * Lake, 1938).  Those never met again are taken to be nobody's.  Outdated pages
 * of before are those of who outdates pages now, in proportion.
 *
 * The sample.  One page, chosen by a hash, of each region of so many pages that
 * there are no more than OVERWRITE_REGIONS, at least 16 (such a miniature of a
 * cache: Waldspurger et al., USENIX ATC 2017).  328 KiB for a drive of any size.
 *
 * On the I/O path: a hash for each region that is written to, 64 KiB or more,
 * and for what is in the sample an exchange on a ring of the queue's own.  tick
 * empties the rings; what does not fit is lost, and counted.
 *
 *	          wrote  tick  flow_init, flow_exit
 *	wrote       -     -      X
 *	tick        -     X      -
 *	flow_*      X     -      -
 *
 * X: serialised, for flow_* by the contract of sched.h; -: may run at once.
 *
 * Limits.  A cgroup that is removed leaves pages of nobody's.  Discards are not
 * looked at: a discarded page stays valid here, and so does what was never
 * written.  Who writes some of its pages more often than others is taken to
 * have fewer, until it has written all.  How good it is: doc/hwabc.md.
 *
 * Tested by tests/unit/gc_shadow.c, and against the map of a drive by
 * tests/sim/hwabc.c.
 */
#ifndef MQFAIR_GC_SHADOW_H
#define MQFAIR_GC_SHADOW_H

#include "port.h"

enum {
	OVERWRITE_PAGE		= 4096,
	OVERWRITE_REGION_SHIFT	= 4,	/* least pages in a region */
	OVERWRITE_REGIONS	= 1 << 14,
	OVERWRITE_BLOCK		= 64,	/* slots of the miniature */
	OVERWRITE_RING		= 128,
	OVERWRITE_BUCKETS	= 256,
};

/* Letters as in sched.h; W: overwrites.lock; T: tick alone. */

/* A flow's; of the sample. */
struct gc_shadow_flow {
	u32 tag;			/* I: not 0 */
	struct gc_shadow_flow *next, **link;	/* W: in a bucket */
	u64 valid, invalid;		/* W: pages */
	u64 known, met;			/* W: known pages when it wrote; met */
};

/* A page that was placed: valid if its region's page is here. */
struct gc_shadow_slot {
	u32 region;
	u32 tag;			/* of whose it is; 0: nobody */
};

struct gc_shadow_block {
	u16 fill, valid;		/* slots */
};

enum gc_shadow_stream {
	OVERWRITE_WRITTEN,		/* as written .. */
	OVERWRITE_COPIED,		/* .. and by collecting */
	OVERWRITE_STREAMS,
};

struct gc_shadow_ring {
	atomic64_t next;		/* A: written so far */
	atomic64_t lost;		/* A */
	u64 seen;			/* T */
	atomic64_t wrote[OVERWRITE_RING];	/* A: region and tag, or 0 */
} __port_cacheline;

struct gc_shadow {
	struct gc_shadow_ring *ring;	/* I: by queue */
	u32 nr_queues;			/* I */
	u32 regions;			/* I */
	u32 region_shift;		/* I: of pages */
	u32 nr_blocks;			/* I */
	u32 *where;			/* T: slot of each region's page */
	struct gc_shadow_slot *slot;	/* T */
	struct gc_shadow_block *block;	/* T */
	u32 open[OVERWRITE_STREAMS];	/* T: the block that each fills */
	u32 room;			/* O, by T: of outdated pages */
	u32 invalid;			/* T: outdated pages */
	u32 owned;			/* O, by T: of these, somebody's */
	u32 unknown;			/* O, by T: valid pages that are nobody's */
	struct port_lock lock;		/* leaf: the flows and their counts */
	u32 tags;			/* W: given out */
	struct gc_shadow_flow *bucket[OVERWRITE_BUCKETS];	/* W: by tag */
};

/* A device of @pages; 0 or -ENOMEM with nothing left behind. */
int gc_shadow_init(struct gc_shadow *o, u32 nr_queues, u64 pages);
void gc_shadow_deinit(struct gc_shadow *o);

void gc_shadow_flow_init(struct gc_shadow *o, struct gc_shadow_flow *of);
void gc_shadow_flow_exit(struct gc_shadow *o, struct gc_shadow_flow *of);

/* A write of @bytes from @page on, submitted on @queue, is done. */
void gc_shadow_wrote(struct gc_shadow *o, const struct gc_shadow_flow *of,
		      u32 queue, u32 page, u32 bytes);

/* @spare_pct, up to 100: outdated pages that the drive has room for. */
void gc_shadow_tick(struct gc_shadow *o, u32 spare_pct);

/* Estimates, in pages; of ratios the sample is all that there is. */
u64 gc_shadow_valid(const struct gc_shadow *o,
		     const struct gc_shadow_flow *of);
u64 gc_shadow_invalid(const struct gc_shadow *o,
		       const struct gc_shadow_flow *of);

u64 gc_shadow_lost(const struct gc_shadow *o);

#endif /* MQFAIR_GC_SHADOW_H */
