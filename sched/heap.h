/* SPDX-License-Identifier: GPL-2.0 */
/*
 * heap - intrusive pairing heap in (key, sequence) order
 *
 * Keys are virtual times, compared by vtime_before(); equal keys leave in the
 * order in which they were pushed, those pushed first before all of them.  push is O(1), pop O(log n) amortised,
 * rebuild O(n).  No recursion, no allocation; the caller serialises.
 *
 * Source: Fredman, Sedgewick, Sleator, Tarjan, The Pairing Heap, 1986.
 * Tested by tests/unit/heap.c against a sorted array.
 */
#ifndef MQFAIR_HEAP_H
#define MQFAIR_HEAP_H

#include "vtime.h"

struct heap_node {
	vtime_t key;
	u64 seq;			/* order of arrival among equal keys */
	struct heap_node *child;	/* first of the nodes below */
	struct heap_node *next;		/* next sibling */
};

struct heap {
	struct heap_node *top;
	u64 seq;			/* of the next push */
	u64 first;			/* of the latest push_first */
};

static inline void heap_init(struct heap *h)
{
	h->top = NULL;
	h->seq = 0;
	h->first = 0;
}

static inline struct heap_node *heap_top(const struct heap *h)
{
	return h->top;
}

/* @n is in no heap. */
void heap_push(struct heap *h, struct heap_node *n, vtime_t key);

/* The same, but ahead of its equals. */
void heap_push_first(struct heap *h, struct heap_node *n, vtime_t key);

/* Takes the least node out.  The heap is not empty. */
struct heap_node *heap_pop(struct heap *h);

/*
 * Gives the least node a new key and sinks it to its place.  It keeps its
 * sequence number, hence its turn among equals.
 */
void heap_rekey_top(struct heap *h, vtime_t key);

/* Asks @key for every node's key anew, in one pass. */
void heap_rebuild(struct heap *h, vtime_t (*key)(struct heap_node *n));

#endif /* MQFAIR_HEAP_H */
