/* SPDX-License-Identifier: GPL-2.0 */
/*
 * driver_tags - the driver tags of a hardware queue
 *
 * CPUs share a hardware queue of the kernel, and each has a queue here.  While all
 * tags of the hardware queue are in use, its queues wait.  When a tag is free, one
 * of them is asked, as in kernel/stage.c: the queue with an urgent io, or the one
 * with the least head tag, if the scheduler is `ordered`.  Otherwise the queues
 * take turns.  The tag is for that queue: no other takes it before that queue has run.
 */
#ifndef MQFAIR_DRIVER_TAGS_H
#define MQFAIR_DRIVER_TAGS_H

#include "device.h"

struct host_queue;

/* A map of driver tags; the host sets `first` and `nr`. */
struct host_tags {
	u32 in_use;
	u32 promised;		/* free tags, each for a queue that was woken for it */
	u32 first, nr;		/* its queues */
	u32 waiting;		/* of these, for a tag */
	u32 turn;		/* after the last that was asked */
	struct submission_queue submissions;	/* of the device */
};

/* @hq has run: it waits for a tag, or leaves the free tags to the others. */
void driver_tags_settle(struct host_queue *hq);

/* The io of @hq returns its tag. */
void driver_tags_return(struct host_queue *hq);

#endif /* MQFAIR_DRIVER_TAGS_H */
