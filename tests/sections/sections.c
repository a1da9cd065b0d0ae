// SPDX-License-Identifier: GPL-2.0
/*
 * sections - the longest sections with interrupts off, natively
 *
 * In the kernel, port_lock() of sched/ is a raw lock with interrupts off.  This
 * program runs a scheduler in the simulator, and reads the processor's clock
 * when a lock of sched/ is taken and when it is dropped.  Other programs on the
 * machine lengthen some sections, so compare the medians.  The caches are those
 * of one processor: no other processor writes to the lines meanwhile.
 *
 *	meson setup build/sections -Dbuildtype=release -Db_sanitize=none
 *	ninja -C build/sections tests/sections/sections
 *	build/sections/tests/sections/sections hwabc 128 500
 *
 * The arguments are the scheduler, the queues and the flows.  A line has the
 * function and line of the unlock, the number of sections, and their median, 90th
 * percentile and maximum in microseconds.
 */
#include "host.h"
#include "load.h"
#include "sched/core/policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	SITES		= 128,
	SAMPLES		= 100000,	/* of each site; later ones are not kept */
	DEEP		= 8,
	DEPTH		= 256,
	TAGS		= 4 * DEPTH,
	RUN_NS		= 400 * 1000 * 1000,
};

struct site {
	const char *function;
	int line;
	u32 nr;
	u32 *ns;
};

static struct site site[SITES];
static u64 began[DEEP];
static u32 deep;

static u64 clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ULL + (u64)t.tv_nsec;
}

static struct site *site_of(const char *function, int line)
{
	struct site *s = site;

	while (s->function && (s->function != function || s->line != line))
		s++;
	port_assert(s < site + SITES - 1);
	if (!s->function)
		*s = (struct site){ function, line, 0,
				    port_zalloc(SAMPLES * sizeof(*s->ns)) };
	port_assert(s->ns);
	return s;
}

void section_begins(void)
{
	port_assert(deep < DEEP);
	began[deep++] = clock_ns();
}

void section_ends(const char *function, int line)
{
	u64 ns = clock_ns() - began[--deep];
	struct site *s = site_of(function, line);

	if (s->nr < SAMPLES)
		s->ns[s->nr++] = (u32)ns;
}

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

static void print_sites(void)
{
	struct site *s;

	for (s = site; s->function; s++) {
		qsort(s->ns, s->nr, sizeof(*s->ns), compare);
		printf("%-24s %4d %7u %9.1f %9.1f %9.1f\n", s->function,
		       s->line, s->nr, s->ns[s->nr / 2] / 1000.0,
		       s->ns[s->nr * 9ULL / 10] / 1000.0,
		       s->ns[s->nr - 1] / 1000.0);
		port_free(s->ns);
	}
}

/* Each flow has four requests, on all queues in turn. */
static int run(const struct sched_ops *ops, u32 queues, u32 flows)
{
	struct host_params p = {
		.seed = 1,
		.nr_queues = queues,
		.ops = ops,
		.sched_tags = TAGS,
		.tag_maps = 1,
		.quotas = true,
		.audit_at_end = true,
		.device = { .slots = DEPTH, .base_ns = 100000 },
	};
	struct host_flow *root;
	struct load **load;
	struct host *h;
	int failed;
	u32 i;

	sched_params_init(ops, &p.sched);
	p.sched.depth = DEPTH;
	load = port_zalloc(flows * sizeof(struct load *));
	h = host_create(&p);
	port_assert(load && h);
	root = host_flow_create(h, NULL, 0);
	for (i = 0; i < flows; i++)
		load[i] = load_create(
			h, &(struct load_params){
				   .flow = host_flow_create(h, root,
							    100 + i % 7 * 50),
				   .nr_queues = queues,
				   .depth = 4,
				   .bytes = 4096,
				   .write_permille = 300 });
	host_run(h, RUN_NS);
	host_finish(h);
	failed = host_failed(h);
	if (failed)
		fprintf(stderr, "%s\n", h->failure);
	host_destroy(h);
	for (i = 0; i < flows; i++)
		load_destroy(load[i]);
	port_free(load);
	return failed;
}

int main(int argc, char **argv)
{
	const struct sched_ops *ops = argc == 4 ? sched_find(argv[1]) : NULL;
	u32 queues = argc == 4 ? (u32)atoi(argv[2]) : 0;
	u32 flows = argc == 4 ? (u32)atoi(argv[3]) : 0;
	int failed;

	if (!ops || !queues || !flows) {
		fprintf(stderr, "usage: sections SCHEDULER QUEUES FLOWS\n");
		return 2;
	}
	failed = run(ops, queues, flows);
	print_sites();
	return failed;
}
