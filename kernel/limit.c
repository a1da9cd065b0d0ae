// SPDX-License-Identifier: GPL-2.0
/*
 * limit - decides which task gets the next scheduler tag
 *
 * The block layer takes a scheduler tag before the scheduler sees the request.
 * Tasks sleep for tags in order of arrival.  A flow could fill the tag map with
 * requests that the scheduler delays.  The other flows would then wait above
 * the scheduler, where no weight is known.
 *
 * The rule is in sched/core/limit.h.
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
 * urgent request, maybe as one of the root's (sched/core/urgent.h).  Its task
 * waits in the name of the flow that pays.  Otherwise such requests of one flow
 * would occupy all tags while they wait.
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
 * Wake-ups.  A request that finishes hands its tag to the waiter that goes next,
 * and wakes its task.  The tag counts as used until the task has run: tag_map.granted.
 * Before 6.10 the task may have migrated meanwhile, and take a tag of another map.
 * Then it hands the tag out again.  limit_tick() does the same for a task that
 * migrates later.
 *
 * A task that waits for a tag sleeps without a timeout, so the kernel reports one that
 * waits for two minutes as it does for any other.
 *
 * Tested by tests/vm/test_tags.py, tests/vm/test_shares.py,
 * tests/vm/test_wide.py, tests/vm/test_urgent.py.
 */
#include "limit.h"

#include "cgroup.h"

enum {
	/* A task that swaps looks so often.  Long against a write, short for a user. */
	SWAP_LOOK_MS = 100,
};

/* A task that waits for a tag. */
struct task_waiter {
	struct tag_waiter waiter;
	struct task_struct *task;
	struct list_head node;		/* tag_map.order.lock: in tag_map.tasks */
	bool granted;			/* written under tag_map.order.lock */
};

/* The tags of the map of @h that are in use, or on their way to a woken task. */
static u32 tags_taken(const struct hctx_host *h)
{
	return (u32)device_tags(h) + READ_ONCE(h->map->granted);
}

static struct tag_use use_of(const struct hctx_host *h)
{
	return (struct tag_use){
		.all = tags_taken(h),
		.foreign = (u32)atomic_read(&h->map->foreign.held),
	};
}

/* The task cannot leave wait_for_tag() before the lock is dropped. */
static void grant(struct tag_map *map, struct task_waiter *w)
{
	port_assert_held(&map->order.lock);
	map->granted++;
	list_del(&w->node);
	WRITE_ONCE(w->granted, true);
	wake_up_process(w->task);
}

/* Free tags of the map go to the tasks that wait.  @given_back: see limit_take(). */
void limit_hand_out(struct hctx_host *h, bool given_back)
{
	const struct sched *s = &h->device->sched;
	struct tag_map *map = h->map;
	unsigned long flags = port_lock(&map->order.lock);
	struct tag_waiter *w;

	while ((w = limit_take(s, &map->order, use_of(h), given_back)))
		grant(map, container_of(w, struct task_waiter, waiter));
	port_unlock(&map->order.lock, flags);
}

/* Sleeps until a tag is handed to the running task. */
static void wait_for_tag(struct hctx_host *h, struct flow *f)
{
	struct tag_map *map = h->map;
	struct task_waiter w = {
		.waiter = {
			.order = &map->order,
			.flow = f,
			.since_ns = ktime_get_ns(),
		},
		.task = current,
	};
	unsigned long flags = port_lock(&map->order.lock);

	list_add_tail(&w.node, &map->tasks);
	port_unlock(&map->order.lock, flags);
	/* Fully ordered before the look for a free tag.  Pairs with limit_returned(). */
	limit_wait(&w.waiter);
	limit_hand_out(h, false);
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (READ_ONCE(w.granted))
			break;
		io_schedule();
	}
	__set_current_state(TASK_RUNNING);
	/* From here on the block layer takes the tag. */
	flags = port_lock(&map->order.lock);
	limit_runs(&w.waiter);
	map->granted--;
	port_unlock(&map->order.lock, flags);
}

/* The running task asks for tags, and @f pays for the requests to come. */
static void limit_flow(struct hctx_host *h, struct flow *f, blk_opf_t opf,
		       struct blk_mq_alloc_data *data)
{
	struct hctx_host *now;

	if (limit_goes_first(&h->map->order, f, use_of(h), data->nr_tags))
		return;
	data->nr_tags = 1;
	while (!limit_goes_first(&h->map->order, f, use_of(h), 1)) {
		if (data->flags & BLK_MQ_REQ_NOWAIT) {
			data->shallow_depth =
				compat_shallow_depth(h->hctx, h->map->half);
			return;
		}
		if (!group_has_queue(f, h->map->order.line))
			return;
		wait_for_tag(h, f);
		now = limit_hctx(opf, data);
		if (now == h)
			return;
		limit_hand_out(h, true);
		h = now;
	}
}

/* Metadata and swap: they may pass in the scheduler. */
static bool is_urgent(blk_opf_t opf)
{
	return opf & (REQ_META | REQ_SWAP);
}

/* The flow that pays for a request of @f; NULL if it takes a tag at once. */
static struct flow *limited_flow(struct flow *f, blk_opf_t opf)
{
	if (!is_urgent(opf))
		return f;
	if (!f->group.parent || urgent_may_pass(f, ktime_get_ns()))
		return NULL;
	return urgent_payer(f);
}

static bool foreign_room(const struct hctx_host *h, u32 tags)
{
	return limit_foreign_left(compat_sched_depth(h->hctx),
				  (u32)atomic_read(&h->map->foreign.held),
				  tags);
}

/*
 * A kernel thread waits while its kind holds half of the map.  io_wait_event()
 * announces the task before it looks, and lets it submit the requests that it
 * has collected.  Pairs with limit_kind_finished().
 */
static void limit_foreign(struct hctx_host *h, struct blk_mq_alloc_data *data)
{
	if (likely(foreign_room(h, data->nr_tags)))
		return;
	data->nr_tags = 1;
	if (data->flags & BLK_MQ_REQ_NOWAIT)
		data->shallow_depth =
			compat_shallow_depth(h->hctx, h->map->half);
	else
		io_wait_event(h->map->foreign.wait, foreign_room(h, 1));
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
 * wait submits the requests that the task has collected, as wait_for_tag()
 * does.  A task that comes between a wake-up and the woken task may go first, and
 * the woken one waits again.  Pairs with limit_kind_finished().
 *
 * The write of a woken task counts for the cgroup that the task has by then.  If that is
 * another one, it wakes no task here.  So each task looks again after SWAP_LOOK_MS.
 */
static void limit_swap(struct flow *f)
{
	struct tag_kind *swap = &flow_tags(f)->swap;

	if (!f->group.parent || urgent_payer(f) == f)
		return;
	___wait_event(swap->wait, !atomic_read(&swap->held),
		      TASK_UNINTERRUPTIBLE, 1, 0,
		      io_schedule_timeout(msecs_to_jiffies(SWAP_LOOK_MS)));
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
 *
 * The kind, and not the flags, tells whether limit_kind_prepared() took a reference:
 * a plug may make several requests for its first bio, and each gets the flags of a
 * bio of its own later.
 */
void limit_kind_finished(struct request *rq)
{
	const struct hctx_host *h = rq->mq_hctx->sched_data;
	struct tag_kind *kind = rq->elv.priv[1];

	rq->elv.priv[1] = NULL;
	atomic_dec_return(&kind->held);
	/*
	 * The decrement is fully ordered before this look for waiters.  Pairs
	 * with limit_foreign() and limit_swap().
	 */
	if (waitqueue_active(&kind->wait))
		wake_up(&kind->wait);
	if (kind != &h->map->foreign)
		swap_kind_put(kind);
}

void limit_admit_slow(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct hctx_host *h = limit_hctx(opf, data);
	struct blkcg_gq *blkg;
	struct flow *f;
	bool swaps;

	/* A flow that is alone takes all tags. */
	if (h->exempt ||
	    (READ_ONCE(h->device->sched.share.nr_active) < 2 &&
	     tags_taken(h) + data->nr_tags <= compat_sched_depth(h->hctx)))
		return;
	if (unlikely(current->flags & PF_KTHREAD) && !is_urgent(opf))
		limit_foreign(h, data);
	swaps = limit_is_swap_write(opf) && !(current->flags & PF_KTHREAD) &&
		!(data->flags & BLK_MQ_REQ_NOWAIT);
	/* The first half is free for all, so the flow need not be looked up. */
	if (!swaps && tags_taken(h) + data->nr_tags <= h->map->half)
		return;

	blkg = current_blkg(data->q);
	if (!blkg)
		return;
	f = group_flow(blkg);
	if (f && swaps) {
		limit_swap(f);
		data->nr_tags = 1;
	}
	if (f)
		f = limited_flow(f, opf);
	if (f)
		limit_flow(limit_hctx(opf, data), f, opf, data);
	blkg_put(blkg);
}

/* ---------------------------------------------------------------- tick work */

/* Returns the next hardware queue from *@i on that has tags of its own, or NULL. */
static struct hctx_host *next_map(struct device_host *d, u32 *i)
{
	struct hctx_host *h;

	while (*i < d->nr_hctx) {
		h = d->hctx[(*i)++];
		if (h->map == &h->own_map || h == d->hctx[0])
			return h;
	}
	return NULL;
}

bool limit_awaits_tick(struct device_host *d)
{
	struct hctx_host *h;
	u32 i = 0;

	while ((h = next_map(d, &i)))
		if (limit_is_scarce(&h->map->order))
			return true;
	return false;
}

void limit_tick(struct device_host *d, u64 now)
{
	struct hctx_host *h;
	u64 sent;
	u32 i = 0;

	/* Most ticks need no sum over the queues. */
	if (!limit_awaits_tick(d))
		return;
	sent = sched_dispatched(&d->sched);
	while ((h = next_map(d, &i)))
		if (limit_refresh(&h->map->order, sent, now))
			limit_hand_out(h, true);
}

void limit_resized(struct device_host *d)
{
	unsigned int least = UINT_MAX;
	struct hctx_host *h;
	u32 i = 0;

	while ((h = next_map(d, &i))) {
		u32 depth = compat_sched_depth(h->hctx);

		h->map->half = limit_half(depth);
		WRITE_ONCE(h->map->order.depth, depth);
		if (h->map == &h->own_map && h->nr_queues)
			h->map->order.line = h->queue[0]->queue.index;
		least = min(least, depth);
	}
	compat_set_min_shallow_depth(d->q, limit_half(least));
}

/* The tasks stand in order of arrival. */
static u32 waiters_of(struct tag_map *map, u64 before_ns)
{
	unsigned long flags = port_lock(&map->order.lock);
	struct task_waiter *w;
	u32 nr = 0;

	list_for_each_entry(w, &map->tasks, node) {
		if (w->waiter.since_ns > before_ns)
			break;
		nr++;
	}
	port_unlock(&map->order.lock, flags);
	return nr;
}

u32 limit_waiters(struct device_host *d, u64 before_ns)
{
	struct hctx_host *h;
	u32 i = 0, nr = 0;

	while ((h = next_map(d, &i)))
		nr += waiters_of(h->map, before_ns);
	return nr;
}
