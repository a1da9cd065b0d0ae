/* SPDX-License-Identifier: GPL-2.0 */
/*
 * window - how many requests may be in the drive
 *
 * The problem.  With few requests inside, a drive is idle in part.  With many,
 * they wait for each other, and the drive orders them, not the scheduler.  The
 * right number, the *window*, depends on the drive, on the mix of requests, and
 * on what the tenants lack.  It was 8 in one of eleven mixes that were tried and
 * 128 in another.
 *
 * The invariant.  The window is the largest one at which no tenant lacks what a
 * smaller window would give it, at a work that is lower by the *price* at most.
 *
 * The rule.  The window is compared with half or with double of it in a *trial*.
 *
 *	half	is tried while a tenant lacks LACK_LEAST of what it asks for.  It
 *		is taken if that tenant gets a part more, one in MET_GAIN, and all
 *		the work that is lost then is within the price.  After a half that
 *		was refused, three quarters are tried in turn with it.
 *	double	is tried while queues wait for a place.  It is taken if it does
 *		WORK_GAIN more work.  If a tenant gets a part less, it must do
 *		more than the price.  If that tenant lacks already, the part of
 *		the price that a window which loses it loses to its double.
 *
 * The loss.  With all N requests of the tenants inside, nothing is lost.  With n
 * inside, work is lost like 1 / n - 1 / N.  So the difference that a trial finds tells
 * what is lost at any window.  The loss is a mean over the trials, each by its length and
 * by the square of how far its windows are apart.  By the same law a window that loses the
 * price loses a known part of it to its double: one difference decides a half and the
 * double that leads back.
 *
 *	N = 512, of which 256 inside lose the price of 60 permille: 512 inside need to
 *	do 60 more, and at N = 4096 they need 32.
 *
 * Trials are paired.  The work of a drive differs from look to look: a write
 * buffer fills, and garbage is collected.  So a trial does not compare the work
 * at the one window with that of a time before.  It plays the two by turns, an
 * epoch each, in the order 0 1 1 0 0 1 1 0.  Each pair of epochs gives a
 * difference, and the mean of the differences has a standard error.  A trial ends
 * when the error of the mean decides, or after PAIRS_MOST pairs.  Then the mean
 * alone decides, if a tenant gains or loses, or if more is lost than may be: the price
 * while a tenant lacks, else WORK_GAIN.
 *
 * The currency of work.  A smaller window may give a tenant of 4 KiB what was that
 * of a tenant of 256 KiB: fewer bytes, and more requests.  A drive takes a time for each
 * request and one for each byte, and neither count alone is its work.  So the work is
 * the mean of requests and costs.  If requests alone counted, a tenant of 4 KiB could
 * take the drive from one of 64 KiB:
 *
 *	A tenant with 4 reads of 4 KiB and a latency goal that no drive meets, beside
 *	reads of 64 KiB: a window of 24 instead of 12 does 14 % fewer requests and 26 %
 *	more bytes.
 *
 * Bunches.  A drive, or the host of a volume, may end many requests at a time.  A look
 * from one moment to another has a bunch more or less by chance.  So the work of a look
 * goes from the end of the last request before it to the end of its own last one.  Where
 * the bunches differ, their number is still by chance, and the time of a request in the
 * drive is not.  By Little's law a window that is full does window / mean time.  The
 * gain of double is the lesser of the two estimates, unless it takes from a tenant that
 * lacks already.
 *
 * Back-off.  A trial that is refused is repeated after a wait of at first four
 * times its length, then eight, up to 2^BACKOFF_MOST.  So trials from which no
 * tenant gains cost a drive less than a hundredth of its work in the end.
 *
 * The beginning.  Nothing is known of a larger window until a queue has waited at this
 * one.  From then on the window doubles while the work of a look and window / mean
 * time both grow by an eighth.  The last doubling is taken back if it did not pay, or
 * if its places are not used, which shows nothing.  So a slow drive is not
 * filled with seconds of requests at first.  A half that is taken while queues wait
 * there ends the growth.
 *
 *	A volume of 400 requests a second: 32 requests take twice as long as 16, so
 *	16 it is.
 *
 * Sources: maximum rate and minimum delay, tried by turns: Cardwell et al., BBR,
 * ACM Queue 2016.  The knee of a queue's throughput: Kleinrock, Power and
 * deterministic rules of thumb, ICC 1979.
 *
 * Locking: the caller serialises.  Tested by tests/unit/window.c.
 */
#ifndef MQFAIR_WINDOW_H
#define MQFAIR_WINDOW_H

#include "port.h"

enum {
	WINDOW_START	= 16,
	WINDOW_WHOLE	= 1000,	/* unit of a part of the work */
	WORK_GAIN	= 10,	/* in WINDOW_WHOLE, by which double is taken */
	MET_WHOLE	= 1 << 20,
	LACK_LEAST	= MET_WHOLE / 16,
	MET_GAIN	= 32,	/* a part in so many */
	TRIED_DONE	= 8,	/* requests at each window that show what is met */
	GROWTH		= 111,	/* in WINDOW_WHOLE: 1/9 of the greater work, 1/8 more */
	EPOCH_DONE	= 32,	/* requests, at least */
	PAIRS_LEAST	= 2,
	PAIRS_MOST	= 12,
	BACKOFF_LEAST	= 2,
	BACKOFF_MOST	= 9,
};

/*
 * Of the tenant that got the least part of what it asks for in the trial so far: that
 * part at the window outside of trials and at the other, in MET_WHOLE.
 */
struct window_tried {
	u32 met[2];
	u64 done;		/* its requests at the window with fewer */
};

/* What happened between two looks at the drive. */
struct window_look {
	u64 ns, cost, done;	/* done: requests; ns: from one end to another */
	u64 service_ns;		/* sum of their times in the drive; 0: not known */
	u64 used;		/* mean requests inside, with those that need no place */
	u64 present;		/* requests in the drive and outside, now */
	u32 met;		/* least part that a tenant gets, in MET_WHOLE */
	struct window_tried tried;
	bool waits;		/* a queue found no place */
};

/* Sums of looks; service_ns 0: not known. */
struct window_epoch {
	u64 ns, cost, done, service_ns;
};

/* Of the differences of pairs. */
struct window_mean {
	s64 sum, squares;
};

/* Until the next trial of half, or of double. */
struct window_wait {
	u32 looks;
	u32 backoff;		/* log2 of the next wait in lengths of a trial */
};

/* Zeroed memory, and then window_begin(). */
struct window {
	u32 size;		/* the window outside of trials */
	u32 other;		/* the one under trial, or 0 */
	bool grows;		/* it still doubles from look to look */
	bool fills;		/* it was changed: this look does not count */
	bool pressed;		/* a queue waited at `other` in the trial */
	u32 epochs;		/* of the trial that have ended */
	u32 looks;		/* of the trial */
	struct window_wait half, twice;
	s64 lost;		/* mean of the trials: see loss_at() */
	u32 loss;		/* of the work, in WINDOW_WHOLE */
	u32 met;		/* recent mean */
	u32 present;		/* four times the recent mean of requests in and out */
	u32 known;		/* the size if the next doubling does not pay */
	u64 rate;		/* at that size, in the last look; 0: not known */
	struct window_epoch before;	/* the same look */
	struct window_epoch epoch[2];	/* at size, at other */
	struct window_epoch whole[2];	/* in the trial */
	struct window_mean requests, costs;	/* at other beside size */
	u32 trials;		/* so far */
};

/* The window is @size from now on.  With @grows, it is to be found. */
void window_begin(struct window *w, u32 size, bool grows);

/*
 * A look has ended.  Returns the window to use from now on, in [1, @most].
 * @price: the work that may be lost for a tenant that lacks, in WINDOW_WHOLE.
 */
u32 window_next(struct window *w, const struct window_look *l, u32 price,
		u32 most);

/*
 * Does the look that ends now count in a trial?  Then *@arm is 0 if it was at the
 * window outside of trials, and 1 if at the other.
 */
bool window_counts(const struct window *w, u32 *arm);

#endif /* MQFAIR_WINDOW_H */
