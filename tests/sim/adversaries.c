// SPDX-License-Identifier: GPL-2.0
/*
 * Tenants that try to get more than their share.  The victims have 900 of 1,000
 * parts of the weight, and a reader that is short has 1,000 beside them, so the
 * window may shrink.  The attacker has the rest, and does what the scene says.
 *
 * The judge.  The victims have a rate without the attacker.  With it they keep at
 * least 1 - due - 5 % of that rate, where due is the attacker's part of the weight.
 * So what the attacker gains is at most its due and 5 % of the drive.  The price of
 * isolation is no gain of the attacker: in each of the two runs the window may cost 0
 * to LOSS of the drive.
 *
 * Scenes that a scheduler fails are listed, with what it lacks.  A scene of the
 * list that holds with a margin is a failure: its row has to go.
 *
 * doc/measurements/attackers.md has the table of the results.
 */
#include <string.h>

#include "fixture.h"

enum {
	QUEUES		= 4,
	OWNERS		= 600,
	ATTACKER	= 100,		/* weights */
	VICTIMS		= 900,
	READER		= 1000,
	GAIN		= 50,		/* permille of the drive beyond the due */
	LOSS		= 10 * ISOLATION_AUTO + 20,	/* permille of the drive */
	SEEDS		= 3,		/* the window differs by them */
	MARGIN		= 20,		/* permille by which a mend is seen */
	MANY		= 256,		/* requests of the victims: some wait */
	FEW		= 128,		/* all of them fit into the drive */
};

#define WARM		(500 * MS)
#define SPAN		(1 * SEC)

struct scene {
	struct fixture r;
	struct flash *flash;
	struct host_flow *victims, *attacker;
};

struct attack {
	const char *name;
	void (*begin)(struct scene *s);
	u32 due;			/* permille of the attacker */
	bool inside;			/* the victims have FEW requests */
};

/* What a scheduler does not hold yet. */
struct expected {
	const char *attack, *scheduler;
	const char *lacks;
};

/* ------------------------------------------------------------------ the scene */

static void add(struct scene *s, struct host_flow *flow, struct load_params p)
{
	p.flow = flow;
	p.nr_queues = QUEUES;
	fixture_load(&s->r, &p);
}

static void scene_open(struct scene *s, struct test_case *t, u32 victims,
		       u32 seed)
{
	struct host_params p = { .seed = seed,
				 .nr_queues = QUEUES,
				 .ops = t->ops,
				 .wake_ns = 2 * US,
				 .audit_at_end = true };

	fixture_defaults(t->ops, &p.sched);
	s->flash = fixture_full_drive(FLASH_FTL_DEVICE, 256, OWNERS);
	p.device.flash = s->flash;
	fixture_open(&s->r, t, &p);
	s->victims = fixture_flow(&s->r, NULL, VICTIMS);
	s->attacker = fixture_flow(&s->r, NULL, ATTACKER);
	add(s, s->victims,
	    (struct load_params){ .depth = victims, .bytes = 64 * KIB });
	add(s, fixture_flow(&s->r, NULL, READER),
	    (struct load_params){ .depth = 1, .bytes = 4 * KIB });
}

static void scene_close(struct scene *s)
{
	fixture_close(&s->r);
	flash_destroy(s->flash);
}

/* ---------------------------------------------------------------- the attacks */

/* Children of the attacker, each active for 10 ms in turn. */
static void rotate(struct scene *s, u32 urgent_permille)
{
	enum {
		CHILDREN = 16
	};
	u32 i;

	for (i = 0; i < CHILDREN; i++)
		add(s, fixture_flow(&s->r, s->attacker, 100),
		    (struct load_params){ .depth = 64,
					  .bytes = 64 * KIB,
					  .urgent_permille = urgent_permille,
					  .start_ns = i * 10 * MS,
					  .on_ns = 10 * MS,
					  .off_ns = (CHILDREN - 1) * 10 * MS });
}

static void rotate_data(struct scene *s)
{
	rotate(s, 0);
}

static void rotate_metadata(struct scene *s)
{
	rotate(s, 1000);
}

/* A discard of 2 GiB in each tenth of a second. */
static void discard(struct scene *s)
{
	add(s, s->attacker,
	    (struct load_params){ .depth = 4,
				  .bytes = 2048U * MIB,
				  .discards = true,
				  .pace_ns = 100 * MS });
}

/* As many discards of 64 MiB as it can. */
static void discard_deep(struct scene *s)
{
	add(s, s->attacker,
	    (struct load_params){
		    .depth = 256, .bytes = 64 * MIB, .discards = true });
}

static void poll(struct scene *s)
{
	add(s, s->attacker,
	    (struct load_params){ .depth = 1024,
				  .bytes = 64 * KIB,
				  .polled_permille = 1000 });
}

/* The attacker polls for each read 100 ms after the drive has done it. */
static void poll_late(struct scene *s)
{
	add(s, s->attacker,
	    (struct load_params){ .depth = 1024,
				  .bytes = 64 * KIB,
				  .polled_permille = 1000,
				  .reap_ns = 100 * MS });
}

static void small_requests(struct scene *s)
{
	add(s, s->attacker,
	    (struct load_params){ .depth = 1024, .bytes = 512 });
}

/*
 * One that reads so seldom that it is never served late, and seems to be short.
 * Isolation may spend its price on it.
 */
static void pretend(struct scene *s)
{
	flow_set_weight(s->attacker->flow, 1);
	add(s, s->attacker,
	    (struct load_params){
		    .depth = 1, .bytes = 4 * KIB, .think_ns = 5 * MS });
}

/* A child has a goal that no drive meets. */
static void goal(struct scene *s)
{
	struct host_flow *child = fixture_flow(&s->r, s->attacker, 100);

	latency_set_goal(child->flow, 1 * US, 990);
	add(s, child, (struct load_params){ .depth = 4, .bytes = 4 * KIB });
}

/* Large requests and small ones, in turn. */
static void alternate(struct scene *s)
{
	u32 i;

	for (i = 0; i < 2; i++)
		add(s, s->attacker,
		    (struct load_params){ .depth = 256,
					  .bytes = (i ? 4 : 128) * KIB,
					  .start_ns = i * 25 * MS,
					  .on_ns = 25 * MS,
					  .off_ns = 25 * MS });
}

static void on_and_off(struct scene *s)
{
	add(s, s->attacker,
	    (struct load_params){ .depth = 256,
				  .bytes = 64 * KIB,
				  .on_ns = 20 * MS,
				  .off_ns = 20 * MS });
}

static void deep_chain(struct scene *s)
{
	struct host_flow *flow = s->attacker;
	u32 i;

	for (i = 0; i < 64; i++)
		flow = fixture_flow(&s->r, flow, 10000);
	add(s, flow, (struct load_params){ .depth = 256, .bytes = 64 * KIB });
}

static void crowd(struct scene *s)
{
	u32 i;

	for (i = 0; i < 500; i++)
		add(s, fixture_flow(&s->r, s->attacker, 100),
		    (struct load_params){ .depth = 1, .bytes = 512 * KIB });
}

static void write_beside(struct scene *s)
{
	add(s, s->attacker,
	    (struct load_params){
		    .depth = 32, .bytes = 64 * KIB, .write_permille = 1000 });
}

/*
 * A goal and a tenant that is short may cost what the tunable `isolation` allows.  The
 * child with the goal uses its part of a tenth, too, and the pretender next to nothing.
 */
static const struct attack attacks[] = {
	{ "rotating data", rotate_data, 100, false },
	{ "rotating metadata", rotate_metadata, 100, false },
	{ "discards of 2 GiB", discard, 0, false },
	{ "deep discards", discard_deep, 100, false },
	{ "polled requests", poll, 100, false },
	{ "polled, victims inside", poll, 100, true },
	{ "polled, ended late", poll_late, 100, false },
	{ "512-byte requests", small_requests, 100, false },
	{ "a pretender", pretend, ISOLATION_AUTO * 10, false },
	{ "a child's goal", goal, ISOLATION_AUTO * 10 + 100, false },
	{ "alternating sizes", alternate, 100, false },
	{ "on and off", on_and_off, 100, false },
	{ "a deep chain", deep_chain, 100, false },
	{ "500 cgroups", crowd, 100, false },
	{ "writes", write_beside, 100, false },
};

static const char leases[] =
	"leases fill the window while the attacker alone has credit";
static const char bytes[] = "a write is charged its bytes, and slows all reads";

static const struct expected expected[] = {
	{ "writes", "mqfq", bytes },
	{ "writes", "ifq", bytes },
	{ "writes", "kyber-fair", bytes },
	{ "writes", "wdt", bytes },
	{ "writes", "drr", bytes },
	{ "writes", "hwabc", "a write is charged its bytes and a factor, and slows reads more" },
	{ "500 cgroups", "ifq",
	  "a window of 500 ms has a request of each cgroup, or none" },
	{ "polled, ended late", "wdt", leases },
};

/* ------------------------------------------------------------------ the judge */

/* Returns the bytes of the victims in SPAN, with SEEDS seeds. */
static u64 play(struct test_case *t, const struct attack *a, bool inside)
{
	u64 bytes = 0;
	u32 seed;

	for (seed = 1; seed <= SEEDS; seed++) {
		struct scene s;

		scene_open(&s, t, inside ? FEW : MANY, seed);
		if (a)
			a->begin(&s);
		fixture_run(&s.r, WARM);
		bytes -= s.victims->stats.bytes;
		fixture_run(&s.r, SPAN);
		bytes += s.victims->stats.bytes;
		scene_close(&s);
	}
	return bytes;
}

static const struct expected *is_expected(const struct test_case *t,
					  const struct attack *a)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(expected); i++)
		if (!strcmp(expected[i].attack, a->name) &&
		    !strcmp(expected[i].scheduler, t->ops->name))
			return &expected[i];
	return NULL;
}

static void judge(struct test_case *t, const struct attack *a, u64 alone)
{
	const struct expected *e = is_expected(t, a);
	u64 kept = play(t, a, a->inside) * 1000 / alone;
	u32 least = (1000 - a->due - GAIN) * (1000 - LOSS) / 1000;

	printf("# %s: the victims keep %llu permille, due %u\n", a->name, kept,
	       1000 - a->due);
	if (kept < least && !e)
		case_fail(t, "%s: the victims keep %llu permille, due %u",
			  a->name, kept, 1000 - a->due);
	if (kept >= least + MARGIN && e)
		case_fail(
			t,
			"%s: expected to fail (%s), and the victims keep %llu permille",
			a->name, e->lacks, kept);
}

static void test_adversaries(struct test_case *t)
{
	u64 alone[] = { play(t, NULL, false), play(t, NULL, true) };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(attacks); i++)
		judge(t, &attacks[i], alone[attacks[i].inside]);
}

const struct test adversary_tests[] = {
	{ "adversaries/gain", test_adversaries, false },
	{ NULL, NULL, false },
};
