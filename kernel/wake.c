// SPDX-License-Identifier: GPL-2.0
/* wake - work items that wake queues, and the timers: wake.h */
#include "wake.h"

#include "stage.h"
#include "trace.h"

static struct workqueue_struct *mqfair_wq;

/* On the queue's own CPU, or on any CPU while that one is offline. */
static void hctx_wake(struct queue_host *qh)
{
	int cpu = cpu_online(qh->cpu) ? qh->cpu : WORK_CPU_UNBOUND;

	/* Pairs with wake_stop(), which cancels once more after this look. */
	if (unlikely(READ_ONCE(qh->hctx->device->exiting)))
		return;
	if (qh->hctx->nr_queues > 1)
		set_bit(qh->place, qh->hctx->woken);
	queue_work_on(cpu, mqfair_wq, &qh->hctx->wake_work);
}

/*
 * A throttled queue waits for the queue with the least head tag.  If that queue
 * is stuck in its driver, no hook tells so.  So this function looks, and blocks
 * a queue that is stuck.
 */
static void unpin(struct device_host *d, u32 index, struct wake *wake)
{
	struct hctx_host *h = d->queues[index].hctx;

	/* In this test build each look is out of date: the queue can run. */
	if (!IS_ENABLED(MQFAIR_TEST_WINDOWS) && !hctx_is_stuck(h))
		return;
	spin_lock(&h->lock);
	hctx_block_stuck(h, wake);
	spin_unlock(&h->lock);
}

/*
 * Whether the timer will not fire by @at.  One that fires now does its work: tick
 * runs after this look.  Another CPU may set the time meanwhile, and only to an
 * earlier one while the timer is queued.
 */
static bool fires_too_late(const struct hrtimer *timer, ktime_t at)
{
	return !hrtimer_is_queued((struct hrtimer *)timer) ||
	       ktime_before(at, data_race(hrtimer_get_expires(timer)));
}

/*
 * The lock lets the earlier time win when two CPUs arm the timer at once.  Each
 * throttled queue asks for a time, and most find the timer armed already.
 */
static void host_arm(struct device_host *d, u64 at_ns)
{
	struct hrtimer *timer = &d->timer;
	ktime_t at = ns_to_ktime(at_ns);
	unsigned long flags;

	if (!fires_too_late(timer, at))
		return;
	flags = port_lock(&d->timer_lock);
	if (fires_too_late(timer, at))
		hrtimer_start(timer, at, HRTIMER_MODE_ABS);
	port_unlock(&d->timer_lock, flags);
}

/* Wakes @queue, and has it wake @others of @wake before it runs. */
static void wake_with(struct device_host *d, u32 queue, u32 others,
		      struct wake *wake)
{
	struct queue_host *qh = &d->queues[queue];
	u32 other;

	for (; others && (other = wake_next(wake)) < QUEUES_MAX; others--)
		/* Before the work is queued.  Pairs with pass_on(). */
		queue_set_add(&qh->hctx->forward, other);
	trace_mqfair_wake(d->q, queue);
	hctx_wake(qh);
}

void host_wake_slow(struct device_host *d, struct wake *wake)
{
	u32 pinned_by = wake->pinned_by, queue, part;

	if (unlikely(pinned_by < d->sched.nr_queues)) {
		wake->pinned_by = QUEUES_MAX;
		unpin(d, pinned_by, wake);
	}
	part = wake_part(wake);
	while ((queue = wake_next(wake)) < QUEUES_MAX)
		wake_with(d, queue, part - 1, wake);
	if (unlikely(wake->at_ns))
		host_arm(d, wake->at_ns);
}

void host_reshare(struct sched *s)
{
	struct wake wake __uninitialized;

	wake_init(&wake);
	s->ops->tune(s, NULL, &wake);
	host_wake(container_of(s, struct device_host, sched), &wake);
}

static void wake_also(void *wake, u32 queue)
{
	wake_queue(wake, queue);
}

/* Wakes the queues that a hook has left to this work item. */
static void pass_on(struct hctx_host *h)
{
	u32 nr_queues = h->device->sched.nr_queues;
	struct wake wake __uninitialized;

	/* The work has begun: a later hook queues it again.  Pairs with wake_with(). */
	if (likely(!queue_set_any(&h->forward, nr_queues)))
		return;
	wake_init(&wake);
	queue_set_drain(&h->forward, nr_queues, wake_also, &wake);
	host_wake(h->device, &wake);
}

static void hctx_wake_work(struct work_struct *work)
{
	struct hctx_host *h = container_of(work, struct hctx_host, wake_work);
	struct wake wake __uninitialized;

	pass_on(h);
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

int wake_workqueue_create(void)
{
	mqfair_wq = alloc_workqueue("mqfair",
				    WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU, 0);
	return mqfair_wq ? 0 : -ENOMEM;
}

void wake_workqueue_destroy(void)
{
	destroy_workqueue(mqfair_wq);
}

void wake_setup(struct device_host *d)
{
	port_lock_init(&d->timer_lock);
	hrtimer_setup(&d->timer, timer_fired, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS);
}

void wake_setup_hctx(struct hctx_host *h)
{
	INIT_WORK(&h->wake_work, hctx_wake_work);
}

static void cancel_wakes(struct device_host *d)
{
	u32 i;

	for (i = 0; i < d->nr_hctx; i++)
		cancel_work_sync(&d->hctx[i]->wake_work);
}

void wake_stop(struct device_host *d)
{
	WRITE_ONCE(d->exiting, true);
	hrtimer_cancel(&d->timer);
	cancel_work_sync(&d->tick);
	/* The last tick may have armed the timer again; no other tick can. */
	hrtimer_cancel(&d->timer);
	cancel_work_sync(&d->tick);
	/*
	 * A work item that runs may have looked at `exiting` before.  It may wake
	 * a queue after the work item of that queue is cancelled.  After the first
	 * round no such item runs, so the second one leaves none behind.
	 */
	cancel_wakes(d);
	cancel_wakes(d);
}
