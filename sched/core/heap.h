/* SPDX-License-Identifier: GPL-2.0 */
/*
 * heap - intrusive pairing heap in (key, sequence) order
 *
 * Keys are virtual times, compared by vtime_before().  Nodes with equal keys
 * leave in the order in which they were pushed.  A push is O(1), a pop
 * O(log n) amortised, a rebuild O(n).  No function recurses or allocates, and
 * the caller serialises all calls.  A queue with a single flow has a heap of one
 * node, which these inline functions handle alone.
 *
 * Source: Fredman, Sedgewick, Sleator, Tarjan, The Pairing Heap, 1986.
 * Tested by tests/unit/heap.c against a sorted array.
 */
#ifndef MQFAIR_HEAP_H
#define MQFAIR_HEAP_H

#include "vtime.h"

struct heap_node {
	vtime_t key;
	u64 seq;			/* order among equal keys */
	struct heap_node *child;	/* first of the nodes below */
	struct heap_node *next;		/* next sibling */
};

struct heap {
	struct heap_node *top;
	u64 seq;			/* of the next push */
};

static inline void heap_init(struct heap *h)
{
	h->top = NULL;
	h->seq = 0;
}

static inline struct heap_node *heap_top(const struct heap *h)
{
	return h->top;
}

/* These are slow paths.  Call them with more than one node. */
void heap_meld(struct heap *h, struct heap_node *n);
struct heap_node *heap_pop_meld(struct heap *h);

/* Adds @n, which is in no heap. */
static inline void heap_push(struct heap *h, struct heap_node *n, vtime_t key)
{
	n->key = key;
	n->seq = h->seq++;
	n->child = NULL;
	n->next = NULL;
	if (!h->top)
		h->top = n;
	else
		heap_meld(h, n);
}

/* Takes the least node out.  The heap is not empty. */
static inline struct heap_node *heap_pop(struct heap *h)
{
	struct heap_node *n = h->top;

	if (n->child)
		return heap_pop_meld(h);
	h->top = NULL;
	return n;
}

/*
 * Gives the least node a new key and sinks it to its place.  The node keeps its
 * sequence number, and so its turn among equals.
 */
static inline void heap_rekey_top(struct heap *h, vtime_t key)
{
	struct heap_node *n = h->top;

	n->key = key;
	if (n->child)
		heap_meld(h, heap_pop_meld(h));
}

/* Gives every node the key that @key returns for it and @arg, in one pass. */
void heap_rebuild(struct heap *h,
		  vtime_t (*key)(struct heap_node *n, const void *arg),
		  const void *arg);

#endif /* MQFAIR_HEAP_H */
