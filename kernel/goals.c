// SPDX-License-Identifier: GPL-2.0
/* io.mqfair.latency: goals.h. */
#include "goals.h"

#include "cgroup.h"
#include "parse.h"

#define TARGET_LEAST	NSEC_PER_USEC
#define TARGET_MOST	(16ULL * NSEC_PER_SEC)

enum {
	PERMILLE_LEAST	= 10,		/* pct=1 */
	PERMILLE_MOST	= 999,		/* pct=99.9 */
	PERMILLE_AUTO	= 990,		/* without pct= */
	DIGITS_MOST	= 11,		/* 16 s in ns */
};

static const struct {
	const char *name;
	u64 ns;
} units[] = {
	{ "s", NSEC_PER_SEC },
	{ "ms", NSEC_PER_MSEC },
	{ "us", NSEC_PER_USEC },
	{ "ns", 1 },
};

/* --------------------------------------------------------------------- read */

static void put_time(struct seq_file *sf, u64 ns)
{
	u32 i = 0;

	while (ns % units[i].ns)
		i++;
	seq_printf(sf, "%llu%s", div64_u64(ns, units[i].ns), units[i].name);
}

static void put_tenths(struct seq_file *sf, const char *name, u32 permille)
{
	seq_printf(sf, " %s=%u", name, permille / 10);
	if (permille % 10)
		seq_printf(sf, ".%u", permille % 10);
}

/* The worst figures of the paths of one disk. */
struct achieved {
	bool flows;
	u64 ns;				/* 0: no request was done */
	u32 loss;			/* in permille */
};

static void achieved_add(struct achieved *a, struct flow *f,
			 const struct goal *goal)
{
	a->flows = true;
	a->ns = max(a->ns, (u64)latency_percentile(f, goal->permille));
	a->loss = max(a->loss, (u32)isolation_loss(&f->sched->isolation));
}

static void put_achieved(struct seq_file *sf, const struct achieved *a,
			 const struct goal *goal)
{
	if (!a->flows)
		return;
	if (a->ns)
		seq_printf(sf, " achieved=%lluus met=%d",
			   div_u64(a->ns, NSEC_PER_USEC), a->ns <= goal->ns);
	put_tenths(sf, "loss", a->loss);
	seq_putc(sf, '%');
}

static void put_goal(struct seq_file *sf, struct blkcg *blkcg, dev_t dev,
		     const struct goal *goal)
{
	struct achieved achieved = { 0 };
	struct blkcg_gq *blkg;
	struct flow *f;

	seq_printf(sf, "%u:%u target=", MAJOR(dev), MINOR(dev));
	put_time(sf, goal->ns);
	put_tenths(sf, "pct", goal->permille);
	rcu_read_lock();
	hlist_for_each_entry_rcu(blkg, &blkcg->blkg_list, blkcg_node) {
		spin_lock_irq(&groups_lock);
		f = group_flow(blkg);
		if (f && flow_disk(f).dev == dev)
			achieved_add(&achieved, f, goal);
		spin_unlock_irq(&groups_lock);
	}
	rcu_read_unlock();
	put_achieved(sf, &achieved, goal);
}

/*
 * Own goals come first, then those of ancestors that count here.  No lock is
 * held between two goals.  A goal that is set meanwhile may be missing.
 */
int goals_show(struct seq_file *sf, void *v)
{
	struct blkcg *blkcg = css_to_blkcg(seq_css(sf)), *from;
	struct disk_settings s;
	struct goal goal;
	u32 n;

	for (from = blkcg; from; from = blkcg_parent_of(from)) {
		struct cgroup_host *c = cgroup_host_of(from);

		for (n = 0; settings_nth(c, n, &s); n++) {
			if (goal_source(blkcg, s.disk, &goal) != from ||
			    !disk_is_there(s.disk))
				continue;
			put_goal(sf, blkcg, s.disk.dev, &goal);
			seq_puts(sf, from == blkcg ? "\n" : " inherited=1\n");
		}
	}
	return 0;
}

/* -------------------------------------------------------------------- write */

/* Takes "500us" and the like, or "none". */
static int target_parse(const char *s, u64 *ns)
{
	size_t digits = strspn(s, "0123456789");
	u64 n;
	u32 i;

	if (!strcmp(s, "none")) {
		*ns = 0;
		return 0;
	}
	if (!digits || digits > DIGITS_MOST)
		return -EINVAL;
	n = simple_strtoull(s, NULL, 10);
	for (i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(s + digits, units[i].name))
			continue;
		if (n > div64_u64(TARGET_MOST, units[i].ns) ||
		    n * units[i].ns < TARGET_LEAST)
			return -EINVAL;
		*ns = n * units[i].ns;
		return 0;
	}
	return -EINVAL;
}

/* Takes "1" to "99", or with one digit after the point, up to "99.9". */
static int percent_parse(char *s, u32 *permille)
{
	char *whole = strsep(&s, ".");
	unsigned int percent, tenth = 0;

	if (parse_number(whole, &percent) || percent > PERMILLE_MOST / 10)
		return -EINVAL;
	if (s) {
		if (!isdigit(s[0]) || s[1])
			return -EINVAL;
		tenth = s[0] - '0';
	}
	*permille = 10 * percent + tenth;
	return *permille < PERMILLE_LEAST ? -EINVAL : 0;
}

/* Takes "target=T", or with "pct=P" before or after it, each once. */
static int goal_parse(char *s, struct goal *goal)
{
	bool target = false, percent = false;
	char *word;
	int ret;

	*goal = (struct goal){ .permille = PERMILLE_AUTO };
	while ((word = strsep(&s, " \t"))) {
		if (!*word)
			continue;
		ret = -EINVAL;
		if (!target && strstarts(word, "target=")) {
			ret = target_parse(word + strlen("target="), &goal->ns);
			target = true;
		} else if (!percent && strstarts(word, "pct=")) {
			ret = percent_parse(word + strlen("pct="),
					    &goal->permille);
			percent = true;
		}
		if (ret)
			return ret;
	}
	return target ? 0 : -EINVAL;
}

static void set_goal(struct disk_settings *s, const void *to)
{
	s->goal = *(const struct goal *)to;
}

/* Takes "MAJ:MIN target=T [pct=P]" or "MAJ:MIN target=none". */
static int goal_write_one(struct blkcg *blkcg, char *line)
{
	struct cgroup_host *c = cgroup_host_of(blkcg);
	char *key = strsep(&line, " \t");
	struct disk_id disk = { 0 };
	struct goal goal;
	int ret;

	if (!line)
		return -EINVAL;
	ret = dev_parse(key, &disk.dev);
	if (ret)
		return ret;
	ret = goal_parse(line, &goal);
	if (ret)
		return ret;
	if (goal.ns)
		ret = disk_find(disk.dev, &disk) ?:
			      settings_change(c, disk, set_goal, &goal);
	else
		settings_clear(c, disk.dev, set_goal, &goal);
	if (!ret)
		goal_apply(blkcg, disk.dev);
	return ret;
}

ssize_t goals_write(struct kernfs_open_file *of, char *buf, size_t nbytes,
		    loff_t off)
{
	int ret = -EINVAL;

	if (parse_is_text(buf, nbytes))
		ret = goal_write_one(css_to_blkcg(of_css(of)), strim(buf));
	return ret ?: nbytes;
}
