// SPDX-License-Identifier: GPL-2.0
/*
 * limit - no flow holds so many scheduler tags that another goes without
 *
 * Tags are taken before the scheduler sees a request, and submitters sleep for
 * them in order of arrival.  A flow that fills the map with requests that we
 * hold back blocks the others above us, where no weight is known.
 *
 * The rule.  Half of the map is for whoever comes.  Beyond it a flow may always
 * hold its share of the map.  So every flow can have waiting what its share of
 * the device needs, and a map of twice D tags keeps the device busy whoever is
 * idle.  What a flow leaves of its share is lent to those who want more, by
 * their shares: all are filled to the same *level*, a multiple of the share, as
 * water fills vessels (max-min fairness).
 *
 *	ifq, D = 8, 32 tags, shares of 91 : 6 : 3, of which the first asks for
 *	one request at a time.  Its 29 tags do not wait for it: 2 are kept free
 *	for who comes next, one is its own, and 29 are filled to the level of
 *	10: 19 and 10, where shares alone would be one each, and the second
 *	could not have its two thirds of the device.
 *
 * A loan is given while more than a sixteenth of the map is free, so that who
 * has a right to a tag finds one, and is not renewed when the level has fallen.
 * When all want more the level is 1, and what a flow holds is its share: with
 * no more than two tags for each slot it needs them all, for what the device
 * ends together is dispatched together.  A flow alone is not limited.
 *
 * The half and the shares together are more than the map.  When flows are many
 * the last tags are for those who have none: without one nobody asks for what
 * is due to it, and a scheduler that waits for that stands still, while those
 * whom it holds back have all tags.
 *
 *	128 tags, 64 flows of depth 4: 64 tags go to the first 16, 2 to each of
 *	the next 32, and the last 16 would have nothing.
 *
 * What a flow wants is the most that it held and asked for in this interval or
 * in the last one; everything, if it was refused.  tick reckons the level.
 *
 * The core's own means, a depth, gives no flow a number of tags: it is a
 * number of low tags, fixed while the task sleeps.  It is used for those alone
 * who may not sleep (REQ_NOWAIT).  Waiting here is waiting where the core
 * waits for a tag a few lines later: same context, nothing held but the
 * queue's usage counter, and the plug is flushed by io_schedule().
 *
 * The caller is known by `current` alone, for there is no bio yet.
 *
 * Who wakes: a request of the flow that ends makes room; one that is inserted,
 * of somebody who was woken, passes on what room there is still.  Either may
 * wake who waits for another map: a waiter's flow had a request in that one,
 * but whoever was woken when it ended may have slept for the tag itself, been
 * moved, and inserted elsewhere.
 *
 * Only who asks in its own name and inserts for another cgroup (an fsync of
 * pages that another one owns) wakes nobody here.  For the sake of those who
 * wait behind it nobody sleeps longer than PATIENCE without a look.
 *
 * Source of the rule: Bertsekas, Gallager, Data Networks, 1992, section 6.5.2.
 * Tested by tests/vm/test_tags.py, tests/vm/test_shares.py,
 * tests/vm/test_wide.py.
 */
#include "limit.h"

#include "weights.h"

enum {
	LEVEL_SHIFT	= 8,
	LEVEL_ONE	= 1 << LEVEL_SHIFT,
	/* At which the least share is everything. */
	LEVEL_MAX	= LEVEL_ONE << SHARE_MIN_SHIFT,
	/* Stopping early lends less. */
	LEVEL_PASSES	= 8,
	INTERVAL_NS	= FLOW_GRACE_NS,
	RESERVE_SHIFT	= 4,
	MANY_SHIFT	= 3,	/* flows are many from this part of the map on */
	LAST_SHIFT	= 2,	/* most that is kept for those who have none */
};

#define TAGS_ALL	U32_MAX
#define PATIENCE	(HZ / 10)	/* jiffies */

struct claim {
	struct hctx_host *hctx;
	struct flow *flow;
	u32 depth;		/* of the map */
	u64 held;		/* tags of the flow, when last looked */
};

struct tag_waiter {
	struct wait_queue_entry entry;
	const struct claim *claim;
};

/* What wakes: the map in which something has changed, what is left of it. */
struct tag_news {
	const struct tag_map *map;
	u64 left;
	bool looked;		/* at who waits for another map */
};

/* Tags of the map that the flow's requests hold. */
static u64 tags_held(const struct claim *c)
{
	const struct flow *f = c->flow;
	struct flow_totals t;
	s64 held = 0;
	u32 i;

	if (c->hctx->requests_shared) {
		flow_totals(f, &t);
		held = t.inserted - t.done;
		return max(held, 0LL);
	}
	for (i = 0; i < c->hctx->nr_queues; i++) {
		const struct flow_queue *fq =
			&f->fq[c->hctx->queue[i]->queue.index];

		held += READ_ONCE(fq->inserted) - (u64)atomic64_read(&fq->done);
	}
	/* The counters are not read at one moment. */
	return max(held, 0LL);
}

/* A flow's part of a map that is filled to @level, in units of a share. */
static u64 part_at(u64 share, u32 level)
{
	return min(share * level >> LEVEL_SHIFT, 1ULL << SHARE_SHIFT);
}

static u64 part_of(u32 tags, u32 depth)
{
	return div_u64((u64)min(tags, depth) << SHARE_SHIFT, depth);
}

static u64 quota(u64 part, u32 depth)
{
	return max_t(u64, (part * depth) >> SHARE_SHIFT, 1);
}

static u32 reserve(u32 depth)
{
	return max(depth >> RESERVE_SHIFT, 1U);
}

/* Tags for those who have none: one each. */
static u32 last_tags(const struct claim *c)
{
	u32 flows = READ_ONCE(c->hctx->device->sched.share.nr_active);

	return flows < c->depth >> MANY_SHIFT ?
		       0 :
		       min(flows, c->depth >> LAST_SHIFT);
}

/* How many tags the flow may take now. */
static u64 tags_left(struct claim *c)
{
	u32 used = min_t(u32, atomic_read(&c->hctx->map->used), c->depth);
	u32 free = c->depth - used, level;
	u64 share = flow_share(c->flow);
	u64 most = quota(share, c->depth), lent;

	c->held = tags_held(c);
	if (used < c->depth / 2)
		return c->depth / 2 - used;
	if (c->held && free < last_tags(c))
		return 0;
	if (free > reserve(c->depth)) {
		level = READ_ONCE(c->hctx->device->tag_level);
		lent = quota(part_at(share, level), c->depth);
		most = max(most, min(lent, c->held + free - reserve(c->depth)));
	}
	return c->held < most ? most - c->held : 0;
}

static bool has_room(const struct claim *claim, struct tag_news *news)
{
	struct claim c;

	if (claim->hctx->map == news->map)
		return news->left;
	if (news->looked)
		return false;
	news->looked = true;
	/* A copy: the waiter may be looking itself. */
	c = *claim;
	return tags_left(&c);
}

/*
 * A flow's waiters are of all its maps, in order of arrival.  Of those of other
 * maps the first is looked at: who was left behind comes to be the first.
 */
static int wake_waiter(struct wait_queue_entry *entry, unsigned int mode,
		       int flags, void *key)
{
	struct tag_waiter *w = container_of(entry, struct tag_waiter, entry);
	struct tag_news *news = key;

	if (has_room(w->claim, news))
		return autoremove_wake_function(entry, mode, flags, key);
	/* Less than 0 ends the walk. */
	return news->looked && !news->left ? -1 : 0;
}

static u64 wait_for_tags(struct claim *c)
{
	wait_queue_head_t *wait = &flow_tags(c->flow)->wait;
	struct tag_waiter waiter = { .claim = c };
	u64 left;

	init_wait(&waiter.entry);
	waiter.entry.func = wake_waiter;
	for (;;) {
		prepare_to_wait_exclusive(wait, &waiter.entry,
					  TASK_UNINTERRUPTIBLE);
		/* Pairs with limit_finished(): announce, then look. */
		left = tags_left(c);
		if (left)
			break;
		io_schedule_timeout(PATIENCE);
	}
	finish_wait(wait, &waiter.entry);
	return left;
}

static void flow_wants(struct flow *f, u32 tags)
{
	struct flow_tags *t = flow_tags(f);

	if (READ_ONCE(t->wants) < tags)
		WRITE_ONCE(t->wants, tags);
}

static void limit_flow(struct claim *c, struct blk_mq_alloc_data *data)
{
	u64 left = tags_left(c);

	flow_wants(c->flow,
		   left < data->nr_tags ? TAGS_ALL : c->held + data->nr_tags);
	if (!left && (data->flags & BLK_MQ_REQ_NOWAIT)) {
		data->shallow_depth =
			compat_shallow_depth(c->hctx->hctx,
					     max(c->depth / 2, 1U));
		return;
	}
	if (!left)
		left = wait_for_tags(c);
	/* A plug takes a batch of tags at once. */
	if (data->nr_tags > left)
		data->nr_tags = left;
}

/* From 6.10 on, and in stable kernels before, the core has chosen already. */
static struct blk_mq_hw_ctx *hctx_asked(blk_opf_t opf,
					const struct blk_mq_alloc_data *data)
{
	return data->hctx ?: blk_mq_map_queue(opf, blk_mq_get_ctx(data->q));
}

void limit_admit_slow(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct blkcg_gq *blkg;
	struct claim c;

	c.hctx = hctx_asked(opf, data)->sched_data;
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

void limit_wake(struct hctx_host *h, struct flow *f)
{
	struct claim c = {
		.hctx = h,
		.flow = f,
		.depth = compat_sched_depth(h->hctx),
	};
	struct tag_news news = { .map = h->map, .left = tags_left(&c) };

	if (news.left || h->device->nr_hctx > 1)
		__wake_up(&flow_tags(f)->wait, TASK_NORMAL, 1, &news);
}

/* ----------------------------------------------------------------- the level */

static void interval_ends(struct device_host *d)
{
	struct flow *f;

	port_assert_held(&d->sched.active_lock);
	for (f = d->sched.active; f; f = f->next_active) {
		struct flow_tags *t = flow_tags(f);
		u32 wants = READ_ONCE(t->wants);

		t->counted = waitqueue_active(&t->wait) ? TAGS_ALL :
							  max(wants, t->wanted);
		t->wanted = wants;
		WRITE_ONCE(t->wants, 0);
	}
}

/*
 * Who wants less than its part at @level gets that, the others share the rest.
 * What somebody leaves is theirs: from the second time on no less than @level.
 */
static u32 next_level(struct sched *s, u32 level, u32 depth)
{
	u64 rest = part_of(depth - reserve(depth), depth), shares = 0;
	struct flow *f;

	port_assert_held(&s->active_lock);
	for (f = s->active; f; f = f->next_active) {
		u64 share = flow_share(f);
		u64 wants = part_of(flow_tags(f)->counted, depth);

		if (wants < part_at(share, level))
			rest -= min(wants, rest);
		else
			shares += share;
	}
	if (!shares)
		return LEVEL_MAX;
	return min_t(u64, div64_u64(rest << LEVEL_SHIFT, shares), LEVEL_MAX);
}

void limit_tick(struct device_host *d, u64 now)
{
	u32 level = LEVEL_ONE, depth = READ_ONCE(d->tag_depth), next, pass;
	unsigned long flags;

	if (now < d->tag_next_ns)
		return;
	d->tag_next_ns = now + INTERVAL_NS;
	flags = port_lock(&d->sched.active_lock);
	interval_ends(d);
	for (pass = 0; pass < LEVEL_PASSES; pass++) {
		next = next_level(&d->sched, level, depth);
		if (next <= level)
			break;
		level = next;
	}
	port_unlock(&d->sched.active_lock, flags);
	WRITE_ONCE(d->tag_level, level);
}

void limit_resized(struct device_host *d)
{
	unsigned int least = UINT_MAX;
	u32 i;

	for (i = 0; i < d->nr_hctx; i++)
		least = min(least, compat_sched_depth(d->hctx[i]->hctx));
	WRITE_ONCE(d->tag_depth, max(least, 1U));
	compat_set_min_shallow_depth(d->q, max(least / 2, 1U));
}
