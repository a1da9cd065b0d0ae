/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cpu - the time of a simulated CPU
 *
 * A CPU runs one task at a time.  A task that wants to submit a request calls
 * cpu_want(), and its run() is called when the CPU is free: at once, or after
 * the tasks that were there before.  So tasks on one CPU submit in turn, one
 * request for each turn.  The work of a completion is charged by cpu_spend()
 * at any time, because an interrupt does not wait for a task; it delays the next
 * task.
 *
 * Without these costs all requests of a batch of completions are submitted in
 * the same instant.  A device of fixed service time then serves in batches, which
 * no real host makes it do.
 *
 * Example.  A submission takes 1500 ns and a completion 500 ns, so a CPU submits
 * 500 000 requests a second.
 *
 * A task belongs to its load, and must stay while it waits.
 */
#ifndef MQFAIR_SIM_CPU_H
#define MQFAIR_SIM_CPU_H

#include "timeline.h"

struct cpu_task {
	struct cpu_task *next;
	void (*run)(struct cpu_task *t);
	bool waits;
};

struct cpu {
	struct timeline *timeline;
	struct event due;		/* the first task can run */
	struct cpu_task *head, **tail;	/* tasks that wait */
	u64 free_ns;
	u64 busy_ns;			/* spent so far */
};

/* A lock that CPUs spin for, in order of arrival. */
struct cpu_lock {
	u64 free_ns;			/* when all CPUs that came have left it */
	const struct cpu *last;		/* of these */
};

void cpu_init(struct cpu *c, struct timeline *t);

/* Calls @t->run() when the CPU is free.  Does nothing if @t waits already. */
void cpu_want(struct cpu *c, struct cpu_task *t);

/* The CPU is busy for @ns more. */
void cpu_spend(struct cpu *c, u64 ns);

/*
 * The CPU takes the lock.  If another CPU had it last, the CPU waits until it is
 * free, and then holds it for @ns while the memory that the lock covers moves.
 * Returns how long it waits.
 */
u64 cpu_lock(struct cpu *c, struct cpu_lock *l, u64 ns);

#endif /* MQFAIR_SIM_CPU_H */
