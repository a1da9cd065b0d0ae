/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ssd - block devices whose drive is the model of flash/
 *
 *	struct ssd		a directory in configfs with its settings; when
 *				they say power, it has
 *	  struct ssd_drive	a disk, its queues, the model and the data
 *	    struct ssd_request	one per hardware tag: the model's command
 *
 * The life of a request.  queue_rq() moves the data at once (store.c), then
 * hands the model a command.  A timer asks the model when something is due,
 * takes what is done and completes it.  So the model decides when, and holds
 * no data; collecting garbage moves none.
 *
 * The model's times are multiplied by time_scale when the drive is made; its
 * clock is the kernel's monotonic one.
 *
 * Locking
 *   ssd.mutex > (whatever adding and removing a disk takes)
 *   drives_lock (owner.c) > ssd_drive.lock
 *   host_ftl_lock (kernel/host_ftl.c) > ssd_drive.lock
 *   ssd_store.lock[] > its xarray's; in task context, with none of the above
 * ssd_drive.lock serialises the model, as flash.h wants, and is taken in hard
 * interrupts; it is held for a bounded number of the model's events.
 *
 * Letters on fields: I set before the disk is added; D ssd_drive.lock; M
 * ssd.mutex; S the store's lock for that page; A atomic.
 */
#ifndef MQFAIR_SSD_H
#define MQFAIR_SSD_H

#include <linux/configfs.h>

#include "compat.h"
#include "host_ftl.h"
#include "flash/flash.h"

enum ssd_pattern {
	SSD_SEQUENTIAL,		/* each page once, in order */
	SSD_RANDOM,		/* each page once, shuffled */
	SSD_STEADY,		/* and overwritten at random, twice on average */
	SSD_PATTERNS,
};

/* Of what a drive is filled with: parts.c. */
struct ssd_part {
	u32 percent;		/* of the capacity */
	u32 overwrites;		/* of each of its pages, on average */
	const char *cgroup;	/* path; or nobody's */
	struct cgroup *found;	/* held while the drive is switched on; or NULL */
	u32 owner;
};

struct ssd_parts {
	char *text;		/* has the paths */
	u32 nr;
	struct ssd_part part[];
};

struct ssd_config {
	const struct flash_params *model;
	u32 size_mb;
	u32 queues;		/* hardware queues; no more than CPUs are made */
	u32 hw_depth;		/* of each */
	u32 time_scale;
	u32 write_times;	/* by which programs and erases are slower */
	u32 fill;		/* percent of the capacity */
	u32 ftl;		/* enum flash_ftl */
	u32 fill_pattern;	/* enum ssd_pattern */
	struct ssd_parts *parts;	/* instead of fill, unless NULL or empty */
};

struct ssd {
	struct config_group group;
	struct mutex mutex;
	struct ssd_config config;	/* M; single values are read without */
	struct ssd_drive *drive;	/* M: NULL without power */
};

enum {
	STORE_LOCKS	= 64,
};

/* The data, by page of the host's memory; what is not there reads as zeroes. */
struct ssd_store {
	struct xarray pages;		/* S */
	spinlock_t lock[STORE_LOCKS];
	atomic_long_t nr_pages;		/* A */
	u64 starved_ns;			/* since when there is no memory; or 0 */
};

struct ssd_request {
	struct flash_cmd cmd;		/* D, while the model has it */
	struct list_head node;		/* D: in ssd_drive.outstanding */
};

struct ssd_drive {
	spinlock_t lock;
	struct flash *flash;		/* D */
	struct hrtimer timer;
	u64 armed_ns;			/* D: FLASH_NEVER: it is not */
	struct list_head outstanding;	/* D */
	u64 commands;			/* D: done, with their .. */
	u64 service_ns;			/* D: .. time in the model and .. */
	u64 late_ns;			/* D: .. from then until it was noticed */
	u32 page_shift;			/* I: sectors of the model's page */
	bool ftl_is_hosts;		/* I */
	struct flash_stats filled;	/* I: what filling had counted */
	struct ssd_store store;
	struct list_head node;		/* drives_lock */
	struct mqfair_host_ftl ftl;
	struct blk_mq_tag_set tag_set;
	struct gendisk *disk;
	struct dentry *debugfs;
};

/* config.c */
int config_register(void);
void config_unregister(void);

/* drive.c */
struct ssd_drive *drive_create(const char *name, const struct ssd_config *c);
void drive_destroy(struct ssd_drive *d);
/* @c: as before, but for the times. */
void drive_retime(struct ssd_drive *d, const struct ssd_config *c);

/* request.c */
extern const struct blk_mq_ops ssd_mq_ops;
void requests_init(struct ssd_drive *d);
void requests_exit(struct ssd_drive *d);

/* store.c */
void store_init(struct ssd_store *s);
void store_exit(struct ssd_store *s);
blk_status_t store_transfer(struct ssd_store *s, struct request *rq);
void store_discard(struct ssd_store *s, u64 at, u64 bytes);

/* owner.c */
int owners_watch(void);
void owners_unwatch(void);
void owners_add(struct ssd_drive *d);
void owners_remove(struct ssd_drive *d);
u32 owner_of_request(const struct request *rq);
void owner_pass_on(struct ssd_drive *d, u32 from, u32 to);

/* parts.c; ERR_PTR(-EINVAL): it is no list of parts. */
struct ssd_parts *parts_parse(const char *text);
void parts_free(struct ssd_parts *parts);
ssize_t parts_show(const struct ssd_parts *parts, char *page);
/* 0 and the cgroups held until parts_put(); or -errno, with a line in the log. */
int parts_find(const char *name, struct ssd_parts *parts);
void parts_put(struct ssd_parts *parts);
/* Those removed since; once owners_add() has been called. */
void parts_settle(struct ssd_drive *d, const struct ssd_parts *parts);

/* report.c */
void report_init(void);
void report_exit(void);
void report_add(struct ssd_drive *d);
void report_remove(struct ssd_drive *d);
ssize_t report_stat(struct ssd_drive *d, char *page);

#endif /* MQFAIR_SSD_H */
