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
	/*
	 * Permille.  A trial of a window has twelve pairs, and its mean is wrong by
	 * up to 50.
	 */
	LOSS_ERROR	= 50,
};

/* The time that a phase needs until the loss is as it stays. */
#define SETTLE	(16 * SEC)

struct scene {
	struct fixture r;
	struct flash *f;
	struct host_flow *reader, *other[OTHERS];
};

/* The drive and the reader in a phase of the test. */
struct phase {
	u64 p99_ns;		/* by the flow's own histogram */
	u64 bytes;		/* of all flows in a second */
	u32 loss;		/* permille, mean */
};

static void scene_open(struct scene *s, struct test_case *t, u32 isolation)
{
	struct flash *f = fixture_full_drive(FLASH_FTL_DEVICE, 1024, 8);
	struct host_params p = { .seed = 1,
				 .nr_queues = QUEUES,
				 .ops = t->ops,
				 .audit_at_end = true };
	struct load_params load = {
		.nr_queues = 1,
		.depth = 1,
		.bytes = 4 * KIB,
		.pages = flash_pages(f),
		.think_ns = 2 * MS,
		.think_random = true,
	};
	u32 i;

	sched_params_init(t->ops, &p.sched);
	p.sched.isolation = isolation;
	p.sched.depth = 256;
	p.device.flash = s->f = f;
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

static void scene_close(struct scene *s)
{
	fixture_close(&s->r);
	flash_destroy(s->f);
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

/* Returns the bytes of a second in which the window is fixed. */
static u64 whole_of(struct test_case *t)
{
	struct scene s;
	u64 bytes;

	scene_open(&s, t, 0);
	bytes = play(&s, 0).bytes;
	scene_close(&s);
	return bytes;
}

/* The loss that the scheduler tells is that of @whole, and within @most. */
static void check_loss(struct test_case *t, const char *words,
		       const struct phase *p, u64 whole, u32 most)
{
	u32 loss = (u32)(1000 - min(p->bytes * 1000 / whole, 1000ULL));

	if (loss > most || p->loss > loss + LOSS_ERROR ||
	    loss > p->loss + LOSS_ERROR)
		case_fail(t, "%s: loss %u told, %u of at most %u", words,
			  p->loss, loss, most);
}

/*
 * The loss is as great as the goal needs.  A goal that any window meets costs next to
 * nothing.  One that no loss can meet costs the bound and no more.  When the goal is
 * removed, the loss is that of the share again.
 */
static void test_loss(struct test_case *t)
{
	struct phase share, lax, goal, never, removed;
	u64 whole = whole_of(t);
	struct scene s;

	scene_open(&s, t, PERCENT);
	share = play(&s, 0);
	lax = play(&s, 6 * MS);
	goal = play(&s, 1500 * US);
	never = play(&s, 1 * US);
	removed = play(&s, 0);
	scene_close(&s);
	check_loss(t, "share", &share, whole, 10 * PERCENT);
	check_loss(t, "lax", &lax, whole, LOSS_ERROR);
	check_loss(t, "goal", &goal, whole, 10 * PERCENT / 2);
	check_loss(t, "never", &never, whole, 10 * PERCENT);
	check_loss(t, "removed", &removed, whole, 10 * PERCENT);
	if (lax.loss > WORK_GAIN || goal.loss < 2 * WORK_GAIN)
		case_fail(t, "loss %u for 6000 us, %u for 1500", lax.loss,
			  goal.loss);
	if (never.p99_ns < 100 * US)
		case_fail(t, "never: p99 %llu us", never.p99_ns / US);
	if (lax.p99_ns > 6 * MS || goal.p99_ns > 1800 * US)
		case_fail(t, "p99 %llu us for 6000, %llu us for 1500",
			  lax.p99_ns / US, goal.p99_ns / US);
	if (removed.bytes * 20 < share.bytes * 19 ||
	    share.bytes * 20 < removed.bytes * 19)
		case_fail(t, "removed: %llu bytes, before %llu", removed.bytes,
			  share.bytes);
}

const struct test goal_tests[] = {
	{ "goal/loss", test_loss, false },
	{ NULL, NULL, false },
};
