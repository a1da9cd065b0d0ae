// SPDX-License-Identifier: GPL-2.0
/*
 * Latencies worked out by hand from the numbers of fixture_params, in us: see
 * fixture.h.  A sum such as 1 + 50 + 10 + 1 + 5 is controller, plane, channel,
 * link, fixed time.
 */
#include "tests/unit/unit.h"
#include "fixture.h"

/*
 * A drive filled in order has page p on die p / 8 % 4, plane p / 2 % 2: each
 * unit of 8 pages goes to the next die.  Dies 0 and 2 are on channel 0.
 */
enum {
	DIE_1		= 8,
	DIE_2		= 16,
	PLANE_1		= 2,
	SECOND		= 1000 * 1000 * US,
	/* Another flash page of the same plane. */
	SAME_PLANE	= 4,
	READ_US		= 1 + 50 + 10 + 1 + 5,
};

static struct flash *filled(const struct flash_params *p)
{
	struct flash *f = fixture_create(p, 8);

	fixture_fill(f, 1);
	return f;
}

static struct flash_cmd read_of(u32 page, u32 pages)
{
	return (struct flash_cmd){
		.op = FLASH_READ,
		.page = page,
		.pages = pages,
	};
}

static struct flash_cmd write_of(u32 page, u32 pages)
{
	return (struct flash_cmd){
		.op = FLASH_WRITE,
		.page = page,
		.pages = pages,
	};
}

/* Submits both at 0 and checks when each is done.  Destroys @f. */
static void both(struct flash *f, struct flash_cmd *a, struct flash_cmd *b,
		 u64 a_us, u64 b_us)
{
	flash_submit(f, a, 0);
	flash_submit(f, b, 0);
	fixture_settle(f, 0);
	assert_int_equal(a->done_ns, a_us * US);
	assert_int_equal(b->done_ns, b_us * US);
	assert_int_equal(flash_outstanding(f), 0);
	flash_destroy(f);
}

static void one_read(void **state)
{
	struct flash *f = filled(&fixture_params);
	u64 now = 0;

	(void)state;
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 0, 1), READ_US * US);
	/* It takes as long at another time. */
	now += 12345;
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 0, 1), READ_US * US);
	flash_destroy(f);
}

/* The first read has the plane; the third goes before the second. */
static void reads_that_go_ahead_pass_others_at_a_plane(void **state)
{
	static const u64 done_us[2][4] = {
		/* device: in turn; the plane is free after each channel time */
		{ READ_US, READ_US + 60, READ_US + 120, READ_US + 180 },
		/* host */
		{ READ_US, READ_US + 180, READ_US + 60, READ_US + 120 },
	};
	enum flash_ftl ftl;
	u32 i;

	(void)state;
	for (ftl = FLASH_FTL_DEVICE; ftl <= FLASH_FTL_HOST; ftl++) {
		struct flash_cmd cmd[4];
		struct flash *f = fixture_create_ftl(&fixture_params, 8, ftl);

		fixture_fill(f, 1);
		for (i = 0; i < ARRAY_SIZE(cmd); i++) {
			cmd[i] = read_of(0, 1);
			cmd[i].ahead = i >= 2;
			flash_submit(f, &cmd[i], 0);
		}
		fixture_settle(f, 0);
		for (i = 0; i < ARRAY_SIZE(cmd); i++)
			assert_int_equal(cmd[i].done_ns, done_us[ftl][i] * US);
		flash_destroy(f);
	}
}

static void pages_of_one_flash_page_are_read_at_once(void **state)
{
	struct flash *f = filled(&fixture_params);
	u64 now = 0;

	(void)state;
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 0, 2),
			 (1 + 50 + 2 * 10 + 2 + 5) * US);
	/* Two flash pages take two reads; the second leaves 10 us later. */
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 1, 2),
			 (1 + 50 + 2 * 10 + 1 + 5) * US);
	flash_destroy(f);
}

/* A read of page 0, and one of another page at the same time. */
static void two_reads_share_what_both_need(void **state)
{
	static const struct {
		const char *shared;
		u32 page;
		u64 done_us; /* of the second */
	} rows[] = {
		/* The plane's register is free when the page has left it, at 61. */
		{ "a plane", SAME_PLANE, 61 + 50 + 10 + 1 + 5 },
		{ "the channel of the planes", PLANE_1,
		  1 + 50 + 10 + 10 + 1 + 5 },
		{ "the channel of the dies", DIE_2, 1 + 50 + 10 + 10 + 1 + 5 },
		/* The controller takes the second one 1 us later. */
		{ "the controller", DIE_1, READ_US + 1 },
	};
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct flash_cmd a = read_of(0, 1),
				 b = read_of(rows[i].page, 1);

		print_message("# two reads share %s\n", rows[i].shared);
		both(filled(&fixture_params), &a, &b, READ_US, rows[i].done_us);
	}
}

static void the_link_is_shared(void **state)
{
	struct flash_params p = fixture_params;
	struct flash_cmd a = read_of(0, 1), b = read_of(DIE_1, 1);

	(void)state;
	p.link_ns = 20 * US;
	both(filled(&p), &a, &b, 61 + 20 + 5, 61 + 20 + 20 + 5);
}

static void completes_out_of_order(void **state)
{
	struct flash *f = filled(&fixture_params);
	struct flash_cmd slow = read_of(0, 1), slower = read_of(SAME_PLANE, 1);
	struct flash_cmd quick = read_of(DIE_1, 1), *done;

	(void)state;
	flash_submit(f, &slow, 0);
	flash_submit(f, &slower, 0);
	flash_submit(f, &quick, 0);
	done = flash_advance(f, 1000 * US, 1000);
	assert_ptr_equal(done, &slow);
	assert_ptr_equal(done->next, &quick);
	assert_ptr_equal(done->next->next, &slower);
	assert_null(slower.next);
	flash_destroy(f);
}

static void an_unwritten_page_is_not_in_flash(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 8);
	u64 now = 0;

	(void)state;
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 0, 4),
			 (1 + 4 + 5) * US);
	assert_int_equal(flash_stats(f).buffer_hits, 4);
	flash_destroy(f);
}

static void a_write_is_done_when_buffered(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 8);
	u64 now = 0;

	(void)state;
	assert_int_equal(fixture_do(f, &now, FLASH_WRITE, 0, 4),
			 (1 + 4 + 3) * US);
	/* A read finds the pages in the buffer. */
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 0, 4),
			 (1 + 4 + 5) * US);
	assert_int_equal(flash_next_ns(f), FLASH_NEVER);
	flash_destroy(f);
}

static void a_unit_is_programmed_when_full(void **state)
{
	struct flash *f = fixture_create(&fixture_params, 8);
	u64 now = 0;

	(void)state;
	fixture_do(f, &now, FLASH_WRITE, 0, 8);
	assert_int_equal(flash_stats(f).programs, 0);
	/* The unit has arrived at 9, and the die has it at 9 + 80. */
	now = fixture_settle(f, now);
	assert_int_equal(now, (9 + 80 + 500) * US);
	assert_int_equal(flash_stats(f).programs, 1);
	assert_int_equal(flash_stats(f).program_busy_ns, 500 * US);
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 0, 1), READ_US * US);
	flash_destroy(f);
}

static void a_full_buffer_delays_writes(void **state)
{
	struct flash_params p = fixture_params;
	struct flash_cmd a = write_of(0, 8), b = write_of(8, 8);
	struct flash_cmd c = write_of(16, 8);
	struct flash *f;

	(void)state;
	p.channels = 1;
	p.dies = 1;
	p.buffer_pages = 16;
	f = fixture_create(&p, 8);
	flash_submit(f, &a, 0);
	flash_submit(f, &b, 0);
	flash_submit(f, &c, 0);
	fixture_settle(f, 0);
	assert_int_equal(a.done_ns, (1 + 8 + 3) * US);
	assert_int_equal(b.done_ns, (1 + 16 + 3) * US);
	/* The buffer has room when the first unit has been programmed. */
	assert_int_equal(c.done_ns, (9 + 80 + 500 + 8 + 3) * US);
	assert_int_equal(flash_stats(f).write_stalls, 1);
	flash_destroy(f);
}

/* Die 0 has a unit from 9 to 589, and a read comes at 100. */
static void a_read_waits_for_a_program(void **state)
{
	struct flash *f = filled(&fixture_params);
	struct flash_cmd w = write_of(0, 8), r = read_of(32, 1);
	struct flash_cmd other = read_of(DIE_1, 1);

	(void)state;
	flash_submit(f, &w, 0);
	flash_advance(f, 100 * US, 1000);
	flash_submit(f, &r, 100 * US);
	flash_submit(f, &other, 100 * US);
	fixture_settle(f, 100 * US);
	assert_int_equal(r.done_ns, (589 + 50 + 10 + 1 + 5) * US);
	assert_int_equal(other.done_ns, (100 + 1 + READ_US) * US);
	flash_destroy(f);
}

/*
 * Six reads wait for plane 0 of die 0, then a unit for the die arrives.  No
 * more than read_burst reads start before its program.
 */
static void read_burst_reads_pass_a_program(void **state)
{
	struct flash *f = filled(&fixture_params);
	struct flash_cmd reads[6], w = write_of(0, 8);
	u32 i;

	(void)state;
	for (i = 0; i < 6; i++) {
		reads[i] = read_of(i % 2 ? SAME_PLANE : 0, 1);
		flash_submit(f, &reads[i], 0);
	}
	/* The controller has taken it at 7, the buffer has it at 15. */
	flash_submit(f, &w, 0);
	fixture_settle(f, 0);
	/* One read was under way, two more pass: 1 + 3 * 60 = 181. */
	assert_int_equal(reads[2].done_ns, (181 + 1 + 5) * US);
	assert_int_equal(reads[3].done_ns, (181 + 80 + 500 + 60 + 1 + 5) * US);
	flash_destroy(f);
}

/* The same with two units for the only die: two reads pass each of them. */
static void read_burst_counts_for_each_program(void **state)
{
	struct flash_params p = fixture_params;
	struct flash_cmd reads[6], w = write_of(64, 16);
	struct flash *f;
	u32 i;

	(void)state;
	p.channels = 1;
	p.dies = 1;
	f = filled(&p);
	for (i = 0; i < 6; i++) {
		reads[i] = read_of(i % 2 ? SAME_PLANE : 0, 1);
		flash_submit(f, &reads[i], 0);
	}
	flash_submit(f, &w, 0);
	fixture_settle(f, 0);
	/* Program, two reads, program, the last read. */
	assert_int_equal(reads[3].done_ns, (181 + 580 + 60 + 1 + 5) * US);
	assert_int_equal(reads[4].done_ns, (181 + 580 + 120 + 1 + 5) * US);
	assert_int_equal(reads[5].done_ns, (181 + 2 * 580 + 180 + 1 + 5) * US);
	flash_destroy(f);
}

static void trims_and_flushes_take_no_flash_time(void **state)
{
	struct flash *f = filled(&fixture_params);
	u64 now = 0;

	(void)state;
	assert_int_equal(fixture_do(f, &now, FLASH_TRIM, 3, 200), (1 + 3) * US);
	assert_int_equal(flash_where(f, 2) == FLASH_NOWHERE, 0);
	assert_int_equal(flash_where(f, 3), FLASH_NOWHERE);
	assert_int_equal(flash_where(f, 202), FLASH_NOWHERE);
	assert_int_equal(flash_where(f, 203) == FLASH_NOWHERE, 0);
	assert_int_equal(flash_stats(f).trimmed, 200);
	/* They have no data any more that could be trimmed. */
	fixture_do(f, &now, FLASH_TRIM, 2, 200);
	assert_int_equal(flash_stats(f).trimmed, 201);
	assert_int_equal(fixture_do(f, &now, FLASH_FLUSH, 0, 0), (1 + 3) * US);
	/* One read may have mapped and unmapped pages. */
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 202, 2), READ_US * US);
	flash_destroy(f);
}

static void times_do_not_depend_on_the_calls(void **state)
{
	struct flash *rare = filled(&fixture_params),
		     *f = filled(&fixture_params);
	struct flash_cmd a[50], b[50];
	u32 i;

	(void)state;
	for (i = 0; i < 50; i++) {
		a[i] = b[i] = i % 3 ? read_of(i * 5 % 200, 3) :
				      write_of(i * 7 % 200, 2);
		flash_submit(f, &a[i], i * US);
		flash_submit(rare, &b[i], i * US);
	}
	while (flash_outstanding(f))
		flash_advance(f, flash_next_ns(f), 1);
	while (flash_outstanding(rare))
		flash_advance(rare, 1000 * 1000 * US, 3);
	for (i = 0; i < 50; i++)
		assert_int_equal(a[i].done_ns, b[i].done_ns);
	fixture_settle(f, 0);
	fixture_settle(rare, 1000 * 1000 * US);
	flash_destroy(f);
	flash_destroy(rare);
}

static void the_budget_limits_a_call(void **state)
{
	struct flash *f = filled(&fixture_params);
	struct flash_cmd a = read_of(0, 1);

	(void)state;
	flash_submit(f, &a, 0);
	/* Controller, plane and channel are three events; done is a fourth. */
	assert_null(flash_advance(f, 1000 * US, 3));
	assert_int_equal(flash_next_ns(f), READ_US * US);
	assert_null(flash_advance(f, READ_US * US - 1, 1));
	assert_ptr_equal(flash_advance(f, 1000 * US, 1), &a);
	flash_destroy(f);
}

/* Commands ask for more flash reads than the controller tracks. */
static void reads_beyond_the_tracked_ones_wait(void **state)
{
	enum {
		CMDS = 2000
	};
	struct flash *f = filled(&fixture_params);
	struct flash_cmd *cmds = port_zalloc(CMDS * sizeof(*cmds));
	u64 last = 0;
	u32 i;

	(void)state;
	for (i = 0; i < CMDS; i++) {
		cmds[i] = read_of(i % 800, 64);
		flash_submit(f, &cmds[i], 0);
	}
	fixture_settle(f, 0);
	assert_int_equal(flash_outstanding(f), 0);
	for (i = 0; i < CMDS; i++)
		last = max(last, cmds[i].done_ns);
	/* 128 000 pages go over two channels, 10 us a page. */
	assert_in_range(last, 640 * 1000 * US, 2 * 640 * 1000 * US);
	port_free(cmds);
	flash_destroy(f);
}

static void times_can_be_changed(void **state)
{
	struct flash *f = filled(&fixture_params);
	struct flash_params slow = fixture_params;
	u64 now = 0;

	(void)state;
	slow.read_ns *= 3;
	flash_retime(f, &slow);
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 0, 1),
			 (READ_US + 100) * US);
	flash_destroy(f);
}

/* The second read has a shorter fixed time than the first. */
static void order_survives_a_change_of_times(void **state)
{
	struct flash *f = filled(&fixture_params);
	struct flash_params quick = fixture_params;
	struct flash_cmd a = read_of(0, 1), b = read_of(DIE_1, 1);

	(void)state;
	flash_submit(f, &a, 0);
	flash_submit(f, &b, 0);
	flash_advance(f, 61 * US, 1000);
	quick.read_fixed_ns = 0;
	flash_retime(f, &quick);
	fixture_settle(f, 61 * US);
	assert_int_equal(a.done_ns, READ_US * US);
	assert_int_equal(b.done_ns, READ_US * US);
	flash_destroy(f);
}

static void memory_is_overwritten_in_place(void **state)
{
	struct flash_params p = fixture_params;
	struct flash_usage usage;
	struct flash_cmd a, b;
	struct flash *f;
	u64 now = 0;

	(void)state;
	p.in_place = true;
	p.channel_ns = 0;
	f = fixture_create(&p, 8);
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 0, 2),
			 (1 + 50 + 2 + 5) * US);
	assert_int_equal(fixture_do(f, &now, FLASH_WRITE, 0, 2),
			 (1 + 500 + 2 + 3) * US);
	assert_int_equal(fixture_do(f, &now, FLASH_TRIM, 0, 2), (1 + 3) * US);
	assert_false(flash_usage(f, 0, &usage));
	assert_int_equal(flash_stats(f).programs, 0);
	flash_destroy(f);
	/* Pages 0 and 16 are on the same plane of eight, 0 and 2 are not. */
	a = read_of(0, 1);
	b = read_of(16, 1);
	both(fixture_create(&p, 8), &a, &b, 57, 51 + 50 + 1 + 5);
	a = read_of(0, 1);
	b = read_of(2, 1);
	both(fixture_create(&p, 8), &a, &b, 57, 58);
}

static u64 busy_us(const struct flash *f, u32 owner)
{
	struct flash_usage usage;

	flash_usage(f, owner, &usage);
	return usage.busy_ns / US;
}

/* A reader is an owner, too; its wait for a channel is not busy time. */
static void busy_time_is_charged_to_the_owner(void **state)
{
	struct flash *f = filled(&fixture_params);
	struct flash_cmd a = read_of(0, 1), b = read_of(PLANE_1, 2);
	struct flash_cmd w = write_of(0, 8);
	struct flash_spent spent;

	(void)state;
	assert_int_equal(busy_us(f, 1), 0);
	a.owner = 7;
	b.owner = 8;
	flash_submit(f, &a, 0);
	flash_submit(f, &b, 0);
	fixture_settle(f, 0);
	assert_int_equal(busy_us(f, 7), 50 + 10);
	assert_int_equal(busy_us(f, 8), 50 + 2 * 10);
	/* A program keeps both planes of the die busy. */
	w.owner = 7;
	flash_submit(f, &w, SECOND);
	fixture_settle(f, SECOND);
	assert_int_equal(busy_us(f, 7), 50 + 10 + 2 * (500 + 8 * 10));
	/* The same, by operation. */
	assert_true(flash_host_spent(f, &spent));
	assert_int_equal(spent.read_ns, (50 + 10 + 50 + 2 * 10) * US);
	assert_int_equal(spent.write_ns, 2 * (500 + 8 * 10) * US);
	/* Two planes have read, and both planes of a die have programmed. */
	assert_int_equal(spent.busy_ns, (2 * 50 + 2 * 500) * US);
	assert_int_equal(spent.planes, 8);
	flash_owner_move(f, 7, 8);
	assert_int_equal(busy_us(f, 7), 0);
	assert_int_equal(busy_us(f, 8), 50 + 20 + 50 + 10 + 2 * (500 + 8 * 10));
	flash_destroy(f);
}

enum {
	SPREAD_READS	= 2000,
	SPREAD_PERCENT	= 30,
	OTHER_US	= READ_US - 50,	/* a read's time outside the plane */
};

/* Reads of one page after the other on a drive of seed @seed: times in ns. */
static void spread_reads(u32 permille, u64 seed, u64 *ns)
{
	struct flash_params p = fixture_params;
	const struct flash_config c = {
		.params = &p,
		.bytes = 4 << 20,
		.owners = 2,
		.ftl = FLASH_FTL_HOST,
		.seed = seed,
	};
	struct flash_spent spent;
	u64 now = 0, sum = 0;
	struct flash *f;
	u32 i;

	p.read_spread_permille = permille;
	f = flash_create(&c);
	assert_non_null(f);
	fixture_fill(f, 1);
	for (i = 0; i < SPREAD_READS; i++) {
		ns[i] = fixture_do(f, &now, FLASH_READ, 0, 1) - OTHER_US * US;
		sum += ns[i];
	}
	/* The time of planes is that of these reads, with their transfers. */
	assert_true(flash_host_spent(f, &spent));
	assert_int_equal(spent.busy_ns, sum);
	assert_int_equal(spent.read_ns, sum + SPREAD_READS * 10ULL * US);
	flash_destroy(f);
}

/* The times of reads are even within 50 us and 30 % of them. */
static void reads_are_spread_evenly(void **state)
{
	static u64 ns[SPREAD_READS];
	const u64 half = 50 * US * SPREAD_PERCENT / 100;
	u64 sum = 0;
	u32 below[4] = { 0 }, i;

	(void)state;
	spread_reads(10 * SPREAD_PERCENT, 1, ns);
	for (i = 0; i < SPREAD_READS; i++) {
		assert_in_range(ns[i], 50 * US - half, 50 * US + half);
		below[min((ns[i] - 50 * US + half) / (half / 2), 3ULL)]++;
		sum += ns[i];
	}
	assert_in_range(sum / SPREAD_READS, 49 * US, 51 * US);
	for (i = 0; i < 4; i++)
		assert_in_range(below[i], SPREAD_READS / 4 - 100,
				SPREAD_READS / 4 + 100);
}

static void spread_follows_the_seed(void **state)
{
	static u64 first[SPREAD_READS], again[SPREAD_READS];
	static u64 other[SPREAD_READS], none[SPREAD_READS];
	u32 i;

	(void)state;
	spread_reads(300, 1, first);
	spread_reads(300, 1, again);
	spread_reads(300, 2, other);
	spread_reads(0, 1, none);
	assert_memory_equal(first, again, sizeof(first));
	assert_memory_not_equal(first, other, sizeof(first));
	for (i = 0; i < SPREAD_READS; i++)
		assert_int_equal(none[i], 50 * US);
}

/* A drive works until its u64 clock would wrap. */
static void time_may_be_near_its_end(void **state)
{
	struct flash *f = filled(&fixture_params);
	u64 now = ~0ULL - 1000 * US;

	(void)state;
	assert_int_equal(fixture_do(f, &now, FLASH_READ, 0, 1), READ_US * US);
	flash_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_read),
		cmocka_unit_test(reads_that_go_ahead_pass_others_at_a_plane),
		cmocka_unit_test(pages_of_one_flash_page_are_read_at_once),
		cmocka_unit_test(two_reads_share_what_both_need),
		cmocka_unit_test(the_link_is_shared),
		cmocka_unit_test(completes_out_of_order),
		cmocka_unit_test(an_unwritten_page_is_not_in_flash),
		cmocka_unit_test(a_write_is_done_when_buffered),
		cmocka_unit_test(a_unit_is_programmed_when_full),
		cmocka_unit_test(a_full_buffer_delays_writes),
		cmocka_unit_test(a_read_waits_for_a_program),
		cmocka_unit_test(read_burst_reads_pass_a_program),
		cmocka_unit_test(read_burst_counts_for_each_program),
		cmocka_unit_test(trims_and_flushes_take_no_flash_time),
		cmocka_unit_test(times_do_not_depend_on_the_calls),
		cmocka_unit_test(the_budget_limits_a_call),
		cmocka_unit_test(reads_beyond_the_tracked_ones_wait),
		cmocka_unit_test(times_can_be_changed),
		cmocka_unit_test(order_survives_a_change_of_times),
		cmocka_unit_test(memory_is_overwritten_in_place),
		cmocka_unit_test(busy_time_is_charged_to_the_owner),
		cmocka_unit_test(reads_are_spread_evenly),
		cmocka_unit_test(spread_follows_the_seed),
		cmocka_unit_test(time_may_be_near_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
