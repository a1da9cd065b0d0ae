// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

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
	host_init_ops(h, sched_find(policy), params, place, nr_queues);
}

void host_init_ops(struct host *h, const struct sched_ops *ops,
		   const struct sched_params *params,
		   const struct topo_place *place, u32 nr_queues)
{
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
	port_lock_init(&h->flows_lock);
	h->sched.queue = h->index;
	h->sched.nr_queues = nr_queues;
	port_assert(!sched_init(&h->sched, ops, params, place));
}

void host_deinit(struct host *h)
{
	u32 i;

	host_check(h);
	sched_exit(&h->sched);
	for (i = 0; i < h->sched.nr_queues; i++) {
		port_assert(h->queue[i].q.nr == 0);
		port_lock_deinit(&h->queue[i].lock);
	}
	port_lock_deinit(&h->flows_lock);
	port_free(h->index);
	port_free(h->queue);
}

struct flow *host_flow_create(struct host *h, struct flow *parent, u32 weight)
{
	struct flow *f =
		port_zalloc(flow_size(h->sched.ops, h->sched.nr_queues));
	unsigned long flags;

	port_assert(f);
	flow_init(f, &h->sched, parent, weight);
	flags = port_lock(&h->flows_lock);
	port_assert(h->nr_flows < HOST_FLOWS);
	h->flow[h->nr_flows++] = f;
	port_unlock(&h->flows_lock, flags);
	return f;
}

static void totals_add(struct flow_totals *sum, const struct flow *f)
{
	struct flow_totals t;

	flow_totals(f, &t);
	sum->inserted += t.inserted;
	sum->dispatched += t.dispatched;
	sum->done += t.done;
	sum->bytes += t.bytes;
}

static void host_forget_flow(struct host *h, struct flow *f)
{
	unsigned long flags = port_lock(&h->flows_lock);
	u32 i = 0;

	totals_add(&h->gone, f);
	h->gone_pos += (u64)atomic64_read(&f->pos);
	while (h->flow[i] != f)
		i++;
	h->flow[i] = h->flow[--h->nr_flows];
	port_unlock(&h->flows_lock, flags);
}

void host_flow_destroy(struct host *h, struct flow *f)
{
	flow_exit(f);
	host_forget_flow(h, f);
	host_tune(h, NULL);
	port_lock_deinit(&f->lock);
	port_free(f);
}

static u64 host_now(const struct host *h)
{
	return (u64)atomic64_read(&h->now_ns);
}

/* An io was charged in insert or, if it waited to be adopted, in dispatch. */
static void count_charge(struct host *h, const struct io *io)
{
	atomic64_add(io->cost, &h->charged);
}

static void queue_issue(struct host *h, struct host_queue *q, struct io *io)
{
	q->issued++;
	if (io_op_transfers(io->op))
		q->bytes += io->bytes;
	/* A scheduler marks a requeued io urgent. */
	if (!(io->flags & IO_URGENT))
		q->backlog--;
	h->issue(h, io);
}

/* Dispatches all ios that may go; a blocked queue is withdrawn instead. */
static void queue_dispatch(struct host *h, struct host_queue *q,
			   struct wake *wake)
{
	const struct io *adopted;
	struct io *io;

	port_assert_held(&q->lock);
	if (q->blocked) {
		h->sched.ops->block(&q->q, wake);
		return;
	}
	for (adopted = q->q.adopted;
	     h->sched.ops->dispatch(&q->q, host_now(h), &io, wake) ==
	     DISPATCH_IO;
	     adopted = q->q.adopted) {
		if (q->q.adopted && q->q.adopted != adopted)
			count_charge(h, q->q.adopted);
		queue_issue(h, q, io);
	}
}

static void queue_run(struct host *h, u32 queue, struct wake *wake)
{
	struct host_queue *q = &h->queue[queue];
	unsigned long flags = port_lock(&q->lock);

	queue_dispatch(h, q, wake);
	port_unlock(&q->lock, flags);
}

/* No lock is held.  Running a queue may wake more of them. */
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
	if (wake->at_ns)
		atomic64_set(&h->tick_requested, 1);
}

/* Has the scheduler send @io without a queue, if it does that at all. */
static bool queue_send(struct host *h, struct host_queue *q, struct io *io,
		       struct wake *wake)
{
	const struct sched_ops *ops = h->sched.ops;

	io->next = NULL;
	return ops->send && !q->blocked &&
	       ops->send(&q->q, io, 1, host_now(h), wake);
}

/* @again: the driver has sent @io back. */
static void insert(struct host *h, u32 queue, struct io *io, bool again)
{
	struct host_queue *q = &h->queue[queue];
	unsigned long flags;
	struct wake wake;
	bool sent;

	wake_init(&wake);
	flags = port_lock(&q->lock);
	q->inserted++;
	sent = !again && queue_send(h, q, io, &wake);
	if (!sent)
		h->sched.ops->insert(&q->q, io, host_now(h), &wake);
	/* A scheduler marks the ios that pass, and no others, urgent. */
	q->backlog += !(io->flags & IO_URGENT);
	if (!again && !(io->flags & IO_TO_ADOPT))
		count_charge(h, io);
	if (sent)
		queue_issue(h, q, io);
	queue_dispatch(h, q, &wake);
	port_unlock(&q->lock, flags);
	host_act(h, &wake);
}

void host_insert(struct host *h, u32 queue, struct io *io)
{
	insert(h, queue, io, false);
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
	atomic64_inc(&h->returned);
	h->sched.ops->complete(io, host_now(h), &wake);
	host_act(h, &wake);
}

void host_requeue(struct host *h, struct io *io)
{
	u32 queue = io->queue->index;
	struct wake wake;

	wake_init(&wake);
	atomic64_inc(&h->returned);
	h->sched.ops->requeue(io, &wake);
	host_act(h, &wake);
	insert(h, queue, io, true);
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
	atomic64_xchg(&h->tick_requested, 0);
	h->sched.ops->tick(&h->sched, host_now(h), &wake);
	host_act(h, &wake);
}

void host_flow_weigh(struct host *h, struct flow *f, u32 weight)
{
	if (flow_set_weight(f, weight))
		host_tune(h, NULL);
}

void host_tune(struct host *h, const struct sched_params *params)
{
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->tune(&h->sched, params, &wake);
	port_assert(!params || !host_audit_tune(h, params));
	host_act(h, &wake);
}

/* ------------------------------------------------------------------- audits */

static bool reads_back(const struct tunable *t, const struct sched_params *have,
		       const struct sched_params *given)
{
	const struct cost_model *a, *b;

	/* Tick may have found another D meanwhile. */
	if (t->automatic == AUTO_DEPTH && given->depth_most)
		return true;
	if (t->kind != TUNABLE_COST)
		return tunable_get(t, have) == tunable_get(t, given);
	a = tunable_get_cost(t, have);
	b = tunable_get_cost(t, given);
	return a->kind == b->kind && a->read.base == b->read.base &&
	       a->read.per_kib == b->read.per_kib &&
	       a->write.base == b->write.base &&
	       a->write.per_kib == b->write.per_kib;
}

const char *host_audit_tune(const struct host *h,
			    const struct sched_params *params)
{
	const struct tunable *t;

	for (t = h->sched.ops->tunables; t->name; t++)
		if (!reads_back(t, &h->sched.params, params))
			return t->name;
	return NULL;
}

/* Sums over the queues of the host, as struct flow_totals has them. */
static const char *audit_queues(const struct host *h, struct flow_totals *sum,
				s64 *backlog)
{
	u32 i;

	*sum = (struct flow_totals){ 0 };
	*backlog = 0;
	for (i = 0; i < h->sched.nr_queues; i++) {
		const struct host_queue *q = &h->queue[i];

		if (q->q.nr != q->inserted - q->issued)
			return "queue.nr";
		if (q->q.wake_pending && !q->blocked)
			return "queue.wake_pending";
		sum->inserted += q->inserted;
		sum->dispatched += q->issued;
		sum->bytes += q->bytes;
		*backlog += q->backlog;
	}
	sum->done = (u64)atomic64_read(&h->returned);
	return NULL;
}

static const char *audit_totals(const struct flow_totals *scheduler,
				const struct flow_totals *host)
{
	if (scheduler->inserted != host->inserted)
		return "flow_queue.inserted";
	if (scheduler->dispatched != host->dispatched)
		return "flow_queue.dispatched";
	if (scheduler->done != host->done)
		return "flow_queue.done";
	if (scheduler->bytes != host->bytes)
		return "flow_queue.bytes";
	return NULL;
}

/* A flow with ios in the scheduler or the device has a share. */
static bool is_active(const struct flow *f)
{
	struct flow_totals t;

	flow_totals(f, &t);
	return t.inserted == t.done || atomic64_read(&f->active);
}

const char *host_audit(struct host *h)
{
	struct flow_totals sum = h->gone, own;
	u64 pos = h->gone_pos;
	s64 queued = 0, backlog;
	const char *wrong;
	u32 i;

	wrong = audit_queues(h, &own, &backlog);
	if (wrong)
		return wrong;
	for (i = 0; i < h->nr_flows; i++) {
		totals_add(&sum, h->flow[i]);
		pos += (u64)atomic64_read(&h->flow[i]->pos);
		queued += atomic64_read(&h->flow[i]->queued);
		if (!is_active(h->flow[i]))
			return "flow.active";
	}
	wrong = audit_totals(&sum, &own);
	if (wrong)
		return wrong;
	if (queued != backlog)
		return "flow.queued";
	if (pos != (u64)atomic64_read(&h->charged))
		return "flow.pos";
	if (h->sched.active && !atomic64_read(&h->tick_requested))
		return "wake.at_ns";
	return NULL;
}

void host_check(struct host *h)
{
	const char *wrong = host_audit(h);

	if (!wrong)
		return;
	fprintf(stderr, "%s: the scheduler's %s differs from the host's\n",
		h->sched.ops->name, wrong);
	port_assert(!wrong);
}
