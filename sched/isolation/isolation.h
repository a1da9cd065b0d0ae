/* SPDX-License-Identifier: GPL-2.0 */
/*
 * isolation - shares that hold inside the drive as well
 *
 * The problem.  A scheduler orders the requests that wait outside the drive.
 * Those inside share it by their number.  A tenant that keeps few requests has
 * all of them inside, so its weight does not help it:
 *
 *	a reader of weight 1000 keeps one request of 4 KiB, and four jobs of
 *	weight 100 keep 128 of 64 KiB.  Alone a read takes 60 us.  Beside the
 *	jobs it waits at its plane for 1 ms: the reader is slowed 17 times.
 *
 * The idea.  Fewer requests inside make the drive's queues shorter.  So the
 * *window*, the most that may be inside, shrinks while that gives a tenant more
 * of what it asks for, and while the drive loses no more of its work than the
 * tunable `isolation` allows.  window.h finds it.  The window is D of the papers
 * as well: it grows while that makes the drive faster.  A D that is set is the most.
 *
 * The parts
 *   look	Every two mean times in the drive (LOOK_LEAST_NS at least, and
 *		until as many requests are done as are inside), tick compares the
 *		counters of the active flows (flow.h) with those of the last
 *		look.  A request adds to the counters of its own queue and to
 *		nothing that CPUs share.
 *   due	The flow's share of the work that was done in the look.
 *   asks	What the flow would get if its requests took their least time in
 *		the drive, and its due at most.  A flow with requests that wait
 *		outside has what the order outside gives it: a smaller window does
 *		not help it.
 *   lack	The part of what a flow asks for that it does not get.  A flow
 *		with a latency goal (latency.h) asks for no more than its goal.
 *   pass	The requests of a flow below its due go first: before the lanes
 *		of their queue, and at the next place in the window that gets free
 *		(a rank, slots.h).  A few have places beyond the window.  So the
 *		window is a limit to them as well.
 *		Requests that pass are urgent to a drive with the map on the host,
 *		which puts them first at each plane.
 *
 * No gain by pretence.  A flow below its due gets no more than its due: the
 * position up to which its requests pass grows by its part of the work, look by
 * look, and is at most two parts ahead.  A flow with more requests than the driver
 * has tags would take the whole drive otherwise.
 *
 * No pass for a backlog.  A flow of which requests wait outside after each of the
 * last WAITED_MOST looks gets its due by the order outside, which is exact from
 * request to request.  A pass is an order by looks.
 *
 * No starvation.  A flow does not pass while another one waits outside and lacks
 * more of its share.
 *
 *	two queues of 32 tags are all slots.  A flow that is due 54 % sends to one
 *	of them.  Its requests pass, and it remains below its share with the 50 %
 *	of that queue.  Another flow of this queue would get none.
 *
 * A flow that waits is judged by BACKLOG_NS at least.  Budgets make flows wait by
 * turns, and that is no lack.
 *
 * Locking: tick alone decides.  It walks over the active flows (flow.h), and holds
 * sched.active_lock while it sets the window.
 *
 * The files: isolation_flow.c looks at the flows, window.c finds the window, and
 * isolation.c is between them.
 *
 * Tested by tests/unit/isolation.c, tests/sim/isolation.c, tests/gauntlet.
 */
#ifndef MQFAIR_ISOLATION_H
#define MQFAIR_ISOLATION_H

#include "port.h"

#include "window.h"

struct report;
struct sched;
struct sched_params;
struct slots;
struct wake;

enum {
	ISOLATION_SLOTS		= 4,	/* most struct slots of a scheduler */
	ISOLATION_AUTO		= 6,	/* percent */
	ISOLATION_MOST		= 90,	/* percent */

	LOOK_LEAST_NS		= 2 * 1000 * 1000,
	LOOK_MOST_NS		= 1000 * 1000 * 1000,
	SHARE_WHOLE		= 1 << 10,	/* unit of isolation_flow.lacks */
};

/* Sums over requests, or their growth since the last look. */
struct isolation_counts {
	u64 done;
	u64 cost;		/* of requests done */
	u64 wait_ns;		/* from insert to dispatch */
	u64 service_ns;		/* from dispatch to completion */
};

/* What a flow lacks for want of turns outside, since it was judged last. */
struct isolation_turns {
	u64 got, due, ns;
	u32 looks;
	u32 lacks;		/* as it was judged, in SHARE_WHOLE */
};

/* Sums over looks: what a flow got, and what it asked for. */
struct isolation_sample {
	u64 done;
	u64 got, due;		/* work */
	u64 service_ns;		/* in the drive */
	u64 latency_ns;		/* with the wait outside */
};

/* Of a flow: all but pass_until is for tick alone. */
struct isolation_flow {
	u64 pass_until;		/* O: requests up to this position pass; 0: none */
	struct isolation_counts seen;	/* at the last look */
	struct isolation_turns turns;
	struct isolation_sample recent;	/* of looks with requests, fading */
	u64 least_ns;		/* mean time in an idle drive; 0: not known */
	u64 mean_cost;		/* of its requests, when least_ns was set */
	struct isolation_sample at[2];	/* at the two windows of the trial */
	u64 short_ns;		/* time for which it lacked LACK_LEAST */
	u32 look;		/* number of the last look that counted it */
	u32 trial;		/* the number of the last trial that counted it */
	u16 present;		/* looks with requests, PRESENT_LEAST at most */
	u16 waited;		/* looks in a row after which a request waited */
	u32 few;		/* the lesser window of that trial */
	bool half;		/* at[1] has the lesser window */
	bool passes;		/* it is below its due, and its requests pass */
};

/* The sums of a look over all active flows. */
struct look {
	u64 ns;			/* since the last one */
	u64 ended_ns;		/* from the last request before it to its own last */
	u64 done, cost, service_ns;
	u64 inside;		/* requests, now */
	u64 present;		/* and those outside */
	u32 flows;
	u32 met;		/* least part of what a flow asks for, in MET_WHOLE */
	struct window_tried tried;	/* of the flow with the least in the trial */
	u32 turns;		/* most for want of turns, in SHARE_WHOLE */
};

struct isolation {
	struct slots *slots[ISOLATION_SLOTS];	/* I */
	u32 nr_slots;			/* I */
	/* tick */
	u32 nr_looks;			/* looks begun so far */
	u64 look_ns;			/* time of the last look, or 0 */
	u64 at_ns;			/* of the next one */
	u64 last_ns;			/* when the last request in a look ended */
	u64 mean_ns;			/* recent mean time in the drive */
	u64 no_slot;			/* times so far that a queue found none */
	u32 turns;			/* most that a flow lacked for want of turns */
	bool lone;			/* one flow was active at the last look */
	bool was_off;			/* the tunable was 0 since the last look */
	struct window window;
	u32 size;			/* O: window.size, for readers without active_lock */
};

void isolation_init(struct isolation *i);

/* Of init: the window is one of @sl, among others. */
void isolation_attach(struct sched *s, struct slots *sl);

/*
 * Of init, with NULL, and of tune: takes over @p.  The window begins anew if D or
 * the tunable have changed.  Tick may find another D at the same time.  Both hold
 * active_lock, so the D that a user has set stays.
 */
void isolation_tune(struct sched *s, const struct sched_params *p,
		    struct wake *wake);

/* Of tick.  Asks for the next look in @wake while a flow is active. */
void isolation_tick(struct sched *s, u64 now, struct wake *wake);

void isolation_report(const struct sched *s, struct report *r);
void isolation_report_flow(const struct isolation_flow *f, struct report *r);

/* Returns the slots in use of all slots[].  A snapshot. */
u64 isolation_slots_used(const struct isolation *i);

/* Returns the throughput given up now, in thousandths.  A snapshot. */
static inline u32 isolation_loss(const struct isolation *i)
{
	return READ_ONCE(i->window.loss);
}

/* ------------------------------------------- of isolation.c: isolation_flow.c */

/* The first value is taken whole. */
static inline u64 average(u64 mean, u64 value)
{
	if (!mean)
		return value;
	return mean - (mean >> 2) + (value >> 2);
}

static inline u64 ratio(u64 sum, u64 count)
{
	return count ? div64_u64(sum, count) : 0;
}

/*
 * Begins a look: the growth of each flow's counters since the last one, and their
 * sums in @l.  Called again, it counts from the same point.
 */
void isolation_count_flows(struct sched *s, struct look *l);

/*
 * The first look begins here.  Work that the flows did while the tunable was 0
 * belongs to no look.
 */
void isolation_skip_flows(struct sched *s);

/*
 * The look has been long enough, and ends.  Says of each flow whether it passes,
 * and adds what the flows lack to @l.
 */
void isolation_judge_flows(struct sched *s, struct look *l);

/* Lets the flows below their due pass.  @work: of the drive until the next look. */
void isolation_let_flows_pass(struct sched *s, u64 work);

#endif /* MQFAIR_ISOLATION_H */
