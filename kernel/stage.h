/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MQFAIR_STAGE_H
#define MQFAIR_STAGE_H

#include "device.h"

void hctx_stage(struct hctx_host *h, u64 now, struct wake *wake);
void hctx_block(struct hctx_host *h, struct wake *wake);
bool hctx_is_stuck(struct hctx_host *h);

/* The bytes that merging brought without telling us. */
static inline void charge_merged(struct sched *s, struct queue_host *qh,
				 struct request_host *r)
{
	u32 bytes = blk_rq_bytes(r->rq);

	if (unlikely(bytes != r->io.bytes))
		s->ops->merge(&qh->queue, &r->io, bytes);
}

static inline bool hctx_has_queued(struct hctx_host *h)
{
	u32 i;

	for (i = 0; i < h->nr_queues; i++)
		if (READ_ONCE(h->queue[i]->queue.nr))
			return true;
	return false;
}

static inline void hctx_run(struct hctx_host *h)
{
	if (READ_ONCE(h->staged))
		blk_mq_run_hw_queue(h->hctx, false);
}

#endif /* MQFAIR_STAGE_H */
