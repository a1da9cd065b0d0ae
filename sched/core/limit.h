/* SPDX-License-Identifier: GPL-2.0 */
/*
 * limit - how many scheduler tags of a map one flow may occupy
 *
 * The block layer gives a request a tag before the scheduler sees the request.
 * A flow could fill the tag map with requests that the scheduler delays.  The
 * other flows would then wait above the scheduler, where no weight is known.
 * This file has the numbers.  The host counts the tags and lets tasks wait:
 * kernel/limit.c does, and sim/tags.c.
 *
 * The rule.  Half of the tags are first come, first served.  A flow may use
 * tags of the other half up to its *quota*, which is its share of the whole
 * map.  So every flow can have as many requests waiting as its share of the
 * device needs.  A map of twice D tags keeps the device busy even if some flows
 * are idle.
 *
 * Loans.  The tags that a flow leaves of its quota are lent to the flows that
 * want more.  Each of these is filled up to the same multiple of its share, the
 * *water level* (max-min fairness by water-filling).
 *
 *	ifq, D = 8, 32 tags, shares of 91 : 6 : 3.  The first flow wants one
 *	request at a time.  Its 29 tags do not wait for it: one is its own, 2
 *	stay free for the next arrival, and 29 are filled to the level of 10.
 *	The other two flows get 19 and 10 tags.  By shares alone they would get
 *	one each, and the second could not have its two thirds of the device.
 *
 * A tag is lent while more than a sixteenth of the map is free, so that a flow
 * below its quota finds a free tag.  A loan is not renewed after the level has
 * fallen.  When all flows want more the level is 1, and each flow occupies its
 * quota.  With no more than two tags per slot a flow needs its whole quota,
 * because requests that complete together are dispatched together.  A flow that
 * is alone is not limited.
 *
 * Many flows.  Half of the map and all quotas together exceed the map.  When
 * flows are many, the last tags are reserved for flows that have none.  Without
 * a tag a flow cannot claim its share.  A scheduler that waits for such a flow
 * stands still while the flows that it delays have all tags.
 *
 *	128 tags, 64 flows of depth 4: 64 tags go to the first 16 flows, 2 to
 *	each of the next 32, and the last 16 flows would have none.
 *
 * Demand.  The demand of a flow is the largest number of tags that it occupied
 * and asked for, in this interval or in the last one.  It is unlimited if the
 * flow was refused a tag.  limit_level_tick() computes the level from the demands.
 *
 * Claims.  A flow may have room in its quota while no tag is free.  Its tasks
 * that wait for a free tag then count as if they had one.
 *
 *	64 tags, D = 16, two flows of 1,000 tasks, weights of 100 and 300.  The
 *	first has asked earlier and occupies the map.  All tasks of the second find
 *	room for 48 tags.  Without claims 1,000 of them stood in the line for a free
 *	tag, and the first flow got 14.5 % of the device.  With claims it gets 25 %.
 *
 * Kernel threads.  A task asks in the name of its own flow, because there is no
 * bio yet.  The flusher of written pages, dm-crypt, md and loop are of the root,
 * and work for other cgroups.  The root's flow has no tags, however many such a
 * thread fills.  So the tags of *foreign* requests are counted for each map: those
 * of a kernel thread, unless it works for the root.  They have half of it at most.
 *
 *	64 tags, D = 16, and a flusher that writes for a cgroup of weight 100.  A
 *	reader of weight 900 with 32 requests got 50 % of the drive, because it had
 *	8 tags.  With half of the map for the flusher it gets its 90 %.
 *
 * Cgroups for which one thread writes share its half in order of arrival.
 *
 * Source of the rule: Bertsekas, Gallager, Data Networks, 1992, section 6.5.2.
 * Tested by tests/unit/limit.c, tests/sim/tags.c, tests/vm/test_tags.py.
 */
#ifndef MQFAIR_CORE_LIMIT_H
#define MQFAIR_CORE_LIMIT_H

#include "port.h"

struct flow;
struct sched;

/* The demand of a flow that wants as many tags as it can get. */
#define LIMIT_ALL	(~0U)

/* The tags that a flow wants.  The host counts the waiters. */
struct limit_flow {
	u32 waiters;		/* O: tasks that wait for a tag */
	u32 wants;		/* O: most in this interval */
	u32 wanted;		/* tick: most in the last interval */
	u32 counted;		/* tick: demand that the level counts */
};

/* The tag maps of a device.  All zeros, but for the depth, at the start. */
struct limit {
	u32 depth;		/* O: tags of the smallest map */
	u32 level;		/* O, by tick: the water level */
	u64 next_ns;		/* tick: when the level is due again */
};

/*
 * Returns how many more tags @f may take of a map with @depth tags.  @used of
 * them are occupied, @occupied by @f, its claims included.  The caller needs no
 * lock.
 */
u64 limit_left(const struct limit *l, const struct flow *f, u32 depth, u32 used,
	       u64 occupied);

/*
 * The half of a map with @depth tags that is first come, first served.  Kernel
 * threads may hold as many tags for cgroups.
 */
static inline u32 limit_half(u32 depth)
{
	return max(depth / 2, 1U);
}

/* May kernel threads take @tags more for cgroups, with @foreign such tags in use? */
static inline bool limit_foreign_left(u32 depth, u32 foreign, u32 tags)
{
	return foreign + tags <= limit_half(depth);
}

/* Raises the demand of @f in this interval: it wants @tags in all. */
void limit_want(struct flow *f, u32 tags);

/*
 * Computes the level anew, by tick, if it is due.  Returns whether it was: the
 * host then looks at the flows with waiters.
 */
bool limit_level_tick(struct limit *l, struct sched *s, u64 now);

#endif /* MQFAIR_CORE_LIMIT_H */
