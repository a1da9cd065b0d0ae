// SPDX-License-Identifier: GPL-2.0
/*
 * Latency goals on a 980 PRO of 1 GiB, filled at random.  A reader needs less
 * than its share, one read of 4 KiB at a time with pauses of 2 ms.  Beside it
 * four tenants of equal weight keep 32 reads of 64 KiB each.
 */
#include "fixture.h"

enum {
	OTHERS		= 4,
	QUEUES		= 4,
	PERCENT		= 20,	/* of the throughput may be given up */
};

/* The time that a phase needs until the loss is as it stays. */
#define SETTLE	(16 * SEC)

struct scene {
	struct fixture r;
	struct host_flow *reader, *other[OTHERS];
};

/* The drive and the reader in a phase of the test. */
struct phase {
	u64 p99_ns;		/* by the flow's own histogram */
	u64 bytes;		/* of all flows in a second */
	u32 loss;		/* permille, mean */
};

static void scene_open(struct scene *s, struct test_case *t, struct flash *f,
		       u32 pages)
{
	struct host_params p = { .seed = 1,
				 .nr_queues = QUEUES,
				 .ops = t->ops,
				 .audit_at_end = true };
	struct load_params load = {
		.nr_queues = 1,
		.depth = 1,
		.bytes = 4 * KIB,
		.pages = pages,
		.think_ns = 2 * MS,
		.think_random = true,
	};
	u32 i;

	sched_params_init(t->ops, &p.sched);
	p.sched.isolation = PERCENT;
	p.sched.depth = 256;
	p.device.flash = f;
	fixture_open(&s->r, t, &p);
	s->reader = load.flow = fixture_flow(&s->r, NULL, 100);
	fixture_load(&s->r, &load);
	load.nr_queues = QUEUES;
	load.think_ns = 0;
	load.depth = 32;
	load.bytes = 64 * KIB;
	for (i = 0; i < OTHERS; i++) {
		s->other[i] = load.flow = fixture_flow(&s->r, NULL, 100);
		fixture_load(&s->r, &load);
	}
}

static u64 bytes_of(const struct scene *s)
{
	u64 sum = s->reader->stats.bytes;
	u32 i;

	for (i = 0; i < OTHERS; i++)
		sum += s->other[i]->stats.bytes;
	return sum;
}

/* Sets the goal, lets the loss settle, and looks for 8 s. */
static struct phase play(struct scene *s, u64 goal_ns)
{
	enum {
		PARTS = 80,
		SECONDS = 8
	};
	u64 before, loss = 0;
	struct phase phase;
	u32 i;

	latency_set_goal(s->reader->flow, goal_ns, 990);
	fixture_run(&s->r, SETTLE);
	before = bytes_of(s);
	for (i = 0; i < PARTS; i++) {
		fixture_run(&s->r, SECONDS * SEC / PARTS);
		loss += isolation_loss(&s->r.host->sched.isolation);
	}
	phase = (struct phase){
		.p99_ns = latency_percentile(s->reader->flow, 990),
		.bytes = (bytes_of(s) - before) / SECONDS,
		.loss = (u32)(loss / PARTS),
	};
	printf("# goal %llu us: p99 %llu us, %llu MB/s, loss %u permille\n",
	       goal_ns / US, phase.p99_ns / US, phase.bytes / 1000000,
	       phase.loss);
	return phase;
}

/*
 * The loss is as great as the goal needs.  A goal that an evenly fed drive meets
 * costs nothing.  One that no loss can meet costs the bound and no more.  When
 * the goal is removed, the loss is that of the share again.
 */
static void test_loss(struct test_case *t)
{
	struct phase share, lax, goal, never, removed;
	struct flash *f;
	struct scene s;
	u32 pages;

	f = fixture_full_drive(FLASH_FTL_DEVICE, 1024, 8);
	pages = flash_pages(f);
	scene_open(&s, t, f, pages);
	share = play(&s, 0);
	lax = play(&s, 6 * MS);
	goal = play(&s, 1500 * US);
	never = play(&s, 1 * US);
	removed = play(&s, 0);
	fixture_close(&s.r);
	flash_destroy(f);
	if (lax.p99_ns > 6 * MS || lax.loss > 5)
		case_fail(t, "lax: p99 %llu us, loss %u", lax.p99_ns / US,
			  lax.loss);
	if (goal.p99_ns > 1800 * US || goal.loss < 20 || goal.loss > 120 ||
	    goal.bytes * 1000 < lax.bytes * (990ULL - goal.loss))
		case_fail(t, "p99 %llu us, loss %u, %llu of %llu bytes",
			  goal.p99_ns / US, goal.loss, goal.bytes, lax.bytes);
	if (never.p99_ns < 100 * US || never.loss < 195 || never.loss > 200 ||
	    never.bytes * 1000 < lax.bytes * 790)
		case_fail(t, "never: p99 %llu us, loss %u, %llu of %llu bytes",
			  never.p99_ns / US, never.loss, never.bytes,
			  lax.bytes);
	if (removed.loss + 50 < share.loss || removed.loss > share.loss + 50)
		case_fail(t, "removed: loss %u, before %u", removed.loss,
			  share.loss);
}

const struct test goal_tests[] = {
	{ "goal/loss", test_loss, false },
	{ NULL, NULL, false },
};
