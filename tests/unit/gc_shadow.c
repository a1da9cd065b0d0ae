// SPDX-License-Identifier: GPL-2.0
/* The shadow FTL against a map of all pages. */
#include "unit.h"
#include "sched/hwabc/gc_shadow.h"

enum {
	FLOWS	= 3,
	NO_FLOW	= FLOWS,
	SPARE	= 100,		/* percent: little garbage is collected */
	SAMPLED	= 1 << GC_SHADOW_REGION_SHIFT,
};

struct scenario {
	struct gc_shadow o;
	struct gc_shadow_flow flow[FLOWS];
	u8 *map;		/* the owner of each page */
	u32 pages;
	u64 valid[FLOWS + 1], invalid[FLOWS + 1];
	u32 since;		/* samples since the last tick */
};

static void scenario_init(struct scenario *s, u32 pages)
{
	u32 i;

	memset(s, 0, sizeof(*s));
	assert_false(gc_shadow_init(&s->o, 2, pages));
	for (i = 0; i < FLOWS; i++)
		gc_shadow_flow_init(&s->o, &s->flow[i]);
	s->pages = pages;
	s->map = malloc(pages);
	assert_non_null(s->map);
	memset(s->map, NO_FLOW, pages);
}

static void scenario_deinit(struct scenario *s)
{
	u32 i;

	for (i = 0; i < FLOWS; i++)
		gc_shadow_flow_exit(&s->o, &s->flow[i]);
	gc_shadow_deinit(&s->o);
	free(s->map);
}

static void wrote(struct scenario *s, u32 flow, u32 page, u32 pages)
{
	u32 samples = pages / SAMPLED + 2, i;

	if (s->since + samples > GC_SHADOW_RING) {
		gc_shadow_tick(&s->o, SPARE);
		s->since = 0;
	}
	s->since += samples;
	gc_shadow_wrote(&s->o, &s->flow[flow], page % 2, page,
			pages * GC_SHADOW_PAGE);
	for (i = page; i < page + pages; i++) {
		u32 of = s->map[i] == NO_FLOW ? flow : s->map[i];

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

/* The counts of the shadow FTL agree with its slots. */
static void expect_sound(const struct gc_shadow *o,
			 const struct gc_shadow_flow *flow)
{
	u32 used = 0, valid[FLOWS + 1] = { 0 }, i, k, of, region, in_block;
	u64 owned = 0;

	for (region = 0; region < o->regions; region++)
		assert_int_equal(o->slot[o->where[region]].region, region);
	for (i = 0; i < o->nr_blocks; i++) {
		in_block = 0;
		for (k = 0; k < o->block[i].fill; k++) {
			u32 at = i * GC_SHADOW_BLOCK + k;

			used++;
			if (o->where[o->slot[at].region] != at)
				continue;
			in_block++;
			for (of = 0; of < FLOWS; of++)
				if (flow[of].tag == o->slot[at].tag)
					break;
			valid[of]++;
		}
		assert_int_equal(in_block, o->block[i].valid);
	}
	assert_int_equal(used, o->regions + o->invalid);
	for (i = 0; i < FLOWS; i++) {
		assert_int_equal(valid[i], flow[i].valid);
		owned += flow[i].invalid;
	}
	assert_int_equal(valid[NO_FLOW], o->unknown);
	assert_int_equal(owned, o->owned);
}

/* Checks the exact counts, not the estimates. */
static void expect_counts(struct scenario *s, double off)
{
	u32 i;

	gc_shadow_tick(&s->o, SPARE);
	expect_sound(&s->o, s->flow);
	for (i = 0; i < FLOWS; i++) {
		expect_near(s->flow[i].valid << s->o.region_shift, s->valid[i],
			    off, "valid", i);
		expect_near(s->flow[i].invalid << s->o.region_shift,
			    s->invalid[i], off, "invalid", i);
	}
}

/* One page in 16 is sampled. */
TEST(shadow_counts_overwritten_pages)
{
	struct random r = random_seeded("gc_shadow");
	struct scenario s;
	u32 i, flow;

	scenario_init(&s, 200000);
	for (flow = 0; flow < FLOWS; flow++)
		for (i = 0; i < 40000; i += 8)
			wrote(&s, flow, flow * 40000 + i, 8);
	/* The flows also overwrite pages of each other. */
	for (i = 0; i < 60000; i++) {
		flow = random_below(&r, FLOWS);
		wrote(&s, flow, flow * 30000 + random_below(&r, 40000), 1);
	}
	assert_int_equal(s.o.region_shift, GC_SHADOW_REGION_SHIFT);
	expect_counts(&s, 0.05);
	assert_int_equal(gc_shadow_lost(&s.o), 0);
	scenario_deinit(&s);
}

/* Requests of all sizes sample the same pages as requests of one page. */
TEST(large_and_small_requests_count_alike)
{
	struct random r = random_seeded("gc_shadow");
	struct scenario single, whole;
	u32 i, k;

	scenario_init(&single, 100000);
	scenario_init(&whole, 100000);
	for (i = 0; i < 700; i++) {
		u32 flow = random_below(&r, FLOWS);
		u32 pages = 1 + random_below(&r, 256);
		u32 page = random_below(&r, 100000 - pages);

		wrote(&whole, flow, page, pages);
		for (k = 0; k < pages; k++)
			wrote(&single, flow, page + k, 1);
	}
	gc_shadow_tick(&single.o, SPARE);
	gc_shadow_tick(&whole.o, SPARE);
	assert_int_equal(gc_shadow_lost(&whole.o), 0);
	for (i = 0; i < FLOWS; i++) {
		/* The rings of two queues are not emptied in order of time. */
		expect_near(single.flow[i].valid, whole.flow[i].valid, 0.01,
			    "valid", i);
		expect_near(single.flow[i].invalid, whole.flow[i].invalid, 0.02,
			    "invalid", i);
	}
	scenario_deinit(&single);
	scenario_deinit(&whole);
}

TEST(large_drive_is_sampled_more_thinly)
{
	struct random r = random_seeded("gc_shadow");
	struct scenario s;
	u32 i;

	scenario_init(&s, 4 << 20);
	assert_int_equal(s.o.regions, GC_SHADOW_REGIONS);
	assert_int_equal(s.o.region_shift, 8);
	for (i = 0; i < s.pages; i += 256)
		wrote(&s, i / 256 % 2, i, 256);
	for (i = 0; i < 1000000; i++)
		wrote(&s, 2, random_below(&r, s.pages), 1);
	gc_shadow_tick(&s.o, SPARE);
	expect_sound(&s.o, s.flow);
	for (i = 0; i < FLOWS; i++)
		expect_near(s.flow[i].valid << s.o.region_shift, s.valid[i],
			    0.05, "valid", i);
	scenario_deinit(&s);
}

static u64 ratio_permille(const struct scenario *s, u32 flow)
{
	return gc_shadow_valid(&s->o, &s->flow[flow]) * 1000 /
	       gc_shadow_invalid(&s->o, &s->flow[flow]);
}

/*
 * One flow writes to 5 % and one to 80 % of a drive with 20 % spare, and both
 * write as much.  In proportion each would have half of the 40000 invalid
 * pages, and valid over invalid would be 0.5 and 8.
 */
TEST(soon_overwritten_pages_are_collected_early)
{
	struct random r = random_seeded("gc_shadow");
	struct scenario s;
	u32 i;

	scenario_init(&s, 200000);
	for (i = 0; i < 1000000; i++) {
		wrote(&s, 0, random_below(&r, 10000), 1);
		wrote(&s, 1, 10000 + random_below(&r, 160000), 1);
		if (i % 500 == 0)
			gc_shadow_tick(&s.o, 20);
	}
	gc_shadow_tick(&s.o, 20);
	expect_sound(&s.o, s.flow);
	assert_in_range(s.o.room - s.o.invalid, 0, GC_SHADOW_BLOCK);
	assert_in_range(ratio_permille(&s, 0), 600, 1500);
	assert_in_range(ratio_permille(&s, 1), 4500, 6500);
	scenario_deinit(&s);
}

/* The estimate follows from how often a flow overwrites its own pages. */
TEST(pages_from_before_the_start_are_estimated)
{
	struct random r = random_seeded("gc_shadow");
	struct scenario s;
	u32 i;

	scenario_init(&s, 200000);
	for (i = 0; i < 20000; i++)
		wrote(&s, 0, random_below(&r, 50000), 1);
	gc_shadow_tick(&s.o, SPARE);
	assert_true(s.valid[0] < 20000);
	expect_near(gc_shadow_valid(&s.o, &s.flow[0]), 50000, 0.2, "all", 0);
	/* A sequential writer overwrites no page: it may own the rest. */
	for (i = 50000; i < 150000; i += 8)
		wrote(&s, 1, i, 8);
	gc_shadow_tick(&s.o, SPARE);
	assert_in_range(gc_shadow_valid(&s.o, &s.flow[1]), 150000, 200000);
	scenario_deinit(&s);
}

TEST(removed_flow_owns_no_pages)
{
	struct scenario s;
	u32 i;

	scenario_init(&s, 40000);
	for (i = 0; i < 40000; i += 8)
		wrote(&s, 0, i, 8);
	gc_shadow_tick(&s.o, SPARE);
	gc_shadow_flow_exit(&s.o, &s.flow[0]);
	memset(&s.flow[0], 0, sizeof(s.flow[0]));
	gc_shadow_flow_init(&s.o, &s.flow[0]);
	for (i = 0; i < 40000; i += 8)
		wrote(&s, 1, i, 8);
	gc_shadow_tick(&s.o, SPARE);
	assert_int_equal(gc_shadow_valid(&s.o, &s.flow[0]), 0);
	assert_int_equal(gc_shadow_invalid(&s.o, &s.flow[0]), 0);
	expect_near(s.flow[1].valid << s.o.region_shift, 40000, 0.05, "valid",
		    1);
	expect_sound(&s.o, s.flow);
	scenario_deinit(&s);
}

/* A tick after the ring was full counts the samples that were lost. */
TEST(full_ring_loses_samples)
{
	struct scenario s;
	u32 i;

	scenario_init(&s, 100 * SAMPLED * GC_SHADOW_RING);
	for (i = 0; i < s.pages; i += 256)
		gc_shadow_wrote(&s.o, &s.flow[0], 0, i, 256 * GC_SHADOW_PAGE);
	gc_shadow_tick(&s.o, SPARE);
	assert_int_equal(gc_shadow_lost(&s.o), 99 * GC_SHADOW_RING);
	assert_int_equal(s.flow[0].valid, GC_SHADOW_RING);
	scenario_deinit(&s);
}

/* Pages of a drive of 64 TiB have numbers of 34 bits. */
TEST(pages_beyond_16_tib_are_pages_of_their_own)
{
	const u64 pages = 1ULL << 34, region = pages / GC_SHADOW_REGIONS;
	struct scenario s;
	u64 page;

	scenario_init(&s, 1 << 20);
	gc_shadow_deinit(&s.o);
	assert_false(gc_shadow_init(&s.o, 2, pages));
	gc_shadow_flow_init(&s.o, &s.flow[0]);
	/* The whole first region, and the whole region at 16 TiB. */
	for (page = 0; page < region; page++)
		gc_shadow_wrote(&s.o, &s.flow[0], 0, page, GC_SHADOW_PAGE);
	gc_shadow_tick(&s.o, SPARE);
	assert_int_equal(s.flow[0].valid, 1);
	for (page = 1ULL << 32; page < (1ULL << 32) + region; page++)
		gc_shadow_wrote(&s.o, &s.flow[0], 0, page, GC_SHADOW_PAGE);
	gc_shadow_tick(&s.o, SPARE);
	assert_int_equal(s.flow[0].valid, 2);
	scenario_deinit(&s);
}

/* Flows come and go.  Room for invalid pages is none, some or all of it. */
TEST(drives_of_all_sizes_stay_sound)
{
	static const u32 regions[] = { 1, 16, 17, 63, 64, 65, 74, 320 };
	static const u32 spare[] = { 1, 20, 100 };
	struct random r = random_seeded("gc_shadow");
	u32 i, k, step;

	for (i = 0; i < ARRAY_SIZE(regions) * ARRAY_SIZE(spare); i++) {
		u32 pages = regions[i % ARRAY_SIZE(regions)] * SAMPLED;
		struct scenario s;

		scenario_init(&s, pages);
		for (step = 0; step < 3000; step++) {
			struct gc_shadow_flow *gf =
				&s.flow[random_below(&r, FLOWS)];

			gc_shadow_wrote(&s.o, gf, step % 2,
					random_below(&r, pages),
					GC_SHADOW_PAGE *
						(1 + random_below(&r, 64)));
			if (random_once_in(&r, 100)) {
				gc_shadow_flow_exit(&s.o, gf);
				*gf = (struct gc_shadow_flow){ 0 };
				gc_shadow_flow_init(&s.o, gf);
			}
			gc_shadow_tick(&s.o, spare[i % ARRAY_SIZE(spare)]);
			if (random_once_in(&r, 100))
				expect_sound(&s.o, s.flow);
		}
		expect_sound(&s.o, s.flow);
		assert_int_equal(gc_shadow_lost(&s.o), 0);
		for (k = 0; k < FLOWS; k++)
			assert_true(s.flow[k].valid <= s.o.regions);
		scenario_deinit(&s);
	}
}

/* Whole regions are written, so that each write counts. */
static void write_regions(struct scenario *s, u32 flow, u32 first, u32 n)
{
	gc_shadow_wrote(&s->o, &s->flow[flow], 0, first * SAMPLED,
			n * SAMPLED * GC_SHADOW_PAGE);
}

/* The drive has room for as many invalid pages as `spare` says. */
TEST(invalid_pages_stay_while_there_is_room)
{
	struct scenario s;

	scenario_init(&s, 200 * SAMPLED);
	write_regions(&s, 0, 0, 40);
	gc_shadow_tick(&s.o, 20);
	assert_int_equal(s.o.room, 40);
	assert_int_equal(s.o.invalid, 40);
	write_regions(&s, 0, 40, 1);
	gc_shadow_tick(&s.o, 20);
	assert_true(s.o.invalid < 40);
	scenario_deinit(&s);
}

TEST(writes_beyond_the_drive_are_ignored)
{
	struct scenario s;

	scenario_init(&s, 64 * SAMPLED);
	write_regions(&s, 0, 64, 3);
	gc_shadow_tick(&s.o, SPARE);
	assert_int_equal(atomic64_read(&s.o.ring[0].next), 0);
	write_regions(&s, 0, 63, 3);
	gc_shadow_tick(&s.o, SPARE);
	assert_int_equal(s.flow[0].valid, 1);
	scenario_deinit(&s);
}

/* Tags that differ by the number of buckets, and the tag after the last one. */
TEST(flows_in_one_bucket_are_told_apart)
{
	struct scenario s;
	u32 gone, i;

	for (gone = 0; gone < FLOWS; gone++) {
		scenario_init(&s, 64 * SAMPLED);
		for (i = 0; i < FLOWS; i++) {
			gc_shadow_flow_exit(&s.o, &s.flow[i]);
			s.o.tags = i * GC_SHADOW_BUCKETS + 6;
			gc_shadow_flow_init(&s.o, &s.flow[i]);
			assert_int_equal(s.flow[i].tag % GC_SHADOW_BUCKETS, 7);
		}
		gc_shadow_flow_exit(&s.o, &s.flow[gone]);
		if (gone == 1) {
			/* The bucket has the latest flow first. */
			assert_ptr_equal(s.flow[2].next, &s.flow[0]);
			gc_shadow_flow_exit(&s.o, &s.flow[0]);
			assert_null(s.flow[2].next);
			gc_shadow_flow_init(&s.o, &s.flow[0]);
		}
		s.o.tags = ~0U;
		gc_shadow_flow_init(&s.o, &s.flow[gone]);
		assert_int_equal(s.flow[gone].tag, 1);
		for (i = 0; i < FLOWS; i++)
			write_regions(&s, i, i * 10, i + 1);
		gc_shadow_tick(&s.o, SPARE);
		for (i = 0; i < FLOWS; i++)
			assert_int_equal(s.flow[i].valid, i + 1);
		scenario_deinit(&s);
	}
}

/*
 * A writer has its place in the ring and fills it after a tick.  No tick sees
 * the entry, and the entry of the next lap counts it as lost.
 */
TEST(entry_behind_the_tick_is_lost)
{
	struct scenario s;
	u32 i;

	scenario_init(&s, 64 * SAMPLED);
	atomic64_inc(&s.o.ring[0].next);
	gc_shadow_tick(&s.o, SPARE);
	assert_int_equal(s.o.invalid, 0);
	assert_int_equal(s.o.unknown, 64);
	atomic64_set(&s.o.ring[0].wrote[0], (s64)s.flow[1].tag << 32 | 5);
	for (i = 1; i < GC_SHADOW_RING; i++)
		write_regions(&s, 0, 7, 1);
	gc_shadow_tick(&s.o, SPARE);
	assert_int_equal(s.flow[1].valid, 0);
	write_regions(&s, 0, 7, 1);
	assert_int_equal(gc_shadow_lost(&s.o), 1);
	gc_shadow_tick(&s.o, SPARE);
	assert_int_equal(s.flow[0].valid, 1);
	scenario_deinit(&s);
}

/* Ticks did not come for a long time. */
TEST(ring_of_many_laps_is_emptied_at_once)
{
	struct scenario s;

	scenario_init(&s, 64 * SAMPLED);
	atomic64_set(&s.o.ring[0].next, 1LL << 40);
	write_regions(&s, 0, 0, 64);
	gc_shadow_tick(&s.o, SPARE);
	assert_int_equal(s.flow[0].valid, 64);
	scenario_deinit(&s);
}

/*
 * The place of a page in its region, and in the next region, by pairs.  With
 * 16383 pairs in 256 cells, chi square is 255 on average, with a deviation of
 * 23.
 */
TEST(sample_has_no_pattern)
{
	u32 cell[16][16] = { 0 }, region, page, last = 0, i;
	struct scenario s;
	double square = 0;

	scenario_init(&s, GC_SHADOW_REGIONS * SAMPLED);
	for (region = 0; region < GC_SHADOW_REGIONS; region++) {
		for (page = 0; page < SAMPLED; page++) {
			s64 before = atomic64_read(&s.o.ring[0].next);

			gc_shadow_wrote(&s.o, &s.flow[0], 0,
					region * SAMPLED + page,
					GC_SHADOW_PAGE);
			if (atomic64_read(&s.o.ring[0].next) != before)
				break;
		}
		assert_true(page < SAMPLED);
		if (region)
			cell[last][page]++;
		last = page;
	}
	for (i = 0; i < 256; i++) {
		double off = cell[i / 16][i % 16] - 64.0;

		square += off * off / 64;
	}
	assert_true(square > 150 && square < 370);
	scenario_deinit(&s);
}
