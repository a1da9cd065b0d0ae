/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cgroup - the blk-cgroup policy of mqfair: cgroups, their flows and settings
 *
 * The block layer makes a group_host for each cgroup that does I/O to a device,
 * through the policy.  The other files look flows up here, by blkg.
 *
 * A cgroup keeps what its files say: weights (weights.c) and latency goals
 * (goals.c), each for one disk, and a default weight.  The cgroup itself keeps
 * them, and not its blkg.  So a setting can be made before a disk has its
 * scheduler, and survives a change of scheduler.  It does not survive its disk:
 * another disk that gets the same MAJ:MIN has another sequence number.
 */
#ifndef MQFAIR_CGROUP_H
#define MQFAIR_CGROUP_H

#include <linux/cgroup.h>
#include "device.h"

extern struct blkcg_policy mqfair_policy;
extern spinlock_t groups_lock;		/* of flows on their devices; irq-safe */

/* A disk.  The kernel gives its MAJ:MIN to another one after its removal. */
struct disk_id {
	dev_t dev;
	u64 seq;
};

static inline bool disk_same(struct disk_id a, struct disk_id b)
{
	return a.dev == b.dev && a.seq == b.seq;
}

static inline struct disk_id disk_id(struct gendisk *disk)
{
	if (!disk)
		return (struct disk_id){ 0 };
	return (struct disk_id){ .dev = disk_devt(disk), .seq = disk->diskseq };
}

/*
 * The disk by which the files of a cgroup name the device.  A path of NVMe
 * multipath has no number of its own, and takes that of its head.
 */
static inline struct disk_id host_disk(const struct device_host *d)
{
	return disk_id(d->head ?: d->q->disk);
}

static inline struct disk_id flow_disk(const struct flow *f)
{
	return host_disk(container_of(f->sched, struct device_host, sched));
}

/* Takes "MAJ:MIN".  Returns 0, -EINVAL or -ENODEV. */
int dev_parse(const char *s, dev_t *dev);

/* Finds the disk that is @dev now.  Returns 0 or -ENODEV.  Task context. */
int disk_find(dev_t dev, struct disk_id *id);

/*
 * The head of @path if that is a path of NVMe multipath, else NULL.  A path is a
 * hidden disk with request queues; its head has a number and none.  The caller
 * calls put_device() for a head.  Task context.
 */
struct gendisk *disk_head_get(const struct gendisk *path);

/* Whether the disk is not removed yet.  Task context. */
bool disk_is_there(struct disk_id id);

struct goal {
	u64 ns;				/* 0: none */
	u32 permille;
};

/* The settings of a cgroup for one disk. */
struct disk_settings {
	struct disk_id disk;
	u32 weight;			/* 0: the default of the cgroup */
	struct goal goal;
};

/* A cgroup, for all devices. */
struct cgroup_host {
	struct blkcg_policy_data cpd;	/* first: freed by the core's pointer */
	spinlock_t lock;
	u32 weight;			/* lock: the default */
	struct list_head disks;		/* lock: struct disk_entry */
};

/* Returns NULL for a cgroup that was made before the policy. */
struct cgroup_host *cgroup_host_of(struct blkcg *blkcg);

/* Returns false if @c has no settings for @disk.  Any context. */
bool settings_get(struct cgroup_host *c, struct disk_id disk,
		  struct disk_settings *to);

/* Copies the settings for the disk number @n of the list.  Task context. */
bool settings_nth(struct cgroup_host *c, u32 n, struct disk_settings *to);

/*
 * @set changes the settings of @c for @disk as @to says.  It is called under the
 * lock of @c.  Settings of an earlier disk of this number end.  Returns 0 or
 * -ENOMEM.  Task context.
 */
int settings_change(struct cgroup_host *c, struct disk_id disk,
		    void (*set)(struct disk_settings *s, const void *to),
		    const void *to);

/* The same, with the disk that has this number in the list, if there is one. */
void settings_clear(struct cgroup_host *c, dev_t dev,
		    void (*set)(struct disk_settings *s, const void *to),
		    const void *to);

/*
 * Returns the nearest cgroup with a goal for @disk, from @blkcg upwards, and the
 * goal; or NULL and no goal.
 */
struct blkcg *goal_source(struct blkcg *blkcg, struct disk_id disk,
			  struct goal *goal);

/*
 * A weight of @blkcg has changed, or a goal on @dev: the flows that it concerns
 * get it.  Task context.
 */
void weight_apply(struct blkcg *blkcg);
void goal_apply(struct blkcg *blkcg, dev_t dev);

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

/* Slow path of group_has_queue(). */
bool group_add_queue(struct flow *f, u32 queue);

/*
 * Has @f memory for @queue?  If not, it gets that now.  It also gets memory for the
 * queue in flow.wanted.  Returns false if there is no memory.  Task context, with no
 * raw lock held.  The lock of a queue may be held.
 */
static inline bool group_has_queue(struct flow *f, u32 queue)
{
	return likely(!flow_awaits_queue(f, queue)) ||
	       group_add_queue(f, queue);
}

/* The cgroup of @f; any context. */
struct blkcg *flow_blkcg(struct flow *f);

/*
 * The number of the flow's cgroup: the inode of its directory.  Any context.
 * The blkg keeps the directory entry after the removal of the cgroup.
 */
static inline u64 flow_cgroup_id(struct flow *f)
{
	return cgroup_id(flow_blkcg(f)->css.cgroup);
}

/*
 * The callbacks of struct host_hooks: a reference on the blkg.  The caller of
 * group_keep() has one already, by a bio or of its own.
 */
void group_keep(struct flow *f);
void group_let_go(struct flow *f);

/*
 * Takes all flows off a device that is about to go, before the policy becomes
 * inactive on it.  Task context, with no request left.  Takes groups_lock.
 */
void groups_leave(struct device_host *d);

/*
 * Parts the device and its remaining groups, of removed cgroups, after the
 * policy has become inactive.  The rest as for groups_leave().
 */
void groups_detach(struct device_host *d);

static inline struct blkcg *blkcg_parent_of(struct blkcg *blkcg)
{
	return css_to_blkcg(blkcg->css.parent);
}

/*
 * When the module starts and ends; no group is left, or just being freed.  Each
 * cgroup but the root gets @files.
 */
int cgroups_init(struct cftype *files);
void cgroups_exit(void);

#endif /* MQFAIR_CGROUP_H */
