// SPDX-License-Identifier: GPL-2.0
#include "token_tree.h"

int token_tree_init(struct token_tree *t, const struct topology *topo,
		    u32 depth)
{
	t->topo = topo;
	t->depth = depth;
	t->node = port_zalloc(topo->nr_nodes * sizeof(*t->node));
	if (!t->node)
		return -ENOMEM;
	atomic64_set(&t->node[topo->root].free, depth);
	return 0;
}

void token_tree_deinit(struct token_tree *t)
{
	port_free(t->node);
}

bool token_repay(struct token_tree *t)
{
	atomic64_t *root = &t->node[t->topo->root].free;
	s64 free = atomic64_read(root);

	while (free < 0)
		if (atomic64_try_cmpxchg(root, &free, free + 1))
			return true;
	return false;
}

void token_settle(struct token_tree *t, u32 n)
{
	while (token_in_debt(t) && token_node_take(t, n))
		token_node_put(t, t->topo->root);
}

bool token_take_above(struct token_tree *t, u32 queue)
{
	u32 n = queue;

	while (n != t->topo->root) {
		n = t->topo->node[n].parent;
		if (token_node_take(t, n))
			return true;
	}
	return false;
}

bool token_peek(const struct token_tree *t, u32 queue)
{
	u32 n = queue;

	while (atomic64_read(&t->node[n].free) <= 0) {
		if (n == t->topo->root)
			return false;
		n = t->topo->node[n].parent;
	}
	return true;
}

static bool leaves_take(struct token_tree *t, u32 first, u32 last)
{
	u32 i = first;

	while ((i = queue_set_find(&t->leaves, i, last)) != QUEUES_MAX) {
		if (token_node_take(t, i))
			return true;
		i++;
	}
	return false;
}

/*
 * Takes a slot from a leaf below @n that is not below @done.  The leaves are
 * asked from @done on, in a ring: queues that look at the same time begin at
 * different leaves.  Nodes between leaves and root have no slots.
 */
static bool below_take(struct token_tree *t, u32 n, u32 done)
{
	const struct topo_node *node = t->topo->node;

	return leaves_take(t, node[done].last, node[n].last) ||
	       leaves_take(t, node[n].first, node[done].first);
}

bool token_steal(struct token_tree *t, u32 queue)
{
	u32 n = queue, done;

	if (token_node_take(t, n))
		return true;
	while (n != t->topo->root) {
		done = n;
		n = t->topo->node[n].parent;
		if (token_node_take(t, n) || below_take(t, n, done))
			return true;
	}
	return false;
}

u32 token_next_leaf(const struct token_tree *t, u32 queue)
{
	return queue_set_find(&t->leaves, queue, t->topo->nr_queues);
}

bool token_give(struct token_tree *t, u32 from, u32 to)
{
	if (!token_take(t, from))
		return false;
	token_node_free(t, to);
	return true;
}

void token_resize(struct token_tree *t, u32 depth)
{
	u32 root = t->topo->root, n;

	(void)atomic64_fetch_add((s64)depth - t->depth, &t->node[root].free);
	WRITE_ONCE(t->depth, depth);
	/* The addition above is fully ordered.  Pairs with token_node_free(). */
	for (n = 0; n < root; n++)
		token_settle(t, n);
}

s64 token_level(const struct token_tree *t, u32 level)
{
	s64 sum = 0;
	u32 i;

	for (i = 0; i < t->topo->nr_nodes; i++)
		if (t->topo->node[i].level == level)
			sum += atomic64_read(&t->node[i].free);
	return sum;
}

s64 token_total(const struct token_tree *t)
{
	s64 sum = 0;
	u32 level;

	for (level = 0; level < TOPO_LEVELS; level++)
		sum += token_level(t, level);
	return sum;
}
