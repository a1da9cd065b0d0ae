// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "tests/random.h"
#include "sched/mt/token_tree.h"

enum {
	QUEUES	= 96,
	NOWHERE	= QUEUES + 1,		/* no node has a slot */
};

/*
 * The model: a plain count for each leaf and for the root, which is the last, and
 * the slots in use by each queue.
 */
struct model {
	u32 root;
	s64 free[QUEUES + 1];
	u32 in_use_by[QUEUES];
	struct queue_set except;
	u32 in_use, depth;
};

static s64 count_of(const struct token_tree *t, u32 n)
{
	return n == t->nr_queues ? atomic64_read(&t->root.free) :
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

static void owe(struct token_tree *t, struct model *w, u32 queue, u32 most)
{
	bool may = w->free[w->root] > -(s64)most;

	assert_int_equal(token_owe(t, most), may);
	if (may)
		count_slot(w, queue, w->root);
}

/* The slots of a queue in @except are left to that queue. */
static u32 model_steal(const struct model *w, u32 queue)
{
	u32 from = model_path(w, queue), i, n;

	for (i = 1; from == NOWHERE && i < w->root; i++) {
		n = (queue + i) % w->root;
		if (w->free[n] > 0 && !queue_set_has(&w->except, n))
			from = n;
	}
	return from;
}

static void steal(struct token_tree *t, struct model *w, u32 queue)
{
	u32 from = model_steal(w, queue);

	assert_int_equal(token_steal(t, queue, &w->except), from != NOWHERE);
	if (from != NOWHERE)
		count_slot(w, queue, from);
}

/* Puts @queue into the set or takes it out. */
static void except(struct model *w, u32 queue)
{
	if (!queue_set_claim(&w->except, queue))
		queue_set_add(&w->except, queue);
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

/* The free slots of leaf @n repay the debt. */
static void settle(struct model *w, u32 n)
{
	for (; w->free[w->root] < 0 && w->free[n] > 0; w->free[n]--)
		w->free[w->root]++;
}

static void give(struct token_tree *t, struct model *w, u32 from, u32 to)
{
	u32 at = model_path(w, from);
	bool any = at != NOWHERE;

	assert_int_equal(token_give(t, from, to), any);
	if (any) {
		w->free[at]--;
		w->free[to]++;
		settle(w, to);
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
		settle(w, n);
}

static void step(struct token_tree *t, struct model *w, struct random *r)
{
	u32 nr = w->root;
	u32 queue = random_below(r, nr), other = random_below(r, nr);

	switch (random_below(r, 21)) {
	case 0 ... 6:
		take(t, w, queue);
		break;
	case 7 ... 8:
		steal(t, w, queue);
		break;
	case 9 ... 16:
		put(t, w, queue);
		break;
	case 17:
		give(t, w, queue, other);
		break;
	case 18:
		except(w, queue);
		break;
	case 19:
		owe(t, w, queue, random_below(r, 4));
		break;
	default:
		if (random_once_in(r, 10))
			resize(t, w, 1 + random_below(r, 2 * nr));
	}
}

TEST(counts_match_a_model)
{
	struct random r = random_seeded("token_tree");
	struct token_tree t;
	struct model w;
	u64 i, j;

	for (i = 0; i < random_rounds(50); i++) {
		u32 nr = 1 + random_below(&r, QUEUES);

		w = (struct model){ .root = nr };
		w.depth = 1 + random_below(&r, 2 * nr);
		w.free[nr] = w.depth;
		assert_int_equal(token_tree_init(&t, nr, w.depth), 0);
		for (j = 0; j < 2000; j++) {
			step(&t, &w, &r);
			check(&t, &w);
		}
		token_tree_deinit(&t);
	}
}

TEST(one_slot_moves_between_queues)
{
	struct token_tree t;
	u32 q;

	assert_int_equal(token_tree_init(&t, 4, 1), 0);
	assert_true(token_take(&t, 0));
	for (q = 0; q < 4; q++) {
		assert_false(token_take(&t, q));
		assert_false(token_steal(&t, q, NULL));
		assert_false(token_peek(&t, q));
	}
	token_put(&t, 0);
	/* Only its own queue can take the slot; other queues can steal it. */
	assert_false(token_take(&t, 3));
	assert_true(token_steal(&t, 3, NULL));
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
}

TEST(put_repays_debt_first)
{
	struct token_tree t;
	u32 i;

	assert_int_equal(token_tree_init(&t, 4, 8), 0);
	for (i = 0; i < 8; i++)
		assert_true(token_take(&t, 0));
	token_put(&t, 0);
	token_resize(&t, 2);
	/* The free slot went against the debt: 7 in use, 2 allowed. */
	assert_int_equal(token_total(&t), 2 - 7);
	assert_int_equal(token_in_leaves(&t), 0);
	for (i = 0; i < 5; i++) {
		token_put(&t, 0);
		assert_false(token_steal(&t, 0, NULL));
	}
	assert_int_equal(token_total(&t), 0);
	token_put(&t, 0);
	assert_true(token_take(&t, 0));
	token_resize(&t, 8);
	for (i = 0; i < 6; i++)
		assert_true(token_take(&t, 3));
	assert_false(token_steal(&t, 3, NULL));
	token_tree_deinit(&t);
}

TEST(init_fails_without_memory)
{
	struct token_tree t;

	port_zalloc_fail_after(0);
	assert_int_equal(token_tree_init(&t, 4, 1), -ENOMEM);
	port_zalloc_fail_never();
}
