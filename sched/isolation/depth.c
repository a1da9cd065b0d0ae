// SPDX-License-Identifier: GPL-2.0
/* Trials of half and double the number of slots; depth.h has the rule. */
#include "depth.h"
#include "core/rate.h"

enum {
	TRIAL_DONE	= 1024,	/* requests that decide a trial */
	SHARES_DONE	= 8192,	/* requests that show whether shares are kept */
	EARLY_DONE	= 256,	/* requests that decide against one */
	FIRST_DONE	= 64,	/* the same, if it does 5/8 of the work or less */
	WAIT_LEAST	= 4,	/* looks */
	WAIT_MOST	= 1024,
	DEPTH_LEAST	= 4,
	MISSED_PERMILLE	= 10,
	/* In thousandths of the work of a look. */
	LOOK_WORK	= 1000,
	ALLOWED_PER_LOOK = LOOK_WORK / 100,
	ALLOWED_MOST	= 20 * LOOK_WORK,
	/* At worst a trial of half does half of the work for four looks. */
	TRIAL_PRICE	= 2 * LOOK_WORK,
};

static void begin(struct depth *d)
{
	d->looks = 0;
	d->ns = d->bytes = d->cost = d->done = 0;
}

/* Returns the rate since D was changed. */
static u64 rate_now(const struct depth *d)
{
	return rate_of(d->bytes, d->ns);
}

/* Takes from the allowance the work that the trial did not do. */
static void pay_trial(struct depth *d)
{
	u64 looks = (u64)d->looks * LOOK_WORK, did = rate_now(d), lost = 0;

	/* The drive was not yet full. */
	if (!d->ns)
		return;
	if (did < d->rate)
		lost = mul_u64_u64_div_u64(looks, d->rate - did, d->rate);
	d->allowed -= (u32)min(lost, (u64)d->allowed);
}

static u64 missed_permille(const struct depth *d, u64 missed)
{
	return d->cost ? mul_u64_u64_div_u64(missed, 1000, d->cost) : 0;
}

static u32 candidate(const struct depth *d, u32 most)
{
	if (d->up)
		return min(2 * d->base, most);
	return d->base > DEPTH_LEAST ? max(d->base / 2, (u32)DEPTH_LEAST) :
				       d->base;
}

/* There is nothing to win in this direction. */
static void turn(struct depth *d)
{
	d->up = !d->up;
	d->wait = min(2 * d->wait, (u32)WAIT_MOST);
}

static bool may_try(const struct depth *d)
{
	return d->done >= TRIAL_DONE && d->looks >= d->wait &&
	       (d->up || d->allowed >= TRIAL_PRICE);
}

static void begin_trial(struct depth *d, u64 missed, u32 most)
{
	u32 trial = candidate(d, most);

	d->rate = rate_now(d);
	d->missed = missed_permille(d, missed);
	begin(d);
	if (trial == d->base)
		turn(d);
	else
		d->trial = trial;
}

static void end_trial(struct depth *d, bool taken)
{
	if (taken) {
		d->base = d->trial;
		d->wait = WAIT_LEAST;
	} else {
		pay_trial(d);
		turn(d);
	}
	d->trial = 0;
	begin(d);
}

/* Is the rate at the D under trial better, or good enough for a lower D? */
static bool pays(const struct depth *d)
{
	return d->up ? rate_now(d) >= d->rate + d->rate / 50 :
		       rate_now(d) >= d->rate - d->rate / 100;
}

static bool keeps_shares(const struct depth *d, u64 missed)
{
	return !d->up ||
	       missed_permille(d, missed) <= d->missed + MISSED_PERMILLE;
}

/* Is the trial so bad that few requests show it? */
static bool fails_early(const struct depth *d)
{
	u64 rate = rate_now(d);

	return (d->done >= FIRST_DONE && rate <= 5 * d->rate / 8) ||
	       (d->done >= EARLY_DONE && rate < d->rate - d->rate / 8);
}

static void judge_trial(struct depth *d, u64 missed)
{
	if (fails_early(d))
		end_trial(d, false);
	else if (d->done < TRIAL_DONE)
		return;
	else if (!pays(d))
		end_trial(d, false);
	/* A flow may be some requests behind, which matter less and less. */
	else if (keeps_shares(d, missed) || d->done >= SHARES_DONE)
		end_trial(d, keeps_shares(d, missed));
}

u32 depth_settle(struct depth *d, u32 now)
{
	if (!d->trial || now != d->trial)
		return now;
	end_trial(d, false);
	return d->base;
}

u32 depth_next(struct depth *d, const struct depth_look *l, u32 now, u32 most)
{
	/* At first, or after a user has set another D or a lesser @most. */
	if (!d->base || now != (d->trial ? d->trial : d->base) || now > most) {
		now = min(now, most);
		*d = (struct depth){ .base = now,
				     .wait = WAIT_LEAST,
				     .up = true };
	}
	if (!l->waits) {
		/* D is more than there are requests: it orders nothing. */
		if (d->trial)
			end_trial(d, false);
		begin(d);
		return d->base;
	}
	d->allowed = min(d->allowed + ALLOWED_PER_LOOK, (u32)ALLOWED_MOST);
	if (++d->looks <= DEPTH_FILL_LOOKS)
		return now;
	d->ns += l->ns;
	d->bytes += l->bytes;
	d->cost += l->cost;
	d->done += l->done;
	if (d->trial)
		judge_trial(d, l->missed);
	else if (may_try(d))
		begin_trial(d, l->missed, most);
	return d->trial ? d->trial : d->base;
}
