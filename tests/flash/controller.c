// SPDX-License-Identifier: GPL-2.0
/*
 * Runs of commands, steps of the controller, and what it counts.  Times are in
 * us, worked out by hand from the numbers of fixture_params.
 */
#include "tests/unit/unit.h"
#include "fixture.h"

enum {
	LONG		= 3 * FLASH_STEP_PAGES,
};

/* A drive without a map has page p on plane p / 2 % 8. */
static struct flash *in_place_drive(void)
{
	struct flash_params p = fixture_params;

	p.in_place = true;
	p.channel_ns = 0;
	return fixture_create(&p, 8);
}

static struct flash_cmd cmd_of(u8 op, u32 page, u32 pages)
{
	return (struct flash_cmd){ .op = op, .page = page, .pages = pages };
}

/*
 * The pages 1 to 4 are on planes 0, 1, 1 and 2.  All three are read at once,
 * and another read of one of these planes waits.
 */
static void run_ends_with_its_flash_page(void **state)
{
	u32 plane;

	(void)state;
	for (plane = 0; plane < 4; plane++) {
		struct flash *f = in_place_drive();
		struct flash_cmd a = cmd_of(FLASH_READ, 1, 4);
		struct flash_cmd b = cmd_of(FLASH_READ, 16 + 2 * plane, 1);

		flash_submit(f, &a, 0);
		flash_submit(f, &b, 0);
		fixture_settle(f, 0);
		/* With four planes busy, the link has its page after those. */
		assert_int_equal(a.done_ns, (1 + 50 + 4 + 5) * US);
		assert_int_equal(b.done_ns, plane < 3 ?
						    (51 + 50 + 1 + 5) * US :
						    (1 + 50 + 4 + 1 + 5) * US);
		flash_destroy(f);
	}
}

/*
 * The pages 0, 1 and 2 were written as 1, 0, 2.  So no two of them follow each
 * other in flash, and plane 0 is read twice for pages 0 and 1.
 */
static void pages_out_of_order_are_no_run(void **state)
{
	static const u32 order[] = { 1, 0, 2, 3, 4, 5, 6, 7 };
	struct flash *f = fixture_create(&fixture_params, 8);
	u64 now = 0;
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(order); i++)
		fixture_do(f, &now, FLASH_WRITE, order[i], 1);
	now = fixture_settle(f, now);
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 0, 2),
			 (1 + 60 + 60 + 1 + 5) * US);
	/* Pages 2 and 3 are one flash page. */
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 2, 2),
			 (1 + 50 + 20 + 2 + 5) * US);
	/* A page is read alone if the command ends with it. */
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 2, 1),
			 (1 + 50 + 10 + 1 + 5) * US);
	flash_destroy(f);
}

/* Pages in flash, in the buffer, and pages that were never written. */
static void buffer_hits_are_pages_not_in_flash(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 8);
	u64 now = 0;

	(void)state;
	fixture_do(f, &now, FLASH_WRITE, 0, 8);
	now = fixture_settle(f, now);
	/* A unit of 8 is not full, so they stay in the buffer. */
	fixture_do(f, &now, FLASH_WRITE, 8, 4);
	assert_int_equal(flash_stats(f).buffer_hits, 0);
	fixture_do(f, &now, FLASH_READ, 6, 8);
	assert_int_equal(flash_stats(f).buffer_hits, 6);
	fixture_do(f, &now, FLASH_READ, 0, 8);
	assert_int_equal(flash_stats(f).buffer_hits, 6);
	assert_int_equal(flash_stats(f).read, 16);
	assert_int_equal(flash_stats(f).written, 12);
	flash_destroy(f);
}

static void pages_of_commands_are_counted(void **state)
{
	struct flash *f = in_place_drive();
	u64 now = 0;

	(void)state;
	fixture_do(f, &now, FLASH_READ, 3, 5);
	assert_int_equal(flash_stats(f).read, 5);
	assert_int_equal(flash_stats(f).written, 0);
	fixture_do(f, &now, FLASH_WRITE, 3, 7);
	fixture_do(f, &now, FLASH_TRIM, 3, 11);
	fixture_do(f, &now, FLASH_FLUSH, 0, 0);
	assert_int_equal(flash_stats(f).read, 5);
	assert_int_equal(flash_stats(f).written, 7);
	flash_destroy(f);
}

/* An event is bounded, so a long command takes several at the same time. */
static void step_has_at_most_64_pages(void **state)
{
	static const u8 ops[] = { FLASH_READ, FLASH_TRIM };
	u32 i, step;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		struct flash *f = fixture_create(&fixture_params, 8);
		struct flash_cmd cmd = cmd_of(ops[i], 0, LONG);

		flash_submit(f, &cmd, 0);
		for (step = 1; step <= LONG / FLASH_STEP_PAGES; step++) {
			assert_int_equal(flash_next_ns(f), 1 * US);
			flash_advance(f, 1 * US, 1);
			assert_int_equal(cmd.issued, step * FLASH_STEP_PAGES);
		}
		fixture_settle(f, 1 * US);
		assert_int_equal(cmd.done_ns,
				 i ? (1 + 3) * US : (1 + LONG + 5) * US);
		flash_destroy(f);
	}
}

/* The next command has its turn when the long one has had all its steps. */
static void commands_pass_the_controller_one_by_one(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 8);
	struct flash_cmd cmds[3];
	u32 i;

	(void)state;
	for (i = 0; i < 3; i++) {
		cmds[i] = cmd_of(FLASH_TRIM, 0, LONG);
		flash_submit(f, &cmds[i], 0);
	}
	assert_int_equal(flash_outstanding(f), 3);
	fixture_settle(f, 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(cmds[i].done_ns, (1 + i + 3) * US);
	flash_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run_ends_with_its_flash_page),
		cmocka_unit_test(pages_out_of_order_are_no_run),
		cmocka_unit_test(buffer_hits_are_pages_not_in_flash),
		cmocka_unit_test(pages_of_commands_are_counted),
		cmocka_unit_test(step_has_at_most_64_pages),
		cmocka_unit_test(commands_pass_the_controller_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
