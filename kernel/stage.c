// SPDX-License-Identifier: GPL-2.0
/*
 * stage - picks a request from the queues that share a hardware queue
 *
 * Schedulers by virtual time keep a head tag for each queue (sched_ops.ordered),
 * and the queue with the least one is asked first.  A queue with urgent requests goes
 * before that one, and so do those with requests that pass for isolation, in turn.
 * The others have no such order, and their queues are asked in turn.
 *
 * A drive with one hardware queue has a queue here for each CPU of the machine.
 * Most of them are empty, and bitmaps tell the others.  So a request costs as
 * much as CPUs have requests waiting, not as much as there are CPUs.
 */
#include "stage.h"

#include "trace.h"

#ifdef CONFIG_LOCKDEP
/* For the code in sched/, which does not know the lock of its queue: port.h. */
void port_assert_queue_held(const struct queue *queue)
{
	lockdep_assert_held(queue_host_of(queue)->lock);
}
#endif

struct queue_host *hctx_next(struct hctx_host *h)
{
	struct queue_host *next = NULL, *passer = NULL;
	u32 turn = READ_ONCE(h->turn), i;
	vtime_t least = VTIME_NONE;

	for_each_set_bit(i, h->filled, h->nr_queues) {
		struct queue_host *qh = h->queue[i];
		vtime_t head_tag;

		if (!READ_ONCE(qh->queue.nr))
			continue;
		head_tag = READ_ONCE(qh->queue.head_tag);
		if (READ_ONCE(qh->queue.urgent.head))
			return qh;
		if (READ_ONCE(qh->queue.passing.head) &&
		    (!passer || (passer->place < turn && i >= turn)))
			passer = qh;
		if (!next || vtime_min_tag(head_tag, least) != least) {
			next = qh;
			least = head_tag;
		}
	}
	return passer ?: next;
}

/* The queue of a hardware queue of one CPU is locked already. */
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

static void block_one(struct hctx_host *h, u32 place, struct wake *wake)
{
	struct queue_host *qh = h->queue[place];

	queue_lock(h, qh);
	h->device->sched.ops->block(&qh->queue, wake);
	queue_unlock(h, qh);
}

/*
 * A queue that was not asked since its last block has published no tag and waits
 * for no slot.  Requests that were inserted meanwhile change nothing about that.
 */
static void block_queues(struct hctx_host *h, struct wake *wake)
{
	u32 i;

	if (h->nr_queues == 1) {
		block_one(h, 0, wake);
		return;
	}
	for_each_set_bit(i, h->asked, h->nr_queues) {
		__clear_bit(i, h->asked);
		block_one(h, i, wake);
	}
}

void hctx_block(struct hctx_host *h, struct wake *wake)
{

	lockdep_assert_held(&h->lock);
	/*
	 * The scheduler wakes no blocked queue.  el_has_work() sees the flag, so
	 * the block layer comes back for these queues.
	 */
	WRITE_ONCE(h->blocked, true);
	block_queues(h, wake);
}

/*
 * The queue may have run between the caller's look and the lock.  The block
 * layer then asked has_work() before `blocked` was set, and it does not ask
 * again.  So this function announces first and then looks again.
 */
void hctx_block_stuck(struct hctx_host *h, struct wake *wake)
{
	hctx_block(h, wake);
	/*
	 * `blocked` is visible before the look.  Pairs with el_has_work(): the
	 * block layer changes the condition, and then runs the queue.
	 */
	smp_mb();
	if (h->nr_queues && !h->staged && !hctx_is_stuck(h))
		wake_queue(wake, h->queue[0]->queue.index);
}

/*
 * Whether all driver tags are taken.  A request that is dispatched now would
 * wait in hctx->dispatch, ahead of the requests that are due by then.  The next
 * completion wakes the queue.
 */
static bool hctx_is_full(struct hctx_host *h)
{
	if (hctx_has_driver_tags(h, 1))
		return false;
	/* Announce first, then look again.  Pairs with tags_returned(). */
	atomic_xchg(&h->full, 1);
	return !hctx_has_driver_tags(h, 1);
}

/*
 * Asks the scheduler for a request of one queue.  A merge is charged when its
 * request is dispatched: sched_ops.merge follows sched_ops.dispatch then.
 * @one_of_many: the hardware queue has several queues.  A constant, because that
 * saves four instructions per I/O.
 */
static __always_inline enum dispatch_result
dispatch_one(struct hctx_host *h, struct queue_host *qh, bool one_of_many,
	     u64 now, struct request **rq, struct wake *wake)
{
	struct sched *s = &h->device->sched;
	enum dispatch_result result;
	struct io *io;

	lockdep_assert_held(&h->lock);
	if (one_of_many) {
		__set_bit(qh->place, h->asked);
		clear_bit(qh->place, h->woken);
	}
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
	if (one_of_many && !qh->queue.nr)
		clear_bit(qh->place, h->filled);
	queue_unlock(h, qh);
	return result;
}

/*
 * Asks the queues by their head tags, and stops at the first queue that is
 * throttled or has no slot.  The other head tags are no earlier, and all queues
 * use the same slots.
 *
 * A head tag may be of old shares until its queue is asked.  If a queue has another
 * one then, the queue with the least tag is looked for again.  Each queue has its
 * present tag after it was asked, so this ends.
 */
static enum dispatch_result dispatch_least(struct hctx_host *h, u64 now,
					   struct request **rq,
					   struct wake *wake)
{
	enum dispatch_result result;
	struct queue_host *qh;
	vtime_t head_tag;
	u32 asked = 0;

	if (likely(h->nr_queues == 1))
		return dispatch_one(h, h->queue[0], false, now, rq, wake);
	do {
		/* An empty queue that was woken passes the wake-up on. */
		qh = hctx_next(h) ?: h->queue[0];
		head_tag = READ_ONCE(qh->queue.head_tag);
		result = dispatch_one(h, qh, true, now, rq, wake);
	} while (result != DISPATCH_IO &&
		 head_tag != READ_ONCE(qh->queue.head_tag) &&
		 ++asked <= 2 * h->nr_queues);
	if (result == DISPATCH_IO)
		WRITE_ONCE(h->turn, qh->place + 1);
	return result;
}

/*
 * The first queue from @place on that has requests, or that was woken and passes
 * on a wake-up that it cannot use; nr_queues if there is none.
 */
static u32 next_to_ask(const struct hctx_host *h, u32 place)
{
	return min(find_next_bit(h->filled, h->nr_queues, place),
		   find_next_bit(h->woken, h->nr_queues, place));
}

static enum dispatch_result dispatch_single(struct hctx_host *h, u64 now,
					    struct request **rq,
					    struct wake *wake)
{
	struct queue *q = &h->queue[0]->queue;

	if (!READ_ONCE(q->nr) && !READ_ONCE(q->wake_pending))
		return DISPATCH_EMPTY;
	return dispatch_one(h, h->queue[0], false, now, rq, wake);
}

/* Asks the queues in turn, beginning after the last that dispatched. */
static enum dispatch_result dispatch_in_turn(struct hctx_host *h, u64 now,
					     struct request **rq,
					     struct wake *wake)
{
	enum dispatch_result result = DISPATCH_EMPTY;
	u32 first = h->turn, at = first;
	bool wrapped = false;

	if (likely(h->nr_queues == 1))
		return dispatch_single(h, now, rq, wake);
	while (result != DISPATCH_IO) {
		at = next_to_ask(h, at);
		if (at >= h->nr_queues && !wrapped) {
			wrapped = true;
			at = next_to_ask(h, 0);
		}
		if (at >= h->nr_queues || (wrapped && at >= first))
			break;
		result = dispatch_one(h, h->queue[at++], true, now, rq, wake);
	}
	WRITE_ONCE(h->turn, result == DISPATCH_IO ? at : first);
	return result;
}

/* Each queue notes it under its lock, which is h->lock if there is only one. */
static void set_drain(struct hctx_host *h, bool drain)
{
	u32 i;

	h->drains = drain;
	for (i = 0; i < h->nr_queues; i++)
		WRITE_ONCE(h->queue[i]->queue.drain, drain);
}

void hctx_stage(struct hctx_host *h, u64 now, struct wake *wake)
{
	struct device_host *d = h->device;
	bool drain = compat_queue_draining(d->q) || unlikely(hctx_leaves(h));
	struct request *rq = NULL;
	enum dispatch_result result;

	lockdep_assert_held(&h->lock);
	if (h->staged || !h->nr_queues)
		return;
	if (unlikely(h->blocked))
		WRITE_ONCE(h->blocked, false);
	if (unlikely(h->drains != drain))
		set_drain(h, drain);
	if (unlikely(!drain && hctx_is_full(h))) {
		hctx_block(h, wake);
		/* The next completion wakes; the block layer need not ask. */
		WRITE_ONCE(h->blocked, false);
		return;
	}
	result = d->sched.ops->ordered ? dispatch_least(h, now, &rq, wake) :
					 dispatch_in_turn(h, now, &rq, wake);
	if (result != DISPATCH_IO)
		return;
	if (!h->requests_shared) {
		WRITE_ONCE(h->sent, h->sent + TAG_OF_DRIVER);
		rq_host(rq)->io.flags |= IO_HAS_DRIVER_TAG;
	}
	rq_host(rq)->io.next = NULL;
	h->staged_ns = now;
	WRITE_ONCE(h->staged, rq);
}

bool hctx_is_stuck(struct hctx_host *h)
{
	return !list_empty_careful(&h->hctx->dispatch) ||
	       blk_mq_hctx_stopped(h->hctx) || blk_queue_quiesced(h->device->q);
}
