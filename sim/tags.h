/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tags - the scheduler tags of the simulated host
 *
 * The block layer gives a request a tag before the scheduler sees it.  A map of
 * host_params.sched_tags tags belongs to each map of driver tags.  A submitted
 * io that finds no tag waits in one of three places:
 *
 *   - in the list of kernel threads while these occupy half of the map;
 *   - in the order of sched/core/limit.h, with host_params.quotas;
 *   - in order of arrival if that order does not count it.  Without quotas, as
 *     under the block layer's `none`, only this list exists.
 *
 * An io that gets a tag after a wait is inserted when its task has woken up
 * (host_params.task_wake_ns).  The difference to kernel/limit.c: no other io takes
 * the tag meanwhile.
 *
 * Tested by tests/sim/tags.c.
 */
#ifndef MQFAIR_SIM_TAGS_H
#define MQFAIR_SIM_TAGS_H

#include "sched/core/queue.h"

struct host;
struct host_io;
struct host_queue;

struct sched_tags {
	u32 used;
	u32 foreign;			/* of these: ios of kernel threads */
	struct tag_waiters order;	/* of ios that wait for a tag */
	struct io_list list;		/* of ios outside that order */
	struct io_list threads;		/* of ios of kernel threads */
};

/* Allocates the maps of @h.  Returns false if memory is short. */
bool tags_init(struct host *h);
void tags_exit(struct host *h);

/* Gives @hio a tag and inserts it, or has it wait. */
void tags_submit(struct host_io *hio, struct host_queue *hq);

/* @hio, which is done, gives its tag back.  Other ios may get it. */
void tags_finished(struct host_io *hio, struct host_queue *hq);

/* Of tick: shares may have changed. */
void tags_tick(struct host *h);

/* Compares the tags in use with the ios that have one. */
void tags_audit(struct host *h);

#endif /* MQFAIR_SIM_TAGS_H */
