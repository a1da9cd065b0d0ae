// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs - what the scheduler knows, read-only, under block/<disk>/sched/ and
 * block/<disk>/hctxN/sched/
 *
 *	sched/state	virtual time, slots by level of the tree, counters
 *	sched/flows	a line per cgroup: weight, share, tags, waiting, out
 *	hctxN/sched/queues	a line per CPU: lead, state and why
 *
 * Snapshots: nothing is stopped while they are read.
 */
#include "device.h"
#include "mqfq.h"

static const char *const verdict_names[] = {
	[VERDICT_IO]		= "runs",
	[VERDICT_EMPTY]		= "empty",
	[VERDICT_THROTTLED]	= "throttled",
	[VERDICT_NO_SLOT]	= "no-slot",
};
static_assert(ARRAY_SIZE(verdict_names) == VERDICT_KINDS);

static const char *const level_names[] = {
	[TOPO_QUEUE]	= "queue",
	[TOPO_CORE]	= "core",
	[TOPO_SOCKET]	= "socket",
	[TOPO_MACHINE]	= "machine",
};
static_assert(ARRAY_SIZE(level_names) == TOPO_LEVELS);

static void show_slots(struct seq_file *m, const struct mqfq *mq)
{
	u32 level;

	seq_printf(m, "depth %u\nslots_free", mq->sched->params.depth);
	for (level = 0; level < TOPO_LEVELS; level++)
		seq_printf(m, " %s=%lld", level_names[level],
			   token_level(&mq->slots, level));
	seq_putc(m, '\n');
}

static void show_state(struct seq_file *m, struct device_host *d)
{
	struct mqfq *mq = d->sched.engine;
	u64 throttled = 0, no_slot = 0, urgent = 0, rebuilds = 0, null = 0;
	u32 i;

	for (i = 0; i < d->sched.nr_queues; i++) {
		struct queue_stats *st = &d->queues[i].queue.stats;

		throttled += READ_ONCE(st->throttled);
		no_slot += READ_ONCE(st->no_slot);
		urgent += READ_ONCE(st->urgent);
		rebuilds += READ_ONCE(st->rebuilds);
	}
	for (i = 0; i < d->nr_hctx; i++)
		null += READ_ONCE(d->hctx[i]->null_dispatches);

	seq_printf(m, "virtual_time %lld\n", (long long)atomic64_read(&mq->vt));
	seq_printf(m, "least_lead %lld\n", (long long)mindicator_min(&mq->leads));
	show_slots(m, mq);
	seq_printf(m, "threshold %u\nactive_flows %u\ngeneration %llu\n",
		   d->sched.params.threshold, d->sched.share.nr_active,
		   share_generation(&d->sched.share));
	seq_printf(m, "kicks %lld\nthrottles %llu\nno_slot %llu\nurgent %llu\n",
		   (long long)atomic64_read(&d->sched.stats.kicks), throttled,
		   no_slot, urgent);
	seq_printf(m, "wheel_turns %lld\nrebuilds %llu\nblocks %lld\n",
		   (long long)atomic64_read(&mq->wheel.turns), rebuilds,
		   (long long)atomic64_read(&d->sched.stats.blocks));
	seq_printf(m, "null_dispatches %llu\nwatchdog %lld\n", null,
		   (long long)atomic64_read(&d->sched.stats.watchdog));
}

static int state_show(void *data, struct seq_file *m)
{
	struct request_queue *q = data;

	if (compat_debugfs_enter(q, mqfair_elevators))
		show_state(m, device_of(q));
	compat_debugfs_exit(q);
	return 0;
}

static void show_flow(struct seq_file *m, struct blkcg_gq *blkg, char *path)
{
	struct flow *f = group_flow(blkg);
	struct mqfq *mq;
	struct flow_totals t;
	vtime_t finish;
	u64 epoch;

	if (!f)
		return;
	flow_totals(f, &t);
	if (!t.inserted)
		return;
	if (compat_blkcg_path(blkg->blkcg, path, PATH_MAX) < 0)
		strscpy(path, "?", PATH_MAX);
	mq = f->sched->engine;
	finish = flow_tag(f, (u64)atomic64_read(&f->pos), &epoch);
	seq_printf(m, "%s weight=%u share_ppm=%llu ahead=%lld queued=%lld outstanding=%lld ios=%llu bytes=%llu\n",
		   path, READ_ONCE(f->group.weight),
		   flow_share_ppm(f),
		   (s64)(finish - (u64)atomic64_read(&mq->vt)),
		   (long long)(t.inserted - t.dispatched),
		   (long long)(t.dispatched - t.done), t.dispatched, t.bytes);
}

static int flows_show(void *data, struct seq_file *m)
{
	struct request_queue *q = data;
	struct cgroup_subsys_state *pos;
	struct blkcg_gq *blkg;
	char *path = kmalloc(PATH_MAX, GFP_KERNEL);

	if (!path)
		return -ENOMEM;
	if (compat_debugfs_enter(q, mqfair_elevators)) {
		rcu_read_lock();
		blkg_for_each_descendant_pre(blkg, pos, q->root_blkg)
			show_flow(m, blkg, path);
		rcu_read_unlock();
	}
	compat_debugfs_exit(q);
	kfree(path);
	return 0;
}

static void show_queue(struct seq_file *m, struct queue_host *qh)
{
	struct queue *q = &qh->queue;
	struct mqfq *mq = q->sched->engine;
	vtime_t lead = READ_ONCE(q->lead);

	seq_printf(m, "cpu=%d queue=%u state=%s waiting=%u", qh->cpu, q->index,
		   verdict_names[READ_ONCE(q->state)], READ_ONCE(q->nr));
	if (lead != VTIME_NONE)
		seq_printf(m, " lead_ahead=%lld",
			   (s64)(lead - (u64)atomic64_read(&mq->vt)));
	seq_printf(m, " inserted=%llu dispatched=%llu throttled=%llu no_slot=%llu urgent=%llu\n",
		   q->stats.dispatched + q->nr, q->stats.dispatched, q->stats.throttled,
		   q->stats.no_slot, q->stats.urgent);
}

static int queues_show(void *data, struct seq_file *m)
{
	struct blk_mq_hw_ctx *hctx = data;
	u32 i;

	if (compat_debugfs_enter(hctx->queue, mqfair_elevators)) {
		struct hctx_host *h = hctx->sched_data;

		seq_printf(m, "in_flight=%d hw_depth=%u staged=%d blocked=%d\n",
			   atomic_read(&h->in_flight), h->hw_depth,
			   READ_ONCE(h->staged) != NULL, READ_ONCE(h->blocked));
		for (i = 0; i < h->nr_queues; i++)
			show_queue(m, h->queue[i]);
	}
	compat_debugfs_exit(hctx->queue);
	return 0;
}

const struct blk_mq_debugfs_attr mqfair_queue_debugfs[] = {
	{ "state", 0400, state_show },
	{ "flows", 0400, flows_show },
	{ },
};

const struct blk_mq_debugfs_attr mqfair_hctx_debugfs[] = {
	{ "queues", 0400, queues_show },
	{ },
};
