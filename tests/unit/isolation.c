// SPDX-License-Identifier: GPL-2.0
/*
 * Looks at a reader and its neighbours, by counters that the test sets.
 *
 * The reader has weight 1000 and keeps one request of 4 KiB.  The others have
 * weight 100 and keep 50 of 64 KiB.  The drive does 100 requests of theirs in a
 * look of 2 ms.  The scheduler is drr.
 */
#include "hooks.h"
#include "sched/core/engine.h"
#include "sched/core/policies.h"
#include "sched/core/report.h"

enum {
	LOOK_NS		= LOOK_LEAST_NS,
	DEPTH		= 64,
};

/* The work of a flow in each look. */
struct act {
	u32 done, bytes;
	u64 service_ns, wait_ns;	/* of each request */
	u32 inside;			/* requests in the drive all the time */
	u32 waiting;			/* requests outside all the time */
};

struct scene {
	struct hooks h;
	struct flow *reader, *others;
	struct act reads, other;
	struct wake wake;
};

static const struct act slow_reads = {
	.done = 2, .bytes = 4096, .service_ns = MS, .inside = 1,
};
static const struct act deep = {
	.done = 100,
	.bytes = 65536,
	.service_ns = MS,
	.wait_ns = 3 * MS,
	.inside = 50,
	.waiting = 1,
};
static const struct act nothing = { 0 };

#define US	1000ULL

/* Looks for one number of a report. */
struct wanted {
	struct report report;
	const char *name;
	s64 value;
};

static void take_wanted(struct report *r, const char *name, const char *part,
			s64 value)
{
	struct wanted *w = container_of(r, struct wanted, report);

	(void)part;
	if (!strcmp(name, w->name))
		w->value = value;
}

static struct isolation *iso(struct scene *x)
{
	return &x->h.sched.isolation;
}

static struct slots *slots(struct scene *x)
{
	return &((struct engine *)x->h.sched.own)->slots;
}

static struct isolation_flow *reader(struct scene *x)
{
	return &x->reader->isolation;
}

static void first_io(struct scene *x, struct flow *f)
{
	struct io *io = hooks_insert(&x->h, 0, f, 4096, 0);
	struct flow_totals t;

	assert_ptr_equal(hooks_dispatch(&x->h, 0, DISPATCH_IO), io);
	hooks_complete(&x->h, io);
	/* It is not of a look. */
	flow_totals(f, &t);
	f->isolation.seen = (struct isolation_counts){
		t.done,
		t.cost,
		t.wait_ns,
		t.service_ns,
	};
}

static void tick(struct scene *x)
{
	wake_init(&x->wake);
	isolation_tick(&x->h.sched, x->h.now, &x->wake);
}

/* @most: of a D that is found, or 0. */
static void scene_open(struct scene *x, u32 percent, u32 most)
{
	struct sched_params p;

	*x = (struct scene){ .reads = slow_reads, .other = deep };
	sched_params_init(&drr_ops, &p);
	p.depth = DEPTH;
	p.depth_most = most;
	p.isolation = percent;
	hooks_open(&x->h, &drr_ops, &p, 2);
	wake_init(&x->wake);
	if (!most) {
		/* It has grown. */
		window_begin(&iso(x)->window, DEPTH, false);
		iso(x)->size = DEPTH;
		slots_limit(slots(x), DEPTH, &x->wake);
	}
	x->reader = hooks_flow(&x->h, 1000);
	x->others = hooks_flow(&x->h, 100);
	first_io(x, x->reader);
	first_io(x, x->others);
	tick(x);
}

static void scene_close(struct scene *x)
{
	assert_int_equal(slots_used(slots(x)), 0);
	hooks_close(&x->h);
}

/* @ns pass; the flow does its work in queue 1. */
static void do_work(struct flow *f, const struct act *a, u64 ns)
{
	struct flow_queue *fq = f->fq[1];
	u64 now = a->done * ns / LOOK_NS;
	u64 done = (u64)atomic64_read(&fq->done) + now;

	fq->dispatched = done + a->inside;
	fq->inserted = fq->dispatched + a->waiting;
	fq->wait_ns += now * a->wait_ns;
	atomic64_set(&fq->done, (s64)done);
	atomic64_add((s64)now * a->bytes, &fq->cost);
	atomic64_add((s64)(now * a->service_ns), &fq->service_ns);
}

static void look(struct scene *x)
{
	u64 ns = iso(x)->at_ns - x->h.now;

	if (x->reader)
		do_work(x->reader, &x->reads, ns);
	do_work(x->others, &x->other, ns);
	x->h.now += ns;
	tick(x);
}

static void looks(struct scene *x, u32 n)
{
	while (n--)
		look(x);
}

/* ---------------------------------------------------------------- the looks */

TEST(looks_come_at_their_time)
{
	struct scene x;
	u32 before;

	scene_open(&x, 8, 0);
	assert_int_equal(x.wake.at_ns, x.h.now + LOOK_NS);
	look(&x);
	assert_int_equal(iso(&x)->nr_looks, 1);
	before = iso(&x)->nr_looks;
	x.h.now += LOOK_NS / 2;
	tick(&x);
	assert_int_equal(iso(&x)->nr_looks, before);
	scene_close(&x);
}

/* A request takes 20 ms, so a look takes 40, however often tick is called. */
TEST(looks_are_as_long_as_the_drive_is_slow)
{
	struct scene x;

	scene_open(&x, 8, 0);
	x.other.service_ns = x.reads.service_ns = 20 * MS;
	looks(&x, 20);
	assert_in_range(iso(&x)->at_ns - iso(&x)->look_ns, 38 * MS, 40 * MS);
	scene_close(&x);
}

/* Until as many requests are done as are inside. */
TEST(look_lasts_for_a_turnover)
{
	struct scene x;

	scene_open(&x, 8, 0);
	x.other.done = 20;
	look(&x);
	assert_int_equal(iso(&x)->mean_ns, 0);
	looks(&x, 3);
	assert_int_equal(iso(&x)->mean_ns, MS);
	scene_close(&x);
}

TEST(a_drive_that_stands_still_decides_nothing)
{
	struct scene x;

	scene_open(&x, 8, 512);
	x.h.queue[1].stats.no_slot++;
	x.other.done = x.reads.done = 0;
	x.h.now += 2ULL * LOOK_MOST_NS;
	do_work(x.others, &x.other, LOOK_NS);
	tick(&x);
	assert_int_equal(iso(&x)->window.size, DEPTH);
	scene_close(&x);
}

TEST(a_lone_flow_is_looked_at_rarely)
{
	struct scene x;

	scene_open(&x, 8, 0);
	looks(&x, 2);
	hooks_flow_gone(&x.h, x.reader);
	x.reader = NULL;
	/* No trial is under way, and none is due. */
	iso(&x)->window.other = 0;
	iso(&x)->window.half.looks = 100;
	look(&x);
	assert_int_equal(iso(&x)->at_ns - iso(&x)->look_ns, 16 * LOOK_NS);
	first_io(&x, hooks_flow(&x.h, 100));
	tick(&x);
	assert_int_equal(iso(&x)->at_ns - x.h.now, LOOK_NS);
	scene_close(&x);
}

/* ----------------------------------------------------------------- passing */

TEST(a_flow_below_its_due_passes)
{
	struct scene x;
	u64 pos, part;

	scene_open(&x, 8, 0);
	look(&x);
	assert_false(reader(&x)->passes);
	look(&x);
	assert_true(reader(&x)->passes);
	assert_false(x.others->isolation.passes);
	/* Two parts ahead at first, and at most. */
	pos = (u64)atomic64_read(&x.reader->pos);
	part = (100 * 65536 + 2 * 4096) * 10ULL / 11;
	assert_in_range(reader(&x)->pass_until - pos, 2 * part - part / 100,
			2 * part);
	looks(&x, 5);
	assert_in_range(reader(&x)->pass_until - pos, 2 * part - part / 100,
			2 * part);
	scene_close(&x);
}

/* It moves on by a part in a look, and the limit to its requests by as much. */
TEST(what_passes_is_bounded_by_the_due)
{
	struct scene x;
	u64 until, part;

	scene_open(&x, 8, 0);
	looks(&x, 2);
	until = reader(&x)->pass_until;
	part = (100 * 65536 + 2 * 4096) * 10ULL / 11;
	atomic64_add((s64)(2 * part), &x.reader->pos);
	look(&x);
	assert_in_range(reader(&x)->pass_until - until, part - part / 100,
			part);
	scene_close(&x);
}

TEST(a_flow_that_has_its_due_does_not_pass)
{
	struct scene x;

	scene_open(&x, 8, 0);
	x.reads.bytes = 65536;
	x.reads.done = 800;
	looks(&x, 4);
	assert_false(reader(&x)->passes);
	assert_int_equal(reader(&x)->pass_until, 0);
	scene_close(&x);
}

/* The order outside gives it its due.  A burst that waits for three looks passes. */
TEST(a_flow_with_a_backlog_does_not_pass)
{
	struct scene x;

	scene_open(&x, 8, 0);
	x.reads.bytes = 65536;
	x.reads.done = 70;
	x.reads.inside = 70;
	looks(&x, 8);
	assert_true(reader(&x)->passes);
	x.reads.waiting = 20;
	looks(&x, 3);
	assert_true(reader(&x)->passes);
	looks(&x, 1);
	assert_false(reader(&x)->passes);
	x.reads.waiting = 0;
	looks(&x, 1);
	assert_true(reader(&x)->passes);
	scene_close(&x);
}

/* The others get nothing, for a quarter of a second and more. */
TEST(a_flow_does_not_pass_one_that_lacks_more)
{
	struct scene x;
	struct flow *third;

	scene_open(&x, 8, 0);
	third = hooks_flow(&x.h, 100);
	first_io(&x, third);
	looks(&x, 2);
	assert_true(reader(&x)->passes);
	x.reads.bytes = 65536;
	x.reads.done = 60;
	x.other.done = 60;
	third->fq[1]->inserted += 5;
	looks(&x, 200);
	assert_true(third->isolation.turns.lacks > 900);
	assert_false(reader(&x)->passes);
	third->fq[1]->inserted -= 5;
	scene_close(&x);
}

TEST(isolation_0_is_none)
{
	struct scene x;

	scene_open(&x, 0, 0);
	assert_int_equal(x.wake.at_ns, 0);
	assert_int_equal(iso(&x)->look_ns, 0);
	assert_int_equal(slots(&x)->tree.depth, DEPTH);
	scene_close(&x);
	/* D is found, and no flow passes or lacks anything. */
	scene_open(&x, 0, 512);
	looks(&x, 4);
	assert_false(reader(&x)->passes);
	assert_int_equal(iso(&x)->window.met, MET_WHOLE);
	scene_close(&x);
}

TEST(nothing_is_left_when_no_flow_is_active)
{
	struct scene x;

	scene_open(&x, 8, 0);
	looks(&x, 3);
	assert_true(reader(&x)->pass_until);
	hooks_flow_gone(&x.h, x.others);
	hooks_flow_gone(&x.h, x.reader);
	tick(&x);
	assert_int_equal(iso(&x)->look_ns, 0);
	assert_int_equal(x.wake.at_ns, 0);
	x.reader = x.others = NULL;
	scene_close(&x);
}

/* ------------------------------------------------------------- what it lacks */

/* Thousandths of what it asks for. */
static u32 lack(struct scene *x)
{
	return 1000 - (u32)(1000ULL * iso(x)->window.met / MET_WHOLE);
}

/* The reader is due 10/11, and gets 8 KiB of 6.5 MiB. */
TEST(an_unknown_flow_asks_for_its_due)
{
	struct scene x;

	scene_open(&x, 8, 0);
	/* The first look does not count, and the mean takes time. */
	looks(&x, 6);
	assert_in_range(lack(&x), 700, 800);
	assert_int_equal(reader(&x)->short_ns, 5 * LOOK_NS);
	/* No window helps it, so the drive is not the cause. */
	looks(&x, 60);
	assert_in_range(lack(&x), 0, 30);
	assert_int_equal(iso(&x)->window.size, DEPTH);
	scene_close(&x);
}

/* It does 40 reads alone, and 2 now: it lacks 19 of 20. */
TEST(a_flow_asks_for_what_it_had_alone)
{
	struct scene x;

	scene_open(&x, 8, 0);
	x.reads.done = 40;
	x.reads.service_ns = MS / 20;
	x.other = nothing;
	looks(&x, 4);
	assert_int_equal(reader(&x)->least_ns, MS / 20);
	x.reads = slow_reads;
	x.other = deep;
	/* What it had fades. */
	looks(&x, 8);
	assert_in_range(lack(&x), 700, 900);
	/* The drive is not the cause of what it does not send. */
	x.reads.service_ns = MS / 20;
	looks(&x, 30);
	assert_in_range(lack(&x), 0, 3);
	scene_close(&x);
}

/* Requests of another size: what was known is not theirs. */
TEST(other_sizes_are_learned_anew)
{
	struct scene x;

	scene_open(&x, 8, 0);
	x.other = nothing;
	x.reads.done = 40;
	looks(&x, 4);
	x.other = deep;
	assert_true(reader(&x)->least_ns);
	x.reads.bytes = 16384;
	look(&x);
	assert_int_equal(reader(&x)->least_ns, 0);
	scene_close(&x);
}

/* A look in which a read takes @lone_ns, and @each_ns for each place. */
static void look_at_reads(struct scene *x, u64 lone_ns, u64 each_ns)
{
	u32 now = READ_ONCE(slots(x)->limit);

	x->reads.service_ns = lone_ns + now * each_ns;
	x->reads.done = (u32)(LOOK_NS / x->reads.service_ns);
	x->other.service_ns = now * LOOK_NS / 100;
	look(x);
}

/* Returns the least time of a read that the first trial shows. */
static u64 least_shown(u64 lone_ns, u64 each_ns)
{
	struct scene x;
	u64 least_ns;
	u32 i;

	scene_open(&x, 8, 0);
	for (i = 0; i < 60 && !reader(&x)->least_ns; i++)
		look_at_reads(&x, lone_ns, each_ns);
	least_ns = reader(&x)->least_ns;
	scene_close(&x);
	return least_ns;
}

TEST(a_trial_shows_the_least_time)
{
	assert_in_range(least_shown(100 * US, 14 * US), 100 * US, 170 * US);
	/* This drive serves one request after the other. */
	assert_in_range(least_shown(0, 20 * US), 20 * US, 20 * US);
}

/* The mean is to be the goal's part of the 99th percentile. */
TEST(a_goal_is_all_that_is_asked_for)
{
	struct scene x;

	scene_open(&x, 8, 0);
	latency_set_goal(x.reader, 4 * MS, 990);
	looks(&x, 30);
	assert_int_equal(lack(&x), 0);
	x.reader->latency.goal_mean_ns = 750 * US;
	looks(&x, 30);
	assert_in_range(lack(&x), 240, 250);
	x.reader->latency.goal_mean_ns = 1200 * US;
	looks(&x, 30);
	assert_in_range(lack(&x), 0, 3);
	/* It passes, with or without its due. */
	assert_true(reader(&x)->passes);
	scene_close(&x);
}

/* --------------------------------------------------------------- the window */

TEST(the_window_follows_the_lack)
{
	struct scene x;
	u32 i;

	scene_open(&x, 8, 0);
	for (i = 0; i < 600; i++) {
		x.h.queue[1].stats.no_slot++;
		look_at_reads(&x, 100 * US, 14 * US);
	}
	/* Nothing is lost at any window, so the others keep one place. */
	assert_int_equal(iso(&x)->window.size, 1);
	assert_int_equal(slots(&x)->tree.depth, 1);
	assert_int_equal(x.h.sched.params.depth, DEPTH);
	scene_close(&x);
}

/* The other flow fills the window, and a queue waits for a place, for some looks. */
static void fill_for(struct scene *x, u32 looks)
{
	while (looks--) {
		u32 now = READ_ONCE(slots(x)->limit);

		x->other.done = now;
		x->other.inside = now;
		x->h.queue[1].stats.no_slot++;
		look(x);
	}
}

/* With isolation, a D that is set is the most that the window grows to. */
TEST(a_window_grows_to_a_fixed_depth)
{
	struct sched_params p;
	struct scene x;

	scene_open(&x, 8, 0);
	p = x.h.sched.params;
	p.isolation = 7;
	hooks_tune(&x.h, &p);
	assert_int_equal(slots(&x)->tree.depth, WINDOW_START);
	fill_for(&x, 5);
	assert_int_equal(slots(&x)->tree.depth, DEPTH);
	assert_int_equal(x.h.sched.params.depth, DEPTH);
	scene_close(&x);
}

TEST(a_depth_that_is_found_is_the_window)
{
	struct scene x;

	scene_open(&x, 8, 512);
	assert_int_equal(slots(&x)->depth, 512);
	assert_int_equal(slots(&x)->tree.depth, DEPTH);
	fill_for(&x, 8);
	assert_int_equal(iso(&x)->window.size, 512);
	assert_int_equal(x.h.sched.params.depth, 512);
	scene_close(&x);
}

/* A request that comes back unserved is no end. */
TEST(a_queue_knows_when_a_request_ended_last)
{
	struct scene x;
	u64 ended = 0;
	struct io *io;
	u32 i;

	scene_open(&x, 8, 0);
	for (i = 0; i < 4; i++) {
		x.h.now += MS;
		io = hooks_insert(&x.h, 0, x.others, 4096, 0);
		assert_ptr_equal(hooks_dispatch(&x.h, 0, DISPATCH_IO), io);
		if (i % 2) {
			hooks_requeue(&x.h, io);
			hooks_insert_again(&x.h, io);
			assert_ptr_equal(hooks_dispatch(&x.h, 0, DISPATCH_IO),
					 io);
			assert_int_equal(x.h.queue[0].ended_ns, ended);
		}
		x.h.now += MS;
		hooks_complete(&x.h, io);
		ended = x.h.now;
		assert_int_equal(x.h.queue[0].ended_ns, ended);
	}
	scene_close(&x);
}

/* Requests end in bunches: no look is longer because it ends between two of them. */
TEST(the_work_of_a_look_goes_from_end_to_end)
{
	struct scene x;
	u64 before, last;

	scene_open(&x, 8, 512);
	fill_for(&x, 1);
	before = iso(&x)->last_ns;
	last = x.h.now + MS;
	x.h.queue[1].ended_ns = last;
	fill_for(&x, 1);
	assert_int_equal(iso(&x)->window.before.ns, last - before);
	assert_int_equal(iso(&x)->last_ns, last);
	scene_close(&x);
}

TEST(tune_begins_anew_with_what_has_changed)
{
	struct sched_params p;
	struct scene x;

	scene_open(&x, 8, 512);
	iso(&x)->window.size = 100;
	p = x.h.sched.params;
	isolation_tune(&x.h.sched, &p, &x.wake);
	assert_int_equal(iso(&x)->window.size, 100);
	p.depth = 32;
	isolation_tune(&x.h.sched, &p, &x.wake);
	assert_int_equal(iso(&x)->window.size, 32);
	assert_true(iso(&x)->window.grows);
	assert_int_equal(slots(&x)->depth, 512);
	p.depth_most = 0;
	p.depth = 48;
	isolation_tune(&x.h.sched, &p, &x.wake);
	assert_int_equal(slots(&x)->depth, 48);
	assert_true(iso(&x)->window.grows);
	assert_int_equal(slots(&x)->tree.depth, WINDOW_START);
	iso(&x)->window.size = 8;
	slots_limit(slots(&x), 8, &x.wake);
	p.isolation = 0;
	isolation_tune(&x.h.sched, &p, &x.wake);
	assert_int_equal(slots(&x)->tree.depth, 48);
	assert_false(iso(&x)->window.grows);
	scene_close(&x);
}

static s64 reported(struct scene *x, const char *name)
{
	struct wanted w = { .report.put = take_wanted,
			    .name = name,
			    .value = -1 };

	isolation_report(&x->h.sched, &w.report);
	isolation_report_flow(reader(x), &w.report);
	return w.value;
}

TEST(reports_tell_units)
{
	struct scene x;

	scene_open(&x, 8, 0);
	reader(&x)->short_ns = 7 * MS + 1;
	reader(&x)->recent.done = 10;
	reader(&x)->recent.service_ns = 3 * MS;
	reader(&x)->least_ns = 100 * US;
	iso(&x)->window.loss = 20;
	assert_int_equal(isolation_loss(iso(&x)), 20);
	assert_int_equal(reported(&x, "short_ms"), 7);
	assert_int_equal(reported(&x, "service_us"), 300);
	assert_int_equal(reported(&x, "slowdown_percent"), 300);
	assert_int_equal(reported(&x, "window"), DEPTH);
	assert_int_equal(reported(&x, "isolation_loss_permille"), 20);
	scene_close(&x);
}
