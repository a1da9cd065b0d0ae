/* SPDX-License-Identifier: GPL-2.0 */
/*
 * timeline - simulated time, and the events that happen in it
 *
 * The timeline is the only clock of the simulator.  `now` is in nanoseconds and
 * begins at 0.  All that takes time is an *event*: the service of a command, a
 * wake-up, a think time.  An event is embedded in the object that it concerns
 * and is armed at most once at a time.  timeline_step() moves `now` to the next
 * event and fires it; the code that an event runs takes no simulated time.
 *
 * Events fire in the order of their times, and events of the same time in the
 * order in which they were armed.  Nothing else decides, so a run is
 * repeatable.
 *
 * Example.  Events are armed for 30, 10 and 10.  Three steps fire the second,
 * the third and the first, at 10, 10 and 30.
 *
 * The memory of an event belongs to its owner, and must stay while the event is
 * armed.  The timeline has no errors: a wrong call ends the program.
 */
#ifndef MQFAIR_SIM_TIMELINE_H
#define MQFAIR_SIM_TIMELINE_H

#include "sched/core/heap.h"

#define TIMELINE_NEVER	(~0ULL)

struct event {
	struct heap_node node;
	u64 at_ns;			/* while armed */
	void (*fire)(struct event *ev);
	bool armed;
};

struct timeline {
	struct heap events;
	u64 now;			/* ns */
	u64 fired;			/* events so far */
};

/* Sets the time to 0, without events. */
void timeline_init(struct timeline *t);

/* @fire may arm @ev again. */
void event_init(struct event *ev, void (*fire)(struct event *ev));

/* Arms @ev, which is not armed, for @ns, which is not before now. */
void event_arm(struct timeline *t, struct event *ev, u64 ns);

/* Brings the armed @ev forward to @ns.  O(number of events). */
void event_hasten(struct timeline *t, struct event *ev, u64 ns);

/* Returns the time of the next event, or TIMELINE_NEVER. */
u64 timeline_next_ns(const struct timeline *t);

/* Moves time to the next event and fires it.  At least one is armed. */
void timeline_step(struct timeline *t);

#endif /* MQFAIR_SIM_TIMELINE_H */
