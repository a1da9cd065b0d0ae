/* SPDX-License-Identifier: GPL-2.0 */
/*
 * token_tree - the device's free slots, kept near those who use them
 *
 * A count per node of the topology: a leaf holds slots kept for one queue, an
 * inner node slots for its core, socket or the machine.  All counts together
 * are D minus the slots in use; nothing is lost or invented.  A queue takes
 * from its leaf, then from its ancestors; a completion puts its slot into the
 * leaf, and may give it on to another queue by way of their lowest common
 * ancestor, where it stays in reach of everybody between the two.
 *
 *	              take  steal  put  give  resize
 *	take            -     -     -     -     -
 *	steal           -     -     -     -     -
 *	put             -     -     -     -     -
 *	give            -     -     -     -     -
 *	resize          -     -     -     -     X
 *
 * X: the caller serialises; -: may run at once.
 *
 * Why it is right.  Every change is one atomic read-modify-write of one count
 * by one, and a count is lowered only from a positive value, so the sum
 * changes exactly by what was taken and put.  Lowering D below the slots in
 * use leaves the difference as debt: a negative count at the root, which puts
 * repay before anything else; a root in debt gives nothing.
 *
 * Slots in the leaf of an idle queue are not lost to the others: whoever finds
 * none on its own path announces itself first and then steals (see mqfq.c,
 * where the pairing with the completion is argued).
 *
 * Source: Hedayati et al., Multi-Queue Fair Queueing, ATC 2019, section 3.2;
 * stealing and debt are ours.
 * Tested by tests/unit/token_tree.c, tests/mt/token_tree.c.
 */
#ifndef MQFAIR_TOKEN_TREE_H
#define MQFAIR_TOKEN_TREE_H

#include "topology.h"

struct token_node {
	atomic64_t free;
} __port_cacheline;

struct token_tree {
	const struct topology *topo;
	struct token_node *node;	/* by node index */
	u32 depth;			/* D */
};

/* All @depth slots start at the root.  0 or -ENOMEM. */
int token_tree_init(struct token_tree *t, const struct topology *topo,
		    u32 depth);
void token_tree_deinit(struct token_tree *t);

/* Are more slots in use than there are, since D was lowered?  A snapshot. */
static inline bool token_in_debt(const struct token_tree *t)
{
	return atomic64_read(&t->node[t->topo->root].free) < 0;
}

/* Of what follows, where the leaf has none or the root is in debt. */
bool token_take_above(struct token_tree *t, u32 queue);
bool token_repay(struct token_tree *t);

/* Free slots of node @n go against the debt, if there is any. */
void token_settle(struct token_tree *t, u32 n);

static inline bool token_node_take(struct token_tree *t, u32 n)
{
	atomic64_t *node = &t->node[n].free;
	s64 free = atomic64_read(node);

	while (free > 0)
		if (atomic64_try_cmpxchg(node, &free, free - 1))
			return true;
	return false;
}

static inline void token_node_put(struct token_tree *t, u32 n)
{
	/* The form that returns a value is the one with full order. */
	(void)atomic64_fetch_add(1, &t->node[n].free);
}

/*
 * A free slot for @n.  token_resize() makes the debt (full order) and then
 * looks through the nodes; here the slot is put (full order) before the debt
 * is looked at.  One of the two sees the other: no slot stays beside a debt.
 */
static inline void token_node_free(struct token_tree *t, u32 n)
{
	token_node_put(t, n);
	if (unlikely(token_in_debt(t)))
		token_settle(t, n);
}

#ifdef TOKEN_TREE_REPLACED	/* by tests/mt/ablation */
bool token_take(struct token_tree *t, u32 queue);
void token_put(struct token_tree *t, u32 queue);
#else
/* A slot from the queue's own path, leaf to root.  Full order if it succeeds. */
static inline bool token_take(struct token_tree *t, u32 queue)
{
	return token_node_take(t, queue) || token_take_above(t, queue);
}

/* Gives a slot back: to the leaf, or against the debt.  Full order. */
static inline void token_put(struct token_tree *t, u32 queue)
{
	if (likely(!token_in_debt(t)) || !token_repay(t))
		token_node_free(t, queue);
}
#endif

/* Could token_take() succeed now?  Reads only. */
bool token_peek(const struct token_tree *t, u32 queue);

/* A slot from any node, nearest first. */
bool token_steal(struct token_tree *t, u32 queue);

/*
 * Moves a free slot from the leaf of @from to the lowest common ancestor of
 * @from and @to.  False if the leaf has none (any more).
 */
bool token_give(struct token_tree *t, u32 from, u32 to);

/* Changes D.  Slots in use are never revoked: see debt, above. */
void token_resize(struct token_tree *t, u32 depth);

/* Sum of the counts of one level (enum topo_level); a snapshot. */
s64 token_level(const struct token_tree *t, u32 level);

/* Sum of all counts; exact when nothing is under way. */
s64 token_total(const struct token_tree *t);

#endif /* MQFAIR_TOKEN_TREE_H */
