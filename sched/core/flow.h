/* SPDX-License-Identifier: GPL-2.0 */
/*
 * flow - one cgroup on one device: its position, its tags, its life
 *
 * The *position* of a flow is the sum of all costs that the flow was charged.
 * It is a number of bytes that only grows, by one atomic addition per request.
 * A tag is not stored but computed.  The *epoch* of a flow is a line: base
 * position, base tag, slope 1 / share.  It gives the start tag of any position.
 * The line is replaced when the flow's share changes, when the flow comes back
 * from being idle, and when its lag is clamped.  The tags of all its waiting
 * requests, in every queue, follow the new line:
 *
 *	weight 100 -> 400, three 4 KiB requests waiting, VT at 1000 KiB:
 *	position   base 80K ....... 84K ........ 88K
 *	before     tag 1000K        1040K        1080K	(share 1/10)
 *	after      tag 1000K        1010K        1020K	(share 4/10)
 *
 * So a flow of weight 1 with 256 MiB queued, which becomes weight 10000, does
 * not stay four orders of magnitude behind.  The paper advances the finish tag
 * by fetch-and-add at dispatch.  This file adds to the position at arrival: it
 * needs one instruction as well, and the line can be replaced [R].
 *
 * A flow is *backlogged* while it has a request waiting in any queue.  The
 * first request of a flow that is not backlogged starts at max(VT, finish),
 * which is the rule of SFQ.  Section 3.1 of the paper takes VT alone.  By that
 * rule a flow with few requests at a time would escape its debt [R].
 *
 * A flow is *active* from its first request until FLOW_GRACE_NS after its
 * last.  It is also active while its tasks wait for a scheduler tag.  Only active
 * flows count in the shares.
 *
 * A reader of the epoch takes no lock.  The number `seq` is odd while a writer
 * replaces the epoch.  A reader repeats until it finds the same even number
 * before and after.  The reader's loads are acquires (flow_line()) and the
 * writer's stores are releases (flow_set_epoch()), in place of fences.
 *
 * Tested by tests/unit/{flow,flow_memory,flow_walk}.c, tests/sim.
 */
#ifndef MQFAIR_FLOW_H
#define MQFAIR_FLOW_H

#include "isolation/isolation.h"
#include "isolation/latency.h"
#include "limit.h"
#include "share.h"
#include "urgent.h"

struct sched;
struct sched_ops;

enum {
	/*
	 * A flow that was idle for this long gives its share to its siblings.
	 * The time is long against a drive's latency, so that a tenant's
	 * pauses to think do not change shares.  It is short against one
	 * second: by then another flow must use the share.
	 */
	FLOW_GRACE_NS	= 100 * 1000 * 1000,

	/*
	 * flow_memory.most of the kernel.  A page is the largest size that is free
	 * whenever any memory is.
	 */
	FLOW_PIECE_BYTES = 4096,

	/* Bytes of a scheduler for a flow in a queue, at most. */
	FLOW_OWN_MOST	= 512,

	/* Cache lines that a walk reads while interrupts are off: some 10 us .. */
	FLOW_WALK_LINES	= 256,
	/* .. with so many for each flow, and one for each of its queues. */
	FLOW_LINES	= 8,
};

/*
 * Counters of a flow in one queue.  That queue's lock covers the first four.  The
 * next three belong to one CPU, and only their sums over all queues have a meaning.
 * The scheduler's memory for the flow in this queue is behind them.
 */
struct flow_queue {
	u64 inserted;			/* O: ios */
	u64 dispatched;			/* O: ios */
	u64 bytes;			/* O: dispatched */
	u64 wait_ns;			/* O: summed from insert to dispatch */
	/* Counted by the CPU of this queue, of ios of any queue: io_account(). */
	port_counter done;		/* ios completed */
	port_counter cost;		/* of the ios completed */
	port_counter service_ns;	/* summed from dispatch to completion */
	vtime_t tag;			/* start tag of its next waiter: limit.h */
} __port_cacheline;

/*
 * flow_absent stands for the memory that a flow does not have yet for a queue.  It is all
 * zeroes, and no CPU writes it.
 */
struct flow_queue_absent {
	struct flow_queue queue;
	u8 own[FLOW_OWN_MOST];
} __port_cacheline;

extern const struct flow_queue_absent flow_absent;

/* Work that CPUs completed for a flow which has no memory for their queues. */
struct flow_elsewhere {
	atomic64_t done, cost, service_ns;
};

/* Sums over the queues of a flow.  A snapshot. */
struct flow_totals {
	u64 inserted, dispatched, done, bytes, wait_ns, cost, service_ns;
};

/*
 * Of a flow: its counters at the last sweep.  Tick alone writes them, and @asked under
 * sched.active_lock, under which flow_activate() reads it.
 */
struct flow_asks {
	u64 cost, wait_ns;
	u32 asked;		/* of ASKS_ALL, which is also the first value */
	bool wanted;		/* it had ios, waiting or in the device, or a task without a tag */
};

struct flow {
	/* the I/O path's line */
	atomic64_t pos;			/* A: sum of all costs charged */
	atomic64_t queued;		/* A: ios in lanes, or to be adopted */
	atomic64_t seq;			/* F: of the epoch; odd: changing */
	atomic64_t base;		/* F: tag at base_pos */
	atomic64_t base_pos;		/* F */
	atomic64_t inv;			/* F: 1 / share, INV_SHIFT */
	atomic64_t generation;		/* F: of the share; 0: no share yet */
	atomic64_t active;		/* A: 1 or 0; see flow_sweep() */

	struct port_lock lock __port_cacheline;
	struct sched *sched;		/* I */
	u64 ask_until;			/* O, of tick, flow_activate(), claims: .. */
					/* .. it asked for so much, see flow_charge() */
	u32 wanted;		/* any CPU, a hint: 1 + a queue to add, or 0 */
	struct share_group group;
	u64 share;			/* O: see flow_share() */
	struct flow *next_active;	/* sched.active_lock: the list .. */
	struct flow **active_link;	/* .. and the link to this flow in it */
	struct flow_elsewhere elsewhere;	/* A */
	u64 seen;			/* tick: ios inserted by last sweep */
	struct flow_totals counted;	/* tick: of the last flows_count() */
	u64 idle_since_ns;		/* tick; 0: no sweep has seen it active */
	struct flow_asks asks;
	struct isolation_flow isolation;
	struct flow_latency latency;
	struct urgent_flow urgent;
	struct limit_flow limit;
	u32 nr_queues;			/* I */
	u16 first_queues;		/* I: queues in the first piece .. */
	u16 piece_queues;		/* I: .. and in each other one */
	u32 walk;			/* sched.active_lock: of the last visit */
	u32 tag_cost;			/* O: of its last limit_charge() */
	void *own;			/* I: sched_ops.flow_bytes */
	struct flow_queue *fq[];	/* by queue index: flow_add_queue() */
};

/* Has @f memory for @queue? */
static inline bool flow_has_queue(const struct flow *f, u32 queue)
{
	return READ_ONCE(f->fq[queue]) != &flow_absent.queue;
}

/* Does @f wait for the host to add @queue, or another one? */
static inline bool flow_awaits_queue(const struct flow *f, u32 queue)
{
	return !flow_has_queue(f, queue) || READ_ONCE(f->wanted);
}

/* Returns the scheduler's memory in @f: whole cache lines. */
static inline void *flow_own(const struct flow *f)
{
	return f->own;
}

/* Returns the scheduler's memory in @f for one queue: whole cache lines. */
static inline void *flow_queue_own(const struct flow *f, u32 queue)
{
	return f->fq[queue] + 1;
}

/* Rounds @bytes up to whole cache lines. */
static inline u32 whole_lines(u32 bytes)
{
	u32 line = sizeof(struct { char c; } __port_cacheline);

	return (bytes + line - 1) / line * line;
}

/* An allocator of the host. */
struct flow_memory {
	/* Returns zeroed bytes, aligned to a cache line, or NULL. */
	void *(*alloc)(const struct flow_memory *m, size_t bytes);
	void (*free)(void *piece);
	size_t most;		/* bytes of a piece that has more than one queue */
};

/*
 * Returns memory for a flow of scheduler @ops on @nr_queues queues, or NULL.
 * The flow begins @before bytes behind the start of the first piece, which is
 * the host's.  The memory comes in pieces of at most m->most bytes, because
 * the kernel creates a cgroup's flow without waiting for memory:
 *
 *	128 queues, mqfq: 17 KiB are one allocation of 32 KiB, that is eight
 *	pages in a row.  A machine that has run for days may have no such row,
 *	and the block layer charges the requests to the parent cgroup instead.
 *
 * The first piece has the flow, a pointer for each queue, and as many queues as
 * fit.  So a machine with few CPUs has one piece.  With more than 200 queues the
 * first piece exceeds FLOW_PIECE_BYTES, because pointers are not divided.  Every
 * call for a flow is with the same m->most.
 *
 * Each other piece is made when a queue of it is used: flow_add_queue().  A machine
 * may have thousands of cgroups, most of them idle.
 */
struct flow *flow_alloc(const struct flow_memory *m,
			const struct sched_ops *ops, u32 nr_queues,
			size_t before);

/* The same, with all pieces. */
struct flow *flow_alloc_whole(const struct flow_memory *m,
			      const struct sched_ops *ops, u32 nr_queues,
			      size_t before);

/*
 * The host calls this before the first io of @f is inserted into @queue, and before
 * one of its tasks waits for a tag by an order with that line (limit.h).  Returns false
 * if there is no memory: then the host inserts the io for a flow that has the queue.
 * The caller needs no lock.  Takes flow.lock, and may allocate.
 */
bool flow_add_queue(struct flow *f, const struct flow_memory *m, u32 queue);

/*
 * Counts work that was completed by the CPU of @queue, for which @f has no memory.  The
 * host adds that queue when it next may: flow.wanted.  Returns the ios that were
 * completed like this.
 */
u64 flow_count_elsewhere(struct flow *f, u32 queue, u32 ios, u32 cost,
			 u64 service_ns);

/* Frees what flow_alloc() or flow_alloc_whole() returned, with the same @before. */
void flow_free(struct flow *f, void (*release)(void *piece), size_t before);

/*
 * Returns the bytes of a flow in one piece, for a host that does not call
 * flow_alloc().
 */
size_t flow_size(const struct sched_ops *ops, u32 nr_queues);

/*
 * @f is from flow_alloc(), or has flow_size() zeroed bytes.  @parent is NULL for
 * the root cgroup.
 */
void flow_init(struct flow *f, struct sched *s, struct flow *parent,
	       u32 weight);

/*
 * No io of the flow is left.  If it is active, shares change: the host stops the device,
 * or calls sched_ops.tune(NULL) next.
 */
void flow_exit(struct flow *f);

/*
 * @weight is in [WEIGHT_MIN, WEIGHT_MAX].  If this returns true, the host calls
 * sched_ops.tune(NULL) next: a queue may be throttled by a tag of the old share.
 */
bool flow_set_weight(struct flow *f, u32 weight);

/* The line of an epoch: the start tag of each position. */
struct flow_line {
	vtime_t base;
	u64 base_pos, inv;
	u64 epoch;		/* flow.seq for which the line holds */
};

static inline vtime_t flow_line_tag(const struct flow_line *l, u64 pos)
{
	return vtime_at(l->base, l->base_pos, l->inv, pos);
}

/* Returns the present line.  The caller needs no lock. */
static inline struct flow_line flow_line(const struct flow *f)
{
	struct flow_line l;

	/* The acquires.  Pairs with flow_set_epoch(). */
	do {
		l.epoch = (u64)atomic64_read_acquire(&f->seq);
		l.base = (u64)atomic64_read_acquire(&f->base);
		l.base_pos = (u64)atomic64_read_acquire(&f->base_pos);
		l.inv = (u64)atomic64_read_acquire(&f->inv);
	} while ((l.epoch & 1) || (u64)atomic64_read(&f->seq) != l.epoch);
	return l;
}

/* Returns the start tag of position @pos by the present line, which is *@epoch. */
static inline vtime_t flow_tag(const struct flow *f, u64 pos, u64 *epoch)
{
	struct flow_line l = flow_line(f);

	*epoch = l.epoch;
	return flow_line_tag(&l, pos);
}

/* The start of a request in its flow. */
struct flow_start {
	u64 pos;
	vtime_t tag;
	u64 epoch;		/* flow.seq for which the tag holds */
	bool woke;		/* the flow was idle and has become active */
};

/*
 * Charges @cost: the request starts at the flow's present position.  Afterwards
 * the flow's tags follow its present share.  A flow that was not backlogged
 * starts at @vt or later.  If @waits, the flow has one more io waiting.  The
 * caller has counted the io in flow_queue.inserted before: see flow_sweep().
 *
 * A flow that asked for less claims its whole weight when its position has passed
 * ask_until: see share_claim().
 */
void flow_charge(struct flow *f, u32 cost, vtime_t vt, bool waits,
		 struct flow_start *start);

/*
 * The parts of flow_charge(), for run_charge_at() in send.h.
 *
 * flow_begin(): the flow has been charged from @pos on (full order).  Returns whether
 * it was inactive.  flow_catch_up(): the flow was not backlogged until now.  It loses
 * the service that it missed before @pos.
 */
bool flow_begin(struct flow *f, u64 pos, vtime_t vt);
void flow_catch_up(struct flow *f, u64 pos, vtime_t vt);

/*
 * A task waits for a tag in the name of @f: it is active, and stays so until
 * limit.waiters is 0 again.
 */
void flow_await(struct flow *f);

/* Sets *@t to the sums over the queues of @f.  A snapshot. */
void flow_totals(const struct flow *f, struct flow_totals *t);

/*
 * A walk over the active flows, in which active_lock is held.  Between some flows
 * the walk releases the lock for a moment: interrupts are off for some 10 us,
 * however many flows there are.
 *
 *	5000 flows of one queue, each out of the cache, take 0.3 ms.  500 flows on
 *	128 queues have 64,000 lines, which take milliseconds.
 *
 * Tick alone walks, and one walk ends before the next begins.  Each flow that is
 * active from the start to the end is visited once.  A flow that becomes active
 * meanwhile is left out.  A flow may be deactivated in its own visit.
 */
struct flow_walk {
	struct sched *sched;
	u32 number;		/* walks begun so far */
	u32 left;		/* visits until the lock is released */
	unsigned long flags;
};

/* Both return the next flow, or NULL: then the lock is released. */
struct flow *flow_walk_begin(struct flow_walk *w, struct sched *s);
struct flow *flow_walk_next(struct flow_walk *w);

/* The loop runs to its end: nothing in it breaks, goes or returns. */
#define for_each_active_flow(f, w, s)				\
	for ((f) = flow_walk_begin((w), (s)); (f); (f) = flow_walk_next(w))

/* Sets flow.counted of each active flow. */
void flows_count(struct sched *s);

/*
 * Returns the share in units of 2^-SHARE_SHIFT; it is 0 while @f is inactive.
 * The value may be stale: the flow computes its share anew when it next needs a
 * tag.  A caller that needs the present share calls flow_refresh() before.
 */
u64 flow_share(const struct flow *f);

/*
 * Returns the present share of @f, which is active: see share_present().  It
 * leaves the epoch as it is.
 */
u64 flow_present_share(struct flow *f);

/*
 * Returns the part of the work that @f is due, while it asks for as much: share.h.  Takes
 * share_tree.lock.
 */
u64 flow_due(struct flow *f);

/*
 * Returns the share of @f by weight alone in parts per million, or 0 while it is inactive;
 * for reports.  Takes share_tree.lock.
 */
u64 flow_share_ppm(const struct flow *f);

/*
 * Deactivates flows that were idle for FLOW_GRACE_NS.  Returns whether any flow
 * is still active.  *@changed tells whether any share changed.
 *
 * A flow that gets a request during the sweep stays in the shares.  The two
 * actors are the submitter and the sweep.
 *   - The submitter counts the io in flow_queue.inserted and adds to `pos`
 *     (full order).  Then it reads `active` (flow_charge()).
 *   - The sweep clears `active` (full order).  Then it counts the inserted ios
 *     again (flow_retire()).
 * One of the two sees the other.  The submitter finds the flow inactive and
 * activates it, or the sweep finds the io and leaves the flow active.  The same
 * holds for a task that waits for a tag, and limit.waiters: flow_await().
 */
bool flow_sweep(struct sched *s, u64 now, bool *changed);

/* Is any flow active?  A snapshot.  A flow that gets active requests a tick. */
bool flow_any_active(struct sched *s);

/*
 * Clamps the lag of @f.  @pos is the start of the flow's first waiting request
 * in a queue.  If its tag is more than @allowance behind @vt, it becomes @vt.
 * A flow falls so far behind if its queue could not run.  The same happens if
 * its share grows while virtual time is at the tag of the old share.  The other
 * flows need not wait until this flow has caught up.
 */
void flow_clamp_lag(struct flow *f, u64 pos, vtime_t vt, u64 allowance);

/*
 * Computes share and epoch anew if a share has changed since.  A request that
 * is d ahead of @vt is then d * old share / new share ahead of it.
 */
void flow_refresh(struct flow *f, vtime_t vt);

#endif /* MQFAIR_FLOW_H */
