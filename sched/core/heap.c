// SPDX-License-Identifier: GPL-2.0
/* The part of heap.h for more than one node. */
#include "heap.h"

static bool node_before(const struct heap_node *a, const struct heap_node *b)
{
	if (a->key != b->key)
		return vtime_before(a->key, b->key);
	return (s64)(a->seq - b->seq) < 0;
}

/* Both are roots (next is unused).  The lesser one takes the other below it. */
static struct heap_node *node_meld(struct heap_node *a, struct heap_node *b)
{
	struct heap_node *up, *down;

	if (!a)
		return b;
	if (!b)
		return a;
	up = node_before(b, a) ? b : a;
	down = up == a ? b : a;
	down->next = up->child;
	up->child = down;
	return up;
}

/*
 * Melds siblings in pairs from left to right, then the pairs from right to
 * left.  These two passes give the heap its bound.
 */
static struct heap_node *node_meld_siblings(struct heap_node *n)
{
	struct heap_node *pairs = NULL, *root = NULL;

	while (n) {
		struct heap_node *a = n, *b = n->next, *pair;

		n = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		pair = node_meld(a, b);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct heap_node *pair = pairs;

		pairs = pair->next;
		pair->next = NULL;
		root = node_meld(root, pair);
	}
	return root;
}

void heap_meld(struct heap *h, struct heap_node *n)
{
	h->top = node_meld(h->top, n);
}

struct heap_node *heap_pop_meld(struct heap *h)
{
	struct heap_node *n = h->top;

	h->top = node_meld_siblings(n->child);
	n->child = NULL;
	return n;
}

void heap_rebuild(struct heap *h,
		  vtime_t (*key)(struct heap_node *n, const void *arg),
		  const void *arg)
{
	struct heap_node *todo = h->top, *root = NULL;

	while (todo) {
		struct heap_node *n = todo, *child = n->child;

		todo = n->next;
		while (child) {
			struct heap_node *next = child->next;

			child->next = todo;
			todo = child;
			child = next;
		}
		n->child = NULL;
		n->next = NULL;
		n->key = key(n, arg);
		root = node_meld(root, n);
	}
	h->top = root;
}
