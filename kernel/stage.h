/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stage - picks the request of a hardware queue that goes to the device next
 *
 * A request that the scheduler dispatches waits in hctx_host.staged until the
 * block layer fetches it, and has_work() says whether one waits.  So the block
 * layer runs a hardware queue only when there is a request for it to take.  If
 * has_work() is true and dispatch_request() then returns none, the block layer
 * runs all queues again 3 ms later.  That costs time and would hide a lost
 * wake-up.
 *
 * A request is mostly inserted into an empty queue and may go at once.  Then the
 * scheduler sends all requests of the insertion (sched_ops.send), and they wait in
 * hctx_host.staged by io.next.  Their number is bounded by the free driver tags.
 *
 * A hardware queue that cannot run is *blocked*: the scheduler ignores the
 * tags of its queues, so that virtual time does not wait for them.
 *
 * elevator.c stages at insert and at dispatch, wake.c on a wake-up.  wake.c
 * and tick.c block hardware queues that are stuck.
 */
#ifndef MQFAIR_STAGE_H
#define MQFAIR_STAGE_H

#include "device.h"

/*
 * Stages a request if none is staged and the scheduler dispatches one.  Clears
 * hctx_host.blocked.  Task context, under hctx_host.lock.  The caller hands
 * @wake to host_wake() after it has dropped the lock.
 */
void hctx_stage(struct hctx_host *h, u64 now, struct wake *wake);

/*
 * The queue with the least head tag; NULL if no queue has a request.  A queue
 * with an urgent request comes before all others, and then one with a request that
 * passes for isolation, in turn.  A snapshot, any context.
 */
struct queue_host *hctx_next(struct hctx_host *h);

/* Takes the first staged request out; NULL if there is none.  Under hctx_host.lock. */
static inline struct request *hctx_fetch(struct hctx_host *h)
{
	struct request *rq = h->staged;
	struct io *next;

	lockdep_assert_held(&h->lock);
	if (unlikely(!rq))
		return NULL;
	next = rq_host(rq)->io.next;
	WRITE_ONCE(h->staged, next ? request_host_of(next)->rq : NULL);
	return rq;
}

/*
 * Blocks the queues of @h until the next hctx_stage(); has_work() is true
 * meanwhile if requests wait.  Task context, under hctx_host.lock.
 */
void hctx_block(struct hctx_host *h, struct wake *wake);

/*
 * Does the same for a queue that was found stuck.  If the queue is not stuck any
 * more, it is woken.  Task context, under hctx_host.lock.
 */
void hctx_block_stuck(struct hctx_host *h, struct wake *wake);

/* Whether the block layer cannot run this hardware queue just now; no lock. */
bool hctx_is_stuck(struct hctx_host *h);

/*
 * Whether the last CPU of the hardware queue goes offline.  It waits until the
 * queue has no request, and runs no queue for that.
 */
static inline bool hctx_leaves(const struct hctx_host *h)
{
	return test_bit(BLK_MQ_S_INACTIVE, &h->hctx->state);
}

/*
 * Whether another disk takes driver tags of the same map.  That changes when a
 * disk of the same host comes or goes.
 */
static inline bool hctx_shares_tags(const struct hctx_host *h)
{
	return h->hctx->flags & BLK_MQ_F_TAG_QUEUE_SHARED;
}

/*
 * Whether @h has driver tags for @nr requests.  A request that is staged without one
 * would hold its slot while it waits.  If other queues or disks take tags of the
 * map, the free ones are not known: then one request may go.
 */
static inline bool hctx_has_driver_tags(const struct hctx_host *h, u32 nr)
{
	if (!h->hw_depth || hctx_shares_tags(h))
		return nr == 1;
	return hctx_in_flight(h) + nr <= h->hw_depth;
}

/* Whether a request waits in a queue of @h; a snapshot, any context. */
static inline bool hctx_has_queued(struct hctx_host *h)
{
	if (likely(h->nr_queues == 1))
		return READ_ONCE(h->queue[0]->queue.nr);
	return !bitmap_empty(h->filled, h->nr_queues);
}

/* Has the block layer fetch the staged request, if one is.  Task, no lock. */
static inline void hctx_run(struct hctx_host *h)
{
	if (READ_ONCE(h->staged))
		blk_mq_run_hw_queue(h->hctx, false);
}

/*
 * Charges the bytes that merging has added to a queued request.  The block
 * layer does not report a merge.  Under the lock of the queue.
 */
static inline void charge_merged(struct sched *s, struct queue_host *qh,
				 struct request_host *r)
{
	u32 bytes = blk_rq_bytes(r->rq);

	lockdep_assert_held(qh->lock);
	if (unlikely(bytes != r->io.bytes))
		s->ops->merge(&qh->queue, &r->io, bytes);
}

#endif /* MQFAIR_STAGE_H */
