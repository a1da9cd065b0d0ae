// SPDX-License-Identifier: GPL-2.0
#include "domain.h"

enum {
	MEAN_SHIFT	= 8,	/* decay is exact down to one request */
	DECAY_SHIFT	= 2,
	SCALE_SHIFT	= 8,
};

#define SCALE_ONE	(1ULL << SCALE_SHIFT)

static const struct {
	const char *name;
	u32 depth;
	u64 target_ns;
} defaults[] = {			/* [K] */
	[IO_READ]	= { "read", 256, 0 },
	[IO_WRITE]	= { "write", 128, 0 },
	[IO_DISCARD]	= { "discard", 64, 5ULL * 1000 * 1000 * 1000 },
	[IO_OTHER]	= { "other", 16, 0 },
};
static_assert(ARRAY_SIZE(defaults) == DOMAINS);

const char *domain_name(enum io_op op)
{
	return defaults[op].name;
}

u32 domain_depth_most(enum io_op op)
{
	return defaults[op].depth;
}

void domain_done(struct domains *d, enum io_op op, u32 queue, u64 device_ns,
		 u64 total_ns)
{
	struct domain_shard *shard = &d->domain[op].shard[queue];

	histogram_record(&shard->device, device_ns);
	histogram_record(&shard->total, total_ns);
}

/* ------------------------------------------------------------ mean, ratio */

static void mean_add(struct domain *d, u64 count, u64 sum_ns)
{
	if (!count)
		return;
	d->mean_count -= d->mean_count >> DECAY_SHIFT;
	d->mean_count += count << MEAN_SHIFT;
	d->mean_sum_ns -= d->mean_sum_ns >> DECAY_SHIFT;
	d->mean_sum_ns += sum_ns << MEAN_SHIFT;
}

u64 domain_mean_ns(const struct domain *d)
{
	return d->mean_count ? div64_u64(d->mean_sum_ns, d->mean_count) : 0;
}

static void set_ratio(struct domains *d)
{
	u64 read = domain_mean_ns(&d->domain[IO_READ]);
	u64 write = domain_mean_ns(&d->domain[IO_WRITE]);
	u64 ratio = RATIO_ONE;

	/* Until both are known, reads and writes cost the same [R]. */
	if (read && write)
		ratio = div64_u64(write << RATIO_SHIFT, read);
	ratio = clamp(ratio, (u64)RATIO_LEAST, (u64)RATIO_MOST);
	WRITE_ONCE(d->ratio, (u32)ratio);
}

/* ------------------------------------------------------------------ depth */

static void drain(struct domain *d, u32 nr_queues)
{
	u64 count = d->device.count, sum_ns = d->device.sum_ns;
	u32 i;

	for (i = 0; i < nr_queues; i++) {
		histogram_drain(&d->shard[i].device, &d->device);
		histogram_drain(&d->shard[i].total, &d->total);
	}
	mean_add(d, d->device.count - count, d->device.sum_ns - sum_ns);
}

/* True if there were enough requests: the percentiles are new then. */
static bool judge(struct domain *d, u64 now)
{
	if (!d->since_ns)
		d->since_ns = now;
	if (d->device.count < DOMAIN_SAMPLES &&
	    now - d->since_ns < DOMAIN_PATIENCE_NS)
		return false;
	if (!d->device.count)
		return false;
	d->p90_ns = histogram_percentile(&d->device, 90);
	d->p99_ns = histogram_percentile(&d->total, 99);
	histogram_clear(&d->device);
	histogram_clear(&d->total);
	d->since_ns = now;
	return true;
}

static bool have_targets(const struct domains *d)
{
	return d->domain[IO_READ].target_ns && d->domain[IO_WRITE].target_ns;
}

static void scale(struct domain *d, u32 most)
{
	u64 factor = div64_u64(d->p99_ns << SCALE_SHIFT, d->target_ns);

	factor = clamp(factor, SCALE_ONE / 4, SCALE_ONE * 2);
	factor = (d->depth * factor) >> SCALE_SHIFT;
	d->depth = (u32)clamp(factor, (u64)1, (u64)most);
}

bool domains_adapt(struct domains *d, u64 now)
{
	bool judged[DOMAINS], congested = false;
	u32 op;

	if (now < d->next_ns)
		return false;
	d->next_ns = now + DOMAIN_PERIOD_NS;
	for (op = 0; op < DOMAINS; op++) {
		struct domain *of = &d->domain[op];

		drain(of, d->nr_queues);
		judged[op] = judge(of, now);
		if (judged[op] && of->target_ns && of->p90_ns > of->target_ns)
			congested = true;
	}
	set_ratio(d);
	for (op = 0; op < DOMAINS; op++) {
		struct domain *of = &d->domain[op];
		bool missed = judged[op] && of->p99_ns > of->target_ns;

		if (!have_targets(d))
			of->depth = defaults[op].depth;
		else if (of->target_ns && of->p99_ns && (congested || missed))
			scale(of, defaults[op].depth);
	}
	return true;
}

/* ------------------------------------------------------------------- life */

int domains_init(struct domains *d, u32 nr_queues)
{
	u32 op;

	d->nr_queues = nr_queues;
	d->ratio = RATIO_ONE;
	for (op = 0; op < DOMAINS; op++) {
		struct domain *of = &d->domain[op];

		of->depth = defaults[op].depth;
		of->target_ns = defaults[op].target_ns;
		of->shard = port_zalloc(nr_queues * sizeof(*of->shard));
		if (!of->shard)
			goto free;
	}
	return 0;
free:
	while (op--)
		port_free(d->domain[op].shard);
	return -ENOMEM;
}

void domains_deinit(struct domains *d)
{
	u32 op;

	for (op = 0; op < DOMAINS; op++)
		port_free(d->domain[op].shard);
}
