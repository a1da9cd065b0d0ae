// SPDX-License-Identifier: GPL-2.0
#include "topology.h"

/* Of the nodes above the queues. */
enum topo_level {
	CORE,
	SOCKET,
	MACHINE,
	LEVELS,
};

static bool same_group(const struct topo_place *a, const struct topo_place *b,
		       enum topo_level level)
{
	switch (level) {
	case CORE:
		return a->core == b->core;
	case SOCKET:
		return a->socket == b->socket;
	default:
		return true;
	}
}

/* The end of the run of queues from @first that are in one group. */
static u32 group_end(const struct topo_place *place, u32 nr_queues, u32 first,
		     enum topo_level level)
{
	u32 last = first + 1;

	while (last < nr_queues &&
	       same_group(&place[first], &place[last], level))
		last++;
	return last;
}

/* Is each core and each socket one run, and each core on one socket? */
static bool places_ordered(const struct topo_place *place, u32 nr_queues)
{
	u32 i, j;

	for (i = 1; i < nr_queues; i++) {
		bool core = place[i].core == place[i - 1].core;
		bool socket = place[i].socket == place[i - 1].socket;

		if (core && !socket)
			return false;
		for (j = 0; j + 1 < i; j++) {
			if (!core && place[j].core == place[i].core)
				return false;
			if (!socket && place[j].socket == place[i].socket)
				return false;
		}
	}
	return true;
}

/* The highest node above @queue so far: that node is still its own parent. */
static u32 node_top(const struct topology *t, u32 queue)
{
	u32 n = queue;

	while (t->node[n].parent != n)
		n = t->node[n].parent;
	return n;
}

/*
 * Puts a node over the highest nodes of [@first, @last).  It does not if there
 * is only one such node, or if the new node would cover all queues, as the root
 * does.  @children is the room for the child array; returns the room behind it.
 */
static u32 *node_add(struct topology *t, enum topo_level level, u32 first,
		     u32 last, u32 *children)
{
	u32 n = t->nr_nodes, nr = 0, i, queue;

	for (queue = first; queue < last; queue = t->node[children[nr++]].last)
		children[nr] = node_top(t, queue);
	if (level != MACHINE && (nr == 1 || last - first == t->nr_queues))
		return children;
	for (i = 0; i < nr; i++)
		t->node[children[i]].parent = n;
	t->node[n] = (struct topo_node){
		.parent = n,
		.first = first,
		.last = last,
		.child = children,
		.nr_children = nr,
	};
	t->nr_nodes++;
	return children + nr;
}

static void nodes_build(struct topology *t, const struct topo_place *place)
{
	u32 *children = t->children;
	enum topo_level level;
	u32 first, last;

	for (first = 0; first < t->nr_queues; first++)
		t->node[first] = (struct topo_node){
			.parent = first,
			.first = first,
			.last = first + 1,
		};
	t->nr_nodes = t->nr_queues;
	for (level = CORE; level < LEVELS; level++) {
		for (first = 0; first < t->nr_queues; first = last) {
			last = group_end(place, t->nr_queues, first, level);
			children = node_add(t, level, first, last, children);
		}
	}
	t->root = t->nr_nodes - 1;
}

int topology_init(struct topology *t, const struct topo_place *place,
		  u32 nr_queues)
{
	/* An inner node has two children or more, but the root may have one. */
	size_t most = 2 * (size_t)nr_queues;

	if (!nr_queues || !places_ordered(place, nr_queues))
		return -EINVAL;
	t->node = port_zalloc(most * sizeof(*t->node));
	if (!t->node)
		return -ENOMEM;
	t->children = port_zalloc(most * sizeof(*t->children));
	if (!t->children) {
		port_free(t->node);
		return -ENOMEM;
	}
	t->nr_queues = nr_queues;
	nodes_build(t, place);
	return 0;
}

void topology_deinit(struct topology *t)
{
	port_free(t->children);
	port_free(t->node);
}
