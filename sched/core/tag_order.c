// SPDX-License-Identifier: GPL-2.0
/* The slow path of tag_order.h. */
#include "tag_order.h"

/* Returns the tag of the lane's first io by the present shares. */
static vtime_t present_key(struct heap_node *n, const void *vt)
{
	struct tag_lane *l = tag_lane_of(n);

	flow_refresh(l->lane.flow, *(const vtime_t *)vt);
	return tag_lane_first(l);
}

struct tag_lane *tag_order_correct(struct tag_order *t, struct queue *q,
				   vtime_t vt)
{
	u64 generation = share_generation(&q->sched->share);
	struct tag_lane *l;
	vtime_t key;

	if (t->generation != generation) {
		heap_rebuild(&t->heap, present_key, &vt);
		WRITE_ONCE(q->stats.rebuilds, q->stats.rebuilds + 1);
		t->generation = generation;
	}
	for (;;) {
		l = tag_order_top(t);
		if (l->epoch == (u64)atomic64_read(&l->lane.flow->seq))
			return l;
		key = tag_lane_first(l);
		if (key != l->node.key)
			heap_rekey_top(&t->heap, key);
	}
}
