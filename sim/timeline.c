// SPDX-License-Identifier: GPL-2.0
/* Simulated time over the heap of sched/core: see timeline.h. */
#include "timeline.h"

void timeline_init(struct timeline *t)
{
	*t = (struct timeline){ 0 };
	heap_init(&t->events);
}

void event_init(struct event *ev, void (*fire)(struct event *ev))
{
	*ev = (struct event){ .fire = fire };
}

void event_arm(struct timeline *t, struct event *ev, u64 ns)
{
	port_assert(!ev->armed);
	port_assert(ns >= t->now);
	ev->armed = true;
	ev->at_ns = ns;
	heap_push(&t->events, &ev->node, ns);
}

static u64 event_key(struct heap_node *n, const void *unused)
{
	(void)unused;
	return container_of(n, struct event, node)->at_ns;
}

void event_hasten(struct timeline *t, struct event *ev, u64 ns)
{
	port_assert(ev->armed);
	port_assert(ns >= t->now && ns <= ev->at_ns);
	ev->at_ns = ns;
	heap_rebuild(&t->events, event_key, NULL);
}

u64 timeline_next_ns(const struct timeline *t)
{
	const struct heap_node *top = heap_top(&t->events);

	return top ? top->key : TIMELINE_NEVER;
}

void timeline_step(struct timeline *t)
{
	struct event *ev =
		container_of(heap_pop(&t->events), struct event, node);

	t->now = ev->at_ns;
	t->fired++;
	ev->armed = false;
	ev->fire(ev);
}
