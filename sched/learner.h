/* SPDX-License-Identifier: GPL-2.0 */
/*
 * learner - has the regression watch the device: cost=learned
 *
 * Each request that is done adds to the sums of its queue; every
 * LEARNER_WINDOW_NS tick collects them, and if they are enough for a window
 * the regression learns from it and the costs in sched.params are set anew.
 * Until then, and while there has been no window, a request costs its bytes.
 *
 *	        done  tick  report
 *	done     -     -      -
 *	tick     -     X      -
 *
 * X: serialised by the contract of tick; -: may run at once.  A request that
 * is done while tick collects may have its time in another window than its
 * number: one in thousands.
 *
 * Tested by tests/sim/hwabc.c, tests/mt/hwabc.c.
 */
#ifndef MQFAIR_LEARNER_H
#define MQFAIR_LEARNER_H

#include "regression.h"
#include "sched.h"

enum {
	/*
	 * Shorter than the time for which a flow is held back, so that windows
	 * of different mixes are seen; of some hundred requests on a fast
	 * drive.
	 */
	LEARNER_WINDOW_NS	= 10 * 1000 * 1000,
};

/* Of the requests of one queue; A. */
struct learner_queue {
	atomic64_t done[REGRESSION_KINDS];	/* requests and sectors */
	atomic64_t ns[REGRESSION_KINDS];
} __port_cacheline;

struct learner {
	struct learner_queue *queue;	/* I: by index */
	struct regression_sums sums[REGRESSION_KINDS];	/* T: of this window */
	u64 next_ns;			/* T: when it may end */
	struct regression regression;	/* T */
};

/* By sched_init(); 0 or -ENOMEM.  None for who offers no cost=learned. */
int learner_init(struct sched *s);
void learner_deinit(struct sched *s);

/* @io, still IO_OUT, is done. */
void learner_done(const struct io *io, u64 now);

/* Of tick. */
void learner_tick(struct sched *s, u64 now, struct wake *wake);

void learner_report(const struct sched *s, struct report *r);

static inline bool learner_runs(const struct sched *s)
{
	return READ_ONCE(s->params.cost.kind) == COST_LEARNED && s->learner;
}

#endif /* MQFAIR_LEARNER_H */
