// SPDX-License-Identifier: GPL-2.0
#include "timeline.h"

void timeline_init(struct timeline *e)
{
	*e = (struct timeline){ 0 };
	heap_init(&e->events);
}

void event_init(struct event *ev, void (*fire)(struct event *ev))
{
	*ev = (struct event){ .fire = fire };
}

void event_arm(struct timeline *e, struct event *ev, u64 ns)
{
	port_assert(!ev->armed);
	port_assert(ns >= e->now);
	ev->armed = true;
	ev->at_ns = ns;
	heap_push(&e->events, &ev->node, ns);
}

static u64 event_key(struct heap_node *n)
{
	return container_of(n, struct event, node)->at_ns;
}

void event_hasten(struct timeline *e, struct event *ev, u64 ns)
{
	port_assert(ev->armed);
	port_assert(ns >= e->now && ns <= ev->at_ns);
	ev->at_ns = ns;
	heap_rebuild(&e->events, event_key);
}

u64 timeline_next_ns(const struct timeline *e)
{
	const struct heap_node *top = heap_top(&e->events);

	return top ? top->key : TIMELINE_NEVER;
}

void timeline_step(struct timeline *e)
{
	struct event *ev =
		container_of(heap_pop(&e->events), struct event, node);

	e->now = ev->at_ns;
	e->fired++;
	ev->armed = false;
	ev->fire(ev);
}
