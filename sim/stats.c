// SPDX-License-Identifier: GPL-2.0
/* Histogram of latencies: see stats.h. */
#include "stats.h"
#include "sched/core/log_bucket.h"

/* Returns the largest value of @bucket. */
static u64 histogram_end(u32 bucket)
{
	return log_bucket_start(bucket + 1, HISTOGRAM_SHIFT) - 1;
}

void histogram_add(struct histogram *h, u64 ns)
{
	h->count++;
	h->sum_ns += ns;
	h->max_ns = max(h->max_ns, ns);
	h->bucket[log_bucket(ns, HISTOGRAM_SHIFT)]++;
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
