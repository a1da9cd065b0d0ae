// SPDX-License-Identifier: GPL-2.0
#include "cost/cost_estimator.h"
#include "sched.h"

void sched_params_init(const struct sched_ops *ops, struct sched_params *p)
{
	*p = (struct sched_params){ 0 };
	tunables_init(ops->tunables, p);
}

int sched_params_check(const struct sched_ops *ops,
		       const struct sched_params *p)
{
	return tunables_check(ops->tunables, p);
}

void queue_init(struct queue *q, struct sched *s, u32 index)
{
	*q = (struct queue){
		.sched = s,
		.index = index,
		.head_tag = VTIME_NONE,
		.state = DISPATCH_EMPTY,
	};
	heap_init(&q->heap);
}

int sched_init(struct sched *s, const struct sched_ops *ops,
	       const struct sched_params *params,
	       const struct topo_place *place)
{
	int ret;

	if (!s->nr_queues || s->nr_queues > QUEUES_MAX)
		return -EINVAL;
	ret = sched_params_check(ops, params);
	if (ret)
		return ret;
	ret = topology_init(&s->topo, place, s->nr_queues);
	if (ret)
		return ret;

	s->ops = ops;
	s->params = *params;
	s->active = NULL;
	s->drain = false;
	share_tree_init(&s->share);
	port_lock_init(&s->active_lock);
	atomic64_set(&s->stats.wakes, 0);
	atomic64_set(&s->stats.watchdog, 0);
	atomic64_set(&s->stats.blocks, 0);
	ret = cost_estimator_init(s);
	if (ret)
		goto topology;
	ret = ops->init(s);
	if (ret)
		goto cost_estimator;
	return 0;
cost_estimator:
	cost_estimator_deinit(s);
topology:
	topology_deinit(&s->topo);
	return ret;
}

void sched_exit(struct sched *s)
{
	port_assert(!s->active);
	s->ops->exit(s);
	cost_estimator_deinit(s);
	topology_deinit(&s->topo);
}
