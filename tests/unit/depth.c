// SPDX-License-Identifier: GPL-2.0
/* The trials of depth.h on drives with known curves of throughput. */
#include "unit.h"
#include "sched/isolation/depth.h"

#include <math.h>

enum {
	LOOK_NS		= 2 * 1000 * 1000,
	REQUEST		= 4096,
	SETTLED		= 4000,		/* looks */
	MOST		= 1024,
	RATE		= 4000,		/* requests of a full drive in a look */
};

/*
 * A drive with @n requests inside does RATE * n / (n + soft) of them in a look,
 * or, with a knee, RATE * n / knee of them and at most RATE.
 */
struct drive {
	double soft, knee;
	double noise;			/* relative, at most */
	double missed;			/* of the work, by flows with D > .. */
	u32 missed_above;
	struct random *random;
};

static double done_at(const struct drive *c, u32 n)
{
	if (c->knee > 0)
		return RATE * fmin(1, n / c->knee);
	return RATE * n / (n + c->soft);
}

/* A user, or tick, calls depth_next() once per look. */
struct tuner {
	struct depth d;
	u32 now, most;
	u32 trials;
	u64 missed;			/* since D was changed */
	double lost;			/* looks' worth of work, by trials */
	double worked;
};

static struct depth_look look_at(struct tuner *x, const struct drive *c)
{
	double done = done_at(c, x->now), noise = 0;
	struct depth_look l = { .ns = LOOK_NS, .waits = true };

	if (c->random)
		noise = c->noise *
			((double)random_below(c->random, 2001) / 1000 - 1);
	l.done = (u64)(done * (1 + noise));
	l.bytes = l.done * REQUEST;
	l.cost = l.bytes;
	if (x->d.looks <= DEPTH_FILL_LOOKS)
		x->missed = 0;
	if (x->now > c->missed_above)
		x->missed += (u64)(c->missed * (double)l.cost);
	l.missed = x->missed;
	return l;
}

static void step(struct tuner *x, const struct drive *c)
{
	struct depth_look l = look_at(x, c);
	double base = done_at(c, x->d.base ? x->d.base : x->now);
	u32 next;

	x->worked += 1;
	x->lost += fmax(0, 1 - done_at(c, x->now) / base);
	next = depth_next(&x->d, &l, x->now, x->most);
	assert_in_range(next, 1, x->most);
	x->trials += next != x->now && x->d.trial == next;
	x->now = next;
}

static void run(struct tuner *x, const struct drive *c, u32 looks)
{
	while (looks--)
		step(x, c);
}

/* The D at which it ends; a trial may be under way. */
static u32 settle_from(u32 start, u32 most, const struct drive *c)
{
	struct tuner x = { .now = start, .most = most };

	run(&x, c, SETTLED);
	return x.d.base;
}

/* The least D that brings 99 % of what @most brings. */
static u32 least_enough(const struct drive *c, u32 most)
{
	u32 n = 1;

	while (done_at(c, n) < 0.99 * done_at(c, most))
		n++;
	return n;
}

/* Returns the greatest D for which the double still does 2 % more. */
static u32 greatest_that_pays(const struct drive *c, u32 most)
{
	u32 n = most;

	while (n > 1 && done_at(c, min(2 * n, most)) < 1.02 * done_at(c, n))
		n--;
	return n;
}

/*
 * A soft curve has two answers: double pays 2 % below 24.5 * soft, and half
 * costs 1 % below 98 * soft.  From above the trials end below the second, and
 * from below they end above the first.
 */
TEST(soft_curve_ends_where_neither_direction_pays)
{
	static const double softs[] = { 0.1, 0.3, 1, 2.5, 8 };
	u32 i, start;

	for (i = 0; i < ARRAY_SIZE(softs); i++) {
		const struct drive c = { .soft = softs[i] };

		for (start = 1; start <= MOST; start *= 2) {
			u32 base = settle_from(start, MOST, &c);
			u32 pays = greatest_that_pays(&c, 1 << 20);

			assert_true(2 * base > pays);
			assert_true(base >= min(pays, (u32)MOST) ||
				    base == MOST);
			assert_true(base <= fmax(98 * softs[i], 4));
			/* It stays there. */
			if (base > 4)
				assert_true(done_at(&c, base / 2) <
					    0.99 * done_at(&c, base));
			assert_true(done_at(&c, 2 * base) <
					    1.02 * done_at(&c, base) ||
				    base == MOST);
		}
	}
}

TEST(sharp_curve_ends_within_a_factor_of_two)
{
	static const double knees[] = { 4, 5, 16, 23, 64, 100, 500, 1024 };
	u32 i, start;

	for (i = 0; i < ARRAY_SIZE(knees); i++) {
		const struct drive c = { .knee = knees[i] };
		u32 enough = least_enough(&c, MOST);

		for (start = 1; start <= MOST; start *= 2) {
			u32 base = settle_from(start, MOST, &c);

			assert_in_range(base, enough, max(2 * enough, 4U));
		}
	}
}

/* Half a percent of noise is less than the margins of both directions. */
TEST(noise_does_not_move_it)
{
	struct random r = random_seeded("unit/depth");
	const struct drive c = { .knee = 64, .noise = 0.004, .random = &r };
	u64 round;

	for (round = 0; round < random_rounds(20); round++) {
		u32 base = settle_from(1 + random_below(&r, MOST), MOST, &c);

		assert_in_range(base, 63, 128);
	}
}

TEST(it_stays_within_its_range)
{
	static const u32 mosts[] = { 1, 2, 3, 4, 5, 7, 31, 100 };
	const struct drive always = { .knee = 200 };
	const struct drive never = { .knee = 1 };
	u32 i, start;

	/* step() checks each D. */
	for (i = 0; i < ARRAY_SIZE(mosts); i++)
		for (start = 1; start <= mosts[i]; start++) {
			u32 base = settle_from(start, mosts[i], &always);

			assert_in_range(base, mosts[i] * 100 / 102, mosts[i]);
			/* 4 is the least that it tries. */
			assert_int_equal(settle_from(start, mosts[i], &never),
					 min(start, 4U));
		}
}

/* The range has become smaller: the device takes fewer requests. */
TEST(it_obeys_a_range_that_shrinks)
{
	const struct drive c = { .knee = 64 };
	struct tuner x = { .now = 64, .most = MOST };

	run(&x, &c, 2);
	x.most = 32;
	run(&x, &c, 100);
	assert_int_equal(x.d.base, 32);
}

TEST(it_begins_anew_when_another_d_is_set)
{
	const struct drive c = { .knee = 64 };
	struct tuner x = { .now = 64, .most = MOST };

	run(&x, &c, SETTLED);
	assert_true(x.d.wait > 64);
	x.now = 512;
	step(&x, &c);
	assert_int_equal(x.d.base, 512);
	assert_int_equal(x.d.wait, 4);
	run(&x, &c, 260);
	assert_in_range(x.d.base, 63, 128);
	/* In the middle of a trial too. */
	while (!x.d.trial)
		step(&x, &c);
	x.now = 8;
	step(&x, &c);
	assert_int_equal(x.d.base, 8);
	assert_int_equal(x.d.trial, 0);
	assert_int_equal(x.now, 8);
}

/* The same D, set again by a user during a trial of another, ends the trial. */
TEST(it_begins_anew_when_base_is_set_in_a_trial)
{
	const struct drive c = { .knee = 64 };
	struct tuner x = { .now = 64, .most = MOST };

	while (!x.d.trial)
		step(&x, &c);
	x.now = 64;
	step(&x, &c);
	assert_int_equal(x.now, 64);
	assert_int_equal(x.d.trial, 0);
}

/* At worst a trial does half of the work, and takes three looks. */
TEST(trials_become_rare)
{
	static const double knees[] = { 64, 100, 127 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(knees); i++) {
		const struct drive c = { .knee = knees[i] };
		struct tuner x = { .now = 128, .most = 128 };
		u32 trials;

		run(&x, &c, 1000);
		assert_true(x.lost < 0.01 * x.worked);
		/* It goes on looking, but not often. */
		trials = x.trials;
		x.lost = 0;
		run(&x, &c, 10000);
		assert_in_range(x.trials - trials, 4, 12);
		assert_true(x.lost < 0.001 * 10000);
	}
}

/* The mix of requests has changed: the next trial finds the new D. */
TEST(it_follows_a_drive_that_changes)
{
	const struct drive small = { .knee = 16 }, large = { .knee = 512 };
	struct tuner x = { .now = 16, .most = MOST };

	run(&x, &small, 2000);
	assert_in_range(x.d.base, 15, 32);
	run(&x, &large, 3000);
	assert_in_range(x.d.base, 507, 1024);
	run(&x, &small, 3000);
	assert_in_range(x.d.base, 15, 32);
}

/* Beyond 32 the drive is faster, but orders the requests. */
TEST(shares_come_before_throughput)
{
	const struct drive fair = { .knee = 512, .missed_above = MOST };
	const struct drive unfair = { .knee = 512,
				      .missed = 0.05,
				      .missed_above = 32 };
	/* They are missed already at the lower D. */
	const struct drive lost = { .knee = 512, .missed = 0.05 };
	/* Less than 1 % of the work. */
	const struct drive little = { .knee = 512,
				      .missed = 0.008,
				      .missed_above = 32 };

	assert_in_range(settle_from(8, MOST, &fair), 507, 1024);
	assert_int_equal(settle_from(8, MOST, &unfair), 32);
	assert_in_range(settle_from(8, MOST, &lost), 507, 1024);
	assert_in_range(settle_from(8, MOST, &little), 507, 1024);
	/* From above it comes down by trials of half alone. */
	assert_in_range(settle_from(MOST, MOST, &unfair), 507, 1024);
}

/*
 * A flow is some requests behind at first, and not more of them later: after
 * 1024 requests these are 2 % of the work, after 4096 a half percent.
 */
TEST(a_few_requests_behind_do_not_count)
{
	struct depth d = { 0 };
	struct depth_look l = { .ns = LOOK_NS, .waits = true };
	u32 now = 8, looks;

	for (looks = 0; looks < 400 && d.base != 16; looks++) {
		l.done = 10 * now;
		l.bytes = l.done * REQUEST;
		l.cost = l.bytes;
		l.missed = d.trial > d.base ? 20 * REQUEST : 0;
		now = depth_next(&d, &l, now, MOST);
	}
	assert_int_equal(d.base, 16);
}

TEST(nothing_is_tried_while_no_queue_waits)
{
	const struct drive c = { .knee = 64 };
	struct tuner x = { .now = 256, .most = MOST };
	struct depth_look l;
	u32 i;

	for (i = 0; i < 1000; i++) {
		l = look_at(&x, &c);
		l.waits = false;
		assert_int_equal(depth_next(&x.d, &l, x.now, x.most), 256);
	}
	/* A trial that is under way ends, and D is what it was. */
	while (!x.d.trial)
		step(&x, &c);
	assert_int_not_equal(x.now, 256);
	l = look_at(&x, &c);
	l.waits = false;
	x.now = depth_next(&x.d, &l, x.now, x.most);
	assert_int_equal(x.now, 256);
	assert_int_equal(x.d.trial, 0);
	/* Looks without waiting do not count, and those before count no more. */
	run(&x, &c, 4);
	assert_int_not_equal(x.d.looks, 0);
	l = look_at(&x, &c);
	l.waits = false;
	x.now = depth_next(&x.d, &l, x.now, x.most);
	assert_int_equal(x.d.done, 0);
	assert_int_equal(x.d.looks, 0);
}

/* The drive is as full as D allows only after some looks. */
TEST(first_looks_at_a_new_d_do_not_count)
{
	struct depth d = { 0 };
	struct depth_look l = { .ns = LOOK_NS, .waits = true };
	u32 now = 64, i, seen = 0;

	for (i = 0; i < 400; i++) {
		/* The first two looks of a trial show nothing at all. */
		bool filling = d.looks < DEPTH_FILL_LOOKS;

		l.done = filling ? 0 :
				   (u64)done_at(&(struct drive){ .knee = 32 },
						now);
		l.bytes = l.cost = l.done * REQUEST;
		seen += filling;
		now = depth_next(&d, &l, now, MOST);
	}
	assert_true(seen >= 6);
	assert_in_range(d.base, 32, 63);
}

/* Few requests do not decide, however many looks they take. */
TEST(few_requests_decide_nothing)
{
	struct depth d = { 0 };
	struct depth_look l = { .ns = LOOK_NS,
				.done = 1,
				.bytes = REQUEST,
				.cost = REQUEST,
				.waits = true };
	u32 i;

	for (i = 0; i < 1000; i++)
		assert_int_equal(depth_next(&d, &l, 64, MOST), 64);
	/* The 1024th request begins a trial, and a thousand do not end it. */
	while (!d.trial) {
		depth_next(&d, &l, 64, MOST);
		assert_true(++i < 1100);
	}
	for (i = 0; i < 1000; i++)
		assert_int_equal(depth_next(&d, &l, 32, MOST), 32);
}

/* A trial that does much less ends after a quarter of the requests. */
TEST(a_bad_trial_ends_early)
{
	struct depth d = { 0 };
	struct depth_look l = { .ns = LOOK_NS,
				.done = 100,
				.bytes = 100 * REQUEST,
				.cost = 100 * REQUEST,
				.waits = true };
	u32 now = 64, looks = 0;

	while (d.trial != 32)
		now = depth_next(&d, &l, now, 64);
	assert_int_equal(now, 32);
	l.done = 80;
	l.bytes = l.cost = 80 * REQUEST;
	while (d.trial) {
		now = depth_next(&d, &l, now, 64);
		looks++;
	}
	/* 256 requests at 80 in a look, after two that do not count. */
	assert_int_equal(looks, DEPTH_FILL_LOOKS + 4);
	assert_int_equal(now, 64);
}

/* ------------------------------------------------------- each bound, exactly */

enum {
	EXACT_NS	= 1 << 20,	/* so that a rate is the bytes of a look */
	EXACT_RATE	= 5000,
};

struct exact {
	struct depth d;
	u32 now, most;			/* most 0: MOST */
};

/* A look in which @done requests of together @bytes were done. */
static void exact_look(struct exact *x, u64 bytes, u64 done, u64 missed)
{
	const struct depth_look l = {
		.ns = EXACT_NS,
		.bytes = bytes,
		.cost = bytes,
		.done = done,
		.missed = missed,
		.waits = true,
	};

	x->now = depth_next(&x->d, &l, x->now, x->most ? x->most : MOST);
}

/* Fills the drive, then counts @looks of it. */
static void exact_looks(struct exact *x, u64 bytes, u64 done, u32 looks)
{
	u32 i;

	for (i = 0; i < DEPTH_FILL_LOOKS; i++)
		exact_look(x, 0, 0, 0);
	for (i = 0; i < looks; i++)
		exact_look(x, bytes, done, 0);
}

/* A trial of 32 or of 128 has begun; at 64 the rate is EXACT_RATE. */
static void exact_begin(struct exact *x, bool up)
{
	*x = (struct exact){ .now = 64 };
	exact_looks(x, EXACT_RATE, 512, 2);
	assert_int_equal(x->d.trial, 128);
	if (up)
		return;
	/* This trial fails, and the wait becomes 8 looks. */
	exact_looks(x, 1, 64, 1);
	assert_int_equal(x->now, 64);
	x->d.allowed = 2000;
	exact_looks(x, EXACT_RATE, 512, 6);
	assert_int_equal(x->d.trial, 32);
}

TEST(half_needs_99_percent)
{
	struct exact x;

	exact_begin(&x, false);
	exact_looks(&x, 4950, 1024, 1);
	assert_int_equal(x.d.base, 32);
	exact_begin(&x, false);
	exact_looks(&x, 4949, 1024, 1);
	assert_int_equal(x.d.base, 64);
}

TEST(double_needs_2_percent)
{
	struct exact x;

	exact_begin(&x, true);
	exact_looks(&x, 5100, 1024, 1);
	assert_int_equal(x.d.base, 128);
	exact_begin(&x, true);
	exact_looks(&x, 5099, 1024, 1);
	assert_int_equal(x.d.base, 64);
}

TEST(a_trial_needs_1024_requests)
{
	struct exact x;

	exact_begin(&x, false);
	exact_looks(&x, 5000, 1023, 1);
	assert_int_equal(x.d.trial, 32);
	exact_look(&x, 5000, 1, 0);
	assert_int_equal(x.d.base, 32);
}

/* At 5/8 of the work or less, 64 requests show it. */
TEST(a_trial_ends_at_once_at_5_eighths)
{
	struct exact x;

	exact_begin(&x, false);
	exact_looks(&x, 3126, 255, 1);
	assert_int_equal(x.d.trial, 32);
	exact_begin(&x, false);
	exact_looks(&x, 3125, 63, 1);
	assert_int_equal(x.d.trial, 32);
	exact_look(&x, 3125, 1, 0);
	assert_int_equal(x.d.trial, 0);
}

TEST(a_trial_ends_early_below_7_eighths)
{
	struct exact x;

	exact_begin(&x, false);
	exact_looks(&x, 4375, 256, 1);
	assert_int_equal(x.d.trial, 32);
	exact_begin(&x, false);
	exact_looks(&x, 4374, 255, 1);
	assert_int_equal(x.d.trial, 32);
	exact_look(&x, 4374, 1, 0);
	assert_int_equal(x.d.trial, 0);
	assert_int_equal(x.now, 64);
}

TEST(shares_may_be_missed_by_1_percent_more)
{
	struct exact x;

	/* 10,200 bytes in two looks: 102 of them are 10 in a thousand. */
	exact_begin(&x, true);
	exact_looks(&x, 5100, 1000, 1);
	exact_look(&x, 5100, 24, 102);
	assert_int_equal(x.d.base, 128);
	exact_begin(&x, true);
	exact_looks(&x, 5100, 1000, 1);
	exact_look(&x, 5100, 24, 113);
	assert_int_equal(x.d.trial, 128);
	/* They are missed for 8192 requests: that is the end. */
	exact_look(&x, 5100, 8191 - 1024, 1000);
	assert_int_equal(x.d.trial, 128);
	exact_look(&x, 5100, 1, 1000);
	assert_int_equal(x.d.trial, 0);
	assert_int_equal(x.d.base, 64);
}

TEST(a_trial_begins_after_its_wait)
{
	struct exact x = { .now = 64 };

	/* Four looks, two of which do not count. */
	exact_looks(&x, EXACT_RATE, 2000, 1);
	assert_int_equal(x.d.trial, 0);
	exact_look(&x, EXACT_RATE, 2000, 0);
	assert_int_equal(x.d.trial, 128);
	/* 1024 requests. */
	x = (struct exact){ .now = 64 };
	exact_looks(&x, EXACT_RATE, 1, 1023);
	assert_int_equal(x.d.trial, 0);
	exact_look(&x, EXACT_RATE, 1, 0);
	assert_int_equal(x.d.trial, 128);
}

/* Begins at 64, the most, so that the next trial is one of half. */
static void exact_half(struct exact *x)
{
	*x = (struct exact){ .now = 64, .most = 64 };
	exact_looks(x, EXACT_RATE, 512, 2);
	assert_int_equal(x->d.trial, 0);
}

/* The 200th look has allowed 2000 thousandths of the work of a look. */
TEST(half_waits_until_its_price_is_allowed)
{
	struct exact x;

	exact_half(&x);
	while (x.d.allowed < 1990) {
		exact_look(&x, EXACT_RATE, 512, 0);
		assert_int_equal(x.now, 64);
	}
	exact_look(&x, EXACT_RATE, 512, 0);
	assert_int_equal(x.d.allowed, 2000);
	assert_int_equal(x.d.trial, 32);
}

/* Two looks of filling and one more, at half of the work: 1.5 looks are lost. */
TEST(a_failed_trial_is_paid)
{
	struct exact x;

	exact_half(&x);
	while (!x.d.trial)
		exact_look(&x, EXACT_RATE, 512, 0);
	exact_looks(&x, EXACT_RATE / 2, 256, 1);
	assert_int_equal(x.d.trial, 0);
	assert_int_equal(x.d.allowed, 2030 - 1500);
	/* A trial that does more work than before costs nothing. */
	exact_begin(&x, true);
	x.d.allowed = 100;
	exact_looks(&x, EXACT_RATE + 50, 1024, 1);
	assert_int_equal(x.d.base, 64);
	assert_int_equal(x.d.trial, 0);
	assert_int_equal(x.d.allowed, 130);
}

/* After a long time the allowance is that of 2000 looks, and no more. */
TEST(the_allowance_has_a_limit)
{
	struct depth d = { 0 };
	struct depth_look l = { .ns = LOOK_NS, .waits = true };
	u32 i;

	for (i = 0; i < 2500; i++)
		depth_next(&d, &l, 64, MOST);
	assert_int_equal(d.allowed, 20000);
}

/*
 * 32 slots of 16 ms: half of the slots do half of the work.  Trials lose at most
 * 1 % in any time from the start on, and the price of one beyond it.
 */
TEST(trials_cost_one_percent_where_slots_are_the_limit)
{
	struct depth d = { 0 };
	struct depth_look l = { .ns = LOOK_NS, .waits = true };
	u32 now = 32, i;
	double lost = 0;

	for (i = 1; i < 20000; i++) {
		l.done = 2 * now;
		l.bytes = l.cost = l.done * REQUEST;
		lost += 1 - now / 32.0;
		now = depth_next(&d, &l, now, 32);
		assert_true(lost <= 0.01 * i + 1);
		assert_true(i > 199 || !d.trial);
	}
	assert_true(lost > 2);
	assert_int_equal(d.base, 32);
}

TEST(settling_ends_a_trial)
{
	const struct drive c = { .knee = 64 };
	struct tuner x = { .now = 64, .most = MOST };

	/* Nothing has begun. */
	assert_int_equal(depth_settle(&x.d, 77), 77);
	step(&x, &c);
	assert_int_equal(depth_settle(&x.d, 64), 64);
	while (!x.d.trial)
		step(&x, &c);
	step(&x, &c);
	assert_int_equal(x.d.looks, 1);
	assert_int_equal(depth_settle(&x.d, x.now), 64);
	assert_int_equal(x.d.trial, 0);
	assert_int_equal(x.d.looks, 0);
	assert_int_equal(x.d.done, 0);
	/* The trial has failed, so the other direction is next, and later. */
	assert_false(x.d.up);
	assert_int_equal(x.d.wait, 8);
	/* A user has set another D meanwhile, which stays. */
	x.now = 64;
	while (!x.d.trial)
		step(&x, &c);
	assert_int_equal(depth_settle(&x.d, 7), 7);
}

/*
 * The flows are short at each double D, so tick settles after a look at it.
 * The trials become rare.
 */
TEST(settled_trials_become_rare)
{
	const struct drive c = { .soft = 8 };
	struct tuner x = { .now = 256, .most = MOST };
	u32 i;

	for (i = 0; i < SETTLED; i++) {
		step(&x, &c);
		if (x.d.trial > x.d.base && x.d.looks)
			x.now = depth_settle(&x.d, x.now);
	}
	assert_int_equal(x.d.base, 256);
	assert_in_range(x.trials, 4, 20);
}

/* A trial that is settled before the drive was full has lost nothing. */
TEST(a_trial_settled_at_once_is_not_paid)
{
	struct exact x;

	exact_begin(&x, true);
	x.d.allowed = 100;
	exact_look(&x, EXACT_RATE / 2, 256, 0);
	assert_int_equal(depth_settle(&x.d, x.now), 64);
	assert_int_equal(x.d.allowed, 110);
	/* Afterwards it has: here half of the work of three looks. */
	exact_begin(&x, true);
	x.d.allowed = 3000;
	exact_looks(&x, EXACT_RATE / 2, 60, 1);
	assert_int_equal(x.d.trial, 128);
	assert_int_equal(depth_settle(&x.d, x.now), 64);
	assert_int_equal(x.d.allowed, 3030 - 1500);
}
