/* SPDX-License-Identifier: GPL-2.0 */
/*
 * topology - the tree queue -> core -> socket -> machine
 *
 * One tree serves the mindicator, the token tree and the search for the
 * nearest ready queue.  Queues are numbered so that those of one core are
 * neighbours, and the cores of one socket too: each node then covers the
 * contiguous range [first, last) of queues, and "nearest" is the range of the
 * lowest ancestor that has what is looked for.
 *
 * Nodes 0 .. nr_queues - 1 are the leaves, in queue order, and children come
 * before their parents.  A core or socket with a single node below it, or with
 * all queues below it, is left out: it would cost a cache line per update and
 * separate nothing.  The root always exists and is never a leaf.
 *
 * Immutable after topology_init(): any thread may read it.
 */
#ifndef MQFAIR_TOPOLOGY_H
#define MQFAIR_TOPOLOGY_H

#include "port.h"

enum topo_level {
	TOPO_QUEUE,
	TOPO_CORE,
	TOPO_SOCKET,
	TOPO_MACHINE,
	TOPO_LEVELS,
};

/* Where a queue's CPU is.  Ids need not be dense. */
struct topo_place {
	u32 core;		/* unique within the machine */
	u32 socket;
};

struct topo_node {
	u32 parent;		/* node index; the root's is its own */
	u32 first, last;	/* queues below: [first, last) */
	u32 *child;		/* node indices */
	u32 nr_children;	/* 0 for a leaf */
	u32 level;		/* enum topo_level */
};

struct topology {
	u32 nr_queues;
	u32 nr_nodes;
	u32 root;
	struct topo_node *node;
	u32 *children;		/* storage of all child arrays */
};

/*
 * @place: one per queue, those of a socket and within it of a core adjacent.
 * 0, -ENOMEM, or -EINVAL when @nr_queues is 0 or the order is not as stated.
 */
int topology_init(struct topology *t, const struct topo_place *place,
		  u32 nr_queues);
void topology_deinit(struct topology *t);

/* Lowest node that has both queues below it; the leaf itself if a == b. */
u32 topology_lca(const struct topology *t, u32 a, u32 b);

const char *topology_level_name(enum topo_level level);

#endif /* MQFAIR_TOPOLOGY_H */
