// SPDX-License-Identifier: GPL-2.0
#include "logarithm.h"

/* 2^32 * 2^(2^-i) for i = 1 .. LOG_SHIFT: the factor of each fraction bit. */
static const u64 factor[] = {
	0x16a09e667ULL, 0x1306fe0a3ULL, 0x1172b83c7ULL, 0x10b5586cfULL,
	0x1059b0d31ULL, 0x102c9a3e7ULL, 0x10163da9fULL, 0x100b1afa5ULL,
	0x10058c86dULL, 0x1002c605eULL, 0x100162f39ULL, 0x1000b175eULL,
	0x100058ba0ULL, 0x10002c5ccULL, 0x1000162e5ULL, 0x10000b172ULL,
};

static_assert(ARRAY_SIZE(factor) == LOG_SHIFT, "a factor for each bit");

u32 log2_fixed(u64 x)
{
	u32 whole = port_fls64(x) - 1, fraction = 0, bit;
	/* The mantissa, in [1, 2), with 31 fraction bits. */
	u64 m = whole > 31 ? x >> (whole - 31) : x << (31 - whole);

	/* Squaring doubles the logarithm: a bit is set when it passes 1. */
	for (bit = LOG_ONE / 2; bit; bit /= 2) {
		m = (m * m) >> 31;
		if (m >> 32) {
			m >>= 1;
			fraction |= bit;
		}
	}
	return (whole << LOG_SHIFT) | fraction;
}

u64 exp2_fixed(u32 log)
{
	u32 whole = log >> LOG_SHIFT, i;
	u64 m = 1ULL << 32;

	for (i = 0; i < LOG_SHIFT; i++)
		if (log & (LOG_ONE >> (i + 1)))
			m = mul_u64_u64_shr(m, factor[i], 32);
	/* m has 32 fraction bits, the result LOG_SHIFT. */
	return whole < 32 - LOG_SHIFT ? m >> (32 - LOG_SHIFT - whole) :
					m << (whole - (32 - LOG_SHIFT));
}
