/* SPDX-License-Identifier: GPL-2.0 */
/*
 * attrs - the files under queue/iosched/ and the parameters behind them
 *
 * register.c calls attrs_fill() for each elevator type when the module starts.
 * layout.c calls device_default_params() while a device is built, with the
 * request queue frozen.  The files themselves are read and written by user
 * space; attrs.c takes device_host.tune_lock for a write.
 */
#ifndef MQFAIR_ATTRS_H
#define MQFAIR_ATTRS_H

#include "device.h"

/* Makes a file of each tunable in @table; @attrs is zeroed and ends with a zero. */
void attrs_fill(const struct tunable *table,
		struct elv_fs_entry attrs[TUNABLES_MAX + 1]);

/*
 * The parameters of a device that has just got scheduler @ops.  Sets
 * device_host.automatic and sched.ops.
 */
void device_default_params(struct device_host *d, const struct sched_ops *ops,
			   struct sched_params *p);

#endif /* MQFAIR_ATTRS_H */
