/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mindicator - least published lead over all queues
 *
 * A tree of minima over the topology: each queue owns a leaf, each inner node
 * holds the least of its children, the root the least of all.  An update
 * climbs only while it changes its parent's minimum, so most updates stay
 * within a core or a socket.
 *
 *	             set(a)   set(b)   min    holder
 *	set(a)         X        -       -       -
 *	set(b)         -        X       -       -
 *
 * X: the caller serialises (a queue's leaf belongs to its queue lock);
 * -: may run at once.
 *
 * Why it is right.  A node is changed only by compare-and-swap, and whoever
 * changed it (or found it equal) read the children after its own child's
 * store, which is a full-order exchange.  After a successful swap the children
 * are read again and the node mended if they moved.  Take the last swap on a
 * node: its author's second reading found the node equal to the least child;
 * any later store to a child is followed by its own comparison with the node.
 * Hence once no update is under way every node equals the least of its
 * children.  While one is under way the root may be too low or too high by
 * that one update, and the updater is not done before it has mended it.
 *
 * The monotone virtual time is kept by the caller: the root itself follows its
 * leaves down as well as up.
 *
 * Source: Liu, Luchangco, Spear, Mindicators: A Scalable Approach to
 * Quiescence, ICDCS 2013, as used by Hedayati et al., Multi-Queue Fair
 * Queueing, ATC 2019, section 3.1.
 * Tested by tests/unit/mindicator.c (against a scan), tests/mt/mindicator.c.
 */
#ifndef MQFAIR_MINDICATOR_H
#define MQFAIR_MINDICATOR_H

#include "topology.h"
#include "core/vtime.h"

struct mindicator_node {
	atomic64_t min;			/* vtime_t or VTIME_NONE */
} __port_cacheline;

struct mindicator {
	const struct topology *topo;
	struct mindicator_node *node;	/* by node index */
};

/* All leaves start at VTIME_NONE.  0 or -ENOMEM. */
int mindicator_init(struct mindicator *m, const struct topology *topo);
void mindicator_deinit(struct mindicator *m);

/*
 * Publishes @lead (or VTIME_NONE) for @queue.  Full order: a read after it
 * sees whatever preceded any set that this one did not see.
 * Returns whether the root's value changed by it.
 */
bool mindicator_set(struct mindicator *m, u32 queue, vtime_t head_tag);

/* Least published lead, or VTIME_NONE. */
static inline vtime_t mindicator_min(const struct mindicator *m)
{
	return (vtime_t)atomic64_read(&m->node[m->topo->root].min);
}

static inline vtime_t mindicator_tag(const struct mindicator *m, u32 queue)
{
	return (vtime_t)atomic64_read(&m->node[queue].min);
}

/*
 * A queue that publishes the least lead, or nr_queues when nothing is
 * published.  Exact when no update is under way.
 */
u32 mindicator_holder(const struct mindicator *m);

#endif /* MQFAIR_MINDICATOR_H */
