// SPDX-License-Identifier: GPL-2.0
/*
 * config - one directory in configfs for each drive
 *
 *	mkdir /sys/kernel/config/mqfair_ssd/NAME
 *	settings		a file each; written while the drive is off, or EBUSY
 *	echo 1 > power		/dev/ssd-NAME appears, filled as the settings say
 *	cat stat		statistics; ENODEV while the drive is off
 *	echo 0 > power		the disk disappears, with its data
 *	rmdir			switches power off first
 *
 * A value out of range is EINVAL and changes nothing.  Values that contradict
 * each other, such as a size too small for the model, are EINVAL at power.  The
 * kernel log then names a value that would do.  The prefix ssd- keeps the name
 * apart from the disks of other drivers.
 */
#include "ssd.h"

#include <linux/ctype.h>
#include "../parse.h"

#define DISK_PREFIX	"ssd-"

enum {
	SIZE_MB_MAX	= 1 << 24,	/* 16 TiB */
	QUEUES_MOST	= 1024,
	HW_DEPTH_MAX	= 10240,
	TIME_SCALE_MAX	= 100000,
	WRITE_TIMES_MAX	= 100,
};

static const char *const ftl_names[] = {
	[FLASH_FTL_DEVICE]	= "device",
	[FLASH_FTL_HOST]	= "host",
};

static const char *const pattern_names[] = {
	[SSD_SEQUENTIAL]	= "sequential",
	[SSD_RANDOM]		= "random",
	[SSD_STEADY]		= "steady",
};
static_assert(ARRAY_SIZE(pattern_names) == SSD_PATTERNS);

static struct ssd *ssd_of(struct config_item *item)
{
	return container_of(to_config_group(item), struct ssd, group);
}

/* ---------------------------------------------------------------- settings */

static ssize_t setting_store(struct ssd *ssd, u32 *setting, u32 value,
			     size_t count)
{
	ssize_t ret = count;

	mutex_lock(&ssd->mutex);
	if (ssd->drive)
		ret = -EBUSY;
	else
		WRITE_ONCE(*setting, value);
	mutex_unlock(&ssd->mutex);
	return ret;
}

static ssize_t number_store(struct ssd *ssd, u32 *setting, u32 least, u32 most,
			    const char *page, size_t count)
{
	u32 value;

	if (!parse_is_text(page, count) || parse_number(page, &value) ||
	    value < least || value > most)
		return -EINVAL;
	return setting_store(ssd, setting, value, count);
}

#define SSD_NUMBER(name, least, most)					\
static ssize_t ssd_##name##_show(struct config_item *item, char *page)	\
{									\
	return sysfs_emit(page, "%u\n",					\
			  READ_ONCE(ssd_of(item)->config.name));	\
}									\
static ssize_t ssd_##name##_store(struct config_item *item,		\
				  const char *page, size_t count)	\
{									\
	struct ssd *ssd = ssd_of(item);					\
									\
	return number_store(ssd, &ssd->config.name, least, most, page,	\
			    count);					\
}									\
CONFIGFS_ATTR(ssd_, name)

SSD_NUMBER(size_mb, 1, SIZE_MB_MAX);
SSD_NUMBER(queues, 1, QUEUES_MOST);
SSD_NUMBER(hw_depth, 1, HW_DEPTH_MAX);
SSD_NUMBER(time_scale, 1, TIME_SCALE_MAX);
SSD_NUMBER(fill, 0, 100);

#define SSD_CHOICE(name, choices)					\
static ssize_t ssd_##name##_show(struct config_item *item, char *page)	\
{									\
	u32 chosen = READ_ONCE(ssd_of(item)->config.name);		\
									\
	return sysfs_emit(page, "%s\n", choices[chosen]);		\
}									\
static ssize_t ssd_##name##_store(struct config_item *item,		\
				  const char *page, size_t count)	\
{									\
	struct ssd *ssd = ssd_of(item);					\
	int chosen = sysfs_match_string(choices, page);			\
									\
	if (chosen < 0)							\
		return -EINVAL;						\
	return setting_store(ssd, &ssd->config.name, chosen, count);	\
}									\
CONFIGFS_ATTR(ssd_, name)

SSD_CHOICE(ftl, ftl_names);
SSD_CHOICE(fill_pattern, pattern_names);

static ssize_t ssd_model_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  READ_ONCE(ssd_of(item)->config.model)->name);
}

static ssize_t ssd_model_store(struct config_item *item, const char *page,
			       size_t count)
{
	struct ssd *ssd = ssd_of(item);
	const struct flash_params *p = flash_models;
	ssize_t ret = count;

	while (p->name && !sysfs_streq(page, p->name))
		p++;
	if (!p->name)
		return -EINVAL;
	mutex_lock(&ssd->mutex);
	if (ssd->drive)
		ret = -EBUSY;
	else
		WRITE_ONCE(ssd->config.model, p);
	mutex_unlock(&ssd->mutex);
	return ret;
}
CONFIGFS_ATTR(ssd_, model);

static ssize_t ssd_params_show(struct config_item *item, char *page)
{
	struct ssd *ssd = ssd_of(item);
	ssize_t ret;

	mutex_lock(&ssd->mutex);
	ret = fields_show(ssd->config.model, page);
	mutex_unlock(&ssd->mutex);
	return ret;
}

static ssize_t ssd_params_store(struct config_item *item, const char *page,
				size_t count)
{
	struct ssd *ssd = ssd_of(item);
	struct flash_params own;
	ssize_t ret;

	mutex_lock(&ssd->mutex);
	own = *ssd->config.model;
	ret = ssd->drive ? -EBUSY : fields_parse(&own, page, count);
	if (!ret) {
		ssd->config.own = own;
		WRITE_ONCE(ssd->config.model, &ssd->config.own);
	}
	mutex_unlock(&ssd->mutex);
	return ret ?: count;
}
CONFIGFS_ATTR(ssd_, params);

/* This setting takes effect at once, even while the drive is on. */
static ssize_t ssd_write_times_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n",
			  READ_ONCE(ssd_of(item)->config.write_times));
}

static ssize_t ssd_write_times_store(struct config_item *item, const char *page,
				     size_t count)
{
	struct ssd *ssd = ssd_of(item);
	u32 value;

	if (!parse_is_text(page, count) || parse_number(page, &value) ||
	    !value || value > WRITE_TIMES_MAX)
		return -EINVAL;
	mutex_lock(&ssd->mutex);
	WRITE_ONCE(ssd->config.write_times, value);
	if (ssd->drive)
		drive_retime(ssd->drive, &ssd->config);
	mutex_unlock(&ssd->mutex);
	return count;
}
CONFIGFS_ATTR(ssd_, write_times);

static ssize_t ssd_fill_parts_show(struct config_item *item, char *page)
{
	struct ssd *ssd = ssd_of(item);
	ssize_t ret = 0;

	mutex_lock(&ssd->mutex);
	if (ssd->config.parts)
		ret = parts_show(ssd->config.parts, page);
	mutex_unlock(&ssd->mutex);
	return ret;
}

static ssize_t ssd_fill_parts_store(struct config_item *item, const char *page,
				    size_t count)
{
	struct ssd_parts *parts = parts_parse(page);
	struct ssd *ssd = ssd_of(item);
	ssize_t ret = count;

	if (IS_ERR(parts))
		return PTR_ERR(parts);
	mutex_lock(&ssd->mutex);
	if (ssd->drive)
		ret = -EBUSY;
	else
		swap(ssd->config.parts, parts);
	mutex_unlock(&ssd->mutex);
	parts_free(parts);
	return ret;
}
CONFIGFS_ATTR(ssd_, fill_parts);

/* ------------------------------------------------------------ power, figures */

static int power_on(struct ssd *ssd)
{
	char name[DISK_NAME_LEN];
	struct ssd_drive *d;

	lockdep_assert_held(&ssd->mutex);
	snprintf(name, sizeof(name), DISK_PREFIX "%s",
		 config_item_name(&ssd->group.cg_item));
	d = drive_create(name, &ssd->config);
	if (IS_ERR(d))
		return PTR_ERR(d);
	ssd->drive = d;
	return 0;
}

static void power_off(struct ssd *ssd)
{
	lockdep_assert_held(&ssd->mutex);
	drive_destroy(ssd->drive);
	ssd->drive = NULL;
}

static ssize_t ssd_power_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(ssd_of(item)->drive));
}

static ssize_t ssd_power_store(struct config_item *item, const char *page,
			       size_t count)
{
	struct ssd *ssd = ssd_of(item);
	bool on;
	int ret;

	ret = kstrtobool(page, &on);
	if (ret)
		return ret;
	mutex_lock(&ssd->mutex);
	if (on && !ssd->drive)
		ret = power_on(ssd);
	else if (!on && ssd->drive)
		power_off(ssd);
	mutex_unlock(&ssd->mutex);
	return ret ?: count;
}
CONFIGFS_ATTR(ssd_, power);

static ssize_t ssd_stat_show(struct config_item *item, char *page)
{
	struct ssd *ssd = ssd_of(item);
	ssize_t ret = -ENODEV;

	mutex_lock(&ssd->mutex);
	if (ssd->drive)
		ret = report_stat(ssd->drive, page);
	mutex_unlock(&ssd->mutex);
	return ret;
}
CONFIGFS_ATTR_RO(ssd_, stat);

static struct configfs_attribute *ssd_attrs[] = {
	&ssd_attr_model,
	&ssd_attr_params,
	&ssd_attr_size_mb,
	&ssd_attr_queues,
	&ssd_attr_hw_depth,
	&ssd_attr_time_scale,
	&ssd_attr_write_times,
	&ssd_attr_ftl,
	&ssd_attr_fill,
	&ssd_attr_fill_pattern,
	&ssd_attr_fill_parts,
	&ssd_attr_power,
	&ssd_attr_stat,
	NULL,
};

/* -------------------------------------------------------------- directories */

static void ssd_release(struct config_item *item)
{
	struct ssd *ssd = ssd_of(item);

	parts_free(ssd->config.parts);
	kfree(ssd);
}

static struct configfs_item_operations ssd_item_ops = {
	.release	= ssd_release,
};

static const struct config_item_type ssd_type = {
	.ct_item_ops	= &ssd_item_ops,
	.ct_attrs	= ssd_attrs,
	.ct_owner	= THIS_MODULE,
};

/* The name becomes the name of a file in /dev. */
static bool name_is_good(const char *name)
{
	const char *c = name;

	while (isalnum(*c) || *c == '-' || *c == '_' || *c == '.')
		c++;
	return !*c && c - name < DISK_NAME_LEN - sizeof(DISK_PREFIX);
}

static struct config_group *ssd_make_group(struct config_group *group,
					   const char *name)
{
	struct ssd *ssd;

	if (!name_is_good(name))
		return ERR_PTR(-EINVAL);
	ssd = kzalloc(sizeof(*ssd), GFP_KERNEL);
	if (!ssd)
		return ERR_PTR(-ENOMEM);
	mutex_init(&ssd->mutex);
	ssd->config = (struct ssd_config){
		.model = flash_models,
		.size_mb = 1024,
		.queues = min_t(u32, num_possible_cpus(), QUEUES_MOST),
		.hw_depth = 256,
		.time_scale = 1,
		.write_times = 1,
		.ftl = FLASH_FTL_DEVICE,
		.fill_pattern = SSD_STEADY,
	};
	config_group_init_type_name(&ssd->group, name, &ssd_type);
	return &ssd->group;
}

static void ssd_drop_item(struct config_group *group, struct config_item *item)
{
	struct ssd *ssd = ssd_of(item);

	mutex_lock(&ssd->mutex);
	if (ssd->drive)
		power_off(ssd);
	mutex_unlock(&ssd->mutex);
	config_item_put(item);
}

static ssize_t ssd_root_models_show(struct config_item *item, char *page)
{
	const struct flash_params *p;
	ssize_t at = 0;

	for (p = flash_models; p->name; p++)
		at += sysfs_emit_at(page, at, "%s\n", p->name);
	return at;
}
CONFIGFS_ATTR_RO(ssd_root_, models);

static struct configfs_attribute *ssd_root_attrs[] = {
	&ssd_root_attr_models,
	NULL,
};

static struct configfs_group_operations ssd_root_ops = {
	.make_group	= ssd_make_group,
	.drop_item	= ssd_drop_item,
};

static const struct config_item_type ssd_root_type = {
	.ct_group_ops	= &ssd_root_ops,
	.ct_attrs	= ssd_root_attrs,
	.ct_owner	= THIS_MODULE,
};

static struct configfs_subsystem ssd_subsystem = {
	.su_group = {
		.cg_item = {
			.ci_namebuf	= "mqfair_ssd",
			.ci_type	= &ssd_root_type,
		},
	},
};

int config_register(void)
{
	config_group_init(&ssd_subsystem.su_group);
	mutex_init(&ssd_subsystem.su_mutex);
	return configfs_register_subsystem(&ssd_subsystem);
}

void config_unregister(void)
{
	configfs_unregister_subsystem(&ssd_subsystem);
}
