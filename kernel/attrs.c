// SPDX-License-Identifier: GPL-2.0
/*
 * attrs - the tunables under queue/iosched/
 *
 *	depth		D: most requests in the device; N or "auto"
 *	threshold_kb	T: how far a queue may run ahead, KiB; N or "auto"
 *	cost		bytes, iops or linear
 *	linear_read	"BASE PER_KIB", bytes of 4 KiB reads (see sched/cost.h)
 *	linear_write	the same
 *
 * A value that is not understood or out of range is EINVAL and changes
 * nothing.  Reading "depth" under auto gives the number chosen and "auto".
 */
#include "device.h"

enum {
	/*
	 * Enough for any NVMe drive that is not calibrated; the paper found 64
	 * for an SSD and 128 for a target in memory.
	 */
	AUTO_DEPTH_MOST	= 128,
	/*
	 * T = D * 4 KiB / 8: within the time of one round of the device, a
	 * queue gets ahead of a newcomer by an eighth of the round.
	 */
	AUTO_THRESHOLD_PER_SLOT = 512,
};

static u32 auto_depth(struct device_host *d)
{
	return clamp_t(u32, compat_queue_hw_depth(d->q), DEPTH_MIN,
		       AUTO_DEPTH_MOST);
}

static u32 auto_threshold(u32 depth)
{
	return min_t(u64, (u64)depth * AUTO_THRESHOLD_PER_SLOT, THRESHOLD_MAX);
}

void device_default_params(struct device_host *d, struct sched_params *p)
{
	d->depth_auto = true;
	d->threshold_auto = true;
	*p = (struct sched_params){
		.depth = auto_depth(d),
		.threshold = auto_threshold(auto_depth(d)),
		.cost = {
			.kind = COST_BYTES,
			.read = { .per_kib = 1024 },
			.write = { .per_kib = 1024 },
		},
	};
}

/* Checks and takes over @p; tune_lock is held. */
static int device_tune(struct device_host *d, struct sched_params *p)
{
	struct wake wake __uninitialized;
	int ret;

	lockdep_assert_held(&d->tune_lock);
	if (d->threshold_auto)
		p->threshold = auto_threshold(p->depth);
	ret = sched_params_check(p);
	if (ret)
		return ret;
	wake_init(&wake);
	d->sched.ops->tune(&d->sched, p, &wake);
	host_wake(d, &wake);
	return 0;
}

/* "auto" or a number; *@is_auto tells which. */
static int parse_auto(const char *page, u32 *value, bool *is_auto)
{
	*is_auto = sysfs_streq(page, "auto");
	return *is_auto ? 0 : kstrtouint(page, 10, value);
}

static ssize_t depth_show(struct elevator_queue *e, char *page)
{
	struct device_host *d = e->elevator_data;

	return sysfs_emit(page, d->depth_auto ? "%u auto\n" : "%u\n",
			  READ_ONCE(d->sched.params.depth));
}

static ssize_t depth_store(struct elevator_queue *e, const char *page,
			   size_t count)
{
	struct device_host *d = e->elevator_data;
	struct sched_params p;
	bool was_auto, is_auto;
	u32 value = auto_depth(d);
	int ret;

	ret = parse_auto(page, &value, &is_auto);
	if (ret)
		return -EINVAL;
	mutex_lock(&d->tune_lock);
	p = d->sched.params;
	p.depth = value;
	was_auto = d->depth_auto;
	d->depth_auto = is_auto;
	ret = device_tune(d, &p);
	if (ret)
		d->depth_auto = was_auto;
	mutex_unlock(&d->tune_lock);
	return ret ?: count;
}

static ssize_t threshold_kb_show(struct elevator_queue *e, char *page)
{
	struct device_host *d = e->elevator_data;

	return sysfs_emit(page, d->threshold_auto ? "%u auto\n" : "%u\n",
			  READ_ONCE(d->sched.params.threshold) >> 10);
}

static ssize_t threshold_kb_store(struct elevator_queue *e, const char *page,
				  size_t count)
{
	struct device_host *d = e->elevator_data;
	bool was_auto, is_auto;
	struct sched_params p;
	u32 value = 0;
	int ret;

	ret = parse_auto(page, &value, &is_auto);
	if (ret || value > THRESHOLD_MAX >> 10)
		return -EINVAL;
	mutex_lock(&d->tune_lock);
	p = d->sched.params;
	p.threshold = value << 10;
	was_auto = d->threshold_auto;
	d->threshold_auto = is_auto;
	ret = device_tune(d, &p);
	if (ret)
		d->threshold_auto = was_auto;
	mutex_unlock(&d->tune_lock);
	return ret ?: count;
}

static const char *const cost_names[] = {
	[COST_BYTES]	= "bytes",
	[COST_IOPS]	= "iops",
	[COST_LINEAR]	= "linear",
};
static_assert(ARRAY_SIZE(cost_names) == COST_KINDS);

static ssize_t cost_show(struct elevator_queue *e, char *page)
{
	struct device_host *d = e->elevator_data;

	return sysfs_emit(page, "%s\n", cost_names[d->sched.params.cost.kind]);
}

static ssize_t cost_store(struct elevator_queue *e, const char *page,
			  size_t count)
{
	struct device_host *d = e->elevator_data;
	int kind = sysfs_match_string(cost_names, page);
	struct sched_params p;
	int ret;

	if (kind < 0)
		return -EINVAL;
	mutex_lock(&d->tune_lock);
	p = d->sched.params;
	p.cost.kind = kind;
	ret = device_tune(d, &p);
	mutex_unlock(&d->tune_lock);
	return ret ?: count;
}

static struct cost_line *cost_line_of(struct sched_params *p, bool write)
{
	return write ? &p->cost.write : &p->cost.read;
}

static ssize_t line_show(struct elevator_queue *e, char *page, bool write)
{
	struct device_host *d = e->elevator_data;
	struct cost_line *line = cost_line_of(&d->sched.params, write);

	return sysfs_emit(page, "%u %u\n", READ_ONCE(line->base),
			  READ_ONCE(line->per_kib));
}

static ssize_t line_store(struct elevator_queue *e, const char *page,
			  size_t count, bool write)
{
	struct device_host *d = e->elevator_data;
	struct cost_line line;
	struct sched_params p;
	char end;
	int ret;

	/* A trailing newline is white space to sscanf; anything else is not. */
	if (sscanf(page, "%u %u %c", &line.base, &line.per_kib, &end) != 2 ||
	    page[0] == '-' || strstr(page, " -") || line.base > COST_MOST ||
	    line.per_kib > COST_MOST)
		return -EINVAL;
	mutex_lock(&d->tune_lock);
	p = d->sched.params;
	*cost_line_of(&p, write) = line;
	ret = device_tune(d, &p);
	mutex_unlock(&d->tune_lock);
	return ret ?: count;
}

static ssize_t linear_read_show(struct elevator_queue *e, char *page)
{
	return line_show(e, page, false);
}

static ssize_t linear_read_store(struct elevator_queue *e, const char *page,
				 size_t count)
{
	return line_store(e, page, count, false);
}

static ssize_t linear_write_show(struct elevator_queue *e, char *page)
{
	return line_show(e, page, true);
}

static ssize_t linear_write_store(struct elevator_queue *e, const char *page,
				  size_t count)
{
	return line_store(e, page, count, true);
}

/* Not const: the older kernels' field is not a pointer to const. */
struct elv_fs_entry mqfair_attrs[] = {
	__ATTR(depth, 0644, depth_show, depth_store),
	__ATTR(threshold_kb, 0644, threshold_kb_show, threshold_kb_store),
	__ATTR(cost, 0644, cost_show, cost_store),
	__ATTR(linear_read, 0644, linear_read_show, linear_read_store),
	__ATTR(linear_write, 0644, linear_write_show, linear_write_store),
	__ATTR_NULL
};
