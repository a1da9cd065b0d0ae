/* SPDX-License-Identifier: GPL-2.0 */
/*
 * random - repeatable random numbers for tests
 *
 * A test prints the seed that it runs with.  MQFAIR_SEED=N in the environment
 * repeats the run with that seed.  MQFAIR_ROUNDS=N makes a run N times as long.
 *
 * Source: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators,
 * OOPSLA 2014 (SplitMix64).
 */
#ifndef MQFAIR_RANDOM_H
#define MQFAIR_RANDOM_H

#include "port.h"

#include <stdio.h>
#include <stdlib.h>

struct random {
	u64 state;
};

/* Returns 64 random bits. */
static inline u64 random_next(struct random *r)
{
	u64 z = r->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Returns a number of [0, n). */
static inline u32 random_below(struct random *r, u32 n)
{
	return (u32)(((port_u128)random_next(r) * n) >> 64);
}

/* Returns true once in @n times. */
static inline bool random_once_in(struct random *r, u32 n)
{
	return random_below(r, n) == 0;
}

/* Returns the number in the environment variable @name, or @otherwise. */
static inline u64 random_env(const char *name, u64 otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* Starts a sequence for the test @name, and prints its seed. */
static inline struct random random_seeded(const char *name)
{
	u64 seed = random_env("MQFAIR_SEED", 20190710);

	fprintf(stderr, "%s: MQFAIR_SEED=%llu\n", name, seed);
	return (struct random){ .state = seed };
}

/*
 * Returns the number of rounds for a test that has @rounds by default.  A test
 * on simulated CPUs (tests/smp) has few, because it runs with many seeds.
 */
#ifndef RANDOM_ROUNDS
#define RANDOM_ROUNDS(rounds)	(rounds)
#endif
static inline u64 random_rounds(u64 rounds)
{
	return RANDOM_ROUNDS(rounds) * random_env("MQFAIR_ROUNDS", 1);
}

#endif /* MQFAIR_RANDOM_H */
