// SPDX-License-Identifier: GPL-2.0
/*
 * limit - bounds the scheduler tags that one flow occupies
 *
 * The block layer takes a scheduler tag before the scheduler sees the request.
 * Tasks sleep for tags in order of arrival.  A flow could fill the tag map with
 * requests that the scheduler delays.  The other flows would then wait above
 * the scheduler, where no weight is known.
 *
 * The rule, the loans and the demands are in sched/core/limit.h.
 *
 * Depths.  The block layer's own means, a shallow depth, gives a flow no number
 * of tags.  A depth is a range of low tag numbers, and it is fixed while the
 * task sleeps.  Depths serve only the tasks that may not sleep (REQ_NOWAIT).
 * A task may wait here because the block layer would wait for a tag a few lines
 * later.  The context is the same, the task holds only q_usage_counter, and
 * io_schedule() flushes the plug.
 *
 * There is no bio yet, so `current` alone tells the flow.  Kernel threads that
 * work for cgroups have half of a map: see sched/core/limit.h.
 *
 * Urgent requests (metadata, swap) take a tag at once if they may pass in the
 * scheduler, and those of the root always do.  The scheduler orders any other
 * urgent request, maybe as one of the root's (sched/core/urgent.h).  Then the
 * quota of the flow that pays holds.  Otherwise such requests of one flow would
 * occupy all tags while they wait.
 *
 * Swap.  A task that needs memory writes pages to swap until enough pages are free.
 * A page is free when its write has finished.  Beside a heavy neighbour writes are
 * slow, and the task would write most pages of its cgroup in that time.  An access to
 * shared memory waits for the write of its page, and then reads the page again.  So
 * a cgroup with a smaller share than the root writes with one request at a time.
 *
 *	24 MiB of memory, an array of 40 MiB, weight 50 beside 1000, 800 accesses:
 *	419 pages were read and 2454 written, and one access took 9.0 s.  With one
 *	request at a time 346 pages are written, and an access takes 0.13 s at most.
 *
 * The kernel's thread for reclaim does not wait, because it works for all cgroups.
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
 * Claims.  The quota of a flow may have room while no tag is free.  The block
 * layer would let the tasks of all flows wait in one line then.  A thousand tasks
 * that find room for one more would pass their quota, and would stand before the
 * tasks of lighter flows.  So a task with a claim waits here for a free tag, in
 * order of arrival, and its flow's quota counts it.  A request that finishes
 * frees a tag and wakes one of these tasks.  Another task may take the tag
 * meanwhile, if its quota has room, and the woken task waits again.  A woken task
 * may also migrate and take a tag of another map.  Then limit_tick() wakes the
 * next.
 *
 * A waiter itself looks again after PATIENCE.  It has then lost a wake-up if it
 * finds room, and tag_timeouts in sched/state counts that.
 *
 * Tested by tests/vm/test_tags.py, tests/vm/test_shares.py,
 * tests/vm/test_wide.py.
 */
#include "limit.h"

#include "weights.h"

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

/* Tags of the map that the flow's requests occupy, or that its tasks claim. */
static u64 tags_occupied(const struct claim *c)
{
	s64 sum = atomic64_read(limit_claims(c->hctx, c->flow));
	const struct flow_queue *fq;

	if (!c->hctx->map->wide) {
		fq = c->flow->fq[c->hctx->queue[0]->queue.index];
		sum += READ_ONCE(fq->inserted) - (u64)atomic64_read(&fq->done);
	}
	/* The counters are read one after the other, so the sum may be negative. */
	return max(sum, 0LL);
}

/* How many tags the flow may take now.  Sets c->occupied. */
static u64 tags_left(struct claim *c)
{
	u32 used = min_t(u32, atomic_read(&c->hctx->map->used), c->depth);

	c->occupied = tags_occupied(c);
	return limit_left(&c->hctx->device->limit, c->flow, c->depth, used,
			  c->occupied);
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
static void count_waiters(struct device_host *d, struct flow *f, int change)
{
	struct flow_tags *t = flow_tags(f);

	spin_lock(&d->waiting_lock);
	if (!f->limit.waiters)
		list_add_tail(&t->waiting, &d->waiting);
	WRITE_ONCE(f->limit.waiters, f->limit.waiters + change);
	if (!f->limit.waiters)
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

	count_waiters(d, c->flow, 1);
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
	count_waiters(d, c->flow, -1);
	if (unlikely(timeout))
		atomic64_inc(&d->tag_timeouts);
	return left;
}

static bool has_free_tag(const struct claim *c)
{
	return atomic_read(&c->hctx->map->used) < (int)c->depth;
}

/*
 * Sleeps until a tag is free.  ___wait_event() announces the task before it
 * looks, and io_schedule_timeout() submits the requests that it has collected.
 * Pairs with limit_finished().
 */
static void wait_for_free_tag(const struct claim *c)
{
	bool timeout = false;

	atomic64_inc(limit_claims(c->hctx, c->flow));
	___wait_event(c->hctx->map->free_wait, has_free_tag(c),
		      TASK_UNINTERRUPTIBLE, 1, 0,
		      timeout = !io_schedule_timeout(PATIENCE));
	atomic64_dec(limit_claims(c->hctx, c->flow));
	if (unlikely(timeout))
		atomic64_inc(&c->hctx->device->tag_timeouts);
}

/* One exclusive waiter.  It stays out of the list until it looks again. */
void limit_wake_claim(struct tag_map *map)
{
	wake_up(&map->free_wait);
}

static void limit_flow(struct claim *c, struct blk_mq_alloc_data *data)
{
	u64 left = tags_left(c);

	limit_want(c->flow, left < data->nr_tags ? LIMIT_ALL :
						   c->occupied + data->nr_tags);
	if (!left && (data->flags & BLK_MQ_REQ_NOWAIT)) {
		data->shallow_depth =
			compat_shallow_depth(c->hctx->hctx,
					     limit_half(c->depth));
		return;
	}
	if (!left)
		left = wait_for_tags(c);
	/* A plug takes a batch of tags at once. */
	if (data->nr_tags > left)
		data->nr_tags = left;
	if (!has_free_tag(c) && !(data->flags & BLK_MQ_REQ_NOWAIT))
		wait_for_free_tag(c);
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

/* Metadata and swap: they may pass in the scheduler. */
static bool is_urgent(blk_opf_t opf)
{
	return opf & (REQ_META | REQ_SWAP);
}

/* The flow that pays for a request of @f; NULL if its quota does not matter. */
static struct flow *limited_flow(struct flow *f, blk_opf_t opf)
{
	if (!is_urgent(opf))
		return f;
	if (!f->group.parent || urgent_may_pass(f, ktime_get_ns()))
		return NULL;
	return urgent_payer(f);
}

static bool foreign_room(const struct claim *c, u32 tags)
{
	return limit_foreign_left(c->depth,
				  atomic_read(&c->hctx->map->foreign.held),
				  tags);
}

/*
 * A kernel thread waits while its kind holds half of the map.  io_wait_event()
 * announces the task before it looks, and lets it submit the requests that it
 * has collected.  Pairs with limit_kind_finished().
 */
static void limit_foreign(const struct claim *c, struct blk_mq_alloc_data *data)
{
	if (likely(foreign_room(c, data->nr_tags)))
		return;
	data->nr_tags = 1;
	if (data->flags & BLK_MQ_REQ_NOWAIT)
		data->shallow_depth =
			compat_shallow_depth(c->hctx->hctx,
					     limit_half(c->depth));
	else
		io_wait_event(c->hctx->map->foreign.wait, foreign_room(c, 1));
}

/* Takes a reference on the running task's cgroup on the device of @q; or NULL. */
static struct blkcg_gq *current_blkg(struct request_queue *q)
{
	struct blkcg_gq *blkg;

	rcu_read_lock();
	blkg = blkg_lookup(compat_current_blkcg(), q);
	if (!blkg_tryget(blkg))
		blkg = NULL;
	rcu_read_unlock();
	return blkg;
}

/*
 * A task that writes pages of @f to swap waits for the last of these writes.  The
 * wait submits the requests that the task has collected, as wait_for_free_tag()
 * does.  A task that comes between a wake-up and the woken task may go first, and
 * the woken one waits again.  Pairs with limit_kind_finished().
 */
static void limit_swap(struct device_host *d, struct flow *f)
{
	struct tag_kind *swap = &flow_tags(f)->swap;
	bool timeout = false;

	if (!f->group.parent || urgent_payer(f) == f)
		return;
	___wait_event(swap->wait, !atomic_read(&swap->held),
		      TASK_UNINTERRUPTIBLE, 1, 0,
		      timeout = !io_schedule_timeout(PATIENCE));
	if (unlikely(timeout))
		atomic64_inc(&d->tag_timeouts);
}

/* The kind of a swap write of the running task; takes a reference on its cgroup. */
static struct tag_kind *swap_kind(struct request *rq)
{
	struct blkcg_gq *blkg = current_blkg(rq->q);
	struct flow *f = blkg ? group_flow(blkg) : NULL;

	if (f && f->group.parent)
		return &flow_tags(f)->swap;
	if (blkg)
		blkg_put(blkg);
	return NULL;
}

static void swap_kind_put(struct tag_kind *swap)
{
	struct group_host *g = container_of(swap, struct group_host, tags.swap);

	blkg_put(g->pd.blkg);
}

/*
 * A task may collect requests before it submits them, so they are counted when
 * they have their tags.
 */
void limit_kind_prepared(struct request *rq)
{
	struct hctx_host *h = rq->mq_hctx->sched_data;
	struct tag_kind *kind = NULL;

	if (!is_urgent(rq->cmd_flags))
		kind = &h->map->foreign;
	else if (!(current->flags & PF_KTHREAD))
		kind = swap_kind(rq);
	if (!kind)
		return;
	atomic_inc(&kind->held);
	rq->elv.priv[1] = kind;
}

/*
 * wake_up() wakes all kernel threads, because one that writes for the root, or
 * fails, would wake no other.  Tasks that write to swap wait exclusively, so it
 * wakes one of them.
 */
void limit_kind_finished(struct request *rq)
{
	struct tag_kind *kind = rq->elv.priv[1];

	rq->elv.priv[1] = NULL;
	atomic_dec_return(&kind->held);
	/*
	 * The decrement is fully ordered before this look for waiters.  Pairs
	 * with limit_foreign() and limit_swap().
	 */
	if (waitqueue_active(&kind->wait))
		wake_up(&kind->wait);
	if (limit_is_swap_write(rq->cmd_flags))
		swap_kind_put(kind);
}

void limit_admit_slow(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct blkcg_gq *blkg;
	struct claim c;
	bool swaps;

	c.hctx = hctx_asked(opf, data)->sched_data;
	if (c.hctx->exempt)
		return;
	c.depth = compat_sched_depth(c.hctx->hctx);
	if (unlikely(current->flags & PF_KTHREAD) && !is_urgent(opf))
		limit_foreign(&c, data);
	swaps = limit_is_swap_write(opf) && !(current->flags & PF_KTHREAD) &&
		!(data->flags & BLK_MQ_REQ_NOWAIT);
	/* The first half is free for all, so the flow need not be looked up. */
	if (!swaps &&
	    atomic_read(&c.hctx->map->used) + data->nr_tags <= c.depth / 2)
		return;

	blkg = current_blkg(data->q);
	if (!blkg)
		return;
	c.flow = group_flow(blkg);
	if (c.flow && swaps) {
		limit_swap(c.hctx->device, c.flow);
		data->nr_tags = 1;
	}
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

/* ---------------------------------------------------------------- tick work */

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

/* Wakes a task for each map that has a free tag. */
static void look_at_claims(struct device_host *d)
{
	u32 i;

	for (i = 0; i < d->nr_hctx; i++) {
		struct hctx_host *h = d->hctx[i];

		/* A task that comes later looks at `used` itself. */
		if (waitqueue_active(&h->map->free_wait) &&
		    atomic_read(&h->map->used) <
			    (int)compat_sched_depth(h->hctx))
			limit_wake_claim(h->map);
	}
}

static bool has_claims(const struct device_host *d)
{
	u32 i;

	for (i = 0; i < d->nr_hctx; i++)
		/* A task that comes later is woken by a completion. */
		if (waitqueue_active(&d->hctx[i]->map->free_wait))
			return true;
	return false;
}

bool limit_awaits_tick(struct device_host *d)
{
	return !list_empty_careful(&d->waiting) || has_claims(d);
}

void limit_setup(struct device_host *d)
{
	spin_lock_init(&d->waiting_lock);
	INIT_LIST_HEAD(&d->waiting);
}

void limit_tick(struct device_host *d, u64 now)
{
	if (limit_level_tick(&d->limit, &d->sched, now)) {
		look_at_waiters(d);
		look_at_claims(d);
	}
}

void limit_resized(struct device_host *d)
{
	unsigned int least = UINT_MAX;
	u32 i;

	for (i = 0; i < d->nr_hctx; i++)
		least = min(least, compat_sched_depth(d->hctx[i]->hctx));
	WRITE_ONCE(d->limit.depth, max(least, 1U));
	compat_set_min_shallow_depth(d->q, max(least / 2, 1U));
}
