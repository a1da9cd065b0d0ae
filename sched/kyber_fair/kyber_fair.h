/* SPDX-License-Identifier: GPL-2.0 */
/* The state of kyber_fair.c, for its tests. */
#ifndef MQFAIR_KYBER_FAIR_H
#define MQFAIR_KYBER_FAIR_H

#include "budget/round.h"
#include "domain.h"
#include "predict.h"

/* The two readings of predict.h. */
enum kyber_predict {
	KYBER_TOTAL,
	KYBER_PER_FLOW,
};

/* sched_params.own */
struct kyber_params {
	struct budget_params budget;
	u32 read_lat_us, write_lat_us;	/* targets */
	u32 predict;			/* enum kyber_predict */
};

static inline struct kyber_params *kyber_params(const struct sched_params *p)
{
	return (struct kyber_params *)p->own;
}

struct kyber_fair {
	struct budget budget;
	u64 round_ns, last_round_ns;	/* O, by T: starts of two rounds */
	u64 predicted;			/* O, by T: tokens of a whole period */
	struct predict total;		/* T */
	struct domains domains;		/* T, except its shards and ratio */
};

struct kyber_flow {
	struct budget_flow budget;
	u64 throttled_ns;		/* O, by T: exhausted, until refills */
	struct predict own;		/* T */
};

#endif /* MQFAIR_KYBER_FAIR_H */
