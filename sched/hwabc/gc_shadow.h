/* SPDX-License-Identifier: GPL-2.0 */
/*
 * gc_shadow - how many flash pages each flow has on a drive that hides its map
 *
 * The problem.  A drive hides its translation layer, so a scheduler cannot ask
 * it which pages hold a flow's valid data, and which its invalid data.  But a
 * page becomes invalid when it is overwritten, and all writes pass here.
 *
 * The idea [R].  A *shadow FTL*, a miniature of the drive with a sample of its
 * pages.  It is a log of blocks, which the writes fill in their order.  It is
 * collected as a drive's log would be: the block with the fewest valid pages
 * goes first, and its valid pages are copied.  A drive that collects garbage
 * has as many invalid pages as it has room for.  So the shadow FTL collects
 * while invalid pages are more than `spare` of its pages.  At first it is full
 * of data that was written before the scheduler started, and that no flow
 * owns.
 *
 *	spare 27 %; a hot writer on 5 % of the drive, one spread over 80 %.
 *	Were invalid pages collected from all in proportion, valid / invalid
 *	would be 0.4 and 8.  But blocks with many pages of the hot writer become
 *	invalid soon and are collected early.  The pages of the other writer
 *	wait in blocks that are mostly valid.  The shadow FTL finds 0.6 and 6,
 *	as the drive has.
 *
 * Data from before.  The shadow FTL knows that a page is a flow's once the flow
 * has written it.  How many more pages the flow has follows from how often it
 * overwrites its known pages.  If it writes at random to N pages, of which K are
 * known, K / N of its writes meet a known one (Schnabel, The Estimation of the
 * Total Fish Population of a Lake, 1938).  Pages that are never overwritten are
 * taken to be no flow's.  Invalid pages from before are attributed to the flows
 * that make pages invalid now, in proportion.
 *
 * The sample.  A region is at least 16 pages, and as many more as it takes for
 * no more than GC_SHADOW_REGIONS regions.  A hash chooses one page of each
 * (Waldspurger et al., USENIX ATC 2017, do so for a miniature of a cache).
 * That takes 328 KiB for a drive of any size.
 *
 * On the I/O path a write takes a hash for each of its regions, which are 64
 * KiB or more.  A page of the sample takes an exchange on the ring of its
 * queue.  tick empties the rings.  An entry that does not fit is lost, and
 * counted.
 *
 *	          wrote  tick  flow_init, flow_exit
 *	wrote       -     -      X
 *	tick        -     X      -
 *	flow_*      X     -      -
 *
 * X: serialised, for flow_* by the contract of sched.h; -: may run at once.
 *
 * Limits.
 *   - The pages of a cgroup that is removed become no flow's.
 *   - Discards are ignored: a discarded page stays valid here, and so does one
 *     that was never written.
 *   - A flow that writes some pages more often than others seems to have fewer,
 *     until it has written all.
 *   doc/measurements/hwabc.md says how good the estimates are.
 *
 * Tested by tests/unit/gc_shadow.c, and against the map of a drive by
 * tests/sim/hwabc.c.
 */
#ifndef MQFAIR_GC_SHADOW_H
#define MQFAIR_GC_SHADOW_H

#include "port.h"

enum {
	GC_SHADOW_PAGE		= 4096,
	GC_SHADOW_REGION_SHIFT	= 4,	/* least pages in a region */
	GC_SHADOW_REGIONS	= 1 << 14,
	GC_SHADOW_BLOCK		= 64,	/* places for pages */
	GC_SHADOW_RING		= 128,
	GC_SHADOW_BUCKETS	= 256,
};

/* Letters as in sched.h; W: gc_shadow.lock; T: tick alone. */

/* The pages of a flow that are in the sample. */
struct gc_shadow_flow {
	u32 tag;			/* I: not 0 */
	struct gc_shadow_flow *next, **link;	/* W: in a bucket */
	u64 valid, invalid;		/* W: pages */
	u64 known, met;			/* W: decaying sums over its writes: */
					/* known pages; 1 if it met one */
};

/* A page in the log; valid if `where` of its region points here. */
struct gc_shadow_slot {
	u32 region;
	u32 tag;			/* its flow's; 0: no flow's */
};

struct gc_shadow_block {
	u16 fill, valid;		/* pages */
};

enum gc_shadow_stream {
	GC_SHADOW_WRITTEN,		/* pages that were written */
	GC_SHADOW_COPIED,		/* pages that collection copied */
	GC_SHADOW_STREAMS,
};

struct gc_shadow_ring {
	atomic64_t next;		/* A: entries so far */
	atomic64_t lost;		/* A */
	u64 seen;			/* T */
	atomic64_t wrote[GC_SHADOW_RING];	/* A: region and tag, or 0 */
} __port_cacheline;

struct gc_shadow {
	struct gc_shadow_ring *ring;	/* I: by queue */
	u32 nr_queues;			/* I */
	u32 regions;			/* I */
	u32 region_shift;		/* I: of pages */
	u32 nr_blocks;			/* I */
	u32 *where;			/* T: place of each region's page */
	struct gc_shadow_slot *slot;	/* T */
	struct gc_shadow_block *block;	/* T */
	u32 open[GC_SHADOW_STREAMS];	/* T: the block that each fills */
	u32 room;			/* O, by T: for invalid pages */
	u32 invalid;			/* T: pages */
	u32 owned;			/* O, by T: those that a flow owns */
	u32 unknown;			/* O, by T: valid pages of no flow */
	struct port_lock lock;		/* a leaf: flows and their counts */
	u32 tags;			/* W: given out */
	struct gc_shadow_flow *bucket[GC_SHADOW_BUCKETS];	/* W: by tag */
};

/* A device of @pages; 0 or -ENOMEM with nothing left behind. */
int gc_shadow_init(struct gc_shadow *g, u32 nr_queues, u64 pages);
void gc_shadow_deinit(struct gc_shadow *g);

void gc_shadow_flow_init(struct gc_shadow *g, struct gc_shadow_flow *gf);
void gc_shadow_flow_exit(struct gc_shadow *g, struct gc_shadow_flow *gf);

/* A write of @bytes at @page, submitted on @queue, is done. */
void gc_shadow_wrote(struct gc_shadow *g, const struct gc_shadow_flow *gf,
		      u32 queue, u64 page, u32 bytes);

/* @spare_pct, up to 100: invalid pages that the drive has room for. */
void gc_shadow_tick(struct gc_shadow *g, u32 spare_pct);

/* Estimates, in pages of the drive. */
u64 gc_shadow_valid(const struct gc_shadow *g,
		     const struct gc_shadow_flow *gf);
u64 gc_shadow_invalid(const struct gc_shadow *g,
		       const struct gc_shadow_flow *gf);

u64 gc_shadow_lost(const struct gc_shadow *g);

#endif /* MQFAIR_GC_SHADOW_H */
