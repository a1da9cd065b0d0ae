// SPDX-License-Identifier: GPL-2.0
#include "host.h"

static void arm(struct host *h, u64 ns)
{
	struct event *timer = &h->tick;

	if (!ns || h->params.no_tick)
		return;
	ns = max(ns, host_now(h));
	if (!timer->armed)
		event_arm(&h->timeline, timer, ns);
	else if (ns < timer->at_ns)
		event_hasten(&h->timeline, timer, ns);
}

static void ticked(struct event *ev)
{
	struct host *h = container_of(ev, struct host, tick);
	struct wake wake;

	wake_init(&wake);
	sched_run_tick(&h->sched, host_now(h), &wake);
	host_act(h, &wake);
	tags_tick(h);
}

void ticks_init(struct host *h)
{
	event_init(&h->tick, ticked);
}

void ticks_ask(struct host *h, const struct wake *wake)
{
	arm(h, wake->at_ns);
}
