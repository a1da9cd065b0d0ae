// SPDX-License-Identifier: GPL-2.0
/* The mindicator under threads: exact whenever nobody is setting. */
#include "crew.h"
#include "tests/machine.h"
#include "sched/mt/mindicator.h"

enum {
	MEETINGS	= 60,
	SETS		= 400,
};

struct scene {
	struct topology topo;
	struct mindicator leads;
	u32 crew;
	atomic64_t changes;	/* of the root, as reported */
	vtime_t seen;		/* at the last meeting */
};

static vtime_t scan(const struct mindicator *m, const struct topo_node *node)
{
	vtime_t least = VTIME_NONE;
	u32 q;

	for (q = node->first; q < node->last; q++)
		least = vtime_lead_min(least, mindicator_lead(m, q));
	return least;
}

static void look(void *arg)
{
	struct scene *s = arg;
	vtime_t least = mindicator_min(&s->leads);
	u32 n, holder = mindicator_holder(&s->leads);

	for (n = 0; n < s->topo.nr_nodes; n++)
		crew_check((vtime_t)atomic64_read(&s->leads.node[n].min) ==
			   scan(&s->leads, &s->topo.node[n]));
	if (least == VTIME_NONE)
		crew_check(holder == s->topo.nr_queues);
	else
		crew_check(mindicator_lead(&s->leads, holder) == least);
	/* Nobody changed the root without saying so. */
	if (least != s->seen)
		crew_check(atomic64_read(&s->changes) > 0);
	s->seen = least;
	atomic64_set(&s->changes, 0);
}

/* Sets the leads of every crew-th queue: few values, so that they meet. */
static void work(struct member *me, void *arg)
{
	struct scene *s = arg;
	vtime_t vt = (vtime_t)0 - 64 * MEETINGS;
	u32 meeting, i, mine;

	mine = (s->topo.nr_queues - me->index + s->crew - 1) / s->crew;
	for (meeting = 0; meeting < MEETINGS; meeting++, vt += 128) {
		for (i = 0; mine && i < SETS; i++) {
			u32 queue = me->index +
				    s->crew * random_below(&me->random, mine);
			vtime_t lead = vt + 2 * random_below(&me->random, 8);

			if (random_once_in(&me->random, 3))
				lead = VTIME_NONE;
			if (mindicator_set(&s->leads, queue, lead))
				atomic64_inc(&s->changes);
		}
		crew_meet(me, look, s);
	}
}

int main(void)
{
	struct random r = random_seeded("mt/mindicator");
	struct topo_place place[MACHINE_QUEUES];
	u64 round;

	for (round = 0; round < random_rounds(4); round++) {
		struct scene s = { .crew = crew_size(), .seen = VTIME_NONE };
		u32 nr = 0;

		while (nr < s.crew)
			nr = machine_random(&r, place);
		crew_check(!topology_init(&s.topo, place, nr));
		crew_check(!mindicator_init(&s.leads, &s.topo));
		crew_run(s.crew, &r, work, &s);
		mindicator_deinit(&s.leads);
		topology_deinit(&s.topo);
	}
	return 0;
}
