/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cost_rls - the cost of reads and writes, by recursive least squares
 *
 * Terms
 *   operation	read or write
 *   size class	below COST_RLS_LARGE bytes (small), or not (large)
 *   request kind	operation and size class together; there are four
 *   sample	the requests that completed in some interval, by request kind
 *
 * The model.  A sample has n requests of each operation, which carry a number
 * of sectors.  B is the sum of the times that these requests were at the
 * device.  Recursive least squares with forgetting (RLS) fits
 *
 *	B = c_r n_r + s_r sectors_r + c_w n_w + s_w sectors_w (+ l_w written)
 *
 * Samples with few requests of one operation and samples with many of them
 * separate the two operations:
 *
 *	100 reads,  50 writes took 25 ms at the device
 *	 40 reads,  80 writes took 28 ms	c_r = 100 us, c_w = 300 us
 *
 * Time at the device [R].  A drive serves many requests at once.  So requests
 * completed per second tell the cost of each only while the drive is busy, and
 * no clock tells when it is busy.  B is the sum, over requests, of the time
 * that each was at the device.  With D slots in use B grows by D seconds a
 * second: c / D is the part of a full device that a request takes.  With free
 * slots c is simply the latency.  In both cases c is the time that one
 * request takes from the others, and only ratios of costs are charged.
 *
 * Identification [R].  While the mix of requests changes, the equation above
 * identifies the costs; it has full weight.  If the mix is constant, any split
 * of B among the request kinds fits.  So each request kind adds an equation for
 * its own time,
 *
 *	B_k = c n_k + s sectors_k
 *
 * with 2^-12 of the weight.  In a drive with an internal queue a read also waits
 * for writes.  So a kind's own time says less than a change of the mix, which the
 * caller makes on purpose (cost_estimator.h).
 *
 * Deferred cost [R].  A buffered write completes before the drive programs it
 * and before the garbage collection that it causes.  Requests that are served
 * later pay for both.  The fifth regressor charges that cost back to the
 * writes.  It is the number of sectors written in earlier samples; those of the
 * sample k before this one count 2^-k.  The cost of a written sector is the sum
 * of its cost at the time of the write and of this later cost.
 *
 * Exact time (`exact_time`) [R].  A host-managed FTL tells how long the flash
 * worked for each operation, garbage collection included.  Then each operation
 * has an equation of its own, B_op = c n + s sectors.  Only requests and
 * sectors have to be separated.
 *
 * Absent operations [R].  A sample without requests of an operation neither
 * changes that operation's coefficients nor makes them fade: the sample is
 * rejected for that operation.  The requests of a sample that is too small
 * belong to the next one.
 *
 * Normal form.  Each sample is divided by the time that was predicted for it.
 * So it has the same weight on a fast drive as on a slow one.  The coefficients
 * are relative to a unit, the time of a sector in the first sample.  They begin
 * as a cost by bytes.
 *
 * The state is the information matrix R and the coefficients phi.  An update
 * solves R d = g for the step d, with a 4096th added to the diagonal.  So a
 * direction that no sample has shown stays as it is; an example is base against
 * size when all requests are alike.  A coefficient that would become negative
 * is set to 0, and the update solves for the other ones again.
 *
 * Synchronisation
 *   The caller serialises all calls that change a struct cost_rls.  A reader of
 *   costs may run concurrently, and gets a snapshot of each coefficient.
 *
 * Sources: regression of costs per class as in BCQ (Zhang et al., HPCC 2013),
 * cited by Lee, Han, Shin, Host-Level Workload-Aware Budget Compensation I/O
 * Scheduling for Open-Channel SSDs, section II [P]: its form is not published.
 * Damping: Levenberg, Marquardt.  Tested by tests/unit/cost_rls.c against
 * double precision.
 */
#ifndef MQFAIR_COST_RLS_H
#define MQFAIR_COST_RLS_H

#include "core/cost.h"

enum cost_rls_term {
	READ_REQUEST,
	READ_SECTOR,
	WRITE_REQUEST,
	WRITE_SECTOR,
	WRITTEN_SECTOR,		/* written in earlier samples */
	COST_RLS_TERMS,
};

enum {
	COST_RLS_OPS		= 2,	/* IO_READ, IO_WRITE */
	COST_RLS_SIZE_CLASSES	= 2,
	COST_RLS_KINDS		= COST_RLS_OPS * COST_RLS_SIZE_CLASSES,
	COST_RLS_LARGE		= 16384,	/* bytes, or more */
	/* log2 of the samples until the weight of one has faded to 1/e. */
	COST_RLS_MEMORY_SHIFT	= 7,
	COST_RLS_SAMPLE_LEAST	= 32,	/* requests in a sample */
};

static inline u32 cost_rls_kind(enum io_op op, u32 bytes)
{
	return op * COST_RLS_SIZE_CLASSES + (bytes >= COST_RLS_LARGE);
}

/* The requests of one kind in a sample. */
struct cost_rls_sums {
	u64 requests, sectors, ns;
};

/* I: set at initialisation; O: written with WRITE_ONCE, read anywhere. */

struct cost_rls {
	s64 r[COST_RLS_TERMS][COST_RLS_TERMS];
	s64 phi[COST_RLS_TERMS];	/* O */
	u64 error[COST_RLS_TERMS];	/* O: standard error of phi */
	u64 unit;			/* O: of phi; 0: no sample yet */
	u64 variance;			/* of the residuals */
	u64 written_before;		/* sectors of earlier samples, faded */
	u32 seen;			/* O: mask of the operations met */
	u64 samples;			/* O: added */
	bool exact_time;		/* I: ns are exact times: see above */
};

/*
 * Adds a sample, given as @sums of each kind.  If the sample is too small, it
 * changes nothing and returns false: the sums then belong to the next sample.
 */
bool cost_rls_add(struct cost_rls *g, const struct cost_rls_sums *sums);

/* Earlier writes are paid for: the next sample has no deferred cost. */
static inline void cost_rls_forget_written(struct cost_rls *g)
{
	g->written_before = 0;
}

/* Time at the device per request or sector, and its standard error; ps. */
u64 cost_rls_cost_ps(const struct cost_rls *g, enum cost_rls_term term);
u64 cost_rls_error_ps(const struct cost_rls *g, enum cost_rls_term term);

/*
 * The same as lines of cost.h, by operation: a read of 4 KiB costs COST_UNIT.
 * An operation that was never met has the line of the other one.
 */
void cost_rls_lines(const struct cost_rls *g,
		    struct cost_line line[COST_RLS_OPS]);

#endif /* MQFAIR_COST_RLS_H */
