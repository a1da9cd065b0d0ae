/* SPDX-License-Identifier: GPL-2.0 */
/*
 * crew - a test's threads
 *
 * Each member works by itself between meetings; at a meeting all of them
 * stand still while one looks whether everything is as it has to be.
 */
#ifndef MQFAIR_CREW_H
#define MQFAIR_CREW_H

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

/* All members call this; @look runs once, while nobody else does anything. */
void threads_meet(struct member *me, void (*look)(void *arg), void *arg);

/* How many threads: more than processors, so that some are preempted. */
u32 threads_size(void);

#define threads_check(cond)	\
	((cond) ? (void)0 : port_assert_failed(#cond, __FILE__, __LINE__))

#endif /* MQFAIR_CREW_H */
