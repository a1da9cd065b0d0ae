/* SPDX-License-Identifier: GPL-2.0 */
/*
 * chassis - the parts of a scheduler that are alike whatever its order
 *
 * Every scheduler has slots (slots.h), learns the costs of requests if it is asked
 * to (cost_estimator.h), isolates short tenants (isolation.h), and sweeps: it
 * takes idle flows out of the shares and counts forgotten queues.  It embeds a
 * chassis, and calls each function from its hook of that name.
 *
 *	init	chassis_init()
 *	tick	chassis_tick(), then chassis_sweep()
 *	tune	isolation_tune(), unless shares alone have changed
 *	report	chassis_report()
 *	exit	chassis_exit()
 *
 * The slots are the scheduler's own, in its hot lines.  The chassis points to
 * them.  A scheduler with several sorts of requests has slots for each.
 *
 * Locking: as struct sched_ops states for the hook.  T: only tick uses it.
 *
 * Tested by tests/unit/chassis.c, and under each scheduler by tests/sim.
 */
#ifndef MQFAIR_CHASSIS_H
#define MQFAIR_CHASSIS_H

#include "slots.h"

enum {
	SWEEP_NS		= FLOW_GRACE_NS / 2,
	SUSPECT_SWEEPS		= 10,	/* they take half a second */
};

/* ---------------------------------------------------------- forgotten queues */

/*
 * A suspect is a queue that a sweep finds forgotten.  It need not be: the CPU that
 * is to run it may have been woken but not come yet, or may stand still in the
 * middle of a hook, and a host of virtual machines may stop a CPU for seconds.  So
 * the suspect counts as forgotten once two conditions hold:
 *
 *	SUSPECT_SWEEPS sweeps in a row have found it, and
 *	all hooks have ended that ran when the first of them found it.
 *
 * A kernel in which a hook can be preempted knows the second too early.
 *
 * A single sweep also finds queues to which a slot is on its way, so it cannot
 * count.  The watchdog wakes none: a stall is a bug to be found, not one to be
 * covered.
 */
struct watchdog {
	struct suspect {
		u64 dispatched;		/* when the queue was first suspected */
		u64 mark;		/* of host_hooks.begin(), at that time */
		u32 sweeps;		/* that have found it since */
	} *queue;			/* tick: by index */
};

/* Returns 0 or -ENOMEM. */
int watchdog_init(struct watchdog *w, u32 nr_queues);
void watchdog_deinit(struct watchdog *w);

/* ----------------------------------------------------------------- the parts */

struct chassis {
	struct slots *slots;		/* I */
	u32 nr_slots;			/* I: elements of slots[] */
	u64 sweep_ns;			/* T: time of the next sweep */
	u64 term_ns, term_sent;		/* T: see chassis_end_term() */
	struct watchdog watchdog;
};

/*
 * @slots has @nr_slots elements, element i for @depth[i] requests.  With @parts
 * each queue has a part of them (slots.h).  Returns 0, or -ENOMEM with nothing
 * left allocated.
 */
int chassis_init(struct chassis *c, struct sched *s, struct slots *slots,
		 u32 nr_slots, const u32 *depth, bool parts);

/* No io is left.  A scheduler that fails to start calls this, too. */
void chassis_exit(struct chassis *c, struct sched *s);

void chassis_tick(struct chassis *c, struct sched *s, u64 now,
		  struct wake *wake);

/* Is it time for the sweep that the next chassis_sweep() does? */
static inline bool chassis_sweep_is_due(const struct chassis *c, u64 now)
{
	return now >= c->sweep_ns;
}

/*
 * Makes the sweep that is due every SWEEP_NS.  Idle flows are inactive then.
 * Returns whether shares changed.  While a flow is active, @wake asks for the
 * next sweep.  @forgotten tells of a queue in no struct wake whether it waits
 * though it could run.
 */
bool chassis_sweep(struct chassis *c, struct sched *s, u64 now,
		   bool (*forgotten)(const struct queue *q), struct wake *wake);

void chassis_report(const struct sched *s, struct report *r);

#endif /* MQFAIR_CHASSIS_H */
