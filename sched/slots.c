// SPDX-License-Identifier: GPL-2.0
#include "slots.h"
#include "queue.h"

int slots_init(struct slots *sl, struct sched *s, u32 depth)
{
	u32 i;

	sl->sched = s;
	for (i = 0; i < QUEUE_WORDS; i++)
		atomic64_set(&sl->ready[i], 0);
	return token_tree_init(&sl->tree, &s->topo, depth);
}

void slots_deinit(struct slots *sl)
{
	port_assert(token_total(&sl->tree) == (s64)sl->tree.depth);
	token_tree_deinit(&sl->tree);
}

static u32 words(const struct slots *sl)
{
	return (sl->sched->nr_queues + 63) / 64;
}

static bool is_ready(const struct slots *sl, u32 queue)
{
	return (u64)atomic64_read(&sl->ready[queue / 64]) & BIT_ULL(queue % 64);
}

/* Whoever gets true here owns the wake-up. */
static bool claim(struct slots *sl, u32 queue)
{
	s64 bit = (s64)BIT_ULL(queue % 64);

	return is_ready(sl, queue) &&
	       (atomic64_fetch_andnot(bit, &sl->ready[queue / 64]) & bit);
}

void slots_withdraw(struct slots *sl, u32 queue)
{
	claim(sl, queue);
}

bool slots_try(struct slots *sl, u32 queue)
{
	return token_take(&sl->tree, queue);
}

bool slots_take(struct slots *sl, u32 queue)
{
	if (token_take(&sl->tree, queue))
		return true;
	/* The announcement: pairs with slots_put(). */
	atomic64_fetch_or((s64)BIT_ULL(queue % 64), &sl->ready[queue / 64]);
	if (!token_take(&sl->tree, queue) && !token_steal(&sl->tree, queue))
		return false;
	claim(sl, queue);
	return true;
}

static bool any_ready(const struct slots *sl)
{
	u32 i;

	for (i = 0; i < words(sl); i++)
		if (atomic64_read(&sl->ready[i]))
			return true;
	return false;
}

/* First member in [first, last), or QUEUES_MAX. */
static u32 find_ready(const struct slots *sl, u32 first, u32 last)
{
	u32 i, found;
	u64 bits;

	for (i = first / 64; i * 64 < last; i++) {
		bits = (u64)atomic64_read(&sl->ready[i]);
		if (i == first / 64)
			bits &= ~0ULL << (first % 64);
		if (!bits)
			continue;
		found = i * 64 + port_ffs64(bits);
		return found < last ? found : QUEUES_MAX;
	}
	return QUEUES_MAX;
}

/* The member nearest to @queue, itself first, or QUEUES_MAX. */
static u32 nearest_ready(const struct slots *sl, u32 queue)
{
	const struct topology *t = &sl->sched->topo;
	u32 node = queue, found;

	for (;;) {
		found = find_ready(sl, t->node[node].first, t->node[node].last);
		if (found != QUEUES_MAX || node == t->root)
			return found;
		node = t->node[node].parent;
	}
}

static void hand_over(struct slots *sl, u32 queue, struct wake *wake)
{
	u32 ready;

	while ((ready = nearest_ready(sl, queue)) != QUEUES_MAX) {
		if (ready != queue)
			token_give(&sl->tree, queue, ready);
		/* A slot elsewhere in the tree will do: it steals. */
		if (!token_peek(&sl->tree, ready) && token_total(&sl->tree) <= 0)
			return;
		if (claim(sl, ready)) {
			sched_kick(sl->sched, ready, wake);
			return;
		}
	}
}

void slots_hand_over(struct slots *sl, u32 queue, struct wake *wake)
{
	if (unlikely(any_ready(sl)))
		hand_over(sl, queue, wake);
}

void slots_put(struct slots *sl, u32 queue, struct wake *wake)
{
	token_put(&sl->tree, queue);
	/* Pairs with the announcement in slots_take(). */
	slots_hand_over(sl, queue, wake);
}

void slots_resize(struct slots *sl, u32 depth, struct wake *wake)
{
	u32 i;
	u64 bits;

	token_resize(&sl->tree, depth);
	for (i = 0; i < words(sl); i++)
		for (bits = (u64)atomic64_xchg(&sl->ready[i], 0); bits;
		     bits &= bits - 1)
			sched_kick(sl->sched, i * 64 + port_ffs64(bits), wake);
}

bool slots_forgot(const struct slots *sl, u32 queue)
{
	return is_ready(sl, queue) && token_total(&sl->tree) > 0;
}
