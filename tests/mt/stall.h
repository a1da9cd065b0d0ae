/* SPDX-License-Identifier: GPL-2.0 */
/* Checks of mqfq for a time when no hook runs and no wake-up is under way. */
#ifndef MQFAIR_MT_STALL_H
#define MQFAIR_MT_STALL_H

#include "sched/mqfq/mqfq.h"

/* I5: @q, which has requests and is not blocked, must have a reason to wait. */
void stall_check_waiting(const struct mqfq *m, const struct queue *q);

/* No queue has requests or waits for anything. */
void stall_check_empty(const struct mqfq *m);

#endif /* MQFAIR_MT_STALL_H */
