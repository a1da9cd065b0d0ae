// SPDX-License-Identifier: GPL-2.0
/*
 * tick - looks for stuck queues and lost wake-ups, then runs the slow work
 *
 * The slow work is the look at tasks that wait for tags (limit.c) and the tick hook of
 * the scheduler.
 */
#include "tick.h"

#include "limit.h"
#include "stage.h"
#include "wake.h"

/*
 * Hardware queues that a CPU waits for must not delay requests: see
 * hctx_leaves().  No event tells that one begins to leave.
 */
static void wake_leaving(struct device_host *d, struct wake *wake)
{
	u32 i;

	for (i = 0; i < d->nr_hctx; i++) {
		struct hctx_host *h = d->hctx[i];

		if (unlikely(hctx_leaves(h)) && hctx_has_queued(h))
			wake_queue(wake, h->queue[0]->queue.index);
	}
}

/*
 * Blocks hardware queues that cannot run.  A request that was staged more than
 * a millisecond ago and not fetched shows that its hardware queue is stopped.
 * The difference is signed: a request may be staged after @now was read.
 */
static void block_stuck(struct device_host *d, u64 now, struct wake *wake)
{
	u32 i;

	for (i = 0; i < d->nr_hctx; i++) {
		struct hctx_host *h = d->hctx[i];

		spin_lock(&h->lock);
		if (hctx_is_stuck(h) ||
		    (h->staged && (s64)(now - h->staged_ns) > NSEC_PER_MSEC))
			hctx_block_stuck(h, wake);
		spin_unlock(&h->lock);
	}
}

#define LOOK_NS		(5 * NSEC_PER_MSEC)	/* as PINNED_NS of mqfq.c */
#define LOST_NS		(500 * NSEC_PER_MSEC)	/* as in sched/mqfq/mqfq.c */

/*
 * Each hook runs under a spin lock or in an interrupt.  So after a grace period
 * of RCU no hook runs that ran before it.  begin() may be called with a raw lock
 * held, where no grace period can be started: tick_work() starts it.
 */
u64 tick_hooks_begin(struct sched *s)
{
	container_of(s, struct device_host, sched)->grace_wanted = true;
	return get_state_synchronize_rcu();
}

bool tick_hooks_ended(const struct sched *s, u64 mark)
{
	return poll_state_synchronize_rcu(mark);
}

static bool is_woken(const struct queue_host *qh)
{
	return READ_ONCE(qh->queue.wake_pending) && READ_ONCE(qh->queue.nr);
}

/*
 * Whether the scheduler has asked for a queue of @h to be run, which was not asked
 * for a request since.  A queue by tags may wait for the first of @h.
 */
static bool is_due(struct hctx_host *h)
{
	struct queue_host *first;
	u32 i;

	if (h->device->sched.ops->ordered) {
		first = hctx_next(h);
		return first && is_woken(first);
	}
	for (i = 0; i < h->nr_queues; i++)
		if (is_woken(h->queue[i]))
			return true;
	return false;
}

/* Whether the block layer must come back for @h, but has no reason to. */
static bool is_blocked_in_vain(struct hctx_host *h)
{
	return READ_ONCE(h->blocked) && hctx_has_queued(h) && !hctx_is_stuck(h);
}

static u64 hctx_dispatched(const struct hctx_host *h)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < h->nr_queues; i++)
		sum += READ_ONCE(h->queue[i]->queue.stats.dispatched);
	return sum;
}

/*
 * The watchdog of wake-ups.  It counts a wake-up as lost after LOST_NS if:
 *
 *	a queue is due, or the hardware queue is blocked although it can run,
 *	no queue of the hardware queue dispatches a request,
 *	none is staged, and no work item is under way,
 *	the drive has a free tag; otherwise its next completion is the wake-up.
 *
 * A CPU that stands still is no lost wake-up.  So a grace period must have passed
 * as well: tick_hooks_begin().
 */
static void watch_wakes(struct device_host *d, struct hctx_host *h, u64 now)
{
	u64 dispatched = hctx_dispatched(h);
	bool lost = (is_due(h) || is_blocked_in_vain(h)) &&
		    !READ_ONCE(h->staged) && !work_busy(&h->wake_work) &&
		    hctx_has_driver_tags(h, 1);

	if (!lost || h->lost_dispatched != dispatched) {
		h->lost_dispatched = dispatched;
		h->lost_ns = 0;
	} else if (!h->lost_ns) {
		h->lost_ns = now;
		h->lost_grace = start_poll_synchronize_rcu();
	} else if (now - h->lost_ns > LOST_NS &&
		   poll_state_synchronize_rcu(h->lost_grace)) {
		atomic64_inc(&d->sched.stats.watchdog);
		h->lost_ns = 0;
	}
}

/*
 * Looks for queues that are stuck or were not woken.  The look takes the lock of
 * each hardware queue, so a tick that comes too soon after a look leaves it to a
 * later one.
 */
static void look_at_queues(struct device_host *d, u64 now, struct wake *wake)
{
	u32 i;

	if (now < d->look_next_ns) {
		wake_at(wake, d->look_next_ns);
		return;
	}
	d->look_next_ns = now + LOOK_NS;
	block_stuck(d, now, wake);
	wake_leaving(d, wake);
	for (i = 0; i < d->nr_hctx; i++)
		watch_wakes(d, d->hctx[i], now);
}

static void tick_work(struct work_struct *work)
{
	struct device_host *d = container_of(work, struct device_host, tick);
	u64 now = ktime_get_ns();
	struct wake wake __uninitialized;

	wake_init(&wake);
	look_at_queues(d, now, &wake);
	limit_tick(d, now);
	if (limit_awaits_tick(d))
		wake_at(&wake, now + FLOW_GRACE_NS);
	sched_run_tick(&d->sched, now, &wake);
	host_wake(d, &wake);
	if (unlikely(d->grace_wanted)) {
		d->grace_wanted = false;
		(void)start_poll_synchronize_rcu();
	}
}

void tick_setup(struct device_host *d)
{
	INIT_WORK(&d->tick, tick_work);
}
