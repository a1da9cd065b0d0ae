// SPDX-License-Identifier: GPL-2.0
/* The time of a simulated CPU: see cpu.h. */
#include "cpu.h"

static void cpu_due(struct event *ev);

void cpu_init(struct cpu *c, struct timeline *t)
{
	*c = (struct cpu){ .timeline = t };
	c->tail = &c->head;
	event_init(&c->due, cpu_due);
}

/* Has the first task run when the CPU is free. */
static void cpu_arm(struct cpu *c)
{
	if (c->head && !c->due.armed)
		event_arm(c->timeline, &c->due,
			  max(c->free_ns, c->timeline->now));
}

static void cpu_due(struct event *ev)
{
	struct cpu *c = container_of(ev, struct cpu, due);
	struct cpu_task *t = c->head;

	/* A completion may have come since the event was armed. */
	if (c->free_ns <= c->timeline->now) {
		c->head = t->next;
		if (!c->head)
			c->tail = &c->head;
		t->waits = false;
		t->run(t);
	}
	cpu_arm(c);
}

void cpu_want(struct cpu *c, struct cpu_task *t)
{
	if (t->waits)
		return;
	if (!c->head && c->free_ns <= c->timeline->now) {
		t->run(t);
		return;
	}
	t->next = NULL;
	t->waits = true;
	*c->tail = t;
	c->tail = &t->next;
	cpu_arm(c);
}

void cpu_spend(struct cpu *c, u64 ns)
{
	c->free_ns = max(c->free_ns, c->timeline->now) + ns;
	c->busy_ns += ns;
}

u64 cpu_lock(struct cpu *c, struct cpu_lock *l, u64 ns)
{
	u64 now = c->timeline->now, since = max(l->free_ns, now);

	if (l->last == c || !ns)
		return 0;
	l->last = c;
	l->free_ns = since + ns;
	cpu_spend(c, l->free_ns - now);
	return since - now;
}
