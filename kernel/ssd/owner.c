// SPDX-License-Identifier: GPL-2.0
/*
 * owner - whose pages are those: cgroups that come and go
 *
 * A request's pages belong to the cgroup of its bio.  When a cgroup is removed
 * its pages pass to its parent, and so do those that commands under way are
 * about to write.
 *
 * The removal is heard of by the kernel's tracepoint for it.  A blk-cgroup
 * policy would hear of it too, but only where it is active, and later: the
 * group lives on until its last page of cache is gone.
 *
 * Nothing is missed: the kernel marks a cgroup as removed, then calls the
 * tracepoint, which takes the lock of each drive.  A request that holds the
 * lock before that is in ssd_drive.outstanding and is passed on; one that
 * takes it later sees the mark and is the parent's from the beginning.
 */
#include "ssd.h"

#include <linux/tracepoint.h>

static LIST_HEAD(drives);
static DEFINE_SPINLOCK(drives_lock);

static struct tracepoint *removal;

u32 owner_of_request(const struct request *rq)
{
	if (!rq->bio || !rq->bio->bi_blkg)
		return FLASH_NO_OWNER;
	return host_ftl_owner_of(rq->bio->bi_blkg->blkcg);
}

void owner_pass_on(struct ssd_drive *d, u32 from, u32 to)
{
	struct ssd_request *r;
	unsigned long flags;

	spin_lock_irqsave(&d->lock, flags);
	list_for_each_entry(r, &d->outstanding, node)
		if (r->cmd.owner == from)
			r->cmd.owner = to;
	flash_owner_move(d->flash, from, to);
	spin_unlock_irqrestore(&d->lock, flags);
}

static void cgroup_removed(void *data, struct cgroup *cgroup, const char *path)
{
	struct cgroup *parent = cgroup_parent(cgroup);
	struct ssd_drive *d;
	unsigned long flags;

	/* Another hierarchy has numbers of its own. */
	if (cgroup->root != io_cgrp_subsys.root || !parent)
		return;
	spin_lock_irqsave(&drives_lock, flags);
	list_for_each_entry(d, &drives, node)
		owner_pass_on(d, host_ftl_owner_number(cgroup),
			      host_ftl_owner_number(parent));
	spin_unlock_irqrestore(&drives_lock, flags);
}

void owners_add(struct ssd_drive *d)
{
	unsigned long flags;

	spin_lock_irqsave(&drives_lock, flags);
	list_add_tail(&d->node, &drives);
	spin_unlock_irqrestore(&drives_lock, flags);
}

void owners_remove(struct ssd_drive *d)
{
	unsigned long flags;

	spin_lock_irqsave(&drives_lock, flags);
	list_del(&d->node);
	spin_unlock_irqrestore(&drives_lock, flags);
}

static void find_removal(struct tracepoint *tp, void *data)
{
	if (!strcmp(tp->name, "cgroup_rmdir"))
		removal = tp;
}

int owners_watch(void)
{
	for_each_kernel_tracepoint(find_removal, NULL);
	if (!removal) {
		pr_err("mqfair-ssd: this kernel has no tracepoint cgroup_rmdir: pages of removed cgroups could not be passed on\n");
		return -EOPNOTSUPP;
	}
	return tracepoint_probe_register(removal, cgroup_removed, NULL);
}

void owners_unwatch(void)
{
	tracepoint_probe_unregister(removal, cgroup_removed, NULL);
	tracepoint_synchronize_unregister();
}
