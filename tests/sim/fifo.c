// SPDX-License-Identifier: GPL-2.0
#include "fifo.h"
#include "sched/core/engine.h"
#include "none.h"

/* The ios of a queue are in q->urgent, in the order of arrival. */
struct fifo {
	u32 out;		/* slots in use */
	bool blocked[QUEUES_MAX];
};

/* Returns false if @io needs a slot and none of @depth is free. */
static bool fifo_take_slot(struct fifo *f, struct io *io, u32 depth)
{
	if (f->out >= depth)
		return false;
	io->flags |= IO_SLOT;
	f->out++;
	return true;
}

static enum dispatch_result fifo_dispatch(struct queue *q, u64 now,
					  struct io **out, struct wake *wake)
{
	struct fifo *f = q->sched->own;
	struct io *io = q->urgent.head;

	f->blocked[q->index] = false;
	if (!io || fifo_take_slot(f, io, q->sched->params.depth))
		return none_dispatch(q, now, out, wake);
	queue_looked_at(q);
	queue_set_state(q, DISPATCH_NO_SLOT);
	return DISPATCH_NO_SLOT;
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

	if (!io_returned(io))
		return;
	queue_requeued(io);
	if (!(io->flags & IO_SLOT))
		return;
	io->flags &= (u16)~IO_SLOT;
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
	.init		= none_init,
	.exit		= none_exit,
	.insert		= none_insert,
	.merge		= none_merge,
	.dispatch	= fifo_dispatch,
	.block		= fifo_block,
	.complete	= fifo_complete,
	.requeue	= fifo_release,
	.tick		= none_tick,
	.tune		= fifo_tune,
};
