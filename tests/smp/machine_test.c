// SPDX-License-Identifier: GPL-2.0
/* The prices of shared memory, in small programs with known times. */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	TURNS	= 100,
	STAGGER_PS = 1000,	/* between two CPUs: this gives their order */
};

static struct shared {
	atomic64_t counter __port_cacheline;
	u64 plain __port_cacheline;
	struct port_lock lock __port_cacheline;
	u64 under_lock __port_cacheline;
	u64 took_ps[CPUS_MAX];
} *shared;

#define check(cond)	\
	((cond) ? (void)0 : port_assert_failed(#cond, __FILE__, __LINE__))

/* The example of machine.h: CPUs increment one counter, almost at once. */
static void increment(u32 cpu, void *arg)
{
	struct shared *s = arg;
	u64 from;

	if (!cpu)
		atomic64_inc(&s->counter); /* from memory */
	machine_sleep(1000000 + cpu * STAGGER_PS);
	from = machine_now();
	atomic64_inc(&s->counter);
	s->took_ps[cpu] = machine_now() - from;
}

static void test_line_travels(void)
{
	const struct machine *m = machine_find("two-sockets");
	u64 own = m->own_ps + m->locked_ps;

	atomic64_set(&shared->counter, 0);
	/* 34 CPUs: 0 and 1 share a core, and so do 2 and 3; the rest do not. */
	machine_run(m, 34, increment, shared);
	check(atomic64_read(&shared->counter) == 35);
	check(shared->took_ps[0] == own);
	check(shared->took_ps[1] == own + m->travel_ps[SAME_CORE]);
	/* It waits until the line has arrived at CPU 1. */
	check(shared->took_ps[2] ==
	      shared->took_ps[1] - STAGGER_PS + m->travel_ps[SAME_CLUSTER]);
	check(machine_counts(33)->busy_ps > 0);
}

/* A CPU with a line of its own pays the least; a store does not wait. */
static void store(u32 cpu, void *arg)
{
	struct shared *s = arg;
	u64 from;

	if (cpu) {
		WRITE_ONCE(s->plain, 1);
		machine_spend(1000000);
		return;
	}
	machine_sleep(500000);
	from = machine_now();
	WRITE_ONCE(s->plain, 2);
	s->took_ps[0] = machine_now() - from;
	from = machine_now();
	atomic64_inc(&s->counter);
	s->took_ps[1] = machine_now() - from;
}

static void test_store_is_buffered(void)
{
	const struct machine *m = machine_find("epyc");

	machine_run(m, 2, store, shared);
	check(shared->took_ps[0] == m->own_ps);
	/* The locked instruction waits until the store has arrived. */
	check(shared->took_ps[1] >= m->travel_ps[SAME_CLUSTER]);
}

static void lock_and_count(u32 cpu, void *arg)
{
	u32 i;

	(void)cpu;
	(void)arg;
	for (i = 0; i < TURNS; i++) {
		unsigned long flags = port_lock(&shared->lock);
		u64 was = READ_ONCE(shared->under_lock);

		machine_spend(50000);
		WRITE_ONCE(shared->under_lock, was + 1);
		port_unlock(&shared->lock, flags);
	}
}

/* No update is lost, and no two CPUs are inside at a time. */
static void test_lock_serialises(const char *name, u32 cpus)
{
	u64 last = 0;
	u32 i;

	shared->under_lock = 0;
	machine_run(machine_find(name), cpus, lock_and_count, NULL);
	check(shared->under_lock == (u64)cpus * TURNS);
	for (i = 0; i < cpus; i++)
		last = max(last, machine_counts(i)->lock_ps);
	check(cpus == 1 || last > 0);
}

/* The CPUs in the order in which they came to some point. */
static u32 came[4], nr_came;

static void come(u32 cpu)
{
	came[nr_came++] = cpu;
}

static bool came_as(u32 nr, u32 a, u32 b, u32 c, u32 d)
{
	u32 all[4] = { a, b, c, d };
	bool same = nr_came == nr && !memcmp(came, all, nr * sizeof(*all));

	nr_came = 0;
	return same;
}

static void come_at_once(u32 cpu, void *arg)
{
	(void)arg;
	come(cpu);
}

/* The clocks are equal. */
static void test_first_of_equals_runs(void)
{
	machine_run(machine_find("epyc"), 4, come_at_once, NULL);
	check(came_as(4, 0, 1, 2, 3));
}

static void sleep_or_wake(u32 cpu, void *arg)
{
	struct shared *s = arg;

	if (cpu == 3) {
		machine_spend(300000);
		machine_interrupt(0, machine_now());
		return;
	}
	machine_sleep(cpu == 2 ? 500000 : 1000000000 - cpu);
	if (!cpu)
		s->took_ps[0] = machine_now();
	come(cpu);
}

/* CPU 3 interrupts CPU 0, which comes before CPU 2 that slept for less. */
static void test_interrupt_ends_a_sleep(void)
{
	machine_run(machine_find("four-sockets"), 4, sleep_or_wake, shared);
	check(shared->took_ps[0] == 300000);
	check(came_as(3, 0, 2, 1, 0));
}

static void look_and_sleep(u32 cpu, void *arg)
{
	struct shared *s = arg;

	if (cpu) {
		machine_spend(300000);
		machine_interrupt(0, machine_now());
		return;
	}
	/* CPU 0 has looked for interrupts, and the other one goes before its sleep. */
	machine_spend(400000);
	atomic64_fetch_add(1, &s->counter);
	machine_sleep(1000000000);
	s->took_ps[0] = machine_now();
}

/* An interrupt that comes between the last look and the sleep is not lost. */
static void test_interrupt_before_a_sleep(void)
{
	machine_run(machine_find("epyc"), 2, look_and_sleep, shared);
	check(shared->took_ps[0] < 1000000);
}

static void lock_or_sleep(u32 cpu, void *arg)
{
	unsigned long flags;

	(void)arg;
	if (cpu == 1 || cpu == 2) {
		machine_sleep(cpu * 1000000);
		flags = port_lock(&shared->lock);
		machine_spend(5000000);
		port_unlock(&shared->lock, flags);
	} else {
		machine_sleep(1000000000000);
	}
	come(cpu);
}

/* CPU 2 waits for the lock, and has got it long before CPU 3 wakes up. */
static void test_lock_is_handed_over_in_time(void)
{
	machine_run(machine_find("four-sockets"), 4, lock_or_sleep, NULL);
	check(came_as(4, 1, 2, 0, 3));
}

int main(void)
{
	shared = port_zalloc(sizeof(*shared));
	port_lock_init(&shared->lock);
	test_line_travels();
	test_store_is_buffered();
	test_lock_serialises("two-sockets", 1);
	test_lock_serialises("two-sockets", 64);
	test_lock_serialises("epyc", 64);
	test_first_of_equals_runs();
	test_interrupt_ends_a_sleep();
	test_interrupt_before_a_sleep();
	test_lock_is_handed_over_in_time();
	printf("the machine model charges as stated\n");
	return 0;
}
