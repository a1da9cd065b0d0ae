/* SPDX-License-Identifier: GPL-2.0 */
/*
 * none - no scheduler: each queue sends its ios on in the order of arrival
 *
 * An io waits only while the driver has no tag for its queue.  There are no
 * slots and no weights, so the result of a scheduler is compared with this one.
 * The real `none` of blk-mq behaves the same: it holds no request back.
 */
#ifndef MQFAIR_SIM_NONE_H
#define MQFAIR_SIM_NONE_H

#include "sched/core/sched.h"

extern const struct sched_ops none_ops;

/* These hooks also serve tests/sim/fifo.c, which adds slots. */
int none_init(struct sched *s);
void none_exit(struct sched *s);
void none_insert(struct queue *q, struct io *io, u64 now, struct wake *wake);
void none_merge(struct queue *q, struct io *io, u32 bytes);
enum dispatch_result none_dispatch(struct queue *q, u64 now, struct io **out,
				   struct wake *wake);
void none_tick(struct sched *s, u64 now, struct wake *wake);

#endif /* MQFAIR_SIM_NONE_H */
