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

/* A slot from the queue's own path, leaf to root.  Full order if it succeeds. */
bool token_take(struct token_tree *t, u32 queue);

/* Could token_take() succeed now?  Reads only. */
bool token_peek(const struct token_tree *t, u32 queue);

/* A slot from any node, nearest first. */
bool token_steal(struct token_tree *t, u32 queue);

/* Gives a slot back: to the leaf, or against the debt.  Full order. */
void token_put(struct token_tree *t, u32 queue);

/*
 * Moves a free slot from the leaf of @from to the lowest common ancestor of
 * @from and @to.  False if the leaf has none (any more).
 */
bool token_give(struct token_tree *t, u32 from, u32 to);

/* Changes D.  Slots in use are never revoked: see debt, above. */
void token_resize(struct token_tree *t, u32 depth);

/* Are more slots in use than there are, since D was lowered?  A snapshot. */
static inline bool token_in_debt(const struct token_tree *t)
{
	return atomic64_read(&t->node[t->topo->root].free) < 0;
}

/* Sum of the counts of one level (enum topo_level); a snapshot. */
s64 token_level(const struct token_tree *t, u32 level);

/* Sum of all counts; exact when nothing is under way. */
s64 token_total(const struct token_tree *t);

#endif /* MQFAIR_TOKEN_TREE_H */
