/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ticks - the timer of the simulated host
 *
 * It calls tick, at the times that hooks ask for in struct wake.  A call takes no
 * simulated time.
 */
#ifndef MQFAIR_SIM_TICKS_H
#define MQFAIR_SIM_TICKS_H

#include "sched/core/wake.h"

struct host;

/* Prepares the timer; it is not armed. */
void ticks_init(struct host *h);

/* Arms the timer for the time in @wake, unless it is armed for an earlier one. */
void ticks_ask(struct host *h, const struct wake *wake);

#endif /* MQFAIR_SIM_TICKS_H */
