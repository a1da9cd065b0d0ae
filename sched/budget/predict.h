/* SPDX-License-Identifier: GPL-2.0 */
/*
 * predict - how much the device will move in the next period
 *
 * What is granted to all flows for a period shall be what the device can move
 * in it.  Too much, and nobody is throttled: arrival decides.  Too little, and
 * tokens are refilled all the time.  Nobody tells, so it is predicted from what
 * was used: u tokens, used up after t of a period P, would have been u * P / t
 * by its end.  The mean of the last PREDICT_PERIODS such numbers is the
 * prediction.  "If throttled time is shorter than the period, the predicted
 * number increases, otherwise it decreases" [P]: the formula itself is lost.
 *
 * Two readings, one rule:
 *
 *	total	 u: used by all flows; t: when the last of them was throttled,
 *		 or P if one never was.  One history [R].
 *	per-flow a history for each flow, of its own u and t; the prediction is
 *		 the sum of their means: Algorithm 1 taken literally [R].
 *
 * Example, P = 100 ms, a device of 1000 tokens a period, weights 1 : 1, 500
 * granted to each, and A alone until it is out (B comes late):
 *
 *	A used 500 by  50 ms, B used 500 by 100 ms
 *	total:	  1000 * 100 / 100 = 1000
 *	per-flow: 500 * 100 / 50 + 500 * 100 / 100 = 1500
 *
 * The literal form takes the speed at which A ran while B did not to be A's,
 * adds B's to it, and hands out what the device does not have.
 *
 * Source: Son, Oh, Ahn, Kyber-fairness, section IV.3 and Algorithm 1.
 * Tested by tests/unit/predict.c against periods computed by hand; both
 * readings are measured by tests/sim/kyber_fair.c.
 */
#ifndef MQFAIR_PREDICT_H
#define MQFAIR_PREDICT_H

#include "port.h"

enum {
	PREDICT_PERIODS	= 8,	/* [R] "over the history": 0.8 s */
};

/* Zeroed memory is an empty history. */
struct predict {
	u64 used, ran_ns;	/* added up, and not in the history yet */
	u64 value[PREDICT_PERIODS];
	u64 sum;
	u32 nr;			/* values so far, at most PREDICT_PERIODS */
	u32 next;		/* place of the next one */
};

/*
 * @used tokens were used in @ran_ns: a period of @period_ns, or less when they
 * ran out or it was cut short.  A time in which nothing was used says nothing
 * of the device and is left out.  So does one that is short against what goes
 * into a device at once: such are added up until they are @least_ns long.
 */
void predict_add(struct predict *p, u64 used, u64 ran_ns, u64 period_ns,
		 u64 least_ns);

/* Tokens for a whole period; 0 while there is no history. */
u64 predict_mean(const struct predict *p);

#endif /* MQFAIR_PREDICT_H */
