/* SPDX-License-Identifier: GPL-2.0 */
/*
 * limit - bounds the scheduler tags that one flow holds
 *
 * limit.c explains the rule.  A request enters here once at each stage:
 *
 *	call		stage				context		lock
 *	limit_admit	before the block layer takes	task, may	none
 *			a tag for the task		sleep
 *	limit_prepared	the task has its tag		task		none
 *	limit_inserted	after sched_ops.insert		task		queue's
 *	limit_kind_finished	a request of a kind	any		any
 *			finishes
 *	limit_finished	the request finishes, before	any		none
 *			its flow is released
 *	limit_setup	before the device is used	task		none
 *	limit_tick	tick work			task		none
 *	limit_awaits_tick  tick work			task		none
 *	limit_resized	init; the depth has changed	task, frozen	none
 *
 * elevator.c makes the calls for requests, tick.c those of tick work, and
 * register.c the others.
 */
#ifndef MQFAIR_LIMIT_H
#define MQFAIR_LIMIT_H

#include "device.h"

void limit_admit_slow(blk_opf_t opf, struct blk_mq_alloc_data *data);
void limit_wake(struct hctx_host *h, struct flow *f);
void limit_wake_claim(struct tag_map *map);
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
 * The tasks of @f that wait for a free tag of the map of @h.  If several queues have
 * these tags, it also counts those that requests of @f hold.  Otherwise each look
 * would add up the counters of as many queues as the machine has CPUs.
 */
static inline atomic64_t *limit_claims(const struct hctx_host *h,
				       const struct flow *f)
{
	u32 first = h->requests_shared ? 0 : h->queue[0]->queue.index;

	return &f->fq[first]->claims;
}

/*
 * Wakes a waiter for tags if the flow may take one more.  limit_finished() makes
 * room first, fully ordered, and pairs with wait_for_tags().  limit_inserted()
 * makes no room, so its look needs no order.
 */
static inline void limit_look(struct hctx_host *h, struct flow *f)
{
	/* A later waiter finds the room itself. */
	if (unlikely(waitqueue_active(&flow_tags(f)->wait)))
		limit_wake(h, f);
}

/*
 * The running task is about to take data->nr_tags tags.  Sleeps until its flow
 * may take one; may lower data->nr_tags.  A task that may not sleep gets a
 * shallow depth instead.  The task holds request_queue.q_usage_counter.
 */
static inline void limit_admit(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	/* A flow that is alone pays for this look only. */
	if (READ_ONCE(device_of(data->q)->sched.share.nr_active) >= 2)
		limit_admit_slow(opf, data);
}

/*
 * Request @rq of the running task has a tag.  Counts it if it is of a kind with a
 * bound: rq->elv.priv[1] is that kind from now on, or NULL.
 */
static inline void limit_prepared(struct request *rq)
{
	rq->elv.priv[1] = NULL;
	if (unlikely((current->flags & PF_KTHREAD) ||
		     limit_is_swap_write(rq->cmd_flags)))
		limit_kind_prepared(rq);
}

/*
 * Request @rq of @f was inserted into @qh.  @first: it has not been inserted
 * before, so its tag is counted now.  No other CPU can finish the request
 * before the lock of @qh is dropped, so the count never falls below 0.  A task
 * that waited may be the inserter; it passes the remaining room on.
 */
static inline void limit_inserted(struct queue_host *qh, struct request *rq,
				  struct flow *f, bool first)
{
	struct tag_map *map = qh->hctx->map;

	lockdep_assert_held(qh->lock);
	if (first) {
		if (map->wide)
			atomic64_inc(limit_claims(qh->hctx, f));
		atomic_inc(&map->used);
	}
	/* A kernel thread works for its own cgroup. */
	if (unlikely(rq->elv.priv[1] == &map->foreign) && !f->group.parent)
		limit_kind_finished(rq);
	limit_look(qh->hctx, f);
}

/*
 * A request of @f gives its tag back.  The decrement is fully ordered and
 * comes before the looks for waiters; pairs with wait_for_tags() and
 * wait_for_free_tag().
 */
static inline void limit_finished(struct hctx_host *h, struct flow *f)
{
	if (h->map->wide)
		atomic64_dec(limit_claims(h, f));
	atomic_dec_return(&h->map->used);
	/* The decrement above is fully ordered. */
	if (unlikely(waitqueue_active(&h->map->free_wait)))
		limit_wake_claim(h->map);
	limit_look(h, f);
}

/* Prepares the list of flows with waiters. */
void limit_setup(struct device_host *d);

/* Computes the level of the loans, and looks at the waiters, if it is due. */
void limit_tick(struct device_host *d, u64 now);

/*
 * Whether another tick must follow.  A task that begins to wait does not ask for
 * one: half of the tags are in use then, so a flow is active and tick comes.
 */
bool limit_awaits_tick(struct device_host *d);

/* Reads the depths of the tag maps anew. */
void limit_resized(struct device_host *d);

#endif /* MQFAIR_LIMIT_H */
