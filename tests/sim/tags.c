// SPDX-License-Identifier: GPL-2.0
/*
 * Scarce scheduler tags.  64 tags, D = 16, a drive of 16 slots and 100 us for
 * each request: 160,000 requests a second.  25 tasks of a cgroup have 1,000
 * requests for the drive.  They would take all tags, and the tasks of the others
 * would wait behind them, above the scheduler.
 */
#include "fixture.h"
#include "none.h"

enum {
	TAGS		= 64,
	TASKS		= 25,
	DEPTH		= 40,		/* of each */
};

struct scene {
	struct fixture r;
	struct host_flow *heavy, *light;
};

static struct host_params scene_params(const struct test_case *t, bool quotas)
{
	struct host_params p = fixture_params(t, 7);

	p.sched_tags = TAGS;
	p.quotas = quotas;
	return p;
}

/* Tasks of a cgroup that write as much as they can. */
static void writers(struct fixture *r, struct host_flow *flow)
{
	u32 i;

	for (i = 0; i < TASKS; i++)
		fixture_add(r, flow, .nr_queues = r->host->params.nr_queues,
			    .depth = DEPTH, .bytes = 4 * KIB,
			    .write_permille = 1000);
}

/* Has a writer take what it can, and a reader come with one request at a time. */
static void scene_open(struct scene *s, struct test_case *t,
		       const struct host_params *p)
{
	struct fixture *r = &s->r;

	fixture_open(r, t, p);
	s->heavy = fixture_flow(r, NULL, 100);
	s->light = fixture_flow(r, NULL, 100);
	writers(r, s->heavy);
	fixture_add(r, s->light, .depth = 1, .bytes = 4 * KIB,
		    .start_ns = 100 * MS);
	fixture_run(r, 500 * MS);
	s->heavy->stats = s->light->stats = (struct flow_stats){ 0 };
	fixture_run(r, 1 * SEC);
}

/* Requests of a thousand that waited for a tag. */
static u64 waits_permille(const struct host_flow *hf)
{
	return hf->stats.ios ? hf->stats.tag_waits * 1000 / hf->stats.ios : 0;
}

static void tags_of_a_reader_are_not_taken(struct test_case *t)
{
	struct host_params p = scene_params(t, true);
	struct scene s;
	u64 waits, ios;

	scene_open(&s, t, &p);
	waits = waits_permille(s.light);
	ios = s.light->stats.ios;
	if (waits > 10)
		case_fail(t, "%llu permille of the reads waited for a tag",
			  waits);
	if (ios < 2000)
		case_fail(t, "the reader got %llu requests in a second", ios);
	if (s.heavy->stats.ios < 150000)
		case_fail(t, "the writer got %llu requests in a second",
			  s.heavy->stats.ios);
	if (s.r.host->waiting_for_tags < TASKS)
		case_fail(t, "only %u tasks wait for a tag",
			  s.r.host->waiting_for_tags);
	case_note(t, "%llu reads in a second, %llu of them waited for a tag",
		  ios, s.light->stats.tag_waits);
	fixture_close(&s.r);
}

/* Returns the reads in a second under @ops, and their waits. */
static u64 reads(struct test_case *t, const struct sched_ops *ops, bool quotas,
		 u64 *waits)
{
	struct test_case own = { .ops = ops };
	struct host_params p = scene_params(&own, quotas);
	struct scene s;
	u64 ios;

	scene_open(&s, &own, &p);
	ios = s.light->stats.ios;
	*waits = waits_permille(s.light);
	fixture_close(&s.r);
	if (case_failed(&own))
		case_fail(t, "%s", own.failure);
	return ios;
}

/*
 * Without quotas each read waits behind 25 tasks for a tag, where no weight
 * counts.  Under `none` it waits behind the 64 requests with tags, too.
 */
static void tags_without_quotas_are_taken(struct test_case *t)
{
	u64 waits, with, without, none;

	with = reads(t, t->ops, true, &waits);
	without = reads(t, t->ops, false, &waits);
	if (waits < 900)
		case_fail(t, "%llu permille of the reads waited", waits);
	none = reads(t, &none_ops, false, &waits);
	if (waits < 900)
		case_fail(t, "%llu permille of the reads waited under none",
			  waits);
	case_note(t, "%llu reads a second, %llu without quotas, none: %llu",
		  with, without, none);
	if (without * 4 > with * 3 || none > 2000)
		case_fail(t, "%llu reads with quotas, %llu without, none: %llu",
			  with, without, none);
}

/*
 * A kernel thread writes for a cgroup of weight 100, as the flusher does.  A
 * reader of weight 900 with 32 requests is due 90 % of the drive.
 */
static void tags_of_a_kernel_thread(struct test_case *t)
{
	struct host_params p = scene_params(t, true);
	struct host_flow *writer, *reader;
	struct fixture r;
	u64 before, ios;

	fixture_open(&r, t, &p);
	writer = fixture_flow(&r, NULL, 100);
	reader = fixture_flow(&r, NULL, 900);
	fixture_add(&r, writer, .task = r.root, .depth = 1000, .bytes = 4 * KIB,
		    .write_permille = 1000);
	fixture_closed(&r, reader, 32, 4 * KIB);
	fixture_run(&r, 500 * MS);
	before = reader->stats.ios;
	fixture_run(&r, 1 * SEC);
	ios = reader->stats.ios - before;
	case_note(t, "%llu permille of the drive", ios * 1000 / 160000);
	if (ios < 160000 * 88 / 100)
		case_fail(t, "the reader got %llu permille of the drive",
			  ios * 1000 / 160000);
	fixture_close(&r);
}

/* Two cgroups of 1,000 requests have tags, and the device, by weight. */
static void tags_by_weight(struct test_case *t)
{
	struct host_params p = scene_params(t, true);
	struct host_flow *flow[2];
	struct fixture r;
	u32 i;

	fixture_open(&r, t, &p);
	for (i = 0; i < 2; i++) {
		flow[i] = fixture_flow(&r, NULL, i ? 300 : 100);
		writers(&r, flow[i]);
	}
	fixture_run(&r, 500 * MS);
	fixture_expect_parts(&r, flow, (u32[]){ 1, 3 }, 2, 2 * SEC, 30,
			     "share of the drive");
	fixture_close(&r);
}

/* 40 flows of depth 8 on 64 tags: each has a tag at least now and then. */
static void tags_for_every_flow_of_many(struct test_case *t)
{
	struct host_params p = scene_params(t, true);
	struct host_flow *flow[12];
	struct fixture r;
	u32 i;

	p.sched_tags = 16;
	p.sched.depth = 8;
	fixture_open(&r, t, &p);
	for (i = 0; i < ARRAY_SIZE(flow); i++) {
		flow[i] = fixture_flow(&r, NULL, 100);
		fixture_closed(&r, flow[i], 40, 4 * KIB);
	}
	fixture_run(&r, 1 * SEC);
	for (i = 0; i < ARRAY_SIZE(flow); i++)
		flow[i]->stats = (struct flow_stats){ 0 };
	fixture_run(&r, 1 * SEC);
	for (i = 0; i < ARRAY_SIZE(flow); i++)
		if (flow[i]->stats.ios < 80000 / ARRAY_SIZE(flow) / 2)
			case_fail(t, "flow %u got %llu requests", i,
				  flow[i]->stats.ios);
	fixture_close(&r);
}

/* A map for each queue, and loads on all of them: no io is forgotten. */
static void tags_of_several_maps(struct test_case *t)
{
	struct host_params p = scene_params(t, true);
	struct scene s;

	p.nr_queues = 4;
	p.sched_tags = 8;
	scene_open(&s, t, &p);
	if (s.light->stats.ios < 1000)
		case_fail(t, "the reader got %llu requests in a second",
			  s.light->stats.ios);
	fixture_close(&s.r);
}

/*
 * Each cgroup has 1,000 tasks with one request each.
 */
static void tags_of_a_thousand_tasks(struct test_case *t)
{
	struct host_params p = scene_params(t, true);
	struct host_flow *flow[2];
	struct fixture r;
	u32 i, task;

	fixture_open(&r, t, &p);
	for (i = 0; i < 2; i++) {
		flow[i] = fixture_flow(&r, NULL, i ? 300 : 100);
		for (task = 0; task < 1000; task++)
			fixture_closed(&r, flow[i], 1, 4 * KIB);
	}
	fixture_run(&r, 500 * MS);
	fixture_expect_parts(&r, flow, (u32[]){ 1, 3 }, 2, 1 * SEC, 20,
			     "share of the drive");
	fixture_close(&r);
}

/*
 * A cgroup with nearly all of the weight has a request now and then, so the
 * shares of the two others are less than one tag each.  They share its part by
 * weight, although one of them comes when the other has the tags.
 */
static void tags_of_a_late_tenant(struct test_case *t)
{
	struct host_params p = scene_params(t, true);
	struct host_flow *idler, *flow[2];
	struct fixture r;
	u32 i, task;

	fixture_open(&r, t, &p);
	idler = fixture_flow(&r, NULL, 10000);
	fixture_add(&r, idler, .depth = 1, .bytes = 4 * KIB,
		    .think_ns = 20 * MS);
	for (i = 0; i < 2; i++) {
		flow[i] = fixture_flow(&r, NULL, i ? 200 : 100);
		for (task = 0; task < 2 * TAGS; task++)
			fixture_add(&r, flow[i], .depth = 1, .bytes = 4 * KIB,
				    .start_ns = i * 500 * MS);
	}
	fixture_run(&r, 1 * SEC);
	fixture_expect_parts(&r, flow, (u32[]){ 1, 2 }, 2, 1 * SEC, 20,
			     "share of the drive");
	fixture_close(&r);
}

/*
 * A cgroup of weight 1 comes first and fills its map.  Then a busy cgroup of weight
 * 10000 comes in another map, so the requests of the first leave the scheduler rarely.
 * Eight cgroups that come last have the few tags that are left, and half of what
 * they are due at least: a hundredth of the drive each, two requests at a time.
 */
static void tags_beside_a_full_map(struct test_case *t)
{
	struct host_params p = scene_params(t, true);
	struct host_flow *first, *busy, *last[8];
	struct fixture r;
	u32 i;

	p.nr_queues = 2;
	fixture_open(&r, t, &p);
	first = fixture_flow(&r, NULL, 1);
	busy = fixture_flow(&r, NULL, 10000);
	fixture_add(&r, first, .depth = 4 * TAGS, .bytes = 4 * KIB);
	fixture_add(&r, busy, .depth = 4 * TAGS, .bytes = 4 * KIB,
		    .first_queue = 1, .start_ns = 100 * US);
	for (i = 0; i < ARRAY_SIZE(last); i++) {
		last[i] = fixture_flow(&r, NULL, 100);
		fixture_add(&r, last[i], .depth = 2, .bytes = 4 * KIB,
			    .start_ns = 2 * MS);
	}
	fixture_run(&r, 1 * SEC);
	for (i = 0; i < ARRAY_SIZE(last); i++)
		if (last[i]->stats.ios < 160000 / 108 / 2)
			case_fail(t, "flow %u got %llu requests", i,
				  last[i]->stats.ios);
	fixture_close(&r);
}

enum {
	DRAWN_SCENES	= 40,
	DRAWN_FLOWS	= 6,		/* at most */
	DRAWN_IOS	= 20000,	/* about so many are counted */
};

/* Tenants with more requests than tags, and few of them for each task. */
struct drawn {
	u32 slots, tags, nr_flows;
	u64 base_us, wake_us;
	u32 weight[DRAWN_FLOWS], tasks[DRAWN_FLOWS];
};

static u32 draw_between(struct rng *r, u32 lo, u32 hi)
{
	return (u32)rng_between(r, lo, hi);
}

static void draw(struct drawn *d, struct rng *r)
{
	u32 i;

	d->slots = 1U << draw_between(r, 2, 6);
	d->tags = d->slots * draw_between(r, 1, 4);
	d->nr_flows = draw_between(r, 2, DRAWN_FLOWS);
	d->base_us = 50U << draw_between(r, 0, 8);
	d->wake_us = rng_chance(r, 200) ? 0 : 3U << draw_between(r, 0, 9);
	for (i = 0; i < d->nr_flows; i++) {
		d->weight[i] = draw_between(r, 10, 1000);
		d->tasks[i] = 1U << draw_between(r, 0, 3);
	}
}

/* Writes the requests of each tenant, while the drive does about DRAWN_IOS. */
static void play_drawn(const struct drawn *d, struct test_case *t, u64 *ios)
{
	u64 run_ns = DRAWN_IOS * d->base_us * US / d->slots;
	struct host_params p = scene_params(t, true);
	struct host_flow *flow[DRAWN_FLOWS];
	struct fixture r;
	u32 i, task;

	p.sched_tags = d->tags;
	p.task_wake_ns = d->wake_us * US;
	p.device = (struct device_params){ .slots = d->slots,
					   .base_ns = d->base_us * US };
	p.sched.depth = d->slots;
	fixture_open(&r, t, &p);
	for (i = 0; i < d->nr_flows; i++) {
		flow[i] = fixture_flow(&r, NULL, d->weight[i]);
		for (task = 0; task < d->tasks[i]; task++)
			fixture_closed(&r, flow[i], d->tags, 4 * KIB);
	}
	fixture_run(&r, run_ns / 4);
	for (i = 0; i < d->nr_flows; i++)
		ios[i] = flow[i]->stats.ios;
	fixture_run(&r, run_ns);
	for (i = 0; i < d->nr_flows; i++)
		ios[i] = flow[i]->stats.ios - ios[i];
	fixture_close(&r);
}

static void expect_by_weight(const struct drawn *d, struct test_case *t,
			     const u64 *ios)
{
	u64 all = 0, weights = 0, due, off;
	u32 i;

	for (i = 0; i < d->nr_flows; i++) {
		all += ios[i];
		weights += d->weight[i];
	}
	for (i = 0; i < d->nr_flows; i++) {
		due = all * d->weight[i] / weights;
		off = max(ios[i], due) - min(ios[i], due);
		if (off > due * 3 / 100 + d->slots)
			case_fail(
				t,
				"%u slots of %llu us, %u tags, a wake-up within %llu us: %u tasks of weight %u of %llu had %llu requests, due are %llu",
				d->slots, d->base_us, d->tags, d->wake_us,
				d->tasks[i], d->weight[i], weights, ios[i],
				due);
	}
}

/*
 * While a task wakes up for one tag it does not wait for the next, and others do.
 * A drive finishes many requests at a time.  The tags go by weight all the same.
 */
static void tags_of_drawn_tasks(struct test_case *t)
{
	u64 ios[DRAWN_FLOWS];
	struct drawn d;
	struct rng r;
	u32 i;

	rng_init(&r, 50);
	for (i = 0; i < DRAWN_SCENES; i++) {
		draw(&d, &r);
		play_drawn(&d, t, ios);
		expect_by_weight(&d, t, ios);
	}
}

const struct test tag_tests[] = {
	{ "tags/a reader's are not taken", tags_of_a_reader_are_not_taken, false },
	{ "tags/without quotas they are taken", tags_without_quotas_are_taken, false },
	{ "tags/of a kernel thread", tags_of_a_kernel_thread, false },
	{ "tags/by weight", tags_by_weight, false },
	{ "tags/a thousand tasks", tags_of_a_thousand_tasks, false },
	{ "tags/every flow of many", tags_for_every_flow_of_many, false },
	{ "tags/a late tenant", tags_of_a_late_tenant, false },
	{ "tags/beside a full map", tags_beside_a_full_map, false },
	{ "tags/drawn tasks", tags_of_drawn_tasks, false },
	{ "tags/several maps", tags_of_several_maps, false },
	{ }
};
