/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cpu - simulated CPUs, which one thread plays in turn
 *
 * Each simulated CPU is a coroutine with a stack of its own.  It runs until it
 * switches to another CPU by itself: a *driver* calls cpu_switch() at the
 * shared accesses of the code under test.  So a program decides the
 * interleaving, and the same decisions give the same run.  Threads would leave
 * that choice to the operating system, and a failure could not be repeated.
 *
 *	cpus_run(2, work, arg)		work(0, arg) on CPU 0, work(1, arg) on
 *					CPU 1, until both have returned
 *	cpu_wait(lock)			CPU 0 waits; the driver picks CPU 1
 *	cpu_wake(lock)			CPU 1 wakes all CPUs that wait for it
 *
 * Limit.  The interleavings are sequentially consistent: a store is seen by
 * all CPUs at once.  Missing acquires and releases are found by the sanitizer
 * of tests/mt.
 */
#ifndef MQFAIR_SMP_CPU_H
#define MQFAIR_SMP_CPU_H

#include "port.h"

enum {
	CPUS_MAX	= 64,
	CPU_NONE	= CPUS_MAX,	/* the program itself, between two runs */
};

/* The driver.  It is called on the CPU that must give way. */
struct cpu_driver {
	/* @nr CPUs are ready.  Returns the CPU that begins. */
	u32 (*begin)(u32 nr);
	/*
	 * The running CPU cannot go on.  Returns one of the CPUs that are
	 * ready; there is one.
	 */
	u32 (*next)(void);
	/* No CPU can go on, though not all have ended.  It does not return. */
	void (*stuck)(void);
};

extern const struct cpu_driver *cpu_driver;

/* Runs work(cpu, arg) on @nr CPUs, until all have returned. */
void cpus_run(u32 nr, void (*work)(u32 cpu, void *arg), void *arg);

/* Returns the CPU that runs, or CPU_NONE. */
u32 cpu_self(void);

/* Returns the mask of the CPUs that can run, the running one included. */
u64 cpus_ready(void);

/* Goes on with @cpu, which is ready, until some CPU switches back. */
void cpu_switch(u32 cpu);

/* The running CPU waits until cpu_wake(@on). */
void cpu_wait(const void *on);
void cpu_wake(const void *on);

#endif /* MQFAIR_SMP_CPU_H */
