// SPDX-License-Identifier: GPL-2.0
/* Takes, awaits and hands over slots; slots.h has the argument. */
#include "slots.h"
#include "queue.h"

int slots_init(struct slots *sl, struct sched *s, u32 depth, bool parts)
{
	sl->sched = s;
	port_lock_init(&sl->resize_lock);
	sl->depth = depth;
	sl->limit = DEPTH_MAX;
	atomic64_set(&sl->held, 0);
	atomic64_set(&sl->waiting, 0);
	sl->ready = (struct queue_set){ 0 };
	sl->queue = NULL;
	if (parts) {
		sl->queue = port_zalloc(s->nr_queues * sizeof(*sl->queue));
		if (!sl->queue)
			return -ENOMEM;
	}
	if (token_tree_init(&sl->tree, &s->topo, depth)) {
		port_free(sl->queue);
		return -ENOMEM;
	}
	return 0;
}

void slots_deinit(struct slots *sl)
{
	port_assert(slots_used(sl) == 0);
	token_tree_deinit(&sl->tree);
	port_free(sl->queue);
}

s64 slots_used(const struct slots *sl)
{
	return (s64)READ_ONCE(sl->tree.depth) - token_total(&sl->tree) -
	       atomic64_read(&sl->held);
}

/* ----------------------------------------------------------------- the set */

/*
 * `waiting` is never less than the number of queues in the set.  It may be one
 * too high for a moment, which makes the parts smaller.  The CPU that corrects
 * it looks at the set afterwards, when its queue stops dispatching.
 */
static void announce(struct slots *sl, u32 queue)
{
	(void)atomic64_fetch_add(1, &sl->waiting);
	/* Pairs with slots_put(). */
	if (!queue_set_add(&sl->ready, queue))
		atomic64_dec(&sl->waiting);
}

/* Takes @queue out.  A caller that gets true has to wake @queue. */
static bool claim(struct slots *sl, u32 queue)
{
	if (!queue_set_claim(&sl->ready, queue))
		return false;
	atomic64_dec(&sl->waiting);
	return true;
}

void slots_withdraw(struct slots *sl, u32 queue)
{
	claim(sl, queue);
}

/* May @queue have one more slot?  It is one of @rivals queues that wait. */
static bool is_due(const struct slots *sl, u32 queue, s64 rivals)
{
	return !sl->queue || atomic64_read(&sl->queue[queue].used) * rivals <
				     (s64)READ_ONCE(sl->tree.depth);
}

/* Returns the first member in [first, last) that is due, or QUEUES_MAX. */
static u32 find_due(const struct slots *sl, u32 first, u32 last, s64 rivals)
{
	u32 found = queue_set_find(&sl->ready, first, last);

	while (found != QUEUES_MAX && !is_due(sl, found, rivals))
		found = queue_set_find(&sl->ready, found + 1, last);
	return found;
}

/* Returns the due member nearest to @queue, itself included, or QUEUES_MAX. */
static u32 nearest_due(const struct slots *sl, u32 queue, s64 rivals)
{
	const struct topology *t = &sl->sched->topo;
	u32 node = queue, found;

	for (;;) {
		found = find_due(sl, t->node[node].first, t->node[node].last,
				 rivals);
		if (found != QUEUES_MAX || node == t->root)
			return found;
		node = t->node[node].parent;
	}
}

/* ------------------------------------------------------------------- slots */

bool slots_wait(struct slots *sl, u32 queue)
{
	announce(sl, queue);
	if (!is_due(sl, queue, atomic64_read(&sl->waiting)) ||
	    !slots_took(sl, queue,
			token_take(&sl->tree, queue) ||
				token_steal(&sl->tree, queue)))
		return false;
	claim(sl, queue);
	return true;
}

bool slots_take(struct slots *sl, u32 queue)
{
	s64 others = atomic64_read(&sl->waiting);

	if (likely(!others || is_due(sl, queue, others + 1)) &&
	    slots_try(sl, queue))
		return true;
	return slots_wait(sl, queue);
}

void slots_hand_over_slow(struct slots *sl, u32 queue, struct wake *wake)
{
	u32 due;
	s64 rivals;

	while ((rivals = atomic64_read(&sl->waiting)) > 0) {
		due = nearest_due(sl, queue, rivals);
		if (due == QUEUES_MAX)
			return;
		if (due != queue)
			token_give(&sl->tree, queue, due);
		/* A slot anywhere in the tree suffices: the queue steals it. */
		if (!token_peek(&sl->tree, due) && token_total(&sl->tree) <= 0)
			return;
		if (claim(sl, due)) {
			sched_wake(sl->sched, due, wake);
			return;
		}
	}
}

static bool take_held(struct slots *sl)
{
	s64 held = atomic64_read(&sl->held);

	while (held > 0)
		if (atomic64_try_cmpxchg(&sl->held, &held, held - 1))
			return true;
	return false;
}

/*
 * Holds a slot until slots_release(); a debt is paid first.  False: the caller
 * frees it.  The holder counts the slot (full order), and then looks whether
 * the drive is still paced.  Tick ends the pacing, and then releases all slots.
 * Pairs with open_drive() in isolation.c.
 */
static bool hold(struct slots *sl)
{
	if (token_in_debt(&sl->tree))
		return false;
	(void)atomic64_fetch_add(1, &sl->held);
	return READ_ONCE(sl->sched->isolation.paces) || !take_held(sl);
}

void slots_release(struct slots *sl, u32 queue, struct wake *wake)
{
	if (take_held(sl))
		slots_free(sl, queue, wake);
}

void slots_put_paced(struct slots *sl, u32 queue, struct wake *wake)
{
	if (!hold(sl))
		slots_free(sl, queue, wake);
}

void slots_wake(struct slots *sl, u32 queue, struct wake *wake)
{
	if (token_total(&sl->tree) <= 0) {
		announce(sl, queue);
		if (token_total(&sl->tree) <= 0 || !claim(sl, queue))
			return;
	}
	sched_wake(sl->sched, queue, wake);
}

void slots_wake_all(struct slots *sl, struct wake *wake)
{
	u32 i;

	for (i = 0; i < sl->sched->nr_queues; i++)
		if (claim(sl, i))
			sched_wake(sl->sched, i, wake);
}

/* Tick and tune may both resize. */
static void resize(struct slots *sl, u32 *field, u32 value, struct wake *wake)
{
	unsigned long flags = port_lock(&sl->resize_lock);

	WRITE_ONCE(*field, value);
	token_resize(&sl->tree, min(sl->depth, sl->limit));
	port_unlock(&sl->resize_lock, flags);
	slots_wake_all(sl, wake);
}

void slots_resize(struct slots *sl, u32 depth, struct wake *wake)
{
	resize(sl, &sl->depth, depth, wake);
}

void slots_limit(struct slots *sl, u32 limit, struct wake *wake)
{
	if (limit != READ_ONCE(sl->limit))
		resize(sl, &sl->limit, limit, wake);
}

bool slots_forgot(const struct slots *sl, u32 queue)
{
	return queue_set_has(&sl->ready, queue) && token_total(&sl->tree) > 0 &&
	       is_due(sl, queue, atomic64_read(&sl->waiting));
}
