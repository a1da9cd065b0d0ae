// SPDX-License-Identifier: GPL-2.0
#include "host.h"
#include "sched/core/policies.h"

static struct host_queue *host_queue_of(const struct queue *q)
{
	return container_of(q, struct host_queue, q);
}

static bool queue_is_mine(const struct queue *q)
{
	return port_lock_is_mine(&host_queue_of(q)->lock);
}

void host_init(struct host *h, const char *policy,
	       const struct sched_params *params,
	       const struct topo_place *place, u32 nr_queues)
{
	const struct sched_ops *ops = sched_find(policy);
	u32 i;

	port_queue_is_mine = queue_is_mine;
	h->queue = port_zalloc(nr_queues * sizeof(*h->queue));
	h->index = port_zalloc(nr_queues * sizeof(*h->index));
	port_assert(ops && h->queue && h->index);
	for (i = 0; i < nr_queues; i++) {
		queue_init(&h->queue[i].q, &h->sched, i);
		port_lock_init(&h->queue[i].lock);
		h->index[i] = &h->queue[i].q;
	}
	h->sched.queue = h->index;
	h->sched.nr_queues = nr_queues;
	port_assert(!sched_init(&h->sched, ops, params, place));
}

void host_deinit(struct host *h)
{
	u32 i;

	sched_exit(&h->sched);
	for (i = 0; i < h->sched.nr_queues; i++) {
		port_assert(h->queue[i].q.nr == 0);
		port_lock_deinit(&h->queue[i].lock);
	}
	port_free(h->index);
	port_free(h->queue);
}

struct flow *host_flow_create(struct host *h, struct flow *parent, u32 weight)
{
	struct flow *f =
		port_zalloc(flow_size(h->sched.ops, h->sched.nr_queues));

	port_assert(f);
	flow_init(f, &h->sched, parent, weight);
	return f;
}

void host_flow_destroy(struct host *h, struct flow *f)
{
	flow_exit(f);
	host_tune(h, NULL);
	port_lock_deinit(&f->lock);
	port_free(f);
}

void host_set_weight(struct host *h, struct flow *f, u32 weight)
{
	flow_set_weight(f, weight);
	host_tune(h, NULL);
}

static u64 host_now(const struct host *h)
{
	return (u64)atomic64_read(&h->now_ns);
}

/* Dispatches what @q lets go, or tells it not to wait for it. */
static void queue_dispatch(struct host *h, struct host_queue *q,
			   struct wake *wake)
{
	struct io *io;

	port_assert_held(&q->lock);
	if (q->blocked) {
		h->sched.ops->block(&q->q, wake);
		return;
	}
	while (h->sched.ops->dispatch(&q->q, host_now(h), &io, wake) ==
	       DISPATCH_IO)
		h->issue(h, io);
}

static void queue_run(struct host *h, u32 queue, struct wake *wake)
{
	struct host_queue *q = &h->queue[queue];
	unsigned long flags = port_lock(&q->lock);

	queue_dispatch(h, q, wake);
	port_unlock(&q->lock, flags);
}

/* No lock is held.  Running a queue may name more of them. */
static void host_act(struct host *h, struct wake *wake)
{
	u32 queue;

	do {
		queue = wake->pinned_by;
		wake->pinned_by = QUEUES_MAX;
		/* What holds back virtual time may be unable to run. */
		if (queue < h->sched.nr_queues &&
		    READ_ONCE(h->queue[queue].blocked))
			queue_run(h, queue, wake);
		queue = wake_next(wake);
		if (queue != QUEUES_MAX)
			queue_run(h, queue, wake);
	} while (queue != QUEUES_MAX);
}

void host_insert(struct host *h, u32 queue, struct io *io)
{
	struct host_queue *q = &h->queue[queue];
	unsigned long flags;
	struct wake wake;

	wake_init(&wake);
	flags = port_lock(&q->lock);
	h->sched.ops->insert(&q->q, io, host_now(h), &wake);
	queue_dispatch(h, q, &wake);
	port_unlock(&q->lock, flags);
	host_act(h, &wake);
}

void host_run(struct host *h, u32 queue)
{
	struct wake wake;

	wake_init(&wake);
	queue_run(h, queue, &wake);
	host_act(h, &wake);
}

void host_complete(struct host *h, struct io *io)
{
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->complete(io, host_now(h), &wake);
	host_act(h, &wake);
}

void host_requeue(struct host *h, struct io *io)
{
	u32 queue = io->queue->index;
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->requeue(io, &wake);
	host_act(h, &wake);
	host_insert(h, queue, io);
}

static void queue_set_blocked(struct host *h, u32 queue, bool blocked)
{
	struct host_queue *q = &h->queue[queue];
	unsigned long flags;
	struct wake wake;

	wake_init(&wake);
	flags = port_lock(&q->lock);
	WRITE_ONCE(q->blocked, blocked);
	queue_dispatch(h, q, &wake);
	port_unlock(&q->lock, flags);
	host_act(h, &wake);
}

void host_block(struct host *h, u32 queue)
{
	queue_set_blocked(h, queue, true);
}

void host_unblock(struct host *h, u32 queue)
{
	queue_set_blocked(h, queue, false);
}

void host_tick(struct host *h)
{
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->tick(&h->sched, host_now(h), &wake);
	host_act(h, &wake);
}

void host_flow_weigh(struct host *h, struct flow *f, u32 weight)
{
	flow_set_weight(f, weight);
	host_tune(h, NULL);
}

void host_tune(struct host *h, const struct sched_params *params)
{
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->tune(&h->sched, params, &wake);
	host_act(h, &wake);
}
