/* SPDX-License-Identifier: GPL-2.0 */
/*
 * engine - simulated time and what is to happen in it
 *
 * Events fire in order of (time, order of arming) and nothing else: there is
 * no clock but `now`.  An event is embedded in what it concerns and is armed
 * at most once at a time.
 */
#ifndef MQFAIR_SIM_ENGINE_H
#define MQFAIR_SIM_ENGINE_H

#include "port.h"
#include "sched/core/heap.h"

#define ENGINE_NEVER	(~0ULL)

struct event {
	struct heap_node node;
	u64 at_ns;
	void (*fire)(struct event *ev);
	bool armed;
};

struct engine {
	struct heap events;
	u64 now;
	u64 fired;
};

void engine_init(struct engine *e);

void event_init(struct event *ev, void (*fire)(struct event *ev));

/* @ns: not in the past. */
void event_arm(struct engine *e, struct event *ev, u64 ns);

/* Brings an armed event forward; O(events). */
void event_hasten(struct engine *e, struct event *ev, u64 ns);

/* When the next event fires, or ENGINE_NEVER. */
u64 engine_next_ns(const struct engine *e);

/* Moves time on to the next event, which there is, and fires it. */
void engine_step(struct engine *e);

#endif /* MQFAIR_SIM_ENGINE_H */
