/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rng - the simulator's only source of chance
 *
 * Integer arithmetic throughout, so that a seed gives the same run on every
 * machine.
 *
 * Source: Blackman and Vigna, Scrambled Linear Pseudorandom Number Generators,
 * 2021 (xoshiro256**), seeded by Steele, Lea, Flood, Fast Splittable
 * Pseudorandom Number Generators, 2014.
 */
#ifndef MQFAIR_SIM_RNG_H
#define MQFAIR_SIM_RNG_H

#include "port.h"

struct rng {
	u64 s[4];
};

void rng_init(struct rng *r, u64 seed);

u64 rng_u64(struct rng *r);

/* Uniform in [lo, hi]. */
u64 rng_between(struct rng *r, u64 lo, u64 hi);

/* True @permille times in a thousand; draws nothing when that is never. */
bool rng_chance(struct rng *r, u32 permille);

/* Exponentially distributed with mean @mean. */
u64 rng_exponential(struct rng *r, u64 mean);

/*
 * A size in [lo, hi], all multiples of 512: uniform over the octaves, then
 * within one, so that small requests are as common as large ones.
 */
u32 rng_size(struct rng *r, u32 lo, u32 hi);

#endif /* MQFAIR_SIM_RNG_H */
