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
#include "device.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static struct workqueue_struct *mqfair_wq;

#ifdef CONFIG_LOCKDEP
void port_assert_queue_held(const struct queue *queue)
{
	lockdep_assert_held(queue_host_of(queue)->lock);
}
#endif

/* --------------------------------------------------------------- staging */

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
static void hctx_block(struct hctx_host *h, struct wake *wake)
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

/* The bytes that merging brought without telling us. */
static void charge_merged(struct sched *s, struct queue_host *qh,
			  struct request_host *r)
{
	u32 bytes = blk_rq_bytes(r->rq);

	if (unlikely(bytes != r->io.bytes))
		s->ops->merge(&qh->queue, &r->io, bytes);
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
static void hctx_stage(struct hctx_host *h, u64 now, struct wake *wake)
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

static bool hctx_has_queued(struct hctx_host *h)
{
	u32 i;

	for (i = 0; i < h->nr_queues; i++)
		if (READ_ONCE(h->queue[i]->queue.nr))
			return true;
	return false;
}

/* ----------------------------------------------------------------- kicks */

static void hctx_wake(struct queue_host *qh)
{
	int cpu = cpu_online(qh->cpu) ? qh->cpu : WORK_CPU_UNBOUND;

	queue_work_on(cpu, mqfair_wq, &qh->hctx->wake_work);
}

/* Can the core not run this hardware queue just now? */
static bool hctx_is_stuck(struct hctx_host *h)
{
	return !list_empty_careful(&h->hctx->dispatch) ||
	       blk_mq_hctx_stopped(h->hctx) || blk_queue_quiesced(h->device->q);
}

/*
 * A queue that is throttled waits for whoever holds virtual time.  If that one
 * is stuck in its driver it says so nowhere, so we look.
 */
static void unpin(struct device_host *d, u32 index, struct wake *wake)
{
	struct hctx_host *h = d->queues[index].hctx;

	if (!hctx_is_stuck(h))
		return;
	spin_lock(&h->lock);
	hctx_block(h, wake);
	spin_unlock(&h->lock);
}

/* The lock: of two who arm it at once the earlier is to last. */
static void host_arm(struct device_host *d, u64 at_ns)
{
	unsigned long flags = port_lock(&d->timer_lock);
	ktime_t at = ns_to_ktime(at_ns);

	if (!hrtimer_is_queued(&d->timer) ||
	    ktime_before(at, hrtimer_get_expires(&d->timer)))
		hrtimer_start(&d->timer, at, HRTIMER_MODE_ABS);
	port_unlock(&d->timer_lock, flags);
}

void host_wake_slow(struct device_host *d, struct wake *wake)
{
	u32 pinned_by = wake->pinned_by, queue;

	if (unlikely(pinned_by < d->sched.nr_queues)) {
		wake->pinned_by = QUEUES_MAX;
		unpin(d, pinned_by, wake);
	}
	while ((queue = wake_next(wake)) < QUEUES_MAX) {
		trace_mqfair_wake(d->q, queue);
		hctx_wake(&d->queues[queue]);
	}
	if (unlikely(wake->at_ns))
		host_arm(d, wake->at_ns);
}

/* The shares have changed without I/O; any context, spin locks may be held. */
void host_reshare(struct sched *s)
{
	struct wake wake __uninitialized;

	wake_init(&wake);
	s->ops->tune(s, NULL, &wake);
	host_wake(container_of(s, struct device_host, sched), &wake);
}

static void hctx_run(struct hctx_host *h)
{
	if (READ_ONCE(h->staged))
		blk_mq_run_hw_queue(h->hctx, false);
}

static void hctx_wake_work(struct work_struct *work)
{
	struct hctx_host *h = container_of(work, struct hctx_host, wake_work);
	struct wake wake __uninitialized;

	wake_init(&wake);
	spin_lock(&h->lock);
	hctx_stage(h, ktime_get_ns(), &wake);
	spin_unlock(&h->lock);
	host_wake(h->device, &wake);
	hctx_run(h);
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct device_host *d = container_of(timer, struct device_host, timer);

	queue_work(mqfair_wq, &d->tick);
	return HRTIMER_NORESTART;
}

/*
 * Staged for a millisecond and not fetched: the hardware queue is stopped.  It
 * may have been staged after @now.
 */
static void block_stuck(struct device_host *d, u64 now, struct wake *wake)
{
	u32 i;

	for (i = 0; i < d->nr_hctx; i++) {
		struct hctx_host *h = d->hctx[i];

		spin_lock(&h->lock);
		if (hctx_is_stuck(h) ||
		    (h->staged && (s64)(now - h->staged_ns) > NSEC_PER_MSEC))
			hctx_block(h, wake);
		spin_unlock(&h->lock);
	}
}

#define LOST_NS		(500 * NSEC_PER_MSEC)	/* as in sched/mqfq/mqfq.c */

/*
 * A queue that we were asked to run, did not, and have no work under way for:
 * a lost kick, unless a CPU stands still between the two.
 */
static void watch_wakes(struct device_host *d, u64 now)
{
	u32 i;

	for (i = 0; i < d->sched.nr_queues; i++) {
		struct queue_host *qh = &d->queues[i];
		bool lost = READ_ONCE(qh->queue.wake_pending) &&
			    READ_ONCE(qh->queue.nr) &&
			    !READ_ONCE(qh->hctx->staged) &&
			    !work_busy(&qh->hctx->wake_work);

		if (!lost ||
		    qh->lost_dispatched != qh->queue.stats.dispatched) {
			qh->lost_dispatched = qh->queue.stats.dispatched;
			qh->lost_ns = now;
		} else if (now - qh->lost_ns > LOST_NS) {
			atomic64_inc(&d->sched.stats.watchdog);
			qh->lost_ns = now;
		}
	}
}

static void tick_work(struct work_struct *work)
{
	struct device_host *d = container_of(work, struct device_host, tick);
	u64 now = ktime_get_ns();
	struct wake wake __uninitialized;

	wake_init(&wake);
	block_stuck(d, now, &wake);
	watch_wakes(d, now);
	limit_tick(d, now);
	d->sched.ops->tick(&d->sched, now, &wake);
	host_wake(d, &wake);
}

/* ------------------------------------------------------ hooks, in order */

static void el_prepare_request(struct request *rq)
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
	limit_taken(h);
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
	struct io *io = &rq_host(rq)->io;

	lockdep_assert_held(qh->lock);
	h->device->sched.ops->insert(&qh->queue, io, now, wake);
	limit_changed(h, io->flow);
	trace_mqfair_insert(rq, &qh->queue, io);
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

static void el_insert_requests(struct blk_mq_hw_ctx *hctx,
			       struct list_head *list, blk_insert_t flags)
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

static struct request *el_dispatch_request(struct blk_mq_hw_ctx *hctx)
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
static bool el_has_work(struct blk_mq_hw_ctx *hctx)
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

static bool el_bio_merge(struct request_queue *q, struct bio *bio,
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

static void el_completed_request(struct request *rq, u64 now)
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

static void el_requeue_request(struct request *rq)
{
	struct request_host *r = rq_host(rq);

	if (is_out(r))
		slot_returned(rq, r, 0, false);
}

static void el_finish_request(struct request *rq)
{
	struct request_host *r = rq_host(rq);

	if (!r)
		return;
	if (unlikely(is_out(r)))
		el_requeue_request(rq);
	limit_released(rq->mq_hctx->sched_data, r->io.flow);
	declassify(r);
	rq->elv.priv[0] = NULL;
}

/* ----------------------------------------------------------- life cycle */

static void *el_alloc_data(struct request_queue *q)
{
	struct device_host *d = kvzalloc_node(sizeof(*d), GFP_KERNEL, q->node);

	if (!d)
		return NULL;
	d->q = q;
	mutex_init(&d->tune_lock);
	INIT_LIST_HEAD(&d->groups);
	port_lock_init(&d->timer_lock);
	hrtimer_setup(&d->timer, timer_fired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
	INIT_WORK(&d->tick, tick_work);
	return d;
}

static void el_free_data(void *data)
{
	kvfree(data);
}

static int el_init(struct request_queue *q, struct elevator_queue *eq)
{
	struct device_host *d = eq->elevator_data;
	u32 i;
	int ret;

	ret = device_host_build(d, sched_find(eq->type->elevator_name));
	if (ret)
		return ret;
	for (i = 0; i < d->nr_hctx; i++)
		INIT_WORK(&d->hctx[i]->wake_work, hctx_wake_work);
	/* Before a weight that is written then can have tick run. */
	limit_depth_updated(d);
	ret = compat_activate_policy(q, &mqfair_policy);
	if (ret) {
		device_host_destroy(d);
		return ret;
	}
	compat_queue_run_all(q);
	compat_wbt_disable(q, eq);
	return 0;
}

static void el_exit(struct elevator_queue *eq)
{
	struct device_host *d = eq->elevator_data;
	u32 i;

	/* Now nobody can ask for a kick or a tick by way of a cgroup. */
	compat_deactivate_policy(d->q, &mqfair_policy);
	groups_let_go(d);
	hrtimer_cancel(&d->timer);
	cancel_work_sync(&d->tick);
	/* The last tick may have armed it again; now nobody can. */
	hrtimer_cancel(&d->timer);
	cancel_work_sync(&d->tick);
	for (i = 0; i < d->nr_hctx; i++)
		cancel_work_sync(&d->hctx[i]->wake_work);
	compat_wbt_restore(d->q, eq);
	device_host_destroy(d);
}

static int el_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct device_host *d = device_of(hctx->queue);

	hctx->sched_data = d->hctx[index];
	return 0;
}

static void el_depth_updated(struct request_queue *q)
{
	struct device_host *d = device_of(q);

	device_size_requests(d);
	limit_depth_updated(d);
}

COMPAT_DEFINE_ELEVATOR_HOOKS(el_)

static const struct elevator_type template = {
	.ops = {
		COMPAT_ELEVATOR_OPS(el_),
		.init_hctx		= el_init_hctx,
		.limit_depth		= el_limit_depth,
		.bio_merge		= el_bio_merge,
		.prepare_request	= el_prepare_request,
		.insert_requests	= el_insert_requests,
		.dispatch_request	= el_dispatch_request,
		.has_work		= el_has_work,
		.completed_request	= el_completed_request,
		.requeue_request	= el_requeue_request,
		.finish_request		= el_finish_request,
	},
	.queue_debugfs_attrs	= mqfair_queue_debugfs,
	.hctx_debugfs_attrs	= mqfair_hctx_debugfs,
	.elevator_owner		= THIS_MODULE,
};

/* One for each scheduler, in the order of sched_policies[]. */
static struct {
	struct elevator_type type;
	struct elv_fs_entry attrs[TUNABLES_MAX + 1];
} elevators[POLICIES_MAX];

/* Writing a name that is not there has the core ask for these. */
MODULE_ALIAS("mqfq-iosched");
MODULE_ALIAS("wdt-iosched");
MODULE_ALIAS("ifq-iosched");
MODULE_ALIAS("kyber-fair-iosched");
MODULE_ALIAS("hwabc-iosched");

bool elevator_is_ours(const struct elevator_type *type)
{
	return (const char *)type >= (const char *)elevators &&
	       (const char *)type < (const char *)&elevators[POLICIES_MAX];
}

static int elevator_register_one(u32 i)
{
	const struct sched_ops *ops = sched_policies[i];
	struct elevator_type *type = &elevators[i].type;

	/* Some members are const. */
	memcpy(type, &template, sizeof(*type));
	type->elevator_name = ops->name;
	attrs_fill(ops->tunables, elevators[i].attrs);
	type->elevator_attrs = elevators[i].attrs;
	return elv_register(type);
}

static void elevator_unregister_first(u32 n)
{
	while (n--)
		elv_unregister(&elevators[n].type);
}

int elevator_register(void)
{
	u32 i;
	int ret;

	mqfair_wq = alloc_workqueue("mqfair", WQ_MEM_RECLAIM | WQ_HIGHPRI, 0);
	if (!mqfair_wq)
		return -ENOMEM;
	for (i = 0; sched_policies[i]; i++) {
		ret = elevator_register_one(i);
		if (ret) {
			elevator_unregister_first(i);
			destroy_workqueue(mqfair_wq);
			return ret;
		}
	}
	return 0;
}

void elevator_unregister(void)
{
	elevator_unregister_first(sched_policies_count());
	destroy_workqueue(mqfair_wq);
}
