// SPDX-License-Identifier: GPL-2.0
/*
 * The interface of the token tree on one counter of free slots.
 *
 * It is for comparison, as in Hedayati et al., Multi-Queue Fair Queueing, ATC
 * 2019, figure 11.
 */
#include "flat.h"

int token_tree_init(struct token_tree *t, u32 nr_queues, u32 depth)
{
	t->nr_queues = nr_queues;
	t->depth = depth;
	atomic64_set(&t->root.free, depth);
	return 0;
}

void token_tree_deinit(struct token_tree *t)
{
	(void)t;
}

bool token_take(struct token_tree *t, u32 queue)
{
	(void)queue;
	return token_count_take(&t->root.free);
}

bool token_peek(const struct token_tree *t, u32 queue)
{
	(void)queue;
	return atomic64_read(&t->root.free) > 0;
}

void token_put(struct token_tree *t, u32 queue)
{
	(void)queue;
	(void)atomic64_fetch_add(1, &t->root.free);
}

void token_resize(struct token_tree *t, u32 depth)
{
	(void)atomic64_fetch_add((s64)depth - t->depth, &t->root.free);
	t->depth = depth;
}

s64 token_in_leaves(const struct token_tree *t)
{
	(void)t;
	return 0;
}

s64 token_total(const struct token_tree *t)
{
	return atomic64_read(&t->root.free);
}
