// SPDX-License-Identifier: GPL-2.0
/* Trials of half and double the window; window.h has the rule. */
#include "window.h"
#include "core/rate.h"

enum {
	LITTLE_SHIFT	= 40,
	PRESENT_MOST	= 1 << 20,	/* requests that are counted */
};

void window_begin(struct window *w, u32 size, bool grows)
{
	*w = (struct window){
		.size = size,
		.known = size,
		.grows = grows,
		.fills = grows,
		.half.backoff = BACKOFF_LEAST,
		.twice.backoff = BACKOFF_LEAST,
		.met = MET_WHOLE,
		.trials = w->trials,
	};
}

/* --------------------------------------------------------------- differences */

/*
 * Returns the change from @before to @after, in WINDOW_WHOLE of the greater one.  In
 * parts of @before, the mean of changes by chance would be a gain: twice as much and half
 * as much are + 1 and - 1/2.
 */
static s64 change(u64 before, u64 after)
{
	u64 most = max(before, after);
	s64 part;

	if (!most)
		return 0;
	part = (s64)mul_u64_u64_div_u64(most - min(before, after), WINDOW_WHOLE,
					most);
	return after < before ? -part : part;
}

/*
 * Returns the requests that a drive with @size places in use does at a time, by
 * Little's law: size / mean time.  Where requests end in bunches, their number in a
 * look is by chance, and their time is not.
 */
static u64 rate_at(u32 size, u64 service_ns, u64 done)
{
	u64 mean_ns = max(div64_u64(service_ns, max(done, 1ULL)), 1ULL);

	return div64_u64((u64)size << LITTLE_SHIFT, mean_ns);
}

static s64 requests_change(const struct window_epoch *e)
{
	return change(rate_of(e[0].done << RATE_SHIFT, e[0].ns),
		      rate_of(e[1].done << RATE_SHIFT, e[1].ns));
}

static s64 costs_change(const struct window_epoch *e)
{
	return change(rate_of(e[0].cost, e[0].ns), rate_of(e[1].cost, e[1].ns));
}

static void add(struct window_mean *m, s64 value)
{
	m->sum += value;
	m->squares += value * value;
}

/* A mean, and its error: after PAIRS_MOST pairs it is wrong by more in one of twenty cases. */
struct estimate {
	s64 mean, error;
};

/*
 * Returns the mean of @n values, n > 1.  The error is the standard error times
 * 2 + 2 / (n - 1)^2, which is less than Student's t while n is small.  With t, 4 of 78
 * scenes of the gauntlet more break a promise.
 */
static struct estimate estimate(const struct window_mean *m, u32 n)
{
	u64 squares = (u64)max(m->squares - m->sum * m->sum / (s64)n, (s64)0);
	u64 error = square_root(div64_u64(squares << 8, n * (n - 1)));
	u64 t = (2 << 4) + (2 << 4) / ((n - 1) * (n - 1));

	return (struct estimate){
		.mean = m->sum / (s64)n,
		.error = (s64)((error * t) >> 8),
	};
}

/* The mean alone decides at the last pair. */
static struct estimate decisive(struct estimate e, u32 n)
{
	if (n >= PAIRS_MOST)
		e.error = 0;
	return e;
}

/*
 * Returns the change of the drive's work from the window outside of trials to the other:
 * the mean of the change in requests and the change in costs.
 */
static struct estimate work_change(const struct window *w)
{
	u32 n = w->epochs / 2;
	struct estimate r = estimate(&w->requests, n);
	struct estimate c = estimate(&w->costs, n);

	return (struct estimate){
		.mean = (r.mean + c.mean) / 2,
		.error = (r.error + c.error) / 2,
	};
}

/* -------------------------------------------------------------------- trials */

/* Which of the two windows has epoch number @epoch: 0 1 1 0 0 1 1 0. */
static u32 arm_of(u32 epoch)
{
	return (epoch + 1) / 2 % 2;
}

bool window_counts(const struct window *w, u32 *arm)
{
	*arm = arm_of(w->epochs);
	return w->other && !w->fills;
}

static void begin_trial(struct window *w, u32 other)
{
	w->other = other;
	w->epochs = 0;
	w->looks = 0;
	w->epoch[0] = w->epoch[1] = (struct window_epoch){ 0 };
	w->requests = w->costs = (struct window_mean){ 0 };
	w->whole[0] = w->whole[1] = (struct window_epoch){ 0 };
	w->fills = false;
	w->pressed = false;
	w->trials++;
}

/* Returns the requests of the tenants, in and out, in the recent mean. */
static s64 all_of(const struct window *w)
{
	return max(w->present / 4, 1U);
}

/*
 * Returns the part of the work that a drive loses at a window of @size, in
 * WINDOW_WHOLE: lost * (1 / n - 1 / N) with n of N requests inside.
 */
static s64 loss_at(const struct window *w, u32 size)
{
	s64 all = all_of(w), inside = min((s64)size, all);

	return min(max(w->lost, (s64)0) * (all - inside) / (all * inside),
		   (s64)WINDOW_WHOLE);
}

/*
 * A trial in which the larger window did @more work has ended.  No drive does less at a
 * larger window: that is chance.  A trial that was short, or of windows that are near each
 * other, is wrong by more and counts less, as the square of its error says.
 */
static void learn_loss(struct window *w, s64 more)
{
	s64 large = min((s64)max(w->size, w->other), all_of(w));
	s64 small = min((s64)min(w->size, w->other), all_of(w));
	s64 apart = min(16 * (large - small) / small, (s64)16), lost;

	/* The same requests were inside at both. */
	if (large - small <= small / 8)
		return;
	lost = max(more, (s64)0) * large * small / (large - small);
	w->lost += (lost - w->lost) * (w->epochs / 2) * apart * apart /
		   (2 * PAIRS_MOST * 16 * 16);
}

static void end_trial(struct window *w, s64 more, bool taken)
{
	struct window_wait *wait = w->other < w->size ? &w->half : &w->twice;

	learn_loss(w, more);
	if (taken) {
		w->size = w->other;
		/* A queue waited there, so it was compared with a larger window. */
		w->grows = w->grows && !w->pressed;
		w->half = w->twice =
			(struct window_wait){ .backoff = BACKOFF_LEAST };
	} else {
		wait->looks = w->looks << wait->backoff;
		wait->backoff = min(wait->backoff + 1, (u32)BACKOFF_MOST);
	}
	w->fills = true;
	w->other = 0;
	w->known = w->size;
	w->before = (struct window_epoch){ 0 };
	w->rate = 0;
}

static bool lacks(u32 met)
{
	return MET_WHOLE - met >= LACK_LEAST;
}

/* Does the worst tenant get a part more at the window that was tried? */
static bool helps(const struct window_tried *t)
{
	return (u64)MET_GAIN * t->met[1] >= (MET_GAIN + 1ULL) * t->met[0];
}

static bool hurts(const struct window_tried *t)
{
	return (MET_GAIN + 1ULL) * t->met[1] < (u64)MET_GAIN * t->met[0];
}

static void judge_half(struct window *w, const struct window_look *l, u32 price)
{
	const struct window_tried *t = &l->tried;
	u32 n = w->epochs / 2;
	struct estimate e = decisive(work_change(w), n);
	s64 less = max(-e.mean, (s64)0);
	s64 most = less + e.error;
	s64 least = less - e.error;
	s64 allowed = price - loss_at(w, w->size);
	/* The tenant that lacks may have sent too few requests in the trial so far. */
	bool known = t->done >= TRIED_DONE && lacks(t->met[0]);

	if ((known || n >= PAIRS_MOST) && helps(t) && most <= allowed)
		end_trial(w, less, true);
	else if (n >= PAIRS_MOST || least > allowed ||
		 (known && !helps(t) && n >= 2 * PAIRS_LEAST))
		end_trial(w, less, false);
}

/* Returns what a window that loses the price loses to the larger one of the trial. */
static s64 part_of_price(const struct window *w, u32 price)
{
	s64 small = w->size, all = max(all_of(w), small + 1);
	s64 large = min((s64)w->other, all);

	return price * (large - small) * all / (large * (all - small));
}

/* Returns the change of the drive's rate by Little's law. */
static s64 service_change(const struct window *w)
{
	const struct window_epoch *e = w->whole;

	return change(rate_at(w->size, e[0].service_ns, e[0].done),
		      rate_at(w->other, e[1].service_ns, e[1].done));
}

static void judge_double(struct window *w, const struct window_look *l,
			 u32 price)
{
	const struct window_tried *t = &l->tried;
	u32 n = w->epochs / 2;
	bool hurt = hurts(t);
	struct estimate e = work_change(w);
	s64 may_be_lost = lacks(w->met) ? price : WORK_GAIN;
	s64 more = e.mean;
	s64 needed = 0;

	/* What a tenant has is not taken from it, unless a part is lacking already. */
	if (!(hurt && lacks(t->met[0])) && w->whole[0].service_ns &&
	    w->whole[1].service_ns)
		more = min(more, service_change(w));
	/*
	 * It takes more than chance to make the drive's queues longer for no tenant, unless
	 * more is lost than may be.
	 */
	if (hurt || loss_at(w, w->size) > may_be_lost)
		e = decisive(e, n);
	/* If a tenant lacks, work is lost already. */
	if (hurt)
		needed = lacks(t->met[0]) ? part_of_price(w, price) : price;
	needed = max(needed, (s64)WORK_GAIN);
	/* What a tenant has is not taken from it on little evidence. */
	if (more - e.error > needed && (!hurt || n >= PAIRS_MOST / 2))
		end_trial(w, more, true);
	else if (n >= PAIRS_MOST || more + e.error <= needed ||
		 (hurt && more <= needed && n >= 2 * PAIRS_LEAST))
		end_trial(w, more, false);
}

/* Two epochs have ended, one at each window. */
static void end_pair(struct window *w, const struct window_look *l, u32 price)
{
	add(&w->requests, requests_change(w->epoch));
	add(&w->costs, costs_change(w->epoch));
	w->epoch[0] = w->epoch[1] = (struct window_epoch){ 0 };
	if (w->epochs / 2 < PAIRS_LEAST)
		return;
	if (w->other < w->size)
		judge_half(w, l, price);
	else
		judge_double(w, l, price);
}

static void add_look(struct window_epoch *e, const struct window_look *l)
{
	e->ns += l->ns;
	e->cost += l->cost;
	e->done += l->done;
	e->service_ns += l->service_ns;
}

static void try_on(struct window *w, const struct window_look *l, u32 price)
{
	u32 now = arm_of(w->epochs);
	struct window_epoch *e = &w->epoch[now];

	w->pressed |= now && l->waits;
	add_look(e, l);
	add_look(&w->whole[now], l);
	if (e->done < EPOCH_DONE)
		return;
	w->epochs++;
	w->fills = arm_of(w->epochs) != now;
	if (w->epochs % 2 == 0)
		end_pair(w, l, price);
}

/* Returns the window to try, or 0. */
static u32 next_trial(const struct window *w, const struct window_look *l,
		      u32 most)
{
	u32 used = (u32)min((u64)w->size, l->used);
	u32 half = max(w->half.backoff % 2 ? used - used / 4 : used / 2, 1U);

	if (lacks(w->met) && half < w->size && !w->half.looks)
		return half;
	if (l->waits && w->size < most && !w->twice.looks)
		return min(2 * w->size, most);
	return 0;
}

/* What is known at one size is not of another. */
static void resize(struct window *w, u32 size)
{
	if (size == w->size)
		return;
	w->size = size;
	w->met = MET_WHOLE;
	w->fills = true;
}

/*
 * Another doubling if queues wait, and if the last one was of use.  Otherwise it is taken
 * back.
 */
static void grow(struct window *w, const struct window_look *l, u32 most)
{
	u64 rate = l->service_ns ? rate_at(w->size, l->service_ns, l->done) : 0;
	struct window_epoch e[2] = { w->before };
	s64 more;
	bool pays;

	add_look(&e[1], l);
	more = max(requests_change(e), costs_change(e));
	if (w->rate && rate)
		more = min(more, change(w->rate, rate));
	/* At the known size there is nothing to compare with. */
	pays = w->size == w->known || more >= GROWTH;
	if (!pays) {
		resize(w, w->known);
		w->grows = false;
		return;
	}
	w->before = e[1];
	w->rate = rate;
	w->known = w->size;
	if (!l->waits)
		return;
	w->grows = w->size < most;
	resize(w, min(2 * w->size, most));
}

/* Is the last doubling used? */
static bool is_used(const struct window *w, const struct window_look *l)
{
	return w->size > w->known && l->used > w->known;
}

/* No window of the trial is beyond @most. */
static void keep_within(struct window *w, u32 most)
{
	if (max(w->size, w->other) > most) {
		w->other = 0;
		w->fills = true;
	}
	w->size = min(w->size, most);
	w->known = min(w->known, most);
}

u32 window_next(struct window *w, const struct window_look *l, u32 price,
		u32 most)
{
	u32 present = (u32)min(l->present, (u64)PRESENT_MOST), other;

	keep_within(w, most);
	w->met -= w->met / 4;
	w->met += l->met / 4;
	if (!w->present)
		w->present = 4 * present;
	w->present += present - w->present / 4;
	if (w->other)
		w->looks++;
	if (w->fills) {
		w->fills = false;
	} else if (w->other) {
		try_on(w, l, price);
	} else if (w->grows && (l->waits || is_used(w, l))) {
		grow(w, l, most);
	} else {
		/* The last doubling was not used, and shows nothing. */
		if (w->grows)
			resize(w, w->known);
		w->half.looks -= min(w->half.looks, 1U);
		w->twice.looks -= min(w->twice.looks, 1U);
		other = next_trial(w, l, most);
		if (other)
			begin_trial(w, other);
	}
	WRITE_ONCE(w->loss, (u32)loss_at(w, w->size));
	return w->other && arm_of(w->epochs) ? w->other : w->size;
}
