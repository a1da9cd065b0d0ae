/* SPDX-License-Identifier: GPL-2.0 */
/*
 * mindicator - least published head tag over all queues
 *
 * The mindicator is a tree of minima over the topology.  Each queue owns a
 * leaf, each inner node holds the least value of its children, and the root
 * holds the least of all.  An update climbs only while it changes its parent's
 * minimum, so most updates stay within a core or a socket.
 *
 * Synchronisation
 *	             set(a)   set(b)   min    holder
 *	set(a)         X        -       -       -
 *	set(b)         -        X       -       -
 *   X: the caller serialises these calls (set(a): by the lock of queue a).
 *   -: these calls may run concurrently.
 *
 * Why it is right.  The two actors are setters of different children of one
 * node.
 *   - A setter stores its child by a fully ordered exchange.  Only then does it
 *     compare the node with the children.
 *   - A setter changes the node by compare-and-swap alone.  After a successful
 *     swap it reads the children again, and repeats until the two agree.
 * Consider the last swap on a node.  After it, the first setter found the node
 * equal to the least child.  If the second setter stores its child after that
 * reading, it compares the node later still.  A difference would cause one more
 * swap, so there is none.  Hence every node equals the least of its children
 * once no update is under way.  During an update the root may be too low or too
 * high by that one update; its setter returns only when the root is repaired.
 *
 * The root follows its leaves down as well as up.  The caller keeps virtual
 * time monotone.
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
 * Publishes @head_tag (or VTIME_NONE) for @queue, and returns whether this call
 * changed the root's value.  Fully ordered; pairs with mindicator_set() of any
 * other queue.  If this call did not see the other one, then a read after this
 * call sees all that preceded the other one.
 */
bool mindicator_set(struct mindicator *m, u32 queue, vtime_t head_tag);

/* Least published head tag, or VTIME_NONE. */
static inline vtime_t mindicator_min(const struct mindicator *m)
{
	return (vtime_t)atomic64_read(&m->node[m->topo->root].min);
}

static inline vtime_t mindicator_tag(const struct mindicator *m, u32 queue)
{
	return (vtime_t)atomic64_read(&m->node[queue].min);
}

/*
 * A queue that publishes the least head tag, or nr_queues when no queue
 * publishes one.  Exact when no update is under way.
 */
u32 mindicator_holder(const struct mindicator *m);

#endif /* MQFAIR_MINDICATOR_H */
