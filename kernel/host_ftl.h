/* SPDX-License-Identifier: GPL-2.0 */
/*
 * host_ftl - whose flash pages are where, from a driver that knows to a scheduler
 *
 * A drive hides its flash translation layer.  Where the host keeps it, the
 * driver knows which cgroup each flash page belongs to, and how long each
 * read, program and erase that it has the flash do takes; it registers for its
 * disk, and the scheduler there can charge each cgroup for the garbage
 * collection that it causes, and each request what it costs.
 *
 * An *owner* is a cgroup as the driver is to count it: host_ftl_owner_of() the
 * cgroup of the request's bio, asked when the request reaches the driver.
 * 0 is nobody.  A cgroup that has been removed is its nearest ancestor that
 * has not, so the driver makes the pages of a removed cgroup its parent's.
 *
 * Locking: mqfair_host_ftl_register() and mqfair_host_ftl_unregister() may be called in
 * any context, host_ftl_owner_pages() and host_ftl_flash_time() too, with any of mqfair's
 * locks held; the driver's operations are called under host_ftl_lock with interrupts
 * off, may not sleep, and may not call back.  Lock order: mqfair's locks >
 * host_ftl_lock > the driver's.  None runs once mqfair_host_ftl_unregister() has returned.
 */
#ifndef MQFAIR_HOST_FTL_H
#define MQFAIR_HOST_FTL_H

#include "compat.h"

struct device_host;
struct flash_time;
struct flow;
struct flow_pages;
struct sched;

struct host_ftl_pages {
	u64 valid;		/* flash pages with data of it */
	u64 invalid;		/* with outdated data, not yet collected */
	u64 victim_valid;	/* valid ones that collecting has copied so far */
};

/* Summed over planes; what is waited for does not count. */
struct host_ftl_busy {
	u64 read_ns;		/* for reads of commands */
	u64 write_ns;		/* for what commands wrote, and collecting for it */
	u64 busy_ns;		/* with either: at that time, not when it was caused */
	u32 planes;		/* that there are */
};

struct mqfair_host_ftl_ops {
	/* False, and zeroes: this owner has written nothing. */
	bool (*owner_pages)(struct gendisk *disk, u32 owner,
			    struct host_ftl_pages *pages);

	/* False: not known.  Planes' time since the disk was added. */
	bool (*busy)(struct gendisk *disk, struct host_ftl_busy *busy);
};

/* Memory of the driver, for as long as it is registered. */
struct mqfair_host_ftl {
	struct list_head node;
	struct gendisk *disk;
	const struct mqfair_host_ftl_ops *ops;
};

/* Before the disk is added; @ftl->disk and @ftl->ops are set. */
void mqfair_host_ftl_register(struct mqfair_host_ftl *ftl);

/* After the disk is gone. */
void mqfair_host_ftl_unregister(struct mqfair_host_ftl *ftl);

/* Is the translation layer of this device known to the host? */
bool host_ftl_known(struct device_host *d);

/*
 * The pages of the cgroup of @f.  False, and zeroes, if the device's layer is
 * not known or the cgroup has written nothing.  @f is held: by a request, or
 * by the active list.
 */
bool host_ftl_owner_pages(struct device_host *d, struct flow *f,
		     struct host_ftl_pages *pages);

/* sched.flow_pages of a device. */
bool host_ftl_flow_pages(const struct sched *s, struct flow *f,
		    struct flow_pages *pages);

/* sched.flash_time of a device. */
bool host_ftl_flash_time(const struct sched *s, struct flash_time *time);

/*
 * The kernel's number of the cgroup, less the generation that is above bit 31:
 * no two cgroups that live at the same time share it.  The hierarchy of the io
 * controller only.
 */
static inline u32 host_ftl_owner_number(const struct cgroup *cgroup)
{
	return (u32)cgroup_id(cgroup);
}

/*
 * Pairs with the kernel's removal of a cgroup, which marks it before anybody
 * is told of it: who is told, takes the driver's lock and moves the pages can
 * be sure that under that lock this returns no removed cgroup.
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
