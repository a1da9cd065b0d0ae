// SPDX-License-Identifier: GPL-2.0
#include "fifo.h"

struct fifo {
	u32 out;		/* slots in use */
	u64 arrivals;
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

static void fifo_insert(struct queue *q, struct io *io, u64 now,
			struct wake *wake)
{
	struct fifo *f = q->sched->own;

	(void)wake;
	io->queue = q;
	io->insert_ns = now;
	io->cost = cost_of(&q->sched->params.cost, io->op, io->bytes);
	io->pos = f->arrivals++;
	io->next = NULL;
	if (q->urgent.head)
		q->urgent.tail->next = io;
	else
		q->urgent.head = io;
	q->urgent.tail = io;
}

static void fifo_merge(struct queue *q, struct io *io, u32 bytes)
{
	(void)q;
	io->bytes = bytes;
}

static enum dispatch_result fifo_dispatch(struct queue *q, u64 now,
					  struct io **out, struct wake *wake)
{
	struct fifo *f = q->sched->own;
	struct io *io = q->urgent.head;

	(void)wake;
	f->blocked[q->index] = false;
	if (!io)
		return DISPATCH_EMPTY;
	if (f->out >= q->sched->params.depth)
		return DISPATCH_NO_SLOT;
	q->urgent.head = io->next;
	io->dispatch_ns = now;
	io->flags |= IO_SLOT;
	f->out++;
	*out = io;
	return DISPATCH_IO;
}

static void fifo_block(struct queue *q, struct wake *wake)
{
	struct fifo *f = q->sched->own;

	(void)wake;
	f->blocked[q->index] = true;
}

/* The free slot is for the queue whose head has waited longest. */
static void fifo_release(struct io *io, struct wake *wake)
{
	struct sched *s = io->queue->sched;
	struct fifo *f = s->own;
	const struct io *oldest = NULL;
	u32 i;

	if (!(io->flags & IO_SLOT))
		return;
	io->flags &= (u8)~IO_SLOT;
	f->out--;
	for (i = 0; i < s->nr_queues; i++) {
		const struct io *head = s->queue[i]->urgent.head;

		if (head && !f->blocked[i] &&
		    (!oldest || head->pos < oldest->pos))
			oldest = head;
	}
	if (oldest)
		wake_queue(wake, oldest->queue->index);
}

static void fifo_complete(struct io *io, u64 now, struct wake *wake)
{
	(void)now;
	fifo_release(io, wake);
}

static void fifo_tick(struct sched *s, u64 now, struct wake *wake)
{
	(void)s;
	(void)now;
	(void)wake;
}

static void fifo_tune(struct sched *s, const struct sched_params *p,
		      struct wake *wake)
{
	u32 i;

	if (p)
		s->params = *p;
	for (i = 0; i < s->nr_queues; i++)
		wake_queue(wake, i);
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
