// SPDX-License-Identifier: GPL-2.0
#include "fifo.h"
#include "sched/core/queue.h"

enum {
	TICK_NS	= FLOW_GRACE_NS / 2,
};

/* The ios of a queue are in q->urgent, in the order of arrival. */
struct fifo {
	u32 out;		/* slots in use */
	bool blocked[QUEUES_MAX];
};

static int fifo_init(struct sched *s)
{
	(void)s;
	return 0;
}

static void fifo_exit(struct sched *s)
{
	(void)s;
}

static void fifo_charge(struct io *io, u64 now, struct wake *wake)
{
	bool waits = !(io->flags & IO_URGENT);
	struct flow_start start;

	io->cost = cost_of(&io->flow->sched->params.cost, io->op, io->bytes);
	flow_charge(io->flow, io->cost, 0, waits, &start);
	io->pos = start.pos;
	io->flags |= IO_CHARGED;
	if (start.woke)
		wake_at(wake, now + TICK_NS);
}

static void fifo_insert(struct queue *q, struct io *io, u64 now,
			struct wake *wake)
{
	queue_inserted(q, io, now);
	/* IO_URGENT marks an io that is not in flow.queued. */
	if (io->flags & IO_CHARGED)
		io->flags |= IO_URGENT;
	else
		fifo_charge(io, now, wake);
	io_list_append(&q->urgent, io);
}

static void fifo_merge(struct queue *q, struct io *io, u32 bytes)
{
	u32 cost = cost_of(&q->sched->params.cost, io->op, bytes);

	if (cost > io->cost) {
		atomic64_add(cost - io->cost, &io->flow->pos);
		io->cost = cost;
	}
	io->bytes = bytes;
}

/* Returns false if @io needs a slot and none of @depth is free. */
static bool fifo_take_slot(struct fifo *f, struct io *io, u32 depth)
{
	if (io->flags & IO_EXEMPT)
		return true;
	if (f->out >= depth)
		return false;
	io->flags |= IO_SLOT;
	f->out++;
	return true;
}

static enum dispatch_result fifo_dispatch(struct queue *q, u64 now,
					  struct io **out, struct wake *wake)
{
	enum dispatch_result result = DISPATCH_IO;
	struct fifo *f = q->sched->own;
	struct io *io = q->urgent.head;

	(void)wake;
	queue_looked_at(q);
	f->blocked[q->index] = false;
	if (!io)
		result = DISPATCH_EMPTY;
	else if (!fifo_take_slot(f, io, q->sched->params.depth))
		result = DISPATCH_NO_SLOT;
	queue_set_state(q, result);
	if (result != DISPATCH_IO)
		return result;
	io_list_take(&q->urgent);
	queue_dispatched(q, io, now);
	if (!(io->flags & IO_URGENT))
		atomic64_dec(&io->flow->queued);
	*out = io;
	return result;
}

static void fifo_block(struct queue *q, struct wake *wake)
{
	struct fifo *f = q->sched->own;

	(void)wake;
	f->blocked[q->index] = true;
}

/* The free slot goes to the queue with the head that has waited longest. */
static void fifo_release(struct io *io, struct wake *wake)
{
	struct sched *s = io->queue->sched;
	struct fifo *f = s->own;
	const struct io *oldest = NULL;
	u32 i;

	if (!io_returned(io) || !(io->flags & IO_SLOT))
		return;
	io->flags &= (u8)~IO_SLOT;
	f->out--;
	for (i = 0; i < s->nr_queues; i++) {
		const struct io *head = s->queue[i]->urgent.head;

		if (head && !f->blocked[i] &&
		    (!oldest || head->insert_ns < oldest->insert_ns))
			oldest = head;
	}
	if (oldest)
		sched_wake(s, oldest->queue->index, wake);
}

static void fifo_complete(struct io *io, u64 now, struct wake *wake)
{
	(void)now;
	fifo_release(io, wake);
}

static void fifo_tick(struct sched *s, u64 now, struct wake *wake)
{
	bool changed;

	if (flow_sweep(s, now, &changed))
		wake_at(wake, now + TICK_NS);
}

static void fifo_tune(struct sched *s, const struct sched_params *p,
		      struct wake *wake)
{
	u32 i;

	if (p)
		s->params = *p;
	for (i = 0; i < s->nr_queues; i++)
		sched_wake(s, i, wake);
}

/* Any parameters will do. */
static const struct tunable fifo_tunables[] = {
	{ }
};

const struct sched_ops fifo_ops = {
	.name		= "fifo",
	.bytes		= sizeof(struct fifo),
	.tunables	= fifo_tunables,
	.init		= fifo_init,
	.exit		= fifo_exit,
	.insert		= fifo_insert,
	.merge		= fifo_merge,
	.dispatch	= fifo_dispatch,
	.block		= fifo_block,
	.complete	= fifo_complete,
	.requeue	= fifo_release,
	.tick		= fifo_tick,
	.tune		= fifo_tune,
};
