/* SPDX-License-Identifier: GPL-2.0 */
/*
 * predict - how much the device will serve in the next period
 *
 * The tokens of a period should be worth the service of the device in it.  With
 * too many, no flow is throttled, and the order of arrival
 * decides.  With too few, tokens are refilled all the time.
 *
 * The number is predicted from the tokens used.  u tokens, used up after t of a
 * period P, would have been u * P / t by its end.  The prediction is the mean
 * of the last PREDICT_PERIODS such numbers.  "If throttled time is shorter than
 * the period, the predicted number increases, otherwise it decreases" [P]: the
 * formula itself is lost.
 *
 * Two readings, one rule:
 *
 *	total	 u: used by all flows; t: until the last of them was throttled,
 *		 or P if one never was.  There is one history [R].
 *	per-flow each flow has a history of its own u and t.  The prediction is
 *		 the sum of their means: Algorithm 1 taken literally [R].
 *
 * Example.  P = 100 ms, a device of 1000 tokens a period, weights 1 : 1, and
 * 500 granted to each flow.  A runs alone until it is exhausted, for B comes
 * late:
 *
 *	A used 500 by  50 ms, B used 500 by 100 ms
 *	total:	  1000 * 100 / 100 = 1000
 *	per-flow: 500 * 100 / 50 + 500 * 100 / 100 = 1500
 *
 * The literal form takes the speed of A while B was absent for A's own.  It adds
 * B's to it, and grants more than the device can serve.
 *
 * Source: Son, Oh, Ahn, Kyber-fairness, section IV.3 and Algorithm 1.
 * Tested by tests/unit/predict.c against periods computed by hand.
 * tests/sim/kyber_fair.c measures both readings.
 */
#ifndef MQFAIR_PREDICT_H
#define MQFAIR_PREDICT_H

#include "port.h"

enum {
	PREDICT_PERIODS	= 8,	/* [R] "over the history": 0.8 s */
};

/* Zeroed memory is an empty history. */
struct predict {
	u64 used, ran_ns;	/* not in the history yet */
	u64 value[PREDICT_PERIODS];
	u64 sum;
	u32 nr;			/* values so far, at most PREDICT_PERIODS */
	u32 next;		/* index of the next one */
};

/*
 * @used tokens were used in @ran_ns.  That is a period of @period_ns, or less
 * if the tokens were used up or the period was cut short.
 *
 * A time without use says nothing of the device and is left out.  In a short
 * time the requests that a device takes at once count too much: short times are
 * added up until they are @least_ns long.
 */
void predict_add(struct predict *p, u64 used, u64 ran_ns, u64 period_ns,
		 u64 least_ns);

/* Tokens for a whole period; 0 while there is no history. */
u64 predict_mean(const struct predict *p);

#endif /* MQFAIR_PREDICT_H */
