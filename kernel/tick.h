/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tick - the periodic work of a device, which its timer asks for
 *
 * Schedulers name the time of the next tick in struct wake; wake.c arms the
 * timer and queues the work.  The work runs in task context without a lock,
 * and never meets itself on one device.
 */
#ifndef MQFAIR_TICK_H
#define MQFAIR_TICK_H

#include "device.h"

/* Prepares device_host.tick; nothing runs yet. */
void tick_setup(struct device_host *d);

/* These are the callbacks of struct host_hooks.  Any context. */
u64 tick_hooks_begin(struct sched *s);
bool tick_hooks_ended(const struct sched *s, u64 mark);

#endif /* MQFAIR_TICK_H */
