// SPDX-License-Identifier: GPL-2.0
/*
 * The operations of a replay, as simulated CPUs: they run by all schedules with
 * few preemptions.  The replay of tests/mt runs those in which one operation
 * interrupts another and ends before the other goes on.
 */
#include "tests/mt/replay.h"
#include "explore.h"
#include "tests/random.h"

static void op(u32 cpu, void *arg)
{
	const struct replay *r = arg;

	r->run(r->arg, cpu);
}

static void reset(void *arg)
{
	const struct replay *r = arg;

	r->reset(r->arg);
}

static void check(void *arg)
{
	const struct replay *r = arg;

	r->check(r->arg);
}

u64 replay_all(const struct replay *r)
{
	u32 preemptions = (u32)random_env("MQFAIR_PREEMPTIONS", 1);

	/* Two CPUs have fewer schedules than three. */
	return explore_bounded(r->nr, preemptions + (r->nr == 2), reset, op,
			       check, (void *)r);
}
