// SPDX-License-Identifier: GPL-2.0
/*
 * elevator - the hooks of a request, in the order of its life
 *
 * The hooks deal with the locks, contexts and life times of the block layer, so
 * that sched/ sees none of them.
 *
 *	limit_depth	A task is about to take a scheduler tag; there is no
 *			request yet.  The task may have to wait for one: limit.h.
 *	prepare		The request exists.  It gets its request host at the
 *			first insertion.
 *	insert		The request is classified.  Under the lock of its queue
 *			the scheduler inserts it, and under the lock of the
 *			hardware queue one attempt is made to stage a request.
 *			If the submitter may run the hardware queue, it does so
 *			at once.  No worker comes in between, which is most of
 *			the cost of a scheduler: see runs_here().  Requests that
 *			may all go to the device at once are staged as a list:
 *			send_all().
 *	dispatch	The block layer takes the staged request, and the next
 *			one is staged: stage.h.
 *	has_work	The block layer asks whether a request is staged.
 *	bio_merge	A bio may be merged into a request that still waits.
 *	completed	The drive has served the request.  Its slot returns, and
 *			the scheduler may wake other queues.
 *	requeue		The driver gives the request back unserved.  Its slot
 *			returns, and the request is inserted again.
 *	finish		The tags of the request are given back by one atomic
 *			addition.  A task or the hardware queue may wait for them.
 *
 * Each hook of the scheduler may leave queues to wake in struct wake.
 * host_wake() wakes them after all locks are dropped: wake.h.
 *
 * Freezing.  A task freezes the request queue to switch the scheduler, to
 * change nr_requests or to remove the disk.  It waits for all requests, and the
 * block layer runs all hardware queues once.  From then on no request is
 * delayed: has_work() is true while any is queued, and queue.drain is set.
 */
#include "elevator.h"

#include "classify.h"
#include "limit.h"
#include "stage.h"
#include "trace.h"
#include "wake.h"

#include "sched/core/queue.h"

void el_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	limit_admit(opf, data);
}

void el_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
	limit_prepared(rq);
}

/* The requests of one insertion. */
struct batch {
	struct io *first, *last;	/* of the new ones, by io.next */
	u32 nr_new;
	bool special;	/* one comes back from a requeue, or is of a bounded kind */
};

static void batch_add(struct batch *b, struct request *rq,
		      struct request_host *r)
{
	r->io.next = NULL;
	if (b->first)
		b->last->next = &r->io;
	else
		b->first = &r->io;
	b->last = &r->io;
	b->nr_new++;
	if (unlikely(rq->elv.priv[1]))
		b->special = true;
}

/*
 * Gives each new request of @list its host and flow.  One that comes back from a
 * requeue has both already.
 */
static void request_hosts_set(struct hctx_host *h, struct list_head *list,
			      struct batch *b)
{
	struct request *rq;

	*b = (struct batch){};
	list_for_each_entry(rq, list, queuelist) {
		struct request_host *r = &h->requests[rq->internal_tag];

		if (unlikely(rq_host(rq))) {
			b->special = true;
			continue;
		}
		classify(rq, r);
		rq->elv.priv[0] = r;
		batch_add(b, rq, r);
	}
}

/*
 * Whether the submitter may run the hardware queue itself.
 *
 * The plug is set while it is flushed, also from schedule(), where running a
 * queue is forbidden.  After an explicit flush the block layer runs the queue.
 * Insertions at the head come from the requeue worker, which runs all queues
 * afterwards.  A task that reclaims memory has the deepest stack of all, and the
 * driver may need much of it: PF_MEMALLOC.
 */
static bool runs_here(struct blk_mq_hw_ctx *hctx, struct request *rq,
		      blk_insert_t flags)
{
	return !current->plug && !(current->flags & PF_MEMALLOC) &&
	       !(flags & BLK_MQ_INSERT_AT_HEAD) &&
	       !(hctx->flags & BLK_MQ_F_BLOCKING) &&
	       !(rq->cmd_flags & REQ_NOWAIT) && !irqs_disabled() &&
	       task_is_running(current);
}

/*
 * Whether the block layer flushes a plug just now.  A task with a plug puts its
 * requests there, and requests reach insert in two other ways only.  A write to a
 * zoned disk passes by the plug.  And a task that flushes the plug of a multipath
 * device inserts a copy of each request on a path that is stopped; the copy has an
 * end_io().
 */
static bool flushes_plug(const struct request *rq, blk_insert_t flags)
{
	return current->plug && !rq->end_io &&
	       !(flags & BLK_MQ_INSERT_AT_HEAD) && !blk_queue_is_zoned(rq->q);
}

static void insert_one(struct hctx_host *h, struct queue_host *qh,
		       struct request *rq, u64 now, struct wake *wake)
{
	struct request_host *r = rq_host(rq);
	bool first = !(r->io.flags & IO_CHARGED);

	lockdep_assert_held(qh->lock);
	/* A request that comes back finds the memory: it returns to the same queue. */
	if (unlikely(!group_has_queue(r->io.flow, qh->queue.index)) &&
	    !WARN_ON_ONCE(!first))
		r->io.flow = root_flow(rq->q);
	h->device->sched.ops->insert(&qh->queue, &r->io, now, wake);
	/* A bio that is merged into a request that passes would pass unbounded. */
	if (unlikely(io_is_counted(&r->io)))
		rq->cmd_flags |= REQ_NOMERGE;
	limit_inserted(qh, rq, r->io.flow, r->io.cost, first);
	trace_mqfair_insert(rq, &qh->queue, &r->io);
}

/* A hardware queue of one CPU: hctx_host.lock is the lock of its queue. */
static void insert_single(struct hctx_host *h, struct list_head *list, u64 now,
			  struct wake *wake)
{
	struct queue_host *qh = h->queue[0];
	struct request *rq;

	lockdep_assert_held(&h->lock);
	list_for_each_entry(rq, list, queuelist)
		insert_one(h, qh, rq, now, wake);
	list_splice_tail_init(list, &qh->requests);
}

/*
 * A hardware queue of several CPUs: each request goes to the queue of the CPU
 * that submitted it, and hctx_host.lock is for staging only.
 */
static void insert_shared(struct hctx_host *h, struct list_head *list, u64 now,
			  struct wake *wake)
{
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, list, queuelist) {
		struct queue_host *qh =
			h->queue[rq->mq_ctx->index_hw[rq->mq_hctx->type]];

		spin_lock(qh->lock);
		insert_one(h, qh, rq, now, wake);
		if (!test_bit(qh->place, h->filled))
			set_bit(qh->place, h->filled);
		list_move_tail(&rq->queuelist, &qh->requests);
		spin_unlock(qh->lock);
	}
}

/*
 * Stages the @nr new requests from @first on, by io.next, if the scheduler sends them
 * all at once: sched_ops.send.  Otherwise it returns false and stages nothing.  @h has
 * one queue.
 */
static bool send_all(struct hctx_host *h, struct io *first, u32 nr, u64 now,
		     struct wake *wake)
{
	const struct sched_ops *ops = h->device->sched.ops;
	struct queue *q = &h->queue[0]->queue;
	u16 tag = h->requests_shared ? 0 : IO_HAS_DRIVER_TAG;
	struct io *io;

	lockdep_assert_held(&h->lock);
	if (!ops->send || h->staged || h->blocked || h->drains ||
	    compat_queue_draining(h->device->q) || hctx_leaves(h) ||
	    limit_is_scarce(&h->map->order) || !hctx_has_driver_tags(h, nr) ||
	    !ops->send(q, first, nr, now, wake))
		return false;
	if (tag)
		WRITE_ONCE(h->sent, h->sent + nr * TAG_OF_DRIVER);
	h->staged_ns = now;
	WRITE_ONCE(h->staged, request_host_of(first)->rq);
	for (io = first; io; io = io->next) {
		io->flags |= tag;
		trace_mqfair_insert(request_host_of(io)->rq, q, io);
	}
	return true;
}

void el_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			blk_insert_t flags)
{
	struct hctx_host *h = hctx->sched_data;
	struct request_queue *q = hctx->queue;
	struct request *rq = list_first_entry(list, struct request, queuelist);
	bool run = runs_here(hctx, rq, flags),
	     flushed = flushes_plug(rq, flags);
	/*
	 * The time at which the request was made is near enough and costs nothing.
	 * One that a driver sent back was made long ago.
	 */
	u64 now = rq_host(rq) ? ktime_get_ns() : rq->start_time_ns;
	struct wake wake __uninitialized;
	struct batch b __uninitialized;

	/*
	 * Once a request is in the list of a queue, another CPU may complete
	 * it.  The request queue could then be frozen and torn down while this
	 * function still runs.  The reference prevents that.  While a plug is
	 * flushed, the block layer has one.
	 */
	if (!flushed)
		percpu_ref_get(&q->q_usage_counter);
	wake_init(&wake);
	request_hosts_set(h, list, &b);
	if (!h->alone)
		limit_took(h, b.nr_new);
	if (h->nr_queues > 1)
		insert_shared(h, list, now, &wake);
	spin_lock(&h->lock);
	if (h->alone)
		limit_took(h, b.nr_new);
	WRITE_ONCE(h->busy, true);
	if (!b.special && h->nr_queues == 1 &&
	    send_all(h, b.first, b.nr_new, now, &wake)) {
		INIT_LIST_HEAD(list);
	} else {
		if (h->nr_queues == 1)
			insert_single(h, list, now, &wake);
		hctx_stage(h, now, &wake);
	}
	spin_unlock(&h->lock);

	host_wake(h->device, &wake);
	if (run)
		hctx_run(h);
	if (!flushed)
		percpu_ref_put(&q->q_usage_counter);
}

/*
 * Asks the scheduler for @rq, if that is NULL, and for the next request.  Drops
 * hctx_host.lock.
 */
static noinline struct request *fetch_slow(struct hctx_host *h,
					   struct request *rq)
{
	struct wake wake __uninitialized;

	lockdep_assert_held(&h->lock);
	wake_init(&wake);
	if (!rq) {
		hctx_stage(h, ktime_get_ns(), &wake);
		rq = hctx_fetch(h);
	}
	if (!rq)
		h->null_dispatches++;
	else if (hctx_has_queued(h))
		hctx_stage(h, compat_batch_time_ns(), &wake);
	if (!h->staged && !hctx_has_queued(h))
		WRITE_ONCE(h->busy, false);
	spin_unlock(&h->lock);
	host_wake(h->device, &wake);
	return rq;
}

struct request *el_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct hctx_host *h = hctx->sched_data;
	struct request *rq;

	spin_lock(&h->lock);
	rq = hctx_fetch(h);
	if (unlikely(!rq) || hctx_has_queued(h)) {
		rq = fetch_slow(h, rq);
	} else {
		if (!h->staged)
			WRITE_ONCE(h->busy, false);
		spin_unlock(&h->lock);
	}
	if (likely(rq))
		trace_mqfair_dispatch(rq, &rq_host(rq)->io);
	return rq;
}

/*
 * A blocked hardware queue has work while requests are queued.  The block layer
 * runs it again when the driver can take requests, and must then find work.
 *
 * Most calls come when no request is left, and `busy` tells that by one load.
 * insert sets it before the first attempt to stage a new request, and dispatch
 * clears it when no request is staged or queued.  A CPU that has put a request
 * into its queue and not yet set `busy` runs the hardware queue afterwards.
 *
 * Before Linux 6.16 a task may attach the scheduler while another task makes new
 * hardware queues.  The scheduler does not know the new ones.  They have no work,
 * because the request queue is frozen until the scheduler is attached anew.
 */
bool el_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct hctx_host *h = hctx->sched_data;

	if (unlikely(!h) || !READ_ONCE(h->busy))
		return false;
	return READ_ONCE(h->staged) ||
	       (unlikely(READ_ONCE(h->blocked) ||
			 compat_queue_draining(hctx->queue)) &&
		hctx_has_queued(h));
}

/*
 * Charges the bytes that a merge has added.  The block layer merges into one of
 * the last eight requests and does not say into which.
 */
static void charge_tail(struct queue_host *qh, struct sched *s)
{
	struct request *rq;
	int checked = 8;

	lockdep_assert_held(qh->lock);

	list_for_each_entry_reverse(rq, &qh->requests, queuelist) {
		charge_merged(s, qh, rq_host(rq));
		if (!--checked)
			break;
	}
}

/* Tries to merge @bio into a request that waits in @qh. */
static noinline bool merge_into(struct queue_host *qh, struct bio *bio,
				unsigned int nr_segs)
{
	struct device_host *d = qh->hctx->device;
	bool merged;

	if (list_empty_careful(&qh->requests))
		return false;
	spin_lock(qh->lock);
	merged = blk_bio_list_merge(d->q, &qh->requests, bio, nr_segs);
	if (merged)
		charge_tail(qh, &d->sched);
	spin_unlock(qh->lock);
	return merged;
}

bool el_bio_merge(struct request_queue *q, struct bio *bio,
		  unsigned int nr_segs)
{
	struct blk_mq_ctx *ctx = blk_mq_get_ctx(q);
	struct blk_mq_hw_ctx *hctx = blk_mq_map_queue(bio->bi_opf, ctx);
	struct hctx_host *h = hctx->sched_data;

	return READ_ONCE(h->busy) &&
	       merge_into(h->queue[ctx->index_hw[hctx->type]], bio, nr_segs);
}

/*
 * Returns the slot of a request that has left the device.  This happens once
 * for each dispatched request: see is_out().
 */
static __always_inline void
slot_returned(struct request *rq, struct request_host *r, u64 now, bool served)
{
	struct hctx_host *h = rq->mq_hctx->sched_data;
	struct sched *s = &h->device->sched;
	struct wake wake __uninitialized;

	wake_init(&wake);
	if (served)
		s->ops->complete(&r->io, now, &wake);
	else
		s->ops->requeue(&r->io, &wake);
	if (unlikely(compat_queue_draining(rq->q)) && hctx_has_queued(h))
		wake_queue(&wake, r->io.queue->index);
	host_wake(h->device, &wake);
}

/* The drive did not serve the request. */
static noinline void slot_returned_unserved(struct request *rq,
					    struct request_host *r)
{
	slot_returned(rq, r, 0, false);
}

/* Hardware queue @h may wait for a driver tag, and wakes @queue if it does. */
static noinline void wake_full(struct hctx_host *h, u32 queue)
{
	struct wake wake __uninitialized;

	if (!atomic_xchg(&h->full, 0))
		return;
	wake_init(&wake);
	wake_queue(&wake, queue);
	host_wake(h->device, &wake);
}

/* The request gives @tags back. */
static __always_inline void tags_returned(struct request *rq,
					  struct request_host *r, u64 tags)
{
	struct hctx_host *h = rq->mq_hctx->sched_data;

	r->io.flags &= (u16)~IO_HAS_DRIVER_TAG;
	limit_returned(h, tags);
	if (unlikely(atomic_read(&h->full)))
		wake_full(h, r->io.queue->index);
}

/*
 * Whether the request is in the device and so has a slot.  The hooks are called
 * as completed and finish, as requeue and finish, or as finish alone.  The
 * first of them returns the slot.
 */
static bool is_out(const struct request_host *r)
{
	return r && (r->io.flags & IO_OUT);
}

void el_completed_request(struct request *rq, u64 now)
{
	struct request_host *r;

	if (!mqfair_rq_is_ours(rq))
		return;
	r = rq_host(rq);
	if (!is_out(r))
		return;
	/* Costs are learned from the time at the device, without staging. */
	if (rq->io_start_time_ns)
		r->io.dispatch_ns = rq->io_start_time_ns;
	trace_mqfair_complete(rq, &r->io, now);
	slot_returned(rq, r, now, true);
}

/*
 * The request counts as done until it is inserted again, so a sweep may deactivate its
 * flow.  The next insertion does not charge the flow, and so does not activate it.  So
 * the request takes a reference of its own, until it ends.
 */
void el_requeue_request(struct request *rq)
{
	struct request_host *r = rq_host(rq);

	if (is_out(r)) {
		if (!r->kept) {
			r->kept = r->io.flow;
			group_keep(r->kept);
		}
		slot_returned_unserved(rq, r);
	}
	if (r && (r->io.flags & IO_HAS_DRIVER_TAG))
		tags_returned(rq, r, TAG_OF_DRIVER);
}

void el_finish_request(struct request *rq)
{
	struct request_host *r = rq_host(rq);

	if (unlikely(rq->elv.priv[1]))
		limit_kind_finished(rq);
	if (likely(r)) {
		u64 tags = TAG_OF_SCHED;

		if (unlikely(is_out(r)))
			slot_returned_unserved(rq, r);
		if (likely(r->io.flags & IO_HAS_DRIVER_TAG))
			tags += TAG_OF_DRIVER;
		if (unlikely(r->kept)) {
			group_let_go(r->kept);
			r->kept = NULL;
		}
		rq->elv.priv[0] = NULL;
		tags_returned(rq, r, tags);
	}
}
