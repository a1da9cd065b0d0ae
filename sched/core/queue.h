/* SPDX-License-Identifier: GPL-2.0 */
/*
 * queue - the bookkeeping that every scheduler owes its host
 *
 * A scheduler counts the ios that wait in each queue and each flow, the ios in
 * the device, and the bytes served.  The hosts show these counters, limit
 * scheduler tags by them, and find idle flows by them.  Each counter has one
 * writer, the holder of the queue lock, except `done`.
 */
#ifndef MQFAIR_QUEUE_H
#define MQFAIR_QUEUE_H

#include "sched.h"

/*
 * This is the FIFO of one flow in one queue, under Q.  A scheduler embeds it in
 * the memory that it has for each flow and queue, flow_queue_own().
 */
struct lane {
	struct flow *flow;		/* while not empty */
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

/* Takes the first io out.  The list is not empty. */
static inline struct io *io_list_take(struct io_list *l)
{
	struct io *io = l->head;

	l->head = io->next;
	return io;
}

/* Takes @io out, which is behind @before, or first if that is NULL. */
static inline void io_list_remove(struct io_list *l, struct io *before,
				  struct io *io)
{
	if (before)
		before->next = io->next;
	else
		l->head = io->next;
	if (l->tail == io)
		l->tail = before;
}

/* Call this first in insert.  The charge comes after it: see flow_sweep(). */
static inline void queue_inserted(struct queue *q, struct io *io, u64 now)
{
	struct flow_queue *fq = io->flow->fq[q->index];

	port_assert_queue_held(q);
	io->queue = q;
	io->insert_ns = now;
	WRITE_ONCE(fq->inserted, fq->inserted + 1);
	WRITE_ONCE(q->nr, q->nr + 1);
}

/* Counts @io, which is in no list any more, as in the device. */
static inline void queue_dispatched(struct queue *q, struct io *io, u64 now)
{
	struct flow_queue *fq = io->flow->fq[q->index];
	u64 wait_ns;

	port_assert_queue_held(q);
	io->dispatch_ns = now;
	io->flags |= IO_OUT;
	WRITE_ONCE(fq->dispatched, fq->dispatched + 1);
	WRITE_ONCE(fq->bytes, fq->bytes + io_transferred(io));
	wait_ns = io_wait_ns(io);
	if (wait_ns)
		WRITE_ONCE(fq->wait_ns, fq->wait_ns + wait_ns);
	WRITE_ONCE(q->nr, q->nr - 1);
	WRITE_ONCE(q->stats.dispatched, q->stats.dispatched + 1);
	if (unlikely(q->adopted == io))
		urgent_release(q, now);
}

/* Has @q an io that passes all lanes?  Under Q. */
static inline bool queue_passes(const struct queue *q)
{
	return q->urgent.head || q->passing.head;
}

/*
 * Is @io in urgent_flow.passing?  Such a request waits for no slot.  The requests
 * that pass for isolation are not there.
 */
static inline bool io_is_counted(const struct io *io)
{
	return (io->flags & (IO_URGENT | IO_FIRST)) == IO_URGENT;
}

/*
 * Adds the work of @io to the counters of the running CPU, which no other CPU
 * writes.  Interrupts of one queue may come on several CPUs, and hooks of one queue
 * may run on all of them.  A host without CPUs counts in the queue of @io.
 *
 * @now is 0 if the device did not serve @io.
 *
 * An io that is counted as done does not keep its flow.  From then on disabled
 * preemption does: the host frees a flow after a grace period of RCU.  So nothing uses
 * the flow after port_cpu_end().
 */
static __always_inline void io_account(const struct io *io, u32 ios, u32 cost,
				       u64 now)
{
	const struct sched *s = io->queue->sched;
	const u16 *queue_of_cpu = s->queue_of_cpu;
	s64 service_ns = (s64)(now - io->dispatch_ns);
	struct flow *f = io->flow;
	u32 cpu = port_cpu_begin();
	u32 line = queue_of_cpu ? queue_of_cpu[cpu] : io->queue->index;
	struct flow_queue *fq = f->fq[line];
	u64 done;

	if (!now || service_ns < 0)
		service_ns = 0;
	if (likely(fq != &flow_absent.queue)) {
		port_count(&fq->done, ios);
		port_count(&fq->cost, cost);
		port_count(&fq->service_ns, service_ns);
		done = port_counted(&fq->done);
	} else {
		done = flow_count_elsewhere(f, line, ios, cost,
					    (u64)service_ns);
	}
	if (now) {
		WRITE_ONCE(s->queue[line]->ended_ns, now);
		if (unlikely(!(done & READ_ONCE(f->latency.mask))))
			latency_record(f, now > io->insert_ns ?
						  now - io->insert_ns :
						  0);
	}
	port_cpu_end();
}

/* Takes @io back from the device.  Returns true once per dispatch. */
static inline bool io_returned(struct io *io)
{
	if (!(io->flags & IO_OUT))
		return false;
	io->flags &= (u16)~IO_OUT;
	if (unlikely(io_is_counted(io)))
		atomic64_dec(&io->flow->urgent.passing);
	return true;
}

/* Call this last in requeue, once per dispatch: @io came back unserved. */
static inline void queue_requeued(const struct io *io)
{
	io_account(io, 1, 0, 0);
}

/*
 * Call this last in complete: @io was in the device until @now, and its slot is
 * given back.  CPUs read their clocks at different times, so that the time in the
 * device may seem negative.  @ios is 1 if io_returned() has been true.  It is 0 for
 * an io that came back unserved, and that the host gave to the device again by
 * itself: requeue has counted it.
 */
static inline void queue_completed(const struct io *io, u32 ios, u64 now)
{
	io_account(io, ios, io->cost, now);
}

static inline void queue_set_state(struct queue *q, enum dispatch_result state)
{
	if (q->state != state)
		WRITE_ONCE(q->state, state);
}

/* Call this first in dispatch: the queue runs, so its wake is not pending. */
static inline void queue_looked_at(struct queue *q)
{
	port_assert_queue_held(q);
	if (unlikely(READ_ONCE(q->wake_pending)))
		WRITE_ONCE(q->wake_pending, false);
}

/* Asks the host to run queue number @queue. */
static inline void sched_wake(struct sched *s, u32 queue, struct wake *wake)
{
	atomic64_inc(&s->stats.wakes);
	WRITE_ONCE(s->queue[queue]->wake_pending, true);
	wake_queue(wake, queue);
}

#endif /* MQFAIR_QUEUE_H */
