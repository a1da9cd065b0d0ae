// SPDX-License-Identifier: GPL-2.0
/* Looks at the flows, and says what they lack; isolation.h has the model. */
#include "isolation.h"
#include "core/report.h"
#include "core/sched.h"

enum {
	PRESENT_LEAST	= 2,	/* looks before a flow may pass */
	WAITED_MOST	= 4,	/* looks in which a burst may wait */
	TIMES_DONE	= 8,	/* requests that show a mean time */
	/* The least time and work by which a lack of turns is judged. */
	BACKLOG_LOOKS	= 8,
	BACKLOG_IOS	= 8,
	BACKLOG_NS	= 250 * 1000 * 1000,
};

/* -------------------------------------------------------------- the counters */

/*
 * Requests in the drive, and those that wait outside, at the last look.  The counters
 * of several CPUs are read one by one, so a later one may be ahead of an earlier one.
 */
static u64 inside(const struct flow *f)
{
	const struct flow_totals *t = &f->counted;

	return t->dispatched > t->done ? t->dispatched - t->done : 0;
}

static u64 outside(const struct flow *f)
{
	const struct flow_totals *t = &f->counted;

	return t->inserted > t->dispatched ? t->inserted - t->dispatched : 0;
}

/* Returns the growth of the counters since the last look. */
static struct isolation_counts growth(const struct flow *f)
{
	const struct isolation_counts *seen = &f->isolation.seen;
	const struct flow_totals *t = &f->counted;

	return (struct isolation_counts){
		.done = t->done - seen->done,
		.cost = t->cost - seen->cost,
		.wait_ns = t->wait_ns - seen->wait_ns,
		.service_ns = t->service_ns - seen->service_ns,
	};
}

static void count_flow(const struct flow *f, struct look *l)
{
	struct isolation_counts c = growth(f);

	l->flows++;
	l->done += c.done;
	l->cost += c.cost;
	l->service_ns += c.service_ns;
	l->inside += inside(f);
	l->present += inside(f) + outside(f);
}

/*
 * The flow was not active at the look before: nothing that was known of it counts.
 * Its times in the drive do.
 */
static void forget(struct isolation_flow *i)
{
	i->present = 0;
	i->waited = 0;
	i->recent = (struct isolation_sample){ 0 };
	i->passes = false;
	WRITE_ONCE(i->pass_until, 0);
}

/* The next look begins here. */
static void end_look(struct flow *f)
{
	const struct flow_totals *t = &f->counted;

	f->isolation.seen = (struct isolation_counts){ t->done, t->cost,
						       t->wait_ns,
						       t->service_ns };
}

/* ----------------------------------------------------------------- the flows */

static void add(struct isolation_sample *to, const struct isolation_counts *c,
		u64 due)
{
	to->done += c->done;
	to->got += c->cost;
	to->due += due;
	to->service_ns += c->service_ns;
	to->latency_ns += c->service_ns + c->wait_ns;
}

static void fade(struct isolation_sample *s)
{
	s->done -= s->done / 4;
	s->got -= s->got / 4;
	s->due -= s->due / 4;
	s->service_ns -= s->service_ns / 4;
	s->latency_ns -= s->latency_ns / 4;
}

/* Returns the part of what the flow asks for that it got, in MET_WHOLE. */
static u32 met_of(const struct flow *f, const struct isolation_sample *s)
{
	u64 least_ns = f->isolation.least_ns, got = s->got, asks = s->due;
	u64 service_ns = ratio(s->service_ns, s->done);

	if (latency_has_goal(f)) {
		got = latency_goal_mean(&f->latency);
		asks = got ? ratio(s->latency_ns, s->done) : 0;
	} else if (least_ns) {
		asks = min(asks,
			   mul_u64_u64_div_u64(got, service_ns, least_ns));
	}
	return got < asks ? (u32)div64_u64(got * MET_WHOLE, asks) : MET_WHOLE;
}

/*
 * Learns the time of a request in an idle drive: that of a window of 0, on the line
 * through the two windows of the trial that has ended.  It is no less than the part of one
 * of all requests in the lesser window, for a drive that serves one after the other.
 */
static void learn_least(struct isolation_flow *f)
{
	const struct isolation_sample *small = &f->at[f->half];
	const struct isolation_sample *large = &f->at[!f->half];
	u64 one, two;

	if (small->done < TIMES_DONE || large->done < TIMES_DONE)
		return;
	one = ratio(small->service_ns, small->done);
	two = ratio(large->service_ns, large->done);
	f->least_ns = max(div64_u64(one, f->few),
			  two < 2 * one ? min(2 * one - two, one) : 1);
}

/* Adds the look to what is known of the flow. */
static void learn(const struct window *w, struct flow *f,
		  const struct isolation_counts *c, u64 due,
		  const struct look *l)
{
	struct isolation_flow *fi = &f->isolation;
	u64 cost;
	u32 arm;

	if (fi->trial && (fi->trial != w->trials || !w->other)) {
		learn_least(fi);
		fi->trial = 0;
	}
	if (!c->done && !inside(f))
		return;
	fi->present = min(fi->present + 1, PRESENT_LEAST);
	fi->waited = outside(f) ? min(fi->waited + 1, WAITED_MOST) : 0;
	fade(&fi->recent);
	add(&fi->recent, c, due);
	/*
	 * Requests of another size: the times known are not theirs.  One request of a
	 * mix is of another size by chance.
	 */
	cost = ratio(fi->recent.got, fi->recent.done);
	if ((!fi->mean_cost || fi->recent.done >= TIMES_DONE) &&
	    (cost > fi->mean_cost + fi->mean_cost / 2 ||
	     cost < fi->mean_cost / 2)) {
		fi->mean_cost = cost;
		fi->least_ns = 0;
		fi->trial = 0;
	}
	if (c->done && c->done == l->done)
		fi->least_ns = ratio(c->service_ns, c->done);
	if (!window_counts(w, &arm))
		return;
	if (fi->trial != w->trials) {
		fi->trial = w->trials;
		fi->half = w->other < w->size;
		fi->few = min(w->other, w->size);
		fi->at[0] = fi->at[1] = (struct isolation_sample){ 0 };
	}
	add(&fi->at[arm], c, due);
}

/*
 * Learns how much of its share a flow lacks for which requests wait outside.  If they
 * do not pass, the order outside gives it all that it gets.  If none waits at the end
 * of a look, the flow got as much as it asked for.
 */
static void learn_turns(struct flow *f, u64 cost, u64 due, struct look *l)
{
	struct isolation_flow *fi = &f->isolation;
	struct isolation_turns *t = &fi->turns;
	u32 lacks = t->lacks;
	bool known;

	t->got += outside(f) ? cost : due;
	t->due += due;
	t->ns += l->ns;
	t->looks++;
	known = t->looks >= BACKLOG_LOOKS && t->ns >= BACKLOG_NS &&
		t->due > BACKLOG_IOS * ratio(l->cost, l->done);
	if (known)
		lacks = (u32)ratio((t->due - min(t->got, t->due)) * SHARE_WHOLE,
				   t->due);
	if (fi->passes)
		lacks = 0;
	if (known || fi->passes)
		*t = (struct isolation_turns){ 0 };
	t->lacks = lacks;
	l->turns = max(l->turns, lacks);
}

/* Does a flow that waits outside have less of its share than @f? */
static bool another_lacks_more(const struct isolation *i,
			       const struct isolation_flow *f, u32 eighths)
{
	return i->turns &&
	       8 * f->recent.got * SHARE_WHOLE >
		       eighths * f->recent.due * (SHARE_WHOLE - i->turns);
}

static void judge_met(const struct window *w, struct flow *f, struct look *l)
{
	struct isolation_flow *fi = &f->isolation;
	const struct isolation_sample *at = fi->at;
	struct window_tried tried;
	u32 met;

	met = met_of(f, &fi->recent);
	l->met = min(l->met, met);
	if (MET_WHOLE - met >= LACK_LEAST)
		fi->short_ns += l->ns;
	if (fi->trial != w->trials || !at[0].due || !at[1].due)
		return;
	tried = (struct window_tried){
		.met = { met_of(f, &at[0]), met_of(f, &at[1]) },
		.done = min(at[0].done, at[1].done),
	};
	/* One tenant is compared with itself, and not two by the chance of each. */
	if (tried.met[0] + tried.met[1] <= l->tried.met[0] + l->tried.met[1])
		l->tried = tried;
}

static void judge_flow(struct sched *s, struct flow *f, struct look *l)
{
	const struct isolation_counts c = growth(f);
	const struct isolation *i = &s->isolation;
	struct isolation_flow *fi = &f->isolation;
	/* Once below its share, it stays so until it has clearly more. */
	u32 eighths = fi->passes ? 9 : 7;
	u64 due;

	due = mul_u64_u64_shr(l->cost, flow_due(f), SHARE_SHIFT);
	learn(&i->window, f, &c, due, l);
	learn_turns(f, c.cost, due, l);
	fi->passes = READ_ONCE(s->params.isolation) &&
		     fi->present >= PRESENT_LEAST &&
		     (latency_has_goal(f) ||
		      8 * fi->recent.got < eighths * fi->recent.due) &&
		     fi->waited < WAITED_MOST &&
		     !another_lacks_more(i, fi, eighths);
	if (READ_ONCE(s->params.isolation) && fi->present >= PRESENT_LEAST)
		judge_met(&i->window, f, l);
}

/*
 * Lets requests of a flow below its share pass.  @work: what the drive does in a
 * look.  At each look the position up to which they pass grows by the flow's part
 * of @work.  It is at most two parts ahead of the flow's own position, and a request
 * behind it: a flow that is due a tenth of a request passes in one look of ten.  So
 * requests that pass get the flow its share and leave the others
 * theirs, whatever the share is.
 */
static void let_pass(struct flow *f, u64 work)
{
	struct isolation_flow *fi = &f->isolation;
	u64 pos, part, until;

	if (!fi->passes) {
		WRITE_ONCE(fi->pass_until, 0);
		return;
	}
	pos = (u64)atomic64_read(&f->pos);
	part = mul_u64_u64_shr(work, flow_due(f), SHARE_SHIFT);
	until = pos + 2 * part;
	if (fi->pass_until)
		until = clamp(fi->pass_until + part,
			      pos - min(pos, fi->mean_cost), until);
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
			end_look(f);
}

void isolation_judge_flows(struct sched *s, struct look *l)
{
	struct flow_walk w;
	struct flow *f;

	for_each_active_flow(f, &w, s) {
		if (!is_in_look(s, f))
			continue;
		judge_flow(s, f, l);
		end_look(f);
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
	u64 done = READ_ONCE(f->recent.done), least = READ_ONCE(f->least_ns);
	u64 recent = ratio(READ_ONCE(f->recent.service_ns), done);

	report_number(r, "short_ms",
		      (s64)div64_u64(READ_ONCE(f->short_ns), 1000000));
	report_number(r, "service_us", (s64)div64_u64(recent, 1000));
	report_number(r, "slowdown_percent",
		      least ? (s64)div64_u64(100 * recent, least) : 100);
}
