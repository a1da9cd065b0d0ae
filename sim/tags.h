/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tags - the scheduler tags of the simulated host
 *
 * The block layer gives a request a tag before the scheduler sees it.  A map of
 * host_params.sched_tags tags belongs to each map of driver tags.  A submitted
 * io waits in up to three places:
 *
 *   - in the list of kernel threads while these occupy half of the map;
 *   - in the list of its flow while the flow occupies its quota of the map;
 *   - then in the list of the map while no tag is free, in order of arrival.  Its
 *     flow's quota counts it there, as a claim.
 *
 * The quotas are those of the kernel module: sched/core/limit.h.  They hold with
 * host_params.quotas.  Without it, as under the block layer's `none`, only the
 * last list exists.
 *
 * The differences to kernel/limit.c: an io that gets a tag is inserted at once,
 * because no task has to wake up first.  So no other io takes the tag meanwhile.
 *
 * Tested by tests/sim/tags.c.
 */
#ifndef MQFAIR_SIM_TAGS_H
#define MQFAIR_SIM_TAGS_H

#include "port.h"

struct host;
struct host_flow;
struct host_io;
struct host_queue;

/* A list of ios that wait for a tag, in order of arrival. */
struct tag_list {
	struct host_io *head, **end;
};

struct sched_tags {
	u32 used;
	u32 foreign;			/* of these: ios of kernel threads */
	struct tag_list list;		/* of ios that wait for a free tag */
	struct tag_list threads;	/* of ios of kernel threads */
};

/* Allocates the maps of @h.  Returns false if memory is short. */
bool tags_init(struct host *h);
void tags_exit(struct host *h);

/* Prepares the list of a new flow. */
void tags_flow_init(struct host_flow *hf);

/* Gives @hio a tag and inserts it, or has it wait. */
void tags_submit(struct host_io *hio, struct host_queue *hq);

/* @hio, which is done, gives its tag back.  Other ios may get it. */
void tags_finished(struct host_io *hio, struct host_queue *hq);

/* Computes the level of the loans if it is due: see limit_level_tick(). */
void tags_tick(struct host *h);

/* Compares the tags in use with the ios that have one. */
void tags_audit(struct host *h);

#endif /* MQFAIR_SIM_TAGS_H */
