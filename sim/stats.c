// SPDX-License-Identifier: GPL-2.0
/* Histogram of latencies: see stats.h. */
#include "stats.h"

static u32 histogram_bucket(u64 ns)
{
	u32 octave;

	if (ns >> HISTOGRAM_SHIFT == 0)
		return (u32)ns;
	octave = port_fls64(ns) - 1 - HISTOGRAM_SHIFT;
	return ((octave + 1) << HISTOGRAM_SHIFT) +
	       (u32)(ns >> octave & (BIT_ULL(HISTOGRAM_SHIFT) - 1));
}

/* Returns the largest value of @bucket. */
static u64 histogram_end(u32 bucket)
{
	u32 octave = bucket >> HISTOGRAM_SHIFT;
	u64 step = bucket & (BIT_ULL(HISTOGRAM_SHIFT) - 1);

	if (!octave)
		return step;
	octave--;
	return ((BIT_ULL(HISTOGRAM_SHIFT) + step + 1) << octave) - 1;
}

void histogram_add(struct histogram *h, u64 ns)
{
	h->count++;
	h->sum_ns += ns;
	h->max_ns = max(h->max_ns, ns);
	h->bucket[histogram_bucket(ns)]++;
}

u64 histogram_at(const struct histogram *h, u32 permille)
{
	u64 need = (h->count * permille + 999) / 1000;
	u64 seen = 0;
	u32 i;

	if (!h->count)
		return 0;
	for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= need && seen)
			break;
	}
	return min(histogram_end(i), h->max_ns);
}
