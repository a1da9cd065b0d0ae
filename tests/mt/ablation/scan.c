// SPDX-License-Identifier: GPL-2.0
/*
 * The interface of the mindicator on an array: each update reads all queues.
 *
 * It is for comparison, as in Hedayati et al., Multi-Queue Fair Queueing, ATC
 * 2019, figure 9.
 */
#include "sched/mt/mindicator.h"

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

static vtime_t scan(const struct mindicator *m)
{
	vtime_t least = VTIME_NONE;
	u32 q;

	for (q = 0; q < m->topo->nr_queues; q++)
		least = vtime_min_tag(least, mindicator_tag(m, q));
	return least;
}

bool mindicator_set(struct mindicator *m, u32 queue, vtime_t head_tag)
{
	atomic64_t *root = &m->node[m->topo->root].min;
	bool changed = false;

	(void)atomic64_xchg(&m->node[queue].min, (s64)head_tag);
	for (;;) {
		s64 is = atomic64_read_acquire(root);
		vtime_t least = scan(m);

		if ((vtime_t)is == least)
			return changed;
		if (atomic64_try_cmpxchg(root, &is, (s64)least))
			changed = true;
	}
}

u32 mindicator_holder(const struct mindicator *m)
{
	vtime_t least = scan(m);
	u32 q;

	for (q = 0; least != VTIME_NONE && q < m->topo->nr_queues; q++)
		if (mindicator_tag(m, q) == least)
			return q;
	return m->topo->nr_queues;
}
