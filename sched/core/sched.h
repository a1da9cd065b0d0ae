/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sched - the vocabulary and the one contract between schedulers and hosts
 *
 * A *flow* is one cgroup on one device.  A *queue* holds requests of many
 * flows for one CPU of one hardware queue.  An *io* is a request as a
 * scheduler sees it.  A *host* owns the real thing (blk-mq, the simulator, a
 * threaded test): it embeds these structures, serialises as stated here, and
 * acts on what a hook leaves in struct wake.
 *
 * Life of an io: insert -> dispatch -> complete; a driver may send it back
 * (requeue), after which it is inserted again or goes to the device directly.
 *
 * Locking
 *   Order: queue lock > flow lock > share_tree.lock.  The queue lock is the
 *   host's and is taken in task context only; the other two are struct
 *   port_lock, irq-safe, and taken by the code in sched/.
 *
 *	hook		queue lock	context		may meet
 *	insert		held		task		anything, of other queues
 *	merge		held		task		the same
 *	dispatch	held		task		the same
 *	block		held		task		the same
 *	complete	not held	any, hard irq	everything
 *	requeue		not held	any, hard irq	everything
 *	tick		not held	task		everything but itself
 *	init, exit, tune		nothing else runs on this device
 *	(tune may meet everything, of its kind but one with new parameters)
 *
 * Wake-ups.  Any hook with a struct wake may name queues to run and a time to
 * come back; the host, after dropping its locks, attempts dispatch on each and
 * calls tick no later than that time.  A scheduler never arms a timer or kicks
 * a CPU.  After insert the host attempts dispatch on that queue at once, or
 * else treats the queue as blocked until it does.
 *
 * Letters on fields: I set at initialisation; Q queue lock; F flow lock;
 * A atomic; O written by the owner (under Q) with WRITE_ONCE, read anywhere.
 */
#ifndef MQFAIR_SCHED_H
#define MQFAIR_SCHED_H

#include "port.h"
#include "cost.h"
#include "flow.h"
#include "heap.h"
#include "report.h"
#include "share.h"
#include "tunable.h"
#include "vtime.h"
#include "mt/queue_set.h"
#include "mt/topology.h"

enum {
	DEPTH_MIN	= 1,
	DEPTH_MAX	= 65536,
	THRESHOLD_MAX	= 1 << 30,	/* bytes */
};

/* What dispatch has to say. */
enum dispatch_result {
	DISPATCH_IO,		/* *io is for the device */
	DISPATCH_EMPTY,
	DISPATCH_THROTTLED,	/* the lead is more than T ahead; parked */
	DISPATCH_NO_SLOT,	/* D requests are out; in the ready set */
	DISPATCH_NO_BUDGET,	/* no flow with requests here may spend */
	DISPATCH_KINDS,
};

enum io_flags {
	IO_CHARGED	= 1 << 0,	/* its cost is in the flow's position */
	IO_SLOT		= 1 << 1,	/* holds one of the D slots */
	IO_URGENT	= 1 << 2,	/* metadata, swap: charged, never held */
	IO_EXEMPT	= 1 << 3,	/* polled: takes no slot, see mqfq.c */
	IO_OUT		= 1 << 4,	/* in the device */
	IO_TURN_0	= 1 << 5,	/* and counted there: see ifq.h */
	IO_TURN_1	= 1 << 6,
};

struct queue;
struct sched;

/* All of it belongs to whoever holds the io; Q while it is queued. */
struct io {
	struct io *next;	/* in its flow's FIFO or the urgent list */
	struct flow *flow;
	struct queue *queue;
	u64 pos;		/* flow position at which it starts */
	u64 insert_ns;
	u64 dispatch_ns;
	u32 bytes;
	u32 cost;
	u32 page;		/* first page of 4 KiB, modulo 2^32 */
	u8 op;			/* enum io_op */
	u8 flags;		/* enum io_flags */
};

struct io_list {
	struct io *head, *tail;
};

struct queue_stats {		/* O */
	u64 dispatched, urgent;
	u64 throttled, no_slot, rebuilds;
};

struct queue {
	struct sched *sched;	/* I */
	u32 index;		/* I: in sched->queue[] */
	u32 nr;			/* O: ios waiting */
	struct heap heap;	/* Q: flow heads, by start tag */
	struct io_list urgent;	/* Q */
	u64 generation;		/* Q: of the shares the heap is keyed by */
	vtime_t head_tag;		/* O: start tag of the lead, or VTIME_NONE */
	u32 bucket;		/* Q: of the wheel, when parked */
	u8 state;		/* O: enum verdict, of the last dispatch */
	bool published;		/* Q: the mindicator knows of us */
	bool wake_pending;		/* O, but set by any: named to the host, not run yet */
	struct queue_stats stats;
} __port_cacheline;

/*
 * What a hook asks of its host.  Initialised by wake_init(); mask[] is valid
 * only where summary has the word's bit, so that an empty one costs nothing.
 */
struct wake {
	u64 summary;
	u64 at_ns;		/* call tick no later than this; 0: no need */
	u32 pinned_by;		/* see sched_ops.block; QUEUES_MAX: nobody */
	u64 mask[QUEUE_WORDS];
};

static inline void wake_init(struct wake *w)
{
	w->summary = 0;
	w->at_ns = 0;
	w->pinned_by = QUEUES_MAX;
}

static inline void wake_queue(struct wake *w, u32 queue)
{
	u32 word = queue / 64;

	if (!(w->summary & BIT_ULL(word))) {
		w->summary |= BIT_ULL(word);
		w->mask[word] = 0;
	}
	w->mask[word] |= BIT_ULL(queue % 64);
}

static inline void wake_at(struct wake *w, u64 ns)
{
	if (!w->at_ns || ns < w->at_ns)
		w->at_ns = ns;
}

/* Takes out the next queue to run; QUEUES_MAX when there is none. */
static inline u32 wake_next(struct wake *w)
{
	u32 word, bit;

	if (!w->summary)
		return QUEUES_MAX;
	word = port_ffs64(w->summary);
	bit = port_ffs64(w->mask[word]);
	w->mask[word] &= w->mask[word] - 1;
	if (!w->mask[word])
		w->summary &= w->summary - 1;
	return word * 64 + bit;
}

struct budget_params {			/* see budget.h */
	u32 period_ns;
	u32 work_conserving;
};

/* See ifq_weight.h and ifq.c. */
struct ifq_params {
	u32 window_ms;
	u32 floor;			/* bytes in a window */
	u32 clamp;			/* greatest ratio of two scales */
	u32 damping;			/* percent; 100: none */
	u32 virtual_time;		/* enum ifq_virtual_time */
};

struct kyber_params {			/* see kyber_fair.c */
	u32 read_lat_us, write_lat_us;	/* targets */
	u32 predict;			/* enum kyber_predict */
};

struct hwabc_params {			/* see hwabc.c */
	u32 budget_ms;			/* of what the device does, in a round */
	u32 alpha_pct;
	u32 gc_share;			/* enum hwabc_gc_share */
	u32 spare_pct;			/* see gc_shadow.h */
};

struct wdt_params {			/* see wdt.c */
	u32 history;			/* intervals */
	u32 total;			/* enum wdt_total */
	u32 caps_mbps;			/* 0: none */
	u32 single_lock;
};

struct sched_params {
	u32 depth;			/* D, slots */
	u32 threshold;			/* T, bytes of total service */
	u32 anticipate;			/* whether slots are kept: anticipate.h */
	struct cost_model cost;
	struct ifq_params ifq;
	struct budget_params budget;
	struct wdt_params wdt;
	struct hwabc_params hwabc;
	struct kyber_params kyber;
};

/* Whose flash pages are where: of one flow. */
struct flow_pages {
	u64 valid;			/* with data of it */
	u64 invalid;			/* with outdated data, not yet collected */
	u64 copied;			/* valid ones that collecting has copied */
};

/* How long planes were busy so far, summed. */
struct flash_time {
	u64 read_ns;			/* for reads */
	u64 write_ns;			/* for writes, and collecting for them */
	u64 busy_ns;			/* with either: writes are done before */
	u32 planes;			/* that there are */
};

struct sched_stats {			/* A */
	atomic64_t wakes;		/* queues named to the host */
	atomic64_t watchdog;		/* queues found forgotten: a bug */
	atomic64_t blocks;
};

struct cost_estimator;

struct sched {
	const struct sched_ops *ops;	/* I */
	void *engine;			/* I: the scheduler's own */
	struct queue **queue;		/* I: by index */
	u32 nr_queues;			/* I */
	u64 pages;			/* I: of 4 KiB, that the device has */
	struct topology topo;		/* I */
	struct sched_params params;	/* O, by tune */
	/*
	 * I, by the host before sched_init(); NULL: nobody can tell.  False:
	 * nobody can at the moment.  Called by tick; flow_pages with
	 * active_lock held.
	 */
	bool (*flow_pages)(const struct sched *s, struct flow *f,
			   struct flow_pages *pages);
	bool (*flash_time)(const struct sched *s, struct flash_time *time);
	struct cost_estimator *cost_estimator;	/* I: of cost=learned, or NULL */
	struct share_tree share;
	struct port_lock active_lock;	/* leaf; for the two below */
	struct flow *active;		/* flows with own_active */
	bool drain;			/* O, by the host: hold nothing back */
	struct sched_stats stats;
};

struct sched_ops {
	const char *name;
	const struct tunable *tunables;	/* at most TUNABLES_MAX */

	/*
	 * queue.head_tag is kept: of the queues that share a hardware queue the
	 * host asks the one with the least, and when that one is held back it
	 * stops.  Otherwise it asks them in turn, all of them.
	 */
	bool ordered;
	/* By its rounds, as cost_estimator.h wants: prices need not vary. */
	bool shifts_mix;

	/* Bytes of the scheduler's own per flow, and per flow and queue. */
	u32 flow_bytes, flow_queue_bytes;

	/* @s->params is set; shares, topology and queues exist.  0 or -errno. */
	int (*init)(struct sched *s);
	void (*exit)(struct sched *s);

	/* @io: flow, op, bytes and flags are set.  At the head if re-inserted. */
	void (*insert)(struct queue *q, struct io *io, u64 now,
		       struct wake *wake);

	/* A queued io carries @bytes now, for a bio was merged into it. */
	void (*merge)(struct queue *q, struct io *io, u32 bytes);

	/* *@io is set for DISPATCH_IO alone. */
	enum dispatch_result (*dispatch)(struct queue *q, u64 now, struct io **io,
				 struct wake *wake);

	/* The host cannot run @q until it says dispatch again: do not wait for it. */
	void (*block)(struct queue *q, struct wake *wake);

	/* @io is done; called once for each dispatched io. */
	void (*complete)(struct io *io, u64 now, struct wake *wake);

	/* @io came back unserved; idempotent. */
	void (*requeue)(struct io *io, struct wake *wake);

	/* Slow work: idle flows, checks.  Asks for its next time in @wake. */
	void (*tick)(struct sched *s, u64 now, struct wake *wake);

	/*
	 * Takes over @p, valid by sched_params_check(), and has everybody who
	 * waits look again.  @p NULL: the shares have changed; this form meets
	 * itself too.
	 */
	void (*tune)(struct sched *s, const struct sched_params *p,
		     struct wake *wake);

	/*
	 * The flow's own part, zeroed, is there; it is about to go and is not
	 * active any more.  Spin locks may be held.  Optional.
	 */
	void (*flow_init)(struct flow *f);
	void (*flow_exit)(struct flow *f);

	/* For people, beyond what queue.h counts.  Optional. */
	void (*report)(const struct sched *s, struct report *r);
	void (*report_flow)(const struct flow *f, struct report *r);
};

enum {
	POLICIES_MAX	= 8,
};

/* NULL-terminated table of all schedulers (policies.c). */
extern const struct sched_ops *const sched_policies[];
u32 sched_policies_count(void);
const struct sched_ops *sched_find(const char *name);

/* What holds when nobody has tuned anything; 0 elsewhere. */
void sched_params_init(const struct sched_ops *ops, struct sched_params *p);

/* 0 or -EINVAL */
int sched_params_check(const struct sched_ops *ops,
		       const struct sched_params *p);

/*
 * Sets up the common part and the scheduler over @s->queue[0 .. nr_queues),
 * which the host has allocated; @place as for topology_init().  On failure
 * everything is as before.
 */
int sched_init(struct sched *s, const struct sched_ops *ops,
	       const struct sched_params *params,
	       const struct topo_place *place);

/* No io is left, no hook runs, and every flow has been through flow_exit(). */
void sched_exit(struct sched *s);

void queue_init(struct queue *q, struct sched *s, u32 index);

#endif /* MQFAIR_SCHED_H */
