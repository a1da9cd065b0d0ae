// SPDX-License-Identifier: GPL-2.0
/* The sweep and the watchdog of the engine. */
#include "unit.h"
#include "core/engine.h"

enum {
	QUEUES	= 2,
};

struct fixture {
	struct sched sched;
	struct queue queue[QUEUES];
	struct queue *index[QUEUES];
	struct sweep sweep;
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
	assert_int_equal(watchdog_init(&x->sweep.watchdog, QUEUES), 0);
	is_forgotten = true;
}

static void teardown(struct fixture *x)
{
	watchdog_deinit(&x->sweep.watchdog);
	port_lock_deinit(&x->sched.active_lock);
}

/* Makes @n sweeps; returns the number of queues that were found forgotten. */
static s64 sweeps(struct fixture *x, u32 n)
{
	s64 before = atomic64_read(&x->sched.stats.watchdog);
	struct wake wake;
	bool changed;

	while (n--) {
		wake_init(&wake);
		assert_true(engine_sweep(&x->sweep, &x->sched, x->now,
					 forgotten, &changed, &wake));
		x->now += ENGINE_TICK_NS;
	}
	return atomic64_read(&x->sched.stats.watchdog) - before;
}

static void test_early(void **state)
{
	struct wake wake;
	struct fixture x;
	bool changed;

	(void)state;
	setup(&x);
	sweeps(&x, 1);
	wake_init(&wake);
	assert_false(engine_sweep(&x.sweep, &x.sched, x.now - 1, forgotten,
				  &changed, &wake));
	assert_int_equal(wake.at_ns, x.now);
	/* Exactly at its time a sweep is made; no flow asks for another. */
	wake_init(&wake);
	assert_true(engine_sweep(&x.sweep, &x.sched, x.now, forgotten, &changed,
				 &wake));
	assert_int_equal(wake.at_ns, 0);
	teardown(&x);
}

/* A queue is counted once, when it has been forgotten for SUSPECT_SWEEPS. */
static void test_forgotten(void **state)
{
	struct fixture x;

	(void)state;
	setup(&x);
	assert_int_equal(sweeps(&x, SUSPECT_SWEEPS - 1), 0);
	assert_int_equal(sweeps(&x, 1), 1);
	assert_int_equal(sweeps(&x, 3 * SUSPECT_SWEEPS), 0);
	teardown(&x);
}

/* Each of these begins the count anew. */
static void test_reset(void **state)
{
	struct fixture x;
	u32 i;

	(void)state;
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
static void test_cpu_stands_still(void **state)
{
	struct fixture x;

	(void)state;
	setup(&x);
	marks = 0;
	x.sched.hooks = (struct host_hooks){ begin, ended };
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_early),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_cpu_stands_still),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
