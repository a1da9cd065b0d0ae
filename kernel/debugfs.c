// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs - read-only state, under block/<disk>/sched/
 *
 *	state	the scheduler's own state, then counters of all
 *	flows	a line per cgroup: weight, share, waiting, in the device
 *	queues	a line per hardware queue, each followed by a line per CPU:
 *		state, reason, waiting requests
 *
 * A reader gets a snapshot: I/O goes on meanwhile.
 *
 * No file is in a folder of a hardware queue.  Before Linux 6.16 a task that
 * attaches a scheduler creates such files while another task may remove the
 * folder, because the number of hardware queues changes.  The kernel then
 * dereferences a null pointer.  It creates none for a scheduler without them.
 */
#include "debugfs.h"

#include "limit.h"
#include "stage.h"
#include "cgroup.h"

/* A task that waits for a tag so long is stuck, or its flow starves. */
#define TAG_STUCK_NS	(60ULL * NSEC_PER_SEC)

static const char *const dispatch_result_names[] = {
	[DISPATCH_IO]		= "runs",
	[DISPATCH_EMPTY]		= "empty",
	[DISPATCH_THROTTLED]	= "throttled",
	[DISPATCH_NO_SLOT]	= "no-slot",
	[DISPATCH_NO_BUDGET]	= "no-budget",
};
static_assert(ARRAY_SIZE(dispatch_result_names) == DISPATCH_KINDS);

struct seq_report {
	struct report report;
	struct seq_file *m;
	const char *last;		/* name of the last value */
};

/* Prints "name value", or the parts of one name: "name part=value ..." */
static void put_state(struct report *r, const char *name, const char *part,
		      s64 value)
{
	struct seq_report *sr = container_of(r, struct seq_report, report);

	if (!sr->last || strcmp(sr->last, name))
		seq_printf(sr->m, "%s%s", sr->last ? "\n" : "", name);
	seq_printf(sr->m, part ? " %s=%lld" : "%s %lld", part ?: "",
		   (long long)value);
	sr->last = name;
}

static void put_pair(struct report *r, const char *name, const char *part,
		     s64 value)
{
	struct seq_report *sr = container_of(r, struct seq_report, report);

	seq_printf(sr->m, " %s%s%s=%lld", name, part ? "." : "", part ?: "",
		   (long long)value);
}

static void show_state(struct seq_file *m, struct device_host *d)
{
	struct seq_report sr = { .report.put = put_state, .m = m };
	u64 throttled = 0, no_slot = 0, urgent = 0, rebuilds = 0, null = 0;
	u64 now = ktime_get_ns();
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

	if (d->sched.ops->report)
		d->sched.ops->report(&d->sched, &sr.report);
	if (sr.last)
		seq_putc(m, '\n');
	seq_printf(m, "depth %u\n", d->sched.params.depth);
	seq_printf(m, "active_flows %u\ngeneration %llu\n",
		   d->sched.share.nr_active, share_generation(&d->sched.share));
	seq_printf(m, "ticks %llu\n", READ_ONCE(d->sched.stats.ticks));
	seq_printf(m, "wakes %lld\nthrottles %llu\nno_slot %llu\nurgent %llu\n",
		   (long long)atomic64_read(&d->sched.stats.wakes), throttled,
		   no_slot, urgent);
	seq_printf(m, "rebuilds %llu\nblocks %lld\n", rebuilds,
		   (long long)atomic64_read(&d->sched.stats.blocks));
	seq_printf(m, "null_dispatches %llu\nwatchdog %lld\n", null,
		   (long long)atomic64_read(&d->sched.stats.watchdog));
	seq_printf(m, "tag_waiters %u\ntag_waiters_stuck %u\n",
		   limit_waiters(d, now),
		   limit_waiters(d, now - min(now, (u64)TAG_STUCK_NS)));
}

static bool is_ours(const struct elevator_type *type)
{
	return type->elevator_owner == THIS_MODULE;
}

static int state_show(void *data, struct seq_file *m)
{
	struct request_queue *q = data;

	if (compat_debugfs_enter(q, is_ours))
		show_state(m, device_of(q));
	compat_debugfs_exit(q);
	return 0;
}

static void show_flow(struct seq_file *m, struct blkcg_gq *blkg, char *path)
{
	struct seq_report sr = { .report.put = put_pair, .m = m };
	struct flow *f = group_flow(blkg);
	struct flow_totals t;

	if (!f)
		return;
	flow_totals(f, &t);
	if (!t.inserted)
		return;
	if (compat_blkcg_path(blkg->blkcg, path, PATH_MAX) < 0)
		strscpy(path, "?", PATH_MAX);
	seq_printf(m, "%s weight=%u share_ppm=%llu", path,
		   READ_ONCE(f->group.weight), flow_share_ppm(f));
	if (f->sched->ops->report_flow)
		f->sched->ops->report_flow(f, &sr.report);
	latency_report_flow(f, &sr.report);
	seq_printf(
		m,
		" queued=%lld outstanding=%lld ios=%llu bytes=%llu wait_us=%llu\n",
		(long long)(t.inserted - t.dispatched),
		(long long)(t.dispatched - t.done), t.dispatched, t.bytes,
		div_u64(t.wait_ns, NSEC_PER_USEC));
}

static int flows_show(void *data, struct seq_file *m)
{
	struct request_queue *q = data;
	struct cgroup_subsys_state *pos;
	struct blkcg_gq *blkg;
	char *path = kmalloc(PATH_MAX, GFP_KERNEL);

	if (!path)
		return -ENOMEM;
	if (compat_debugfs_enter(q, is_ours)) {
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
	vtime_t head_tag = READ_ONCE(q->head_tag);

	seq_printf(m, "cpu=%d queue=%u state=%s waiting=%u", qh->cpu, q->index,
		   dispatch_result_names[READ_ONCE(q->state)],
		   READ_ONCE(q->nr));
	if (head_tag != VTIME_NONE)
		seq_printf(m, " head_tag=%lld", (s64)head_tag);
	seq_printf(
		m,
		" inserted=%llu dispatched=%llu throttled=%llu no_slot=%llu urgent=%llu\n",
		q->stats.dispatched + q->nr, q->stats.dispatched,
		q->stats.throttled, q->stats.no_slot, q->stats.urgent);
}

static void show_hctx(struct seq_file *m, u32 index, struct hctx_host *h)
{
	u32 i;

	seq_printf(m, "hctx=%u in_flight=%u hw_depth=%u staged=%d blocked=%d\n",
		   index, hctx_in_flight(h),
		   hctx_shares_tags(h) ? 0 : h->hw_depth,
		   READ_ONCE(h->staged) != NULL, READ_ONCE(h->blocked));
	for (i = 0; i < h->nr_queues; i++)
		show_queue(m, h->queue[i]);
}

static int queues_show(void *data, struct seq_file *m)
{
	struct request_queue *q = data;

	if (compat_debugfs_enter(q, is_ours)) {
		struct device_host *d = device_of(q);
		u32 i;

		for (i = 0; i < d->nr_hctx; i++)
			show_hctx(m, i, d->hctx[i]);
	}
	compat_debugfs_exit(q);
	return 0;
}

const struct blk_mq_debugfs_attr mqfair_queue_debugfs[] = {
	{ "state", 0400, state_show },
	{ "flows", 0400, flows_show },
	{ "queues", 0400, queues_show },
	{ },
};
