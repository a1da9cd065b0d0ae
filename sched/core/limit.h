/* SPDX-License-Identifier: GPL-2.0 */
/*
 * limit - which task gets the next scheduler tag of a map
 *
 * The block layer gives a request a tag before the scheduler sees the request.
 * Tasks sleep for tags in order of arrival, where no weight is known.  A flow
 * could fill the map with requests that the scheduler delays, and the other
 * flows would wait above the scheduler.
 *
 * The rule [R].  The tasks that wait for tags of a map are a fair queue of their
 * own (SFQ).  A free tag goes to the task of the flow with the least *start tag*.
 * A request that is inserted advances the start tag of its flow by cost / share,
 * as in the scheduler.  Virtual time is the start tag of the last task that got a
 * tag.
 *
 * So the map holds those requests that would be dispatched first if each task
 * had a tag, and scarce tags change no share.  The number of flows does not
 * matter:
 *
 *	64 tags, a task of weight 900 with 64 requests, and a cgroup of weight 100
 *	with 256 children of one request each.  A child's request advances its tag
 *	by 2,560 costs and each of the other task by 1.1.  So between two requests
 *	of a child 2,304 of the task get a tag, and the task gets its 90 %.
 *
 * A quota of tags for each flow could not do that.  A share of 1/2,560 of 64
 * tags is none, and one tag for each flow is the whole map.
 *
 * A flow that waits in several maps has its share in each of them, in proportion
 * to its tasks there.
 *
 * Tasks that wake up.  A task that was handed a tag waits for no other one until it
 * has run.  If it is the turn of its flow meanwhile, a free tag is *due* to the flow.
 * The tag stays free, and virtual time passes it.  So the flow is behind virtual time
 * by the tags that are due to it, and its task takes them when it runs:
 *
 *	64 tags, and four tasks of weight 200, 300, 500 and 1000, each with 1,000
 *	requests.  The drive finishes 20 requests at once.  The first four tags wake
 *	the four tasks.  Of the other 16 tags 1, 2, 4 and 9 are due to them.
 *
 * Otherwise each task would get one tag of every four, whatever its weight.  A tag
 * that is due to a flow without woken tasks is free for the others again.  A woken task
 * may have no CPU for long.  So no tag is due for longer than 2 * FLOW_GRACE_NS, and a
 * flow gets none while its task is late.
 *
 * A woken task has a tag, so there are fewer of them than tags.  A tag that comes back
 * costs a look at each of them, often in hard interrupt context: some 4 ns, for 100 flows.
 *
 * A flow without woken tasks is behind virtual time by 16 tags at most, and by no more
 * than its part of the map.  Its tags count at the cost of its last request.  A task needs
 * time to ask for its next tag, and its flow does not lose its turn meanwhile.  A flow that
 * comes back takes no more tags than these at once.  If the bound were its part of a large
 * map, a flow would earn that many tags while its tasks wait for requests, and not for tags:
 *
 *	256 tags, D = 64, four tenants of weight 100 to 1000, each with four tasks of 32
 *	requests of 4 to 256 KiB.  With that bound the tenant of weight 250 had no tag for
 *	seconds, and 11.3 % of 30 s under mqfq and 7.7 % under wdt.  It is due 13.5 %.
 *	With 16 tags it has 11.8 and 12.6 %.
 *
 * Which tags are free for whom.  A flow that is behind virtual time takes any tag,
 * and before all waiters.  The other flows share half of the map, or as many tags
 * as twice D, which keep the drive busy.  A quarter is left in any case.  Their
 * tasks take a tag without waiting only from the first half of the map.  Above it
 * a request that finishes leaves its tag to one of them.  Tags that are due count in
 * both parts, and the tags of kernel threads (see below) in none.  A flow that is
 * alone takes all tags.
 *
 * A map is *stuck* if no task gets a tag while tasks wait and the scheduler sends twice as
 * many requests, of all maps, as this one has tags.  Requests that it delays fill the
 * map, so few tags come back.  No flow may be behind virtual time either, which moves only
 * when a tag is given.  In a stuck map any flow takes the tags that are left, by the order
 * of start tags.  A flow with as many requests in the scheduler as flows may share takes
 * none: virtual time passes it.  This ends when there are tags to share again.
 *
 *	64 tags, and a task of weight 1 with 256 requests.  It comes 2 ms before ten
 *	other flows, beside one of weight 10000 in another map.  It has 62 tags, and
 *	the scheduler sends one of its requests in a second.  The ten flows got
 *	nothing for seconds, and two tags were free.
 *
 * Tags are *scarce* while tasks wait now and then.  Requests are charged meanwhile,
 * whether their tasks wait or not.  When no task has waited for FLOW_GRACE_NS, all
 * debts end: virtual time becomes the greatest start tag.
 *
 * The first request of a flow is free: it advances the tag to virtual time and no
 * further.  So a flow with one request at a time does not lose the time that a
 * request spends in the scheduler.
 *
 * A flow whose tasks wait counts as active, and keeps its share: see
 * flow_is_idle().  On a slow drive its next tag comes after more than
 * FLOW_GRACE_NS, and its debt must not be forgotten.
 *
 * Weights.  The start tag of a flow is ahead of virtual time by its last request
 * at most.  limit_reweigh() bounds that distance by the present share, so a
 * flow whose weight is raised does not wait for the debt of its old weight.
 *
 * Kernel threads.  A task asks in the name of its own flow, because there is no
 * bio yet.  The flusher of written pages, dm-crypt, md and loop are of the root,
 * and work for other cgroups.  The root is not charged, however many tags such
 * a thread fills.  So the tags of *foreign* requests are counted for each map: those
 * of a kernel thread, unless it works for the root.  They have half of it at most.
 *
 *	64 tags, D = 16, and a flusher that writes for a cgroup of weight 100.  A
 *	reader of weight 900 with 32 requests got 50 % of the drive, because it had
 *	8 tags.  With half of the map for the flusher it gets its 90 %.
 *
 * Cgroups for which one thread writes share its half in order of arrival.
 *
 * Locking: tag_waiters.lock is irq-safe, above flow.lock and share_tree.lock.
 *
 * Source: Goyal, Vin, Cheng, Start-time Fair Queuing, SIGCOMM 1996, section 2.
 * Tested by tests/unit/limit.c, tests/sim/tags.c, tests/vm/test_tags.py.
 */
#ifndef MQFAIR_CORE_LIMIT_H
#define MQFAIR_CORE_LIMIT_H

#include "heap.h"

struct flow;
struct sched;

/* The waiters of a tag map.  L: under lock. */
struct tag_waiters {
	struct port_lock lock;
	struct heap heap;	/* L: the first waiter of each flow */
	vtime_t vt;		/* L: place of the last tag that was given or due */
	vtime_t last;		/* L: greatest start tag of all flows */
	struct tag_waiter *woken;	/* L: tasks that have not run yet */
	u32 due;		/* W: tags that are due to their flows */
	u32 cost;		/* L: of the last request charged */
	u64 generation;		/* L: of the shares, at limit_reweigh() */
	atomic64_t nr;		/* A: waiters, and woken; changed under lock */
	u32 line;		/* I: a flow's tag is in its fq[line] */
	u32 depth;		/* O: tags of the map; the host sets it */
	bool scarce;		/* W: see above */
	bool stuck;		/* L: see above */
	bool gave;		/* L: since limit_refresh() a task has got a tag, .. */
				/* .. or the first one has begun to wait */
	bool waited;		/* L: a task has waited since limit_refresh() */
	u64 sent;		/* L: requests of all maps, when `gave` was seen last */
	u64 next_ns;		/* tick: when limit_refresh() is due again */
};

/* The tags of a map that are in use.  A snapshot. */
struct tag_use {
	u32 all;
	u32 foreign;		/* of these: by kernel threads for cgroups */
};

/* A task, or an io of the simulator, that waits for a tag. */
struct tag_waiter {
	struct heap_node node;		/* L: of the first waiter of its flow */
	struct tag_waiters *order;	/* I */
	struct flow *flow;		/* I: pays for the request to come */
	struct tag_waiter *next;	/* L: of the same flow and map */
	struct tag_waiter *last;	/* L: of the first: end of that list .. */
	u32 nr;				/* L: of the first: .. and its length */
	struct tag_waiter *next_first;	/* F: the flow's first in another map */
	u64 since_ns;			/* I: time at which it began to wait */
	struct tag_waiter *next_woken;	/* L: the next task of tag_waiters.woken */
	u32 tags;			/* L: of one woken task of each flow: the .. */
					/* .. tags that all of them take; else 0 */
	u32 nr_woken;			/* L: of that one: all of them; else 0 */
	bool late;			/* L: of that one: it had not run at a refresh */
};

/* Of a flow. */
struct limit_flow {
	struct tag_waiter *first;	/* F: its first waiter of each map */
	atomic64_t waiters;		/* A: in all maps */
};

/*
 * @line is the index of any queue with tags of this map, and of no other map.  The
 * host sets order.depth before it calls another function.
 */
void limit_order_init(struct tag_waiters *o, u32 line);

/* Does any task wait, or wake up?  Fully ordered after a tag was given back. */
static inline bool limit_awaited(const struct tag_waiters *o)
{
	return atomic64_read(&o->nr);
}

static inline bool limit_is_scarce(const struct tag_waiters *o)
{
	return READ_ONCE(o->scarce);
}

/* The tags of a map of @depth tags for flows that are not behind.  A snapshot. */
u32 limit_most(const struct sched *s, u32 depth);

/*
 * May a task of @f take @tags tags before the tasks that wait?  A snapshot; no
 * lock.
 */
bool limit_goes_first(const struct tag_waiters *o, const struct flow *f,
		      struct tag_use use, u32 tags);

/*
 * Adds @w, with order, flow and since_ns set, and activates its flow.  The number
 * of waiters changes fully ordered, and the caller looks for a free tag afterwards:
 * limit_take(), without @given_back.  Pairs with the host: it gives a tag back, and
 * then calls limit_awaited().
 */
void limit_wait(struct tag_waiter *w);

/*
 * Returns the waiter that gets the next tag, and is woken from now on.  Returns NULL if
 * there is none, or no tag for it.  Tags may be due to woken tasks afterwards.
 * @given_back: by a request; otherwise a task has begun to wait.  Under order.lock.
 */
struct tag_waiter *limit_take(const struct sched *s, struct tag_waiters *o,
			      struct tag_use use, bool given_back);

/*
 * The task of @w, which limit_take() returned, runs and takes its tag.  @w is free
 * from now on.  Under order.lock.
 */
void limit_runs(struct tag_waiter *w);

/* Slow path of limit_charge(). */
void limit_charge_slow(struct tag_waiters *o, struct flow *f, u32 cost);

/* A request of @f that costs @cost was inserted with a tag of the map. */
static inline void limit_charge(struct tag_waiters *o, struct flow *f, u32 cost)
{
	if (unlikely(limit_is_scarce(o)))
		limit_charge_slow(o, f, cost);
}

/* Bounds the start tags of waiting flows by their present shares. */
void limit_reweigh(struct tag_waiters *o);

/*
 * By tick.  Once in FLOW_GRACE_NS it calls limit_reweigh(), ends what is due to tasks
 * without a CPU, and the debts if no task has waited.  It returns whether tasks wait: the
 * host hands out free tags.
 * @sent: sched_dispatched().
 */
bool limit_refresh(struct tag_waiters *o, u64 sent, u64 now);

/*
 * The half of a map with @depth tags that kernel threads may hold for cgroups.
 * Tasks that may not sleep take tags of a half, too.
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

#endif /* MQFAIR_CORE_LIMIT_H */
