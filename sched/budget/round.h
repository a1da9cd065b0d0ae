/* SPDX-License-Identifier: GPL-2.0 */
/*
 * round - grants, the end of a round, and the wakes of exhausted flows
 *
 * The half of budget.h that does not touch a request: round.c.  The other half,
 * budget.c, calls it where a request meets the credit of its flow.  Queues may
 * call these functions at once; refills happen in tick alone.
 */
#ifndef MQFAIR_ROUND_H
#define MQFAIR_ROUND_H

#include "budget.h"

/* The hook tick. */
void round_tick(struct sched *s, u64 now, struct wake *wake);

/*
 * Of predict: the least total of a round, two turnovers of the device, or four
 * requests of each active flow.  A flow with all its requests in the device could
 * not use its part of less in time.
 */
u64 round_least_total(const struct budget *b);

/*
 * Returns a total for the next round while the rate of the device is not known:
 * twice the last one, if all flows have spent it in less than @least_ns.
 *
 *	64 CPUs, 256 requests a round: each flow waited after four requests, and
 *	the 64 wake-ups of a refill took longer than the round.
 */
u64 round_longer_total(const struct budget *b, u64 now, u64 least_ns);

/* An insert has made @f active: grants its part, if it had none this round. */
void round_join(struct budget *b, struct flow *f, u64 now, struct wake *wake);

/* A dispatch has taken the credit of @bf to 0 or below: P1. */
void round_exhausted(struct budget *b, struct budget_flow *bf, u64 now,
		     struct wake *wake);

/*
 * P2, P4.  @queue found @bf exhausted: has it woken when the flow is granted
 * credit.  True if the flow has some already.
 */
bool round_announce(struct budget *b, struct budget_flow *bf, u32 queue,
		    u64 now, struct wake *wake);

/* Did the flow leave its credit unused in the last periods? */
static inline bool round_is_donor(const struct flow *f, u64 now)
{
	return READ_ONCE(budget_flow_of(f)->donor_until_ns) > now;
}

static inline enum budget_rule round_rule(const struct budget *b)
{
	return READ_ONCE(b->rule);
}

#endif /* MQFAIR_ROUND_H */
