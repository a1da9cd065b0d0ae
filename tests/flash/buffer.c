// SPDX-License-Identifier: GPL-2.0
/*
 * The write buffer: the die that gets a unit, and writes that wait for room.
 * Times are in us, worked out by hand from the numbers of fixture_params.
 */
#include "tests/unit/unit.h"
#include "fixture.h"

enum {
	UNIT		= 8,
	BLOCK		= 32,
	HOT		= 480,		/* pages that are written again and again */
};

static struct flash_cmd write_of(u32 page, u32 pages)
{
	return (struct flash_cmd){
		.op = FLASH_WRITE,
		.page = page,
		.pages = pages,
	};
}

static u32 die_of(const struct flash *f, u32 page)
{
	return ftl_die_of(&f->ftl, flash_where(f, page));
}

/* The first unit goes to die 0, and the next one to the next die. */
static void units_go_to_the_dies_in_turn(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 8);
	u64 now = 0;
	u32 i;

	(void)state;
	/* All dies are idle. */
	for (i = 0; i < 6; i++) {
		fixture_do(f, &now, FLASH_WRITE, i * UNIT, UNIT);
		now = fixture_settle(f, now);
		assert_int_equal(die_of(f, i * UNIT), i % 4);
	}
	flash_destroy(f);
	f = fixture_create(&fixture_params, 8);
	now = 0;
	/* One write of eight units: each die gets two. */
	fixture_do(f, &now, FLASH_WRITE, 0, 8 * UNIT);
	for (i = 0; i < 8; i++)
		assert_int_equal(die_of(f, i * UNIT), i % 4);
	fixture_settle(f, now);
	assert_null(audit(f));
	flash_destroy(f);
}

static void submit_at(struct flash *f, struct flash_cmd *cmd, u64 us)
{
	flash_advance(f, us * US, 1000);
	flash_submit(f, cmd, us * US);
}

/*
 * Dies 0 and 1 get units a and b, then c and d.  A read keeps die 0 until 61,
 * so a is programmed until 641, and b until 598.  At 609 die 1 has d alone.
 */
static void unit_goes_to_the_die_with_the_fewest_units(void **state)
{
	struct flash_params p = fixture_params;
	struct flash_cmd read = { .op = FLASH_READ, .pages = 1 };
	struct flash_cmd w[6];
	struct flash *f;
	u32 i;

	(void)state;
	p.dies = 1;
	f = fixture_create(&p, 8);
	fixture_fill(f, 1);
	assert_int_equal(die_of(f, 0), 0);
	for (i = 0; i < 6; i++)
		w[i] = write_of(i * UNIT, UNIT);
	flash_submit(f, &read, 0);
	for (i = 0; i < 4; i++)
		flash_submit(f, &w[i], 0);
	submit_at(f, &w[4], 600);
	submit_at(f, &w[5], 650);
	fixture_settle(f, 650 * US);
	for (i = 0; i < 4; i++)
		assert_int_equal(die_of(f, w[i].page), i % 2);
	/* Die 0 would be the next in turn, but it has a and c. */
	assert_int_equal(die_of(f, w[4].page), 1);
	/* Now die 0 has c, and die 1 has d and that one. */
	assert_int_equal(die_of(f, w[5].page), 0);
	flash_destroy(f);
}

/* A transfer brings 16 pages; the write is done after the last transfer. */
static void a_long_write_takes_several_transfers(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 8);
	u64 now = 0;
	u32 i;

	(void)state;
	assert_int_equal(fixture_do(f, &now, FLASH_WRITE, 0, 44),
			 (1 + 44 + 3) * US);
	assert_int_equal(flash_stats(f).written, 44);
	for (i = 0; i < flash_pages(f); i++)
		assert_int_equal(flash_where(f, i) != FLASH_NOWHERE, i < 44);
	fixture_settle(f, now);
	assert_null(audit(f));
	flash_destroy(f);
}

/* Returns a drive of one die, with room for two units in its buffer. */
static struct flash *small_buffer(void)
{
	struct flash_params p = fixture_params;

	p.channels = 1;
	p.dies = 1;
	p.buffer_pages = 2 * UNIT;
	return fixture_create(&p, 8);
}

/* Each unit has the channel for 80 and the die for 500, one after another. */
static void each_time_that_the_buffer_is_full_counts_once(void **state)
{
	struct flash *f = small_buffer();
	struct flash_cmd w[4];
	u32 i;

	(void)state;
	for (i = 0; i < 4; i++)
		w[i] = write_of(i * UNIT, UNIT);
	for (i = 0; i < 3; i++)
		flash_submit(f, &w[i], 0);
	submit_at(f, &w[3], 100);
	/* Two writes wait, and the buffer has become full once. */
	flash_advance(f, 500 * US, 1000);
	assert_int_equal(flash_stats(f).write_stalls, 1);
	fixture_settle(f, 500 * US);
	assert_int_equal(w[2].done_ns, (9 + 580 + 8 + 3) * US);
	assert_int_equal(w[3].done_ns, (9 + 2 * 580 + 8 + 3) * US);
	assert_int_equal(flash_stats(f).write_stalls, 2);
	flash_destroy(f);
}

/* The rest of a write waits for room: here 16 pages of 20. */
static void a_write_may_be_larger_than_the_buffer(void **state)
{
	struct flash *f = small_buffer();
	u64 now = 0;

	(void)state;
	assert_int_equal(fixture_do(f, &now, FLASH_WRITE, 0, 20),
			 (17 + 580 + 4 + 3) * US);
	assert_int_equal(flash_stats(f).write_stalls, 1);
	fixture_settle(f, now);
	assert_null(audit(f));
	flash_destroy(f);
}

/*
 * Pages that stay fill die 0, while die 1 gets the same pages again and again.
 * Die 0 then takes no page, and its GC finds nothing.  After a trim it does.
 */
static void a_full_die_collects_after_a_trim(void **state)
{
	struct flash_params p = fixture_params;
	struct flash *f;
	u64 now = 0;
	u32 cold = 0;

	(void)state;
	p.dies = 1;
	f = fixture_create(&p, 8);
	while (ftl_can_place(&f->ftl, 0)) {
		bool die_0 = f->unit_die == 1; /* has the turn */
		u32 page = die_0 ? cold : HOT;

		assert_true(cold < HOT);
		fixture_do(f, &now, FLASH_WRITE, page, UNIT);
		now = fixture_settle(f, now);
		assert_int_equal(die_of(f, page), !die_0);
		cold += die_0 ? UNIT : 0;
	}
	assert_int_equal(ftl_gc_step(&f->ftl, 0), GC_NOTHING);
	fixture_do(f, &now, FLASH_TRIM, 0, BLOCK);
	/* The second unit would be the turn of die 0. */
	fixture_do(f, &now, FLASH_WRITE, HOT, 2 * UNIT);
	fixture_settle(f, now);
	assert_true(ftl_can_place(&f->ftl, 0));
	assert_null(audit(f));
	flash_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_go_to_the_dies_in_turn),
		cmocka_unit_test(unit_goes_to_the_die_with_the_fewest_units),
		cmocka_unit_test(a_long_write_takes_several_transfers),
		cmocka_unit_test(each_time_that_the_buffer_is_full_counts_once),
		cmocka_unit_test(a_write_may_be_larger_than_the_buffer),
		cmocka_unit_test(a_full_die_collects_after_a_trim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
