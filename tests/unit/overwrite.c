// SPDX-License-Identifier: GPL-2.0
/* The sample against a map of all pages. */
#include "unit.h"
#include "sched/overwrite.h"

enum {
	FLOWS	= 3,
	NOBODY	= FLOWS,
	SPARE	= 10000,	/* percent: nothing is collected */
	SAMPLED	= 1 << OVERWRITE_GROUP_SHIFT,
};

struct scene {
	struct overwrites o;
	struct overwrite_flow flow[FLOWS];
	u8 *map;		/* whose page */
	u32 pages;
	u64 valid[FLOWS + 1], invalid[FLOWS + 1];
	u32 since;		/* samples since the last tick */
};

static void scene_init(struct scene *s, u32 pages)
{
	u32 i;

	memset(s, 0, sizeof(*s));
	assert_false(overwrites_init(&s->o, 2));
	for (i = 0; i < FLOWS; i++)
		overwrite_flow_init(&s->o, &s->flow[i]);
	s->pages = pages;
	s->map = malloc(pages);
	assert_non_null(s->map);
	memset(s->map, NOBODY, pages);
}

static void scene_deinit(struct scene *s)
{
	u32 i;

	for (i = 0; i < FLOWS; i++)
		overwrite_flow_exit(&s->o, &s->flow[i]);
	overwrites_deinit(&s->o);
	free(s->map);
}

static void wrote(struct scene *s, u32 flow, u32 page, u32 pages)
{
	u32 samples = pages / SAMPLED + 2, i;

	if (s->since + samples > OVERWRITE_RING) {
		overwrites_tick(&s->o, SPARE);
		s->since = 0;
	}
	s->since += samples;
	overwrites_wrote(&s->o, &s->flow[flow], page % 2, page,
			 pages * OVERWRITE_PAGE);
	for (i = page; i < page + pages; i++) {
		u32 of = s->map[i] == NOBODY ? flow : s->map[i];

		s->valid[s->map[i]]--;
		s->invalid[of]++;
		s->valid[flow]++;
		s->map[i] = (u8)flow;
	}
}

static void expect_near(u64 got, u64 want, double off, const char *what,
			u32 flow)
{
	double error = (double)got - (double)want;

	if (error < -off * (double)want || error > off * (double)want)
		fail_msg("%s of flow %u: %llu instead of %llu", what, flow, got,
			 want);
}

static void expect_counts(struct scene *s, double off)
{
	u32 i;

	overwrites_tick(&s->o, SPARE);
	for (i = 0; i < FLOWS; i++) {
		expect_near(overwrites_valid(&s->o, &s->flow[i]), s->valid[i],
			    off, "valid", i);
		expect_near(overwrites_invalid(&s->o, &s->flow[i]),
			    s->invalid[i], off, "invalid", i);
	}
}

/* A page in 16 of them. */
static void counts_what_was_overwritten(void **state)
{
	struct random r = random_seeded("overwrite");
	struct scene s;
	u32 i, flow;

	(void)state;
	scene_init(&s, 200000);
	for (flow = 0; flow < FLOWS; flow++)
		for (i = 0; i < 40000; i += 8)
			wrote(&s, flow, flow * 40000 + i, 8);
	/* And over each other's. */
	for (i = 0; i < 90000; i++) {
		flow = random_below(&r, FLOWS);
		wrote(&s, flow, flow * 30000 + random_below(&r, 40000), 1);
	}
	assert_int_equal(s.o.level, 0);
	expect_counts(&s, 0.05);
	assert_int_equal(overwrites_lost(&s.o), 0);
	scene_deinit(&s);
}

/* Requests of all sizes find the same pages as single ones. */
static void sizes_are_alike(void **state)
{
	struct random r = random_seeded("overwrite");
	struct scene single, whole;
	u32 i, k;

	(void)state;
	scene_init(&single, 100000);
	scene_init(&whole, 100000);
	for (i = 0; i < 5000; i++) {
		u32 flow = random_below(&r, FLOWS);
		u32 pages = 1 + random_below(&r, 256);
		u32 page = random_below(&r, 100000 - pages);

		wrote(&whole, flow, page, pages);
		for (k = 0; k < pages; k++)
			wrote(&single, flow, page + k, 1);
	}
	overwrites_tick(&single.o, SPARE);
	overwrites_tick(&whole.o, SPARE);
	assert_int_equal(overwrites_lost(&whole.o), 0);
	for (i = 0; i < FLOWS; i++) {
		/* Two queues' rings are not emptied in order of time. */
		expect_near(single.flow[i].valid, whole.flow[i].valid, 0.01,
			    "valid", i);
		expect_near(single.flow[i].invalid, whole.flow[i].invalid, 0.02,
			    "invalid", i);
	}
	scene_deinit(&single);
	scene_deinit(&whole);
}

/* More pages than the table has room for: the level goes up. */
static void large_drives_are_sampled_thinner(void **state)
{
	struct random r = random_seeded("overwrite");
	struct overwrite_entry *e;
	struct scene s;
	u64 sampled[FLOWS] = { 0 };
	u32 i;

	(void)state;
	scene_init(&s, 4 << 20);
	for (i = 0; i < s.pages; i += 256)
		wrote(&s, i / 256 % 2, i, 256);
	for (i = 0; i < 1000000; i++)
		wrote(&s, 2, random_below(&r, s.pages), 1);
	assert_true(s.o.level >= 3);
	assert_true(s.o.used <= OVERWRITE_ENTRIES / 4 * 3);
	expect_counts(&s, 0.08);
	/* What is counted is what the table has. */
	for (e = s.o.entry; e < s.o.entry + OVERWRITE_ENTRIES; e++)
		for (i = 0; i < FLOWS; i++)
			sampled[i] += e->tag == s.flow[i].tag;
	for (i = 0; i < FLOWS; i++)
		assert_int_equal(sampled[i], s.flow[i].valid);
	scene_deinit(&s);
}

/* The example in overwrite.h. */
static void collecting_takes_in_proportion(void **state)
{
	struct random r = random_seeded("overwrite");
	struct scene s;
	u64 a, b;
	u32 i;

	(void)state;
	scene_init(&s, 160000);
	for (i = 0; i < 2000000; i++) {
		wrote(&s, 0, random_below(&r, 144000), 1);
		wrote(&s, 1, 144000 + random_below(&r, 16000), 1);
		if (i % 500 == 0)
			overwrites_tick(&s.o, 10);
	}
	overwrites_tick(&s.o, 10);
	a = overwrites_valid(&s.o, &s.flow[0]) * 10 /
	    overwrites_invalid(&s.o, &s.flow[0]);
	b = overwrites_valid(&s.o, &s.flow[1]) * 10 /
	    overwrites_invalid(&s.o, &s.flow[1]);
	assert_in_range(a, 160, 200);
	assert_in_range(b, 18, 22);
	scene_deinit(&s);
}

static void who_is_gone_owns_nothing(void **state)
{
	struct scene s;
	u32 i;

	(void)state;
	scene_init(&s, 40000);
	for (i = 0; i < 40000; i += 8)
		wrote(&s, 0, i, 8);
	overwrites_tick(&s.o, SPARE);
	overwrite_flow_exit(&s.o, &s.flow[0]);
	memset(&s.flow[0], 0, sizeof(s.flow[0]));
	overwrite_flow_init(&s.o, &s.flow[0]);
	for (i = 0; i < 40000; i += 8)
		wrote(&s, 1, i, 8);
	overwrites_tick(&s.o, SPARE);
	assert_int_equal(overwrites_valid(&s.o, &s.flow[0]), 0);
	assert_int_equal(overwrites_invalid(&s.o, &s.flow[0]), 0);
	expect_near(overwrites_valid(&s.o, &s.flow[1]), 40000, 0.05, "valid", 1);
	scene_deinit(&s);
}

/* Ticks that come too late lose samples and say so. */
static void a_full_ring_loses(void **state)
{
	struct scene s;
	u32 i;

	(void)state;
	scene_init(&s, 1);
	for (i = 0; i < 100 * SAMPLED * OVERWRITE_RING; i += 256)
		overwrites_wrote(&s.o, &s.flow[0], 0, i, 256 * OVERWRITE_PAGE);
	overwrites_tick(&s.o, SPARE);
	assert_int_equal(overwrites_lost(&s.o), 99 * OVERWRITE_RING);
	assert_int_equal(s.flow[0].valid, OVERWRITE_RING);
	scene_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_what_was_overwritten),
		cmocka_unit_test(sizes_are_alike),
		cmocka_unit_test(large_drives_are_sampled_thinner),
		cmocka_unit_test(collecting_takes_in_proportion),
		cmocka_unit_test(who_is_gone_owns_nothing),
		cmocka_unit_test(a_full_ring_loses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
