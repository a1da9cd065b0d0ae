// SPDX-License-Identifier: GPL-2.0
#include "slots.h"
#include "queue.h"

int slots_init(struct slots *sl, struct sched *s, u32 depth)
{
	u32 i;

	sl->sched = s;
	atomic64_set(&sl->waiting, 0);
	for (i = 0; i < QUEUE_WORDS; i++)
		atomic64_set(&sl->ready[i], 0);
	sl->queue = port_zalloc(s->nr_queues * sizeof(*sl->queue));
	if (!sl->queue)
		return -ENOMEM;
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
	return (s64)READ_ONCE(sl->tree.depth) - token_total(&sl->tree);
}

/* ----------------------------------------------------------------- the set */

static bool is_ready(const struct slots *sl, u32 queue)
{
	return (u64)atomic64_read(&sl->ready[queue / 64]) & BIT_ULL(queue % 64);
}

/*
 * `waiting` is never less than the queues in the set: one too many, for a
 * moment, makes parts smaller, and whoever makes it one less looks at the set
 * after that, when it stops dispatching.
 */
static void announce(struct slots *sl, u32 queue)
{
	s64 bit = (s64)BIT_ULL(queue % 64);

	(void)atomic64_fetch_add(1, &sl->waiting);
	/* Pairs with slots_put(). */
	if (atomic64_fetch_or(bit, &sl->ready[queue / 64]) & bit)
		atomic64_dec(&sl->waiting);
}

/* Whoever gets true here owns the wake-up. */
static bool claim(struct slots *sl, u32 queue)
{
	s64 bit = (s64)BIT_ULL(queue % 64);

	if (!is_ready(sl, queue) ||
	    !(atomic64_fetch_andnot(bit, &sl->ready[queue / 64]) & bit))
		return false;
	atomic64_dec(&sl->waiting);
	return true;
}

void slots_withdraw(struct slots *sl, u32 queue)
{
	claim(sl, queue);
}

/* May @queue, one of @rivals that wait, have one more? */
static bool is_due(const struct slots *sl, u32 queue, s64 rivals)
{
	return atomic64_read(&sl->queue[queue].used) * rivals <
	       (s64)READ_ONCE(sl->tree.depth);
}

/* First member in [first, last) that is due a slot, or QUEUES_MAX. */
static u32 find_due(const struct slots *sl, u32 first, u32 last, s64 rivals)
{
	u32 word, queue;
	u64 bits;

	for (word = first / 64; word * 64 < last; word++) {
		bits = (u64)atomic64_read(&sl->ready[word]);
		if (word == first / 64)
			bits &= ~0ULL << (first % 64);
		for (; bits; bits &= bits - 1) {
			queue = word * 64 + port_ffs64(bits);
			if (queue >= last)
				break;
			if (is_due(sl, queue, rivals))
				return queue;
		}
	}
	return QUEUES_MAX;
}

/* The one nearest to @queue, itself first, or QUEUES_MAX. */
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

static bool took(struct slots *sl, u32 queue, bool got)
{
	if (got)
		atomic64_inc(&sl->queue[queue].used);
	return got;
}

bool slots_try(struct slots *sl, u32 queue)
{
	return took(sl, queue, token_take(&sl->tree, queue));
}

bool slots_take(struct slots *sl, u32 queue)
{
	s64 others = atomic64_read(&sl->waiting);

	if (likely(!others || is_due(sl, queue, others + 1)) &&
	    slots_try(sl, queue))
		return true;
	announce(sl, queue);
	if (!is_due(sl, queue, atomic64_read(&sl->waiting)) ||
	    !took(sl, queue,
		  token_take(&sl->tree, queue) ||
			  token_steal(&sl->tree, queue)))
		return false;
	claim(sl, queue);
	return true;
}

static void hand_over(struct slots *sl, u32 queue, struct wake *wake)
{
	u32 due;
	s64 rivals;

	while ((rivals = atomic64_read(&sl->waiting)) > 0) {
		due = nearest_due(sl, queue, rivals);
		if (due == QUEUES_MAX)
			return;
		if (due != queue)
			token_give(&sl->tree, queue, due);
		/* A slot elsewhere in the tree will do: it steals. */
		if (!token_peek(&sl->tree, due) && token_total(&sl->tree) <= 0)
			return;
		if (claim(sl, due)) {
			sched_wake(sl->sched, due, wake);
			return;
		}
	}
}

void slots_hand_over(struct slots *sl, u32 queue, struct wake *wake)
{
	if (unlikely(atomic64_read(&sl->waiting) > 0))
		hand_over(sl, queue, wake);
}

void slots_put(struct slots *sl, u32 queue, struct wake *wake)
{
	atomic64_dec(&sl->queue[queue].used);
	token_put(&sl->tree, queue);
	/* Pairs with announce(). */
	slots_hand_over(sl, queue, wake);
}

void slots_resize(struct slots *sl, u32 depth, struct wake *wake)
{
	u32 i;

	token_resize(&sl->tree, depth);
	for (i = 0; i < sl->sched->nr_queues; i++)
		if (claim(sl, i))
			sched_wake(sl->sched, i, wake);
}

bool slots_forgot(const struct slots *sl, u32 queue)
{
	return is_ready(sl, queue) && token_total(&sl->tree) > 0 &&
	       is_due(sl, queue, atomic64_read(&sl->waiting));
}
