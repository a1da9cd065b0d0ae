// SPDX-License-Identifier: GPL-2.0
/* The sweep, the watchdog and the terms of leases. */
#include "hooks.h"
#include "core/engine.h"
#include "sched/core/policies.h"

enum {
	QUEUES	= 2,
};

struct fixture {
	struct sched sched;
	struct queue queue[QUEUES];
	struct queue *index[QUEUES];
	struct chassis chassis;
	u64 now;
};

static bool is_forgotten;

static bool forgotten(const struct queue *q)
{
	return is_forgotten && q->index == 1;
}

static void setup(struct fixture *x)
{
	u32 i;

	*x = (struct fixture){ .now = 1 };
	x->sched.queue = x->index;
	x->sched.nr_queues = QUEUES;
	port_lock_init(&x->sched.active_lock);
	for (i = 0; i < QUEUES; i++) {
		queue_init(&x->queue[i], &x->sched, i);
		x->index[i] = &x->queue[i];
		x->queue[i].nr = 1;
	}
	assert_int_equal(watchdog_init(&x->chassis.watchdog, QUEUES), 0);
	is_forgotten = true;
}

static void teardown(struct fixture *x)
{
	watchdog_deinit(&x->chassis.watchdog);
	port_lock_deinit(&x->sched.active_lock);
}

/* Makes @n sweeps; returns the number of queues that were found forgotten. */
static s64 sweeps(struct fixture *x, u32 n)
{
	s64 before = atomic64_read(&x->sched.stats.watchdog);
	struct wake wake;

	while (n--) {
		wake_init(&wake);
		chassis_sweep(&x->chassis, &x->sched, x->now, forgotten, &wake);
		x->now += SWEEP_NS;
	}
	return atomic64_read(&x->sched.stats.watchdog) - before;
}

TEST(test_early)
{
	struct wake wake;
	struct fixture x;

	setup(&x);
	sweeps(&x, 1);
	wake_init(&wake);
	assert_false(chassis_sweep_is_due(&x.chassis, x.now - 1));
	chassis_sweep(&x.chassis, &x.sched, x.now - 1, forgotten, &wake);
	assert_int_equal(wake.at_ns, x.now);
	/* Exactly at its time a sweep is made; no flow asks for another. */
	wake_init(&wake);
	assert_true(chassis_sweep_is_due(&x.chassis, x.now));
	chassis_sweep(&x.chassis, &x.sched, x.now, forgotten, &wake);
	assert_int_equal(wake.at_ns, 0);
	assert_false(chassis_sweep_is_due(&x.chassis, x.now));
	teardown(&x);
}

/* A queue is counted once, when it has been forgotten for SUSPECT_SWEEPS. */
TEST(test_forgotten)
{
	struct fixture x;

	setup(&x);
	assert_int_equal(sweeps(&x, SUSPECT_SWEEPS - 1), 0);
	assert_int_equal(sweeps(&x, 1), 1);
	assert_int_equal(sweeps(&x, 3 * SUSPECT_SWEEPS), 0);
	teardown(&x);
}

/* Each of these begins the count anew. */
TEST(test_reset)
{
	struct fixture x;
	u32 i;

	setup(&x);
	for (i = 0; i < 4; i++) {
		assert_int_equal(sweeps(&x, SUSPECT_SWEEPS - 1), 0);
		if (i == 0)
			x.queue[1].stats.dispatched++;
		else if (i == 1)
			x.queue[1].wake_pending = true;
		else if (i == 2)
			x.queue[1].nr = 0;
		else
			is_forgotten = false;
		assert_int_equal(sweeps(&x, 1), 0);
		x.queue[1].wake_pending = false;
		x.queue[1].nr = 1;
		is_forgotten = true;
	}
	/* A sweep that finds progress does not count; the next ones do. */
	x.queue[1].stats.dispatched++;
	assert_int_equal(sweeps(&x, SUSPECT_SWEEPS), 0);
	assert_int_equal(sweeps(&x, 1), 1);
	teardown(&x);
}

static u64 marks;
static bool hook_runs;

static u64 begin(struct sched *s)
{
	(void)s;
	return ++marks;
}

static bool ended(const struct sched *s, u64 mark)
{
	(void)s;
	return mark == marks && !hook_runs;
}

/* A CPU stands still in a hook for longer than all sweeps. */
TEST(test_cpu_stands_still)
{
	struct fixture x;

	setup(&x);
	marks = 0;
	x.sched.hooks = (struct host_hooks){
		.begin = begin,
		.ended = ended,
	};
	hook_runs = true;
	assert_int_equal(sweeps(&x, 3 * SUSPECT_SWEEPS), 0);
	assert_int_equal(marks, 1);
	/* The hook ends, and leaves the queue forgotten. */
	hook_runs = false;
	assert_int_equal(sweeps(&x, 1), 1);
	assert_int_equal(sweeps(&x, 3 * SUSPECT_SWEEPS), 0);
	/* It ends, and the queue is not. */
	x.queue[1].stats.dispatched++;
	hook_runs = true;
	assert_int_equal(sweeps(&x, 2 * SUSPECT_SWEEPS), 0);
	assert_int_equal(marks, 2);
	x.queue[1].stats.dispatched++;
	hook_runs = false;
	assert_int_equal(sweeps(&x, SUSPECT_SWEEPS), 0);
	teardown(&x);
}

/* A lease ends with its second term, and a term with requests or with time. */
TEST(test_terms)
{
	static const struct {
		u64 now, sent;
		s64 left;  /* leases */
	} ticks[2][4] = {
		{
			{ LEASE_MOST_NS, 0, 1 },
			{ 2 * LEASE_MOST_NS - 2, 0, 1 },
			{ 2 * LEASE_MOST_NS - 1, 15, 1 },
			{ 2 * LEASE_MOST_NS - 1, 16, 0 },
		},
		{
			{ LEASE_MOST_NS, 0, 1 },
			{ 2 * LEASE_MOST_NS - 2, 0, 1 },
			{ 2 * LEASE_MOST_NS - 1, 15, 1 },
			{ 2 * LEASE_MOST_NS, 15, 0 },
		},
	};
	struct sched_params p;
	struct engine *e;
	struct wake wake;
	struct hooks h;
	u32 i, j;

	sched_params_init(&drr_ops, &p);
	p.isolation = 0;
	p.depth = 8;
	for (i = 0; i < ARRAY_SIZE(ticks); i++) {
		hooks_open(&h, &drr_ops, &p, 1);
		e = h.sched.own;
		assert_true(slots_try(&e->slots, 0));
		slots_lease(&e->slots, 0);
		for (j = 0; j < ARRAY_SIZE(ticks[i]); j++) {
			h.sched.queue[0]->stats.dispatched = ticks[i][j].sent;
			wake_init(&wake);
			chassis_tick(&e->chassis, &h.sched, ticks[i][j].now,
				     &wake);
			assert_int_equal(slots_leased(&e->slots),
					 ticks[i][j].left);
		}
		assert_int_equal(slots_used(&e->slots), 0);
		h.sched.queue[0]->stats.dispatched = 0;
		hooks_close(&h);
	}
}
