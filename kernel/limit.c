// SPDX-License-Identifier: GPL-2.0
/*
 * limit - no flow holds so many scheduler tags that another goes without
 *
 * Tags are taken before the scheduler sees a request, and submitters sleep for
 * them in order of arrival.  A flow that fills the map with requests that we
 * hold back blocks the others above us, where no weight is known.
 *
 * The core offers one tool: a depth, meaning that only so many of the low tags
 * may be taken this time.  It is fixed while the task sleeps for a tag, so it
 * is a lottery and no number.  So: each flow has a quota, its share of the
 * map; below it nothing is limited; a flow above it sees the less of the map
 * the more it is over, and the high tags remain for those below theirs.  Never
 * so little that a sleeper could not get a tag for long after its flow has
 * fallen below its quota.
 *
 * The caller is known by `current` alone, for there is no bio yet.
 */
#include "device.h"

/* By quarters of the quota that a flow is over it: 1/8 parts of the map. */
static const u8 limit_eighths[] = { 5, 4, 3, 2 };

enum {
	LIMIT_LEAST_EIGHTHS = 2,	/* of the table above */
};

/* Requests of the flow that hold a tag of this hardware queue. */
static u64 tags_held(const struct hctx_host *h, const struct flow *f)
{
	u64 held = 0;
	u32 i;

	for (i = 0; i < h->nr_queues; i++) {
		const struct flow_queue *fq =
			&f->fq[h->queue[i]->queue.index];

		held += READ_ONCE(fq->inserted) - (u64)atomic64_read(&fq->done);
	}
	return held;
}

static unsigned int limit_of(u64 held, u64 quota, unsigned int map)
{
	u64 quarters = div64_u64((held - quota) * 4, quota);

	quarters = min_t(u64, quarters, ARRAY_SIZE(limit_eighths) - 1);
	return max(map * limit_eighths[quarters] / 8, 1U);
}

void el_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct request_queue *q = data->q;
	struct device_host *d = device_of(q);
	struct blk_mq_hw_ctx *hctx;
	struct blkcg_gq *blkg;
	unsigned int map;
	struct flow *f;
	u64 held, quota;

	if (READ_ONCE(d->sched.share.nr_active) < 2)
		return;
	hctx = blk_mq_map_queue(opf, blk_mq_get_ctx(q));
	map = compat_sched_depth(hctx);
	rcu_read_lock();
	blkg = blkg_lookup(compat_current_blkcg(), q);
	f = blkg ? group_flow(blkg) : NULL;
	if (f) {
		held = tags_held(hctx->sched_data, f);
		quota = max_t(u64, (flow_share(f) * map) >> SHARE_SHIFT, 1);
		if (held >= quota)
			data->shallow_depth =
				compat_shallow_depth(hctx, limit_of(held, quota, map));
	}
	rcu_read_unlock();
}

void limit_depth_updated(struct device_host *d)
{
	unsigned int least = UINT_MAX;
	u32 i;

	for (i = 0; i < d->nr_hctx; i++)
		least = min(least, compat_sched_depth(d->hctx[i]->hctx));
	compat_set_min_shallow_depth(d->q, max(least * LIMIT_LEAST_EIGHTHS / 8, 1U));
}
