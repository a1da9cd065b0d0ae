// SPDX-License-Identifier: GPL-2.0
/* stage - picks the request that waits in hctx_host.staged */
#include "stage.h"

#include "trace.h"

#ifdef CONFIG_LOCKDEP
void port_assert_queue_held(const struct queue *queue)
{
	lockdep_assert_held(queue_host_of(queue)->lock);
}
#endif

/* Least lead first; a queue with something urgent before all others. */
static struct queue_host *hctx_next(struct hctx_host *h)
{
	struct queue_host *next = NULL;
	vtime_t least = VTIME_NONE;
	u32 i;

	for (i = 0; i < h->nr_queues; i++) {
		struct queue_host *qh = h->queue[i];
		vtime_t head_tag;

		if (!READ_ONCE(qh->queue.nr))
			continue;
		head_tag = READ_ONCE(qh->queue.head_tag);
		if (READ_ONCE(qh->queue.urgent.head))
			return qh;
		if (!next || vtime_min_tag(head_tag, least) != least) {
			next = qh;
			least = head_tag;
		}
	}
	return next;
}

static void queue_lock(struct hctx_host *h, struct queue_host *qh)
{
	if (qh->lock != &h->lock)
		spin_lock(qh->lock);
}

static void queue_unlock(struct hctx_host *h, struct queue_host *qh)
{
	if (qh->lock != &h->lock)
		spin_unlock(qh->lock);
}

/* Nobody is to wait for these queues' leads while they cannot run. */
void hctx_block(struct hctx_host *h, struct wake *wake)
{
	struct sched *s = &h->device->sched;
	u32 i;

	lockdep_assert_held(&h->lock);
	/* They are parked no more: see el_has_work() for who comes back. */
	WRITE_ONCE(h->blocked, true);
	for (i = 0; i < h->nr_queues; i++) {
		struct queue_host *qh = h->queue[i];

		queue_lock(h, qh);
		s->ops->block(&qh->queue, wake);
		queue_unlock(h, qh);
	}
}

/*
 * All driver tags are out: a request sent now would wait on hctx->dispatch,
 * ahead of whatever is due then.  The completion that lowers in_flight kicks.
 */
static bool hctx_is_full(struct hctx_host *h)
{
	if (!h->hw_depth || atomic_read(&h->in_flight) < h->hw_depth)
		return false;
	/* Pairs with slot_returned(): announce first, then look again. */
	atomic_xchg(&h->full, 1);
	return atomic_read(&h->in_flight) >= h->hw_depth;
}

static __always_inline enum dispatch_result
dispatch_one(struct hctx_host *h, struct queue_host *qh, u64 now,
	     struct request **rq, struct wake *wake)
{
	struct sched *s = &h->device->sched;
	enum dispatch_result result;
	struct io *io;

	queue_lock(h, qh);
	result = s->ops->dispatch(&qh->queue, now, &io, wake);
	if (result == DISPATCH_IO) {
		struct request_host *r = request_host_of(io);

		charge_merged(s, qh, r);
		list_del_init(&r->rq->queuelist);
		*rq = r->rq;
	} else if (result == DISPATCH_THROTTLED) {
		trace_mqfair_throttle(h->device->q, &qh->queue);
	}
	queue_unlock(h, qh);
	return result;
}

/*
 * From the queues that share the hardware queue, by their leads.  Stops at the
 * first that is held back: the others' leads are no earlier and the slots are
 * the same.
 */
static enum dispatch_result dispatch_least(struct hctx_host *h, u64 now,
					   struct request **rq,
					   struct wake *wake)
{
	struct queue_host *qh;
	enum dispatch_result result;

	do {
		qh = hctx_next(h);
		/* An empty one, too, may have been woken and passes that on. */
		result = dispatch_one(h, qh ?: h->queue[0], now, rq, wake);
	} while (qh && result == DISPATCH_EMPTY);
	return result;
}

/* The same in turn, for schedulers without leads. */
static enum dispatch_result dispatch_in_turn(struct hctx_host *h, u64 now,
					     struct request **rq,
					     struct wake *wake)
{
	enum dispatch_result result = DISPATCH_EMPTY;
	u32 i, at = h->turn;

	for (i = 0; i < h->nr_queues && result != DISPATCH_IO; i++, at++) {
		if (at >= h->nr_queues)
			at = 0;
		/* A queue that was woken passes on what it does not use. */
		if (READ_ONCE(h->queue[at]->queue.nr) ||
		    READ_ONCE(h->queue[at]->queue.wake_pending))
			result = dispatch_one(h, h->queue[at], now, rq, wake);
	}
	h->turn = at;
	return result;
}

/* Stages a request if none is and one may go. */
void hctx_stage(struct hctx_host *h, u64 now, struct wake *wake)
{
	struct device_host *d = h->device;
	bool drain = compat_queue_draining(d->q);
	struct request *rq = NULL;
	enum dispatch_result result;

	lockdep_assert_held(&h->lock);
	if (h->staged || !h->nr_queues)
		return;
	if (unlikely(h->blocked))
		WRITE_ONCE(h->blocked, false);
	if (READ_ONCE(d->sched.drain) != drain)
		WRITE_ONCE(d->sched.drain, drain);
	if (unlikely(!drain && hctx_is_full(h))) {
		hctx_block(h, wake);
		/* The next completion kicks; the core need not ask. */
		WRITE_ONCE(h->blocked, false);
		return;
	}
	result = d->sched.ops->ordered ? dispatch_least(h, now, &rq, wake) :
					 dispatch_in_turn(h, now, &rq, wake);
	if (result != DISPATCH_IO)
		return;
	atomic_inc(&h->in_flight);
	h->staged_ns = now;
	WRITE_ONCE(h->staged, rq);
}

/* Can the core not run this hardware queue just now? */
bool hctx_is_stuck(struct hctx_host *h)
{
	return !list_empty_careful(&h->hctx->dispatch) ||
	       blk_mq_hctx_stopped(h->hctx) || blk_queue_quiesced(h->device->q);
}
