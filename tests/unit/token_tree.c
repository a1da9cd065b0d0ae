// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "tests/machine.h"
#include "sched/mt/token_tree.h"

/* The model: a plain count per node, and the slots in use by each queue. */
struct model {
	const struct topology *topo;
	s64 free[2 * MACHINE_QUEUES];
	u32 in_use_by[MACHINE_QUEUES];
	u32 in_use, depth;
};

static bool covers(const struct topology *t, u32 n, u32 queue)
{
	return queue >= t->node[n].first && queue < t->node[n].last;
}

static void check(const struct token_tree *t, const struct model *w)
{
	s64 total = 0, levels = 0;
	u32 n, level;

	for (n = 0; n < t->topo->nr_nodes; n++) {
		assert_int_equal(atomic64_read(&t->node[n].free), w->free[n]);
		assert_true(w->free[n] >= 0 || n == t->topo->root);
		total += w->free[n];
	}
	for (level = 0; level < TOPO_LEVELS; level++)
		levels += token_level(t, level);
	assert_int_equal(total + w->in_use, w->depth);
	assert_int_equal(token_total(t), total);
	assert_int_equal(levels, total);
}

/* The lowest node above @queue that has a slot; lower nodes come first. */
static u32 model_path(const struct model *w, u32 queue)
{
	u32 n;

	for (n = 0; n < w->topo->nr_nodes; n++)
		if (covers(w->topo, n, queue) && w->free[n] > 0)
			return n;
	return w->topo->nr_nodes;
}

static void count_slot(struct model *w, u32 queue, u32 node)
{
	w->free[node]--;
	w->in_use_by[queue]++;
	w->in_use++;
}

static void take(struct token_tree *t, struct model *w, u32 queue)
{
	u32 from = model_path(w, queue);
	bool any = from < w->topo->nr_nodes;

	assert_int_equal(token_peek(t, queue), any);
	assert_int_equal(token_take(t, queue), any);
	if (any)
		count_slot(w, queue, from);
}

/* How near node @n is to @queue: the range of the lowest node over both. */
static u32 distance(const struct topology *t, u32 queue, u32 n)
{
	u32 up = queue;

	while (!(t->node[up].first <= t->node[n].first &&
		 t->node[up].last >= t->node[n].last))
		up = t->node[up].parent;
	return up;
}

/* Any of the nearest nodes will do, but nodes above the queue come first. */
static void steal(struct token_tree *t, struct model *w, u32 queue)
{
	const struct topology *topo = w->topo;
	u32 nearest = topo->nr_nodes, n, taken = topo->nr_nodes;

	for (n = 0; n < topo->nr_nodes; n++)
		if (w->free[n] > 0)
			nearest = min(nearest, distance(topo, queue, n));
	assert_int_equal(token_steal(t, queue), nearest < topo->nr_nodes);
	if (nearest == topo->nr_nodes)
		return;
	for (n = 0; n < topo->nr_nodes; n++)
		if (atomic64_read(&t->node[n].free) != w->free[n])
			taken = n;
	assert_true(taken < topo->nr_nodes);
	assert_int_equal(distance(topo, queue, taken), nearest);
	if (w->free[nearest] > 0)
		assert_int_equal(taken, nearest);
	count_slot(w, queue, taken);
}

static void put(struct token_tree *t, struct model *w, u32 queue)
{
	u32 root = w->topo->root;

	if (!w->in_use_by[queue])
		return;
	token_put(t, queue);
	w->in_use_by[queue]--;
	w->in_use--;
	w->free[w->free[root] < 0 ? root : queue]++;
}

static void give(struct token_tree *t, struct model *w, u32 from, u32 to)
{
	u32 at = model_path(w, from), root = w->topo->root;
	bool any = at < w->topo->nr_nodes;

	assert_int_equal(token_give(t, from, to), any);
	if (any) {
		w->free[at]--;
		w->free[w->free[root] < 0 ? root : to]++;
	}
}

/* The nodes with the lowest numbers repay the debt first. */
static void resize(struct token_tree *t, struct model *w, u32 depth)
{
	u32 root = w->topo->root, n;

	token_resize(t, depth);
	w->free[root] += (s64)depth - w->depth;
	w->depth = depth;
	for (n = 0; n < root; n++)
		while (w->free[root] < 0 && w->free[n] > 0) {
			w->free[n]--;
			w->free[root]++;
		}
}

static void step(struct token_tree *t, struct model *w, struct random *r)
{
	u32 nr = w->topo->nr_queues;
	u32 queue = random_below(r, nr), other = random_below(r, nr);

	switch (random_below(r, 20)) {
	case 0 ... 6:
		take(t, w, queue);
		break;
	case 7 ... 8:
		steal(t, w, queue);
		break;
	case 9 ... 16:
		put(t, w, queue);
		break;
	case 17 ... 18:
		give(t, w, queue, other);
		break;
	default:
		if (random_once_in(r, 10))
			resize(t, w, 1 + random_below(r, 2 * nr));
	}
}

TEST(counts_match_a_model)
{
	struct random r = random_seeded("token_tree");
	struct topo_place place[MACHINE_QUEUES];
	struct token_tree t;
	struct topology topo;
	struct model w;
	u64 i, j;

	for (i = 0; i < random_rounds(50); i++) {
		u32 nr = machine_random(&r, place);

		assert_int_equal(topology_init(&topo, place, nr), 0);
		w = (struct model){ .topo = &topo };
		w.depth = 1 + random_below(&r, 2 * nr);
		w.free[topo.root] = w.depth;
		assert_int_equal(token_tree_init(&t, &topo, w.depth), 0);
		for (j = 0; j < 2000; j++) {
			step(&t, &w, &r);
			check(&t, &w);
		}
		token_tree_deinit(&t);
		topology_deinit(&topo);
	}
}

/* Four queues on two sockets, for the tests below. */
static const struct topo_place square[] = { { 0, 0 }, { 1, 0 },
					    { 2, 1 }, { 3, 1 } };

TEST(one_slot_moves_between_queues)
{
	struct token_tree t;
	struct topology topo;
	u32 q;

	assert_int_equal(topology_init(&topo, square, 4), 0);
	assert_int_equal(token_tree_init(&t, &topo, 1), 0);
	assert_true(token_take(&t, 0));
	for (q = 0; q < 4; q++) {
		assert_false(token_take(&t, q));
		assert_false(token_steal(&t, q));
		assert_false(token_peek(&t, q));
	}
	token_put(&t, 0);
	/* Only its own queue can take the slot; other queues can steal it. */
	assert_false(token_take(&t, 3));
	assert_true(token_steal(&t, 3));
	token_put(&t, 3);
	assert_true(token_give(&t, 3, 2));
	assert_false(token_take(&t, 3));
	assert_true(token_take(&t, 2));
	token_put(&t, 2);
	assert_true(token_give(&t, 2, 1));
	assert_int_equal(token_level(&t, TOPO_QUEUE), 1);
	assert_true(token_take(&t, 1));
	assert_false(token_give(&t, 1, 0));
	token_put(&t, 1);
	assert_int_equal(token_total(&t), 1);
	token_tree_deinit(&t);
	topology_deinit(&topo);
}

TEST(put_repays_debt_first)
{
	struct token_tree t;
	struct topology topo;
	u32 i;

	assert_int_equal(topology_init(&topo, square, 4), 0);
	assert_int_equal(token_tree_init(&t, &topo, 8), 0);
	for (i = 0; i < 8; i++)
		assert_true(token_take(&t, 0));
	token_put(&t, 0);
	token_resize(&t, 2);
	/* The free slot went against the debt: 7 in use, 2 allowed. */
	assert_int_equal(token_total(&t), 2 - 7);
	assert_int_equal(token_level(&t, TOPO_QUEUE), 0);
	for (i = 0; i < 5; i++) {
		token_put(&t, 0);
		assert_false(token_steal(&t, 0));
	}
	assert_int_equal(token_total(&t), 0);
	token_put(&t, 0);
	assert_true(token_take(&t, 0));
	token_resize(&t, 8);
	for (i = 0; i < 6; i++)
		assert_true(token_take(&t, 3));
	assert_false(token_steal(&t, 3));
	token_tree_deinit(&t);
	topology_deinit(&topo);
}

TEST(init_fails_without_memory)
{
	struct token_tree t;
	struct topology topo;

	assert_int_equal(topology_init(&topo, square, 4), 0);
	port_zalloc_fail_after(0);
	assert_int_equal(token_tree_init(&t, &topo, 1), -ENOMEM);
	port_zalloc_fail_never();
	topology_deinit(&topo);
}
