/* SPDX-License-Identifier: GPL-2.0 */
/*
 * token_tree - the free slots of the device, kept near the queues that use them
 *
 * The tree has two levels of counts.  A leaf holds free slots for one queue, the
 * root holds slots for any queue.  The sum of all counts is D minus the slots in
 * use: the tree neither loses nor invents a slot.
 *
 * The tree of the paper also has a count for each core and each socket.  A slot
 * that is freed goes into a leaf here, where a queue nearby can steal it.  So a
 * count between leaf and root would always be 0.
 *
 * A queue takes a slot from its leaf, then from the root.  A completion puts its
 * slot into the leaf of its queue.  It may then give the slot to another queue,
 * by moving it into the leaf of that one.
 *
 * Synchronisation
 *	              take  steal  put  give  resize
 *	take            -     -     -     -     -
 *	steal           -     -     -     -     -
 *	put             -     -     -     -     -
 *	give, owe       -     -     -     -     -
 *	resize          -     -     -     -     X
 *   X: the caller serialises these calls.
 *   -: these calls may run concurrently.
 *
 * Why it is right.  The two actors are a taker and a putter at one count.  Each
 * of them changes the count by one, with one atomic read-modify-write.  The
 * taker lowers a count only from a positive value.  So the sum changes exactly
 * by the slots that were taken and put.
 *
 * Debt.  If D is lowered below the slots in use, the difference is a debt: a
 * negative count at the root.  A putter repays the debt before it frees a slot,
 * and a root in debt gives no slot.  A taker may make a small debt, too: token_owe().
 * It does not look into other leaves, so slots may be free beside that debt.
 *
 * Stealing.  Slots in the leaf of an idle queue stay available to the other
 * queues.  A queue that finds no slot in its leaf and the root first announces
 * that it waits, and then steals.  mqfq.c argues the pairing with the completion.
 * A queue asks the leaves after its own first, in a ring: queues that look at the
 * same time begin at different leaves.  Queues with near indexes are near in the
 * machine.
 *
 * Leaves without slots.  The CPUs of one hardware queue use the leaf of one of
 * them, so with 128 CPUs 127 leaves never have a slot.  A set has the leaves that
 * have had one, and a search visits no other leaf.  The putter adds its leaf to
 * the set, then the slot to the leaf (full order), and then looks for waiters.
 * The waiter announces itself (full order), then reads the set, then the leaves.
 * If it misses the leaf, the putter sees the waiter.
 *
 * Source: Hedayati et al., Multi-Queue Fair Queueing, ATC 2019, section 3.2;
 * stealing and debt are our own [R].
 * Tested by tests/unit/token_tree.c, tests/mt/token_tree.c.
 */
#ifndef MQFAIR_TOKEN_TREE_H
#define MQFAIR_TOKEN_TREE_H

#include "queue_set.h"

struct token_node {
	atomic64_t free;
	atomic64_t used;		/* the caller's: slots that it took here */
	bool listed;			/* in token_tree.leaves; any CPU sets it */
} __port_cacheline;

struct token_tree {
	u32 nr_queues;
	struct token_node *leaf;	/* by queue */
	u32 depth;			/* D */
	struct queue_set leaves;	/* that have had a slot */
	struct token_node root;
};

/* All @depth slots start at the root.  0 or -ENOMEM. */
int token_tree_init(struct token_tree *t, u32 nr_queues, u32 depth);
void token_tree_deinit(struct token_tree *t);

/* Are more slots in use than D?  A snapshot. */
static inline bool token_in_debt(const struct token_tree *t)
{
	return atomic64_read(&t->root.free) < 0;
}

/* Slow path of token_take(): a slot from the root. */
bool token_root_take(struct token_tree *t);

/*
 * Takes a slot from the root, where the debt may be @most then.  Fully ordered if it
 * succeeds.
 */
bool token_owe(struct token_tree *t, u32 most);

/* Slow path of token_put(): repays one slot.  False if there is no debt. */
bool token_repay(struct token_tree *t);

/* Moves free slots from a leaf to the root while the root is in debt. */
void token_settle(struct token_tree *t, u32 queue);

/* Takes @n from @count if it has so many.  Fully ordered if it succeeds. */
static inline bool token_count_take_many(atomic64_t *count, s64 n)
{
	s64 left = atomic64_read(count);

	while (left >= n)
		if (atomic64_try_cmpxchg(count, &left, left - n))
			return true;
	return false;
}

static inline bool token_count_take(atomic64_t *count)
{
	return token_count_take_many(count, 1);
}

static inline bool token_leaf_take(struct token_tree *t, u32 queue)
{
	return token_count_take(&t->leaf[queue].free);
}

/* Takes @n slots from the queue's leaf, or none.  Fully ordered if it succeeds. */
static inline bool token_leaf_take_many(struct token_tree *t, u32 queue, u32 n)
{
	return token_count_take_many(&t->leaf[queue].free, n);
}

/* Adds the leaf of @queue to the set of those that have had a slot. */
void token_list_leaf(struct token_tree *t, u32 queue);

/*
 * Puts a free slot into the leaf of @queue.  The putter adds the slot (fully
 * ordered) and then looks at the debt.  The resizer makes the debt (fully
 * ordered) in token_resize() and then looks at the leaves.  One of the two sees
 * the other, so no free slot stays beside a debt of the resizer.
 */
static inline void token_leaf_free(struct token_tree *t, u32 queue)
{
	if (unlikely(!READ_ONCE(t->leaf[queue].listed)))
		token_list_leaf(t, queue);
	/*
	 * The form that returns a value is fully ordered.  Pairs with
	 * token_resize(), and with the announcement of a queue that waits.
	 */
	(void)atomic64_fetch_add(1, &t->leaf[queue].free);
	if (unlikely(token_in_debt(t)))
		token_settle(t, queue);
}

#ifdef TOKEN_TREE_REPLACED	/* by tests/mt/ablation */
bool token_take(struct token_tree *t, u32 queue);
void token_put(struct token_tree *t, u32 queue);
#else
/*
 * Takes a slot from the queue's leaf or from the root.  Fully ordered if it
 * succeeds.
 */
static inline bool token_take(struct token_tree *t, u32 queue)
{
	return token_leaf_take(t, queue) || token_root_take(t);
}

/*
 * Gives a slot back, to the leaf or against the debt.  Fully ordered; pairs
 * with the announcement of a queue that waits, in slots_wait().
 */
static inline void token_put(struct token_tree *t, u32 queue)
{
	if (likely(!token_in_debt(t)) || !token_repay(t))
		token_leaf_free(t, queue);
}
#endif

/* Could token_take() succeed now?  It only reads. */
bool token_peek(const struct token_tree *t, u32 queue);

/*
 * Takes a slot from any node: from the queue's leaf, from the root, or from the
 * next leaf of a queue that is not in @except.  @except may be NULL.
 */
bool token_steal(struct token_tree *t, u32 queue,
		 const struct queue_set *except);

/* Takes a slot from the root, or from the next leaf of a queue not in @except. */
bool token_take_except(struct token_tree *t, u32 queue,
		       const struct queue_set *except);

/* Could token_take_except() succeed now?  It only reads. */
bool token_peek_except(const struct token_tree *t,
		       const struct queue_set *except);

/*
 * Moves a free slot from the leaf of @from, or from the root, to the leaf of @to.
 * False if both have none (any more).  Fully ordered if it succeeds.
 */
bool token_give(struct token_tree *t, u32 from, u32 to);

/* Changes D.  Slots in use are never revoked: they become a debt, see above. */
void token_resize(struct token_tree *t, u32 depth);

/* Sum of the counts of all leaves.  A snapshot. */
s64 token_in_leaves(const struct token_tree *t);

/* Sum of all counts.  Exact when no call is under way. */
s64 token_total(const struct token_tree *t);

#endif /* MQFAIR_TOKEN_TREE_H */
