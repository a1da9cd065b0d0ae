// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "tests/machine.h"

static void check_node(const struct topology *t, u32 n)
{
	const struct topo_node *node = &t->node[n];
	u32 next = node->first, i;

	assert_true(node->first < node->last);
	if (n < t->nr_queues) {
		assert_int_equal(node->nr_children, 0);
		assert_int_equal(node->first, n);
		assert_int_equal(node->last, n + 1);
		return;
	}
	assert_true(node->nr_children > 1 || n == t->root);
	for (i = 0; i < node->nr_children; i++) {
		u32 child = node->child[i];

		assert_true(child < n);
		assert_int_equal(t->node[child].parent, n);
		assert_int_equal(t->node[child].first, next);
		next = t->node[child].last;
	}
	assert_int_equal(next, node->last);
}

/* An inner node covers exactly the core or the socket of its first queue. */
static void check_members(const struct topology *t,
			  const struct topo_place *place, u32 n)
{
	const struct topo_node *node = &t->node[n];
	bool core = true, socket = true;
	u32 q;

	if (n < t->nr_queues || n == t->root)
		return;
	for (q = 0; q < t->nr_queues; q++) {
		bool in = q >= node->first && q < node->last;

		core &= in == (place[q].core == place[node->first].core);
		socket &= in == (place[q].socket == place[node->first].socket);
	}
	assert_true(core || socket);
}

/* Does a node cover exactly [@first, @last)? */
static bool has_node(const struct topology *t, u32 first, u32 last)
{
	u32 n = first;

	while (t->node[n].last < last)
		n = t->node[n].parent;
	return t->node[n].first == first && t->node[n].last == last;
}

/* A node covers exactly each core and each socket. */
static void check_groups(const struct topology *t,
			 const struct topo_place *place)
{
	u32 core = 0, socket = 0, q;

	for (q = 1; q <= t->nr_queues; q++) {
		if (q == t->nr_queues || place[q].core != place[core].core) {
			assert_true(has_node(t, core, q));
			core = q;
		}
		if (q == t->nr_queues ||
		    place[q].socket != place[socket].socket) {
			assert_true(has_node(t, socket, q));
			socket = q;
		}
	}
}

TEST(tree_covers_machines_of_any_shape)
{
	struct random r = random_seeded("topology");
	struct topo_place place[MACHINE_QUEUES];
	struct topology t;
	u64 i;

	for (i = 0; i < random_rounds(300); i++) {
		u32 nr = machine_random(&r, place), n;

		assert_int_equal(topology_init(&t, place, nr), 0);
		assert_int_equal(t.nr_queues, nr);
		assert_int_equal(t.root, t.nr_nodes - 1);
		assert_int_equal(t.node[t.root].parent, t.root);
		assert_int_equal(t.node[t.root].first, 0);
		assert_int_equal(t.node[t.root].last, nr);
		for (n = 0; n < t.nr_nodes; n++) {
			check_node(&t, n);
			check_members(&t, place, n);
		}
		check_groups(&t, place);
		topology_deinit(&t);
	}
}

TEST(tree_leaves_out_levels_that_separate_nothing)
{
	static const struct topo_place lone = { 0 };
	/* One core of two threads; then two single-threaded cores a socket. */
	static const struct topo_place core[] = { { 3, 0 }, { 3, 0 } };
	static const struct topo_place flat[] = {
		{ 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 0 }
	};
	static const struct topo_place two[] = {
		{ 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 1 }
	};
	struct topology t;

	assert_int_equal(topology_init(&t, &lone, 1), 0);
	assert_int_equal(t.nr_nodes, 2);
	assert_int_equal(t.node[t.root].nr_children, 1);
	topology_deinit(&t);

	assert_int_equal(topology_init(&t, core, 2), 0);
	assert_int_equal(t.nr_nodes, 2 + 1);
	topology_deinit(&t);

	assert_int_equal(topology_init(&t, flat, 4), 0);
	assert_int_equal(t.nr_nodes, 4 + 1);
	topology_deinit(&t);

	assert_int_equal(topology_init(&t, two, 4), 0);
	assert_int_equal(t.nr_nodes, 4 + 2 + 1);
	assert_int_equal(t.node[t.node[2].parent].first, 2);
	assert_int_equal(t.node[3].parent, t.node[2].parent);
	assert_int_not_equal(t.node[1].parent, t.node[2].parent);
	topology_deinit(&t);
}

TEST(init_refuses_unordered_places)
{
	/* A core in two places, a socket in two places, a core on two sockets. */
	static const struct topo_place wrong[][3] = {
		{ { 0, 0 }, { 1, 0 }, { 0, 0 } },
		{ { 0, 0 }, { 1, 1 }, { 2, 0 } },
		{ { 0, 0 }, { 0, 1 }, { 1, 1 } },
	};
	struct topology t;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(topology_init(&t, wrong[i], 3), -EINVAL);
	assert_int_equal(topology_init(&t, wrong[0], 0), -EINVAL);
}

TEST(init_fails_without_memory)
{
	static const struct topo_place place[2] = { { 0, 0 }, { 1, 0 } };
	struct topology t;
	u32 n;

	for (n = 0; n < 2; n++) {
		port_zalloc_fail_after(n);
		assert_int_equal(topology_init(&t, place, 2), -ENOMEM);
	}
	port_zalloc_fail_never();
}
