// SPDX-License-Identifier: GPL-2.0
#include "demand.h"
#include "core/rate.h"

enum {
	/* 64 squares of 24 + 4 bits fit in 62. */
	SAMPLE_BITS = 24,
	FRACTION_BITS = 4,
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

u64 demand_percentile(const struct demand *d, u32 history)
{
	u32 n = min(d->nr, history), i, bits, shift;
	u64 most = 0, sum = 0, squares = 0, mean, sigma, expected;

	if (!n)
		return 0;
	for (i = 0; i < n; i++)
		most = max(most, sample_of(d, i));
	bits = port_fls64(most);
	shift = bits > SAMPLE_BITS ? bits - SAMPLE_BITS : 0;
	for (i = 0; i < n; i++)
		sum += sample_of(d, i) >> shift << FRACTION_BITS;
	mean = div64_u64(sum, n);
	for (i = 0; i < n; i++) {
		u64 sample = sample_of(d, i) >> shift << FRACTION_BITS;
		u64 off = max(sample, mean) - min(sample, mean);

		squares += off * off;
	}
	sigma = square_root(div64_u64(squares, n));
	expected = mean + mul_u64_u64_shr(sigma, PROBIT_80, PROBIT_SHIFT);
	return expected << shift >> FRACTION_BITS;
}
