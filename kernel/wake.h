/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MQFAIR_WAKE_H
#define MQFAIR_WAKE_H

#include "device.h"

extern struct workqueue_struct *mqfair_wq;

void host_wake_slow(struct device_host *d, struct wake *wake);

/*
 * Does what a hook asked for.  Any context but with one of our locks held;
 * only dispatch and tick leave pinned_by, and they are called by tasks.
 */
static inline void host_wake(struct device_host *d, struct wake *wake)
{
	if (unlikely(wake->summary || wake->at_ns ||
		     wake->pinned_by != QUEUES_MAX))
		host_wake_slow(d, wake);
}

void host_reshare(struct sched *s);
void hctx_wake_work(struct work_struct *work);
enum hrtimer_restart timer_fired(struct hrtimer *timer);

#endif /* MQFAIR_WAKE_H */
