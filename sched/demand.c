// SPDX-License-Identifier: GPL-2.0
#include "demand.h"

enum {
	/* 64 squares of 28 bits fit in 62. */
	SAMPLE_BITS = 28,
	/* Fraction of the deviation: its square has twice as many, in 64 bits. */
	SIGMA_SHIFT = 4,
	/* The probit of 0.8, 0.8416212336, in units of 2^-20. */
	PROBIT_SHIFT = 20,
	PROBIT_80 = 882504,
};

void demand_add(struct demand *d, u64 sample)
{
	d->sample[d->next] = sample;
	d->next = (d->next + 1) % DEMAND_SAMPLES;
	d->nr = min(d->nr + 1, (u32)DEMAND_SAMPLES);
}

static u64 sample_of(const struct demand *d, u32 age)
{
	return d->sample[(d->next + DEMAND_SAMPLES - 1 - age) % DEMAND_SAMPLES];
}

/* The largest integer whose square is no more than @x. */
static u64 square_root(u64 x)
{
	u64 root = 0, bit = 1ULL << 62;

	while (bit > x)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (x >= root + bit) {
			x -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return root;
}

u64 demand_percentile(const struct demand *d, u32 history)
{
	u32 n = min(d->nr, history), i, bits, shift;
	u64 most = 0, sum = 0, squares = 0, mean, sigma;

	if (!n)
		return 0;
	for (i = 0; i < n; i++)
		most = max(most, sample_of(d, i));
	bits = port_fls64(most);
	shift = bits > SAMPLE_BITS ? bits - SAMPLE_BITS : 0;
	for (i = 0; i < n; i++)
		sum += sample_of(d, i) >> shift;
	mean = div64_u64(sum, n);
	for (i = 0; i < n; i++) {
		s64 off = (s64)(sample_of(d, i) >> shift) - (s64)mean;

		squares += (u64)(off * off);
	}
	sigma = square_root(div64_u64(squares, n) << (2 * SIGMA_SHIFT));
	return (mean << shift) +
	       (mul_u64_u64_shr(sigma, PROBIT_80, PROBIT_SHIFT) << shift >>
		SIGMA_SHIFT);
}
