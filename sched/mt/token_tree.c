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

static bool node_take(struct token_tree *t, u32 n)
{
	atomic64_t *node = &t->node[n].free;
	s64 free = atomic64_read(node);

	while (free > 0)
		if (atomic64_try_cmpxchg(node, &free, free - 1))
			return true;
	return false;
}

static void node_put(struct token_tree *t, u32 n)
{
	/* The form that returns a value is the one with full order. */
	(void)atomic64_fetch_add(1, &t->node[n].free);
}

/* A slot for the root if it is in debt. */
static bool debt_repay(struct token_tree *t)
{
	atomic64_t *root = &t->node[t->topo->root].free;
	s64 free = atomic64_read(root);

	while (free < 0)
		if (atomic64_try_cmpxchg(root, &free, free + 1))
			return true;
	return false;
}

/* Free slots of @n go against the debt, if there is any. */
static void debt_settle(struct token_tree *t, u32 n)
{
	u32 root = t->topo->root;

	while (unlikely(atomic64_read(&t->node[root].free) < 0) &&
	       node_take(t, n))
		node_put(t, root);
}

/*
 * A free slot for @n.  token_resize() makes the debt (full order) and then
 * looks through the nodes; here the slot is put (full order) before the debt
 * is looked at.  One of the two sees the other: no slot stays beside a debt.
 */
static void slot_put(struct token_tree *t, u32 n)
{
	node_put(t, n);
	debt_settle(t, n);
}

bool token_take(struct token_tree *t, u32 queue)
{
	u32 n = queue;

	while (!node_take(t, n)) {
		if (n == t->topo->root)
			return false;
		n = t->topo->node[n].parent;
	}
	return true;
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

/* From a node below @n, but not from @done or below it. */
static bool below_take(struct token_tree *t, u32 n, u32 done)
{
	const struct topo_node *node = t->topo->node;
	u32 i;

	for (i = node[n].first; i < node[n].last; i++)
		if ((i < node[done].first || i >= node[done].last) &&
		    node_take(t, i))
			return true;
	/* Children come before their parents, the leaves before all others. */
	for (i = t->topo->nr_queues; i < n; i++) {
		bool below = node[i].first >= node[n].first &&
			     node[i].last <= node[n].last;
		bool tried = node[i].first >= node[done].first &&
			     node[i].last <= node[done].last;

		if (below && !tried && node_take(t, i))
			return true;
	}
	return false;
}

bool token_steal(struct token_tree *t, u32 queue)
{
	u32 n = queue, done;

	if (node_take(t, n))
		return true;
	while (n != t->topo->root) {
		done = n;
		n = t->topo->node[n].parent;
		if (node_take(t, n) || below_take(t, n, done))
			return true;
	}
	return false;
}

void token_put(struct token_tree *t, u32 queue)
{
	if (!debt_repay(t))
		slot_put(t, queue);
}

bool token_give(struct token_tree *t, u32 from, u32 to)
{
	if (!node_take(t, from))
		return false;
	slot_put(t, topology_lca(t->topo, from, to));
	return true;
}

void token_resize(struct token_tree *t, u32 depth)
{
	u32 root = t->topo->root, n;

	(void)atomic64_fetch_add((s64)depth - t->depth, &t->node[root].free);
	WRITE_ONCE(t->depth, depth);
	/* Pairs with slot_put(). */
	for (n = 0; n < root; n++)
		debt_settle(t, n);
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
