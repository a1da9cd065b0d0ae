// SPDX-License-Identifier: GPL-2.0
/*
 * limit - no flow holds so many scheduler tags that another goes without
 *
 * Tags are taken before the scheduler sees a request, and submitters sleep for
 * them in order of arrival.  A flow that fills the map with requests that we
 * hold back blocks the others above us, where no weight is known.
 *
 * The rule.  A flow may have so many requests *waiting*, by the tags that are
 * free:
 *
 *	free * (1 + active flows * share), at least 1
 *
 * Those in the device are not counted: how many of them are whose the scheduler
 * decides, and it can as long as everybody whose turn may come has something
 * waiting.  What a flow leaves is free, so the others may have more, and some
 * is always free for who comes next; up to half of the map nobody waits.  A
 * division by shares alone would not do.  Who has a large share and asks for
 * little leaves the device to the others, but its tags would stay its own:
 *
 *	ifq, D = 8, 32 tags, shares of 91 : 6 : 3, of which the first asks for
 *	a request now and then: 29, 1 and 1 tags, so the second cannot have its
 *	two thirds of the device.  By the rule it is 8 waiting for both.
 *
 * Nor would one by number: a flow of weight 200 among twenty of weight 10 needs
 * more than a twentieth to keep half of the device busy, for what is dispatched
 * together completes together.
 *
 * When D is more than half of the map the device may hold all tags, and nothing
 * would be free.  Then a flow may hold its share of the map beyond half of it,
 * in the device or waiting.  A flow alone is not limited.
 *
 * The core's own means, a depth, gives no flow a number of tags: it is a
 * number of low tags, fixed while the task sleeps.  It is used for those alone
 * who may not sleep (REQ_NOWAIT).  Waiting here is waiting where the core
 * waits for a tag a few lines later: same context, nothing held but the
 * queue's usage counter, and the plug is flushed by io_schedule().
 *
 * The caller is known by `current` alone, for there is no bio yet.
 *
 * Who wakes: whatever changes what counts of the flow.  A request of its that
 * is dispatched or ends makes room; one that is inserted, of somebody who was
 * woken, passes on what room there is still.  A waiter's flow has a request in
 * this map, so there is one to come.
 *
 * Source of the rule: Choudhury, Hahne, Dynamic Queue Length Thresholds for
 * Shared-Memory Packet Switches, IEEE/ACM Transactions on Networking, 1998.
 * Tested by tests/vm/test_tags.py, tests/vm/test_shares.py.
 */
#include "device.h"

struct claim {
	struct hctx_host *hctx;
	struct flow *flow;
	u32 depth;		/* of the map */
};

struct tag_waiter {
	struct wait_queue_entry entry;
	const struct tag_map *map;
};

/* The flow's requests in the map: inserted, and not dispatched or not done. */
static u64 requests_of(const struct claim *c, bool waiting)
{
	const struct flow *f = c->flow;
	struct flow_totals t;
	s64 n = 0;
	u32 i;

	if (c->hctx->requests_shared) {
		flow_totals(f, &t);
		n = t.inserted - (waiting ? t.dispatched : t.done);
		return max(n, 0LL);
	}
	for (i = 0; i < c->hctx->nr_queues; i++) {
		const struct flow_queue *fq =
			&f->fq[c->hctx->queue[i]->queue.index];

		n += READ_ONCE(fq->inserted);
		n -= waiting ? READ_ONCE(fq->dispatched) :
			       (u64)atomic64_read(&fq->done);
	}
	/* The counters are not read at one moment. */
	return max(n, 0LL);
}

/* Requests of this map that can be in the device, at most. */
static u32 most_out(const struct claim *c)
{
	const struct sched *s = &c->hctx->device->sched;
	u32 tags = compat_hw_depth(c->hctx->hctx), slots = READ_ONCE(s->params.depth);

	/* Not every scheduler has slots. */
	return slots ? min(tags, slots) : tags;
}

/* How many of the flow may wait while so many tags are free. */
static u64 most_waiting(const struct claim *c, u32 free)
{
	const struct sched *s = &c->hctx->device->sched;
	u64 more = free * flow_share(c->flow) * READ_ONCE(s->share.nr_active);

	return max_t(u64, free + (more >> SHARE_SHIFT), 1);
}

static u64 most_held(const struct claim *c)
{
	return max_t(u64, (flow_share(c->flow) * c->depth) >> SHARE_SHIFT, 1);
}

/* How many tags the flow may take now. */
static u64 tags_left(const struct claim *c)
{
	u32 used = atomic_read(&c->hctx->map->used);
	bool room = most_out(c) <= c->depth / 2;
	u64 most, n;

	if (used < c->depth / 2)
		return c->depth / 2 - used;
	n = requests_of(c, room);
	most = room ? most_waiting(c, c->depth - min(used, c->depth)) :
		      most_held(c);
	return n < most ? most - n : 0;
}

/* One of those who wait for this map; a flow's waiters are of all its maps. */
static int wake_waiter(struct wait_queue_entry *entry, unsigned int mode,
		       int flags, void *map)
{
	if (container_of(entry, struct tag_waiter, entry)->map != map)
		return 0;
	return autoremove_wake_function(entry, mode, flags, map);
}

static u64 wait_for_tags(const struct claim *c)
{
	wait_queue_head_t *wait = flow_tag_wait(c->flow);
	struct tag_waiter waiter = { .map = c->hctx->map };
	u64 left;

	init_wait(&waiter.entry);
	waiter.entry.func = wake_waiter;
	for (;;) {
		prepare_to_wait_exclusive(wait, &waiter.entry,
					  TASK_UNINTERRUPTIBLE);
		/* Pairs with limit_changed(): announce, then look. */
		left = tags_left(c);
		if (left)
			break;
		io_schedule();
	}
	finish_wait(wait, &waiter.entry);
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
	/* Full order: see limit_changed(). */
	atomic_dec_return(&h->map->used);
	limit_changed(h, f);
}

void limit_wake(struct hctx_host *h, struct flow *f)
{
	struct claim c = {
		.hctx = h,
		.flow = f,
		.depth = compat_sched_depth(h->hctx),
	};

	if (tags_left(&c))
		__wake_up(flow_tag_wait(f), TASK_NORMAL, 1, h->map);
}

void limit_depth_updated(struct device_host *d)
{
	unsigned int least = UINT_MAX;
	u32 i;

	for (i = 0; i < d->nr_hctx; i++)
		least = min(least, compat_sched_depth(d->hctx[i]->hctx));
	compat_set_min_shallow_depth(d->q, max(least / 2, 1U));
}
