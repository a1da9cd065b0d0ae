/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tag_order - the lanes of one queue, by the start tag of their first io
 *
 * A scheduler by start tags sends the io with the least tag first.  The ios of
 * a lane have increasing tags, so the first io of some lane is due.  A heap
 * holds the lanes that have ios.
 *
 * The tag of a waiting io follows from its position in the flow (flow.h).  So it
 * changes with the share of the flow, while the lane is somewhere in the heap.
 * Two numbers tell whether a key in the heap is still the tag:
 *
 *	tag_order.generation	of all shares.  It is old: any lane may have the
 *				least tag now, and all keys are computed anew.
 *	tag_lane.epoch		of one flow, which was moved on the axis of tags.
 *				Such a move only makes tags greater.  So a key
 *				is corrected when its lane comes to the top.
 *
 *	Flow A waits with the tags 0 8 16 in one queue, flow B with 0 24: the
 *	queue sends A B A A B.  After the first A, the weights are exchanged: A
 *	has 8 32 now and B has 0 8.  The generation is old when the queue looks
 *	next, so it computes the keys anew, and sends B A B A.
 *
 * Memory: the scheduler embeds struct tag_order in queue.own.  Its
 * flow_queue_own() begins with struct tag_lane.
 *
 * Locking: the lock of the queue, for each function.
 *
 * Tested by tests/unit/tag_order.c, and under mqfq by tests/sim and tests/mt.
 */
#ifndef MQFAIR_TAG_ORDER_H
#define MQFAIR_TAG_ORDER_H

#include "heap.h"
#include "queue.h"

struct tag_lane {
	struct lane lane;
	struct heap_node node;		/* in tag_order.heap while not empty */
	u64 epoch;			/* flow.seq for which the key holds */
};

struct tag_order {
	struct heap heap;		/* tag_lane.node, by tag of the first io */
	u64 generation;			/* share_generation() of the keys */
};

static inline struct tag_lane *tag_lane_of(struct heap_node *n)
{
	return container_of(n, struct tag_lane, node);
}

/* Returns the start tag of the first io of @l, which is not empty. */
static inline vtime_t tag_lane_first(struct tag_lane *l)
{
	return flow_tag(l->lane.flow, l->lane.fifo.head->pos, &l->epoch);
}

/* Returns the lane that tag_order_first() has returned, or NULL. */
static inline struct tag_lane *tag_order_top(const struct tag_order *t)
{
	struct heap_node *n = heap_top(&t->heap);

	return n ? tag_lane_of(n) : NULL;
}

/* Slow path of tag_order_first(): the keys, or the first of them, are old. */
struct tag_lane *tag_order_correct(struct tag_order *t, struct queue *q,
				   vtime_t vt);

/*
 * Returns the lane with the least tag, which is its node.key, or NULL.  @vt is
 * virtual time now, for flow_refresh().
 */
static inline struct tag_lane *tag_order_first(struct tag_order *t,
					       struct queue *q, vtime_t vt)
{
	u64 generation = share_generation(&q->sched->share);
	struct tag_lane *l = tag_order_top(t);

	if (!l) {
		t->generation = generation;
		return NULL;
	}
	if (likely(t->generation == generation &&
		   l->epoch == (u64)atomic64_read(&l->lane.flow->seq)))
		return l;
	return tag_order_correct(t, q, vt);
}

/* Adds @l.  Its first io has the start tag @tag in @epoch of its flow. */
static inline void tag_order_add(struct tag_order *t, struct tag_lane *l,
				 vtime_t tag, u64 epoch)
{
	l->epoch = epoch;
	heap_push(&t->heap, &l->node, tag);
}

/* The lane at the top has lost its first io: it gets its new place, or leaves. */
static inline void tag_order_took(struct tag_order *t)
{
	struct tag_lane *l = tag_order_top(t);

	if (l->lane.fifo.head)
		heap_rekey_top(&t->heap, tag_lane_first(l));
	else
		heap_pop(&t->heap);
}

#endif /* MQFAIR_TAG_ORDER_H */
