/* SPDX-License-Identifier: GPL-2.0 */
/*
 * flow - one cgroup on one device: its position, its tags, its life
 *
 * A flow counts what it was charged as a *position*, a number of bytes that
 * only grows, by one atomic addition per request.  Tags are not stored but
 * computed: the *epoch* of a flow is a line (base position, base tag, slope
 * 1 / share) that gives the start tag of any position.  Whatever changes the
 * tags of a flow (its share, or coming back from being idle) replaces the
 * line, and every request it has waiting anywhere moves with it:
 *
 *	weight 100 -> 400, three 4 KiB requests waiting, VT at 1000 KiB:
 *	position   base 80K ....... 84K ........ 88K
 *	before     tag 1000K        1040K        1080K	(share 1/10)
 *	after      tag 1000K        1010K        1020K	(share 4/10)
 *
 * So a flow that is weight 1 with 256 MiB queued and becomes weight 10000 does
 * not stay four orders of magnitude behind.  The paper advances the finish tag
 * by fetch-and-add at dispatch; adding to the position at arrival keeps that
 * one instruction and makes room for the re-basing [R].
 *
 * A flow is *backlogged* while it has a request waiting in any queue.  The
 * first request of a flow that is not starts at max(VT, finish): SFQ's rule;
 * taking VT alone, as section 3.1 of the paper does, would let a shallow flow
 * escape what it owes [R].
 *
 * A flow is *active* from its first request until FLOW_GRACE_NS after its
 * last; only active flows count in the shares.
 *
 * The epoch is read without the flow lock, as a sequence: odd while it is
 * being replaced.  The reader's loads are acquires and the writer's stores
 * releases, in place of fences.
 *
 * Tested by tests/unit/flow.c, tests/sim.
 */
#ifndef MQFAIR_FLOW_H
#define MQFAIR_FLOW_H

#include "port.h"
#include "share.h"
#include "vtime.h"

struct io;
struct queue;
struct sched;
struct sched_ops;

enum {
	/*
	 * A flow idle for this long gives its share to its siblings.  Long
	 * against a drive's latency, so that think times do not change shares
	 * at every pause; short against the second within which a share that
	 * is given up must be in use elsewhere.
	 */
	FLOW_GRACE_NS	= 100 * 1000 * 1000,
};

/* What a flow has waiting in one queue; Q of that queue but for `done`. */
struct flow_queue {
	u64 inserted;			/* O: ios */
	u64 dispatched;			/* O: ios */
	u64 bytes;			/* O: dispatched */
	u64 wait_ns;			/* O: summed from insert to dispatch */
	atomic64_t done;		/* A: ios completed */
} __port_cacheline;

struct flow {
	/* the I/O path's line */
	atomic64_t pos;			/* A: end of what has been charged */
	atomic64_t queued;		/* A: ios waiting; > 0: backlogged */
	atomic64_t seq;			/* F: of the epoch; odd: changing */
	atomic64_t base;		/* F: tag at base_pos */
	atomic64_t base_pos;		/* F */
	atomic64_t inv;			/* F: 1 / share, INV_SHIFT */
	atomic64_t generation;		/* F: of the share, 0: none yet */
	atomic64_t active;		/* A: 1 or 0; see flow_sweep() */

	struct port_lock lock __port_cacheline;
	struct sched *sched;		/* I */
	struct share_group group;
	u64 share;			/* O: units of 2^-SHARE_SHIFT */
	struct flow *next_active;	/* sched.active_lock */
	u64 seen;			/* tick: ios inserted when last looked */
	u64 idle_since_ns;		/* tick */
	u32 nr_queues;			/* I */
	void *own;			/* I: sched_ops.flow_bytes */
	void *queue_own;		/* I: nr_queues of .. */
	u32 queue_own_bytes;		/* I: .. this size */
	struct flow_queue fq[];		/* by queue index */
};

/* The scheduler's own part of a flow, and of a flow's queue: cache lines. */
static inline void *flow_own(const struct flow *f)
{
	return f->own;
}

static inline void *flow_queue_own(const struct flow *f, u32 queue)
{
	return (char *)f->queue_own + (size_t)queue * f->queue_own_bytes;
}

/* @bytes, rounded up to whole cache lines. */
static inline u32 whole_lines(u32 bytes)
{
	u32 line = sizeof(struct { char c; } __port_cacheline);

	return (bytes + line - 1) / line * line;
}

/* Bytes to allocate for a flow of scheduler @ops on @nr_queues queues. */
size_t flow_size(const struct sched_ops *ops, u32 nr_queues);

/* @f: flow_size() zeroed bytes.  @parent: NULL for the root cgroup. */
void flow_init(struct flow *f, struct sched *s, struct flow *parent,
	       u32 weight);

/* No io of the flow is left.  The host calls sched_ops.tune(NULL) next. */
void flow_exit(struct flow *f);

/*
 * Weight in [WEIGHT_MIN, WEIGHT_MAX].  The host calls sched_ops.tune(NULL)
 * next: a queue may be throttled by a tag that is not due any more.
 */
void flow_set_weight(struct flow *f, u32 weight);

/* Start tag of position @pos, without a lock; *@epoch is what it holds for. */
static inline vtime_t flow_tag(const struct flow *f, u64 pos, u64 *epoch)
{
	u64 seq, base, base_pos, inv;

	/* The acquires pair with the releases in flow_set_epoch(). */
	do {
		seq = (u64)atomic64_read_acquire(&f->seq);
		base = (u64)atomic64_read_acquire(&f->base);
		base_pos = (u64)atomic64_read_acquire(&f->base_pos);
		inv = (u64)atomic64_read_acquire(&f->inv);
	} while ((seq & 1) || (u64)atomic64_read(&f->seq) != seq);

	*epoch = seq;
	return vtime_at(base, base_pos, inv, pos);
}

/* Where in a flow a request starts. */
struct flow_start {
	u64 pos;
	vtime_t tag;
	u64 epoch;		/* that the tag holds for */
	bool woke;		/* the flow was idle and has become active */
};

/*
 * Charges @cost at the present end of the flow.  The flow's tags are current
 * afterwards, and if it was not backlogged it starts no earlier than @vt.
 * Counts one io as waiting if @waits.  The caller has counted the io in its
 * flow_queue.inserted before.
 */
void flow_charge(struct flow *f, u32 cost, vtime_t vt, bool waits,
		 struct flow_start *start);

/* Sums over the queues; snapshots. */
struct flow_totals {
	u64 inserted, dispatched, done, bytes, wait_ns;
};
void flow_totals(const struct flow *f, struct flow_totals *t);

/* Present share in units of 2^-SHARE_SHIFT; 0 while inactive. */
u64 flow_share(const struct flow *f);

/* The same in parts per million, for people. */
static inline u64 flow_share_ppm(const struct flow *f)
{
	return (flow_share(f) * 1000000) >> SHARE_SHIFT;
}

/*
 * Deactivates flows idle for FLOW_GRACE_NS.  Returns whether any flow is still
 * active; *@changed tells whether any share changed.
 *
 * A request that arrives meanwhile is not lost from the shares: the sweep
 * clears `active` (full order) and then counts the arrivals again; flow_charge
 * adds to `pos` (full order) after the arrival was counted and then reads
 * `active`.  One of the two sees the other.
 */
bool flow_sweep(struct sched *s, u64 now, bool *changed);

/* Is any flow active?  A snapshot: one that becomes so asks for tick. */
bool flow_any_active(struct sched *s);

/*
 * Forgives what @pos, the flow's first waiting request of a queue, is behind
 * @vt, if that is more than @credit.  It happens to a flow whose queue could
 * not run, or whose share grew while virtual time was where the old one had
 * its tag: the others shall not wait until it has caught up.
 */
void flow_clamp_lag(struct flow *f, u64 pos, vtime_t vt, u64 credit);

/* Brings the epoch to the present generation of the shares. */
void flow_refresh(struct flow *f, vtime_t vt);

#endif /* MQFAIR_FLOW_H */
