/* SPDX-License-Identifier: GPL-2.0 */
/* Arrival order and D slots: the scheduler that every fairness test must fail. */
#ifndef MQFAIR_TESTS_SIM_FIFO_H
#define MQFAIR_TESTS_SIM_FIFO_H

#include "sched/core/sched.h"

extern const struct sched_ops fifo_ops;

#endif /* MQFAIR_TESTS_SIM_FIFO_H */
