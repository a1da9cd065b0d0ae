/* SPDX-License-Identifier: GPL-2.0 */
/*
 * host - a scheduler on threads
 *
 * Each call is one that a processor makes: the calling thread takes the queue
 * lock, acts on what the hooks leave in struct wake, and runs by itself the
 * queues that were named.  Any thread may call anything at any time but for
 * host_tick() and host_tune(), each of which one thread makes at a time.
 */
#ifndef MQFAIR_MT_HOST_H
#define MQFAIR_MT_HOST_H

#include "sched/core/sched.h"

struct host_queue {
	struct queue q;
	struct port_lock lock;
	bool blocked;		/* O: by its driver */
};

struct host {
	struct sched sched;
	struct host_queue *queue;
	struct queue **index;
	atomic64_t now_ns;
	/* @io goes to the device; called with its queue locked. */
	void (*issue)(struct host *h, struct io *io);
	void *arg;		/* for issue() */
};

/* @h->issue is set. */
void host_init(struct host *h, const char *policy,
	       const struct sched_params *params,
	       const struct topo_place *place, u32 nr_queues);
void host_deinit(struct host *h);

struct flow *host_flow_create(struct host *h, struct flow *parent, u32 weight);
void host_flow_destroy(struct host *h, struct flow *f);
void host_set_weight(struct host *h, struct flow *f, u32 weight);
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
/* @params NULL: shares have changed; may meet itself. */
void host_tune(struct host *h, const struct sched_params *params);

#endif /* MQFAIR_MT_HOST_H */
