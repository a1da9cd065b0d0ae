/* SPDX-License-Identifier: GPL-2.0 */
/*
 * goals - io.mqfair.latency: a latency goal of a cgroup for each device
 *
 * A cgroup keeps its goals itself, as it keeps its weights.  So a goal can be
 * set before a device has its scheduler, and it survives a change of scheduler.
 * A cgroup without a goal for a device has the goal of its nearest ancestor that
 * has one.  Its own goal counts alone, whether it is the tighter or the looser.
 */
#ifndef MQFAIR_GOALS_H
#define MQFAIR_GOALS_H

#include "weights.h"

int goals_show(struct seq_file *sf, void *v);
ssize_t goals_write(struct kernfs_open_file *of, char *buf, size_t nbytes,
		    loff_t off);

/*
 * Gives the flow of @blkg the goal of its cgroup.  Call it under groups_lock,
 * which serialises it with goals_write(), once the block layer lists @blkg.
 */
void goal_refresh(struct blkcg_gq *blkg);

/* The cgroup is gone. */
void goals_free(struct cgroup_host *c);

#endif /* MQFAIR_GOALS_H */
