// SPDX-License-Identifier: GPL-2.0
/* Histogram of latencies: see stats.h. */
#include "stats.h"
#include "sched/core/log_bucket.h"

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
	return min(log_bucket_start(i + 1, HISTOGRAM_SHIFT) - 1, h->max_ns);
}
