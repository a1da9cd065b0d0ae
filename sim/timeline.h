/* SPDX-License-Identifier: GPL-2.0 */
/*
 * timeline - simulated time and what is to happen in it
 *
 * Events fire in order of (time, order of arming) and nothing else: there is
 * no clock but `now`.  An event is embedded in what it concerns and is armed
 * at most once at a time.
 */
#ifndef MQFAIR_SIM_TIMELINE_H
#define MQFAIR_SIM_TIMELINE_H

#include "port.h"
#include "sched/core/heap.h"

#define TIMELINE_NEVER	(~0ULL)

struct event {
	struct heap_node node;
	u64 at_ns;
	void (*fire)(struct event *ev);
	bool armed;
};

struct timeline {
	struct heap events;
	u64 now;
	u64 fired;
};

void timeline_init(struct timeline *e);

void event_init(struct event *ev, void (*fire)(struct event *ev));

/* @ns: not in the past. */
void event_arm(struct timeline *e, struct event *ev, u64 ns);

/* Brings an armed event forward; O(events). */
void event_hasten(struct timeline *e, struct event *ev, u64 ns);

/* When the next event fires, or TIMELINE_NEVER. */
u64 timeline_next_ns(const struct timeline *e);

/* Moves time on to the next event, which there is, and fires it. */
void timeline_step(struct timeline *e);

#endif /* MQFAIR_SIM_TIMELINE_H */
