/* SPDX-License-Identifier: GPL-2.0 */
/* What each scheduler's file offers to policies.c. */
#ifndef MQFAIR_POLICIES_H
#define MQFAIR_POLICIES_H

struct sched_ops;

extern const struct sched_ops mqfq_ops;
extern const struct sched_ops ifq_ops;
extern const struct sched_ops kyber_fair_ops;
extern const struct sched_ops wdt_ops;
extern const struct sched_ops hwabc_ops;

#endif /* MQFAIR_POLICIES_H */
