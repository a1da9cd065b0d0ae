/* SPDX-License-Identifier: GPL-2.0 */
/* What must hold of mqfq when no hook runs anywhere and no kick is under way. */
#ifndef MQFAIR_MT_STILL_H
#define MQFAIR_MT_STILL_H

#include "sched/mqfq/mqfq.h"

/* I5: @q has requests, is not blocked, and has its reason to wait. */
void stall_check_waiting(const struct mqfq *m, const struct queue *q);

/* Nobody waits for anything. */
void stall_check_empty(const struct mqfq *m);

#endif /* MQFAIR_MT_STILL_H */
