// SPDX-License-Identifier: GPL-2.0
/*
 * A deep tenant beside a crowd of cgroups with one task each: weights decide,
 * however many cgroups there are for each scheduler tag.
 *
 *	shape		cgroups			weight of the tenant, of the crowd
 *	flat		siblings of the tenant	900, 100 shared out
 *	light parent	children of a cgroup	900, 100
 *	heavy parent	the same		100, 900
 *
 * Each task has one request at a time.  Each side of the drive is due its share,
 * or what it gets with a tag for each task if that is less.
 */
#include <string.h>

#include "fixture.h"

enum {
	TAGS		= 64,
	DEEP_TASKS	= 200,
	/* More would take a long time, and fewer leave a crowd one request each. */
	REQUESTS	= 40000,
};

enum shape { FLAT, LIGHT_PARENT, HEAVY_PARENT, SHAPES };

static const char *const shape_name[] = {
	[FLAT] = "flat",
	[LIGHT_PARENT] = "light parent",
	[HEAVY_PARENT] = "heavy parent",
};

struct crowd {
	enum shape shape;
	u32 nr;			/* cgroups */
	u32 maps;		/* queues, each with tags of its own */
	u32 bytes;		/* of a request of the crowd */
	u64 base_ns;		/* of a request of any size, in the drive */
};

struct scene {
	struct fixture r;
	struct host_flow *deep;
};

static u64 bytes_of_all(const struct host *h)
{
	const struct host_flow *hf;
	u64 sum = 0;

	for (hf = h->flows; hf; hf = hf->next)
		sum += hf->stats.bytes;
	return sum;
}

/* A task with one request at a time on one of the queues. */
static void task(struct fixture *r, struct host_flow *flow, u32 queue,
		 u32 bytes)
{
	fixture_add(r, flow, .first_queue = queue, .nr_queues = 1, .depth = 1,
		    .bytes = bytes);
}

static void scene_open(struct scene *s, struct test_case *t,
		       const struct crowd *c, u32 tags)
{
	static const u32 deep_weight[] = { 9000, 900, 100 };
	static const u32 parent_weight[] = { 0, 100, 900 };
	struct host_params p = fixture_params(t, 7);
	struct host_flow *parent = NULL;
	u32 i, weight = WEIGHT_DEFAULT;

	p.sched_tags = tags;
	p.quotas = true;
	p.nr_queues = c->maps;
	p.device.base_ns = c->base_ns;
	fixture_open(&s->r, t, &p);
	s->deep = fixture_flow(&s->r, NULL, deep_weight[c->shape]);
	if (parent_weight[c->shape])
		parent = fixture_flow(&s->r, NULL, parent_weight[c->shape]);
	else
		weight = max(1000 / c->nr, 1U);
	for (i = 0; i < c->nr; i++)
		task(&s->r, fixture_flow(&s->r, parent, weight), i % c->maps,
		     c->bytes);
	for (i = 0; i < DEEP_TASKS * c->maps; i++)
		task(&s->r, s->deep, i % c->maps, 4 * KIB);
}

/* Millionths of the bytes that the tenant is due. */
static u64 due_of_deep(const struct crowd *c)
{
	u32 crowd = c->nr * max(1000 / c->nr, 1U);

	if (c->shape == FLAT)
		return 9000 * 1000000ULL / (9000 + crowd);
	return c->shape == LIGHT_PARENT ? 900000 : 100000;
}

/* Returns the part of the bytes that the tenant gets, in millionths. */
static u64 part_of_deep(struct test_case *t, const struct crowd *c, u32 tags)
{
	u64 span_ns = REQUESTS * c->base_ns / 16, deep, all;
	struct scene s;

	scene_open(&s, t, c, tags);
	fixture_run(&s.r, span_ns / 4);
	deep = s.deep->stats.bytes;
	all = bytes_of_all(s.r.host);
	fixture_run(&s.r, span_ns);
	deep = s.deep->stats.bytes - deep;
	all = bytes_of_all(s.r.host) - all;
	fixture_close(&s.r);
	return deep * 1000000 / max(all, (u64)1);
}

/*
 * The part of its due that the crowd gets at least, in percent.  A crowd that
 * cannot use its share waits twice for each request, for a tag and for a slot.
 *
 * kyber-fair has more slots than there are tags here.  All requests are in the
 * drive, in order of arrival, and tasks that wait there count as idle ones.
 */
static u32 least_of_crowd(const struct test_case *t, bool limited_by_tasks)
{
	if (!strcmp(t->ops->name, "kyber-fair"))
		return 35;
	return limited_by_tasks ? 70 : 90;
}

static void check(struct test_case *t, const struct crowd *c)
{
	u64 due = due_of_deep(c), rest = 1000000 - due;
	u64 ample = part_of_deep(t, c, 0), got = part_of_deep(t, c, TAGS);
	u32 least = least_of_crowd(t, 1000000 - ample < rest);

	due = min(due, ample);
	rest = min(rest, 1000000 - ample);
	if (got * 10 < due * 9 || (1000000 - got) * 100 < rest * least)
		case_fail(
			t,
			"%s, %u cgroups, %u maps, %u KiB, %llu us: the tenant got %llu ppm, due %llu, with ample tags %llu",
			shape_name[c->shape], c->nr, c->maps, c->bytes / KIB,
			c->base_ns / US, got, due_of_deep(c), ample);
}

static void each_number(struct test_case *t, struct crowd *c)
{
	static const u32 numbers[] = { 1, TAGS / 2, TAGS, 4 * TAGS };
	u32 shape, i;

	for (shape = 0; shape < SHAPES; shape++)
		for (i = 0; i < ARRAY_SIZE(numbers); i++) {
			c->shape = shape;
			c->nr = numbers[i] * c->maps;
			check(t, c);
		}
}

static void crowds_on_one_map(struct test_case *t)
{
	each_number(t, &(struct crowd){ .maps = 1,
					.bytes = 4 * KIB,
					.base_ns = 100 * US });
}

static void crowds_on_four_maps(struct test_case *t)
{
	each_number(t, &(struct crowd){ .maps = 4,
					.bytes = 4 * KIB,
					.base_ns = 100 * US });
}

/* 800 requests a second: a child waits for seconds, and its debt is kept. */
static void crowds_on_a_slow_drive(struct test_case *t)
{
	each_number(t, &(struct crowd){ .maps = 1,
					.bytes = 4 * KIB,
					.base_ns = 20 * MS });
}

static void crowds_of_large_requests(struct test_case *t)
{
	each_number(t, &(struct crowd){ .maps = 1,
					.bytes = 16 * KIB,
					.base_ns = 100 * US });
}

const struct test crowd_tests[] = {
	{ "crowd/one map", crowds_on_one_map, false },
	{ "crowd/four maps", crowds_on_four_maps, false },
	{ "crowd/a slow drive", crowds_on_a_slow_drive, false },
	{ "crowd/large requests", crowds_of_large_requests, false },
	{ }
};
