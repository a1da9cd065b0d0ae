// SPDX-License-Identifier: GPL-2.0
/* The common part of a scheduler on a device: its memory, init and exit. */
#include "sched.h"

void sched_params_init(const struct sched_ops *ops, struct sched_params *p)
{
	/* A scheduler without the tunable `depth` holds no request back. */
	*p = (struct sched_params){ .depth = DEPTH_MAX };
	tunables_init(ops->tunables, p);
}

int sched_params_check(const struct sched_ops *ops,
		       const struct sched_params *p)
{
	return tunables_check(ops->tunables, p);
}

/* Each parameter is a u32, so a reader never sees half of a value. */
void sched_params_take(struct sched *s, const struct sched_params *p)
{
	const u32 *from = (const u32 *)p->own;
	u32 *to = (u32 *)s->params.own;
	u32 i, n = s->ops->params_bytes / (u32)sizeof(u32);

	WRITE_ONCE(s->params.depth_most, p->depth_most);
	WRITE_ONCE(s->params.isolation, p->isolation);
	cost_set(&s->params.cost, &p->cost);
	for (i = 0; i < n; i++)
		if (to[i] != from[i])
			WRITE_ONCE(to[i], from[i]);
}

void queue_init(struct queue *q, struct sched *s, u32 index)
{
	*q = (struct queue){
		.sched = s,
		.index = index,
		.home = index,
		.head_tag = VTIME_NONE,
		.state = DISPATCH_EMPTY,
	};
}

static void sched_free_own(struct sched *s)
{
	/* The memory is one piece, and the first queue's part begins it. */
	port_free(s->queue[0]->own);
	port_free(s->own);
	s->own = NULL;
}

/* 0, or -ENOMEM with nothing allocated. */
static int sched_alloc_own(struct sched *s, const struct sched_ops *ops)
{
	u32 bytes = whole_lines(ops->queue_bytes), i;
	char *own = port_zalloc((size_t)max(bytes, 1U) * s->nr_queues);

	if (!own)
		return -ENOMEM;
	for (i = 0; i < s->nr_queues; i++)
		s->queue[i]->own = own + (size_t)i * bytes;
	s->own = port_zalloc(max(ops->bytes, 1U));
	if (s->own)
		return 0;
	sched_free_own(s);
	return -ENOMEM;
}

static void sched_set_up(struct sched *s, const struct sched_ops *ops,
			 const struct sched_params *params)
{
	s->ops = ops;
	s->params = *params;
	s->active = NULL;
	s->active_end = &s->active;
	s->cost_estimator = NULL;
	isolation_init(&s->isolation);
	urgent_init(&s->urgent);
	s->latency_ns = 0;
	share_tree_init(&s->share);
	port_lock_init(&s->active_lock);
	s->stats = (struct sched_stats){ 0 };
}

int sched_init(struct sched *s, const struct sched_ops *ops,
	       const struct sched_params *params,
	       const struct topo_place *place)
{
	int ret;

	if (!s->nr_queues || s->nr_queues > QUEUES_MAX ||
	    ops->params_bytes > sizeof(params->own))
		return -EINVAL;
	ret = sched_params_check(ops, params);
	if (ret)
		return ret;
	ret = topology_init(&s->topo, place, s->nr_queues);
	if (ret)
		return ret;
	ret = sched_alloc_own(s, ops);
	if (ret)
		goto topology;
	sched_set_up(s, ops, params);
	ret = ops->init(s);
	if (!ret)
		return 0;
	sched_free_own(s);
topology:
	topology_deinit(&s->topo);
	return ret;
}

u64 sched_dispatched(const struct sched *s)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		sum += READ_ONCE(s->queue[i]->stats.dispatched);
	return sum;
}

void sched_exit(struct sched *s)
{
	port_assert(!s->active);
	s->ops->exit(s);
	sched_free_own(s);
	topology_deinit(&s->topo);
}
