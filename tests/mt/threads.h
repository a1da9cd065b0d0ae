/* SPDX-License-Identifier: GPL-2.0 */
/*
 * threads - the threads of a test
 *
 * Each member works by itself between two meetings.  A meeting is a barrier:
 * one member checks the state while all others wait.
 */
#ifndef MQFAIR_THREADS_H
#define MQFAIR_THREADS_H

#include "tests/random.h"

struct threads {
	pthread_barrier_t barrier;
	u32 nr;
	void *arg;
};

struct member {
	struct threads *threads;
	u32 index;
	struct random random;
};

/* Runs @work on @nr threads at once, and returns when all have returned. */
void threads_run(u32 nr, struct random *random,
		 void (*work)(struct member *me, void *arg), void *arg);

/* All members call this.  One of them calls @check while the others wait. */
void threads_meet(struct member *me, void (*check)(void *arg), void *arg);

/* The number of threads to run: more than processors, so some are preempted. */
u32 threads_size(void);

/*
 * The meetings of a run, and the steps of a member between two of them, for a
 * test that has @meetings and @steps.  On simulated CPUs (tests/smp) both are
 * fewer, because each span is a whole interleaving.
 */
u32 threads_meetings(u32 meetings);
u32 threads_steps(u32 steps);

/* The test has @seen @what, which a long run must show. */
void threads_seen(bool seen, const char *what);

/*
 * On simulated CPUs @check runs before each shared access, until the run ends.
 * Threads do not call it.
 */
void threads_watch(void (*check)(void *arg), void *arg);

#define threads_check(cond)	\
	((cond) ? (void)0 : port_assert_failed(#cond, __FILE__, __LINE__))

#endif /* MQFAIR_THREADS_H */
