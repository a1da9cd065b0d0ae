/* SPDX-License-Identifier: GPL-2.0 */
/*
 * public - the kernel's public headers
 *
 * kernel/btf/generate.py writes out the types that these headers do not declare.
 * So each header that declares a type of the block layer is included here, and
 * not in a .c file.
 */
#ifndef MQFAIR_COMPAT_PUBLIC_H
#define MQFAIR_COMPAT_PUBLIC_H

#include <linux/blk-cgroup.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/cgroup.h>
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/percpu-refcount.h>
#include <linux/radix-tree.h>
#include <linux/rcupdate.h>
#include <linux/sbitmap.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#endif
