/* SPDX-License-Identifier: GPL-2.0 */
/*
 * weights - io.mqfair.weight: the weight of a cgroup, and for each disk
 *
 * Both are for struct cftype.
 */
#ifndef MQFAIR_WEIGHTS_H
#define MQFAIR_WEIGHTS_H

#include <linux/cgroup.h>

int weights_show(struct seq_file *sf, void *v);
ssize_t weights_write(struct kernfs_open_file *of, char *buf, size_t nbytes,
		      loff_t off);

#endif /* MQFAIR_WEIGHTS_H */
