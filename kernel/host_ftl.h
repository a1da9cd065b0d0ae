/* SPDX-License-Identifier: GPL-2.0 */
/*
 * host_ftl - the map registry: drivers that keep their drive's map tell a
 * scheduler which cgroup owns how many flash pages
 *
 * A drive normally hides its flash translation layer.  A host-managed FTL lives
 * in the driver.  Such a driver knows the cgroup that owns each flash page, and
 * the time that each read, program and erase takes.  It registers for its disk.
 * The scheduler of that disk can then charge each cgroup for the garbage
 * collection that it causes, and each request its true cost.
 *
 * Such a driver also keeps a queue for each plane, and may order it.  The
 * requests that a scheduler let pass all others go ahead there too:
 * mqfair_host_ftl_goes_ahead().  So a tenant that keeps few requests does not
 * wait behind those of others inside the drive.
 *
 * An *owner* is the number by which a driver counts a cgroup.  The owner of a
 * request is host_ftl_owner_of() the cgroup of its bio, asked when the request
 * reaches the driver.  Owner 0 is no cgroup.  A cgroup that has been removed
 * counts as its nearest ancestor that exists.  So the driver gives the pages of
 * a removed cgroup to the parent.
 *
 * Context.  A driver may register and unregister in any context.  A scheduler
 * may ask in any context, with any of mqfair's locks held.  The operations of
 * the driver are called under host_ftl_lock with interrupts off; they may not
 * sleep and may not call back.  A lock that they take is a raw spin lock, because
 * host_ftl_lock is one, and so are the locks of mqfair above it.  No operation
 * runs after mqfair_host_ftl_unregister() has returned.
 *
 * Lock order: mqfair's locks > host_ftl_lock > the driver's locks.
 */
#ifndef MQFAIR_HOST_FTL_H
#define MQFAIR_HOST_FTL_H

#include "compat.h"

struct flash_time;
struct flow;
struct flow_pages;
struct sched;

/* The flash pages of one owner. */
struct host_ftl_pages {
	u64 valid;		/* flash pages with current data */
	u64 invalid;		/* with overwritten data, not yet collected */
	u64 victim_valid;	/* valid pages that collection has copied so far */
};

/* Working time, summed over planes.  Time spent waiting does not count. */
struct host_ftl_busy {
	u64 read_ns;		/* for reads of commands */
	u64 write_ns;		/* for writes of commands, with their collection */
	u64 busy_ns;		/* for both, counted when it is spent */
	u32 planes;		/* number of planes */
};

struct mqfair_host_ftl_ops {
	/* False, with zeroes, if this owner has written nothing. */
	bool (*owner_pages)(struct gendisk *disk, u32 owner,
			    struct host_ftl_pages *pages);

	/* The planes' time since the disk was added; false if not known. */
	bool (*busy)(struct gendisk *disk, struct host_ftl_busy *busy);
};

/* The driver owns this memory and keeps it while it is registered. */
struct mqfair_host_ftl {
	struct list_head node;
	struct gendisk *disk;
	const struct mqfair_host_ftl_ops *ops;
};

/* Call before the disk is added, with @ftl->disk and @ftl->ops set. */
void mqfair_host_ftl_register(struct mqfair_host_ftl *ftl);

/* Call after the disk is gone. */
void mqfair_host_ftl_unregister(struct mqfair_host_ftl *ftl);

/*
 * Does @rq, which has reached the driver, go before others in queues that the
 * driver keeps?  It does if the scheduler let it pass all others.  False for a
 * request of another scheduler.  Any context, while the driver has @rq.
 */
bool mqfair_host_ftl_goes_ahead(const struct request *rq);

/*
 * The pages of @f, for sched.map.flow_pages.  A request or the active list keeps
 * @f.  False if the device has no host-managed FTL.
 */
bool host_ftl_flow_pages(const struct sched *s, struct flow *f,
		    struct flow_pages *pages);

/* The planes' time, for sched.map.flash_time.  False if it is not known. */
bool host_ftl_flash_time(const struct sched *s, struct flash_time *time);

/*
 * The kernel's number of the cgroup, without the generation above bit 31.  No
 * two cgroups that exist at the same time share it.  @cgroup is in the
 * hierarchy of the io controller.
 */
static inline u32 host_ftl_owner_number(const struct cgroup *cgroup)
{
	return (u32)cgroup_id(cgroup);
}

/*
 * Pairs with the kernel's removal of a cgroup.  The kernel marks the cgroup
 * first and then calls the listeners.  A listener takes the driver's lock and
 * gives the pages to the parent.  Under that lock this function returns no
 * removed cgroup from then on.
 */
static inline u32 host_ftl_owner_of(struct blkcg *blkcg)
{
	struct cgroup_subsys_state *css = &blkcg->css;

	while (css->parent &&
	       (READ_ONCE(css->flags) & CSS_DYING ||
		!(READ_ONCE(css->cgroup->self.flags) & CSS_ONLINE)))
		css = css->parent;
	return host_ftl_owner_number(css->cgroup);
}

#endif /* MQFAIR_HOST_FTL_H */
