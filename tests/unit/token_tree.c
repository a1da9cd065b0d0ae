// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "tests/machine.h"
#include "sched/mt/token_tree.h"

/* No node has a slot. */
#define NOWHERE		(~0U)

/*
 * The model: a plain count for each leaf and for the root, which is the last, and
 * the slots in use by each queue.
 */
struct model {
	const struct topology *topo;
	u32 root;
	s64 free[MACHINE_QUEUES + 1];
	u32 in_use_by[MACHINE_QUEUES];
	u32 in_use, depth;
};

static s64 count_of(const struct token_tree *t, u32 n)
{
	return n == t->topo->nr_queues ? atomic64_read(&t->root.free) :
					 atomic64_read(&t->leaf[n].free);
}

static void check(const struct token_tree *t, const struct model *w)
{
	s64 total = 0;
	u32 n;

	for (n = 0; n <= w->root; n++) {
		assert_int_equal(count_of(t, n), w->free[n]);
		assert_true(w->free[n] >= 0 || n == w->root);
		total += w->free[n];
	}
	assert_int_equal(total + w->in_use, w->depth);
	assert_int_equal(token_total(t), total);
	assert_int_equal(token_in_leaves(t), total - w->free[w->root]);
}

/* The leaf of @queue or the root, if it has a slot; the leaf comes first. */
static u32 model_path(const struct model *w, u32 queue)
{
	if (w->free[queue] > 0)
		return queue;
	return w->free[w->root] > 0 ? w->root : NOWHERE;
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
	bool any = from != NOWHERE;

	assert_int_equal(token_peek(t, queue), any);
	assert_int_equal(token_take(t, queue), any);
	if (any)
		count_slot(w, queue, from);
}

/* How near @n is to @queue: the lowest node of the topology over both. */
static u32 distance(const struct model *w, u32 queue, u32 n)
{
	const struct topology *t = w->topo;
	u32 up = queue;

	if (n == w->root)
		return t->root;
	while (n < t->node[up].first || n >= t->node[up].last)
		up = t->node[up].parent;
	return up;
}

/* Any of the nearest leaves will do, but the root comes before leaves as far. */
static void steal(struct token_tree *t, struct model *w, u32 queue)
{
	u32 nearest = NOWHERE, n, taken = NOWHERE;

	for (n = 0; n <= w->root; n++)
		if (w->free[n] > 0)
			nearest = min(nearest, distance(w, queue, n));
	assert_int_equal(token_steal(t, queue), nearest != NOWHERE);
	if (nearest == NOWHERE)
		return;
	for (n = 0; n <= w->root; n++)
		if (count_of(t, n) != w->free[n])
			taken = n;
	assert_int_not_equal(taken, NOWHERE);
	assert_int_equal(distance(w, queue, taken), nearest);
	if (nearest == w->topo->root && w->free[w->root] > 0)
		assert_int_equal(taken, w->root);
	count_slot(w, queue, taken);
}

static void put(struct token_tree *t, struct model *w, u32 queue)
{
	u32 root = w->root;

	if (!w->in_use_by[queue])
		return;
	token_put(t, queue);
	w->in_use_by[queue]--;
	w->in_use--;
	w->free[w->free[root] < 0 ? root : queue]++;
}

static void give(struct token_tree *t, struct model *w, u32 from, u32 to)
{
	u32 at = model_path(w, from), root = w->root;
	bool any = at != NOWHERE;

	assert_int_equal(token_give(t, from, to), any);
	if (any) {
		w->free[at]--;
		w->free[w->free[root] < 0 ? root : to]++;
	}
}

/* The leaves with the lowest numbers repay the debt first. */
static void resize(struct token_tree *t, struct model *w, u32 depth)
{
	u32 root = w->root, n;

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
		w = (struct model){ .topo = &topo, .root = nr };
		w.depth = 1 + random_below(&r, 2 * nr);
		w.free[nr] = w.depth;
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
	assert_int_equal(token_in_leaves(&t), 1);
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
	assert_int_equal(token_in_leaves(&t), 0);
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
