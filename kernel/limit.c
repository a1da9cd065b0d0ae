// SPDX-License-Identifier: GPL-2.0
/*
 * limit - no flow holds so many scheduler tags that another goes without
 *
 * Tags are taken before the scheduler sees a request, and submitters sleep for
 * them in order of arrival.  A flow that fills the map with requests that we
 * hold back blocks the others above us, where no weight is known.
 *
 * The rule.  Half of the map is for whoever comes.  Beyond it a flow holds no
 * more than its share of the map: it waits here until one of its own requests
 * ends.  So the map is never full of one flow's requests, every flow can have
 * waiting what its share of the device needs, and a map of twice D tags keeps
 * the device busy whoever is idle.  A flow alone is not limited.
 *
 * The core's own means, a depth, gives no flow a number of tags: it is a
 * number of low tags, fixed while the task sleeps.  It is used for those alone
 * who may not sleep (REQ_NOWAIT).  Waiting here is waiting where the core
 * waits for a tag a few lines later: same context, nothing held but the
 * queue's usage counter, and the plug is flushed by io_schedule().
 *
 * The caller is known by `current` alone, for there is no bio yet.
 *
 * Who wakes: el_finish_request(), once for each request of the flow that ends.
 * A waiter's flow holds at least one tag, so there is one to come.
 */
#include "device.h"

struct claim {
	struct hctx_host *hctx;
	struct flow *flow;
	u32 depth;		/* of the map */
};

/* Tags of the map that the flow's requests hold. */
static u64 tags_held(const struct claim *c)
{
	const struct flow *f = c->flow;
	struct flow_totals t;
	u64 held = 0;
	u32 i;

	if (c->hctx->requests_shared) {
		flow_totals(f, &t);
		return t.inserted - t.done;
	}
	for (i = 0; i < c->hctx->nr_queues; i++) {
		const struct flow_queue *fq =
			&f->fq[c->hctx->queue[i]->queue.index];

		held += READ_ONCE(fq->inserted) - (u64)atomic64_read(&fq->done);
	}
	return held;
}

/* How many tags the flow may take now. */
static u64 tags_left(const struct claim *c)
{
	u32 used = atomic_read(&c->hctx->map->used);
	u64 quota, held;

	if (used < c->depth / 2)
		return c->depth / 2 - used;
	quota = max_t(u64, (flow_share(c->flow) * c->depth) >> SHARE_SHIFT, 1);
	held = tags_held(c);
	return held < quota ? quota - held : 0;
}

static u64 wait_for_tags(const struct claim *c)
{
	wait_queue_head_t *wait = flow_tag_wait(c->flow);
	DEFINE_WAIT(entry);
	u64 left;

	for (;;) {
		prepare_to_wait_exclusive(wait, &entry, TASK_UNINTERRUPTIBLE);
		/* Pairs with limit_released(): announce, then look. */
		left = tags_left(c);
		if (left)
			break;
		io_schedule();
	}
	finish_wait(wait, &entry);
	return left;
}

static void limit_flow(const struct claim *c, struct blk_mq_alloc_data *data)
{
	u64 left = tags_left(c);

	if (!left && (data->flags & BLK_MQ_REQ_NOWAIT)) {
		data->shallow_depth = compat_shallow_depth(c->hctx->hctx,
							   max(c->depth / 2, 1U));
		return;
	}
	if (!left)
		left = wait_for_tags(c);
	/* A plug takes a batch of tags at once. */
	if (data->nr_tags > left)
		data->nr_tags = left;
}

void el_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct device_host *d = device_of(data->q);
	struct blkcg_gq *blkg;
	struct claim c;

	if (READ_ONCE(d->sched.share.nr_active) < 2 ||
	    (opf & (REQ_META | REQ_SWAP)))
		return;
	c.hctx = blk_mq_map_queue(opf, blk_mq_get_ctx(data->q))->sched_data;
	if (c.hctx->exempt)
		return;
	c.depth = compat_sched_depth(c.hctx->hctx);
	/* As tags_left() would find, before it is known who asks. */
	if (atomic_read(&c.hctx->map->used) + data->nr_tags <= c.depth / 2)
		return;

	rcu_read_lock();
	blkg = blkg_lookup(compat_current_blkcg(), data->q);
	if (!blkg_tryget(blkg))
		blkg = NULL;
	rcu_read_unlock();
	if (!blkg)
		return;
	c.flow = group_flow(blkg);
	if (c.flow)
		limit_flow(&c, data);
	blkg_put(blkg);
}

void limit_taken(struct hctx_host *h)
{
	atomic_inc(&h->map->used);
}

void limit_released(struct hctx_host *h, struct flow *f)
{
	wait_queue_head_t *wait = flow_tag_wait(f);

	/* Full order; pairs with wait_for_tags(). */
	atomic_dec_return(&h->map->used);
	if (unlikely(waitqueue_active(wait)))
		wake_up(wait);
}

void limit_depth_updated(struct device_host *d)
{
	unsigned int least = UINT_MAX;
	u32 i;

	for (i = 0; i < d->nr_hctx; i++)
		least = min(least, compat_sched_depth(d->hctx[i]->hctx));
	compat_set_min_shallow_depth(d->q, max(least / 2, 1U));
}
