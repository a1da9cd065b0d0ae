// SPDX-License-Identifier: GPL-2.0
#include "compat.h"

/*
 * ----------------------------------------------- the unit of a shallow depth
 * Older kernels count a shallow depth in every word of the tag map, newer ones
 * over the whole map. The change went into stable releases, and no type shows
 * it. So compat_init() fills a small map and counts its tags.
 */
enum {
	PROBE_DEPTH	= 64,	/* tags of the probe map */
	PROBE_SHIFT	= 4,	/* log2 of tags per word: four words */
	PROBE_SHALLOW	= 4,	/* 4 tags in all, or 4 per word: 16 */
};

static bool shallow_depth_is_per_word __ro_after_init;

int __init compat_init(void)
{
	struct sbitmap_queue map;
	unsigned int taken = 0;
	int ret;

	ret = sbitmap_queue_init_node(&map, PROBE_DEPTH, PROBE_SHIFT, false,
				      GFP_KERNEL, NUMA_NO_NODE);
	if (ret)
		return ret;
	sbitmap_queue_min_shallow_depth(&map, PROBE_SHALLOW);
	while (taken < PROBE_DEPTH &&
	       sbitmap_queue_get_shallow(&map, PROBE_SHALLOW) >= 0)
		taken++;
	sbitmap_queue_free(&map);
	if (!taken)
		return -EOPNOTSUPP;
	shallow_depth_is_per_word = taken > PROBE_SHALLOW;
	return 0;
}

unsigned int compat_shallow_depth(struct blk_mq_hw_ctx *hctx,
				  unsigned int depth)
{
	const struct sbitmap *map = &hctx->sched_tags->bitmap_tags.sb;

	if (shallow_depth_is_per_word) {
		unsigned int word = 1U << map->shift;

		depth = depth < map->depth ?
				DIV_ROUND_UP(depth * word, map->depth) :
				word;
	}
	return max(depth, 1U);
}

void compat_set_min_shallow_depth(struct request_queue *q, unsigned int depth)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		if (hctx->sched_tags)
			sbitmap_queue_min_shallow_depth(
				&hctx->sched_tags->bitmap_tags,
				compat_shallow_depth(hctx, depth));
}

unsigned int compat_queue_hw_depth(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned int depth = 0;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i) {
		if (hctx->type == HCTX_TYPE_POLL || !hctx->nr_ctx)
			continue;
		if (compat_hw_tags_shared(q))
			return compat_hw_depth(hctx);
		depth += compat_hw_depth(hctx);
	}
	return max(depth, 1U);
}

/* -------------------------------------------------- elevator entry points */

#if MQFAIR_HAVE_ALLOC_SCHED_DATA

int compat_init_sched(struct request_queue *q, struct elevator_queue *eq,
		      compat_init_fn init)
{
	/* On failure the block layer resets q->elevator and frees eq and its data. */
	q->elevator = eq;
	return init(q, eq);
}

#else

#if MQFAIR_HAVE_INIT_SCHED_QUEUE

static struct elevator_queue *queue_get(struct request_queue *q,
					struct elevator_queue *eq)
{
	return eq;
}

/* The block layer has allocated it, and frees it when init_sched() fails. */
static void queue_put(struct elevator_queue *eq)
{
}

#else

static struct elevator_queue *queue_get(struct request_queue *q,
					struct elevator_type *type)
{
	return elevator_alloc(q, type);
}

static void queue_put(struct elevator_queue *eq)
{
	kobject_put(&eq->kobj);
}

#endif

int compat_init_sched(struct request_queue *q, compat_init_arg *arg,
		      compat_alloc_data_fn alloc_data,
		      compat_free_data_fn free_data, compat_init_fn init)
{
	/* The queue is frozen, so reclaim must not wait for I/O to it. */
	unsigned int noio = memalloc_noio_save();
	struct elevator_queue *eq;
	int ret = -ENOMEM;

	eq = queue_get(q, arg);
	if (!eq)
		goto out;
	eq->elevator_data = alloc_data(q);
	if (!eq->elevator_data)
		goto put;
	q->elevator = eq;
	ret = init(q, eq);
	if (!ret)
		goto out;
	q->elevator = NULL;
	free_data(eq->elevator_data);
put:
	queue_put(eq);
out:
	memalloc_noio_restore(noio);
	return ret;
}

void compat_exit_sched(struct elevator_queue *eq, compat_exit_fn exit,
		       compat_free_data_fn free_data)
{
	void *data = eq->elevator_data;

	exit(eq);
	free_data(data);
}

#endif

/* --------------------------------------------------- writeback throttling */

#if MQFAIR_HAVE_WBT

#if !MQFAIR_HAVE_QUEUE_FLAG_DISABLE_WBT_DEF && MQFAIR_HAVE_ELEVATOR_QUEUE_FLAGS
/*
 * The kernel has a macro for this flag, so the BTF does not have it. It was bit
 * 1 of elevator_queue.flags until a queue flag replaced it.
 */
#define ELEVATOR_FLAG_DISABLE_WBT	1
#endif

static void wbt_forbid(struct request_queue *q, struct elevator_queue *eq,
		       bool forbid)
{
#if MQFAIR_HAVE_QUEUE_FLAG_DISABLE_WBT_DEF
	if (forbid)
		blk_queue_flag_set(QUEUE_FLAG_DISABLE_WBT_DEF, q);
	else
		blk_queue_flag_clear(QUEUE_FLAG_DISABLE_WBT_DEF, q);
#elif MQFAIR_HAVE_ELEVATOR_QUEUE_FLAGS
	if (forbid)
		set_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
	else
		clear_bit(ELEVATOR_FLAG_DISABLE_WBT, &eq->flags);
#endif
}

#if MQFAIR_HAVE_WBT_DISK
#define compat_wbt_target(q)	((q)->disk)
#else
#define compat_wbt_target(q)	(q)
#endif

void compat_wbt_disable(struct request_queue *q, struct elevator_queue *eq)
{
	wbt_forbid(q, eq, true);
	wbt_disable_default(compat_wbt_target(q));
}

/*
 * Kernels with elevator_lock and without the queue flag call exit with the queue
 * frozen and the lock held.  There wbt_enable_default() may make a new policy,
 * which waits for a lock that is taken outside of both.  So on these kernels WBT
 * stays off until a task writes "-1" to queue/wbt_lat_usec.
 */
#define WBT_RESTORES \
	(!MQFAIR_HAVE_ELEVATOR_LOCK || MQFAIR_HAVE_QUEUE_FLAG_DISABLE_WBT_DEF)

void compat_wbt_restore(struct request_queue *q, struct elevator_queue *eq)
{
	wbt_forbid(q, eq, false);
	if (WBT_RESTORES)
		wbt_enable_default(compat_wbt_target(q));
}

#else

void compat_wbt_disable(struct request_queue *q, struct elevator_queue *eq)
{
}

void compat_wbt_restore(struct request_queue *q, struct elevator_queue *eq)
{
}

#endif

/* ---------------------------------------------------------------- debugfs */

bool compat_debugfs_enter(struct request_queue *q,
			  bool (*ours)(const struct elevator_type *type))
{
#if MQFAIR_HAVE_ELEVATOR_LOCK
	/* A task that removes the files does not hold this lock, so the wait ends. */
	mutex_lock(&q->elevator_lock);
#endif
	return q->elevator && ours(q->elevator->type);
}

void compat_debugfs_exit(struct request_queue *q)
{
#if MQFAIR_HAVE_ELEVATOR_LOCK
	mutex_unlock(&q->elevator_lock);
#endif
}
