// SPDX-License-Identifier: GPL-2.0
/*
 * drive - power: a disk, its queues and its model come and go together
 *
 * Removal waits until the outstanding requests complete, at the model's times.
 * The block layer refuses later requests.
 */
#include "ssd.h"

#include "disk.h"

enum {
	/* Cgroups that have pages in flash, with those removed recently. */
	OWNERS_MOST		= 16384,
	/* Overwrites, in capacities, that bring a drive to its steady state. */
	STEADY_OVERWRITES	= 2,
	FILL_SEED		= 1,
	READ_SEED		= 2,
	FILL_STEP_PAGES		= 4096,
	FILL_TURNS		= 1000,	/* turns in which parts are overwritten */
	MAX_BYTES		= 512 << 10,	/* of a read or a write */
	/* Pages are freed one by one, with preemption off. */
	MAX_DISCARD_BYTES	= 16 << 20,
};

/* The model's times, stretched. */
static struct flash_params params_scaled(const struct ssd_config *c)
{
	struct flash_params p = *c->model;

	p.command_ns *= c->time_scale;
	p.read_fixed_ns *= c->time_scale;
	p.write_fixed_ns *= c->time_scale;
	p.link_ns *= c->time_scale;
	p.channel_ns *= c->time_scale;
	p.read_ns *= c->time_scale;
	p.program_ns *= c->time_scale * c->write_times;
	p.erase_ns *= c->time_scale * c->write_times;
	return p;
}

static int model_create(struct ssd_drive *d, const char *name,
			const struct ssd_config *c)
{
	struct flash_params params = params_scaled(c);
	struct flash_config config = {
		.params = &params,
		.bytes = (u64)c->size_mb << 20,
		.owners = OWNERS_MOST,
		.ftl = c->ftl,
		.seed = READ_SEED,
	};
	const char *wrong = flash_config_wrong(&config);

	if (wrong) {
		pr_warn("mqfair-ssd: %s: model=%s size_mb=%u: %s\n", name,
			c->model->name, c->size_mb, wrong);
		return -EINVAL;
	}
	d->flash = flash_create(&config);
	if (!d->flash)
		return -ENOMEM;
	d->page_shift = ilog2(params.page_bytes) - SECTOR_SHIFT;
	d->ftl_is_hosts = c->ftl == FLASH_FTL_HOST;
	return 0;
}

static int fill_go_on(struct ssd_drive *d, struct flash_fill *fill)
{
	while (flash_fill(d->flash, fill, FILL_STEP_PAGES)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/*
 * Fills each part once, then overwrites all parts in turns, so that pages of
 * different parts lie side by side.
 */
static int fill_in_turns(struct ssd_drive *d, const struct ssd_parts *parts,
			 struct flash_fill *fill)
{
	int ret = 0;
	u32 turn, i;

	for (turn = 0; turn <= FILL_TURNS && !ret; turn++)
		for (i = 0; i < parts->nr && !ret; i++) {
			u64 all =
				(u64)fill[i].pages * parts->part[i].overwrites;

			fill[i].overwrites = div_u64(all * turn, FILL_TURNS);
			ret = fill_go_on(d, &fill[i]);
		}
	return ret;
}

static int fill_parts(struct ssd_drive *d, const struct ssd_parts *parts,
		      bool shuffled)
{
	u32 capacity = flash_pages(d->flash), percent = 0, i;
	struct flash_fill *fill;
	int ret;

	fill = kcalloc(parts->nr, sizeof(*fill), GFP_KERNEL);
	if (!fill)
		return -ENOMEM;
	for (i = 0; i < parts->nr; i++) {
		const struct ssd_part *p = &parts->part[i];

		fill[i].first = div_u64((u64)capacity * percent, 100);
		percent += p->percent;
		fill[i].pages = (u32)div_u64((u64)capacity * percent, 100) -
				fill[i].first;
		fill[i].owner = p->owner;
		fill[i].seed = FILL_SEED + i;
		fill[i].shuffled = shuffled;
	}
	ret = fill_in_turns(d, parts, fill);
	kfree(fill);
	return ret;
}

static int fill_whole(struct ssd_drive *d, const struct ssd_config *c,
		      bool shuffled)
{
	u32 pages = div_u64((u64)flash_pages(d->flash) * c->fill, 100);
	struct flash_fill fill = {
		.pages = pages,
		.owner = FLASH_NO_OWNER,
		.seed = FILL_SEED,
		.shuffled = shuffled,
	};

	if (c->fill_pattern == SSD_STEADY)
		fill.overwrites = (u64)pages * STEADY_OVERWRITES;
	return fill_go_on(d, &fill);
}

static bool config_has_parts(const struct ssd_config *c)
{
	return c->parts && c->parts->nr;
}

/* Fills the map as writes would, in no time and without data: it reads as zeroes. */
static int model_fill(struct ssd_drive *d, const struct ssd_config *c)
{
	bool shuffled = c->fill_pattern != SSD_SEQUENTIAL;
	int ret;

	if (config_has_parts(c))
		ret = fill_parts(d, c->parts, shuffled);
	else
		ret = fill_whole(d, c, shuffled);
	d->filled = flash_stats(d->flash);
	return ret;
}

static int tags_create(struct ssd_drive *d, const struct ssd_config *c)
{
	struct blk_mq_tag_set *set = &d->tag_set;

	set->ops = &ssd_mq_ops;
	/* No more queues than CPUs, as with any drive. */
	set->nr_hw_queues = min(c->queues, nr_cpu_ids);
	set->queue_depth = c->hw_depth;
	set->cmd_size = sizeof(struct ssd_request);
	set->numa_node = NUMA_NO_NODE;
	set->flags = COMPAT_BLK_MQ_F_SHOULD_MERGE;
	return blk_mq_alloc_tag_set(set);
}

static const struct block_device_operations ssd_fops = {
	.owner = THIS_MODULE,
};

static int disk_create(struct ssd_drive *d, const char *name,
		       const struct ssd_config *c)
{
	const struct compat_limits limits = {
		.logical_block_bytes = SECTOR_SIZE,
		.physical_block_bytes = SECTOR_SIZE << d->page_shift,
		.max_bytes = MAX_BYTES,
		.max_discard_bytes = MAX_DISCARD_BYTES,
		.write_cache = true,
	};
	struct gendisk *disk = compat_alloc_disk(&d->tag_set, &limits, d);

	if (IS_ERR(disk))
		return PTR_ERR(disk);
	disk->fops = &ssd_fops;
	disk->private_data = d;
	snprintf(disk->disk_name, DISK_NAME_LEN, "%s", name);
	set_capacity(disk, (u64)c->size_mb << (20 - SECTOR_SHIFT));
	d->disk = disk;
	return 0;
}

static bool drive_owner_pages(struct gendisk *disk, u32 owner,
			      struct host_ftl_pages *pages)
{
	struct ssd_drive *d = disk->private_data;
	struct flash_usage usage;
	unsigned long flags;
	bool known;

	raw_spin_lock_irqsave(&d->lock, flags);
	known = flash_host_usage(d->flash, owner, &usage);
	raw_spin_unlock_irqrestore(&d->lock, flags);
	pages->valid = usage.valid;
	pages->invalid = usage.invalid;
	pages->victim_valid = usage.copied;
	return known;
}

static bool drive_busy(struct gendisk *disk, struct host_ftl_busy *busy)
{
	struct ssd_drive *d = disk->private_data;
	struct flash_spent spent;
	unsigned long flags;
	bool known;

	raw_spin_lock_irqsave(&d->lock, flags);
	known = flash_host_spent(d->flash, &spent);
	raw_spin_unlock_irqrestore(&d->lock, flags);
	busy->read_ns = spent.read_ns;
	busy->write_ns = spent.write_ns;
	busy->busy_ns = spent.busy_ns;
	busy->planes = spent.planes;
	return known;
}

static const struct mqfair_host_ftl_ops drive_ftl_ops = {
	.owner_pages	= drive_owner_pages,
	.busy		= drive_busy,
};

static void drive_announce(struct ssd_drive *d)
{
	owners_add(d);
	if (d->ftl_is_hosts) {
		d->ftl.disk = d->disk;
		d->ftl.ops = &drive_ftl_ops;
		mqfair_host_ftl_register(&d->ftl);
	}
	report_add(d);
}

static void drive_withdraw(struct ssd_drive *d)
{
	report_remove(d);
	if (d->ftl_is_hosts)
		mqfair_host_ftl_unregister(&d->ftl);
	owners_remove(d);
}

/* Makes all parts of a drive but the visible disk; drive_free() undoes it. */
static int drive_build(struct ssd_drive *d, const char *name,
		       const struct ssd_config *c)
{
	int ret;

	ret = model_create(d, name, c);
	if (ret)
		return ret;
	ret = model_fill(d, c);
	if (ret)
		goto flash;
	ret = tags_create(d, c);
	if (ret)
		goto flash;
	ret = disk_create(d, name, c);
	if (ret)
		goto tags;
	return 0;
tags:
	blk_mq_free_tag_set(&d->tag_set);
flash:
	flash_destroy(d->flash);
	return ret;
}

static void drive_free(struct ssd_drive *d)
{
	put_disk(d->disk);
	blk_mq_free_tag_set(&d->tag_set);
	requests_exit(d);
	flash_destroy(d->flash);
	store_exit(&d->store);
	kvfree(d);
}

static struct ssd_drive *drive_make(const char *name,
				    const struct ssd_config *c)
{
	struct ssd_drive *d = kvzalloc(sizeof(*d), GFP_KERNEL);
	int ret;

	if (!d)
		return ERR_PTR(-ENOMEM);
	raw_spin_lock_init(&d->lock);
	store_init(&d->store);
	requests_init(d);
	ret = drive_build(d, name, c);
	if (ret) {
		kvfree(d);
		return ERR_PTR(ret);
	}
	drive_announce(d);
	if (config_has_parts(c))
		parts_settle(d, c->parts);
	ret = add_disk(d->disk);
	if (ret) {
		drive_withdraw(d);
		drive_free(d);
		return ERR_PTR(ret);
	}
	return d;
}

struct ssd_drive *drive_create(const char *name, const struct ssd_config *c)
{
	struct ssd_drive *d;
	int ret;

	if (!config_has_parts(c))
		return drive_make(name, c);
	if (c->fill) {
		pr_warn("mqfair-ssd: %s: fill=%u and fill_parts: set one of them\n",
			name, c->fill);
		return ERR_PTR(-EINVAL);
	}
	ret = parts_find(name, c->parts);
	if (ret)
		return ERR_PTR(ret);
	d = drive_make(name, c);
	parts_put(c->parts);
	return d;
}

void drive_retime(struct ssd_drive *d, const struct ssd_config *c)
{
	struct flash_params params = params_scaled(c);
	unsigned long flags;

	raw_spin_lock_irqsave(&d->lock, flags);
	flash_retime(d->flash, &params);
	raw_spin_unlock_irqrestore(&d->lock, flags);
}

void drive_destroy(struct ssd_drive *d)
{
	del_gendisk(d->disk);
	drive_withdraw(d);
	drive_free(d);
}
