// SPDX-License-Identifier: GPL-2.0
/*
 * flash-curve - measures the models over queue depth, beside the published
 * figures of their drives
 *
 * usage: flash-curve [--json] [--check] [--bench] [MODEL...]
 *
 * A drive of 4 GiB is filled in order, then read and written in order.  Random
 * overwrites of 1.5 times its capacity age it, and it is written at random.
 *
 *	--check	status 1 if a judged figure is more than 10 % off its target, or a
 *		p99 more than 25 %
 *	--json	the points and figures as JSON instead of tables
 *	--bench	instead: the random reads per second that this machine models,
 *		and the writes on an aged drive; nothing is judged
 *
 * The status is 2 for a wrong argument, or if memory is short.
 */
#include "fixture.h"

#include <time.h>

enum {
	DEPTH_MAX	= 1024,
	DEPTHS		= 11,		/* 1, 2, 4 .. 1024 */
	TOLERANCE_PCT	= 10,
	TOLERANCE_P99	= 25,
};

#define DRIVE_BYTES	(4ULL << 30)

struct series {
	const char *name;
	u32 bytes;
	bool write, random;
};

/* The order matters: sequential writes leave the map in order, random ones age it. */
static const struct series all_series[] = {
	{ "randread-1k", 1024, false, true },
	{ "randread-4k", 4096, false, true },
	{ "randread-64k", 65536, false, true },
	{ "read-128k", 131072, false, false },
	{ "write-128k", 131072, true, false },
	{ "randwrite-1k", 1024, true, true },
	{ "randwrite-4k", 4096, true, true },
	{ "aged-8k", 8192, false, true },
	{ "aged-16k", 16384, false, true },
	{ "aged-32k", 32768, false, true },
	{ "aged-64k", 65536, false, true },
};

struct point {
	u64 iops, latency_ns, p99_ns, bytes_per_s;
	u64 amplification_permille;
};

struct result {
	struct point point[ARRAY_SIZE(all_series)][DEPTHS];
	bool measured[ARRAY_SIZE(all_series)];
};

static bool json, check, bench;
static u32 judged, off;

/* -------------------------------------------------------------- measuring */

/* Writes go on until the buffer is full and GC runs on the dies. */
static u64 ios_for(const struct series *s, u32 depth)
{
	u64 least = s->write ? (192ULL << 20) / s->bytes : 2000;
	u64 most = s->write && s->random ? 60000 : 20000;

	return max(min(least, most), 20ULL * depth);
}

static struct point measure(struct flash *f, const struct series *s, u32 depth,
			    u64 *now)
{
	static struct histogram latencies;
	struct fixture_load load = {
		.op = s->write ? FLASH_WRITE : FLASH_READ,
		.depth = depth,
		.pages = s->bytes / flash_params_of(f)->page_bytes,
		.owner = 1,
		.random = s->random,
		.latencies = &latencies,
		.state = depth,
	};
	struct flash_stats before, after;

	load.ios = ios_for(s, depth);
	before = flash_stats(f);
	memset(&latencies, 0, sizeof(latencies));
	fixture_run(f, &load, now);
	after = flash_stats(f);
	return (struct point){
		.iops = load.counted * 1000000000 / load.elapsed_ns,
		.latency_ns = load.latency_ns,
		.p99_ns = histogram_at(&latencies, 990),
		.bytes_per_s =
			load.counted * s->bytes * 1000000000 / load.elapsed_ns,
		.amplification_permille =
			flash_amplification_permille(after.written -
							     before.written,
						     after.copied -
							     before.copied),
	};
}

static void fill(struct flash *f, bool written, u64 overwrites)
{
	struct flash_fill how = {
		.pages = flash_pages(f),
		.overwrites = overwrites,
		.owner = 1,
		.seed = 1,
		.written = written,
	};

	while (flash_fill(f, &how, 100000))
		;
}

/* Ages the drive to its steady state, with few free blocks. */
static void age(struct flash *f, u64 *now)
{
	struct fixture_load load = {
		.op = FLASH_WRITE,
		.depth = 64,
		.pages = 1,
		.owner = 1,
		.random = true,
		.ios = 200000,
	};

	*now = fixture_settle(f, *now);
	fill(f, true, flash_pages(f) * 3ULL / 2);
	fixture_run(f, &load, now);
}

/* The deepest goes first, so that a short run at depth 1 meets a full buffer. */
static void measure_series(struct flash *f, u32 index, struct result *r,
			   u64 *now)
{
	const struct series *s = &all_series[index];
	u32 i;

	if (s->bytes < flash_params_of(f)->page_bytes)
		return;
	if (s->write && s->random)
		age(f, now);
	for (i = DEPTHS; i-- > 0;)
		r->point[index][i] = measure(f, s, 1U << i, now);
	r->measured[index] = true;
}

/* ---------------------------------------------------------------- showing */

static u32 series_of(const struct flash_target *t)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(all_series); i++)
		if (!strcmp(all_series[i].name, t->series))
			return i;
	fprintf(stderr, "flash-curve: no series %s for %s\n", t->series,
		t->model);
	exit(2);
}

static u64 point_value(const struct point *p, const char *what)
{
	if (!strcmp(what, "iops"))
		return p->iops;
	if (!strcmp(what, "latency_ns"))
		return p->latency_ns;
	if (!strcmp(what, "p99_ns"))
		return p->p99_ns;
	return p->bytes_per_s;
}

/* Returns the highest value over all depths, or that at the target's depth. */
static u64 seen_for(const struct flash_target *t, const struct result *r)
{
	const struct point *p = r->point[series_of(t)];
	u64 most = 0;
	u32 i;

	for (i = 0; i < DEPTHS; i++) {
		if (t->depth && t->depth != 1U << i)
			continue;
		most = max(most, point_value(&p[i], t->what));
	}
	return most;
}

static s64 off_permille(u64 seen, u64 target)
{
	return (s64)(seen * 1000 / target) - 1000;
}

static void show_target(const struct flash_target *t, const struct result *r,
			bool *first)
{
	u64 seen = seen_for(t, r);
	s64 by = off_permille(seen, t->value);
	s64 most = strcmp(t->what, "p99_ns") ? TOLERANCE_PCT : TOLERANCE_P99;
	bool bad = t->judged && (by > 10 * most || by < -10 * most);

	judged += t->judged;
	off += bad;
	if (json) {
		printf("%s{\"series\": \"%s\", \"what\": \"%s\", \"depth\": %u, \"target\": %llu, \"seen\": %llu, \"judged\": %s, \"tolerance_percent\": %lld, \"source\": \"%s\"}",
		       *first ? "" : ", ", t->series, t->what, t->depth,
		       t->value, seen, t->judged ? "true" : "false", most,
		       t->source);
		*first = false;
		return;
	}
	printf("  %-13s %-12s depth %-4u  drive %11llu  model %11llu  %+6.1f %%  %s\n",
	       t->series, t->what, t->depth, t->value, seen, (double)by / 10,
	       bad	 ? "OFF" :
	       t->judged ? "ok" :
			   "not judged");
}

static void show_series(u32 index, const struct result *r, bool *first)
{
	const struct series *s = &all_series[index];
	u32 i;

	for (i = 0; i < DEPTHS; i++) {
		const struct point *p = &r->point[index][i];

		if (json)
			printf("%s{\"series\": \"%s\", \"depth\": %u, \"iops\": %llu, \"latency_ns\": %llu, \"p99_ns\": %llu, \"bytes_per_s\": %llu, \"amplification_permille\": %llu}",
			       *first ? "" : ", ", s->name, 1U << i, p->iops,
			       p->latency_ns, p->p99_ns, p->bytes_per_s,
			       p->amplification_permille);
		else
			printf("  %-13s %6u %9llu %9.1f %9.1f %9.1f  %5.2f\n",
			       s->name, 1U << i, p->iops,
			       (double)p->latency_ns / 1000,
			       (double)p->p99_ns / 1000,
			       (double)p->bytes_per_s / 1e6,
			       (double)p->amplification_permille / 1000);
		*first = false;
	}
}

static void show(const struct flash_params *p, const struct result *r,
		 bool first_model)
{
	const struct flash_target *t;
	bool first = true;
	u32 i;

	if (json)
		printf("%s{\"model\": \"%s\", \"points\": [",
		       first_model ? "" : ",\n", p->name);
	else
		printf("%s\n  series         depth      IOPS   mean us    p99 us      MB/s  ampl.\n",
		       p->name);
	for (i = 0; i < ARRAY_SIZE(all_series); i++)
		if (r->measured[i])
			show_series(i, r, &first);
	first = true;
	if (json)
		printf("], \"targets\": [");
	for (t = flash_targets; t->model; t++)
		if (!strcmp(t->model, p->name))
			show_target(t, r, &first);
	if (json)
		printf("]}");
}

/* ------------------------------------------------------------------ drives */

static struct flash *drive_of(const struct flash_params *p)
{
	const struct flash_config c = {
		.params = p,
		.bytes = DRIVE_BYTES,
		.owners = 16,
	};
	struct flash *f = flash_create(&c);

	if (!f) {
		fprintf(stderr, "flash-curve: %s: no memory\n", p->name);
		exit(2);
	}
	fill(f, false, 0);
	return f;
}

static void curve(const struct flash_params *p, bool first_model)
{
	static struct result r;
	struct flash *f = drive_of(p);
	u64 now = 0;
	u32 i;

	memset(&r, 0, sizeof(r));
	for (i = 0; i < ARRAY_SIZE(all_series); i++)
		measure_series(f, i, &r, &now);
	flash_destroy(f);
	show(p, &r, first_model);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void throughput_at(struct flash *f, u8 op, u32 depth, u64 *now)
{
	struct fixture_load load = {
		.op = op,
		.depth = depth,
		.pages = 1,
		.owner = 1,
		.random = true,
		.ios = 500000,
	};
	double began = seconds();

	fixture_run(f, &load, now);
	printf("%s depth %u: %.2f M modelled %s per second of CPU time\n",
	       flash_params_of(f)->name, depth,
	       (double)load.ios / 1e6 / (seconds() - began),
	       op == FLASH_WRITE ? "writes" : "reads");
}

static void throughput(const struct flash_params *p)
{
	struct flash *f = drive_of(p);
	u64 now = 0;
	u32 depth;

	for (depth = 1; depth <= DEPTH_MAX; depth *= 32)
		throughput_at(f, FLASH_READ, depth, &now);
	age(f, &now);
	throughput_at(f, FLASH_WRITE, 32, &now);
	flash_destroy(f);
}

static bool chosen(const char *name, int argc, char **argv)
{
	bool any = false;
	int i;

	for (i = 1; i < argc; i++) {
		if (argv[i][0] == '-')
			continue;
		any = true;
		if (!strcmp(argv[i], name))
			return true;
	}
	return !any;
}

static void options(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else if (!strcmp(argv[i], "--check"))
			check = true;
		else if (!strcmp(argv[i], "--bench"))
			bench = true;
		else if (argv[i][0] == '-' || !flash_model(argv[i])) {
			fprintf(stderr,
				"flash-curve: %s: not a model, nor --json, --check or --bench\n",
				argv[i]);
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	const struct flash_params *p;
	bool first = true;

	options(argc, argv);
	if (json)
		printf("{\"schema\": \"mqfair.flash-curve/1\", \"drive_bytes\": %llu, \"models\": [\n",
		       DRIVE_BYTES);
	for (p = flash_models; p->name; p++) {
		if (!chosen(p->name, argc, argv))
			continue;
		if (bench)
			throughput(p);
		else
			curve(p, first);
		first = false;
	}
	if (json)
		printf("\n]}\n");
	if (check && (off || !judged)) {
		fprintf(stderr,
			"flash-curve: %u of %u judged figures miss their target\n",
			off, judged);
		return 1;
	}
	return 0;
}
