// SPDX-License-Identifier: GPL-2.0
/*
 * How often tick is called.  Tick reads the flows and the queues, so its rate must
 * not follow the rate of requests: 2,000 calls a second at most, whatever the
 * tenants do.
 *
 * A reader that needs little lacks it beside tenants that fill the drive.  So the
 * window is tried again and again.
 */
#include <string.h>

#include "fixture.h"

enum { MOST = 2000 };

struct tick_scene {
	const char *name;
	u32 queues;
	u32 readers, weight;		/* of each reader, one request at a time */
	u64 think_ns;
	u32 jobs, depth, bytes;		/* of each tenant that fills the drive */
	bool isolation;			/* false: the tunable is 0 */
};

static const struct tick_scene scenes[] = {
	{ "a reader beside jobs", 4, 1, 1000, 0, 1, 128, 64 * KIB, true },
	{ "a light reader", 4, 1, 1, 5 * MS, 2, 128, 64 * KIB, true },
	{ "small requests", 4, 1, 1000, 0, 2, 256, 4 * KIB, true },
	{ "32 queues", 32, 1, 1000, 0, 2, 256, 16 * KIB, true },
	{ "8 readers", 4, 8, 100, 200 * US, 2, 128, 64 * KIB, true },
	{ "without isolation", 4, 4, 1000, 0, 2, 256, 4 * KIB, false },
	{ "jobs alone", 4, 0, 0, 0, 2, 256, 4 * KIB, true },
};

static void add(struct fixture *r, u32 weight, struct load_params p)
{
	p.flow = fixture_flow(r, NULL, weight);
	p.nr_queues = r->host->params.nr_queues;
	fixture_load(r, &p);
}

/* Returns the calls of tick in a second. */
static u64 ticks_in(struct test_case *t, const struct tick_scene *s)
{
	struct host_params p = { .seed = 1,
				 .nr_queues = s->queues,
				 .ops = t->ops,
				 .wake_ns = 2 * US,
				 .audit_at_end = true };
	struct flash *f = fixture_full_drive(FLASH_FTL_DEVICE, 256, 16);
	struct fixture r;
	u64 ticks;
	u32 i;

	fixture_defaults(t->ops, &p.sched);
	if (!s->isolation)
		p.sched.isolation = 0;
	p.device.flash = f;
	fixture_open(&r, t, &p);
	for (i = 0; i < s->readers; i++)
		add(&r, s->weight,
		    (struct load_params){ .depth = 1,
					  .bytes = 4 * KIB,
					  .think_ns = s->think_ns });
	for (i = 0; i < s->jobs; i++)
		add(&r, 100,
		    (struct load_params){ .depth = s->depth,
					  .bytes = s->bytes });
	fixture_run(&r, 300 * MS);
	ticks = r.host->sched.stats.ticks;
	fixture_run(&r, 300 * MS);
	ticks = (r.host->sched.stats.ticks - ticks) * 10 / 3;
	fixture_close(&r);
	flash_destroy(f);
	return ticks;
}

static void test_ticks(struct test_case *t)
{
	u64 ticks, greatest = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(scenes); i++) {
		ticks = ticks_in(t, &scenes[i]);
		greatest = max(greatest, ticks);
		if (ticks > MOST)
			case_fail(t, "%s: %llu ticks a second, %u may be",
				  scenes[i].name, ticks, (u32)MOST);
	}
	case_note(t, "%llu ticks a second at most", greatest);
}

const struct test tick_tests[] = {
	{ "ticks/rate", test_ticks, false },
	{ NULL, NULL, false },
};
