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
extern spinlock_t groups_lock;		/* of flows on their devices; irq-safe */

/* A cgroup, for all devices. */
struct cgroup_host {
	struct blkcg_policy_data cpd;	/* first: freed by the core's pointer */
	spinlock_t lock;
	u32 weight;			/* lock */
	struct list_head devices;	/* lock: of weights for one device */
	struct list_head goals;		/* lock: goals.c */
};

/* Returns NULL for a cgroup that was made before the policy. */
struct cgroup_host *cgroup_host_of(struct blkcg *blkcg);

static inline dev_t queue_dev(const struct request_queue *q)
{
	return q->disk ? disk_devt(q->disk) : 0;
}

/* Takes "MAJ:MIN".  Returns 0, -EINVAL or -ENODEV. */
int dev_parse(const char *s, dev_t *dev);

/* Returns 0 if there is a disk @dev, or -ENODEV.  Task context. */
int disk_check(dev_t dev);

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
 * Takes all flows off a device that is about to go, before the policy becomes
 * inactive on it.  Task context, with no request left.  Takes groups_lock.
 */
void groups_let_go(struct device_host *d);

/*
 * Parts the device and its remaining groups, of removed cgroups, after the
 * policy has become inactive.  The rest as for groups_let_go().
 */
void groups_detach(struct device_host *d);

/* When the module starts and ends; weights_exit() waits for the last group. */
int weights_init(void);
void weights_exit(void);

#endif /* MQFAIR_WEIGHTS_H */
