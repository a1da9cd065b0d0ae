// SPDX-License-Identifier: GPL-2.0
/*
 * owner - the cgroups that own flash pages, as they come and go
 *
 * The pages of a request belong to the cgroup of its bio.  When a cgroup is
 * removed its pages pass to its parent.  Pages that outstanding commands are
 * about to write pass to the parent too.
 *
 * The kernel's tracepoint tells of a removal.  A blk-cgroup policy would tell of
 * it too, but only on devices where it is active.  It would do so later, because
 * a blkg lives until the last page of its cgroup has left the page cache.
 *
 * No request keeps a removed owner.  The kernel marks the cgroup as removed and
 * then calls the tracepoint, which takes the lock of each drive.  A request that
 * took that lock earlier is in ssd_drive.outstanding and is passed on.  A
 * request that takes it later sees the mark and belongs to the parent.
 */
#include "ssd.h"

#include <linux/tracepoint.h>
#include <trace/events/cgroup.h>

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

	raw_spin_lock_irqsave(&d->lock, flags);
	list_for_each_entry(r, &d->outstanding, node)
		if (r->cmd.owner == from)
			r->cmd.owner = to;
	flash_owner_move(d->flash, from, to);
	raw_spin_unlock_irqrestore(&d->lock, flags);
}

/* The probe of the tracepoint; any context in which a cgroup is removed. */
static void cgroup_removed(void *data, struct cgroup *cgroup, const char *path)
{
	struct cgroup *parent = cgroup_parent(cgroup);
	struct ssd_drive *d;
	unsigned long flags;

	/* Numbers are unique within one hierarchy only. */
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
		pr_err("mqfair-ssd: this kernel has no tracepoint cgroup_rmdir: the pages of a removed cgroup cannot pass to its parent\n");
		return -EOPNOTSUPP;
	}
	/* A probe of another type does not compile. */
	check_trace_callback_type_cgroup_rmdir(cgroup_removed);
	return tracepoint_probe_register(removal, cgroup_removed, NULL);
}

void owners_unwatch(void)
{
	tracepoint_probe_unregister(removal, cgroup_removed, NULL);
	tracepoint_synchronize_unregister();
}
