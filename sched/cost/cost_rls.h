/* SPDX-License-Identifier: GPL-2.0 */
/*
 * regression - what a read and a write cost, found out by watching
 *
 * In a *window* so many requests of each class are done, carrying so many
 * sectors, and the time that they were at the device adds up to B.  Fitted is
 *
 *	B = c_r n_r + s_r sectors_r + c_w n_w + s_w sectors_w (+ l_w written)
 *
 * by recursive least squares with forgetting.  Windows in which one class is
 * rare and windows in which it abounds tell the two apart:
 *
 *	100 reads,  50 writes took 25 ms at the device
 *	 40 reads,  80 writes took 28 ms	c_r = 100 us, c_w = 300 us
 *
 * The time at the device.  A drive does many things at once, so requests
 * finished per second say what each costs only while it is busy, and "busy"
 * has no meaning that can be read off a clock.  B is the sum, over requests, of
 * the time that each was in the device [R]: with D slots in use it grows by D
 * seconds a second, so c / D is a request's part of a device that is full, and
 * where slots are free c is simply its latency.  Either way it is what one
 * request takes from the others, and only ratios are charged.
 *
 * What identifies the costs [R].  Full: the sum above, if the mix changes.  When
 * it does not, any split of B among the kinds of requests fits.  Then the times
 * of each *kind*, small or large ones of a class, by themselves decide,
 *
 *	B_k = c n_k + s sectors_k
 *
 * with 2^-8 of the weight: in a drive with a queue inside a read also
 * waits for writes, so its own time says less than what moving the mix does;
 * with 2^-12 where somebody moves it on purpose (`dithered`).
 *
 * What a drive owes.  A write is done when the drive's buffer has it; it is
 * programmed, and collected for, later, at the expense of whatever is served
 * then.  So there is one term more [R]: the sectors written in the windows before,
 * those k windows ago with 2^-k of their number.  A sector written
 * costs what it took when it was written and what it takes later.
 *
 * Who is told (`told`).  Where the host keeps the translation layer it knows
 * how long the flash was busy with each class, collecting included: then there
 * is an equation for each class by itself, B_class = c n + s sectors, and
 * nothing to tell apart but requests and sectors [R].
 *
 * A class that is absent from a window is neither changed nor forgotten by it:
 * such a window is rejected for that class [R].  A window of too few requests
 * is added to the next.
 *
 * Normal form.  Each window is divided by what was predicted for it, so it
 * counts the same on a fast drive as on a slow one, and the coefficients are
 * kept relative to a unit (the time of a sector in the first window) and begin
 * as a cost by bytes.  What is kept is the information matrix R and the
 * coefficients phi; an update solves R d = g for the step d, with a 4096th
 * added to the diagonal: a direction that no window has shown, such as base
 * against size when all requests are alike, is left as it is.  A
 * coefficient that would become negative is set to 0 and the others are solved
 * for again.
 *
 * The caller serialises.  Reading costs of a regression that is being updated
 * is a snapshot, coefficient by coefficient.
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
	WRITTEN_SECTOR,		/* in the windows before */
	COST_RLS_TERMS,
};

enum {
	COST_RLS_OPS		= 2,	/* IO_READ, IO_WRITE */
	COST_RLS_SIZE_CLASSES	= 2,
	COST_RLS_KINDS		= COST_RLS_OPS * COST_RLS_SIZE_CLASSES,
	COST_RLS_LARGE		= 16384,	/* bytes, or more */
	/* Windows until what was learnt has faded to 1/e. */
	COST_RLS_MEMORY_SHIFT	= 7,
	COST_RLS_SAMPLE_LEAST	= 32,	/* requests */
};

static inline u32 cost_rls_kind(enum io_op op, u32 bytes)
{
	return op * COST_RLS_SIZE_CLASSES + (bytes >= COST_RLS_LARGE);
}

/* What one kind did in a window. */
struct cost_rls_sums {
	u64 requests, sectors, ns;
};

struct cost_rls {
	s64 r[COST_RLS_TERMS][COST_RLS_TERMS];
	s64 phi[COST_RLS_TERMS];	/* O */
	u64 error[COST_RLS_TERMS];	/* O: standard error of phi */
	u64 unit;			/* O: of phi; 0: no window yet */
	u64 variance;			/* of what was not predicted */
	u64 written_before;		/* sectors, of late: see above */
	u32 seen;			/* O: mask of the classes met */
	u64 samples;			/* O: taken */
	bool dithered;			/* I: the caller sees to it that mixes vary */
	bool exact_time;			/* I: ns are what each class took of the drive */
};

/*
 * A window: @sums of each kind.  False, and nothing is changed: it is too short, and its
 * sums belong to the next one.
 */
bool cost_rls_add(struct cost_rls *g, const struct cost_rls_sums *sums);

/* Whatever was written before is paid for: the next window owes nothing. */
static inline void cost_rls_forget_written(struct cost_rls *g)
{
	g->written_before = 0;
}

/* ps at the device for each request or sector, and the standard error. */
u64 cost_rls_cost_ps(const struct cost_rls *g, enum cost_rls_term term);
u64 cost_rls_error_ps(const struct cost_rls *g, enum cost_rls_term term);

/*
 * The same as lines of cost.h, by class: a read of 4 KiB costs COST_UNIT.  A
 * class that was never met costs what the other does.
 */
void cost_rls_lines(const struct cost_rls *g,
		    struct cost_line line[COST_RLS_OPS]);

#endif /* MQFAIR_COST_RLS_H */
