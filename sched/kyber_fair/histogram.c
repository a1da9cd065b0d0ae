// SPDX-License-Identifier: GPL-2.0
#include "histogram.h"
#include "core/log_bucket.h"

static u32 bucket_of(u64 ns)
{
	u32 bucket = log_bucket(ns >> LATENCY_UNIT_SHIFT, LATENCY_STEP_SHIFT);

	return min(bucket, (u32)LATENCY_BUCKETS - 1);
}

/* The greatest value of @bucket; the last bucket takes all beyond. */
static u64 bucket_end(u32 bucket)
{
	return (log_bucket_start(bucket + 1, LATENCY_STEP_SHIFT)
		<< LATENCY_UNIT_SHIFT) -
	       1;
}

void histogram_record(struct latency_histogram *h, u64 ns)
{
	atomic64_inc(&h->bucket[bucket_of(ns)]);
	/* At least 1: histogram_drain() skips a histogram with the sum 0. */
	atomic64_add((s64)max(ns, (u64)1), &h->sum_ns);
}

void histogram_drain(struct latency_histogram *h, struct latency_window *w)
{
	u32 i;

	if (!atomic64_read(&h->sum_ns))
		return;
	w->sum_ns += (u64)atomic64_xchg(&h->sum_ns, 0);
	for (i = 0; i < LATENCY_BUCKETS; i++) {
		u64 n;

		if (!atomic64_read(&h->bucket[i]))
			continue;
		n = (u64)atomic64_xchg(&h->bucket[i], 0);
		w->bucket[i] += n;
		w->count += n;
	}
}

void histogram_clear(struct latency_window *w)
{
	*w = (struct latency_window){ 0 };
}

u64 histogram_percentile(const struct latency_window *w, u32 percent)
{
	u64 need = div64_u64(w->count * percent + 99, 100);
	u64 seen = 0;
	u32 i;

	if (!w->count)
		return 0;
	for (i = 0; i < LATENCY_BUCKETS - 1; i++) {
		seen += w->bucket[i];
		if (seen >= max(need, (u64)1))
			break;
	}
	return bucket_end(i);
}
