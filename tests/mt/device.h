/* SPDX-License-Identifier: GPL-2.0 */
/* A device that completes requests in any order: a set under one lock. */
#ifndef MQFAIR_MT_DEVICE_H
#define MQFAIR_MT_DEVICE_H

#include "sched/core/sched.h"
#include "tests/random.h"

struct device {
	struct port_lock lock;
	struct io **io;
	u32 nr, room;
};

void device_init(struct device *d, u32 room);
void device_deinit(struct device *d);
void device_start(struct device *d, struct io *io);

/* Takes a random io out of the device; NULL if the device is empty. */
struct io *device_finish(struct device *d, struct random *r);

#endif /* MQFAIR_MT_DEVICE_H */
