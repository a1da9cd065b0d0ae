/* SPDX-License-Identifier: GPL-2.0 */
/*
 * limit - bounds the scheduler tags that one flow holds
 */
#ifndef MQFAIR_LIMIT_H
#define MQFAIR_LIMIT_H

#include "device.h"

void el_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void limit_depth_updated(struct device_host *d);
void limit_wake(struct hctx_host *h, struct flow *f);
void limit_tick(struct device_host *d, u64 now);

static inline struct flow_tags *flow_tags(struct flow *f)
{
	return &container_of(f, struct group_host, flow)->tags;
}

/* What the flow holds of @h's tags has changed: there may be room for another. */
static inline void limit_changed(struct hctx_host *h, struct flow *f)
{
	if (unlikely(waitqueue_active(&flow_tags(f)->wait)))
		limit_wake(h, f);
}

static inline void limit_taken(struct hctx_host *h)
{
	atomic_inc(&h->map->used);
}

static inline void limit_released(struct hctx_host *h, struct flow *f)
{
	/* Full order; pairs with wait_for_tags(). */
	atomic_dec_return(&h->map->used);
	limit_changed(h, f);
}

#endif /* MQFAIR_LIMIT_H */
