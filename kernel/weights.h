/* SPDX-License-Identifier: GPL-2.0 */
/*
 * weights - the blk-cgroup policy of mqfair: flows, weights, io.stat
 *
 * The block layer makes a group_host for each cgroup that does I/O to a device,
 * through the policy.  The other files look flows up here, by blkg.
 */
#ifndef MQFAIR_WEIGHTS_H
#define MQFAIR_WEIGHTS_H

#include "device.h"

extern struct blkcg_policy mqfair_policy;

static inline struct group_host *group_of(struct blkg_policy_data *pd)
{
	return pd ? container_of(pd, struct group_host, pd) : NULL;
}

/*
 * The flow of @blkg; NULL if the cgroup was removed before the device got its
 * scheduler.  Any context.  A reference on @blkg keeps the flow's memory; a
 * request or groups_lock keeps the flow on its device.
 */
static inline struct flow *group_flow(struct blkcg_gq *blkg)
{
	struct group_host *g = group_of(blkg_to_pd(blkg, &mqfair_policy));

	return g && likely(READ_ONCE(g->set_up)) ? &g->flow : NULL;
}

static inline struct flow *root_flow(struct request_queue *q)
{
	return group_flow(q->root_blkg);
}

/* The cgroup of @f; any context. */
struct blkcg *flow_blkcg(struct flow *f);

/*
 * Takes all flows off a device that is about to go.  Task context, with the
 * policy inactive on the device and no request left.  Takes groups_lock.
 */
void groups_let_go(struct device_host *d);

/* When the module starts and ends; weights_exit() waits for the last group. */
int weights_init(void);
void weights_exit(void);

#endif /* MQFAIR_WEIGHTS_H */
