// SPDX-License-Identifier: GPL-2.0
/* Finds the capacity, paces, and decides by looks; isolation.h has the model. */
#include "isolation.h"
#include "isolation_look.h"
#include "core/rate.h"
#include "core/report.h"
#include "core/sched.h"
#include "core/slots.h"

enum {
	OPEN_LOOKS	= 4,	/* looks before the capacity is known */
	SETTLE_LOOKS	= 16,	/* paced looks before a change asks for a probe */
	/* The usual number inside until it is known: a part of the open drive's. */
	USUAL_GUESS	= 8,
	RESUME_LOOKS	= 8,	/* open looks in which pacing may resume */
	OPEN_MOST	= 16,	/* looks in the mean of the capacity, or of a probe */
	QUIET_LOOKS	= 2,	/* looks without a short flow before pacing ends */
	LOSS_STEPS	= 8,
	/* The cost of a look, for each flow and queue, is far less than this. */
	LOOK_NS_PER_QUEUE = 1000,
	/* A timer per paced request would cost as much as the request. */
	TIMER_SHIFT	= 6,	/* of the time between two looks */
	LIMIT_LEAST	= 4,	/* slots */
	LOOK_DONE	= 16,	/* requests */
	/* A lone flow is not short: only D can change, and that has time. */
	LONE_LOOKS	= 15,
	INSIDE_SHIFT	= 8,	/* of a mean number of requests */
	CORRECTION_LOOKS = 16,
	CORRECTION_MOST	= 32,	/* part of the capacity */
};

/* ------------------------------------------------------------------- pacing */

static void begin_measuring(struct isolation *i)
{
	i->resume = 0;
	i->open_looks = 0;
	i->measured = 0;
	i->open_bytes = 0;
	i->open_time = 0;
}

static void set_limit(struct isolation *i, u32 limit, struct wake *wake)
{
	u32 n;

	for (n = 0; n < i->nr_slots; n++)
		slots_limit(i->slots[n], limit, wake);
}

static void open_drive(struct sched *s, enum isolation_state state, u64 now,
		       struct wake *wake)
{
	struct isolation *i = &s->isolation;

	i->state = state;
	begin_measuring(i);
	WRITE_ONCE(i->paces, false);
	/* Full order, then the held slots are counted.  Pairs with hold(). */
	(void)atomic64_xchg(&i->next_ns, (s64)now);
	set_limit(i, DEPTH_MAX, wake);
	isolation_release(s, 0, now, wake);
}

/* The work that the drive is to do. */
static u64 wanted(const struct isolation *i)
{
	return mul_u64_u64_div_u64(i->capacity, 1000 - i->loss, 1000);
}

/*
 * Some paced requests come late, because a queue that was woken takes time to
 * run.  So the pace is a little higher than wanted, until the drive does as much
 * work as is wanted.
 */
static void correct(struct isolation *i, const struct look *l)
{
	s64 missing = (s64)wanted(i) - (s64)rate_of(l->bytes, l->ns);
	s64 most = (s64)(i->capacity / CORRECTION_MOST);

	i->correction =
		clamp(i->correction + missing / CORRECTION_LOOKS, -most, most);
}

/* The rate of the others, so that the total is the capacity less the loss. */
static void set_pace(struct isolation *i, const struct look *l)
{
	u64 total = (u64)((s64)wanted(i) + i->correction);
	u64 taken = rate_of(l->short_bytes, l->ns);
	u64 least = total / 32 + 1;
	u64 rate = total > taken + least ? total - taken : least;
	u64 pace = div64_u64(1ULL << (RATE_SHIFT + PACE_SHIFT), rate);

	WRITE_ONCE(i->pace, (u32)clamp(pace, (u64)1, (u64)(u32)-1));
}

/* The capacity is that of another mix of sizes. */
static bool mix_has_changed(const struct isolation *i)
{
	u64 then = i->capacity_bytes, now = i->mean_bytes;

	return now > then + then / 8 || now < then - then / 8;
}

/* The capacity has just been measured. */
static void plan_probe(struct isolation *i, const struct look *l)
{
	i->looks = 0;
	i->paced_kept = i->kept;
	/* Probes must not make more than 1 % of the requests slow. */
	i->probe_at = l->goals ? PROBE_GOAL_LOOKS : PROBE_LOOKS;
	/* A capacity that was measured in few looks is measured again soon. */
	if (!i->probes)
		i->probe_at = PROBE_LOOKS / OPEN_MOST *
			      min(i->measured + FILL_LOOKS, (u32)OPEN_MOST);
}

/*
 * The time in which the drive does the requests that it has beyond the usual
 * number.  At the pace alone it would take 1 / loss times as long.
 */
static u64 drain_ns(const struct isolation *i, const struct look *l)
{
	u64 usual = i->usual_inside >> INSIDE_SHIFT;
	u64 each = (i->mean_bytes * i->pace) >> PACE_SHIFT;

	return l->inside > usual ? (l->inside - usual) * each : 0;
}

static void pace_drive(struct sched *s, const struct look *l, struct wake *wake)
{
	struct isolation *i = &s->isolation;
	u64 inside = ratio(l->service_ns, l->ns);

	if (mix_has_changed(i))
		i->usual_inside = mul_u64_u64_div_u64(i->most_inside,
						      1000 - i->loss,
						      1000 * USUAL_GUESS);
	i->paced_inside = i->last_inside = inside << INSIDE_SHIFT;
	/* The pace is to keep requests out.  The limit falls to what it needs. */
	i->limit = (u32)clamp(max((u64)i->limit, inside), (u64)LIMIT_LEAST,
			      (u64)s->params.depth);
	i->state = ISOLATION_PACED;
	i->correction = 0;
	i->capacity_bytes = i->mean_bytes;
	i->kept = l->kept << INSIDE_SHIFT;
	if (!i->resume)
		plan_probe(i, l);
	i->resume = 0;
	set_pace(i, l);
	atomic64_set(&i->next_ns, (s64)(l->now + drain_ns(i, l)));
	WRITE_ONCE(i->paces, true);
	set_limit(i, i->limit, wake);
}

/*
 * The limit keeps requests out, and not the pace, if the pace would have let
 * more go.  Then the limit grows.
 */
static void adapt_limit(struct sched *s, const struct look *l,
			struct wake *wake)
{
	struct isolation *i = &s->isolation;
	u64 mean_inside = ratio(l->service_ns, l->ns);
	bool behind =
		(u64)atomic64_read(&i->next_ns) + (l->ns >> TIMER_SHIFT) <=
		l->now + 1;

	if (behind)
		i->limit += max(i->limit / 4, 1U);
	else if (2 * mean_inside < i->limit)
		i->limit -= i->limit / 8;
	i->limit = clamp(i->limit, (u32)LIMIT_LEAST, s->params.depth);
	set_limit(i, i->limit, wake);
}

/* The most loss, in thousandths. */
static u32 loss_most(const struct sched *s, const struct look *l)
{
	u32 most = 10 * READ_ONCE(s->params.isolation);

	if (READ_ONCE(s->params.isolation_auto) && l->bytes)
		most += (u32)mul_u64_u64_div_u64(10 * AUTO_PER_WORK,
						 l->short_bytes, l->bytes);
	return most;
}

static void adapt_loss(struct isolation *i, const struct look *l, u32 most)
{
	u32 step = max(most / LOSS_STEPS, 1U);

	if (l->unmet)
		i->loss = min(i->loss + step, most);
	else if (!l->unsure)
		i->loss -= min(i->loss, step);
}

/* -------------------------------------------------------------- the decisions */

/*
 * The drive was open for this look.  Is it as full as it gets?  A look in which
 * the flows leave it idle does not show its capacity.
 */
static void look_inside(struct isolation *i, struct look *l)
{
	u64 inside = ratio(l->service_ns << INSIDE_SHIFT, l->ns);

	if (!isolation_is_open(i))
		return;
	i->most_inside -= i->most_inside / OPEN_MOST;
	/* The looks before did not show the capacity of a drive that is so full. */
	if (inside > 2 * i->most_inside)
		begin_measuring(i);
	i->most_inside = max(inside, i->most_inside);
	l->full = inside >= i->most_inside - i->most_inside / 8;
}

/*
 * Does the drive do an eighth more than in the looks that measure it?  Then they
 * do not show its capacity.  A drive that has collected garbage does so.
 */
static bool speeds_up(const struct isolation *i, const struct look *l)
{
	u64 before = rate_of(i->open_bytes, i->open_time);

	return i->measured < OPEN_LOOKS &&
	       rate_of(l->bytes, l->ns) > before + before / 8;
}

/* Returns the work that the open drive does, or 0 while it is not known. */
static u64 measure(struct isolation *i, const struct look *l)
{
	if (!l->full || ++i->open_looks <= FILL_LOOKS)
		return 0;
	if (speeds_up(i, l))
		i->measured = i->open_bytes = i->open_time = 0;
	if (++i->measured > OPEN_MOST) {
		i->open_bytes -= i->open_bytes / OPEN_MOST;
		i->open_time -= i->open_time / OPEN_MOST;
	}
	i->open_bytes += l->bytes;
	i->open_time += l->ns;
	if (i->measured < OPEN_LOOKS && i->open_looks < OPEN_MOST)
		return 0;
	return rate_of(i->open_bytes, i->open_time);
}

/* Has a queue found no slot since the last look? */
static bool queues_wait(struct sched *s)
{
	u64 before = s->isolation.no_slot, sum = 0;
	u32 n;

	for (n = 0; n < s->nr_queues; n++)
		sum += READ_ONCE(s->queue[n]->stats.no_slot);
	s->isolation.no_slot = sum;
	return sum != before;
}

static void set_depth(struct sched *s, u32 depth, struct wake *wake)
{
	struct isolation *i = &s->isolation;
	u32 n;

	port_assert_held(&s->active_lock);
	if (depth == s->params.depth)
		return;
	WRITE_ONCE(s->params.depth, depth);
	for (n = 0; n < i->nr_slots; n++)
		slots_resize(i->slots[n], depth, wake);
}

void isolation_set_depth(struct sched *s, u32 depth, struct wake *wake)
{
	unsigned long flags = port_lock(&s->active_lock);

	set_depth(s, depth, wake);
	port_unlock(&s->active_lock, flags);
}

/* Finds D while the drive is open, and no flow needs less. */
static void adapt_depth(struct sched *s, const struct look *l,
			struct wake *wake)
{
	struct isolation *i = &s->isolation;
	u32 most = READ_ONCE(s->params.depth_most);
	struct depth_look d = {
		.ns = l->ns,
		.bytes = l->bytes,
		.cost = l->cost,
		.done = l->done,
		.missed = l->missed,
		.waits = queues_wait(s),
	};

	if (!most)
		return;
	if (i->state == ISOLATION_OPEN && !l->nr_short)
		set_depth(s, depth_next(&i->depth, &d, s->params.depth, most),
			  wake);
	else
		set_depth(s, depth_settle(&i->depth, s->params.depth), wake);
}

/*
 * A paced drive that seemed faster and is not was still emptying.  With a small
 * loss that takes long.  So the usual number inside is taken later next time.
 * Half of it does not mean a faster drive.
 */
static void learn_settle(struct isolation *i, u64 probed)
{
	if (!i->seems_faster)
		return;
	i->seems_faster = false;
	if (probed >= i->capacity + i->capacity / 8) {
		i->settle = SETTLE_LOOKS;
		return;
	}
	i->settle = min(2 * i->settle, (u32)PROBE_LOOKS);
	i->usual_inside /= 2;
}

/*
 * A probe is short, and begins with requests that were let in together.  So it
 * tends to show too little, and a lower capacity is believed slowly.
 */
static void learn_capacity(struct isolation *i, u64 probed)
{
	u64 quarter = i->capacity / 4;

	if (probed < i->capacity - quarter || probed > i->capacity + quarter)
		i->capacity = probed;
	else if (probed < i->capacity)
		i->capacity -= (i->capacity - probed) / 4;
	else
		i->capacity += (probed - i->capacity) / 2;
}

/*
 * The drive was opened a moment ago, and a flow is short again.  Then the
 * capacity is that of before, and the next probe comes when it was due.
 */
static bool resumes(struct isolation *i, const struct look *l)
{
	if (!i->resume)
		return false;
	if (l->nr_short)
		return true;
	i->resume--;
	return false;
}

/*
 * A scheduler by budget keeps requests of the others back for a flow that has
 * credit and is not short.  A flow that sends requests now and then was such a flow
 * in the looks before, so they show less than the capacity.  From here on nothing
 * is kept back: isolation_measures().
 */
static bool begins_with_rare_flows(const struct isolation *i,
				   const struct look *l)
{
	return l->nr_short && l->nr_short == l->nr_rare && !i->measures &&
	       !i->resume;
}

static void decide_open(struct sched *s, const struct look *l,
			struct wake *wake)
{
	struct isolation *i = &s->isolation;
	u64 capacity;

	if (begins_with_rare_flows(i, l))
		begin_measuring(i);
	capacity = measure(i, l);
	if (capacity || mix_has_changed(i))
		i->resume = 0;
	if (resumes(i, l))
		capacity = i->capacity;
	if (!capacity)
		return;
	if (i->state == ISOLATION_PROBE) {
		i->probes++;
		learn_settle(i, capacity);
		learn_capacity(i, capacity);
	} else {
		i->capacity = capacity;
		if (!l->nr_short)
			return;
		/* A flow with a goal may return: its last loss was right. */
		if (l->unmet || !l->goals)
			i->loss = loss_most(s, l);
		i->loss = min(i->loss, loss_most(s, l));
		i->quiet = 0;
		i->trial = 0;
	}
	pace_drive(s, l, wake);
}

/*
 * The flows keep more requests than when the capacity was measured.  The pace
 * alone does not make them more, for a tenant keeps a number of them.
 */
static bool demand_has_grown(struct isolation *i, const struct look *l)
{
	i->kept = average(i->kept, l->kept << INSIDE_SHIFT);
	return i->kept > i->paced_kept + i->paced_kept / 2;
}

/*
 * At the same pace, a drive that has become faster has fewer requests inside.
 * One that has become slower has more, up to the limit.
 *
 * After a probe the usual number is that of before.  It depends on the load and
 * on the loss, and not on the speed of the drive.  Otherwise a drive that becomes
 * faster while it empties would have few inside as usual, and would be used at
 * its old rate until the next probe.  Two looks in a row tell, and one with less
 * than a quarter.  A mean over more looks would take ten of them to fall from that
 * of a full drive.
 */
static bool drive_is_faster(struct isolation *i, const struct look *l)
{
	u64 inside = ratio(l->service_ns << INSIDE_SHIFT, l->ns);

	i->paced_inside = average(i->paced_inside, inside);
	if (i->looks == i->settle)
		i->usual_inside = i->paced_inside;
	i->seems_faster = 2 * max(inside, i->last_inside) < i->usual_inside ||
			  4 * inside < i->usual_inside;
	i->last_inside = inside;
	return i->seems_faster;
}

static void decide_paced(struct sched *s, const struct look *l,
			 struct wake *wake)
{
	struct isolation *i = &s->isolation;
	u32 limit = i->limit;

	i->paced_ns += l->ns;
	i->trial++;
	i->quiet = l->nr_short ? 0 : i->quiet + 1;
	if (i->quiet >= QUIET_LOOKS) {
		open_drive(s, ISOLATION_OPEN, l->now, wake);
		/* A flow below its share was not short: pacing did not help. */
		i->resume = l->passing ? 0 : RESUME_LOOKS;
		return;
	}
	if (++i->looks >= i->probe_at || drive_is_faster(i, l) ||
	    demand_has_grown(i, l) ||
	    (i->looks >= SETTLE_LOOKS && mix_has_changed(i))) {
		open_drive(s, ISOLATION_PROBE, l->now, wake);
		return;
	}
	adapt_loss(i, l, loss_most(s, l));
	correct(i, l);
	set_pace(i, l);
	adapt_limit(s, l, wake);
	if (limit < i->limit && i->limit == s->params.depth)
		i->probe_at = 0;
}

static void decide(struct sched *s, const struct look *l, struct wake *wake)
{
	struct isolation *i = &s->isolation;

	i->rate = rate_of(l->cost, l->ns);
	if (l->paced_sent)
		WRITE_ONCE(i->mean_bytes,
			   average(i->mean_bytes,
				   ratio(l->paced_bytes, l->paced_sent)));
	adapt_depth(s, l, wake);
	if (isolation_is_open(i))
		decide_open(s, l, wake);
	else
		decide_paced(s, l, wake);
}

/* The time until the next look. */
static u64 look_time(const struct sched *s, u32 flows)
{
	u64 least = (u64)flows * s->nr_queues * LOOK_NS_PER_QUEUE;

	return clamp(2 * s->isolation.open_ns, max(least, (u64)LOOK_LEAST_NS),
		     (u64)LOOK_MOST_NS);
}

static void plan_look(struct isolation *i, u64 at_ns)
{
	i->at_ns = at_ns;
	WRITE_ONCE(i->timer_ns, (at_ns - i->look_ns) >> TIMER_SHIFT);
}

/*
 * As many requests must be done as are inside.  Otherwise the look shows how
 * requests were let in, and not how they are served.
 */
static bool look_is_over(const struct look *l)
{
	return l->done >= max(l->inside, (u64)LOOK_DONE) ||
	       l->ns >= LOOK_MOST_NS;
}

static void look(struct sched *s, u64 now, struct wake *wake)
{
	struct isolation *i = &s->isolation;
	struct look l = { .now = now, .ns = now - i->look_ns };
	unsigned long flags;

	isolation_count_flows(s, &l);
	if (!look_is_over(&l)) {
		plan_look(i, now + max(l.ns / 4, (u64)LOOK_LEAST_NS));
		return;
	}
	look_inside(i, &l);
	if (l.full && i->open_looks >= FILL_LOOKS)
		i->open_ns = average(i->open_ns, ratio(l.service_ns, l.done));
	isolation_judge_flows(s, &l);
	i->lacking = l.lacking;
	flags = port_lock(&s->active_lock);
	/* A drive that stands still tells nothing. */
	if (l.done || !l.inside)
		decide(s, &l, wake);
	port_unlock(&s->active_lock, flags);
	WRITE_ONCE(i->measures, isolation_is_open(i) && l.nr_short);
	i->look_ns = now;
	i->lone = l.flows == 1 && isolation_is_open(i);
	plan_look(i,
		  now + (i->lone ? 1 + LONE_LOOKS : 1) * look_time(s, l.flows));
	isolation_let_flows_pass(s, work_at(i->rate, i->at_ns - now));
}

/* No flow is active, or the tunable is 0. */
static void rest(struct sched *s, u64 now, struct wake *wake)
{
	struct isolation *i = &s->isolation;
	struct flow_walk w;
	struct flow *f;

	if (!i->look_ns)
		return;
	i->look_ns = 0;
	i->capacity = 0;
	i->lacking = 0;
	WRITE_ONCE(i->measures, false);
	open_drive(s, ISOLATION_OPEN, now, wake);
	for_each_active_flow(f, &w, s) {
		f->isolation.passes = false;
		f->isolation.is_short = false;
		WRITE_ONCE(f->isolation.pass_until, 0);
	}
}

/* Returns the number of active flows, 2 standing for more. */
static u32 count_active(struct sched *s)
{
	unsigned long flags = port_lock(&s->active_lock);
	const struct flow *f = s->active;
	u32 n = !f ? 0 : !f->next_active ? 1 : 2;

	port_unlock(&s->active_lock, flags);
	return n;
}

void isolation_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct isolation *i = &s->isolation;
	u32 active = count_active(s);

	latency_tick(s, now);
	if (!READ_ONCE(s->params.isolation) || !i->nr_slots || !active) {
		i->was_off |= !READ_ONCE(s->params.isolation);
		rest(s, now, wake);
		return;
	}
	if (!i->look_ns) {
		if (i->was_off)
			isolation_skip_flows(s);
		i->was_off = false;
		i->look_ns = now;
		plan_look(i, now + look_time(s, 1));
	} else if (now >= i->at_ns || (i->lone && active > 1)) {
		look(s, now, wake);
	}
	wake_at(wake, i->at_ns);
	isolation_release(s, 0, now, wake);
}

/* ------------------------------------------------------------ the I/O path */

/* A time without requests gives no right to a burst of them later. */
static s64 next_due(struct isolation *i, u64 now)
{
	s64 next = atomic64_read(&i->next_ns);
	s64 least = (s64)(now - READ_ONCE(i->timer_ns));

	while (next < least)
		if (atomic64_try_cmpxchg(&i->next_ns, &next, least))
			return least;
	return next;
}

void isolation_release(struct sched *s, u32 queue, u64 now, struct wake *wake)
{
	struct isolation *i = &s->isolation;
	u64 bytes = READ_ONCE(i->mean_bytes);
	u64 step = max((bytes * READ_ONCE(i->pace)) >> PACE_SHIFT, 1ULL);
	bool paces = READ_ONCE(i->paces), left = false;
	s64 due = paces ? next_due(i, now) : 0;
	u32 n;

	for (n = 0; n < i->nr_slots; n++) {
		while (slots_held(i->slots[n]) &&
		       (!paces || due <= (s64)now ||
			slots_all_held(i->slots[n]))) {
			slots_release(i->slots[n], queue, wake);
			due += (s64)step;
		}
		left |= slots_held(i->slots[n]);
	}
	if (left)
		wake_release_at(wake,
				max((u64)due, now + READ_ONCE(i->timer_ns)));
}

/* --------------------------------------------------------------------- life */

void isolation_init(struct isolation *i)
{
	*i = (struct isolation){ .state = ISOLATION_OPEN,
				 .settle = SETTLE_LOOKS };
	atomic64_set(&i->next_ns, 0);
}

void isolation_attach(struct sched *s, struct slots *sl)
{
	struct isolation *i = &s->isolation;

	port_assert(i->nr_slots < ISOLATION_SLOTS);
	i->slots[i->nr_slots++] = sl;
}

/* ------------------------------------------------------------------ reports */

void isolation_report(const struct sched *s, struct report *r)
{
	const struct isolation *i = &s->isolation;

	report_number(r, "isolation_paced", READ_ONCE(i->paces));
	report_number(r, "isolation_loss_permille", READ_ONCE(i->loss));
	report_number(r, "isolation_limit", READ_ONCE(i->limit));
	report_number(r, "isolation_probes", (s64)READ_ONCE(i->probes));
	report_number(r, "isolation_paced_ms",
		      (s64)div64_u64(READ_ONCE(i->paced_ns), 1000000));
	report_number(r, "capacity_mb_per_s",
		      (s64)(READ_ONCE(i->capacity) * 1000 >> 20));
}
