/* SPDX-License-Identifier: GPL-2.0 */
/*
 * queue - the bookkeeping that every scheduler owes its host
 *
 * What waits in a queue and in a flow, what is out, what was moved: the hosts
 * show it, limit scheduler tags by it and decide by it who is idle.  Counters
 * have one writer each, the holder of the queue lock, except `done`.
 */
#ifndef MQFAIR_QUEUE_H
#define MQFAIR_QUEUE_H

#include "sched.h"

/*
 * The FIFO of one flow in one queue; Q.  Schedulers embed it in the memory that
 * they have of each flow and queue, flow_queue_own().
 */
struct lane {
	struct flow *flow;		/* I */
	struct io_list fifo;
};

static inline void io_list_append(struct io_list *l, struct io *io)
{
	io->next = NULL;
	if (l->head)
		l->tail->next = io;
	else
		l->head = io;
	l->tail = io;
}

/* The list is not empty. */
static inline struct io *io_list_take(struct io_list *l)
{
	struct io *io = l->head;

	l->head = io->next;
	return io;
}

/* First thing of insert; before the charge, for which see flow_sweep(). */
static inline void queue_inserted(struct queue *q, struct io *io, u64 now)
{
	struct flow_queue *fq = &io->flow->fq[q->index];

	port_assert_queue_held(q);
	io->queue = q;
	io->insert_ns = now;
	WRITE_ONCE(fq->inserted, fq->inserted + 1);
	WRITE_ONCE(q->nr, q->nr + 1);
}

/* @io, which is in no list any more, goes to the device. */
static inline void queue_dispatched(struct queue *q, struct io *io, u64 now)
{
	struct flow_queue *fq = &io->flow->fq[q->index];

	port_assert_queue_held(q);
	io->dispatch_ns = now;
	io->flags |= IO_OUT;
	WRITE_ONCE(fq->dispatched, fq->dispatched + 1);
	/* A range that is discarded is no transfer: see cost.h. */
	if (io_op_transfers(io->op))
		WRITE_ONCE(fq->bytes, fq->bytes + io->bytes);
	/* Hosts may stamp an insert later than the dispatch it led to. */
	if (now > io->insert_ns)
		WRITE_ONCE(fq->wait_ns, fq->wait_ns + (now - io->insert_ns));
	WRITE_ONCE(q->nr, q->nr - 1);
	WRITE_ONCE(q->stats.dispatched, q->stats.dispatched + 1);
}

/* @io left the device; true once for each time that it went there. */
static inline bool io_returned(struct io *io)
{
	if (!(io->flags & IO_OUT))
		return false;
	io->flags &= (u8)~IO_OUT;
	atomic64_inc(&io->flow->fq[io->queue->index].done);
	return true;
}

static inline void queue_set_state(struct queue *q, enum dispatch_result state)
{
	if (q->state != state)
		WRITE_ONCE(q->state, state);
}

/* First thing of dispatch: whatever the queue was named for is being done. */
static inline void queue_looked_at(struct queue *q)
{
	port_assert_queue_held(q);
	if (unlikely(READ_ONCE(q->wake_pending)))
		WRITE_ONCE(q->wake_pending, false);
}

/* Has the host run queue number @queue. */
static inline void sched_wake(struct sched *s, u32 queue, struct wake *wake)
{
	atomic64_inc(&s->stats.wakes);
	WRITE_ONCE(s->queue[queue]->wake_pending, true);
	wake_queue(wake, queue);
}

#endif /* MQFAIR_QUEUE_H */
