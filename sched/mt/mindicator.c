// SPDX-License-Identifier: GPL-2.0
#include "mindicator.h"

/* The order of urgency: VTIME_NONE, no head tag at all, comes last. */
static bool tag_before(vtime_t a, vtime_t b)
{
	if (a == VTIME_NONE)
		return false;
	return b == VTIME_NONE || vtime_before(a, b);
}

int mindicator_init(struct mindicator *m, const struct topology *topo)
{
	u32 i;

	m->topo = topo;
	m->node = port_zalloc(topo->nr_nodes * sizeof(*m->node));
	if (!m->node)
		return -ENOMEM;
	for (i = 0; i < topo->nr_nodes; i++)
		atomic64_set(&m->node[i].min, (s64)VTIME_NONE);
	return 0;
}

void mindicator_deinit(struct mindicator *m)
{
	port_free(m->node);
}

static vtime_t children_min(const struct mindicator *m, u32 n)
{
	const struct topo_node *t = &m->topo->node[n];
	vtime_t least = VTIME_NONE;
	u32 i;

	for (i = 0; i < t->nr_children; i++) {
		const struct mindicator_node *child = &m->node[t->child[i]];

		least = vtime_min_tag(least,
				      (vtime_t)atomic64_read(&child->min));
	}
	return least;
}

/* This thread changed a node's value from @from to @to by @swaps exchanges. */
struct change {
	vtime_t from, to;
	u32 swaps;
};

/*
 * Must the parent's value @up follow the child?  It need not if it came from
 * another child and this child has not gone below it.
 *
 * The setter read @up after its fully ordered change of the child.  Another
 * setter may be about to raise the parent to the child's old value.  The second
 * reading of that setter in node_repair() follows its swap, and so sees the
 * child as it is now.
 *
 * After several swaps the parent must follow in any case.  @from is then only
 * the last value that was replaced, and the parent may stand at an earlier one.
 */
static bool parent_follows(const struct change *c, vtime_t up)
{
	return c->swaps > 1 || c->from == up || tag_before(c->to, up);
}

/*
 * Makes node @n the least of its children.
 *
 * The children are read again after each swap, which is fully ordered.  Pairs
 * with the exchange in mindicator_set() and with this swap one level below:
 * each of them is followed by a reading of the node.
 *
 * The acquire orders the reading of the node before that of the children.
 * Pairs with the swap of the setter that wrote the value.  A setter that finds
 * node and children equal must not have read children older than the node.
 */
static struct change node_repair(struct mindicator *m, u32 n)
{
	atomic64_t *node = &m->node[n].min;
	struct change c = { .swaps = 0 };

	for (;;) {
		s64 is = atomic64_read_acquire(node);
		vtime_t least = children_min(m, n);

		if ((vtime_t)is == least)
			return c;
		if (atomic64_try_cmpxchg(node, &is, (s64)least)) {
			c.from = (vtime_t)is;
			c.to = least;
			c.swaps++;
		}
	}
}

bool mindicator_set(struct mindicator *m, u32 queue, vtime_t head_tag)
{
	struct change c = { .to = head_tag, .swaps = 1 };
	u32 n = queue;

	c.from = (vtime_t)atomic64_xchg(&m->node[n].min, (s64)head_tag);
	if (c.from == head_tag)
		return false;
	while (n != m->topo->root) {
		n = m->topo->node[n].parent;
		if (!parent_follows(&c,
				    (vtime_t)atomic64_read(&m->node[n].min)))
			return false;
		c = node_repair(m, n);
		if (!c.swaps)
			return false;
	}
	return true;
}

u32 mindicator_holder(const struct mindicator *m)
{
	const struct topology *topo = m->topo;
	u32 n = topo->root;

	while (topo->node[n].nr_children) {
		const struct topo_node *t = &topo->node[n];
		vtime_t own = (vtime_t)atomic64_read(&m->node[n].min);
		vtime_t least = VTIME_NONE;
		u32 i;

		/* The setter of a lesser child than @own, or of the first, comes here yet. */
		for (i = 0; i < t->nr_children && least != own; i++) {
			u32 child = t->child[i];
			vtime_t head_tag;

			head_tag = (vtime_t)atomic64_read(&m->node[child].min);
			if (tag_before(head_tag, least)) {
				least = head_tag;
				n = child;
			}
		}
		if (least == VTIME_NONE)
			return topo->nr_queues;
	}
	return n;
}
