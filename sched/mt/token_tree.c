// SPDX-License-Identifier: GPL-2.0
#include "token_tree.h"

int token_tree_init(struct token_tree *t, u32 nr_queues, u32 depth)
{
	t->nr_queues = nr_queues;
	t->depth = depth;
	t->leaf = port_zalloc(nr_queues * sizeof(*t->leaf));
	if (!t->leaf)
		return -ENOMEM;
	atomic64_set(&t->root.free, depth);
	return 0;
}

void token_tree_deinit(struct token_tree *t)
{
	port_free(t->leaf);
}

bool token_repay(struct token_tree *t)
{
	s64 free = atomic64_read(&t->root.free);

	while (free < 0)
		if (atomic64_try_cmpxchg(&t->root.free, &free, free + 1))
			return true;
	return false;
}

void token_list_leaf(struct token_tree *t, u32 queue)
{
	(void)queue_set_add(&t->leaves, queue);
	/* After the set, which a CPU that sees this need not add to. */
	WRITE_ONCE(t->leaf[queue].listed, true);
}

void token_settle(struct token_tree *t, u32 queue)
{
	while (token_in_debt(t) && token_leaf_take(t, queue))
		(void)atomic64_fetch_add(1, &t->root.free);
}

bool token_root_take(struct token_tree *t)
{
	return token_count_take(&t->root.free);
}

bool token_owe(struct token_tree *t, u32 most)
{
	s64 free = atomic64_read(&t->root.free);

	while (free > -(s64)most)
		if (atomic64_try_cmpxchg(&t->root.free, &free, free - 1))
			return true;
	return false;
}

bool token_peek(const struct token_tree *t, u32 queue)
{
	return atomic64_read(&t->leaf[queue].free) > 0 ||
	       atomic64_read(&t->root.free) > 0;
}

static bool leaves_take(struct token_tree *t, u32 first, u32 last,
			const struct queue_set *except)
{
	u32 i;

	for (i = queue_set_find(&t->leaves, first, last); i != QUEUES_MAX;
	     i = queue_set_find(&t->leaves, i + 1, last))
		if (!(except && queue_set_has(except, i)) &&
		    token_leaf_take(t, i))
			return true;
	return false;
}

bool token_steal(struct token_tree *t, u32 queue,
		 const struct queue_set *except)
{
	return token_take(t, queue) ||
	       leaves_take(t, queue + 1, t->nr_queues, except) ||
	       leaves_take(t, 0, queue, except);
}

bool token_take_except(struct token_tree *t, u32 queue,
		       const struct queue_set *except)
{
	return token_root_take(t) ||
	       leaves_take(t, queue, t->nr_queues, except) ||
	       leaves_take(t, 0, queue, except);
}

bool token_peek_except(const struct token_tree *t,
		       const struct queue_set *except)
{
	u32 i;

	for (i = queue_set_find(&t->leaves, 0, t->nr_queues); i != QUEUES_MAX;
	     i = queue_set_find(&t->leaves, i + 1, t->nr_queues))
		if (!queue_set_has(except, i) &&
		    atomic64_read(&t->leaf[i].free) > 0)
			return true;
	return atomic64_read(&t->root.free) > 0;
}

bool token_give(struct token_tree *t, u32 from, u32 to)
{
	if (!token_take(t, from))
		return false;
	token_leaf_free(t, to);
	return true;
}

void token_resize(struct token_tree *t, u32 depth)
{
	u32 queue;

	(void)atomic64_fetch_add((s64)depth - t->depth, &t->root.free);
	WRITE_ONCE(t->depth, depth);
	/* The addition above is fully ordered.  Pairs with token_leaf_free(). */
	for (queue = 0; queue < t->nr_queues; queue++)
		token_settle(t, queue);
}

s64 token_in_leaves(const struct token_tree *t)
{
	s64 sum = 0;
	u32 queue;

	for (queue = 0; queue < t->nr_queues; queue++)
		sum += atomic64_read(&t->leaf[queue].free);
	return sum;
}

s64 token_total(const struct token_tree *t)
{
	return token_in_leaves(t) + atomic64_read(&t->root.free);
}
