/* SPDX-License-Identifier: GPL-2.0 */
/*
 * limit - decides which task gets the next scheduler tag
 *
 * limit.c explains the rule.  A request enters here once at each stage:
 *
 *	call		stage				context		lock
 *	limit_admit	before the block layer takes	task, may	none
 *			a tag for the task		sleep
 *	limit_prepared	the task has its tag		task		none
 *	limit_took	the request is inserted		task		see there
 *	limit_inserted	after sched_ops.insert		task		queue's
 *	limit_kind_finished	a request of a kind	any		any
 *			finishes
 *	limit_returned	the request gives tags back	any		none
 *	limit_tick	tick work			task		none
 *	limit_awaits_tick  tick work			task		none
 *	limit_resized	init; the depth has changed	task, frozen	none
 *	limit_waiters	debugfs				task		none
 *
 * elevator.c makes the calls for requests, tick.c those of tick work, and
 * register.c the others.
 */
#ifndef MQFAIR_LIMIT_H
#define MQFAIR_LIMIT_H

#include "cgroup.h"
#include "device.h"

void limit_admit_slow(blk_opf_t opf, struct blk_mq_alloc_data *data);
void limit_hand_out(struct hctx_host *h, bool given_back);
void limit_kind_prepared(struct request *rq);
void limit_kind_finished(struct request *rq);

static inline bool limit_is_swap_write(blk_opf_t opf)
{
	return (opf & REQ_SWAP) && op_is_write(opf);
}

static inline struct flow_tags *flow_tags(struct flow *f)
{
	return &container_of(f, struct group_host, flow)->tags;
}

/*
 * The hardware queue of the request to come.  The block layer has chosen it
 * already from 6.10 on, and in stable kernels before.
 */
static inline struct hctx_host *limit_hctx(blk_opf_t opf,
					   const struct blk_mq_alloc_data *data)
{
	struct blk_mq_hw_ctx *hctx = data->hctx;

	return (hctx ?: blk_mq_map_queue(opf, blk_mq_get_ctx(data->q)))
		->sched_data;
}

/*
 * The running task is about to take data->nr_tags tags.  It may have to sleep
 * until it gets one; data->nr_tags may become 1.  A task that may not sleep gets a
 * shallow depth instead.  The task holds request_queue.q_usage_counter.
 */
static inline void limit_admit(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	const struct hctx_host *h = limit_hctx(opf, data);

	if (unlikely((u32)device_tags(h) + data->nr_tags > h->map->half ||
		     (current->flags & PF_KTHREAD) || limit_is_swap_write(opf)))
		limit_admit_slow(opf, data);
}

/*
 * Request @rq of the running task has a tag.  If it is of a kind with a bound,
 * rq->elv.priv[1] is that kind from now on; otherwise it is NULL.
 */
static inline void limit_prepared(struct request *rq)
{
	rq->elv.priv[1] = NULL;
	if (unlikely((current->flags & PF_KTHREAD) ||
		     limit_is_swap_write(rq->cmd_flags)))
		limit_kind_prepared(rq);
}

/*
 * Request @rq of @f, which costs @cost, was inserted into @qh.  @first: it has not
 * been inserted before.
 */
static inline void limit_inserted(struct queue_host *qh, struct request *rq,
				  struct flow *f, u32 cost, bool first)
{
	struct tag_map *map = qh->hctx->map;

	lockdep_assert_held(qh->lock);
	if (first && unlikely(limit_is_scarce(&map->order)) &&
	    group_has_queue(f, map->order.line))
		limit_charge_slow(&map->order, f, cost);
	/* A kernel thread works for its own cgroup. */
	if (unlikely(rq->elv.priv[1] == &map->foreign) && !f->group.parent)
		limit_kind_finished(rq);
}

/*
 * @nr requests were inserted for the first time, or are about to be: none of them
 * has finished.  Before its insertion a request is not counted.  Tasks collect
 * requests for a short time only, and a plug is flushed when its task sleeps.
 *
 * If @h inserts all requests of its map under one lock, the caller holds that lock,
 * and this is no locked operation.
 */
static inline void limit_took(struct hctx_host *h, u32 nr)
{
	atomic64_t *taken = &h->map->taken;

	if (h->alone) {
		lockdep_assert_held(&h->lock);
		atomic64_set(taken, atomic64_read(taken) + nr);
	} else {
		atomic64_add(nr, taken);
	}
}

/*
 * A request gives @tags back.  The addition is fully ordered.  It comes before the
 * look for tasks that wait, and before the caller's look at hctx_host.full.  Pairs
 * with wait_for_tag() and hctx_is_full().
 */
static inline void limit_returned(struct hctx_host *h, u64 tags)
{
	atomic64_add_return((s64)tags, &h->map->returned);
	if (unlikely(limit_awaited(&h->map->order)))
		limit_hand_out(h, true);
}

/* Hands out free tags if shares have changed, once in FLOW_GRACE_NS. */
void limit_tick(struct device_host *d, u64 now);

/*
 * Whether another tick must follow.  A task that begins to wait does not ask for
 * one: tags are in use then, so a flow is active and tick comes.
 */
bool limit_awaits_tick(struct device_host *d);

/* Reads the depths of the tag maps anew. */
void limit_resized(struct device_host *d);

/* Counts the tasks that have waited for a tag since @before_ns, or longer. */
u32 limit_waiters(struct device_host *d, u64 before_ns);

#endif /* MQFAIR_LIMIT_H */
