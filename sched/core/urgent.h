/* SPDX-License-Identifier: GPL-2.0 */
/*
 * urgent - bounds the requests that pass all others
 *
 * The problem.  Other tasks may wait for a metadata or swap request: it is part
 * of a journal, or it frees memory.  So it passes all requests that wait, and
 * its flow pays afterwards.  A flow that sends many of them would take the
 * device whatever its weight, and then stand still until its debt is paid:
 *
 *	weights 10 and 1000; the first sends 200 ms of metadata, 40 at a time:
 *	it gets 71 % of the drive, and no read afterwards for 14 s.
 *
 * The rule [R].  An urgent request passes while its flow has
 *   - less than a quarter of D of them in the device or about to go, and
 *   - a debt of at most URGENT_DEBT_NS of its share, with the request.  Half of
 *     its share pays the debt, and the other half is left to other requests.
 *     An idle flow has the share that its weight will give it.
 * Any other urgent request is *ordered*: it waits in a lane, as if it were not
 * urgent.  The lane is that of the root, if the root's share is larger than the
 * flow's.  Then the request is *adopted*: from its insert on it is a request of
 * the root, which pays for it.
 *
 *	The same flow: it is entitled to 0.9 % beside the root, the root to 9 %.
 *	Metadata passes for up to 0.45 % of the drive and is ordered for 9 %.
 *
 * Why the root.  The root's share is the share of journals and of kernel
 * threads.  A journal may wait for metadata of a light flow, and so must not
 * wait for the share of that flow.  Without a bound the light flow would escape
 * its weight.  A bound alone would hold the journal.
 *
 * The requests of the root itself do not wait for those that it has adopted.
 * Of each queue, one adopted request at a time is in the root's lane.  The next
 * waits in queue.to_adopt, and is charged and put into the lane when that one is
 * dispatched.
 *
 *	Swap: 62 pages go out in one request, which is 3.4 s of that flow's share.
 *	It is ordered.  If it passed, no page would come in for 1.4 s.  The host
 *	merges nothing into a request that passes, for the same reason.
 *
 * The debt is counted as the time at which it will be paid (GCRA): each request
 * that passes adds its cost / (half of the share * rate of the device).  The
 * rate is the work that was done between two sweeps, in the mean of the last.
 *
 * Limits
 *   - The bound is the root's share for all adopted requests together.  Its
 *     weight is 100, so beside weights far below 100 that is much.
 *   - A device that was not busy has too low a rate.  More requests are ordered
 *     then, which costs nothing on such a device.
 *   - A flow that has a whole quarter of D in the device may have others that
 *     are ordered, and that are served after later ones.
 *   - Without virtual time, queues do not compare the requests of the root.  So
 *     the requests that it has adopted in one queue use credit that its own in
 *     another queue could have used.  Half of its share passes in any case.
 *   - The latencies of adopted requests are the root's, and so are the pages
 *     that they write in the shadow FTL of hwabc.
 *
 * Locking: letters as in sched.h.
 *
 * Sources: the generic cell rate algorithm: ITU-T I.371.  That metadata and swap
 * must not wait for their cgroup: blk-iocost.c and blk-iolatency.c charge them
 * as a debt, or to the root.
 * Tested by tests/sim/urgent.c, tests/unit/urgent.c, tests/vm.
 */
#ifndef MQFAIR_URGENT_H
#define MQFAIR_URGENT_H

#include "port.h"

struct flow;
struct io;
struct queue;
struct sched;

enum {
	URGENT_DEBT_NS		= 50 * 1000 * 1000,
	URGENT_PAY_SHIFT	= 1,	/* part of the share that pays */
	URGENT_DEPTH_SHIFT	= 2,	/* part of D */
	/* Before the first sweep: cost in 2^URGENT_RATE_SHIFT ns; a slow SSD. */
	URGENT_RATE_FIRST	= 1 << 17,
	URGENT_RATE_SHIFT	= 20,
};

/* Of a flow. */
struct urgent_flow {
	atomic64_t paid_ns;	/* A: the time at which its debt is paid */
	atomic64_t passing;	/* A: ios that pass, waiting or in the device */
	u32 cost;		/* any CPU, a hint: of its last urgent io */
};

/* Of a device. */
struct urgent {
	u64 rate;		/* O, by tick: cost in 2^URGENT_RATE_SHIFT ns */
};

void urgent_init(struct urgent *u);

/*
 * May a request of @f pass that costs @cost?  Then the flow has a debt for it.
 * Any context.
 */
bool urgent_passes(struct flow *f, u32 cost, u64 now);

/* Could an urgent request of @f pass now that costs as much as the last?  A snapshot. */
bool urgent_may_pass(const struct flow *f, u64 now);

/* Returns @f, or its root if that has a larger share than @f. */
struct flow *urgent_payer(struct flow *f);

/* Of flow_sweep(), after all flows: learns the rate.  @work is the cost completed in @ns. */
void urgent_measure(struct urgent *u, u64 work, u64 ns);

/* Slow path of queue_dispatched(): the adopted io of @q goes. */
void urgent_release(struct queue *q, u64 now);

#endif /* MQFAIR_URGENT_H */
