// SPDX-License-Identifier: GPL-2.0
/*
 * limit - bounds the scheduler tags that one flow occupies
 *
 * The block layer takes a scheduler tag before the scheduler sees the request.
 * Tasks sleep for tags in order of arrival.  A flow could fill the tag map with
 * requests that the scheduler delays.  The other flows would then wait above
 * the scheduler, where no weight is known.
 *
 * The rule.  Half of the tags are first come, first served.  A flow may use
 * tags of the other half up to its *quota*, which is its share of the whole
 * map.  So every flow can have as many requests waiting as its share of the
 * device needs.  A map of twice D tags keeps the device busy even if some flows
 * are idle.
 *
 * Loans.  The tags that a flow leaves of its quota are lent to the flows that
 * want more.  Each of these is filled up to the same multiple of its share, the
 * *water level* (max-min fairness by water-filling).
 *
 *	ifq, D = 8, 32 tags, shares of 91 : 6 : 3.  The first flow wants one
 *	request at a time.  Its 29 tags do not wait for it: one is its own, 2
 *	stay free for the next arrival, and 29 are filled to the level of 10.
 *	The other two flows get 19 and 10 tags.  By shares alone they would get
 *	one each, and the second could not have its two thirds of the device.
 *
 * A tag is lent while more than a sixteenth of the map is free, so that a flow
 * below its quota finds a free tag.  A loan is not renewed after the level has
 * fallen.  When all flows want more the level is 1, and each flow occupies its
 * quota.  With no more than two tags per slot a flow needs its whole quota,
 * because requests that complete together are dispatched together.  A flow that
 * is alone is not limited.
 *
 * Many flows.  Half of the map and all quotas together exceed the map.  When
 * flows are many, the last tags are reserved for flows that have none.  Without
 * a tag a flow cannot claim its share.  A scheduler that waits for such a flow
 * stands still while the flows that it delays have all tags.
 *
 *	128 tags, 64 flows of depth 4: 64 tags go to the first 16 flows, 2 to
 *	each of the next 32, and the last 16 flows would have none.
 *
 * Demand.  The demand of a flow is the largest number of tags that it occupied
 * and asked for, in this interval or in the last one.  It is unlimited if the
 * flow was refused a tag.  limit_tick() computes the level from the demands.
 *
 * Depths.  The block layer's own means, a shallow depth, gives a flow no number
 * of tags.  A depth is a range of low tag numbers, and it is fixed while the
 * task sleeps.  Depths serve only the tasks that may not sleep (REQ_NOWAIT).
 * A task may wait here because the block layer would wait for a tag a few lines
 * later.  The context is the same, the task holds only q_usage_counter, and
 * io_schedule() flushes the plug.
 *
 * There is no bio yet, so `current` alone tells the flow.
 *
 * Urgent requests (metadata, swap) take a tag at once if they may pass in the
 * scheduler, and those of the root always do.  The scheduler orders any other
 * urgent request, maybe as one of the root's (sched/core/urgent.h).  Then the
 * quota of the flow that pays holds.  Otherwise such requests of one flow would
 * occupy all tags while they wait.
 *
 * Wake-ups.  A request that finishes makes room and wakes one waiter of its
 * flow.  A request that a former waiter inserts wakes the next waiter if there
 * is room left.  Both consider waiters for any tag map, because a woken task
 * may migrate and insert elsewhere:
 *
 *	A waiter's flow had a request in the waiter's map.  The task that was
 *	woken when this request ended may have slept for the tag itself, may
 *	have migrated, and may have inserted into another map.
 *
 * A task may ask in its own name and insert for another cgroup, as an fsync of
 * pages that another cgroup owns does.  Such a task wakes no waiter here.  So
 * limit_tick() looks at each flow with waiters once per interval.  It comes while
 * any task waits: see limit_awaits_tick().
 *
 * A waiter itself looks again after PATIENCE.  It has then lost a wake-up if it
 * finds room, and tag_timeouts in sched/state counts that.
 *
 * Source of the rule: Bertsekas, Gallager, Data Networks, 1992, section 6.5.2.
 * Tested by tests/vm/test_tags.py, tests/vm/test_shares.py,
 * tests/vm/test_wide.py.
 */
#include "limit.h"

#include "weights.h"

enum {
	LEVEL_SHIFT	= 8,	/* fraction bits of the water level */
	LEVEL_ONE	= 1 << LEVEL_SHIFT,
	/* At this level the least share is the whole map. */
	LEVEL_MAX	= LEVEL_ONE << SHARE_MIN_SHIFT,
	/* The level rises with each pass; fewer passes lend less. */
	LEVEL_PASSES	= 8,
	INTERVAL_NS	= FLOW_GRACE_NS,
	RESERVE_SHIFT	= 4,	/* part of the map that is never lent */
	MANY_SHIFT	= 3,	/* flows are many from this part of the map on */
	LAST_SHIFT	= 2,	/* most of the map for flows without a tag */
};

#define TAGS_ALL	U32_MAX
#define PATIENCE	(30 * HZ)	/* jiffies */

/* The wish of a task for tags. */
struct claim {
	struct hctx_host *hctx;
	struct flow *flow;
	u32 depth;		/* tags of the map */
	u64 occupied;		/* tags of the flow, at the last look */
};

struct tag_waiter {
	struct wait_queue_entry entry;
	const struct claim *claim;
};

/* The reason of a wake-up: a flow may take @left tags of @map. */
struct tag_news {
	const struct tag_map *map;
	u64 left;
	bool looked;		/* a waiter for another map was looked at */
};

/* Tags of the map that the flow's requests occupy. */
static u64 tags_occupied(const struct claim *c)
{
	const struct flow *f = c->flow;
	struct flow_totals t;
	s64 sum = 0;
	u32 i;

	if (c->hctx->requests_shared) {
		flow_totals(f, &t);
		sum = t.inserted - t.done;
		return max(sum, 0LL);
	}
	for (i = 0; i < c->hctx->nr_queues; i++) {
		const struct flow_queue *fq =
			f->fq[c->hctx->queue[i]->queue.index];

		sum += READ_ONCE(fq->inserted) - (u64)atomic64_read(&fq->done);
	}
	/* The counters are read one after the other, so the sum may be negative. */
	return max(sum, 0LL);
}

/* The part of a map that a flow fills at @level, in units of a share. */
static u64 part_at(u64 share, u32 level)
{
	return min(share * level >> LEVEL_SHIFT, 1ULL << SHARE_SHIFT);
}

/* @tags of @depth tags, in units of a share. */
static u64 part_of(u32 tags, u32 depth)
{
	return div_u64((u64)min(tags, depth) << SHARE_SHIFT, depth);
}

static u64 quota(u64 part, u32 depth)
{
	return max_t(u64, (part * depth) >> SHARE_SHIFT, 1);
}

/* Tags that are never lent. */
static u32 reserve(u32 depth)
{
	return max(depth >> RESERVE_SHIFT, 1U);
}

/* Tags that are reserved for flows without a tag: one for each flow. */
static u32 last_tags(const struct claim *c)
{
	u32 flows = READ_ONCE(c->hctx->device->sched.share.nr_active);

	return flows < c->depth >> MANY_SHIFT ?
		       0 :
		       min(flows, c->depth >> LAST_SHIFT);
}

/* How many tags the flow may take now.  Sets c->occupied. */
static u64 tags_left(struct claim *c)
{
	u32 used = min_t(u32, atomic_read(&c->hctx->map->used), c->depth);
	u32 free = c->depth - used, level;
	u64 share = flow_share(c->flow);
	u64 most = quota(share, c->depth), lent;

	c->occupied = tags_occupied(c);
	if (used < c->depth / 2)
		return c->depth / 2 - used;
	if (c->occupied && free < last_tags(c))
		return 0;
	if (free > reserve(c->depth)) {
		level = READ_ONCE(c->hctx->device->tag_level);
		lent = quota(part_at(share, level), c->depth);
		most = max(most,
			   min(lent, c->occupied + free - reserve(c->depth)));
	}
	return c->occupied < most ? most - c->occupied : 0;
}

/* Whether the flow of a waiter may take a tag of the waiter's map. */
static bool has_room(const struct claim *claim, struct tag_news *news)
{
	struct claim c;

	if (claim->hctx->map == news->map)
		return news->left;
	if (news->looked)
		return false;
	news->looked = true;
	/* tags_left() writes to the claim, and the waiter may do so just now. */
	c = *claim;
	return tags_left(&c);
}

/*
 * Wakes a waiter if there is room for it.  The waiters of a flow stand in one
 * list for all tag maps, in order of arrival.  Of the waiters for other maps
 * only the first is looked at: a waiter that is passed over becomes the first
 * in the end.
 */
static int wake_waiter(struct wait_queue_entry *entry, unsigned int mode,
		       int flags, void *key)
{
	struct tag_waiter *w = container_of(entry, struct tag_waiter, entry);
	struct tag_news *news = key;

	if (has_room(w->claim, news))
		return autoremove_wake_function(entry, mode, flags, key);
	/* A return value below 0 ends the walk over the list. */
	return news->looked && !news->left ? -1 : 0;
}

/* Lists the flow for limit_tick() while @change of its waiters are there. */
static void count_waiters(struct device_host *d, struct flow_tags *t,
			  int change)
{
	spin_lock(&d->waiting_lock);
	if (!t->waiters)
		list_add_tail(&t->waiting, &d->waiting);
	t->waiters += change;
	if (!t->waiters)
		list_del(&t->waiting);
	spin_unlock(&d->waiting_lock);
}

/* Sleeps until the flow may take a tag; returns how many it may take. */
static u64 wait_for_tags(struct claim *c)
{
	struct device_host *d = c->hctx->device;
	struct flow_tags *t = flow_tags(c->flow);
	struct tag_waiter waiter = { .claim = c };
	bool timeout = false;
	u64 left;

	count_waiters(d, t, 1);
	init_wait(&waiter.entry);
	waiter.entry.func = wake_waiter;
	for (;;) {
		prepare_to_wait_exclusive(&t->wait, &waiter.entry,
					  TASK_UNINTERRUPTIBLE);
		/*
		 * Announce first, then look again: prepare_to_wait_exclusive()
		 * is fully ordered.  Pairs with limit_finished().
		 */
		left = tags_left(c);
		if (left)
			break;
		timeout = !io_schedule_timeout(PATIENCE);
	}
	finish_wait(&t->wait, &waiter.entry);
	count_waiters(d, t, -1);
	if (unlikely(timeout))
		atomic64_inc(&d->tag_timeouts);
	return left;
}

/* Raises the demand of the flow in this interval. */
static void flow_wants(struct flow *f, u32 tags)
{
	struct flow_tags *t = flow_tags(f);

	if (READ_ONCE(t->wants) < tags)
		WRITE_ONCE(t->wants, tags);
}

static void limit_flow(struct claim *c, struct blk_mq_alloc_data *data)
{
	u64 left = tags_left(c);

	flow_wants(c->flow, left < data->nr_tags ? TAGS_ALL :
						   c->occupied + data->nr_tags);
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

/*
 * The hardware queue of the request to come.  The block layer has chosen it
 * already from 6.10 on, and in stable kernels before.
 */
static struct blk_mq_hw_ctx *hctx_asked(blk_opf_t opf,
					const struct blk_mq_alloc_data *data)
{
	return data->hctx ?: blk_mq_map_queue(opf, blk_mq_get_ctx(data->q));
}

/* The flow that pays for a request of @f; NULL if its quota does not matter. */
static struct flow *limited_flow(struct flow *f, blk_opf_t opf)
{
	if (!(opf & (REQ_META | REQ_SWAP)))
		return f;
	if (!f->group.parent || urgent_may_pass(f, ktime_get_ns()))
		return NULL;
	return urgent_payer(f);
}

void limit_admit_slow(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct blkcg_gq *blkg;
	struct claim c;

	c.hctx = hctx_asked(opf, data)->sched_data;
	if (c.hctx->exempt)
		return;
	c.depth = compat_sched_depth(c.hctx->hctx);
	/* The first half is free for all, so the flow need not be looked up. */
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
		c.flow = limited_flow(c.flow, opf);
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

/* --------------------------------------------------------- the water level */

/* Takes the demands of the interval that ends, and begins a new one. */
static void interval_ends(struct device_host *d)
{
	struct flow *f;

	port_assert_held(&d->sched.active_lock);
	for (f = d->sched.active; f; f = f->next_active) {
		struct flow_tags *t = flow_tags(f);
		u32 wants = READ_ONCE(t->wants);

		/* A snapshot: a waiter that comes now counts in the next interval. */
		t->counted = waitqueue_active(&t->wait) ? TAGS_ALL :
							  max(wants, t->wanted);
		t->wanted = wants;
		WRITE_ONCE(t->wants, 0);
	}
}

/*
 * One pass of water-filling.  A flow that wants less than its part at @level
 * gets its demand.  The other flows share the rest, and the result is the level
 * of that.  From the second pass on the level does not fall.
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

/* Wakes a waiter of each flow for which there is room. */
static void look_at_waiters(struct device_host *d)
{
	struct flow_tags *t;

	spin_lock(&d->waiting_lock);
	list_for_each_entry(t, &d->waiting, waiting) {
		/* No map is named, so the first waiter's own map counts. */
		struct tag_news news = { .map = NULL };

		__wake_up(&t->wait, TASK_NORMAL, 1, &news);
	}
	spin_unlock(&d->waiting_lock);
}

bool limit_awaits_tick(struct device_host *d)
{
	return !list_empty_careful(&d->waiting);
}

void limit_setup(struct device_host *d)
{
	spin_lock_init(&d->waiting_lock);
	INIT_LIST_HEAD(&d->waiting);
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
	look_at_waiters(d);
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
