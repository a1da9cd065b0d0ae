/* SPDX-License-Identifier: GPL-2.0 */
/*
 * goals - io.mqfair.latency: a latency goal of a cgroup for each device
 *
 * A cgroup without a goal for a device has the goal of its nearest ancestor that
 * has one.  Its own goal counts alone, whether it is the tighter or the looser.
 *
 * Both are for struct cftype.
 */
#ifndef MQFAIR_GOALS_H
#define MQFAIR_GOALS_H

#include <linux/cgroup.h>

int goals_show(struct seq_file *sf, void *v);
ssize_t goals_write(struct kernfs_open_file *of, char *buf, size_t nbytes,
		    loff_t off);

#endif /* MQFAIR_GOALS_H */
