/* SPDX-License-Identifier: GPL-2.0 */
/*
 * wake - wakes the queues and arms the timer as a hook asked in struct wake
 *
 * Each caller of a hook hands the struct to host_wake() after it has dropped
 * hctx_host.lock and queue_host.lock.  A queue is woken by a work item on the
 * queue's own CPU: it stages a request and runs the hardware queue.  The block
 * layer's own asynchronous run would not do: it asks has_work() first, from
 * any context, and only staging can answer that.
 *
 * Beyond WAKE_FAN queues the work items are a tree: wake.h of sched/core/.
 *
 * A time in struct wake arms the device's timer, which queues the tick work.
 */
#ifndef MQFAIR_WAKE_H
#define MQFAIR_WAKE_H

#include "device.h"

/* The workqueue of all devices: before the first device and after the last. */
int wake_workqueue_create(void);
void wake_workqueue_destroy(void);

/* Prepares the timer of @d; nothing runs yet. */
void wake_setup(struct device_host *d);

/* Prepares the work item of one hardware queue; nothing runs yet. */
void wake_setup_hctx(struct hctx_host *h);

/*
 * Cancels the timer, the tick work and the wake-ups of @d, and waits for those
 * that run.  Task context, request queue frozen, all flows gone.
 */
void wake_stop(struct device_host *d);

void host_wake_slow(struct device_host *d, struct wake *wake);

/*
 * Any context, with neither hctx_host.lock nor queue_host.lock held.  Only
 * dispatch and tick set wake.pinned_by, and tasks call those.
 */
static inline void host_wake(struct device_host *d, struct wake *wake)
{
	if (unlikely(wake->summary || wake->at_ns ||
		     wake->pinned_by != QUEUES_MAX))
		host_wake_slow(d, wake);
}

/*
 * Tells the scheduler that shares have changed without I/O.  Any context, with
 * groups_lock or outer locks held; not with a lock of sched/.
 */
void host_reshare(struct sched *s);

#endif /* MQFAIR_WAKE_H */
