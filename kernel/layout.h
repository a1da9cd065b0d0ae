/* SPDX-License-Identifier: GPL-2.0 */
/*
 * layout - builds, resizes and frees the queues of a device
 *
 * register.c calls all three in task context while the request queue is
 * frozen: no request exists and no other hook runs.  No lock is held.  The
 * allocations do no I/O.
 */
#ifndef MQFAIR_LAYOUT_H
#define MQFAIR_LAYOUT_H

#include "device.h"

/*
 * Makes hardware queues, queues and request hosts of @d and starts scheduler
 * @ops on them.  0, or -errno with nothing left behind.
 */
int device_host_build(struct device_host *d, const struct sched_ops *ops);

/* Undoes device_host_build(); every flow has left the device. */
void device_host_destroy(struct device_host *d);

/* Makes one request host for each scheduler tag; the number has changed. */
void device_size_requests(struct device_host *d);

#endif /* MQFAIR_LAYOUT_H */
