/* SPDX-License-Identifier: GPL-2.0 */
/*
 * random - random numbers of a drive, the same for the same seed
 *
 * SplitMix64.  Source: Steele, Lea, Flood, Fast Splittable Pseudorandom Number
 * Generators, OOPSLA 2014.
 */
#ifndef MQFAIR_FLASH_RANDOM_H
#define MQFAIR_FLASH_RANDOM_H

#include "port.h"

/* Advances *@state, which begins with a seed, and returns 64 random bits. */
static inline u64 flash_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

#endif /* MQFAIR_FLASH_RANDOM_H */
