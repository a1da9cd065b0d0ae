/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ssd - block devices on the drive model of flash/
 *
 *	struct ssd		a directory in configfs, with its settings; while
 *				its power is on, it has
 *	  struct ssd_drive	a disk, its queues, the model and the data
 *	    struct ssd_request	one per hardware tag: a command of the model
 *
 * The life of a request.  queue_rq() copies the data at once (store.c), then
 * submits a command to the model.  A timer fires at the model's next event,
 * takes the finished commands and completes their requests.  So the model holds
 * no data: it decides only when a request completes.  Garbage collection copies
 * no data either.
 *
 * The model's times are multiplied by time_scale when the drive is made.  Its
 * clock is the kernel's monotonic clock.
 *
 * Lock order
 *
 *	ssd.mutex > the locks under which a disk is added or removed
 *	drives_lock (owner.c) > ssd_drive.lock
 *	host_ftl_lock (kernel/host_ftl.c) > ssd_drive.lock
 *	ssd_store.lock[] > the xarray's lock
 *
 * ssd_drive.lock serialises the model, as flash.h requires.  It is taken in hard
 * interrupts and held for a bounded number of the model's events.  A lock of
 * ssd_store is taken in task context, with none of the other locks held.
 *
 * Marks on fields: I, set before the disk is added; D, ssd_drive.lock; M,
 * ssd.mutex; S, the store's lock for that page; A, atomic.
 */
#ifndef MQFAIR_SSD_H
#define MQFAIR_SSD_H

#include <linux/configfs.h>

#include "compat.h"
#include "host_ftl.h"
#include "flash/flash.h"

/* The order in which a drive is filled. */
enum ssd_pattern {
	SSD_SEQUENTIAL,		/* each page once, in order */
	SSD_RANDOM,		/* each page once, shuffled */
	SSD_STEADY,		/* shuffled, then overwritten twice on average */
	SSD_PATTERNS,
};

/* A part of a drive that is filled for one cgroup: parts.c. */
struct ssd_part {
	u32 percent;		/* of the capacity */
	u32 overwrites;		/* per page, on average */
	const char *cgroup;	/* path, or "-" */
	struct cgroup *found;	/* referenced while power is switched on; or NULL */
	u32 owner;
};

struct ssd_parts {
	char *text;		/* memory of the paths */
	u32 nr;
	struct ssd_part part[];
};

struct ssd_config {
	const struct flash_params *model;	/* own, or a built-in one */
	struct flash_params own;	/* the numbers that params has set */
	u32 size_mb;
	u32 queues;		/* hardware queues; no more than CPUs are made */
	u32 hw_depth;		/* of each */
	u32 time_scale;
	u32 write_times;	/* programs and erases are slower by this factor */
	u32 fill;		/* percent of the capacity */
	u32 ftl;		/* enum flash_ftl */
	u32 fill_pattern;	/* enum ssd_pattern */
	struct ssd_parts *parts;	/* replaces fill, unless NULL or empty */
};

struct ssd {
	struct config_group group;
	struct mutex mutex;		/* M: settings and power */
	struct ssd_config config;	/* M; single values are read without */
	struct ssd_drive *drive;	/* M: NULL without power */
};

enum {
	STORE_LOCKS	= 64,
};

/* The data, in pages of the machine's memory.  A missing page reads as zeroes. */
struct ssd_store {
	struct xarray pages;		/* S */
	spinlock_t lock[STORE_LOCKS];	/* S: by page index, modulo */
	atomic_long_t nr_pages;		/* A */
	u64 starved_ns;			/* time since which memory is out; or 0 */
};

struct ssd_request {
	struct flash_cmd cmd;		/* D, while the model has it */
	struct list_head node;		/* D: in ssd_drive.outstanding */
};

struct ssd_drive {
	raw_spinlock_t lock;		/* D: serialises the model */
	struct flash *flash;		/* D */
	struct hrtimer timer;
	u64 armed_ns;			/* D: expiry, or FLASH_NEVER */
	struct list_head outstanding;	/* D */
	u64 commands;			/* D: completed */
	u64 service_ns;			/* D: their time in the model, summed */
	u64 late_ns;			/* D: their delay until the timer fired */
	u32 page_shift;			/* I: sectors of the model's page */
	bool ftl_is_hosts;		/* I */
	struct flash_stats filled;	/* I: counters after the filling */
	struct ssd_store store;
	struct list_head node;		/* drives_lock */
	struct mqfair_host_ftl ftl;
	struct blk_mq_tag_set tag_set;
	struct gendisk *disk;
	struct dentry *debugfs;
};

/*
 * config - directories and settings in configfs.  main.c calls these when the
 * module starts and ends.  Readers and writers of settings take ssd.mutex.
 */
int config_register(void);
void config_unregister(void);

/*
 * drive - a disk with its queues, its model and its data.  config.c calls these
 * in task context, under ssd.mutex.  drive_create() may return an ERR_PTR(); if
 * the settings are wrong, the kernel log has a line.
 */
struct ssd_drive *drive_create(const char *name, const struct ssd_config *c);
void drive_destroy(struct ssd_drive *d);
/* @c differs only in its times. */
void drive_retime(struct ssd_drive *d, const struct ssd_config *c);

/*
 * request - requests of the block layer as commands of the model.  drive.c calls
 * these in task context; after requests_exit() the timer does not run.
 */
extern const struct blk_mq_ops ssd_mq_ops;
void requests_init(struct ssd_drive *d);
void requests_exit(struct ssd_drive *d);

/*
 * store - the data of a drive.  request.c transfers and discards in task
 * context without sleeping, and without a lock.
 */
void store_init(struct ssd_store *s);
void store_exit(struct ssd_store *s);
blk_status_t store_transfer(struct ssd_store *s, struct request *rq);
void store_discard(struct ssd_store *s, u64 at, u64 bytes);

/*
 * owner - the cgroups that own pages.  main.c watches removals of cgroups,
 * drive.c adds and removes drives.  These take drives_lock.
 */
int owners_watch(void);
void owners_unwatch(void);
void owners_add(struct ssd_drive *d);
void owners_remove(struct ssd_drive *d);
/* Under ssd_drive.lock, for a request that is being submitted. */
u32 owner_of_request(const struct request *rq);
/* Gives the pages of @from to @to; takes ssd_drive.lock. */
void owner_pass_on(struct ssd_drive *d, u32 from, u32 to);

/*
 * parts - the lines of fill_parts.  All in task context, under ssd.mutex or
 * before the list is published.
 */
/* ERR_PTR(-EINVAL) if @text is no list of parts. */
struct ssd_parts *parts_parse(const char *text);
void parts_free(struct ssd_parts *parts);
ssize_t parts_show(const struct ssd_parts *parts, char *page);
/* References the cgroups until parts_put(); or -errno, with a line in the log. */
int parts_find(const char *name, struct ssd_parts *parts);
void parts_put(struct ssd_parts *parts);
/* Passes on the pages of cgroups that are removed by now; after owners_add(). */
void parts_settle(struct ssd_drive *d, const struct ssd_parts *parts);

/*
 * fields - the numbers of a model, as text.  In task context.
 */
/* Changes @p; 0, -ENOMEM or -EINVAL, with a line in the kernel log. */
int fields_parse(struct flash_params *p, const char *text, size_t count);
ssize_t fields_show(const struct flash_params *p, char *page);

/*
 * report - statistics of a drive, in configfs and debugfs.  Task context; takes
 * ssd_drive.lock.  main.c and drive.c call the pairs.
 */
void report_init(void);
void report_exit(void);
void report_add(struct ssd_drive *d);
void report_remove(struct ssd_drive *d);
ssize_t report_stat(struct ssd_drive *d, char *page);

#endif /* MQFAIR_SSD_H */
