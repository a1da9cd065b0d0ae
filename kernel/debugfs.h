/* SPDX-License-Identifier: GPL-2.0 */
/*
 * debugfs - read-only views of a device and its hardware queues
 *
 * register.c puts this table into each elevator type.  The block layer makes
 * the files.  Readers run in task context; debugfs.c takes the locks that keep
 * a scheduler in place, and none of mqfair's.
 */
#ifndef MQFAIR_DEBUGFS_H
#define MQFAIR_DEBUGFS_H

#include "device.h"

extern const struct blk_mq_debugfs_attr mqfair_queue_debugfs[];

#endif /* MQFAIR_DEBUGFS_H */
