// SPDX-License-Identifier: GPL-2.0
/*
 * report - statistics of a drive since it was filled
 *
 * The statistics of the whole drive are a file in its directory in configfs.  A
 * file there is at most a page long.  So the lines of the cgroups are in
 * debugfs, mqfair_ssd/<name>/owners.
 */
#include "ssd.h"

#include <linux/math64.h>

static struct dentry *debugfs_root;

static u64 page_bytes(const struct ssd_drive *d)
{
	return SECTOR_SIZE << d->page_shift;
}

struct snapshot {
	struct flash_stats stats;	/* since the drive was filled */
	u64 commands, service_ns, late_ns;
	u32 outstanding;
};

static void snapshot_take(struct ssd_drive *d, struct snapshot *now)
{
	const struct flash_stats *before = &d->filled;
	struct flash_stats *s = &now->stats;

	raw_spin_lock_irq(&d->lock);
	*s = flash_stats(d->flash);
	now->outstanding = flash_outstanding(d->flash);
	now->commands = d->commands;
	now->service_ns = d->service_ns;
	now->late_ns = d->late_ns;
	raw_spin_unlock_irq(&d->lock);
	s->written -= before->written;
	s->copied -= before->copied;
	s->programs -= before->programs;
	s->erases -= before->erases;
}

/*
 * Times are stretched by time_scale.  service_us over commands is the mean
 * latency in the model.  late_us is the sum of the delays of timer interrupts.
 */
ssize_t report_stat(struct ssd_drive *d, char *page)
{
	struct snapshot now;
	struct flash_stats *s = &now.stats;
	u64 amplification;

	snapshot_take(d, &now);
	amplification = flash_amplification_permille(s->written, s->copied);
	return sysfs_emit(page,
			  "read_bytes %llu\n"
			  "buffer_hit_bytes %llu\n"
			  "written_bytes %llu\n"
			  "trimmed_bytes %llu\n"
			  "flash_written_bytes %llu\n"
			  "gc_copied_bytes %llu\n"
			  "write_amplification %llu.%03llu\n"
			  "programs %llu\n"
			  "gc_erases %llu\n"
			  "write_stalls %llu\n"
			  "read_busy_ms %llu\n"
			  "program_busy_ms %llu\n"
			  "gc_busy_ms %llu\n"
			  "commands %llu\n"
			  "service_us %llu\n"
			  "late_us %llu\n"
			  "outstanding %u\n"
			  "data_bytes %llu\n",
			  s->read * page_bytes(d),
			  s->buffer_hits * page_bytes(d),
			  s->written * page_bytes(d),
			  s->trimmed * page_bytes(d),
			  (s->written + s->copied) * page_bytes(d),
			  s->copied * page_bytes(d), amplification / 1000,
			  amplification % 1000, s->programs, s->erases,
			  s->write_stalls,
			  div_u64(s->read_busy_ns, NSEC_PER_MSEC),
			  div_u64(s->program_busy_ns, NSEC_PER_MSEC),
			  div_u64(s->gc_busy_ns, NSEC_PER_MSEC), now.commands,
			  div_u64(now.service_ns, NSEC_PER_USEC),
			  div_u64(now.late_ns, NSEC_PER_USEC), now.outstanding,
			  (u64)atomic_long_read(&d->store.nr_pages)
				  << PAGE_SHIFT);
}

/* ------------------------------------------------------------------- owners */

static void owner_show(struct seq_file *m, struct ssd_drive *d, u32 owner,
		       const char *path)
{
	struct flash_usage usage;
	bool known;

	raw_spin_lock_irq(&d->lock);
	known = flash_usage(d->flash, owner, &usage);
	raw_spin_unlock_irq(&d->lock);
	if (known)
		seq_printf(
			m,
			"%u valid=%llu invalid=%llu written=%llu copied=%llu busy_us=%llu %s\n",
			owner, usage.valid, usage.invalid, usage.written,
			usage.copied, div_u64(usage.busy_ns, NSEC_PER_USEC),
			path);
}

/* Prints a line for each cgroup that has written: its pages and its path. */
static int owners_show(struct seq_file *m, void *v)
{
	struct ssd_drive *d = m->private;
	struct cgroup_subsys_state *css;
	char *path = kmalloc(PATH_MAX, GFP_KERNEL);

	if (!path)
		return -ENOMEM;
	owner_show(m, d, FLASH_NO_OWNER, "-");
	rcu_read_lock();
	css_for_each_descendant_pre(css, &io_cgrp_subsys.root->cgrp.self) {
		if (cgroup_path(css->cgroup, path, PATH_MAX) >= 0)
			owner_show(m, d, host_ftl_owner_number(css->cgroup),
				   path);
	}
	rcu_read_unlock();
	kfree(path);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(owners);

/* --------------------------------------------------------------- life cycle */

void report_add(struct ssd_drive *d)
{
	d->debugfs = debugfs_create_dir(d->disk->disk_name, debugfs_root);
	debugfs_create_file("owners", 0400, d->debugfs, d, &owners_fops);
}

void report_remove(struct ssd_drive *d)
{
	debugfs_remove(d->debugfs);
}

/* Without debugfs the files are missing, and the rest works. */
void report_init(void)
{
	debugfs_root = debugfs_create_dir("mqfair_ssd", NULL);
}

void report_exit(void)
{
	debugfs_remove(debugfs_root);
}
