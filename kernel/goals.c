// SPDX-License-Identifier: GPL-2.0
/*
 * Latency goals of cgroups; goals.h.
 *
 * No flow keeps an old goal.  A writer changes the list of its cgroup under the
 * cgroup_host's lock, then looks for the blkgs below it, and refreshes each one
 * under groups_lock.  A new blkg is listed first, and then refreshed under the
 * same two locks.  So either the writer finds the blkg, or the new blkg finds
 * the goal.
 */
#include "goals.h"

#include "parse.h"

#define TARGET_LEAST	NSEC_PER_USEC
#define TARGET_MOST	(16ULL * NSEC_PER_SEC)

enum {
	PERMILLE_LEAST	= 10,		/* pct=1 */
	PERMILLE_MOST	= 999,		/* pct=99.9 */
	PERMILLE_AUTO	= 990,		/* without pct= */
	DIGITS_MOST	= 11,		/* 16 s in ns */
};

struct goal {
	u64 ns;				/* 0: none */
	u32 permille;
};

/* The goal of a cgroup on one device. */
struct device_goal {
	struct list_head node;
	struct disk_id disk;
	struct goal goal;
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

/* ----------------------------------------------------------- the goal that counts */

static struct blkcg *parent_of(struct blkcg *blkcg)
{
	return css_to_blkcg(blkcg->css.parent);
}

static struct device_goal *goal_find(struct cgroup_host *c, dev_t dev)
{
	struct device_goal *g;

	lockdep_assert_held(&c->lock);
	list_for_each_entry(g, &c->goals, node)
		if (g->disk.dev == dev)
			return g;
	return NULL;
}

/* Sets *@goal to the own goal of @blkcg, if it has one. */
static bool goal_own(struct blkcg *blkcg, struct disk_id disk,
		     struct goal *goal)
{
	struct cgroup_host *c = cgroup_host_of(blkcg);
	struct device_goal *g;
	unsigned long flags;

	if (!c)
		return false;
	spin_lock_irqsave(&c->lock, flags);
	g = goal_find(c, disk.dev);
	if (g && !disk_same(g->disk, disk))
		g = NULL;
	if (g)
		*goal = g->goal;
	spin_unlock_irqrestore(&c->lock, flags);
	return g;
}

/* Returns the nearest cgroup with a goal, from @blkcg upwards, or NULL. */
static struct blkcg *goal_source(struct blkcg *blkcg, struct disk_id disk,
				 struct goal *goal)
{
	for (; blkcg; blkcg = parent_of(blkcg))
		if (goal_own(blkcg, disk, goal))
			return blkcg;
	*goal = (struct goal){ 0 };
	return NULL;
}

void goal_refresh(struct blkcg_gq *blkg)
{
	struct flow *f = group_flow(blkg);
	struct goal goal;

	lockdep_assert_held(&groups_lock);
	if (!f)
		return;
	goal_source(blkg->blkcg, queue_disk(blkg->q), &goal);
	latency_set_goal(f, goal.ns, goal.permille);
}

/* Refreshes the flows of @blkcg and of all cgroups below it on @dev. */
static void goal_apply(struct blkcg *blkcg, dev_t dev)
{
	struct cgroup_subsys_state *pos;
	struct blkcg_gq *top, *blkg;

	spin_lock_irq(&blkcg->lock);
	rcu_read_lock();
	hlist_for_each_entry(top, &blkcg->blkg_list, blkcg_node) {
		if (queue_dev(top->q) != dev)
			continue;
		blkg_for_each_descendant_pre(blkg, pos, top) {
			spin_lock(&groups_lock);
			goal_refresh(blkg);
			spin_unlock(&groups_lock);
		}
	}
	rcu_read_unlock();
	spin_unlock_irq(&blkcg->lock);
}

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

/* Prints the latency that was achieved, once the flow has done requests. */
static void put_achieved(struct seq_file *sf, struct flow *f,
			 const struct goal *goal)
{
	u64 ns = latency_percentile(f, goal->permille);

	if (ns)
		seq_printf(sf, " achieved=%lluus met=%d",
			   div_u64(ns, NSEC_PER_USEC), ns <= goal->ns);
	put_tenths(sf, "loss", isolation_loss(&f->sched->isolation));
	seq_putc(sf, '%');
}

static void put_goal(struct seq_file *sf, struct blkcg *blkcg, dev_t dev,
		     const struct goal *goal)
{
	struct blkcg_gq *blkg;
	struct flow *f;

	seq_printf(sf, "%u:%u target=", MAJOR(dev), MINOR(dev));
	put_time(sf, goal->ns);
	put_tenths(sf, "pct", goal->permille);
	spin_lock_irq(&blkcg->lock);
	hlist_for_each_entry(blkg, &blkcg->blkg_list, blkcg_node) {
		if (queue_dev(blkg->q) != dev)
			continue;
		spin_lock(&groups_lock);
		f = group_flow(blkg);
		if (f)
			put_achieved(sf, f, goal);
		spin_unlock(&groups_lock);
	}
	spin_unlock_irq(&blkcg->lock);
}

/* Sets *@disk to the disk of goal number @n. */
static bool goal_disk(struct cgroup_host *c, u32 n, struct disk_id *disk)
{
	struct device_goal *g;
	bool found = false;

	spin_lock_irq(&c->lock);
	list_for_each_entry(g, &c->goals, node) {
		if (n--)
			continue;
		*disk = g->disk;
		found = true;
		break;
	}
	spin_unlock_irq(&c->lock);
	return found;
}

/*
 * Own goals come first, then those of ancestors that count here.  No lock is
 * held between two goals.  A goal that is set meanwhile may be missing.
 */
int goals_show(struct seq_file *sf, void *v)
{
	struct blkcg *blkcg = css_to_blkcg(seq_css(sf)), *from;
	struct goal goal;
	struct disk_id disk;
	u32 n;

	for (from = blkcg; from; from = parent_of(from)) {
		struct cgroup_host *c = cgroup_host_of(from);

		for (n = 0; goal_disk(c, n, &disk); n++) {
			if (goal_source(blkcg, disk, &goal) != from ||
			    !disk_is_there(disk))
				continue;
			put_goal(sf, blkcg, disk.dev, &goal);
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

/* With no target the goal is removed. */
static int goal_set(struct cgroup_host *c, struct disk_id disk,
		    const struct goal *goal)
{
	struct device_goal *g, *new = NULL;

	if (goal->ns) {
		new = kmalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
		if (!new)
			return -ENOMEM;
		new->disk = disk;
		new->goal = *goal;
	}
	spin_lock_irq(&c->lock);
	g = goal_find(c, disk.dev);
	if (g && new)
		list_replace(&g->node, &new->node);
	else if (g)
		list_del(&g->node);
	else if (new)
		list_add_tail(&new->node, &c->goals);
	spin_unlock_irq(&c->lock);
	kfree(g);
	return 0;
}

/* Takes "MAJ:MIN target=T [pct=P]" or "MAJ:MIN target=none". */
static int goal_write_one(struct blkcg *blkcg, char *line)
{
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
	if (goal.ns) {
		ret = disk_find(disk.dev, &disk);
		if (ret)
			return ret;
	}
	ret = goal_set(cgroup_host_of(blkcg), disk, &goal);
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

void goals_free(struct cgroup_host *c)
{
	struct device_goal *g, *next;

	list_for_each_entry_safe(g, next, &c->goals, node)
		kfree(g);
}
