/* SPDX-License-Identifier: GPL-2.0 */
/*
 * explore - chooses the interleaving of simulated CPUs
 *
 * Before each shared access, which is a call of port_perturb() in port.h, the
 * driver decides which CPU goes on.  There are three strategies:
 *
 *   priorities	Each CPU has a random priority, and the highest one that is
 *		ready runs.  At a few random accesses the running CPU falls to
 *		the lowest priority.  A bug that needs d such places is found in
 *		one interleaving with a probability of at least 1/(n k^(d-1)),
 *		for n CPUs and k accesses.
 *	random	The CPU is drawn anew at one access in eight.
 *	bounded	All schedules of a scenario with at most P preemptions are run,
 *		one after the other.  A switch where a CPU waits or ends costs
 *		nothing.
 *
 * Priorities find bugs that need few switches at exact places; drawn CPUs find
 * those that need many switches anywhere.  Bounded schedules prove that a small
 * scenario has no bug that P preemptions show.
 *
 * The same seed gives the same interleavings.  A failure prints the seed, the
 * interleaving, and its last switches.
 *
 * Source of priorities: Burckhardt, Kothari, Musuvathi, Nagarakatte, A
 * Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, ASPLOS
 * 2010.  Source of the bound: Musuvathi, Qadeer, Iterative Context Bounding for
 * Systematic Testing of Multithreaded Programs, PLDI 2007.
 */
#ifndef MQFAIR_SMP_EXPLORE_H
#define MQFAIR_SMP_EXPLORE_H

#include <stdio.h>

#include "cpu.h"

/* Starts the sequence of interleavings of @seed. */
void explore_seed(u64 seed);

/*
 * A new random interleaving begins, of CPUs that are about to run: new
 * strategy, new priorities.
 */
void explore_random(u32 cpus);

/*
 * Runs work(cpu, arg) on @nr CPUs by all schedules with at most @preemptions,
 * and calls before() and after() around each.  Returns their number.
 */
u64 explore_bounded(u32 nr, u32 preemptions, void (*before)(void *arg),
		    void (*work)(u32 cpu, void *arg), void (*after)(void *arg),
		    void *arg);

/* A CPU has become ready, so another one may have the highest priority. */
void explore_woke(void);

/* From now on @check runs before each shared access; NULL: no more. */
void explore_watch(void (*check)(void *arg), void *arg);

/* Interleavings and shared accesses since the program began. */
u64 explore_count(void);
u64 explore_steps(void);

/* Prints the interleaving that has failed for @why.  Ends the program. */
__attribute__((noreturn)) void explore_failed(const char *why);

/* The program has set these: where reports go, and the command to repeat. */
extern FILE *explore_report;
extern const char *explore_program;

#endif /* MQFAIR_SMP_EXPLORE_H */
