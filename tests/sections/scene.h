/* SPDX-License-Identifier: GPL-2.0 */
/* scene - flows on the queues of one simulated drive, for sections.c and width.c */
#ifndef MQFAIR_TESTS_SECTIONS_SCENE_H
#define MQFAIR_TESTS_SECTIONS_SCENE_H

#include "sched/core/sched.h"

struct scene {
	const struct sched_ops *ops;
	u32 queues;
	u32 used;	/* queues with requests; 0: all */
	u32 flows;
	u32 slots;	/* D, and the slots of the drive */
	u32 tags;	/* scheduler tags of the drive */
	u32 depth;	/* requests of a flow */
	u64 run_ns;
};

/*
 * Runs @scene to its end.  The requests of a flow go to the used queues in turn.
 * Returns the requests that were done, or 0 after a message on stderr.
 */
u64 scene_run(const struct scene *scene);

#endif /* MQFAIR_TESTS_SECTIONS_SCENE_H */
