// SPDX-License-Identifier: GPL-2.0
/*
 * ifq - interference fair queueing
 *
 * The problem.  Tenants that are hungry for throughput and tenants that wait
 * for each request share a drive.  Equal shares serve the second kind badly.
 * Such a tenant is idle most of the time and gains nothing by that, but waits
 * in line with tenants that never are.  The predecessor in the paper gives time
 * slices in inverse proportion to usage.  They are just on average, but a
 * tenant that has used up its slice waits for the next one.  So the tail of the
 * latencies is a slice long.
 *
 * The idea (the paper).  A must disturb B as much as B disturbs A.  Shares are
 * inversely proportional to the bytes that each tenant was served in the last
 * window.  Fair queueing gives these shares request by request, so no tenant
 * waits for a slice.  Few requests are let into the drive at a time (D = 8),
 * because a request that waits here can still be overtaken.
 *
 * Example (figure 4 of the paper).  Six units of a resource; A needs 18, from
 * t = 0; B needs 18, from t = 2; C takes all it can get.  They end up with 18,
 * 18 and 36, so their weights are 2 : 2 : 1.
 *
 *	t	0 ........ 2 ............ 6.17 ........ 8.17 ....... 12
 *	A	    4            2.4
 *	B	                 2.4             4
 *	C	    2            1.2             2            6
 *
 * The parts.  Order, tags, slots and wake-ups are those of mqfq.c at T = 0,
 * every line of it: this is Min-SFQ(D).  Only the meaning of a weight differs:
 * ifq_weight.h.
 *
 * The start tag of a returning flow.  The paper chooses among three definitions
 * of virtual time, by the requests that the queue or the device holds.  They
 * order requests differently only for a flow that has nothing waiting.  Such a
 * flow starts at
 *
 *	min	the least start tag that waits: it is in line with the others
 *	max	the greatest start tag dispatched, which is no more than that:
 *		it goes before all requests that wait
 *	4tag	the least start tag in the device: it also makes up for service
 *		that it left unused since then, D requests at most
 *
 * [P] With max and 4tag more requests of different users go into the device at
 * once, and fewer are kept here: hence min, the default.  [K] By Jin, Chase
 * and Kaur, min would be the least tag *in the device* and 4tag would order by
 * max's tag, then by min's.  [R] Our min is the least tag that waits, which a
 * slow request cannot hold back.  Our 4tag orders by the second of its tags
 * alone.  Max's tag of a newcomer is never beyond the tags that wait, so the
 * two orders differ among newcomers only.  The least tag in the device is known
 * to one batch of requests (struct device_tags).  Both max and 4tag take a lock
 * for each request, and are for comparison.
 *
 * The window [R].  With the paper's 100 s a desktop is in disorder for that
 * long after each change.  A window must hold many requests of each tenant that
 * it judges.  It is also the time for which a tenant that turned from light to
 * heavy may delay the others.  doc/ifq.md has the measurements behind 500 ms.
 *
 * Invariants: those of mqfq.c, and
 *   I6  The end of a window changes no position and not virtual time.  A flow
 *       that was d ahead is d * old share / new share ahead (flow.h).
 *   I7  Every throttled queue looks again after shares have changed.
 *
 * Limits.  Usage is counted in bytes, as in the paper, so `cost` is bytes,
 * too.  The order of a single queue (T = 0) is kept over all queues.  Each
 * queue waits for the one that holds virtual time back, which costs throughput
 * on drives with many queues.  mqfq is for those drives.
 *
 * Sources: Sui, Ye, Yang, Tong, An Interference Fair Queueing I/O Scheduler
 * under High Performance Processors, Acta Scientiarum Naturalium Universitatis
 * Pekinensis, 2020.  SFQ(D): Jin, Chase, Kaur, Interposed Proportional Sharing
 * for a Storage Service Utility, SIGMETRICS 2004.
 * Tested by tests/sim/ifq.c, tests/unit/ifq_weight.c, tests/mt/mqfq.c.
 */
#include "ifq.h"
#include "core/policies.h"
#include "core/send.h"

static struct ifq *ifq_of(const struct sched *s)
{
	return s->own;
}

static enum ifq_virtual_time virtual_time(const struct sched *s)
{
	return READ_ONCE(ifq_params(&s->params)->virtual_time);
}

/* ------------------------------------------------- start tags in the device */

/* Swaps the two batches when the draining one is empty. */
static void tags_swap_batches(struct device_tags *t)
{
	struct dispatch_batch *filling = &t->batch[t->filling];
	struct dispatch_batch *draining = &t->batch[!t->filling];

	port_assert_held(&t->lock);
	if (draining->nr)
		return;
	atomic64_set(&t->least, (s64)filling->start);
	draining->start = (vtime_t)atomic64_read(&t->most);
	t->filling = !t->filling;
}

static void tags_dispatched(struct device_tags *t, struct io *io)
{
	unsigned long flags = port_lock(&t->lock);
	vtime_t most = (vtime_t)atomic64_read(&t->most), tag;
	u64 epoch;

	tag = flow_tag(io->flow, io->pos, &epoch);
	atomic64_set(&t->most, (s64)vtime_max(most, tag));
	t->batch[t->filling].nr++;
	io->flags |= t->filling ? IO_OWN_1 : IO_OWN_0;
	tags_swap_batches(t);
	port_unlock(&t->lock, flags);
}

static void tags_returned(struct device_tags *t, struct io *io)
{
	unsigned long flags = port_lock(&t->lock);

	t->batch[io->flags & IO_OWN_1 ? 1 : 0].nr--;
	io->flags &= (u16) ~(IO_OWN_0 | IO_OWN_1);
	tags_swap_batches(t);
	port_unlock(&t->lock, flags);
}

/* Begins to keep tags: virtual time is the only one known so far. */
static void tags_forget(struct device_tags *t, vtime_t vt)
{
	unsigned long flags = port_lock(&t->lock);

	t->batch[0].start = vt;
	t->batch[1].start = vt;
	atomic64_set(&t->least, (s64)vt);
	atomic64_set(&t->most, (s64)vt);
	port_unlock(&t->lock, flags);
}

static void returned(struct io *io)
{
	if (unlikely(io->flags & (IO_OWN_0 | IO_OWN_1)))
		tags_returned(&ifq_of(io->queue->sched)->tags, io);
}

/*
 * The least start of a flow that has nothing waiting.  It is never beyond
 * mqfq's virtual time, by which queues are throttled.
 */
static vtime_t start_of_flow(const struct sched *s)
{
	const struct ifq *i = ifq_of(s);
	vtime_t vt = mqfq_vt(&i->mqfq), tag = vt;

	switch (virtual_time(s)) {
	case IFQ_MIN:
		break;
	case IFQ_MAX:
		tag = (vtime_t)atomic64_read(&i->tags.most);
		break;
	case IFQ_4TAG:
		tag = (vtime_t)atomic64_read(&i->tags.least);
		break;
	}
	return vtime_before(vt, tag) ? vt : tag;
}

/* -------------------------------------------------------------- the I/O path */

static void ifq_insert(struct queue *q, struct io *io, u64 now,
		       struct wake *wake)
{
	struct ifq *i = ifq_of(q->sched);

	if (unlikely(mqfq_insert_at(q, io, now, start_of_flow(q->sched), wake)))
		ifq_weight_join(&i->ifq_weight, io->flow, now);
	/*
	 * The wake of urgent_release() is dropped.  But while an adopted io has
	 * waited, the root has had the scale 1, and no share changes there.
	 */
	if (unlikely(q->adopted == io) &&
	    ifq_weight_adopt(&i->ifq_weight, io->flow))
		mqfq_tune(q->sched, NULL, wake); /* I7 */
}

static enum dispatch_result ifq_dispatch(struct queue *q, u64 now,
					 struct io **out, struct wake *wake)
{
	enum dispatch_result result = mqfq_dispatch(q, now, out, wake);

	if (unlikely(virtual_time(q->sched) != IFQ_MIN) &&
	    result == DISPATCH_IO)
		tags_dispatched(&ifq_of(q->sched)->tags, *out);
	return result;
}

/* A run has no start tags in the device: virtual_time=min needs none. */
static bool ifq_send(struct queue *q, struct io *first, u32 nr, u64 now,
		     struct wake *wake)
{
	struct ifq *i = ifq_of(q->sched);
	struct run r = { .first = first, .nr = nr };

	if (virtual_time(q->sched) != IFQ_MIN ||
	    !mqfq_send_run(q, &r, now, wake))
		return false;
	if (unlikely(r.woke))
		ifq_weight_join(&i->ifq_weight, first->flow, now);
	return true;
}

static void ifq_complete(struct io *io, u64 now, struct wake *wake)
{
	returned(io);
	mqfq_complete(io, now, wake);
}

static void ifq_requeue(struct io *io, struct wake *wake)
{
	returned(io);
	mqfq_requeue(io, wake);
}

/* ----------------------------------------------------------------- slow work */

static void ifq_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct ifq *i = ifq_of(s);

	if (now >= ifq_weight_end_ns(&i->ifq_weight, s)) {
		ifq_weight_roll(&i->ifq_weight, s, now);
		mqfq_tune(s, NULL, wake); /* I7 */
	} else {
		ifq_weight_account(s);
	}
	mqfq_tick(s, now, wake);
	/* While no flow is active, windows end without a tick. */
	if (wake->at_ns)
		wake_at(wake, ifq_weight_end_ns(&i->ifq_weight, s));
}

static void ifq_tune(struct sched *s, const struct sched_params *p,
		     struct wake *wake)
{
	struct ifq *i = ifq_of(s);

	if (p && virtual_time(s) == IFQ_MIN)
		tags_forget(&i->tags, mqfq_vt(&i->mqfq));
	mqfq_tune(s, p, wake);
}

static int ifq_init(struct sched *s)
{
	struct ifq *i = ifq_of(s);
	int ret = mqfq_init(s);

	if (ret)
		return ret;
	ifq_weight_init(&i->ifq_weight);
	port_lock_init(&i->tags.lock);
	tags_forget(&i->tags, mqfq_vt(&i->mqfq));
	return 0;
}

static void ifq_exit(struct sched *s)
{
	struct ifq *i = ifq_of(s);

	port_assert(!i->tags.batch[0].nr && !i->tags.batch[1].nr);
	mqfq_exit(s);
}

/* --------------------------------------------------------------- statistics */

static void ifq_report(const struct sched *s, struct report *r)
{
	const struct ifq_weight *e = &ifq_of(s)->ifq_weight;

	mqfq_report(s, r);
	report_number(r, "window_number", (s64)READ_ONCE(e->window));
}

/* The numbers of the cgroup among its siblings: cgroups below it included. */
static void ifq_report_flow(const struct flow *f, struct report *r)
{
	const struct ifq_weight_flow *i = flow_own(f);
	u64 milli = READ_ONCE(f->group.scale) * 1000ULL;

	mqfq_report_flow(f, r);
	report_number(r, "served_last_bytes",
		      (s64)READ_ONCE(i->group.last_bytes));
	report_number(r, "served_bytes", (s64)READ_ONCE(i->group.served_bytes));
	report_number(r, "weight_scale_milli", (s64)(milli >> SCALE_SHIFT));
}

static const char *const virtual_time_names[] = {
	[IFQ_MIN]	= "min",
	[IFQ_MAX]	= "max",
	[IFQ_4TAG]	= "4tag",
	NULL,
};

static const struct tunable ifq_tunables[] = {
	/* The paper has 8, for a drive with about that much parallelism. */
	{ TUNABLE_DEPTH_AUTO },
	{ TUNABLE_U32("window_ms", struct ifq_params, window_ms, 50, 1000000, 1,
		      500) },
	{ TUNABLE_U32("floor_kb", struct ifq_params, floor, 1, 1 << 20, 1024,
		      64) },
	{ TUNABLE_ISOLATION },
	{
		TUNABLE_U32("clamp", struct ifq_params, clamp, 1, 10000, 1,
			    1000),
		.research = true,
	},
	{
		TUNABLE_U32("damping", struct ifq_params, damping, 0, 100, 1,
			    50),
		.research = true,
	},
	{
		TUNABLE_NAMES("virtual_time", struct ifq_params, virtual_time,
			      virtual_time_names, IFQ_MIN),
		.research = true,
	},
	{ }
};

const struct sched_ops ifq_ops = {
	.name		= "ifq",
	.tunables	= ifq_tunables,
	.ordered	= true,
	.bytes		= sizeof(struct ifq),
	.queue_bytes	= sizeof(struct mqfq_queue),
	.params_bytes	= sizeof(struct ifq_params),
	.flow_bytes	= sizeof(struct ifq_weight_flow),
	.flow_queue_bytes = sizeof(struct tag_lane),
	.init		= ifq_init,
	.exit		= ifq_exit,
	.insert		= ifq_insert,
	.merge		= mqfq_merge,
	.dispatch	= ifq_dispatch,
	.block		= mqfq_block,
	.send		= ifq_send,
	.complete	= ifq_complete,
	.requeue	= ifq_requeue,
	.tick		= ifq_tick,
	.tune		= ifq_tune,
	.report		= ifq_report,
	.report_flow	= ifq_report_flow,
};
