// SPDX-License-Identifier: GPL-2.0
/*
 * parts - the parts of a drive that are filled for given cgroups
 *
 *	PERCENT OVERWRITES CGROUP
 *
 * Each line is a part, from the beginning of the drive on.  The part has PERCENT
 * of the capacity.  It is written once and then overwritten OVERWRITES times on
 * average.  Its pages belong to CGROUP, a path in the unified hierarchy, or to
 * no cgroup if that is "-".
 *
 * Cgroups are looked up when the drive is switched on.  A cgroup may be removed
 * while its part is filled.  parts_settle() gives the pages of such a cgroup to
 * its parent.  It runs when the drive learns of further removals (owner.c).
 */
#include "ssd.h"
#include "../parse.h"

enum {
	PARTS_MOST	= 64,
	OVERWRITES_MAX	= 1000,
	PERCENT		= 100,
};

#define NO_OWNER	"-"

static bool number_take(char **line, u32 most, u32 *number)
{
	char *word;

	*line = skip_spaces(*line);
	word = strsep(line, " \t");
	return *line && !parse_number(word, number) && *number <= most;
}

static bool part_parse(char *line, struct ssd_part *p)
{
	if (!number_take(&line, PERCENT, &p->percent) || !p->percent ||
	    !number_take(&line, OVERWRITES_MAX, &p->overwrites))
		return false;
	p->cgroup = strim(line);
	return p->cgroup[0] == '/' || !strcmp(p->cgroup, NO_OWNER);
}

static int parts_read(struct ssd_parts *parts, char *text)
{
	u32 percent = 0;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		if (!*skip_spaces(line))
			continue;
		if (parts->nr == PARTS_MOST ||
		    !part_parse(line, &parts->part[parts->nr]))
			return -EINVAL;
		percent += parts->part[parts->nr++].percent;
	}
	return percent > PERCENT ? -EINVAL : 0;
}

struct ssd_parts *parts_parse(const char *text)
{
	struct ssd_parts *parts;
	int ret;

	parts = kzalloc(struct_size(parts, part, PARTS_MOST), GFP_KERNEL);
	if (!parts)
		return ERR_PTR(-ENOMEM);
	parts->text = kstrdup(text, GFP_KERNEL);
	ret = parts->text ? parts_read(parts, parts->text) : -ENOMEM;
	if (ret) {
		parts_free(parts);
		return ERR_PTR(ret);
	}
	return parts;
}

void parts_free(struct ssd_parts *parts)
{
	if (!parts)
		return;
	kfree(parts->text);
	kfree(parts);
}

ssize_t parts_show(const struct ssd_parts *parts, char *page)
{
	const struct ssd_part *p;
	ssize_t at = 0;

	for (p = parts->part; p < parts->part + parts->nr; p++)
		at += sysfs_emit_at(page, at, "%u %u %s\n", p->percent,
				    p->overwrites, p->cgroup);
	return at;
}

/*
 * The owner of the pages that a cgroup writes.  Its bios are charged to the
 * cgroup itself, or to its nearest ancestor with the io controller.
 */
static u32 owner_of_cgroup(struct cgroup *cgroup)
{
	struct cgroup_subsys_state *css = NULL;
	u32 owner = FLASH_NO_OWNER;

	rcu_read_lock();
	while (cgroup && !(css = rcu_dereference(cgroup->subsys[io_cgrp_id])))
		cgroup = cgroup_parent(cgroup);
	if (css)
		owner = host_ftl_owner_of(css_to_blkcg(css));
	rcu_read_unlock();
	return owner;
}

static int part_find(const char *name, struct ssd_part *p)
{
	struct cgroup *cgroup;

	if (!strcmp(p->cgroup, NO_OWNER))
		return 0;
	cgroup = cgroup_get_from_path(p->cgroup);
	if (IS_ERR(cgroup)) {
		pr_warn("mqfair-ssd: %s: fill_parts: no cgroup %s: make it first\n",
			name, p->cgroup);
		return PTR_ERR(cgroup);
	}
	p->found = cgroup;
	p->owner = owner_of_cgroup(cgroup);
	return 0;
}

int parts_find(const char *name, struct ssd_parts *parts)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < parts->nr && !ret; i++)
		ret = part_find(name, &parts->part[i]);
	if (ret)
		parts_put(parts);
	return ret;
}

void parts_settle(struct ssd_drive *d, const struct ssd_parts *parts)
{
	const struct ssd_part *p;

	for (p = parts->part; p < parts->part + parts->nr; p++)
		if (p->found)
			owner_pass_on(d, p->owner, owner_of_cgroup(p->found));
}

void parts_put(struct ssd_parts *parts)
{
	struct ssd_part *p;

	for (p = parts->part; p < parts->part + parts->nr; p++) {
		if (p->found)
			cgroup_put(p->found);
		p->found = NULL;
		p->owner = FLASH_NO_OWNER;
	}
}
