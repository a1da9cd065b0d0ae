/* SPDX-License-Identifier: GPL-2.0 */
/*
 * topology - the tree queue -> core -> socket -> machine
 *
 * One tree serves the mindicator and the search for the nearest ready queue.
 * The queues of one core have adjacent numbers, and so do the cores of one
 * socket.  So each node covers a contiguous range [first, last) of queues.  A
 * search for the nearest queue goes up from the leaf, and looks in the range of
 * each ancestor until it finds one.
 *
 * Nodes 0 .. nr_queues - 1 are the leaves, in queue order, and children come
 * before their parents.  A core or socket is left out if it has a single node
 * or all queues below it.  It would cost a cache line per update and separate
 * nothing.  The root always exists and is never a leaf.
 *
 * Synchronisation
 *   The tree does not change after topology_init(): any thread may read it.
 */
#ifndef MQFAIR_TOPOLOGY_H
#define MQFAIR_TOPOLOGY_H

#include "port.h"

/* The place of a queue's CPU.  Ids need not be dense. */
struct topo_place {
	u32 core;		/* unique within the machine */
	u32 socket;
};

struct topo_node {
	u32 parent;		/* node index; the root's is its own */
	u32 first, last;	/* queues below: [first, last) */
	u32 *child;		/* node indices */
	u32 nr_children;	/* 0 for a leaf */
};

struct topology {
	u32 nr_queues;
	u32 nr_nodes;
	u32 root;
	struct topo_node *node;
	u32 *children;		/* storage of all child arrays */
};

/*
 * @place has one entry per queue.  The entries of a socket are adjacent, and so
 * are those of a core.  Returns 0, -ENOMEM, or -EINVAL when @nr_queues is 0 or
 * the entries are not in that order.
 */
int topology_init(struct topology *t, const struct topo_place *place,
		  u32 nr_queues);
void topology_deinit(struct topology *t);

#endif /* MQFAIR_TOPOLOGY_H */
