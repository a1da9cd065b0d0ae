// SPDX-License-Identifier: GPL-2.0
/*
 * cgroup - the one blk-cgroup policy, its groups and settings; cgroup.h
 *
 * The kernel has six policy slots for all modules, so all schedulers share this
 * policy.
 *
 * Locks.  Settings are under the spin lock of their cgroup_host.  The
 * list of groups of each device and group_host.set_up are under groups_lock.  The
 * order is:
 *
 *	blkcg->lock, request queue's lock > groups_lock > the locks of sched/
 *	groups_lock > cgroup_host.lock > share_tree.lock
 *
 * No reader or writer waits for a request queue.  A task that waits here holds its
 * file, and the removal of the cgroup waits for the file with cgroup_mutex held.
 *
 * No flow keeps an old setting.  A writer changes its cgroup_host, then looks for
 * the blkgs, under RCU.  It refreshes each one under groups_lock: the flow takes
 * the setting that its cgroup has by then.  A new blkg is listed first, and then
 * refreshed.  The writer and the new blkg take the same lock for the setting:
 * cgroup_host.lock, or groups_lock for the goal of the parent's flow.  A blkg that
 * reads the old setting was listed before the writer had that lock, so the writer
 * finds the blkg.  Interrupts are off for one refresh at a time, however many
 * cgroups a tenant has made.
 *
 * A flow without a goal of its cgroup inherits that of its parent's flow.  Each
 * writer visits all blkgs below its cgroup, parents first, so the goal that a flow
 * got last reaches all flows below it.  A visit does not depend on the depth.
 *
 * Ends.  A device and a removed cgroup may go in either order.  A work item
 * frees the cgroup's blkg after it has left all lists.  That may happen after
 * the scheduler of its disk has gone.  So each device lists its groups, and
 * takes all of them off before it goes itself.  A flow that leaves touches its
 * ancestors' sums.  So all flows leave before the block layer frees the first
 * group of the device.  A caller that comes by way of a
 * cgroup sees under groups_lock that set_up is false.
 *
 * The module cannot unload before the last group is freed: blkg_free() finds
 * the policy by its number and calls pd_free_fn().  The elevator keeps the
 * module while a device has groups.  A group that its device leaves behind keeps
 * the module itself.  A bio of a removed cgroup keeps such a group, and io.max
 * may delay the bio for long.
 */
#include "cgroup.h"

#include "parse.h"
#include "wake.h"

/* In the list of a cgroup while it has a weight or a goal. */
struct disk_entry {
	struct list_head node;
	struct disk_settings settings;
};

DEFINE_SPINLOCK(groups_lock);	/* irq-safe */

struct cgroup_host *cgroup_host_of(struct blkcg *blkcg)
{
	struct blkcg_policy_data *cpd = blkcg_to_cpd(blkcg, &mqfair_policy);

	return cpd ? container_of(cpd, struct cgroup_host, cpd) : NULL;
}

static struct blkcg_gq *flow_blkg(struct flow *f)
{
	return container_of(f, struct group_host, flow)->pd.blkg;
}

struct blkcg *flow_blkcg(struct flow *f)
{
	return flow_blkg(f)->blkcg;
}

/* --------------------------------------------------------------- settings */

/* The entry of the disk that has number @dev, or had it when it was set. */
static struct disk_entry *entry_find(struct cgroup_host *c, dev_t dev)
{
	struct disk_entry *e;

	lockdep_assert_held(&c->lock);
	list_for_each_entry(e, &c->disks, node)
		if (e->settings.disk.dev == dev)
			return e;
	return NULL;
}

bool settings_get(struct cgroup_host *c, struct disk_id disk,
		  struct disk_settings *to)
{
	struct disk_entry *e;
	unsigned long flags;
	bool found;

	spin_lock_irqsave(&c->lock, flags);
	e = entry_find(c, disk.dev);
	found = e && disk_same(e->settings.disk, disk);
	if (found)
		*to = e->settings;
	spin_unlock_irqrestore(&c->lock, flags);
	return found;
}

bool settings_nth(struct cgroup_host *c, u32 n, struct disk_settings *to)
{
	struct disk_entry *e;
	bool found = false;

	spin_lock_irq(&c->lock);
	list_for_each_entry(e, &c->disks, node) {
		if (n--)
			continue;
		*to = e->settings;
		found = true;
		break;
	}
	spin_unlock_irq(&c->lock);
	return found;
}

/* Takes @e off its list if it has no setting left, and returns it for kfree(). */
static struct disk_entry *entry_drop_empty(struct disk_entry *e)
{
	if (e->settings.weight || e->settings.goal.ns)
		return NULL;
	list_del(&e->node);
	return e;
}

int settings_change(struct cgroup_host *c, struct disk_id disk,
		    void (*set)(struct disk_settings *s, const void *to),
		    const void *to)
{
	struct disk_entry *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	struct disk_entry *e;

	if (!new)
		return -ENOMEM;
	spin_lock_irq(&c->lock);
	e = entry_find(c, disk.dev);
	if (!e) {
		e = new;
		new = NULL;
		list_add_tail(&e->node, &c->disks);
	}
	if (!disk_same(e->settings.disk, disk))
		e->settings = (struct disk_settings){ .disk = disk };
	set(&e->settings, to);
	spin_unlock_irq(&c->lock);
	kfree(new);
	return 0;
}

void settings_clear(struct cgroup_host *c, dev_t dev,
		    void (*set)(struct disk_settings *s, const void *to),
		    const void *to)
{
	struct disk_entry *e;

	spin_lock_irq(&c->lock);
	e = entry_find(c, dev);
	if (e) {
		set(&e->settings, to);
		e = entry_drop_empty(e);
	}
	spin_unlock_irq(&c->lock);
	kfree(e);
}

/* The weight of a cgroup on @disk: the one for @disk, or the default. */
static u32 cgroup_weight(struct cgroup_host *c, struct disk_id disk)
{
	struct disk_settings s;

	return settings_get(c, disk, &s) && s.weight ? s.weight :
						       READ_ONCE(c->weight);
}

static u32 blkg_weight(struct blkcg_gq *blkg, struct disk_id disk)
{
	struct cgroup_host *c = cgroup_host_of(blkg->blkcg);

	return c ? cgroup_weight(c, disk) : WEIGHT_DEFAULT;
}

struct blkcg *goal_source(struct blkcg *blkcg, struct disk_id disk,
			  struct goal *goal)
{
	struct disk_settings s;

	for (; blkcg; blkcg = blkcg_parent_of(blkcg)) {
		struct cgroup_host *c = cgroup_host_of(blkcg);

		if (c && settings_get(c, disk, &s) && s.goal.ns) {
			*goal = s.goal;
			return blkcg;
		}
	}
	*goal = (struct goal){ 0 };
	return NULL;
}

/* The goal of the cgroup of @blkg, or that of its parent's flow. */
static struct goal blkg_goal(struct blkcg_gq *blkg, struct disk_id disk)
{
	struct flow *parent = blkg->parent ? group_flow(blkg->parent) : NULL;
	struct cgroup_host *c = cgroup_host_of(blkg->blkcg);
	const struct flow_latency *l;
	struct disk_settings s;

	lockdep_assert_held(&groups_lock);
	if (c && settings_get(c, disk, &s) && s.goal.ns)
		return s.goal;
	if (!parent)
		return (struct goal){ 0 };
	l = &parent->latency;
	return (struct goal){ .ns = l->goal_ns, .permille = l->goal_permille };
}

/* Both give the flow of @blkg the present setting, once the block layer lists @blkg. */
static void weight_refresh(struct blkcg_gq *blkg)
{
	struct flow *f = group_flow(blkg);

	lockdep_assert_held(&groups_lock);
	if (f && flow_set_weight(f, blkg_weight(blkg, flow_disk(f))))
		host_reshare(f->sched);
}

static void goal_refresh(struct blkcg_gq *blkg)
{
	struct flow *f = group_flow(blkg);
	struct goal goal;

	lockdep_assert_held(&groups_lock);
	if (!f)
		return;
	goal = blkg_goal(blkg, flow_disk(f));
	latency_set_goal(f, goal.ns, goal.permille);
}

/* Sets the weight of the cgroup's flow on each device. */
void weight_apply(struct blkcg *blkcg)
{
	struct blkcg_gq *blkg;

	rcu_read_lock();
	hlist_for_each_entry_rcu(blkg, &blkcg->blkg_list, blkcg_node) {
		spin_lock_irq(&groups_lock);
		weight_refresh(blkg);
		spin_unlock_irq(&groups_lock);
	}
	rcu_read_unlock();
}

static bool blkg_is_on(struct blkcg_gq *blkg, dev_t dev)
{
	struct flow *f;
	bool found;

	spin_lock_irq(&groups_lock);
	f = group_flow(blkg);
	found = f && flow_disk(f).dev == dev;
	spin_unlock_irq(&groups_lock);
	return found;
}

/* Refreshes the flows of @blkcg and of all cgroups below it on @dev. */
void goal_apply(struct blkcg *blkcg, dev_t dev)
{
	struct cgroup_subsys_state *pos;
	struct blkcg_gq *top, *blkg;

	rcu_read_lock();
	hlist_for_each_entry_rcu(top, &blkcg->blkg_list, blkcg_node) {
		if (!blkg_is_on(top, dev))
			continue;
		blkg_for_each_descendant_pre(blkg, pos, top) {
			spin_lock_irq(&groups_lock);
			goal_refresh(blkg);
			spin_unlock_irq(&groups_lock);
		}
	}
	rcu_read_unlock();
}

/* ------------------------------------------------------ cgroup and blkg */

static struct blkcg_policy_data *group_cpd_alloc(gfp_t gfp)
{
	struct cgroup_host *c = kzalloc(sizeof(*c), gfp | __GFP_ACCOUNT);

	if (!c)
		return NULL;
	spin_lock_init(&c->lock);
	INIT_LIST_HEAD(&c->disks);
	c->weight = WEIGHT_DEFAULT;
	return &c->cpd;
}

static void group_cpd_free(struct blkcg_policy_data *cpd)
{
	struct cgroup_host *c = container_of(cpd, struct cgroup_host, cpd);
	struct disk_entry *e, *next;

	list_for_each_entry_safe(e, next, &c->disks, node)
		kfree(e);
	kfree(c);
}

struct group_memory {
	struct flow_memory memory;
	gfp_t gfp;
	int node;
};

static void *piece_alloc(const struct flow_memory *m, size_t bytes)
{
	const struct group_memory *g =
		container_of(m, struct group_memory, memory);

	/* kmalloc() aligns only powers of two.  The owner may make many cgroups. */
	return kzalloc_node(roundup_pow_of_two(bytes), g->gfp | __GFP_ACCOUNT,
			    g->node);
}

static void piece_free(void *piece)
{
	kfree(piece);
}

static struct group_memory group_memory(const struct request_queue *q,
					gfp_t gfp)
{
	return (struct group_memory){
		.memory = {
			.alloc = piece_alloc,
			.free = piece_free,
			/* In this test build each queue has a piece. */
			.most = IS_ENABLED(MQFAIR_TEST_PIECES) ?
					1 :
					FLOW_PIECE_BYTES,
		},
		.gfp = gfp,
		.node = q->node,
	};
}

/*
 * The kernel charges the memory to the running task.  An atomic allocation may exceed
 * the limit of that task's cgroup.
 */
bool group_add_queue(struct flow *f, u32 queue)
{
	struct group_memory m =
		group_memory(flow_blkg(f)->q, GFP_ATOMIC | __GFP_NOWARN);
	u32 wanted = READ_ONCE(f->wanted);

	if (wanted) {
		(void)flow_add_queue(f, &m.memory, wanted - 1);
		WRITE_ONCE(f->wanted, 0);
	}
	return flow_add_queue(f, &m.memory, queue);
}

/*
 * May run under spin locks; gfp says whether it may sleep.  The root pays for requests
 * of others, and so has the memory of all queues.
 */
static struct blkg_policy_data *group_pd_alloc(COMPAT_PD_ALLOC_ARGS)
{
	struct request_queue *queue = COMPAT_PD_QUEUE;
	struct device_host *d = device_of(queue);
	struct group_memory m = group_memory(queue, gfp);
	struct flow *f =
		(blkcg == &blkcg_root ?
			 flow_alloc_whole :
			 flow_alloc)(&m.memory, d->sched.ops,
				     d->sched.nr_queues,
				     offsetof(struct group_host, flow));
	struct group_host *g;

	if (!f)
		return NULL;
	g = container_of(f, struct group_host, flow);
	INIT_LIST_HEAD(&g->node);
	return &g->pd;
}

/* Called for parents first, under the request queue's lock. */
static void group_pd_init(struct blkg_policy_data *pd)
{
	struct blkcg_gq *blkg = pd->blkg;
	struct device_host *d = device_of(blkg->q);
	struct group_host *g = group_of(pd);
	struct flow *parent = blkg->parent ? group_flow(blkg->parent) : NULL;
	unsigned long flags;

	lockdep_assert_held(&blkg->q->queue_lock);
	flow_init(&g->flow, &d->sched, parent, blkg_weight(blkg, host_disk(d)));
	/* A released blkg lets its cgroup go before it comes to group_pd_free(). */
	g->holds_cgroup = css_tryget(&blkg->blkcg->css);
	init_waitqueue_head(&g->tags.swap.wait);
	spin_lock_irqsave(&groups_lock, flags);
	list_add(&g->node, &d->groups);
	WRITE_ONCE(g->set_up, true);
	goal_refresh(blkg);
	spin_unlock_irqrestore(&groups_lock, flags);
}

/* The blkg is in the lists of the block layer now. */
static void group_pd_online(struct blkg_policy_data *pd)
{
	unsigned long flags;

	lockdep_assert_held(&pd->blkg->blkcg->lock);
	spin_lock_irqsave(&groups_lock, flags);
	weight_refresh(pd->blkg);
	goal_refresh(pd->blkg);
	spin_unlock_irqrestore(&groups_lock, flags);
}

void group_keep(struct flow *f)
{
	blkg_get(flow_blkg(f));
}

void group_let_go(struct flow *f)
{
	blkg_put(flow_blkg(f));
}

/* Takes the flow of a group off its device.  A repetition has no effect. */
static void group_leave(struct group_host *g)
{
	lockdep_assert_held(&groups_lock);
	if (!g->set_up)
		return;
	WRITE_ONCE(g->set_up, false);
	flow_exit(&g->flow);
}

static void group_free(struct rcu_head *rcu)
{
	struct group_host *g = container_of(rcu, struct group_host, rcu);
	bool keeps_module = g->keeps_module;

	flow_free(&g->flow, piece_free, offsetof(struct group_host, flow));
	if (keeps_module)
		module_put(THIS_MODULE);
}

/* The flow is inactive, so no share changes.  Spin locks may be held. */
static void group_pd_free(struct blkg_policy_data *pd)
{
	struct group_host *g = group_of(pd);
	unsigned long flags;

	spin_lock_irqsave(&groups_lock, flags);
	list_del_init(&g->node);
	WARN_ON_ONCE(g->set_up && flow_share(&g->flow));
	group_leave(g);
	spin_unlock_irqrestore(&groups_lock, flags);
	if (g->holds_cgroup)
		css_put(&pd->blkg->blkcg->css);
	call_rcu(&g->rcu, group_free);
}

/*
 * Both release the lock after each group, of which a tenant may have made
 * thousands.  Those that were let go are at the end of the list.
 */
static struct group_host *next_group(struct device_host *d)
{
	lockdep_assert_held(&groups_lock);
	return list_first_entry_or_null(&d->groups, struct group_host, node);
}

void groups_leave(struct device_host *d)
{
	struct group_host *g;
	bool left = true;

	while (left) {
		spin_lock_irq(&groups_lock);
		g = next_group(d);
		left = g && g->set_up;
		if (left) {
			group_leave(g);
			list_move_tail(&g->node, &d->groups);
		}
		spin_unlock_irq(&groups_lock);
	}
}

void groups_detach(struct device_host *d)
{
	struct group_host *g;

	do {
		spin_lock_irq(&groups_lock);
		g = next_group(d);
		if (g) {
			group_leave(g);
			list_del_init(&g->node);
			g->keeps_module = true;
			__module_get(THIS_MODULE);
		}
		spin_unlock_irq(&groups_lock);
	} while (g);
}

struct stat_report {
	struct report report;
	struct seq_file *s;
};

/* Prints " mqfair.name.part=value" for io.stat. */
static void put_stat(struct report *r, const char *name, const char *part,
		     s64 value)
{
	struct stat_report *sr = container_of(r, struct stat_report, report);

	seq_printf(sr->s, " mqfair.%s%s%s=%lld", name, part ? "." : "",
		   part ?: "", (long long)value);
}

static void show_stat(struct flow *f, struct seq_file *s)
{
	struct stat_report sr = { .report.put = put_stat, .s = s };
	struct flow_totals t;

	lockdep_assert_held(&groups_lock);
	flow_totals(f, &t);
	if (!t.dispatched)
		return;
	seq_printf(
		s,
		" mqfair.weight=%u mqfair.share_ppm=%llu mqfair.bytes=%llu mqfair.ios=%llu mqfair.wait_us=%llu",
		READ_ONCE(f->group.weight), flow_share_ppm(f), t.bytes,
		t.dispatched, div_u64(t.wait_ns, NSEC_PER_USEC));
	if (f->sched->ops->report_flow)
		f->sched->ops->report_flow(f, &sr.report);
	latency_report_flow(f, &sr.report);
}

static void group_pd_stat(struct blkg_policy_data *pd, struct seq_file *s)
{
	unsigned long flags;
	struct flow *f;

	spin_lock_irqsave(&groups_lock, flags);
	f = group_flow(pd->blkg);
	if (f)
		show_stat(f, s);
	spin_unlock_irqrestore(&groups_lock, flags);
}

/* ------------------------------------------------------------------- disks */

static bool disk_alive(const struct gendisk *disk)
{
	return test_bit(GD_ADDED, &disk->state) &&
	       !test_bit(GD_DEAD, &disk->state);
}

/*
 * Each disk has a blkg of the root cgroup, from before it is added until it is
 * released.  The list of these blkgs tells the disks.  The block layer's own
 * parser of "MAJ:MIN value" waits while the request queue is frozen.
 */
int disk_find(dev_t dev, struct disk_id *id)
{
	struct blkcg_gq *blkg;
	struct gendisk *disk;
	int ret = -ENODEV;

	spin_lock_irq(&blkcg_root.lock);
	hlist_for_each_entry(blkg, &blkcg_root.blkg_list, blkcg_node) {
		/* The blkg of a new disk is in the list before the disk is known. */
		disk = READ_ONCE(blkg->q->disk);
		if (!disk || disk_devt(disk) != dev || !disk_alive(disk))
			continue;
		*id = disk_id(disk);
		ret = 0;
	}
	spin_unlock_irq(&blkcg_root.lock);
	return ret;
}

static bool is_head_of(const struct gendisk *disk, const char *subsystem,
		       int len, const char *namespace)
{
	return !strncmp(disk->disk_name, subsystem, len) &&
	       !strcmp(disk->disk_name + len, namespace) &&
	       !test_bit(GD_DEAD, &disk->state);
}

/* The names are the only tie that the kernel shows: nvme0c1n1 is a path of nvme0n1. */
struct gendisk *disk_head_get(const struct gendisk *path)
{
	const char *namespace;
	unsigned int subsystem, controller;
	struct gendisk *found = NULL;
	struct blkcg_gq *blkg;
	int len = 0, end = 0;

	if (!path || !(path->flags & GENHD_FL_HIDDEN) ||
	    sscanf(path->disk_name, "nvme%u%nc%u%n", &subsystem, &len,
		   &controller, &end) != 2)
		return NULL;
	namespace = path->disk_name + end;
	spin_lock_irq(&blkcg_root.lock);
	hlist_for_each_entry(blkg, &blkcg_root.blkg_list, blkcg_node) {
		struct gendisk *disk = READ_ONCE(blkg->q->disk);

		if (!disk || !is_head_of(disk, path->disk_name, len, namespace))
			continue;
		/* A disk stays in the list while its last reference is dropped. */
		if (!kobject_get_unless_zero(&disk_to_dev(disk)->kobj))
			continue;
		found = disk;
		break;
	}
	spin_unlock_irq(&blkcg_root.lock);
	return found;
}

bool disk_is_there(struct disk_id id)
{
	struct disk_id now;

	return !disk_find(id.dev, &now) && disk_same(id, now);
}

int dev_parse(const char *s, dev_t *dev)
{
	char copy[sizeof("4294967295:4294967295")], *minors = copy, *majors;
	unsigned int major, minor;

	if (strscpy(copy, s, sizeof(copy)) < 0)
		return -EINVAL;
	majors = strsep(&minors, ":");
	if (!minors || parse_number(majors, &major) ||
	    parse_number(minors, &minor))
		return -EINVAL;
	/* MKDEV() truncates numbers that are too large. */
	if (major > MAJOR(~0U) || minor > MINORMASK)
		return -ENODEV;
	*dev = MKDEV(major, minor);
	/* 0:0 is no disk, but the number of a disk that has none yet. */
	return *dev ? 0 : -ENODEV;
}

/* ------------------------------------------------------------------ the policy */

struct blkcg_policy mqfair_policy = {
	.cpd_alloc_fn	= group_cpd_alloc,
	.cpd_free_fn	= group_cpd_free,
	.pd_alloc_fn	= group_pd_alloc,
	.pd_init_fn	= group_pd_init,
	.pd_online_fn	= group_pd_online,
	.pd_free_fn	= group_pd_free,
	.pd_stat_fn	= group_pd_stat,
};

int cgroups_init(struct cftype *files)
{
	mqfair_policy.dfl_cftypes = files;
	return blkcg_policy_register(&mqfair_policy);
}

void cgroups_exit(void)
{
	/* Waits for each group_free(), and for the end of the last one. */
	rcu_barrier();
	blkcg_policy_unregister(&mqfair_policy);
}
