// SPDX-License-Identifier: GPL-2.0
/* The mindicator on threads: it is exact while no thread sets a tag. */
#include "threads.h"
#include "tests/machine.h"
#include "sched/mt/mindicator.h"

enum {
	MEETINGS	= 60,
	SETS		= 400,
};

struct scenario {
	struct topology topo;
	struct mindicator tags;
	u32 threads;
	atomic64_t changes;	/* of the root, as reported */
	vtime_t seen;		/* at the last meeting */
};

static vtime_t scan(const struct mindicator *m, const struct topo_node *node)
{
	vtime_t least = VTIME_NONE;
	u32 q;

	for (q = node->first; q < node->last; q++)
		least = vtime_min_tag(least, mindicator_tag(m, q));
	return least;
}

static void check(void *arg)
{
	struct scenario *s = arg;
	vtime_t least = mindicator_min(&s->tags);
	u32 n, holder = mindicator_holder(&s->tags);

	for (n = 0; n < s->topo.nr_nodes; n++)
		threads_check((vtime_t)atomic64_read(&s->tags.node[n].min) ==
			      scan(&s->tags, &s->topo.node[n]));
	if (least == VTIME_NONE)
		threads_check(holder == s->topo.nr_queues);
	else
		threads_check(mindicator_tag(&s->tags, holder) == least);
	/* If the root has changed, some call has returned true. */
	if (least != s->seen)
		threads_check(atomic64_read(&s->changes) > 0);
	s->seen = least;
	atomic64_set(&s->changes, 0);
}

/*
 * Sets the tags of the member's queues, which no other member sets.  There are
 * few values, so updates of different queues meet.
 */
static void work(struct member *me, void *arg)
{
	struct scenario *s = arg;
	u32 meetings = threads_meetings(MEETINGS), sets = threads_steps(SETS);
	vtime_t vt = (vtime_t)0 - 64 * meetings;
	u32 meeting, i, mine;

	mine = (s->topo.nr_queues - me->index + s->threads - 1) / s->threads;
	for (meeting = 0; meeting < meetings; meeting++, vt += 128) {
		for (i = 0; mine && i < sets; i++) {
			u32 queue =
				me->index +
				s->threads * random_below(&me->random, mine);
			vtime_t head_tag =
				vt + 2 * random_below(&me->random, 8);

			if (random_once_in(&me->random, 3))
				head_tag = VTIME_NONE;
			if (mindicator_set(&s->tags, queue, head_tag))
				atomic64_inc(&s->changes);
		}
		threads_meet(me, check, s);
	}
}

int main(void)
{
	struct random r = random_seeded("mt/mindicator");
	struct topo_place place[MACHINE_QUEUES];
	u64 round;

	for (round = 0; round < random_rounds(4); round++) {
		struct scenario s = { .threads = threads_size(),
				      .seen = VTIME_NONE };
		u32 nr = 0;

		while (nr < s.threads)
			nr = machine_random(&r, place);
		threads_check(!topology_init(&s.topo, place, nr));
		threads_check(!mindicator_init(&s.tags, &s.topo));
		threads_run(s.threads, &r, work, &s);
		mindicator_deinit(&s.tags);
		topology_deinit(&s.topo);
	}
	return 0;
}
