// SPDX-License-Identifier: GPL-2.0
/* xoshiro256** and the distributions made of it: see rng.h. */
#include "rng.h"

enum {
	SECTOR	= 512,
};

static u64 rotl(u64 x, u32 by)
{
	return x << by | x >> (64 - by);
}

void rng_init(struct rng *r, u64 seed)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(r->s); i++) {
		u64 z = seed += 0x9e3779b97f4a7c15;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
		z = (z ^ z >> 27) * 0x94d049bb133111eb;
		r->s[i] = z ^ z >> 31;
	}
}

static u64 rng_u64(struct rng *r)
{
	u64 *s = r->s;
	u64 result = rotl(s[1] * 5, 7) * 9;
	u64 t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

u64 rng_between(struct rng *r, u64 lo, u64 hi)
{
	/* The bias of the high half of the product is below range / 2^64. */
	return lo + (u64)((port_u128)rng_u64(r) * (hi - lo + 1) >> 64);
}

bool rng_chance(struct rng *r, u32 permille)
{
	return permille && rng_between(r, 0, 999) < permille;
}

/*
 * Returns -log2(x / 2^32) in units of 2^-24, for 0 < x <= 2^32.  Each squaring
 * gives one more bit of the logarithm.
 */
static u64 minus_log2(u64 x)
{
	u32 top = port_fls64(x) - 1;
	u64 m = x << (32 - top), frac = 0;
	u32 i;

	for (i = 0; i < 24; i++) {
		m = (u64)((port_u128)m * m >> 32);
		frac <<= 1;
		if (m >> 33) {
			frac |= 1;
			m >>= 1;
		}
	}
	return ((u64)(32 - top) << 24) - frac;
}

u64 rng_exponential(struct rng *r, u64 mean)
{
	enum {
		LN2_24 = 11629080
	}; /* ln 2 in units of 2^-24 */
	u64 bits = minus_log2((rng_u64(r) >> 32) + 1);

	return (u64)((port_u128)mean * (bits * LN2_24) >> 48);
}

u32 rng_size(struct rng *r, u32 lo, u32 hi)
{
	u32 octave =
		(u32)rng_between(r, port_fls64(lo) - 1, port_fls64(hi) - 1);
	u64 from = max((u64)lo, BIT_ULL(octave));
	u64 to = min((u64)hi, BIT_ULL(octave + 1) - SECTOR);

	return (u32)rng_between(r, from / SECTOR, to / SECTOR) * SECTOR;
}
