/* SPDX-License-Identifier: GPL-2.0 */
/*
 * throughput - the rate of a drive, and the throughput lost while flows wait
 *
 * The problem.  A flow without credit waits until the other flows have spent
 * theirs.  If they leave the drive idle meanwhile, throughput is lost.  A
 * scheduler must see that soon, and it does not know the rate of the drive.
 *
 * The idea [R].  Measure the rate in a *gauge span*, in which no flow waits for
 * credit.  Then count, in each *wait span*, the throughput below that rate.
 *
 * Model.  The caller counts the work that it has dispatched, and the requests
 * in the device.  Work is cost as in cost.h, and a rate is work in 2^20 ns.
 *
 *	done in a span = work dispatched in it
 *		       + (requests in the device at its start - at its end)
 *		       * mean cost of a request
 *
 *   mean	cost of a request in the last *measuring period*, which is at
 *		least as long as a period of the scheduler.
 *   turnover	the work of as many requests as were in the device.
 *   gauge span	It lasts until FULL_TURNOVERS are done; once a period is over,
 *		one is enough.  Its rate is known for KNOWN_PERIODS, or for
 *		KNOWN_LENGTHS of its own length if that is longer.
 *   wait loss	A wait span adds 3/4 of the work that the rate allows, and
 *		subtracts the work done.  The wait loss is never below 0.
 *   bound	The work that the rate allows in a check interval, and the
 *		requests in the device: they count as done, however long they
 *		take.  The drive is *idle* once the wait loss has reached the bound.
 *
 * A span adds nothing if the device is full in it, or if a flow with credit has
 * requests queued: such flows use all the room that there is.
 *
 * Example.  The period is 32 ms, so a check interval is 1 ms.  A gauge span found
 * that the drive does four requests of 4096 each ms.  A flow waits; the only
 * other one has credit, and one request that stays in the device.
 *
 *	after 1 ms: wait loss 3/4 * 16384 = 12288, bound 16384 + 4096 = 20480
 *	after 2 ms: wait loss 24576, above the bound: idle
 *
 * If three of its requests were done each ms, the wait loss would stay at 0.
 *
 * The drive's own account.  A host-managed FTL knows how long its planes
 * worked.  Then neither gauge spans nor wait losses are needed.  Counts of requests can
 * mislead: a write buffer accepts more for a while than the planes can do, and
 * a machine takes time to send the next request.  The drive is idle if its
 * planes worked less than 5/8 of the recent time, less a check interval.
 *
 * Limits.  A drive that has become slower since the last gauge span, such as one
 * with a full write cache, seems idle until the next gauge span.  A rate that has
 * grown is noticed at the end of a measuring period.
 *
 * Locking: the caller serialises.  Nothing here touches a request.
 * Tested by tests/unit/throughput.c, tests/unit/budget_rounds.c.
 */
#ifndef MQFAIR_THROUGHPUT_H
#define MQFAIR_THROUGHPUT_H

#include "port.h"

/* The counts of the caller at one moment. */
struct throughput_counts {
	u64 now;
	u64 period_ns;		/* of the scheduler */
	u64 work;		/* dispatched so far */
	u64 in_device;		/* requests */
	bool full;		/* the device takes no more requests */
};

struct throughput_span {
	u64 since_ns;		/* 0: no such span */
	u64 work;		/* counts at its start */
	u64 in_device;
};

/* How long the planes of a drive worked, and how long they could have. */
struct drive_time {
	u64 worked_ns, could_ns;
};

/* Zeroed memory knows no rate. */
struct throughput {
	struct throughput_span measuring;	/* the measuring period */
	u64 dispatched;		/* requests before it */
	u64 mean;		/* work of a request; 0: not known */
	struct throughput_span wait_span;
	struct throughput_span gauge;
	u64 gauge_until_ns;	/* next look at it; 0: no gauge span */
	u64 most_in_device;	/* in the gauge span */
	u64 rate;		/* work in 2^20 ns */
	u64 rate_until_ns;	/* the rate is known until then */
	s64 wait_loss;		/* work */
	u64 account_ns;		/* start of the recent time, and .. */
	struct drive_time account;	/* .. the drive's account then */
};

/* How the flows with credit use the device while another flow waits. */
enum throughput_result {
	THROUGHPUT_USED,	/* they use it: wait for them */
	THROUGHPUT_GAUGE,	/* not known: a gauge span has begun */
	THROUGHPUT_IDLE,	/* they leave it idle: do not wait for them */
};

/* Interval between two looks at the device while a flow waits. */
u64 throughput_check_ns(u64 period_ns);

/* A flow is active, after a time without any.  @dispatched: requests so far. */
void throughput_start(struct throughput *t, const struct throughput_counts *c,
		      u64 dispatched);

/* A round is over: ends the wait span, and a measuring period if it is due. */
void throughput_round(struct throughput *t, const struct throughput_counts *c,
		      u64 dispatched);

/* Ends the gauge span if it has seen enough. */
void throughput_check_gauge(struct throughput *t,
			    const struct throughput_counts *c);

/* No flow waits for credit: ends the wait span. */
void throughput_end_wait(struct throughput *t,
			 const struct throughput_counts *c);

/*
 * A flow waits for credit and no gauge span runs.  @backlog: a flow with credit has
 * requests queued.  @time: the drive's own account, or NULL.  The caller looks
 * again after a check interval.
 */
enum throughput_result throughput_wait(struct throughput *t,
				       const struct throughput_counts *c,
				       bool backlog,
				       const struct drive_time *time);

/* Has the recent time become too long? */
bool throughput_account_is_due(const struct throughput *t, u64 now,
			       u64 period_ns);

/* The recent time begins now, with the account @time. */
void throughput_begin_account(struct throughput *t, u64 now,
			      const struct drive_time *time);

static inline bool throughput_gauges(const struct throughput *t)
{
	return t->gauge_until_ns;
}

/* Work of @in_device requests. */
static inline u64 throughput_turnover(const struct throughput *t, u64 in_device)
{
	return in_device * t->mean;
}

#endif /* MQFAIR_THROUGHPUT_H */
