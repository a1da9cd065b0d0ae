// SPDX-License-Identifier: GPL-2.0
#include "host.h"

static void arm(struct host *h, struct event *timer, u64 ns)
{
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

static void released(struct event *ev)
{
	struct host *h = container_of(ev, struct host, release);
	struct wake wake;

	wake_init(&wake);
	sched_release(&h->sched, host_now(h), &wake);
	host_act(h, &wake);
}

void ticks_init(struct host *h)
{
	event_init(&h->tick, ticked);
	event_init(&h->release, released);
}

void ticks_ask(struct host *h, const struct wake *wake)
{
	arm(h, &h->tick, wake->at_ns);
	arm(h, &h->release, wake->release_ns);
}
