// SPDX-License-Identifier: GPL-2.0
#include "throughput.h"
#include "core/rate.h"

enum {
	/*
	 * In a period.  The interval is short against the period, for that much
	 * throughput is lost before a donor is known.  It is long against a
	 * request of a fast drive.
	 */
	CHECKS		= 32,
	/* A gauge span costs one check interval in 256. */
	KNOWN_PERIODS	= 8,
	/* A gauge span of a slow drive takes long, and costs a 64th of the time. */
	KNOWN_LENGTHS	= 64,
	/* Requests complete in bunches: one turnover may miss a bunch. */
	FULL_TURNOVERS	= 4,
	/* In a period: the recent time, which the drive's own account covers. */
	ACCOUNTS	= 4,
};

u64 throughput_check_ns(u64 period_ns)
{
	return period_ns / CHECKS;
}

/* ------------------------------------------------------------------ spans */

static void span_open(struct throughput_span *span,
		      const struct throughput_counts *c)
{
	span->since_ns = c->now;
	span->work = c->work;
	span->in_device = c->in_device;
}

/* Work that the device has done in the span. */
static s64 span_done(const struct throughput *t,
		     const struct throughput_span *span,
		     const struct throughput_counts *c)
{
	s64 fewer = (s64)span->in_device - (s64)c->in_device;

	return (s64)(c->work - span->work) + fewer * (s64)t->mean;
}

/* --------------------------------------------------- the measuring period */

static void begin_measuring(struct throughput *t,
			    const struct throughput_counts *c, u64 dispatched)
{
	span_open(&t->measuring, c);
	t->dispatched = dispatched;
}

/*
 * Sets the mean, and raises the rate if the device has done more than was
 * known.  Requests complete in bunches, so where the period was cut may account
 * for one turnover: it is not counted.
 */
static void end_measuring(struct throughput *t,
			  const struct throughput_counts *c, u64 dispatched)
{
	u64 ns = c->now - t->measuring.since_ns;
	s64 done = span_done(t, &t->measuring, c);

	if (t->mean && ns < c->period_ns)
		return;
	if (dispatched != t->dispatched)
		t->mean = div64_u64(c->work - t->measuring.work,
				    dispatched - t->dispatched);
	begin_measuring(t, c, dispatched);
	done -= (s64)throughput_turnover(t, c->in_device);
	if (done > 0 && ns)
		t->rate = max(t->rate, rate_of((u64)done, ns));
}

/* ---------------------------------------------------- the wait span and loss */

void throughput_end_wait(struct throughput *t,
			 const struct throughput_counts *c)
{
	s64 could;

	if (!t->wait_span.since_ns)
		return;
	could = (s64)work_at(t->rate, c->now - t->wait_span.since_ns);
	t->wait_loss += could / 4 * 3 - span_done(t, &t->wait_span, c);
	t->wait_loss = max(t->wait_loss, (s64)0);
	t->wait_span.since_ns = 0;
}

/* -------------------------------------------------------------- the gauge span */

static void begin_gauge(struct throughput *t, const struct throughput_counts *c)
{
	span_open(&t->gauge, c);
	t->most_in_device = c->in_device;
	t->gauge_until_ns = c->now + throughput_check_ns(c->period_ns);
}

void throughput_check_gauge(struct throughput *t,
			    const struct throughput_counts *c)
{
	u64 ns = c->now - t->gauge.since_ns;
	s64 done, turnover;

	if (!t->gauge_until_ns || c->now < t->gauge_until_ns)
		return;
	done = span_done(t, &t->gauge, c);
	t->most_in_device = max(t->most_in_device, c->in_device);
	turnover = (s64)throughput_turnover(t, t->most_in_device);
	if (done < turnover ||
	    (done < FULL_TURNOVERS * turnover && ns < c->period_ns)) {
		t->gauge_until_ns = c->now + throughput_check_ns(c->period_ns);
		return;
	}
	t->rate = rate_of((u64)max(done, (s64)0), ns);
	t->rate_until_ns =
		c->now + max(KNOWN_PERIODS * c->period_ns, KNOWN_LENGTHS * ns);
	t->gauge_until_ns = 0;
	t->wait_loss = 0;
}

/* ------------------------------------------------ the drive's own account */

bool throughput_account_is_due(const struct throughput *t, u64 now,
			       u64 period_ns)
{
	return now - t->account_ns >= period_ns / ACCOUNTS;
}

void throughput_begin_account(struct throughput *t, u64 now,
			      const struct drive_time *time)
{
	t->account_ns = now;
	t->account = *time;
}

/* The planes worked less than 5/8 of the time, less a check interval. */
static bool account_is_idle(const struct throughput *t,
			    const struct throughput_counts *c,
			    const struct drive_time *time)
{
	u64 worked = time->worked_ns - t->account.worked_ns;
	u64 could = time->could_ns - t->account.could_ns;
	u64 check = mul_u64_u64_div_u64(could,
					throughput_check_ns(c->period_ns),
					max(c->now - t->account_ns, 1ULL));

	return could / 8 * 5 > worked + check;
}

/* -------------------------------------------------------------- the whole */

void throughput_start(struct throughput *t, const struct throughput_counts *c,
		      u64 dispatched)
{
	begin_measuring(t, c, dispatched);
	t->wait_span.since_ns = 0;
	t->gauge_until_ns = 0;
	t->wait_loss = 0;
}

void throughput_round(struct throughput *t, const struct throughput_counts *c,
		      u64 dispatched)
{
	end_measuring(t, c, dispatched);
	throughput_end_wait(t, c);
}

enum throughput_result throughput_wait(struct throughput *t,
				       const struct throughput_counts *c,
				       bool backlog,
				       const struct drive_time *time)
{
	u64 bound;

	if (time)
		return backlog || !account_is_idle(t, c, time) ?
			       THROUGHPUT_USED :
			       THROUGHPUT_IDLE;
	if (c->full || backlog) {
		span_open(&t->wait_span, c);
		return THROUGHPUT_USED;
	}
	if (c->now >= t->rate_until_ns) {
		begin_gauge(t, c);
		return THROUGHPUT_GAUGE;
	}
	throughput_end_wait(t, c);
	span_open(&t->wait_span, c);
	bound = work_at(t->rate, throughput_check_ns(c->period_ns)) +
		throughput_turnover(t, c->in_device);
	if (t->wait_loss < (s64)bound)
		return THROUGHPUT_USED;
	t->wait_loss = 0;
	return THROUGHPUT_IDLE;
}
