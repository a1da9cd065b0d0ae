// SPDX-License-Identifier: GPL-2.0
/*
 * mqfq_send - sends a run of requests past the order of an empty queue
 *
 * The problem.  Insert puts a request into an order, and dispatch takes it out at
 * once, if the drive is not the limit.  Both look at the tag, charge and count.
 *
 * The idea.  If no request waits in the queue, and the last request of a run may go
 * at once by the T of the cheapest, then so may all before it.  Their place in the
 * order has no meaning.  So one compare-and-swap takes the slots of a run, and another
 * charges its flow.
 *
 *	8 reads of 4 KiB of one flow, T = 64 KiB, share 1: the last one starts 28
 *	KiB after the first.  If the first has a tag of VT + 36 KiB or less, all go.
 *
 * The result is that of insert and dispatch in turn, and so each invariant of mqfq.c
 * holds.  If anything is not as usual, mqfq_send() does nothing.  A queue that
 * publishes a tag, waits or was woken uses insert and dispatch, and so does a flow
 * that has new shares.
 *
 * A flow on several CPUs.  Another CPU may charge the flow after the look at its tag.
 * So it is charged only at the position of that look: this keeps I2.
 *
 * Tested by tests/unit/mqfq_send.c beside insert and dispatch, tests/sim, tests/mt.
 */
#include "mqfq.h"
#include "core/queue.h"

/* The cost of all ios of a run, of all but the last one, and of the cheapest. */
struct run_cost {
	u64 all, before_last;
	u32 least;
};

/*
 * Sets the cost of each io.  False: an io is not of the first one's flow, or is
 * urgent or polled, or was here before.
 */
static bool run_cost(const struct queue *q, struct io *first,
		     struct run_cost *cost)
{
	struct io *io;
	u32 flags = 0;

	cost->all = 0;
	cost->least = T_COST_MOST;
	for (io = first; io; io = io->next) {
		if (unlikely(io->flow != first->flow))
			return false;
		flags |= io->flags;
		io->cost = cost_of(&q->sched->params.cost, io->op, io->bytes);
		cost->least = min(cost->least, io->cost);
		cost->before_last = cost->all;
		cost->all += io->cost;
	}
	return likely(!(flags &
			(IO_URGENT | IO_POLLED | IO_CHARGED | IO_TO_ADOPT)));
}

/* Is @q as if it had no io, and does it wait for nothing? */
static bool is_idle(const struct queue *q)
{
	return !q->nr && !mqfq_queue_of(q)->published && !q->drain &&
	       !READ_ONCE(q->wake_pending) &&
	       (q->state == DISPATCH_IO || q->state == DISPATCH_EMPTY);
}

/*
 * The tag at which @f starts when @span of the run is charged.  The run starts at
 * @pos, with @tag.
 */
static vtime_t run_tag(const struct flow *f, u64 pos, vtime_t tag, u64 span,
		       vtime_t vt)
{
	u64 epoch;

	/* flow_catch_up() would have the run start at @vt. */
	if (vtime_before(tag, vt))
		return vtime_at(vt, 0, (u64)atomic64_read(&f->inv), span);
	return span ? flow_tag(f, pos + span, &epoch) : tag;
}

/*
 * No queue publishes a tag, so no other queue needs virtual time where it is.  Each
 * io that is too far ahead raises it, as throttle() in mqfq.c does.
 */
static void raise_for_run(struct mqfq *m, const struct io *first, u64 pos,
			  vtime_t tag, vtime_t vt)
{
	const struct flow *f = first->flow;
	const struct io *io;
	vtime_t next;
	u64 span = 0;

	for (io = first; io; io = io->next) {
		next = run_tag(f, pos, tag, span, vt);
		if (vtime_before(mqfq_vt(m) +
					 mqfq_threshold(m->sched, f, io->cost),
				 next))
			mqfq_raise_vt(m, next);
		span += io->cost;
	}
}

/* May the ios from @first on go, if the flow is at @pos and virtual time is @vt? */
static bool may_send(struct mqfq *m, const struct io *first,
		     const struct run_cost *cost, u64 pos, vtime_t vt)
{
	struct flow *f = first->flow;
	u64 threshold = mqfq_threshold(m->sched, f, cost->least);
	u64 epoch;
	vtime_t tag = flow_tag(f, pos, &epoch);

	/* A backlogged flow does not catch up. */
	if (vtime_before(tag, vt) && atomic64_read(&f->queued) > 0)
		return false;
	if (likely(!vtime_before(vt + threshold,
				 run_tag(f, pos, tag, cost->before_last, vt))))
		return true;
	if (mindicator_min(&m->tags) != VTIME_NONE)
		return false;
	raise_for_run(m, first, pos, tag, vt);
	return true;
}

/* Charges the flow for all ios at once, at the position of the look at its tag. */
static bool charge_run(struct mqfq *m, const struct io *first,
		       const struct run_cost *cost, struct flow_start *start)
{
	struct flow *f = first->flow;
	vtime_t vt;

	start->pos = (u64)atomic64_read(&f->pos);
	do {
		vt = mqfq_vt(m);
		if (!may_send(m, first, cost, start->pos, vt))
			return false;
	} while (unlikely(!flow_charge_at(f, cost->all, vt, start)));
	return true;
}

static void sent(struct queue *q, struct io *first, u32 nr, u64 pos, u64 now)
{
	struct flow_queue *fq = first->flow->fq[q->index];
	struct io *io;
	u64 bytes = 0;

	for (io = first; io; io = io->next) {
		io->queue = q;
		io->pos = pos;
		pos += io->cost;
		io->insert_ns = now;
		io->dispatch_ns = now;
		io->flags |= IO_CHARGED | IO_SLOT | IO_OUT;
		bytes += io_transferred(io);
	}
	WRITE_ONCE(fq->bytes, fq->bytes + bytes);
	WRITE_ONCE(fq->dispatched, fq->dispatched + nr);
	WRITE_ONCE(q->stats.dispatched, q->stats.dispatched + nr);
	queue_set_state(q, DISPATCH_IO);
}

bool mqfq_send(struct queue *q, struct io *first, u32 nr, u64 now,
	       struct wake *wake)
{
	struct mqfq *m = q->sched->own;
	struct flow *f = first->flow;
	struct flow_queue *fq = f->fq[q->index];
	struct flow_start start;
	struct run_cost cost;

	port_assert_queue_held(q);
	if (!is_idle(q) || READ_ONCE(f->isolation.pass_until) ||
	    (u64)atomic64_read(&f->generation) !=
		    share_generation(&q->sched->share) ||
	    !run_cost(q, first, &cost) ||
	    !slots_try_many(&m->slots, q->home, nr))
		return false;
	/* The charge comes after this: see flow_sweep(). */
	WRITE_ONCE(fq->inserted, fq->inserted + nr);
	if (unlikely(!charge_run(m, first, &cost, &start))) {
		WRITE_ONCE(fq->inserted, fq->inserted - nr);
		while (nr--)
			slots_put(&m->slots, q->home, wake);
		return false;
	}
	if (unlikely(start.woke))
		wake_at(wake, now + LOOK_LEAST_NS);
	sent(q, first, nr, start.pos, now);
	return true;
}
