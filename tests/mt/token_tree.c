// SPDX-License-Identifier: GPL-2.0
/* The token tree on threads: it loses no slot and invents none. */
#include "threads.h"
#include "tests/random.h"
#include "sched/mt/token_tree.h"

enum {
	QUEUES		= 96,
	MEETINGS	= 60,
	STEPS		= 500,
	BEYOND		= 2,		/* slots beyond D */
};

struct scenario {
	struct token_tree slots;
	u32 threads;
	bool resizing;		/* the first member changes D */
	atomic64_t in_use;
	atomic64_t taken, stolen, owed;
	s64 most;		/* greatest D */
};

static void check(void *arg)
{
	struct scenario *s = arg;
	u32 queue;

	threads_check(token_total(&s->slots) + atomic64_read(&s->in_use) ==
		      s->slots.depth);
	for (queue = 0; queue < s->slots.nr_queues; queue++)
		threads_check(atomic64_read(&s->slots.leaf[queue].free) >= 0);
}

/* At any time: a slot on its way to a node or a queue is counted in neither. */
static void check_any_time(void *arg)
{
	struct scenario *s = arg;

	threads_check(s->resizing ||
		      token_total(&s->slots) + atomic64_read(&s->in_use) <=
			      s->slots.depth);
}

static bool get(struct scenario *s, u32 queue, bool steal)
{
	bool got = steal ? token_steal(&s->slots, queue, NULL) :
			   token_take(&s->slots, queue);

	if (!got)
		return false;
	atomic64_inc(steal ? &s->stolen : &s->taken);
	threads_check(atomic64_inc_return(&s->in_use) <= s->most + BEYOND);
	return true;
}

static bool owe(struct scenario *s)
{
	if (!token_owe(&s->slots, BEYOND))
		return false;
	atomic64_inc(&s->owed);
	threads_check(atomic64_inc_return(&s->in_use) <= s->most + BEYOND);
	return true;
}

static void put(struct scenario *s, u32 queue)
{
	atomic64_dec(&s->in_use);
	token_put(&s->slots, queue);
}

static u32 step(struct scenario *s, struct random *r, bool resizing, u32 slots)
{
	u32 queue = random_below(r, s->slots.nr_queues);
	u32 other = random_below(r, s->slots.nr_queues);

	switch (random_below(r, 8)) {
	case 0 ... 2:
		return slots + get(s, queue, false);
	case 3:
		return slots + get(s, queue, true);
	case 4 ... 5:
		if (!slots)
			return 0;
		put(s, queue);
		return slots - 1;
	case 6:
		if (random_once_in(r, 4))
			return slots + owe(s);
		token_give(&s->slots, queue, other);
		return slots;
	default:
		(void)token_peek(&s->slots, queue);
		if (resizing && random_once_in(r, 4))
			token_resize(&s->slots,
				     1 + random_below(r, (u32)s->most));
		return slots;
	}
}

static void work(struct member *me, void *arg)
{
	struct scenario *s = arg;
	bool resizing = s->resizing && me->index == 0;
	u32 meetings = threads_meetings(MEETINGS), steps = threads_steps(STEPS);
	u32 meeting, i, slots = 0;

	for (meeting = 0; meeting < meetings; meeting++) {
		for (i = 0; i < steps; i++)
			slots = step(s, &me->random, resizing, slots);
		threads_meet(me, check, s);
	}
	while (slots--)
		put(s, random_below(&me->random, s->slots.nr_queues));
}

static void run_scenario(struct random *r, bool resizing, u32 depth)
{
	struct scenario s = { .threads = threads_size(),
			      .resizing = resizing,
			      .most = depth };
	u32 nr = 1 + random_below(r, QUEUES), free = 0;

	threads_check(!token_tree_init(&s.slots, nr, depth));
	threads_watch(check_any_time, &s);
	threads_run(s.threads, r, work, &s);
	check(&s);
	threads_check(atomic64_read(&s.in_use) == 0);
	/* Any queue can take all of them. */
	while (token_steal(&s.slots, 0, NULL))
		free++;
	threads_check(free == s.slots.depth);
	threads_seen(atomic64_read(&s.taken) && atomic64_read(&s.stolen) &&
			     atomic64_read(&s.owed),
		     "slots that were taken, stolen and owed");
	token_tree_deinit(&s.slots);
}

int main(void)
{
	struct random r = random_seeded("mt/token_tree");
	u64 round;

	for (round = 0; round < random_rounds(2); round++) {
		run_scenario(&r, false, 1);
		run_scenario(&r, false, 1 + random_below(&r, 200));
		run_scenario(&r, true, 40);
	}
	return 0;
}
