/* SPDX-License-Identifier: GPL-2.0 */
/*
 * isolation_look - one look at the active flows, of isolation.h
 *
 * isolation_flow.c takes the sums of a look and judges each flow by them.
 * isolation.c decides by the sums, and paces the drive.  No other file includes
 * this one.
 *
 * A struct look is local to tick, which calls the three walks in the order below.
 * A flow that becomes active meanwhile is left out of this look.
 */
#ifndef MQFAIR_ISOLATION_LOOK_H
#define MQFAIR_ISOLATION_LOOK_H

#include "isolation.h"

enum {
	AVERAGE_SHIFT	= 2,	/* of means over looks: a quarter is new */
	FILL_LOOKS	= 2,	/* looks until an opened drive is full */
};

/* The sums of a look over all active flows. */
struct look {
	u64 now, ns;		/* ns: since the last one */
	u64 done, cost, bytes, service_ns;
	u64 inside;		/* requests, now */
	u64 kept;		/* requests, now: inside and waiting */
	u64 short_bytes;	/* of short flows */
	u64 paced_sent, paced_bytes;	/* of the others */
	u32 flows, nr_short;
	u32 nr_rare;		/* short flows that send a request now and then */
	bool passing;		/* a flow is below its share */
	u32 goals;		/* of short flows */
	u64 missed;		/* by flows below their share: depth.h */
	bool unmet;		/* a short flow misses its share, or its goal */
	bool unsure;		/* a goal may be missed with a lesser loss */
	bool full;		/* the open drive has as many requests as ever */
	u32 lacking;		/* most that a flow outside lacks of its share */
};

/* The first value is taken whole. */
static inline u64 average(u64 mean, u64 value)
{
	if (!mean)
		return value;
	return mean - (mean >> AVERAGE_SHIFT) + (value >> AVERAGE_SHIFT);
}

static inline u64 ratio(u64 sum, u64 count)
{
	return count ? div64_u64(sum, count) : 0;
}

static inline bool isolation_is_open(const struct isolation *i)
{
	return i->state != ISOLATION_PACED;
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
 * The look has been long enough, and ends.  Says of each flow whether it is
 * short and whether it passes, and adds the needs of the short ones to @l.
 */
void isolation_judge_flows(struct sched *s, struct look *l);

/* Lets the flows below their share pass.  @work: of the drive until the next look. */
void isolation_let_flows_pass(struct sched *s, u64 work);

#endif /* MQFAIR_ISOLATION_LOOK_H */
