// SPDX-License-Identifier: GPL-2.0
/*
 * elevator - the blk-mq hooks: every lock, context and life time of the block
 * layer is dealt with here, so that sched/ sees none of them
 *
 * The life of a request
 *
 *	insert		classify, then under the queue's lock: the scheduler's
 *			insert, and one attempt to stage.  If the submitter may
 *			run the hardware queue itself it does so at once: no
 *			worker in between, which is most of what a scheduler
 *			costs (see runs_here()).
 *	dispatch	the core takes the staged request, the next is staged
 *	completed	slot back, perhaps others kicked
 *	finish		references dropped
 *
 * Kicks.  What a hook leaves in struct wake is done by host_wake() after all
 * locks are dropped: a queue is kicked by a work item on its own CPU, which
 * stages and runs the hardware queue.  The core's own asynchronous run would
 * not do: it asks has_work(), from any context, and only staging can answer
 * that truly.
 *
 * Freezing.  Whoever freezes the queue (a switch, nr_requests, removal) waits
 * for the requests that we hold, and has the core run all hardware queues
 * once.  From then on nothing is held back: has_work() is true while anything
 * is queued, and the scheduler is told to drain.
 */
#include "elevator.h"

#include "classify.h"
#include "limit.h"
#include "stage.h"
#include "trace.h"
#include "wake.h"

void el_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	limit_admit(opf, data);
}

void el_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
}

static struct request_host *request_host_get(struct request *rq)
{
	struct hctx_host *h = rq->mq_hctx->sched_data;
	struct request_host *r = rq_host(rq);

	if (r) /* back from a requeue: charged already */
		return r;
	r = &h->requests[rq->internal_tag];
	classify(rq, r);
	rq->elv.priv[0] = r;
	return r;
}

/*
 * May the submitter run the hardware queue itself?  The plug is set during
 * every flush of it, from schedule() too, where running is forbidden; an
 * explicit flush is followed by a run of the core's own.  At-head insertions
 * come from the requeue worker, which runs all queues after them.
 */
static bool runs_here(struct blk_mq_hw_ctx *hctx, struct request *rq,
		      blk_insert_t flags)
{
	return !current->plug && !(flags & BLK_MQ_INSERT_AT_HEAD) &&
	       !(hctx->flags & BLK_MQ_F_BLOCKING) &&
	       !(rq->cmd_flags & REQ_NOWAIT) && !irqs_disabled() &&
	       task_is_running(current);
}

static void insert_one(struct hctx_host *h, struct queue_host *qh,
		       struct request *rq, u64 now, struct wake *wake)
{
	struct request_host *r = rq_host(rq);
	bool first = !r->rq;

	lockdep_assert_held(qh->lock);
	r->rq = rq;
	h->device->sched.ops->insert(&qh->queue, &r->io, now, wake);
	limit_inserted(qh, r->io.flow, first);
	trace_mqfair_insert(rq, &qh->queue, &r->io);
}

/* The hardware queue of one CPU: hctx_host.lock is its queue's lock. */
static void insert_single(struct hctx_host *h, struct list_head *list, u64 now,
			  struct wake *wake)
{
	struct queue_host *qh = h->queue[0];
	struct request *rq;

	list_for_each_entry(rq, list, queuelist)
		insert_one(h, qh, rq, now, wake);
	list_splice_tail_init(list, &qh->requests);
}

/* A CPU inserts into its own queue; hctx_host.lock is for staging. */
static void insert_shared(struct hctx_host *h, struct list_head *list, u64 now,
			  struct wake *wake)
{
	struct request *rq, *next;

	list_for_each_entry_safe(rq, next, list, queuelist) {
		struct queue_host *qh =
			h->queue[rq->mq_ctx->index_hw[rq->mq_hctx->type]];

		spin_lock(qh->lock);
		insert_one(h, qh, rq, now, wake);
		list_move_tail(&rq->queuelist, &qh->requests);
		spin_unlock(qh->lock);
	}
}

void el_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			blk_insert_t flags)
{
	struct hctx_host *h = hctx->sched_data;
	struct request_queue *q = hctx->queue;
	struct request *rq = list_first_entry(list, struct request, queuelist);
	bool run = runs_here(hctx, rq, flags);
	/* Taken when the request was made: near enough, and no clock is read. */
	u64 now = rq->start_time_ns;
	struct wake wake __uninitialized;

	/*
	 * Once a request is in our list another CPU may complete it and the
	 * queue be frozen and torn down: hold it until we have let go.
	 */
	percpu_ref_get(&q->q_usage_counter);
	wake_init(&wake);
	list_for_each_entry(rq, list, queuelist)
		request_host_get(rq);

	if (h->nr_queues > 1)
		insert_shared(h, list, now, &wake);
	spin_lock(&h->lock);
	if (h->nr_queues == 1)
		insert_single(h, list, now, &wake);
	hctx_stage(h, now, &wake);
	spin_unlock(&h->lock);

	host_wake(h->device, &wake);
	if (run)
		hctx_run(h);
	percpu_ref_put(&q->q_usage_counter);
}

struct request *el_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct hctx_host *h = hctx->sched_data;
	struct wake wake __uninitialized;
	struct request *rq;

	wake_init(&wake);
	spin_lock(&h->lock);
	if (unlikely(!h->staged))
		hctx_stage(h, ktime_get_ns(), &wake);
	rq = h->staged;
	WRITE_ONCE(h->staged, NULL);
	if (unlikely(!rq))
		h->null_dispatches++;
	else if (hctx_has_queued(h))
		hctx_stage(h, ktime_get_ns(), &wake);
	spin_unlock(&h->lock);
	if (rq)
		trace_mqfair_dispatch(rq, &rq_host(rq)->io);
	host_wake(h->device, &wake);
	return rq;
}

/*
 * What is blocked waits for the core to run this hardware queue again: it will
 * when its driver lets it, and must then ask us.
 */
bool el_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct hctx_host *h = hctx->sched_data;

	return READ_ONCE(h->staged) ||
	       (unlikely(READ_ONCE(h->blocked) ||
			 compat_queue_draining(hctx->queue)) &&
		hctx_has_queued(h));
}

/*
 * Charges the bytes that a merge brought.  The core merges into one of the
 * last eight requests and does not say which.
 */
static void charge_tail(struct queue_host *qh, struct sched *s)
{
	struct request *rq;
	int checked = 8;

	list_for_each_entry_reverse(rq, &qh->requests, queuelist) {
		charge_merged(s, qh, rq_host(rq));
		if (!--checked)
			break;
	}
}

bool el_bio_merge(struct request_queue *q, struct bio *bio,
		  unsigned int nr_segs)
{
	struct blk_mq_ctx *ctx = blk_mq_get_ctx(q);
	struct blk_mq_hw_ctx *hctx = blk_mq_map_queue(bio->bi_opf, ctx);
	struct hctx_host *h = hctx->sched_data;
	struct queue_host *qh = h->queue[ctx->index_hw[hctx->type]];
	bool merged;

	if (list_empty_careful(&qh->requests))
		return false;
	spin_lock(qh->lock);
	merged = blk_bio_list_merge(q, &qh->requests, bio, nr_segs);
	if (merged)
		charge_tail(qh, &h->device->sched);
	spin_unlock(qh->lock);
	return merged;
}

/* A request left the device, one way or another; once, see is_out(). */
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
	/* Pairs with hctx_is_full(): full order, then look who waits. */
	atomic_dec_return(&h->in_flight);
	if (unlikely(atomic_read(&h->full)) && atomic_xchg(&h->full, 0))
		wake_queue(&wake, r->io.queue->index);
	if (unlikely(compat_queue_draining(rq->q)) && hctx_has_queued(h))
		wake_queue(&wake, r->io.queue->index);
	host_wake(h->device, &wake);
}

/*
 * A request may see completed and finish, requeue and finish, or finish alone;
 * whichever comes first while it is in the device gives the slot back.
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
	/* From here on it is the time at the device that counts. */
	if (rq->io_start_time_ns)
		r->io.dispatch_ns = rq->io_start_time_ns;
	trace_mqfair_complete(rq, &r->io, now);
	slot_returned(rq, r, now, true);
}

void el_requeue_request(struct request *rq)
{
	struct request_host *r = rq_host(rq);

	if (is_out(r))
		slot_returned(rq, r, 0, false);
}

void el_finish_request(struct request *rq)
{
	struct request_host *r = rq_host(rq);

	if (!r)
		return;
	if (unlikely(is_out(r)))
		el_requeue_request(rq);
	limit_finished(rq->mq_hctx->sched_data, r->io.flow);
	declassify(r);
	rq->elv.priv[0] = NULL;
}
