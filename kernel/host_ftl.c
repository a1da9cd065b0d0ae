// SPDX-License-Identifier: GPL-2.0
/* host_ftl - a list of drives; they are few, so it is searched from the start */
#include "host_ftl.h"

#include "device.h"
#include "cgroup.h"

static LIST_HEAD(host_ftl_drives);
static DEFINE_RAW_SPINLOCK(host_ftl_lock);

void mqfair_host_ftl_register(struct mqfair_host_ftl *ftl)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&host_ftl_lock, flags);
	list_add_tail(&ftl->node, &host_ftl_drives);
	raw_spin_unlock_irqrestore(&host_ftl_lock, flags);
}
EXPORT_SYMBOL_GPL(mqfair_host_ftl_register);

void mqfair_host_ftl_unregister(struct mqfair_host_ftl *ftl)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&host_ftl_lock, flags);
	list_del(&ftl->node);
	raw_spin_unlock_irqrestore(&host_ftl_lock, flags);
}
EXPORT_SYMBOL_GPL(mqfair_host_ftl_unregister);

bool mqfair_host_ftl_goes_ahead(const struct request *rq)
{
	const struct elevator_queue *e = rq->q->elevator;
	const struct request_host *r;

	/* While the driver has the request, the elevator stays. */
	if (!e || e->type->elevator_owner != THIS_MODULE ||
	    !mqfair_rq_is_ours(rq))
		return false;
	r = rq_host(rq);
	return r && (r->io.flags & IO_URGENT);
}
EXPORT_SYMBOL_GPL(mqfair_host_ftl_goes_ahead);

static struct mqfair_host_ftl *host_ftl_find(const struct gendisk *disk)
{
	struct mqfair_host_ftl *ftl;

	lockdep_assert_held(&host_ftl_lock);
	list_for_each_entry(ftl, &host_ftl_drives, node)
		if (ftl->disk == disk)
			return ftl;
	return NULL;
}

bool host_ftl_flow_pages(const struct sched *s, struct flow *f,
			 struct flow_pages *pages)
{
	struct device_host *d = container_of(s, struct device_host, sched);
	u32 owner = host_ftl_owner_of(flow_blkcg(f));
	struct host_ftl_pages found = { 0 };
	struct mqfair_host_ftl *ftl;
	unsigned long flags;

	raw_spin_lock_irqsave(&host_ftl_lock, flags);
	ftl = host_ftl_find(d->q->disk);
	if (ftl)
		ftl->ops->owner_pages(ftl->disk, owner, &found);
	raw_spin_unlock_irqrestore(&host_ftl_lock, flags);
	*pages = (struct flow_pages){
		.valid = found.valid,
		.invalid = found.invalid,
		.copied = found.victim_valid,
	};
	return ftl;
}

bool host_ftl_flash_time(const struct sched *s, struct flash_time *time)
{
	struct device_host *d = container_of(s, struct device_host, sched);
	struct host_ftl_busy busy = { 0 };
	struct mqfair_host_ftl *ftl;
	unsigned long flags;
	bool known;

	raw_spin_lock_irqsave(&host_ftl_lock, flags);
	ftl = host_ftl_find(d->q->disk);
	known = ftl && ftl->ops->busy(ftl->disk, &busy);
	raw_spin_unlock_irqrestore(&host_ftl_lock, flags);
	*time = (struct flash_time){
		.read_ns = busy.read_ns,
		.write_ns = busy.write_ns,
		.busy_ns = busy.busy_ns,
		.planes = busy.planes,
	};
	return known;
}
