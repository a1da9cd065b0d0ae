/* SPDX-License-Identifier: GPL-2.0 */
/*
 * host - a scheduler on threads
 *
 * Each call stands for one of a CPU.  The calling thread takes the queue lock,
 * acts on the struct wake that the hooks leave, and runs the queues in it by
 * itself.  Any thread may call any function at any time, with two exceptions:
 * host_tick(), and host_tune() with parameters, by one thread at a time each.
 *
 * The host counts what it inserts, issues and gets back.  host_audit() compares
 * that with the bookkeeping of the scheduler, whichever it is.
 */
#ifndef MQFAIR_MT_HOST_H
#define MQFAIR_MT_HOST_H

#include "sched/core/sched.h"

struct host_queue {
	struct queue q;
	struct port_lock lock;
	bool blocked;		/* O: by its driver */
	/* The account of the host; under `lock`. */
	u64 inserted, issued, bytes;
	u32 backlog;		/* ios waiting, but urgent and requeued ones */
};

enum {
	HOST_FLOWS	= 64,
};

struct host {
	struct sched sched;
	struct host_queue *queue;
	struct queue **index;
	atomic64_t now_ns;
	atomic64_t charged;	/* cost of all ios */
	atomic64_t returned;	/* ios that left the device */
	atomic64_t tick_requested;
	struct port_lock flows_lock;	/* for the next fields */
	struct flow *flow[HOST_FLOWS];
	u32 nr_flows;
	struct flow_totals gone;	/* of destroyed flows */
	u64 gone_pos;
	/* @io goes to the device; called with its queue locked. */
	void (*issue)(struct host *h, struct io *io);
	void *arg;		/* for issue() */
};

/* @h->issue is set. */
void host_init(struct host *h, const char *policy,
	       const struct sched_params *params,
	       const struct topo_place *place, u32 nr_queues);
void host_init_ops(struct host *h, const struct sched_ops *ops,
		   const struct sched_params *params,
		   const struct topo_place *place, u32 nr_queues);
void host_deinit(struct host *h);

struct flow *host_flow_create(struct host *h, struct flow *parent, u32 weight);
void host_flow_destroy(struct host *h, struct flow *f);
void host_flow_weigh(struct host *h, struct flow *f, u32 weight);

void host_insert(struct host *h, u32 queue, struct io *io);
void host_run(struct host *h, u32 queue);
void host_complete(struct host *h, struct io *io);

/* The driver sends @io back; it is inserted again. */
void host_requeue(struct host *h, struct io *io);

/* The driver takes no more of @queue, or does again. */
void host_block(struct host *h, u32 queue);
void host_unblock(struct host *h, u32 queue);

void host_tick(struct host *h);
/* @params NULL: shares have changed; threads may call this concurrently. */
void host_tune(struct host *h, const struct sched_params *params);

/*
 * Compares the scheduler's account with the host's.  No hook runs meanwhile.
 * Returns NULL, or the first count that differs:
 *	queue.nr, the pending wake-ups, the sums of the flows' counters, of their
 *	backlogs and of their positions, and whether busy flows are active and a
 *	tick was requested for them.
 */
const char *host_audit(struct host *h);

/* The first tunable that differs from @params after tune, or NULL. */
const char *host_audit_tune(const struct host *h,
			    const struct sched_params *params);

/* Ends the program if host_audit() finds a difference. */
void host_check(struct host *h);

#endif /* MQFAIR_MT_HOST_H */
