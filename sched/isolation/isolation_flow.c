// SPDX-License-Identifier: GPL-2.0
/* Looks at the flows, and says which of them are short; isolation.h has the model. */
#include "isolation_look.h"
#include "core/report.h"
#include "core/sched.h"

enum {
	PRESENT_LEAST	= 2,	/* looks before a flow may count as short */
	PRESENT_LONG	= 8,	/* looks in a row of a flow that comes and stays */
	AWAY_MOST	= 4,	/* looks in which a flow may be expected back */
	AWAY_FORGET	= 16,	/* looks without it, and it is a new flow */
	TRIAL_LOOKS	= 32,	/* paced looks before the benefit is judged */
	/* The least time and work by which a lack is judged. */
	BACKLOG_LOOKS	= 8,
	BACKLOG_IOS	= 8,
	BACKLOG_NS	= 250 * 1000 * 1000,
};

/* -------------------------------------------------------------- the counters */

static void count_flow(struct flow *f, struct look *l)
{
	struct isolation_flow *i = &f->isolation;
	const struct isolation_counts *seen = &i->seen;
	struct isolation_counts *last = &i->last;
	const struct flow_totals t = f->counted;

	*last = (struct isolation_counts){
		.dispatched = t.dispatched - seen->dispatched,
		.done = t.done - seen->done,
		.cost = t.cost - seen->cost,
		.bytes = t.bytes - seen->bytes,
		.wait_ns = t.wait_ns - seen->wait_ns,
		.service_ns = t.service_ns - seen->service_ns,
	};
	i->inside = t.dispatched > t.done ? t.dispatched - t.done : 0;
	i->waits = t.inserted > t.dispatched;
	l->flows++;
	l->done += last->done;
	l->cost += last->cost;
	l->bytes += last->bytes;
	l->service_ns += last->service_ns;
	l->kept += t.inserted > t.done ? t.inserted - t.done : 0;
	l->inside += i->inside;
}

/*
 * The flow was not active at the look before: nothing that was known of it counts.
 * Its times in the drive do.
 */
static void forget(struct isolation_flow *i)
{
	i->present = i->away = i->gap = 0;
	i->got = i->due = 0;
	i->passes = i->is_short = false;
	WRITE_ONCE(i->pass_until, 0);
}

/* The next look begins here. */
static void end_look(struct isolation_flow *i)
{
	i->seen.dispatched += i->last.dispatched;
	i->seen.done += i->last.done;
	i->seen.cost += i->last.cost;
	i->seen.bytes += i->last.bytes;
	i->seen.wait_ns += i->last.wait_ns;
	i->seen.service_ns += i->last.service_ns;
}

/* ----------------------------------------------------------------- the flows */

/* Learns how long the requests of the flow take in the drive. */
static void learn_times(const struct isolation *i, struct isolation_flow *f,
			const struct look *l)
{
	u64 cost = ratio(f->last.cost, f->last.done);
	bool alone = f->last.done == l->done;

	if (!f->last.done)
		return;
	f->recent_ns = ratio(f->last.service_ns, f->last.done);
	/* Requests of another size: the times known are not theirs. */
	if (cost > f->mean_cost + f->mean_cost / 2 || cost < f->mean_cost / 2) {
		f->mean_cost = cost;
		f->least_ns = 0;
		f->open_ns = 0;
		f->paced_ns = 0;
	}
	if (!isolation_is_open(i))
		f->paced_ns = average(f->paced_ns, f->recent_ns);
	if (l->full && i->open_looks >= FILL_LOOKS)
		f->open_ns = average(f->open_ns, f->recent_ns);
	/* Beside others, an open drive does not show the least time. */
	if (f->least_ns)
		f->least_ns = min(f->least_ns, f->recent_ns);
	else if (alone || !isolation_is_open(i))
		f->least_ns = f->recent_ns;
}

/* Do the requests of the flow wait in the drive and not outside? */
static bool is_under_queued(const struct isolation *i,
			    const struct isolation_flow *f)
{
	if (!f->last.dispatched)
		return !f->waits;
	return ratio(f->last.wait_ns, f->last.dispatched) <=
	       max(f->recent_ns, i->open_ns);
}

/*
 * Does the flow have its share of the slots in the drive, by cost?  Then the
 * slots give it its share.  If all flows passed, no slot would limit the drive.
 */
static bool has_its_slots(const struct sched *s, const struct isolation_flow *f,
			  const struct look *l)
{
	u64 inside = ratio(f->last.service_ns, l->ns);
	u64 slots = mul_u64_u64_shr(s->params.depth, f->share, SHARE_SHIFT);

	return inside * ratio(f->last.cost, f->last.done) >
	       max(slots, 1ULL) * ratio(l->cost, l->done);
}

/* Does pacing the others help the flow, as far as is known? */
static bool benefits(const struct isolation *i, const struct isolation_flow *f)
{
	if (!f->least_ns)
		return true;
	if (isolation_is_open(i))
		return f->recent_ns > f->least_ns + f->least_ns / 2;
	return i->trial < TRIAL_LOOKS || !f->open_ns ||
	       f->open_ns > f->paced_ns + f->paced_ns / 3;
}

/*
 * Does the short flow need a greater loss?  A goal tells how much it needs.  So
 * the loss shrinks while the goal is met, even below the share of the flow.
 */
static void judge_need(struct flow *f, struct look *l)
{
	enum latency_verdict verdict;

	if (!latency_has_goal(f)) {
		l->unmet |= 16 * f->isolation.got < 15 * f->isolation.due;
		return;
	}
	verdict = latency_take_verdict(f);
	l->goals++;
	l->unmet |= verdict == LATENCY_MISSED;
	l->unsure |= verdict != LATENCY_EASY;
}

/*
 * Learns how much of its share a flow lacks for which requests wait outside.  They
 * do not pass, so the order outside gives it all that it gets.  If none waits at
 * the end of a look, the flow got as much as it asked for.
 */
static void learn_lack(struct isolation_flow *f, u64 due, struct look *l)
{
	u64 got = f->waits ? f->last.cost : due;
	bool known;

	f->wait_got += got;
	f->wait_due += due;
	f->wait_ns += l->ns;
	f->wait_looks++;
	known = f->wait_looks >= BACKLOG_LOOKS && f->wait_ns >= BACKLOG_NS &&
		f->wait_due > BACKLOG_IOS * ratio(l->cost, l->done);
	if (known)
		f->lacks = (u32)ratio((f->wait_due -
				       min(f->wait_got, f->wait_due)) *
					      SHARE_WHOLE,
				      f->wait_due);
	if (f->passes)
		f->lacks = 0;
	if (known || f->passes)
		f->wait_got = f->wait_due = f->wait_ns = f->wait_looks = 0;
	l->lacking = max(l->lacking, f->lacks);
}

/* Does a flow that waits outside have less of its share than @f? */
static bool another_lacks_more(const struct isolation *i,
			       const struct isolation_flow *f, u32 eighths)
{
	return i->lacking &&
	       8 * f->got * SHARE_WHOLE >
		       eighths * f->due * (SHARE_WHOLE - i->lacking);
}

/*
 * A flow has requests again.  It is expected back for as long as a short absence
 * took, and for less after a long one.
 */
static void come_back(struct isolation_flow *f)
{
	if (f->away <= AWAY_MOST)
		f->gap = max(f->gap, f->away);
	else
		f->gap -= min(f->gap, 1U);
	f->away = 0;
	f->present = f->gap ? PRESENT_LEAST - 1 : 0;
}

/*
 * A flow that sends a request now and then is expected back for as many looks as
 * its longest absence so far, AWAY_MOST at most.  The flow is judged as before in
 * these looks.  After eight looks in a row with requests it is a flow that stays.
 */
static void learn_presence(struct isolation_flow *f, u64 due)
{
	if (!f->last.done && !f->inside) {
		if (++f->away > AWAY_FORGET)
			f->gap = 0;
		if (f->away > f->gap) {
			f->present = 0;
			f->got = f->due = 0;
		}
		return;
	}
	if (f->away)
		come_back(f);
	else if (f->present >= PRESENT_LONG)
		f->gap = 0;
	f->present++;
	f->got = average(f->got, f->last.cost);
	f->due = average(f->due, due);
}

static void judge_flow(struct sched *s, struct flow *f, struct look *l)
{
	const struct isolation *i = &s->isolation;
	struct isolation_flow *fi = &f->isolation;
	/* Once below its share, it stays so until it has clearly more. */
	u32 eighths = fi->passes ? 9 : 7;
	bool by_goal;
	u64 due;

	fi->share = flow_present_share(f);
	due = mul_u64_u64_shr(l->cost, fi->share, SHARE_SHIFT);
	learn_times(i, fi, l);
	/* Since D was changed: does the flow get its share at this D? */
	if (i->depth.looks <= DEPTH_FILL_LOOKS)
		fi->missed = 0;
	fi->missed += (s64)due - (s64)fi->last.cost;
	l->missed += (u64)max(fi->missed, (s64)0);
	learn_presence(fi, due);
	learn_lack(fi, due, l);
	/* A flow with requests outside asks for more than its share. */
	by_goal = latency_goal_pursued(f) && is_under_queued(i, fi);
	fi->passes = by_goal || (fi->present >= PRESENT_LEAST &&
				 8 * fi->got < eighths * fi->due &&
				 !another_lacks_more(i, fi, eighths) &&
				 !has_its_slots(s, fi, l) &&
				 (fi->passes || is_under_queued(i, fi)));
	l->passing |= fi->passes;
	fi->is_short = by_goal || (fi->passes && benefits(i, fi));
	if (!fi->is_short) {
		l->paced_sent += fi->last.dispatched;
		l->paced_bytes += fi->last.bytes;
		return;
	}
	l->nr_short++;
	l->nr_rare += fi->gap > 0;
	l->short_bytes += fi->last.bytes;
	judge_need(f, l);
	fi->short_ns += l->ns;
}

/*
 * Lets requests of a flow below its share pass.  @work: what the drive does in a
 * look.  At each look the position up to which they pass grows by the flow's part
 * of @work.  It is at most two parts ahead of the flow's own position, and not
 * behind it.  So requests that pass get the flow its share and leave the others
 * theirs, whatever the share is.
 */
static void let_pass(struct flow *f, u64 work)
{
	struct isolation_flow *fi = &f->isolation;
	u64 pos = (u64)atomic64_read(&f->pos), until = 0;
	u64 part = mul_u64_u64_shr(work, fi->share, SHARE_SHIFT);

	if (fi->passes && !fi->pass_until)
		until = pos + 2 * part;
	else if (fi->passes)
		until = clamp(fi->pass_until + part, pos, pos + 2 * part);
	WRITE_ONCE(fi->pass_until, until);
}

/* ----------------------------------------------------------------- the walks */

/* A flow that has become active since the look began is not in it. */
static bool is_in_look(const struct sched *s, const struct flow *f)
{
	return f->isolation.look == s->isolation.nr_looks;
}

void isolation_count_flows(struct sched *s, struct look *l)
{
	struct flow_walk w;
	struct flow *f;

	flows_count(s);
	s->isolation.nr_looks++;
	for_each_active_flow(f, &w, s) {
		if (f->isolation.look + 1 != s->isolation.nr_looks)
			forget(&f->isolation);
		count_flow(f, l);
		f->isolation.look = s->isolation.nr_looks;
	}
}

void isolation_skip_flows(struct sched *s)
{
	struct look unused = { 0 };
	struct flow_walk w;
	struct flow *f;

	isolation_count_flows(s, &unused);
	for_each_active_flow(f, &w, s)
		if (is_in_look(s, f))
			end_look(&f->isolation);
}

void isolation_judge_flows(struct sched *s, struct look *l)
{
	struct flow_walk w;
	struct flow *f;

	for_each_active_flow(f, &w, s) {
		if (!is_in_look(s, f))
			continue;
		end_look(&f->isolation);
		judge_flow(s, f, l);
	}
}

void isolation_let_flows_pass(struct sched *s, u64 work)
{
	struct flow_walk w;
	struct flow *f;

	for_each_active_flow(f, &w, s)
		if (is_in_look(s, f))
			let_pass(f, work);
}

/* ------------------------------------------------------------------ reports */

void isolation_report_flow(const struct isolation_flow *f, struct report *r)
{
	u64 recent = READ_ONCE(f->recent_ns), least = READ_ONCE(f->least_ns);

	report_number(r, "short_ms",
		      (s64)div64_u64(READ_ONCE(f->short_ns), 1000000));
	report_number(r, "service_us", (s64)div64_u64(recent, 1000));
	report_number(r, "slowdown_percent",
		      least ? (s64)div64_u64(100 * recent, least) : 100);
}
