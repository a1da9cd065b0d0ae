/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sched - the contract between schedulers and hosts
 *
 * A *flow* is one cgroup on one device.  A *queue* holds the requests of many
 * flows for one CPU of one hardware queue.  An *io* is a request as a scheduler
 * sees it.  A *host* (blk-mq, the simulator, a threaded test) owns the real
 * requests.  It embeds these structures, takes the locks that the table below
 * names, calls the hooks, and acts on the wake-ups that a hook leaves.
 *
 * Life of an io: insert -> dispatch -> complete.  A driver may send it back
 * (requeue).  Then the host inserts it again or gives it to the device.
 *
 * Locking
 *   Order: queue lock > flow lock > share_tree.lock.  The queue lock belongs to
 *   the host, which takes it in task context only.  The other two are struct
 *   port_lock, irq-safe, and are taken by the code in sched/.
 *
 *	hook		queue lock	context		runs beside
 *	insert		held		task		all hooks of other queues
 *	merge		held		task		the same
 *	dispatch	held		task		the same
 *	block		held		task		the same
 *	complete	not held	any, hard irq	all hooks
 *	requeue		not held	any, hard irq	all hooks
 *	tick		not held	task		all but another tick
 *	tune(params)	not held	task		all but another tune(params)
 *	tune(NULL)	not held	any but irq	all hooks
 *	init, exit	not held	task		no other hook
 *
 * Wake-ups.  After insert the host attempts dispatch on that queue at once.
 * Otherwise it treats the queue as blocked until it does.  For a queue in
 * struct wake the host attempts dispatch, after it has dropped its locks.
 *
 * Memory.  Each structure has room for the scheduler, zeroed, of the size that
 * sched_ops states: sched.own, queue.own, sched_params.own, flow_own() and
 * flow_queue_own() (flow.h).  No field of a scheduler stands in this file.
 *
 * Letters on fields: I set at initialisation; Q queue lock; F flow lock; A
 * atomic.  O: the owner writes it (under Q) with WRITE_ONCE, any CPU reads it.
 */
#ifndef MQFAIR_SCHED_H
#define MQFAIR_SCHED_H

#include "flow.h"
#include "host_map.h"
#include "params.h"
#include "report.h"
#include "tunable.h"
#include "wake.h"
#include "mt/topology.h"

enum {
	DEPTH_MIN	= 1,
	DEPTH_MAX	= 65536,
};

enum dispatch_result {
	DISPATCH_IO,		/* *io is for the device */
	DISPATCH_EMPTY,
	DISPATCH_THROTTLED,	/* the head tag is too far ahead; parked */
	DISPATCH_NO_SLOT,	/* D ios are out; the queue waits for a slot */
	DISPATCH_NO_BUDGET,	/* no flow with ios here may spend */
	DISPATCH_KINDS,
};

enum io_flags {
	IO_CHARGED	= 1 << 0,	/* its cost is in the flow's position */
	IO_SLOT		= 1 << 1,	/* holds one of the D slots */
	IO_URGENT	= 1 << 2,	/* metadata, swap: urgent.h; requeued; passes */
	IO_FIRST	= 1 << 3,	/* passes for isolation: first at a slot */
	IO_OUT		= 1 << 4,	/* in the device */
	IO_PAID		= 1 << 5,	/* its flow has paid: see budget.h */
	IO_OWN_0	= 1 << 6,	/* the scheduler's */
	IO_OWN_1	= 1 << 7,
	IO_TO_ADOPT	= 1 << 8,	/* not charged yet: see urgent.h */
	IO_POLLED	= 1 << 9,	/* has its slot for a lease: slots.h */
	IO_OF_HOST	= 1 << 10,	/* the host's */
};

struct cost_estimator;

/* Q while it is queued; otherwise it belongs to the hook that has it. */
struct io {
	struct io *next;	/* in its flow's FIFO or a list of its queue */
	struct flow *flow;
	struct queue *queue;
	u64 pos;		/* flow position at which it starts */
	u64 insert_ns;
	u64 dispatch_ns;
	u32 bytes;
	u32 cost;		/* bytes of 4 KiB reads: cost.h */
	u32 page;		/* first page of 4 KiB: io_first_page() .. */
	u8 op;			/* enum io_op */
	u8 page_high;		/* .. and its bits from 32 on */
	u16 flags;		/* enum io_flags */
};

/*
 * The bytes that @io moves to or from the drive.  The range of a discard is not
 * moved: see cost.h.  All accounts in bytes count these.
 */
static inline u32 io_transferred(const struct io *io)
{
	return io_op_transfers(io->op) ? io->bytes : 0;
}

/*
 * The time from insert to dispatch.  It is 0 if the host has given an insert a
 * later time than its dispatch.
 */
static inline u64 io_wait_ns(const struct io *io)
{
	if (io->dispatch_ns <= io->insert_ns)
		return 0;
	return io->dispatch_ns - io->insert_ns;
}

static inline u64 io_first_page(const struct io *io)
{
	return (u64)io->page_high << 32 | io->page;
}

static inline void io_set_page(struct io *io, u64 page)
{
	io->page = (u32)page;
	io->page_high = (u8)(page >> 32);
}

struct io_list {
	struct io *head, *tail;
};

struct queue_stats {		/* O */
	u64 dispatched, urgent, throttled, no_slot, rebuilds;
};

struct queue {
	struct sched *sched;	/* I */
	void *own;		/* I: sched_ops.queue_bytes */
	u32 index;		/* I: in sched->queue[] */
	u32 home;		/* I: index of the queue that waits for slots .. */
				/* .. for all queues of its hardware queue */
	u32 nr;			/* O: ios waiting */
	struct io_list urgent;	/* Q: ios that pass, and wait for no slot */
	struct io_list passing;	/* Q: IO_FIRST: ios that pass */
	struct io *adopted;	/* O: by the root, in its lane; or NULL */
	struct io_list to_adopt;	/* Q: to be adopted next: urgent.h */
	vtime_t head_tag;	/* O: start tag of the next io, or VTIME_NONE */
	u8 state;		/* O: enum dispatch_result, of the last dispatch */
	bool wake_pending;	/* O, set by any: in a struct wake, not run yet */
	bool drain;		/* Q, by the host: delay no io of this queue */
	u64 ended_ns;		/* O, by its CPU, without Q: when an io ended there last */
	struct queue_stats stats;
} __port_cacheline;

struct sched_stats {
	u64 ticks;			/* tick: calls of sched_run_tick() */
	/* A: queues .. */
	atomic64_t wakes;		/* .. that hooks asked to be run */
	atomic64_t watchdog;		/* .. found forgotten: a bug */
	atomic64_t blocks;		/* .. with a tag that block withdrew */
};

/*
 * With the first two functions of the host, tick tells a lost wake-up from a CPU that
 * stands still in a hook of the scheduler.  begin() returns a mark.  ended() is
 * true once all hooks have ended that ran at the mark.  Any context.  They are
 * NULL if no CPU stands still.
 *
 * keep() is called when @f becomes active, and let_go() when it no longer is.  In
 * between, @f is not freed, nor after that while a hook runs that has counted an io
 * of @f as done: see io_account().  Under active_lock, interrupts off.  They are NULL
 * if the host frees no flow before sched_exit().
 */
struct host_hooks {
	u64 (*begin)(struct sched *s);
	bool (*ended)(const struct sched *s, u64 mark);
	void (*keep)(struct flow *f);
	void (*let_go)(struct flow *f);
};

struct sched {
	const struct sched_ops *ops;	/* I */
	void *own;			/* I: sched_ops.bytes */
	struct queue **queue;		/* I: by index */
	u32 nr_queues;			/* I */
	/* I, by the host: by CPU, a queue that no other CPU has; or NULL: io_account(). */
	const u16 *queue_of_cpu;
	u64 pages;			/* I: of 4 KiB, that the device has */
	struct host_map map;		/* I, by the host before sched_init() */
	struct host_hooks hooks;	/* I, the same */
	struct topology topo;		/* I */
	struct sched_params params;	/* O, by tune */
	struct cost_estimator *cost_estimator;	/* I: of cost=learned, or NULL */
	struct share_tree share;
	u64 swept;		/* O, by tick: cost completed between the last two sweeps */
	u64 swept_ns;		/* tick: time of the last one */
	struct isolation isolation;
	struct urgent urgent;
	u64 latency_ns;		/* tick: time of the last latency_tick() .. */
	u64 latency_span_ns;	/* tick: .. the time before it .. */
	u64 latency_cost;	/* tick: .. and the work of all flows in it */
	struct port_lock active_lock;	/* for the next three fields */
	struct flow *active;		/* the active flows, by next_active .. */
	struct flow **active_end;	/* .. and the last link of that list */
	u32 walks;			/* struct flow_walk: begun so far */
	/* In saturation each completion writes these, and each io reads the above. */
	struct sched_stats stats __port_cacheline;
};

struct sched_ops {
	const char *name;
	const struct tunable *tunables;	/* at most TUNABLES_MAX */

	/*
	 * The scheduler maintains queue.head_tag.  Of the queues that share a
	 * hardware queue, the host asks the one with the least head tag.  It
	 * stops if that queue must wait.  Otherwise it asks all in turn.
	 */
	bool ordered;
	/* The order ignores weights: no test holds it to shares. */
	bool unweighted;
	/* cost=learned learns from exact time alone: cost_estimator.h. */
	bool exact_costs;

	/* Bytes of the scheduler's memory: see above. */
	u32 bytes, queue_bytes, params_bytes, flow_bytes, flow_queue_bytes;

	/*
	 * s->params, s->own, shares, topology and queues exist.  Returns 0 or
	 * -errno.
	 */
	int (*init)(struct sched *s);
	void (*exit)(struct sched *s);

	/* @io has flow, op, bytes, io_first_page(), flags.  IO_CHARGED: inserted before. */
	void (*insert)(struct queue *q, struct io *io, u64 now,
		       struct wake *wake);

	/*
	 * A bio was merged into @io, which carries @bytes now.  @io is queued,
	 * or dispatch has just returned it and the queue lock is still held.
	 */
	void (*merge)(struct queue *q, struct io *io, u32 bytes);

	/* *@io is set for DISPATCH_IO alone. */
	enum dispatch_result (*dispatch)(struct queue *q, u64 now,
					 struct io **io, struct wake *wake);

	/* The host cannot run @q before its next dispatch: no queue awaits it. */
	void (*block)(struct queue *q, struct wake *wake);

	/*
	 * Optional.  Inserts and dispatches the @nr ios from @first on, by io.next, as
	 * calls of insert and dispatch in turn would do; or does nothing and returns
	 * false.  It may do so if no io waits in @q, and all @nr may go at once.
	 */
	bool (*send)(struct queue *q, struct io *first, u32 nr, u64 now,
		     struct wake *wake);

	/* @io is done.  The host calls this once for each dispatched io. */
	void (*complete)(struct io *io, u64 now, struct wake *wake);
	/* @io came back unserved.  A second call changes nothing. */
	void (*requeue)(struct io *io, struct wake *wake);

	/* Sweeps idle flows, checks, and requests the next tick in @wake. */
	void (*tick)(struct sched *s, u64 now, struct wake *wake);

	/* Takes over @p, which is valid, or the new shares if @p is NULL. */
	void (*tune)(struct sched *s, const struct sched_params *p,
		     struct wake *wake);

	/*
	 * Both are optional.  At flow_exit @f is inactive, and the caller may
	 * hold spin locks.
	 */
	void (*flow_init)(struct flow *f);
	void (*flow_exit)(struct flow *f);
	/*
	 * Both are optional: they add numbers for people to those of queue.h.
	 */
	void (*report)(const struct sched *s, struct report *r);
	void (*report_flow)(const struct flow *f, struct report *r);
};

/*
 * Sets up the common part and the scheduler.  The host has set up s->queue[],
 * s->nr_queues, s->pages, s->map and s->hooks; @place as for topology_init().
 * Returns 0, -EINVAL or -ENOMEM; on failure everything is as before.
 */
int sched_init(struct sched *s, const struct sched_ops *ops,
	       const struct sched_params *params,
	       const struct topo_place *place);

/* Calls the tick hook and counts it.  No lock; never meets itself. */
static inline void sched_run_tick(struct sched *s, u64 now, struct wake *wake)
{
	WRITE_ONCE(s->stats.ticks, s->stats.ticks + 1);
	s->ops->tick(s, now, wake);
}

/* Returns the requests dispatched so far by all queues.  A snapshot. */
u64 sched_dispatched(const struct sched *s);

/* No io is left, no hook runs, and every flow has been through flow_exit(). */
void sched_exit(struct sched *s);

void queue_init(struct queue *q, struct sched *s, u32 index);

#endif /* MQFAIR_SCHED_H */
