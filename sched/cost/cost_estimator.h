/* SPDX-License-Identifier: GPL-2.0 */
/*
 * learner - has the regression watch the device: cost=learned
 *
 * Each request that is done adds to the sums of its queue; at the end of a
 * window tick collects them, the regression learns from it and the costs in
 * sched.params are set anew.  Until there has been a window a request costs its
 * bytes.
 *
 * Prices vary [R].  A scheduler by virtual time keeps the mix of requests as it
 * is, and from a mix that never changes nobody can tell what each kind costs.
 * So what a KiB costs is charged for a few windows at 5/4 of what is known, then
 * at 4/5, and writes in the same way at half the pace: what the others gain when
 * one kind becomes dearer is what it costs.  Over a few tenths of a second the
 * shares are those of the costs.  A scheduler whose rounds move the mix
 * (`shifts_mix`: hwabc) is left alone, with all that follows.
 *
 * Who is told [R].  A host that keeps the drive's translation layer has the
 * flash do what it does, and so knows what reads took of it, and what writes
 * did with the collecting for them (sched.flash_time).  Then that is
 * learned from; only what a KiB costs varies, and no write is on credit.
 *
 * Writes on credit [R].  A drive with a buffer is done with a write at once,
 * programs it later and makes room for it later still.  Reads then queue at
 * dies that program while others idle, so the mix tells what a write does to
 * the reads beside it and not what it takes from the drive: on a P4500 model
 * with 128 slots between one and two reads, where its dies work 5.4 times as
 * long.  Writes that take less than a quarter of what reads take are on credit,
 * and from then on nothing is learned from windows with writes in them, except
 * in a *trial*: for a while writes cost what reads cost, or less, until the
 * buffer is full and the drive does no more than it can pay for; then a quarter
 * of that.  So two mixes are seen in which it works all the time.  Each is left
 * alone until what was owed has been worked off, and then looked at as a whole,
 * because a drive collects in bursts.  Trials that tell nothing are followed by
 * rests that double; one that does by a rest 31 times as long as a trial, so
 * that trials take 3 % of the time.
 *
 *	        done  tick  report
 *	done     -     -      -
 *	tick     -     X      -
 *
 * X: serialised by the contract of tick; -: may run at once.  A request that
 * is done while tick collects may have its time in another window than its
 * number: one in thousands.
 *
 * Tested by tests/sim/cost_estimator.c.
 */
#ifndef MQFAIR_COST_ESTIMATOR_H
#define MQFAIR_COST_ESTIMATOR_H

#include "cost_rls.h"
#include "core/sched.h"

enum {
	/*
	 * Shorter than the time for which a flow is held back, so that windows
	 * of different mixes are seen; of some hundred requests on a fast
	 * drive.
	 */
	ESTIMATOR_SAMPLE_NS	= 10 * 1000 * 1000,
	/* And of so many where writes are on credit: buffers are of pages. */
	ESTIMATOR_SAMPLE_DEFERRED	= 1024,
};

enum estimator_stage {
	ESTIMATOR_PAUSE,
	ESTIMATOR_TRIAL_HIGH,	/* a write costs what a read does */
	ESTIMATOR_TRIAL_LOW,	/* a quarter of that */
};

/* Of the requests of one queue; A. */
struct cost_estimator_queue {
	atomic64_t done[COST_RLS_KINDS];	/* requests and sectors */
	atomic64_t ns[COST_RLS_KINDS];
} __port_cacheline;

struct cost_estimator {
	struct cost_estimator_queue *queue;	/* I: by index */
	struct cost_rls_sums sums[COST_RLS_KINDS];	/* T: of this window */
	struct cost_rls_sums total[2][COST_RLS_KINDS];	/* T: of a trial */
	struct flash_time exact_time;	/* T: what was learned from already */
	bool exact_time_known;		/* T: `told` is set */
	u64 sample_end_ns;		/* T: when it may end */
	u32 stage;			/* T: enum estimator_stage */
	u32 stage_samples;		/* T: windows of the stage */
	u32 price_shift;		/* T: of writes in a trial: 2^-price_shift */
	u32 samples_without_writes;	/* T: windows since there were writes */
	u32 samples_without_mix;	/* T: since there were both */
	u32 dither_phase;		/* T: of the varying prices */
	u32 trials;			/* O: made */
	bool deferred;			/* O: has writes on credit */
	bool trial_learned;		/* T: a trial was learned from */
	struct cost_rls cost_rls;	/* T */
};

/* By sched_init(); 0 or -ENOMEM.  None for who offers no cost=learned. */
int cost_estimator_init(struct sched *s);
void cost_estimator_deinit(struct sched *s);

/* Of tick. */
void cost_estimator_tick(struct sched *s, u64 now, struct wake *wake);

void cost_estimator_report(const struct sched *s, struct report *r);

static inline bool cost_estimator_runs(const struct sched *s)
{
	return READ_ONCE(s->params.cost.kind) == COST_LEARNED &&
	       s->cost_estimator;
}

/* Of what follows, while anything is learned. */
void cost_estimator_add(const struct io *io, u64 now);

/* @io, still IO_OUT, is done. */
static inline void cost_estimator_done(const struct io *io, u64 now)
{
	if (cost_estimator_runs(io->queue->sched))
		cost_estimator_add(io, now);
}

#endif /* MQFAIR_COST_ESTIMATOR_H */
