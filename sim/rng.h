/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rng - the only source of chance in the simulator
 *
 * The arithmetic is on integers, so a seed gives the same run on every machine.
 *
 * Source: Blackman and Vigna, Scrambled Linear Pseudorandom Number Generators,
 * 2021 (xoshiro256**), seeded by SplitMix64 of Steele, Lea, Flood, Fast
 * Splittable Pseudorandom Number Generators, OOPSLA 2014.
 */
#ifndef MQFAIR_SIM_RNG_H
#define MQFAIR_SIM_RNG_H

#include "port.h"

struct rng {
	u64 s[4];
};

void rng_init(struct rng *r, u64 seed);

/* Returns a number of [lo, hi], all equally likely. */
u64 rng_between(struct rng *r, u64 lo, u64 hi);

/* Returns true @permille times in a thousand; draws no number for 0. */
bool rng_chance(struct rng *r, u32 permille);

/* Returns an exponentially distributed number with mean @mean. */
u64 rng_exponential(struct rng *r, u64 mean);

/*
 * Returns a size of [lo, hi], all three multiples of 512.  The octave (from a
 * power of two to the next) is uniform, and so is the size within it.  So
 * requests of 4 to 8 KiB are as frequent as those of 64 to 128 KiB.
 */
u32 rng_size(struct rng *r, u32 lo, u32 hi);

#endif /* MQFAIR_SIM_RNG_H */
