// SPDX-License-Identifier: GPL-2.0
/*
 * The threads of a test, as simulated CPUs.  Each span between two meetings is
 * an interleaving: the CPUs get new priorities, and the test checks the state
 * at the end.
 */
#include "tests/mt/threads.h"
#include "explore.h"

enum {
	CPUS		= 4,
	MEETINGS_MOST	= 12,
	STEPS_MOST	= 8,
};

static struct {
	struct threads threads;
	struct member member[CPUS];
	void (*work)(struct member *me, void *arg);
	u32 arrived;
} run;

u32 threads_size(void)
{
	return CPUS;
}

u32 threads_meetings(u32 meetings)
{
	return min(meetings, (u32)MEETINGS_MOST);
}

u32 threads_steps(u32 steps)
{
	return min(steps, (u32)STEPS_MOST);
}

/* A run is too short for things that happen now and then. */
void threads_seen(bool seen, const char *what)
{
	(void)seen;
	(void)what;
}

static void start(u32 cpu, void *arg)
{
	run.work(&run.member[cpu], arg);
}

void threads_run(u32 nr, struct random *random,
		 void (*work)(struct member *me, void *arg), void *arg)
{
	u32 i;

	threads_check(nr <= CPUS);
	run.threads = (struct threads){ .nr = nr, .arg = arg };
	run.work = work;
	run.arrived = 0;
	for (i = 0; i < nr; i++)
		run.member[i] = (struct member){
			.threads = &run.threads,
			.index = i,
			.random.state = random_next(random),
		};
	cpus_run(nr, start, arg);
	explore_watch(NULL, NULL);
}

void threads_watch(void (*check)(void *arg), void *arg)
{
	explore_watch(check, arg);
}

void threads_meet(struct member *me, void (*check)(void *arg), void *arg)
{
	if (++run.arrived < me->threads->nr) {
		cpu_wait(&run);
		return;
	}
	check(arg);
	run.arrived = 0;
	cpu_wake(&run);
	explore_random(me->threads->nr);
}
