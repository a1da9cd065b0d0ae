// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "tests/machine.h"
#include "sched/mt/mindicator.h"

static vtime_t scan(const struct mindicator *m, const struct topo_node *node)
{
	vtime_t least = VTIME_NONE;
	u32 q;

	for (q = node->first; q < node->last; q++)
		least = vtime_min_tag(least, mindicator_tag(m, q));
	return least;
}

static void check(const struct mindicator *m)
{
	const struct topology *t = m->topo;
	u32 holder = mindicator_holder(m), n;

	for (n = 0; n < t->nr_nodes; n++)
		assert_true((vtime_t)atomic64_read(&m->node[n].min) ==
			    scan(m, &t->node[n]));
	if (mindicator_min(m) == VTIME_NONE) {
		assert_int_equal(holder, t->nr_queues);
		return;
	}
	assert_true(holder < t->nr_queues);
	assert_true(mindicator_tag(m, holder) == mindicator_min(m));
}

/* Tags as a scheduler sets them: near each other, growing, often none. */
static void set_random(struct mindicator *m, struct random *r, vtime_t vt)
{
	u32 queue = random_below(r, m->topo->nr_queues);
	vtime_t before = mindicator_min(m);
	vtime_t head_tag = vt + 2 * random_below(r, 40);
	bool changed;

	if (random_once_in(r, 4))
		head_tag = VTIME_NONE;
	changed = mindicator_set(m, queue, head_tag);
	assert_true(mindicator_tag(m, queue) == head_tag);
	assert_int_equal(changed, mindicator_min(m) != before);
}

TEST(nodes_match_a_scan)
{
	struct random r = random_seeded("mindicator");
	struct topo_place place[MACHINE_QUEUES];
	struct mindicator m;
	struct topology t;
	u64 i, j;

	for (i = 0; i < random_rounds(50); i++) {
		vtime_t vt = (vtime_t)-400;

		assert_int_equal(topology_init(&t, place,
					       machine_random(&r, place)),
				 0);
		assert_int_equal(mindicator_init(&m, &t), 0);
		check(&m);
		for (j = 0; j < 400; j++) {
			set_random(&m, &r, vt += 2);
			check(&m);
		}
		mindicator_deinit(&m);
		topology_deinit(&t);
	}
}

TEST(several_queues_may_hold_the_minimum)
{
	static const struct topo_place place[] = {
		{ 0, 0 }, { 0, 0 }, { 1, 1 }, { 1, 1 }
	};
	struct mindicator m;
	struct topology t;

	assert_int_equal(topology_init(&t, place, 4), 0);
	assert_int_equal(mindicator_init(&m, &t), 0);
	assert_true(mindicator_set(&m, 0, 10));
	assert_false(mindicator_set(&m, 3, 10));
	assert_false(mindicator_set(&m, 3, 10));
	assert_false(mindicator_set(&m, 0, 20));
	assert_true(mindicator_min(&m) == 10);
	assert_true(mindicator_set(&m, 3, VTIME_NONE));
	assert_true(mindicator_min(&m) == 20);
	assert_true(mindicator_set(&m, 0, VTIME_NONE));
	check(&m);
	mindicator_deinit(&m);
	topology_deinit(&t);
}

TEST(init_fails_without_memory)
{
	static const struct topo_place place[1];
	struct mindicator m;
	struct topology t;

	assert_int_equal(topology_init(&t, place, 1), 0);
	port_zalloc_fail_after(0);
	assert_int_equal(mindicator_init(&m, &t), -ENOMEM);
	port_zalloc_fail_never();
	topology_deinit(&t);
}
