/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cost_estimator - online estimation of request costs: cost=learned
 *
 * A completed request adds to the sums of its queue.  At the end of a sample
 * tick collects these sums, gives them to the recursive least squares of
 * cost_rls.h, and sets the costs in sched.params.  Before the first sample a
 * request costs its bytes.
 *
 * Dithered prices [R].  A fair scheduler keeps the mix of requests constant, and a
 * constant mix does not identify the cost of each request kind.  So the estimator
 * makes the mix change.  It charges a KiB for a few samples at 5/4 of the estimated
 * price, then at 4/5.  It does the same with writes, at half the pace.  When one
 * request kind becomes dearer, the gain of the other kinds is its cost.  Over a few
 * tenths of a second the shares are those of the estimated costs.
 *
 * Exact time [R].  A host-managed FTL tells the time that the flash worked for
 * reads, and for writes with the garbage collection for them
 * (sched.map.flash_time).  Then the estimator learns from that time.  It dithers
 * only the price of a KiB, and regards no write as deferred.
 *
 * Exact time alone (`exact_costs`: hwabc) [R].  hwabc has neither dithered prices nor
 * trials.  With exact time each operation has an equation of its own, so only
 * requests and sectors must be told apart, and its rounds change that mix enough.
 * Where the drive hides its time, a request costs its bytes.  A fit to the time at
 * the device without dithered prices finds wrong costs, and a wrong cost leaves a
 * tenant less than its due (doc/measurements/hwabc.md).
 *
 * Deferred writes [R].  A drive with a buffer completes a write at once,
 * programs it later, and collects garbage for it later still.  Reads then queue
 * at dies that program while other dies idle.  So the mix tells how long a
 * write delays the reads beside it, and not how much of the drive it takes.  On
 * a P4500 model with 128 slots a write so seems to cost one to two reads.  Its
 * dies work 5.4 times as long as for a read.
 *
 * Writes count as deferred once their mean time at the device is less than a
 * quarter of that of reads.  From then on the estimator learns from samples
 * without writes, and from trials.
 *
 * A *discount trial* has two stages, each with its own price of writes.
 *   1. A write costs as much as a read.  The price is halved until the buffer
 *      is full, so that the drive completes no more writes than it can program.
 *   2. A write costs a quarter of that.
 * So the estimator sees two mixes with which the drive works all the time.  A
 * stage first lets the drive work off earlier writes (SETTLE_SAMPLES).  It is
 * then measured as a whole (MEASURE_SAMPLES), because a drive collects garbage
 * in bursts.
 *
 * A pause follows each trial.  Its length doubles with each trial that tells
 * nothing.  After a trial that tells the costs it is 31 times the length of a
 * trial, so that trials take 3 % of the time.
 *
 * Synchronisation
 *	        done  tick  report
 *	done     -     -      -
 *	tick     -     X      -
 *   X: the caller serialises these calls, by the contract of sched_ops.tick.
 *   -: these calls may run concurrently.
 * If a request completes while tick collects, its time and its number may be in
 * different samples.  That concerns one request in thousands.
 *
 * Tested by tests/sim/cost_estimator.c, tests/sim/hwabc.c, tests/unit/hwabc_hooks.c.
 */
#ifndef MQFAIR_COST_ESTIMATOR_H
#define MQFAIR_COST_ESTIMATOR_H

#include "cost_rls.h"
#include "core/sched.h"

enum {
	/*
	 * A sample is shorter than the time for which a scheduler delays a
	 * flow, so samples of different mixes are seen.  On a fast drive it has
	 * some hundred requests.
	 */
	ESTIMATOR_SAMPLE_NS	= 10 * 1000 * 1000,
	/*
	 * The least requests of a sample while writes are deferred.  The size
	 * of a buffer is a number of pages, so its filling is counted in
	 * requests.
	 */
	ESTIMATOR_SAMPLE_DEFERRED	= 1024,
};

enum estimator_stage {
	ESTIMATOR_PAUSE,
	ESTIMATOR_TRIAL_HIGH,	/* a write costs as much as a read, or less */
	ESTIMATOR_TRIAL_LOW,	/* a write costs a quarter of that */
};

/*
 * I: set at initialisation; A: atomic; T: only tick uses it; O: written by tick
 * with WRITE_ONCE, read anywhere.
 */

/* Sums over the completed requests of one queue; A. */
struct cost_estimator_queue {
	atomic64_t done[COST_RLS_KINDS];	/* requests and sectors */
	atomic64_t ns[COST_RLS_KINDS];
} __port_cacheline;

struct cost_estimator {
	struct cost_estimator_queue *queue;	/* I: by index */
	struct cost_rls_sums sums[COST_RLS_KINDS];	/* T: of this sample */
	struct cost_rls_sums total[2][COST_RLS_KINDS];	/* T: by trial stage */
	bool hidden;			/* O: exact_costs, and the drive hides its time */
	struct flash_time exact_time;	/* T: as far as it was learned from */
	bool exact_time_known;		/* T: exact_time is set */
	u64 sample_end_ns;		/* T: the earliest end of the sample */
	u32 stage;			/* T: enum estimator_stage */
	u32 stage_samples;		/* T: samples of the stage so far */
	u32 price_shift;		/* T: stage 1: price over 2^this */
	u32 samples_without_writes;	/* T: in a row */
	u32 samples_without_mix;	/* T: in a row */
	u32 dither_phase;		/* T: counts samples */
	u32 trials;			/* O: completed */
	bool deferred;			/* O: the drive defers writes */
	bool trial_learned;		/* T: a trial has told the costs */
	struct cost_rls cost_rls;	/* T */
};

/*
 * For sched_init().  A scheduler without a tunable `cost` gets no estimator.
 * Returns 0 or -ENOMEM.
 */
int cost_estimator_init(struct sched *s);
void cost_estimator_deinit(struct sched *s);

/* Every scheduler with cost=learned calls this from its tick. */
void cost_estimator_tick(struct sched *s, u64 now, struct wake *wake);

void cost_estimator_report(const struct sched *s, struct report *r);

static inline bool cost_estimator_runs(const struct sched *s)
{
	return READ_ONCE(s->params.cost.kind) == COST_LEARNED &&
	       s->cost_estimator;
}

/* Slow path of cost_estimator_done(): call only if cost_estimator_runs(). */
void cost_estimator_add(const struct io *io, u64 now);

/* @io has completed; its flag IO_OUT is still set. */
static inline void cost_estimator_done(const struct io *io, u64 now)
{
	if (cost_estimator_runs(io->queue->sched))
		cost_estimator_add(io, now);
}

#endif /* MQFAIR_COST_ESTIMATOR_H */
