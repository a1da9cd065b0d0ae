/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ticks - the two timers of the simulated host
 *
 * One calls tick, the other sched_release(), at the times that hooks ask for in
 * struct wake.  A call takes no simulated time.
 */
#ifndef MQFAIR_SIM_TICKS_H
#define MQFAIR_SIM_TICKS_H

#include "sched/core/wake.h"

struct host;

/* Prepares the timers; none is armed. */
void ticks_init(struct host *h);

/* Arms the timers for the times in @wake, unless they are armed for earlier ones. */
void ticks_ask(struct host *h, const struct wake *wake);

#endif /* MQFAIR_SIM_TICKS_H */
