/* SPDX-License-Identifier: GPL-2.0 */
/*
 * latency - how long the last requests of a flow took, and a goal for that
 *
 * The *latency* of a request is the time from its insert to its completion: the
 * wait outside the drive and the time in it.  Each flow has one histogram of
 * its latencies.  Reports read percentiles there, and isolation compares one
 * percentile with the *goal* that an administrator gave the cgroup:
 *
 *	goal: 99 % of the requests take at most 500 us.  Of 1000 requests the
 *	990th took 640 us, so the flow lacks a part of what it asks for, and
 *	isolation.h gives up throughput for it, within its bound.
 *
 * Samples.  A histogram in each queue would need no shared writes, but its
 * memory would grow with cgroups times CPUs.  So a flow has one histogram for
 * all queues, and few completions write it.  A queue records one of mask + 1
 * completions, a power of two.  Tick sets the mask, so that a flow records at
 * most LATENCY_SAMPLES per second.  A slow flow records all of its requests.  A flow
 * that completes nothing keeps its mask: it may come back as fast as before.
 *
 *	80,000 requests a second: mask 63, so 1250 samples a second.
 *
 * Halves.  The histogram has two halves of 32 bits in each word.  One is
 * filled, and the other has the time before.  A half ends after LATENCY_HALF_NS
 * if it has LATENCY_ENOUGH samples, and after LATENCY_HALF_MOST_NS with fewer.
 * Then tick clears the older half and fills it.  So a percentile is that of the
 * last one to two seconds, or of the last 200 to 400 samples of a slow flow.
 * Time counts only while the flow is active.  After a pause the last figures
 * stand until there are new ones.
 *
 * Buckets are log-linear (log_bucket.h): four in an octave, from 4 us to 17 s.
 * A percentile is interpolated within its bucket, so it is off by a fifth at
 * most.
 *
 * Goals.  A percentile needs hundreds of requests, and isolation compares windows
 * by what happens in tens of them.  So tick turns the goal into one for the mean,
 * in proportion: goal * mean / percentile.
 *
 *	goal: 500 us for 99 %.  The 99th percentile is 800 us and the mean 320: the
 *	mean is to be 200 us.
 *
 * Usage.  The same tick takes the flow's part of the work, and its mean number
 * of requests in the drive and outside, by Little's law.  `mqfair check` tells
 * by them why a cgroup is slow.
 *
 * Limits.  The time that a task waits for a scheduler tag comes before insert
 * and is not counted.  A request that the driver sent back counts from its
 * second insert.  The proportion of the percentile and the mean is that of before,
 * until a quarter of a second later.
 *
 *	            record  tick  percentile  set_goal
 *	record        -      -        -          -
 *	tick          -      X        -          -
 *	percentile    -      -        -          -
 *	set_goal      -      -        -          X
 *
 * X: the caller serialises these calls; -: they may run concurrently.  A sample
 * that is recorded while tick changes the half may go to either half.  A reader
 * may see a new goal_ns with an old goal_permille.  The next tick is right.
 *
 * Tested by tests/unit/latency.c, tests/sim/goal.c.
 */
#ifndef MQFAIR_LATENCY_H
#define MQFAIR_LATENCY_H

#include "port.h"

struct flow;
struct report;
struct sched;

enum {
	LATENCY_UNIT_NS		= 1024,
	LATENCY_SHIFT		= 2,	/* four buckets in an octave */
	LATENCY_WORDS		= 93,	/* the last one begins at 17.2 s */
	LATENCY_SAMPLES		= 2000,	/* of a flow in a second, at most */
	LATENCY_ENOUGH		= 200,	/* samples: p99 has two above it */
	LATENCY_FIRST_MASK	= 15,	/* until the rate of a flow is known */

	LATENCY_TICK_NS		= 250 * 1000 * 1000,
	LATENCY_HALF_NS		= 1000 * 1000 * 1000,
};

#define LATENCY_HALF_MOST_NS	(10ULL * LATENCY_HALF_NS)

/* How a flow used the drive between the last two ticks.  O, by tick. */
struct flow_usage {
	u32 part_ppm;		/* of the work that all flows got done */
	u32 inside_x100;	/* mean requests in the drive, in hundredths */
	u32 waiting_x100;	/* mean requests outside, in hundredths */
	u32 mean_cost;		/* of a request */
};

/* Of a flow.  tick: for tick alone. */
struct flow_latency {
	u32 mask;		/* O, by tick: a queue records 1 of mask + 1 */
	u16 half;		/* O, by tick: 0 or 1, the one that is filled */
	u16 goal_permille;	/* O, by set_goal: of the requests */
	u64 half_ns;		/* tick: active time in this half */
	u64 goal_ns;		/* O, by set_goal: 0: none */
	u64 goal_mean_ns;	/* tick: of the mean; 0: none, or not known yet */
	struct flow_usage usage;
	u64 cost;		/* tick: of the requests since the last tick */
	struct {
		u64 done, cost, wait_ns, service_ns;
	} seen;			/* tick: counters of the flow at the last tick */
	atomic64_t word[LATENCY_WORDS];	/* A: half 0 is the low 32 bits */
};

void latency_init(struct flow_latency *l);

/* queue_completed() calls this slow path: a request of @f took @ns. */
void latency_record(struct flow *f, u64 ns);

/*
 * Tick calls this.  It sets masks, ends halves, and turns the goals, every
 * LATENCY_TICK_NS.  It takes sched.active_lock.
 */
void latency_tick(struct sched *s, u64 now);

/*
 * Returns the latency that @permille of the recent requests of @f do not
 * exceed, or 0 if there was none.
 */
u64 latency_percentile(const struct flow *f, u32 permille);

/* @permille is in 1 .. 999.  @ns 0 removes the goal. */
void latency_set_goal(struct flow *f, u64 ns, u32 permille);

bool latency_has_goal(const struct flow *f);

/* Tick calls this.  Returns the mean latency at which @f meets its goal, or 0. */
static inline u64 latency_goal_mean(const struct flow_latency *l)
{
	return READ_ONCE(l->goal_ns) ? l->goal_mean_ns : 0;
}

/* Reports percentiles and usage.  The flow need not be active. */
void latency_report_flow(const struct flow *f, struct report *r);

#endif /* MQFAIR_LATENCY_H */
