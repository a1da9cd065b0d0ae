// SPDX-License-Identifier: GPL-2.0
/* The parts that all schedulers have: chassis.h. */
#include "chassis.h"
#include "cost/cost_estimator.h"

/* ---------------------------------------------------------- forgotten queues */

int watchdog_init(struct watchdog *w, u32 nr_queues)
{
	w->queue = port_zalloc(nr_queues * sizeof(w->queue[0]));
	return w->queue ? 0 : -ENOMEM;
}

void watchdog_deinit(struct watchdog *w)
{
	port_free(w->queue);
}

/* A sweep finds the suspect again.  Returns true once, when it counts. */
static bool suspect_counts(struct suspect *x, struct sched *s)
{
	if (x->sweeps > SUSPECT_SWEEPS)
		return false;
	if (!x->sweeps && s->hooks.begin)
		x->mark = s->hooks.begin(s);
	if (x->sweeps < SUSPECT_SWEEPS)
		x->sweeps++;
	if (x->sweeps < SUSPECT_SWEEPS ||
	    (s->hooks.ended && !s->hooks.ended(s, x->mark)))
		return false;
	x->sweeps++;
	return true;
}

/* A queue in a struct wake is not forgotten: the host watches that one. */
static bool is_suspect(const struct queue *q,
		       bool (*forgotten)(const struct queue *q))
{
	return READ_ONCE(q->nr) && !READ_ONCE(q->wake_pending) && forgotten(q);
}

static void watchdog_look(struct watchdog *w, struct sched *s,
			  bool (*forgotten)(const struct queue *q))
{
	u32 i;

	for (i = 0; i < s->nr_queues; i++) {
		const struct queue *q = s->queue[i];
		u64 dispatched = READ_ONCE(q->stats.dispatched);
		struct suspect *suspect = &w->queue[i];

		if (!is_suspect(q, forgotten) ||
		    suspect->dispatched != dispatched) {
			suspect->dispatched = dispatched;
			suspect->sweeps = 0;
		} else if (suspect_counts(suspect, s)) {
			atomic64_inc(&s->stats.watchdog);
		}
	}
}

bool chassis_sweep(struct chassis *c, struct sched *s, u64 now,
		   bool (*forgotten)(const struct queue *q), struct wake *wake)
{
	bool changed;

	if (!chassis_sweep_is_due(c, now)) {
		wake_at(wake, c->sweep_ns);
		return false;
	}
	c->sweep_ns = now + SWEEP_NS;
	watchdog_look(&c->watchdog, s, forgotten);
	if (flow_sweep(s, now, &changed))
		wake_at(wake, c->sweep_ns);
	return changed;
}

/* --------------------------------------------------------------------- leases */

/* The requests of all slots[] are sent to one drive, so their terms are one. */
static void end_term(struct chassis *c, struct sched *s, u64 now,
		     struct wake *wake)
{
	u64 sent, depth = 0;
	bool leased = false;
	u32 i;

	for (i = 0; i < c->nr_slots; i++) {
		leased |= READ_ONCE(c->slots[i].leased);
		depth += READ_ONCE(c->slots[i].tree.depth);
	}
	if (likely(!leased))
		return;
	sent = sched_dispatched(s);
	if (sent - c->term_sent < 2 * depth && now - c->term_ns < LEASE_MOST_NS)
		return;
	c->term_ns = now;
	c->term_sent = sent;
	for (i = 0; i < c->nr_slots; i++)
		slots_end_term(&c->slots[i], wake);
}

/* ------------------------------------------------------------------ the hooks */

int chassis_init(struct chassis *c, struct sched *s, struct slots *slots,
		 u32 nr_slots, const u32 *depth, bool parts)
{
	struct wake wake;

	wake_init(&wake);
	c->slots = slots;
	c->nr_slots = 0;
	if (cost_estimator_init(s))
		return -ENOMEM;
	if (watchdog_init(&c->watchdog, s->nr_queues))
		goto fail;
	for (; c->nr_slots < nr_slots; c->nr_slots++) {
		struct slots *sl = &slots[c->nr_slots];

		if (slots_init(sl, s, depth[c->nr_slots], parts))
			goto fail;
		isolation_attach(s, sl);
	}
	/* No queue waits yet: nothing is in @wake. */
	isolation_tune(s, NULL, &wake);
	return 0;
fail:
	chassis_exit(c, s);
	return -ENOMEM;
}

void chassis_exit(struct chassis *c, struct sched *s)
{
	while (c->nr_slots)
		slots_deinit(&c->slots[--c->nr_slots]);
	watchdog_deinit(&c->watchdog);
	cost_estimator_deinit(s);
}

void chassis_tick(struct chassis *c, struct sched *s, u64 now,
		  struct wake *wake)
{
	cost_estimator_tick(s, now, wake);
	end_term(c, s, now, wake);
	isolation_tick(s, now, wake);
}

void chassis_report(const struct sched *s, struct report *r)
{
	cost_estimator_report(s, r);
	isolation_report(s, r);
}
