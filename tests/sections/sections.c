// SPDX-License-Identifier: GPL-2.0
/*
 * sections - the longest sections with interrupts off
 *
 * In the kernel, port_lock() of sched/ is a raw lock with interrupts off.  This
 * program runs a scheduler in the simulator, and reads a meter when a lock of
 * sched/ is taken and when it is dropped.
 *
 *	meson setup build/sections -Dbuildtype=release -Db_sanitize=none
 *	ninja -C build/sections tests/sections/sections
 *	build/sections/tests/sections/sections hwabc 128 500
 *
 * The arguments are the scheduler, the queues and the flows.  A line has the
 * function and line of the unlock, the number of sections, and their median, 90th
 * percentile and maximum.  The unit is nanoseconds.  Other programs on the
 * machine lengthen some sections, so compare the medians.  The caches are those
 * of one processor: no other processor writes to the lines meanwhile.
 *
 * sections-counted counts accesses to memory instead, exactly.  A fourth argument
 * is the most accesses that a section may have, and the status is 1 above it.
 */
#include "meter.h"
#include "scene.h"
#include "sched/core/policies.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	SITES		= 128,
	SAMPLES		= 100000,	/* of each site; later ones are not kept */
	DEEP		= 8,
	DEPTH		= 256,
	RUN_NS		= 400 * 1000 * 1000,
};

struct site {
	const char *function;
	int line;
	u32 nr;
	u32 *work;
	u32 most;
};

static struct site site[SITES];
static u64 began[DEEP];
static u32 deep;

static struct site *site_of(const char *function, int line)
{
	struct site *s = site;

	while (s->function && (s->function != function || s->line != line))
		s++;
	port_assert(s < site + SITES - 1);
	if (!s->function) {
		s->function = function;
		s->line = line;
		s->work = port_zalloc(SAMPLES * sizeof(*s->work));
	}
	port_assert(s->work);
	return s;
}

void section_begins(void)
{
	port_assert(deep < DEEP);
	began[deep++] = meter_now();
}

void section_ends(const char *function, int line)
{
	u32 work = (u32)(meter_now() - began[--deep]);
	struct site *s = site_of(function, line);

	s->most = max(s->most, work);
	if (s->nr < SAMPLES)
		s->work[s->nr++] = work;
}

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

/* Returns the number of sites with a section of more than @most. */
static int print_sites(u32 most)
{
	struct site *s;
	int long_ones = 0;

	for (s = site; s->function; s++) {
		qsort(s->work, s->nr, sizeof(*s->work), compare);
		printf("%-24s %4d %7u %8u %8u %8u%s\n", s->function, s->line,
		       s->nr, s->work[s->nr / 2], s->work[s->nr * 9ULL / 10],
		       s->most, s->most > most ? "  too long" : "");
		long_ones += s->most > most;
		port_free(s->work);
	}
	return long_ones;
}

int main(int argc, char **argv)
{
	const struct sched_ops *ops = argc >= 4 ? sched_find(argv[1]) : NULL;
	struct scene scene = {
		.ops = ops,
		.queues = argc >= 4 ? (u32)atoi(argv[2]) : 0,
		.flows = argc >= 4 ? (u32)atoi(argv[3]) : 0,
		.slots = DEPTH,
		.tags = 4 * DEPTH,
		.depth = 4,
		/* A test has no use for many samples. */
		.run_ns = argc > 4 ? RUN_NS / 2 : RUN_NS,
	};
	u64 done;

	if (!ops || !scene.queues || !scene.flows) {
		fprintf(stderr,
			"usage: sections SCHEDULER QUEUES FLOWS [MOST]\n");
		return 2;
	}
	done = scene_run(&scene);
	return print_sites(argc > 4 ? (u32)atoi(argv[4]) : ~0U) || !done;
}
