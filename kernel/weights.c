// SPDX-License-Identifier: GPL-2.0
/* io.mqfair.weight: weights.h. */
#include "weights.h"

#include "cgroup.h"
#include "parse.h"

/* No lock is held between two lines, because disk_is_there() takes an outer one. */
int weights_show(struct seq_file *sf, void *v)
{
	struct cgroup_host *c = cgroup_host_of(css_to_blkcg(seq_css(sf)));
	struct disk_settings s;
	u32 n;

	seq_printf(sf, "default %u\n", READ_ONCE(c->weight));
	for (n = 0; settings_nth(c, n, &s); n++)
		if (s.weight && disk_is_there(s.disk))
			seq_printf(sf, "%u:%u %u\n", MAJOR(s.disk.dev),
				   MINOR(s.disk.dev), s.weight);
	return 0;
}

static void set_weight(struct disk_settings *s, const void *to)
{
	s->weight = *(const u32 *)to;
}

/*
 * Sets *@weight to a number in range, or to 0 for "default" if @or_default.
 * Returns 0, or -EINVAL for any other text.
 */
static int weight_parse(const char *s, bool or_default, u32 *weight)
{
	if (or_default && !strcmp(s, "default")) {
		*weight = 0;
		return 0;
	}
	if (parse_number(s, weight) || *weight < WEIGHT_MIN ||
	    *weight > WEIGHT_MAX)
		return -EINVAL;
	return 0;
}

/* Takes "N", "default N", "MAJ:MIN N" or "MAJ:MIN default". */
static int weight_write_one(struct cgroup_host *c, char *line)
{
	char *key = strsep(&line, " \t");
	struct disk_id disk = { 0 };
	u32 weight;
	int ret;

	line = line ? strim(line) : NULL;
	if (!line || !strcmp(key, "default")) {
		ret = weight_parse(line ?: key, false, &weight);
		if (ret)
			return ret;
		spin_lock_irq(&c->lock);
		/* Pairs with READ_ONCE() in cgroup_weight(). */
		WRITE_ONCE(c->weight, weight);
		spin_unlock_irq(&c->lock);
		return 0;
	}
	ret = dev_parse(key, &disk.dev);
	if (ret)
		return ret;
	ret = weight_parse(line, true, &weight);
	if (ret)
		return ret;
	if (!weight) {
		settings_clear(c, disk.dev, set_weight, &weight);
		return 0;
	}
	ret = disk_find(disk.dev, &disk);
	return ret ?: settings_change(c, disk, set_weight, &weight);
}

ssize_t weights_write(struct kernfs_open_file *of, char *buf, size_t nbytes,
		      loff_t off)
{
	struct blkcg *blkcg = css_to_blkcg(of_css(of));
	int ret = -EINVAL;

	if (parse_is_text(buf, nbytes))
		ret = weight_write_one(cgroup_host_of(blkcg), strim(buf));
	if (!ret)
		weight_apply(blkcg);
	return ret ?: nbytes;
}
