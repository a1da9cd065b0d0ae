/* SPDX-License-Identifier: GPL-2.0 */
/*
 * turnover - the work of as many requests as are in the device
 *
 * The problem.  A round must be long enough for each flow to spend its part.  A
 * request leaves the device about one turnover after it entered.  So the length
 * is counted in turnovers, in the unit in which flows are charged.
 *
 * The idea.  The caller counts the requests that it has dispatched, and their
 * work.  Work is cost as in cost.h.  A *measuring period* is at least as long as a
 * period of the scheduler, and ends with a round.  It yields the mean work of a
 * request, until the next one ends.  The first ends with the first round.
 *
 *	1000 requests of 4096 and 1000 of 65536 in a measuring period: the mean
XX *
 * Limits.  The mean is of all flows, and as old as a period or two.
 *
 * Locking: the caller serialises.  Nothing here touches a request.
 * Tested by tests/unit/turnover.c, tests/unit/budget_protocol.c.
 */
#ifndef MQFAIR_TURNOVER_H
#define MQFAIR_TURNOVER_H

#include "core/rate.h"

/* The counts of the caller at one moment. */
struct turnover_counts {
	u64 now;
	u64 work;		/* dispatched so far */
	u64 dispatched;		/* requests so far */
};

/* Zeroed memory knows no mean. */
struct turnover {
	struct turnover_counts since;	/* start of the measuring period */
	u64 mean;		/* work of a request; 0: not known */
	u64 rate;		/* work in a time: core/rate.h; 0: not known */
};

/* A flow is active, after a time without any: a measuring period begins. */
void turnover_start(struct turnover *t, const struct turnover_counts *c);

/* A round is over: ends the measuring period if it has lasted @period_ns. */
void turnover_round(struct turnover *t, const struct turnover_counts *c,
		    u64 period_ns);

/* Work of the device in @ns. */
static inline u64 turnover_in(const struct turnover *t, u64 ns)
{
	return work_at(t->rate, ns);
}

/* Work of @in_device requests. */
static inline u64 turnover_of(const struct turnover *t, u64 in_device)
{
	return in_device * t->mean;
}

#endif /* MQFAIR_TURNOVER_H */
