// SPDX-License-Identifier: GPL-2.0
/*
 * Garbage collection (GC): its watermarks, its cost, the owners of the pages
 * that it copies.  Filling, which collects too.  Sizes and parameters.
 */
#include "tests/unit/unit.h"
#include "fixture.h"

#include <math.h>

static const struct ftl_die *die_of(const struct flash *f, u32 die)
{
	return &f->ftl.die[die];
}

/* Runs writes; @... has the members of struct fixture_load that are not 0. */
#define WRITES(f, now, ...) \
	fixture_run(f, &(struct fixture_load){ .op = FLASH_WRITE, __VA_ARGS__ }, now)

/* Submits @n writes of four pages at random places. */
static void wave_of(struct flash *f, struct random *r, struct flash_cmd *cmds,
		    u32 n, u64 now)
{
	u32 i;

	for (i = 0; i < n; i++) {
		cmds[i] = (struct flash_cmd){
			.op = FLASH_WRITE,
			.pages = 4,
			.page = random_below(r, flash_pages(f) - 4),
		};
		flash_submit(f, &cmds[i], now);
	}
}

/* ---------------------------------------------------------------- watermarks */

struct marks {
	u32 free[64];
	bool collecting[64];
	u8 work[64];
	u32 began, ended;
};

/* Checks after every single event which stream has taken a free block. */
static void check_marks(const struct flash *f, struct marks *m)
{
	u32 i;

	for (i = 0; i < f->ftl.nr_dies; i++) {
		const struct ftl_die *d = die_of(f, i);

		if (d->collecting && !m->collecting[i]) {
			assert_int_equal(d->nr_free, f->params.gc_start);
			m->began++;
		}
		if (!d->collecting && m->collecting[i]) {
			assert_int_equal(d->nr_free, f->params.gc_stop);
			m->ended++;
		}
		if (d->victim != FTL_NONE)
			assert_true(d->collecting ||
				    d->nr_free >= f->params.gc_stop);
		/* GC alone takes the last free block. */
		if (!d->nr_free && m->free[i])
			assert_int_not_equal(d->victim, FTL_NONE);
		/* With one free block left, GC goes before programs. */
		if (f->die[i].work == DIE_PROGRAM && m->work[i] != DIE_PROGRAM)
			assert_false(ftl_gc_urgent(&f->ftl, i) &&
				     ftl_gc_step(&f->ftl, i) != GC_NOTHING);
		m->work[i] = f->die[i].work;
		m->collecting[i] = d->collecting;
		m->free[i] = d->nr_free;
	}
}

static void watermarks(u32 gc_start, u32 gc_stop)
{
	struct random r = random_seeded("gc, watermarks");
	struct flash_params p = fixture_params;
	struct flash_cmd cmds[32];
	struct marks m = { 0 };
	struct flash *f;
	u64 now = 0;
	u32 wave, i;

	p.gc_start = gc_start;
	p.gc_stop = gc_stop;
	f = fixture_create(&p, 16);
	fixture_fill(f, 1);
	for (i = 0; i < f->ftl.nr_dies; i++) {
		m.free[i] = die_of(f, i)->nr_free;
		m.collecting[i] = die_of(f, i)->collecting;
	}
	for (wave = 0; wave < 200; wave++) {
		wave_of(f, &r, cmds, ARRAY_SIZE(cmds), now);
		while (flash_next_ns(f) != FLASH_NEVER) {
			now = flash_next_ns(f);
			flash_advance(f, now, 1);
			check_marks(f, &m);
		}
	}
	assert_true(m.began > 100);
	assert_true(m.ended > 100);
	/* Without commands, GC went on until its watermark. */
	for (i = 0; i < f->ftl.nr_dies; i++)
		assert_true(die_of(f, i)->nr_free > gc_start);
	assert_null(audit(f));
	flash_destroy(f);
}

static void gc_runs_between_its_watermarks(void **state)
{
	(void)state;
	watermarks(2, 3);
	watermarks(1, 2);
	watermarks(3, 6);
}

/* ----------------------------------------------------------------- turns */

enum turn {
	TURN_NONE,
	TURN_PROGRAM,
	TURN_GC,
};

/* The work of a die.  A transfer precedes a program and follows a read. */
struct seen {
	u8 work;
	bool armed;		/* planes work; else a transfer is under way */
	enum turn last;
};

/* Returns the kind of work that has begun since @seen, if any. */
static enum turn work_begun(const struct flash_die *d, const struct seen *seen)
{
	bool transfer_first = d->work == DIE_PROGRAM ||
			      d->work == DIE_GC_PROGRAM;

	if (d->work == DIE_IDLE || d->event.armed == transfer_first)
		return TURN_NONE;
	if (d->work == seen->work && d->event.armed == seen->armed)
		return TURN_NONE;
	return d->work == DIE_PROGRAM ? TURN_PROGRAM : TURN_GC;
}

/* If both wait, the one that has not had the last turn is next. */
static bool check_turn(const struct flash *f, u32 die, struct seen *seen)
{
	const struct flash_die *d = &f->die[die];
	enum turn begun = work_begun(d, seen);
	bool both =
		die_of(f, die)->stream[STREAM_COMMANDS].units &&
		(begun == TURN_GC || ftl_gc_step(&f->ftl, die) != GC_NOTHING) &&
		!ftl_gc_urgent(&f->ftl, die);
	enum turn last = seen->last;

	seen->work = d->work;
	seen->armed = d->event.armed;
	if (begun == TURN_NONE)
		return false;
	seen->last = begun;
	if (!both || last == TURN_NONE)
		return false;
	assert_int_not_equal(begun, last);
	return true;
}

/* Random writes keep units waiting, and GC has much to copy. */
static void programs_and_steps_of_gc_take_turns(void **state)
{
	struct random r = random_seeded("gc, turns");
	struct flash_params p = fixture_params;
	struct flash_cmd cmds[32];
	struct seen seen[4] = { 0 };
	u32 turns = 0, wave, i;
	struct flash *f;
	u64 now = 0;

	(void)state;
	p.gc_start = 3;
	p.gc_stop = 6;
	f = fixture_create(&p, 16);
	fixture_fill(f, 1);
	for (wave = 0; wave < 50; wave++) {
		wave_of(f, &r, cmds, ARRAY_SIZE(cmds), now);
		while (flash_next_ns(f) != FLASH_NEVER) {
			now = flash_next_ns(f);
			flash_advance(f, now, 1);
			for (i = 0; i < f->ftl.nr_dies; i++)
				turns += check_turn(f, i, &seen[i]);
		}
	}
	assert_true(turns > 100);
	flash_destroy(f);
}

/* One die, and more room in the buffer than in free blocks. */
static void writes_wait_for_a_free_block(void **state)
{
	struct random r = random_seeded("gc, stalls");
	struct flash_params p = fixture_params;
	struct flash_cmd cmds[64];
	struct flash *f;
	u64 now = 0;
	u32 stalls = 0, wave;

	(void)state;
	p.channels = 1;
	p.dies = 1;
	p.buffer_pages = 512;
	f = fixture_create(&p, 32);
	fixture_fill(f, 1);
	for (wave = 0; wave < 20; wave++) {
		wave_of(f, &r, cmds, ARRAY_SIZE(cmds), now);
		while (flash_next_ns(f) != FLASH_NEVER) {
			now = flash_next_ns(f);
			flash_advance(f, now, 1);
			stalls += f->link_stalled;
		}
		assert_int_equal(flash_outstanding(f), 0);
	}
	assert_true(stalls > 100);
	assert_null(audit(f));
	flash_destroy(f);
}

/* -------------------------------------------------------------------- cost */

/*
 * The formula gives the write amplification A of uniformly random writes if the
 * victim is the block that was filled longest ago.  With a = flash / data it is
 * A = a / (a + W(-a exp(-a))).  As blocks become large, the block with the
 * fewest valid pages is the same one.
 *
 * Source: Desnoyers, Analytic Models of SSD Write Performance, ACM TOS 2014.
 */
static double lambert_w(double x)
{
	double w = x;
	u32 i;

	for (i = 0; i < 200; i++)
		w -= (w * exp(w) - x) / (exp(w) * (w + 1));
	return w;
}

static double formula(double a)
{
	return a / (a + lambert_w(-a * exp(-a)));
}

/*
 * Returns a = flash / data.  Flash without data does not count: the free
 * blocks, halfway between the watermarks, and half of each of the two open
 * blocks.
 */
static double flash_to_data(const struct flash *f)
{
	const struct ftl *ftl = &f->ftl;
	double idle = (f->params.gc_start + f->params.gc_stop) / 2.0 + 1;
	double data = (double)ftl->pages / ftl->nr_dies / ftl->block_pages;

	return (ftl->die_blocks - idle) / data;
}

static double amplification(const struct flash_stats *from,
			    const struct flash_stats *to)
{
	u64 written = to->written - from->written;

	return (double)flash_amplification_permille(written,
						    to->copied - from->copied) /
	       1000;
}

/* Makes a drive in its steady state; measures its amplification. */
static struct flash *aged(u32 spare_permille, double *amplified)
{
	struct flash_params p = fixture_params;
	struct flash_stats before, after;
	struct flash_fill fill = { .owner = 1, .seed = 1 };
	struct flash *f;

	/* The formula assumes few dies and large blocks. */
	p.channels = 1;
	p.dies = 1;
	p.block_programs = 128;
	p.spare_permille = spare_permille;
	f = fixture_create(&p, 100);
	fill.pages = flash_pages(f);
	fill.overwrites = 3ULL * fill.pages;
	while (flash_fill(f, &fill, 10000))
		;
	before = flash_stats(f);
	fill = (struct flash_fill){
		.pages = flash_pages(f),
		.overwrites = flash_pages(f),
		.owner = 1,
		.seed = 2,
		.written = true,
	};
	while (flash_fill(f, &fill, 10000))
		;
	after = flash_stats(f);
	*amplified = amplification(&before, &after);
	return f;
}

static void amplification_follows_the_formula(void **state)
{
	static const u32 spare[] = { 100, 150, 250, 400 };
	double last = 1000;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(spare); i++) {
		double seen, known;
		struct flash *f = aged(spare[i], &seen);

		known = formula(flash_to_data(f));
		print_message("# spare %u: amplification %.3f, formula %.3f\n",
			      spare[i], seen, known);
		assert_true(fabs(seen / known - 1) < 0.02);
		assert_true(seen < last);
		last = seen;
		assert_null(audit(f));
		flash_destroy(f);
	}
}

static void sequential_writes_amplify_nothing(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 32);
	u64 now = 0;

	(void)state;
	WRITES(f, &now, .depth = 4, .pages = 8, .ios = 5 * flash_pages(f) / 8);
	fixture_settle(f, now);
	assert_int_equal(flash_stats(f).copied, 0);
	assert_true(flash_stats(f).erases >
		    3 * flash_pages(f) / f->ftl.block_pages);
	flash_destroy(f);
}

/* The times of programs, reads for GC and erases add up to the busy times. */
static void busy_times_add_up(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 16);
	struct flash_stats s;
	u64 now = 0, rows;

	(void)state;
	fixture_fill(f, 1);
	s = flash_stats(f);
	WRITES(f, &now, .depth = 16, .pages = 1, .random = true, .ios = 20000);
	fixture_settle(f, now);
	assert_int_equal(flash_stats(f).written - s.written, 20000);
	/* gc_busy_ns has GC's programs; all others are programs of commands. */
	rows = flash_stats(f).gc_busy_ns -
	       flash_stats(f).erases * fixture_params.erase_ns -
	       (flash_stats(f).programs - s.programs) *
		       fixture_params.program_ns +
	       flash_stats(f).program_busy_ns;
	assert_int_equal(rows % fixture_params.read_ns, 0);
	rows /= fixture_params.read_ns;
	/* A row has 1 to 4 valid pages. */
	assert_in_range(flash_stats(f).copied, rows, 4 * rows);
	flash_destroy(f);
}

/* ------------------------------------------------------------------ owners */

/* GC copies pages of a cold owner for a hot one that shares their blocks. */
static void copies_count_for_the_owner_of_the_page(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 32);
	struct flash_usage cold, hot;
	u32 half = flash_pages(f) / 2;
	u64 now = 0;

	(void)state;
	WRITES(f, &now, .depth = 4, .pages = 1, .range = half, .owner = 7,
	       .ios = half);
	WRITES(f, &now, .depth = 4, .pages = 1, .first = half, .range = half,
	       .owner = 8, .ios = 10 * half, .random = true);
	fixture_settle(f, now);
	assert_true(flash_host_usage(f, 7, &cold));
	assert_true(flash_host_usage(f, 8, &hot));
	assert_int_equal(cold.valid, half);
	assert_int_equal(cold.invalid, 0);
	assert_int_equal(cold.written, half);
	assert_int_equal(hot.written, 10 * half);
	assert_int_equal(cold.copied + hot.copied, flash_stats(f).copied);
	assert_true(hot.invalid > 0);
	assert_true(hot.copied > cold.copied);
	flash_destroy(f);
}

/* Returns the time of all planes for writes and GC that was paid for. */
static u64 busy_with_writes(const struct flash *f)
{
	struct flash_stats stats = flash_stats(f);
	u64 transfers =
		stats.programs * fixture_params.program_pages + stats.copied;

	return fixture_params.planes *
		       (stats.program_busy_ns + stats.gc_busy_ns +
			transfers * fixture_params.channel_ns) -
	       f->owed_ns;
}

/* Two owners pay alike for a page, though one writes eight at a time. */
static void writers_pay_for_gc_by_the_page(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 32);
	struct flash_usage few, many;
	struct flash_spent spent;
	struct fixture_load small = {
		.op = FLASH_WRITE, .depth = 4, .pages = 1, .owner = 7,
		.ios = 80, .random = true,
	}, large = {
		.op = FLASH_WRITE, .depth = 4, .pages = 8, .owner = 8,
		.ios = 30, .random = true,
	};
	u64 now = 0, turn;

	(void)state;
	for (turn = 0; turn < 300; turn++) {
		fixture_run(f, &small, &now);
		fixture_run(f, &large, &now);
	}
	fixture_settle(f, now);
	assert_true(flash_stats(f).copied > flash_stats(f).written / 4);
	assert_true(flash_usage(f, 7, &few));
	assert_true(flash_usage(f, 8, &many));
	assert_in_range((few.busy_ns + many.busy_ns) * 1000 /
				busy_with_writes(f),
			995, 1005);
	assert_in_range(few.busy_ns * many.written * 1000 /
				(many.busy_ns * few.written),
			970, 1030);
	assert_true(flash_host_spent(f, &spent));
	assert_int_equal(spent.write_ns, few.busy_ns + many.busy_ns);
	assert_int_equal(spent.read_ns, 0);
	flash_destroy(f);
}

static void a_drive_managed_ftl_is_hidden(void **state)
{
	struct flash_config c = {
		.params = &fixture_params,
		.bytes = 16ULL << 20,
		.owners = 2,
		.ftl = FLASH_FTL_DEVICE,
	};
	struct flash *f = flash_create(&c);
	struct flash_usage usage;
	struct flash_spent spent;

	(void)state;
	assert_non_null(f);
	fixture_fill(f, 1);
	assert_false(flash_host_spent(f, &spent));
	assert_false(flash_host_usage(f, 1, &usage));
	assert_int_equal(usage.valid, 0);
	assert_true(flash_usage(f, 1, &usage));
	assert_int_equal(usage.valid, flash_pages(f));
	flash_destroy(f);
}

/* ------------------------------------------------------------------ filling */

static void filling_reaches_each_page_once(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 15);
	struct flash_fill fill = {
		.first = 100,
		.pages = 1111,
		.owner = 3,
		.seed = 99,
		.shuffled = true,
	};
	struct flash_usage usage;
	u32 calls = 0, i;

	(void)state;
	while (flash_fill(f, &fill, 100))
		calls++;
	assert_in_range(calls, 11, 60);
	flash_usage(f, 3, &usage);
	assert_int_equal(usage.written, 1111);
	assert_int_equal(usage.valid, 1111);
	for (i = 0; i < flash_pages(f); i++)
		assert_int_equal(flash_where(f, i) != FLASH_NOWHERE,
				 i >= 100 && i < 1211);
	/* Shuffled, so neighbours are apart. */
	assert_int_not_equal(flash_where(f, 101), flash_where(f, 100) + 1);
	assert_null(audit(f));
	flash_destroy(f);
}

/* Writes and fills the same pages, once with the times, once without. */
static void filling_amplifies_as_writing_does(void **state)
{
	struct flash_params p = fixture_params;
	struct flash_fill fill = { .owner = 1 };
	struct flash *slow, *fast;
	struct flash_usage a, b;
	struct flash_stats sa, sb;
	double seen, like;
	u64 now = 0;
	u32 pages;

	(void)state;
	p.spare_permille = 250;
	slow = fixture_create(&p, 200);
	fast = fixture_create(&p, 200);
	pages = flash_pages(slow);
	fill.pages = pages;
	fill.overwrites = 6ULL * pages;
	WRITES(slow, &now, .depth = 4, .pages = 1, .owner = 1, .ios = pages);
	WRITES(slow, &now, .depth = 4, .pages = 1, .owner = 1,
	       .ios = 6ULL * pages, .random = true);
	now = fixture_settle(slow, now);
	while (flash_fill(fast, &fill, 1000))
		;
	assert_null(audit(slow));
	assert_null(audit(fast));
	flash_usage(slow, 1, &a);
	flash_usage(fast, 1, &b);
	assert_int_equal(a.valid, b.valid);
	assert_int_equal(a.written, b.written);
	sa = flash_stats(slow);
	sb = flash_stats(fast);
	assert_int_equal(sa.written, sb.written);
	like = flash_amplification_permille(sa.written, sa.copied);
	seen = flash_amplification_permille(sb.written, sb.copied);
	print_message("# amplification %.0f with time, %.0f without\n", like,
		      seen);
	assert_true(fabs(seen / like - 1) < 0.05);
	/* The timing model goes on from the state that filling has left. */
	now = 0;
	WRITES(fast, &now, .depth = 16, .pages = 1, .random = true,
	       .ios = 5000);
	fixture_settle(fast, now);
	assert_null(audit(fast));
	flash_destroy(slow);
	flash_destroy(fast);
}

/* ------------------------------------------------------------------- sizes */

static void sizes_are_checked(void **state)
{
	struct flash_config c = {
		.params = flash_model("p4500"),
		.bytes = 36ULL << 20,
		.owners = 10,
	};
	struct flash *f;

	(void)state;
	assert_null(flash_config_wrong(&c));
	f = flash_create(&c);
	assert_non_null(f);
	flash_destroy(f);
	c.bytes -= 4096;
	assert_non_null(strstr(flash_config_wrong(&c), "one erase block"));
	assert_null(flash_create(&c));
	c.bytes = (1ULL << 30) + 512;
	assert_non_null(strstr(flash_config_wrong(&c), "multiple"));
	c.bytes = 1ULL << 43;
	assert_non_null(strstr(flash_config_wrong(&c), "2^31"));
	c.bytes = 16ULL << 30;
	assert_null(flash_config_wrong(&c));
	/* 4 bytes a logical page and 6 a physical page; the rest is little. */
	assert_in_range(flash_memory_bytes(&c), 40 << 20, 46 << 20);
	c.owners = OWNERS_MAX + 1;
	assert_non_null(strstr(flash_config_wrong(&c), "owners"));
}

static void parameters_are_checked(void **state)
{
	const struct flash_params *good = &fixture_params;
	struct flash_params p;

	(void)state;
#define WRONG(member, value, says)                                     \
	do {                                                           \
		p = *good;                                             \
		p.member = value;                                      \
		assert_non_null(flash_params_wrong(&p));               \
		assert_non_null(strstr(flash_params_wrong(&p), says)); \
	} while (0)
	assert_null(flash_params_wrong(good));
	WRONG(planes, 3, "powers of two");
	WRONG(read_pages, 0, "powers of two");
	WRONG(program_pages, 12, "powers of two");
	WRONG(block_programs, 5, "powers of two");
	WRONG(channels, 0, "channels");
	WRONG(dies, 4096, "channels");
	WRONG(page_bytes, 1000, "page_bytes");
	WRONG(program_pages, 128, "at most 64");
	WRONG(program_pages, 2, "planes x read_pages");
	WRONG(block_programs, 65536, "32768");
	WRONG(buffer_pages, 15, "buffer_pages");
	WRONG(gc_start, 0, "gc_start");
	WRONG(gc_stop, 2, "gc_start");
	WRONG(read_ns, 0, "read_ns");
	WRONG(read_burst, 0, "read_burst");
#undef WRONG
}

static void models_are_valid(void **state)
{
	const struct flash_params *p;
	const struct flash_target *t;

	(void)state;
	for (p = flash_models; p->name; p++) {
		assert_null(flash_params_wrong(p));
		assert_ptr_equal(flash_model(p->name), p);
	}
	assert_null(flash_model("p4501"));
	for (t = flash_targets; t->model; t++)
		assert_non_null(flash_model(t->model));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gc_runs_between_its_watermarks),
		cmocka_unit_test(programs_and_steps_of_gc_take_turns),
		cmocka_unit_test(writes_wait_for_a_free_block),
		cmocka_unit_test(amplification_follows_the_formula),
		cmocka_unit_test(sequential_writes_amplify_nothing),
		cmocka_unit_test(busy_times_add_up),
		cmocka_unit_test(copies_count_for_the_owner_of_the_page),
		cmocka_unit_test(writers_pay_for_gc_by_the_page),
		cmocka_unit_test(a_drive_managed_ftl_is_hidden),
		cmocka_unit_test(filling_reaches_each_page_once),
		cmocka_unit_test(filling_amplifies_as_writing_does),
		cmocka_unit_test(sizes_are_checked),
		cmocka_unit_test(parameters_are_checked),
		cmocka_unit_test(models_are_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
