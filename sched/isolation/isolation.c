// SPDX-License-Identifier: GPL-2.0
/* Looks at the drive, and sets the window; isolation.h has the model. */
#include "isolation.h"
#include "core/rate.h"
#include "core/report.h"
#include "core/sched.h"
#include "core/slots.h"

enum {
	/* The cost of a look, for each flow and queue, is far less than this. */
	LOOK_NS_PER_QUEUE = 1000,
	LOOK_DONE	= 16,	/* requests */
	/* A lone flow lacks nothing: only the window can grow, and that has time. */
	LONE_LOOKS	= 15,
};

/* --------------------------------------------------------------- the window */

/* Is there a window to find? */
static bool looks(const struct sched *s)
{
	return READ_ONCE(s->params.isolation) ||
	       READ_ONCE(s->params.depth_most);
}

/*
 * Without a depth to be found, D is params.depth, and the window may be less.  A
 * scheduler with several slots[] may let in fewer requests.
 */
static u32 window_most(const struct sched *s)
{
	const struct isolation *i = &s->isolation;
	u32 found = READ_ONCE(s->params.depth_most);
	u32 depth = found ? found : READ_ONCE(s->params.depth);
	u32 places = 0, n;

	for (n = 0; n < i->nr_slots; n++)
		places = max(places, READ_ONCE(i->slots[n]->depth));
	return i->nr_slots > 1 ? min(depth, places) : depth;
}

static void set_window(struct sched *s, u32 size, struct wake *wake)
{
	struct isolation *i = &s->isolation;
	u32 n;

	port_assert_held(&s->active_lock);
	WRITE_ONCE(i->size, i->window.size);
	if (s->params.depth_most)
		WRITE_ONCE(s->params.depth, size);
	for (n = 0; n < i->nr_slots; n++)
		slots_limit(i->slots[n], size, wake);
}

/*
 * The window that grows from look to look at first.  It is D if nothing is to be
 * found.  A D that is found is where the last one was.
 */
static u32 first_window(const struct sched *s)
{
	u32 depth = s->params.depth;

	if (s->params.depth_most || !looks(s))
		return depth;
	return min(depth, (u32)WINDOW_START);
}

/* Several slots[] have D each, and a scheduler may give them less. */
static void begin(struct sched *s, u32 depth, struct wake *wake)
{
	struct isolation *i = &s->isolation;

	WRITE_ONCE(s->params.depth, depth);
	if (i->nr_slots == 1)
		slots_resize(i->slots[0], window_most(s), wake);
	window_begin(&i->window, first_window(s), looks(s));
	set_window(s, i->window.size, wake);
}

void isolation_tune(struct sched *s, const struct sched_params *p,
		    struct wake *wake)
{
	unsigned long flags = port_lock(&s->active_lock);
	bool changed;

	if (p) {
		changed = p->depth != s->params.depth ||
			  p->depth_most != s->params.depth_most ||
			  p->isolation != s->params.isolation;
		sched_params_take(s, p);
		if (changed)
			begin(s, p->depth, wake);
	} else {
		begin(s, s->params.depth, wake);
	}
	port_unlock(&s->active_lock, flags);
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

/* A polled request ends when its tenant asks, and not when the drive has done it. */
static bool ends_are_known(const struct sched *s)
{
	u32 n;

	for (n = 0; n < s->isolation.nr_slots; n++)
		if (READ_ONCE(s->isolation.slots[n]->leased))
			return false;
	return true;
}

u64 isolation_slots_used(const struct isolation *i)
{
	s64 sum = 0;
	u32 n;

	for (n = 0; n < i->nr_slots; n++)
		sum += slots_used(i->slots[n]);
	return (u64)max(sum, (s64)0);
}

/* Returns when the drive completed a request last. */
static u64 last_end(const struct sched *s)
{
	u64 last = 0;
	u32 n;

	for (n = 0; n < s->nr_queues; n++)
		last = max(last, READ_ONCE(s->queue[n]->ended_ns));
	return last;
}

static void decide(struct sched *s, const struct look *l, struct wake *wake)
{
	const struct window_look w = {
		.ns = l->ended_ns,
		.cost = l->cost,
		.done = l->done,
		.service_ns = ends_are_known(s) ? l->service_ns : 0,
		.used = max(ratio(l->service_ns, l->ns),
			    isolation_slots_used(&s->isolation)),
		.present = l->present,
		.met = l->met,
		.tried = l->tried,
		.waits = queues_wait(s),
	};
	unsigned long flags = port_lock(&s->active_lock);
	u32 price = WINDOW_WHOLE / 100 * s->params.isolation;

	if (looks(s))
		set_window(s,
			   window_next(&s->isolation.window, &w, price,
				       window_most(s)),
			   wake);
	port_unlock(&s->active_lock, flags);
}

/* ---------------------------------------------------------------- the looks */

/* The time until the next look. */
static u64 look_time(const struct sched *s, u32 flows)
{
	u64 least = (u64)flows * s->nr_queues * LOOK_NS_PER_QUEUE;

	return clamp(2 * s->isolation.mean_ns, max(least, (u64)LOOK_LEAST_NS),
		     (u64)LOOK_MOST_NS);
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

/*
 * Sets the time from the last end before the look to its own last one.  Another CPU may
 * complete a request after the counters were read, so a look may have a moment too much.
 */
static void measure_to_last_end(struct sched *s, struct look *l, u64 now)
{
	struct isolation *i = &s->isolation;
	u64 last = l->done ? last_end(s) : now;

	l->ended_ns = last > i->last_ns ? last - i->last_ns : l->ns;
	i->last_ns = max(last, i->last_ns);
}

static void look(struct sched *s, u64 now, struct wake *wake)
{
	struct isolation *i = &s->isolation;
	struct look l = {
		.ns = now - i->look_ns,
		.met = MET_WHOLE,
		.tried.met = { MET_WHOLE, MET_WHOLE },
	};

	isolation_count_flows(s, &l);
	if (!look_is_over(&l)) {
		i->at_ns = now + max(l.ns / 4, (u64)LOOK_LEAST_NS);
		return;
	}
	if (l.done)
		i->mean_ns = average(i->mean_ns, ratio(l.service_ns, l.done));
	measure_to_last_end(s, &l, now);
	isolation_judge_flows(s, &l);
	i->turns = l.turns;
	/* A drive that stands still tells nothing. */
	if (l.done || !l.inside)
		decide(s, &l, wake);
	i->look_ns = now;
	i->lone = l.flows == 1 && !i->window.grows && !i->window.other;
	i->at_ns = now + (i->lone ? 1 + LONE_LOOKS : 1) * look_time(s, l.flows);
	isolation_let_flows_pass(s, work_at(rate_of(l.cost, l.ns),
					    i->at_ns - now));
}

/* No flow is active, or there is nothing to find. */
static void rest(struct sched *s)
{
	struct isolation *i = &s->isolation;
	struct flow_walk w;
	struct flow *f;

	if (!i->look_ns)
		return;
	i->look_ns = 0;
	i->turns = 0;
	for_each_active_flow(f, &w, s) {
		f->isolation.passes = false;
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
	if (!looks(s) || !i->nr_slots || !active) {
		i->was_off |= !looks(s);
		rest(s);
		return;
	}
	if (!i->look_ns) {
		if (i->was_off)
			isolation_skip_flows(s);
		i->was_off = false;
		i->look_ns = now;
		i->last_ns = now;
		i->at_ns = now + look_time(s, 1);
	} else if (now >= i->at_ns || (i->lone && active > 1)) {
		look(s, now, wake);
	}
	wake_at(wake, i->at_ns);
}

/* --------------------------------------------------------------------- life */

void isolation_init(struct isolation *i)
{
	*i = (struct isolation){ 0 };
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
	const struct window *w = &s->isolation.window;
	u32 size = READ_ONCE(s->isolation.size);
	u32 now = s->isolation.nr_slots ?
			  READ_ONCE(s->isolation.slots[0]->limit) :
			  size;

	report_number(r, "window", size);
	report_number(r, "window_tried", now);
	report_number(r, "window_trials", (s64)READ_ONCE(w->trials));
	report_number(r, "isolation_loss_permille", READ_ONCE(w->loss));
	report_number(r, "isolation_met_ppm",
		      (s64)READ_ONCE(w->met) * 1000000 / MET_WHOLE);
}
