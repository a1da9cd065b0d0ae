/* SPDX-License-Identifier: GPL-2.0 */
/*
 * send - sends a run of requests past the order of an empty queue
 *
 * The problem.  Insert puts a request into an order, and dispatch takes it out at
 * once, if the drive is not the limit.  Both look at the flow, charge and count.
 *
 * The idea.  A *run* is the new requests of one insertion, all of one flow.  If no
 * request waits in the queue, and all of a run may go at once, then their place in
 * the order has no meaning.  So one compare-and-swap takes the slots of a run, and
 * the scheduler charges the flow once.
 *
 *	8 reads on one CPU: one addition to the leaf of the token tree and one to the
 *	position of the flow, instead of 8 of each.
 *
 * The result is that of insert and dispatch in turn, and so each invariant of the
 * scheduler holds.  If anything is not as usual, run_send() does nothing.  A queue
 * that waits or was woken uses insert and dispatch.  So does a flow with new shares,
 * and an inactive flow: its generation is 0.  So does a flow that awaits memory for a
 * queue.  Urgent and polled requests do so too, and requests that were here before.
 *
 * The lock of the queue is held.
 * Tested by tests/unit/send.c beside insert and dispatch, tests/sim, tests/mt.
 */
#ifndef MQFAIR_SEND_H
#define MQFAIR_SEND_H

#include "queue.h"
#include "slots.h"

struct run {
	struct io *first;		/* the others by io.next */
	u32 nr;
	/* By run_send(): */
	u32 least;			/* the cost of the cheapest io */
	u64 cost, before_last;		/* of all ios, and of all but the last */
	u64 pos;			/* of the first io */
	bool woke;			/* the flow has become active .. */
	bool exhausted;			/* .. or, by credit, exhausted */
};

/* Returns the cost of @io, which is inserted into @q. */
typedef u32 (*run_cost)(const struct queue *q, const struct io *io);

/*
 * Charges the flow of @r for all ios, sets @r->pos and @r->woke, and returns true; or
 * returns false if one of them must wait.
 */
typedef bool (*run_charge)(struct queue *q, struct run *r);

/* Is @q as if it had no io, and does it wait for nothing? */
static inline bool run_finds_idle(const struct queue *q)
{
	return !q->nr && !q->drain && !READ_ONCE(q->wake_pending) &&
	       (q->state == DISPATCH_IO || q->state == DISPATCH_EMPTY);
}

/* Has @f its present share? */
static inline bool run_has_share(const struct flow *f)
{
	return (u64)atomic64_read(&f->generation) ==
	       share_generation(&f->sched->share);
}

/*
 * Charges @r->cost to the flow of @r, if the flow is still at @r->pos.  Otherwise it returns
 * false and sets @r->pos to the present position.  The caller knows whether the tag
 * at that position is @behind @vt.
 */
static __always_inline bool run_charge_at(struct run *r, vtime_t vt,
					  bool behind)
{
	struct flow *f = r->first->flow;
	s64 pos = (s64)r->pos;

	if (unlikely(!atomic64_try_cmpxchg(&f->pos, &pos,
					   pos + (s64)r->cost))) {
		r->pos = (u64)pos;
		return false;
	}
	/* The look at `active` comes after the charge.  Pairs with flow_sweep(). */
	r->woke = false;
	if (unlikely(!atomic64_read(&f->active) ||
		     r->pos > READ_ONCE(f->ask_until) || !run_has_share(f)))
		r->woke = flow_begin(f, r->pos, vt);
	if (behind && !atomic64_read(&f->queued))
		flow_catch_up(f, r->pos, vt);
	return true;
}

/* Sets the cost of each io.  Returns whether all are of one flow, and usual. */
static __always_inline bool run_measure(const struct queue *q, struct run *r,
					run_cost cost_of_io)
{
	struct io *io;
	u32 flags = 0;

	r->cost = 0;
	r->least = ~0U;
	for (io = r->first; io; io = io->next) {
		if (unlikely(io->flow != r->first->flow))
			return false;
		flags |= io->flags;
		io->cost = cost_of_io(q, io);
		r->least = min(r->least, io->cost);
		r->before_last = r->cost;
		r->cost += io->cost;
	}
	return likely(!(flags &
			(IO_URGENT | IO_POLLED | IO_CHARGED | IO_TO_ADOPT)));
}

/* The ios of @r are in the device. */
static __always_inline void run_sent(struct queue *q, const struct run *r,
				     u64 now)
{
	struct flow_queue *fq = r->first->flow->fq[q->index];
	u64 bytes = 0, pos = r->pos;
	struct io *io;

	for (io = r->first; io; io = io->next) {
		io->queue = q;
		io->pos = pos;
		pos += io->cost;
		io->insert_ns = now;
		io->dispatch_ns = now;
		io->flags |= IO_CHARGED | IO_SLOT | IO_OUT;
		bytes += io_transferred(io);
	}
	WRITE_ONCE(fq->bytes, fq->bytes + bytes);
	WRITE_ONCE(fq->dispatched, fq->dispatched + r->nr);
	WRITE_ONCE(q->stats.dispatched, q->stats.dispatched + r->nr);
	queue_set_state(q, DISPATCH_IO);
}

/*
 * Sends @r as sched_ops.send says, with slots of @sl.  @cost and @charge are
 * constants.
 */
static __always_inline bool run_send(struct queue *q, struct run *r,
				     struct slots *sl, run_cost cost,
				     run_charge charge, u64 now,
				     struct wake *wake)
{
	struct flow *f = r->first->flow;
	struct flow_queue *fq = f->fq[q->index];
	u32 nr = r->nr;

	port_assert_queue_held(q);
	if (flow_awaits_queue(f, q->index) || !run_finds_idle(q) ||
	    READ_ONCE(f->isolation.pass_until) || !run_has_share(f) ||
	    !run_measure(q, r, cost) || !slots_try_many(sl, q->home, nr))
		return false;
	/* The charge comes after this: see flow_sweep(). */
	WRITE_ONCE(fq->inserted, fq->inserted + nr);
	if (unlikely(!charge(q, r))) {
		WRITE_ONCE(fq->inserted, fq->inserted - nr);
		while (nr--)
			slots_put(sl, q->home, wake);
		return false;
	}
	if (unlikely(r->woke))
		wake_at(wake, now + LOOK_LEAST_NS);
	run_sent(q, r, now);
	return true;
}

#endif /* MQFAIR_SEND_H */
