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

enum { TENANTS = 4 };

static const u32 tenant_weight[TENANTS] = { 200, 300, 500, 1000 };

/* Each tenant is one task.  Writes the part of the drive of each, in millionths. */
static void parts_of_single_tasks(struct test_case *t, u32 tags, u64 wake_ns,
				  u64 *part)
{
	struct host_params p = scene_params(t, true);
	u64 before[TENANTS], all = 0;
	struct host_flow *flow[TENANTS];
	struct fixture r;
	u32 i;

	p.sched_tags = tags;
	p.task_wake_ns = wake_ns;
	p.device.base_ns = 400 * US;
	fixture_open(&r, t, &p);
	for (i = 0; i < TENANTS; i++) {
		flow[i] = fixture_flow(&r, NULL, tenant_weight[i]);
		fixture_closed(&r, flow[i], 1000, 4 * KIB);
	}
	fixture_run(&r, 2 * SEC);
	for (i = 0; i < TENANTS; i++)
		before[i] = flow[i]->stats.ios;
	fixture_run(&r, 1 * SEC);
	for (i = 0; i < TENANTS; i++)
		all += flow[i]->stats.ios - before[i];
	for (i = 0; i < TENANTS; i++)
		part[i] = (flow[i]->stats.ios - before[i]) * 1000000 /
			  max(all, (u64)1);
	fixture_close(&r);
}

/*
 * While a task wakes up for one tag it does not wait for the next, and others do.
 * The parts are those with ample tags.  The drive finishes 16 requests at a time, and
 * a task gets a whole number of their tags: 1 or 2 for 1.6.
 */
static void tags_of_single_tasks(struct test_case *t)
{
	static const u32 tags[] = { 32, 64, 512 };
	static const u64 wake_us[] = { 0, 12, 50, 400 };
	u64 ample[TENANTS], part[TENANTS], off;
	u32 i, j, k;

	parts_of_single_tasks(t, 0, 0, ample);
	for (i = 0; i < ARRAY_SIZE(tags); i++)
		for (j = 0; j < ARRAY_SIZE(wake_us); j++) {
			parts_of_single_tasks(t, tags[i], wake_us[j] * US,
					      part);
			for (k = 0; k < TENANTS; k++) {
				off = max(part[k], ample[k]) -
				      min(part[k], ample[k]);
				if (off * 100 > ample[k] * 15)
					case_fail(
						t,
						"%u tags, a wake-up in %llu us: weight %u got %llu ppm, with ample tags %llu",
						tags[i], wake_us[j],
						tenant_weight[k], part[k],
						ample[k]);
			}
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
	{ "tags/single tasks", tags_of_single_tasks, false },
	{ "tags/several maps", tags_of_several_maps, false },
	{ }
};
