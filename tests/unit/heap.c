// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "sched/core/heap.h"

enum {
	NODES = 200,
};

/* The model: the items of the heap, in no order. */
struct item {
	struct heap_node node;
	vtime_t key;
	u64 turn;
	bool in;
};

static struct item items[NODES];
static u64 turns;

static struct item *model_least(void)
{
	struct item *least = NULL;
	u32 i;

	for (i = 0; i < NODES; i++) {
		struct item *it = &items[i];

		if (!it->in)
			continue;
		if (!least || vtime_before(it->key, least->key) ||
		    (it->key == least->key && it->turn < least->turn))
			least = it;
	}
	return least;
}

static void check_top(const struct heap *h)
{
	struct item *least = model_least();

	assert_ptr_equal(heap_top(h), least ? &least->node : NULL);
	if (least)
		assert_true(heap_top(h)->key == least->key);
}

/* Many keys are equal, and they lie on both sides of the wrap. */
static vtime_t random_key(struct random *r)
{
	return (vtime_t)-64 + 2 * random_below(r, 64);
}

static void push_random(struct heap *h, struct random *r)
{
	struct item *it = &items[random_below(r, NODES)];

	if (it->in)
		return;
	it->key = random_key(r);
	it->turn = turns++;
	it->in = true;
	heap_push(h, &it->node, it->key);
}

static void pop_least(struct heap *h)
{
	struct item *least = model_least();

	if (!least)
		return;
	least->in = false;
	assert_ptr_equal(heap_pop(h), &least->node);
}

static vtime_t new_key(struct heap_node *n, const void *unused)
{
	(void)unused;
	return container_of(n, struct item, node)->key;
}

static void rebuild(struct heap *h, struct random *r)
{
	u32 i;

	for (i = 0; i < NODES; i++)
		items[i].key = random_key(r);
	heap_rebuild(h, new_key, NULL);
}

TEST(top_matches_a_scan)
{
	struct random r = random_seeded("heap");
	struct heap h;
	u64 i;

	memset(items, 0, sizeof(items));
	heap_init(&h);
	for (i = 0; i < random_rounds(100000); i++) {
		/* The heap fills for a long time, then empties. */
		u32 pushes = (i >> 9) % 2 ? 6 : 3;

		if (random_below(&r, 10) < pushes) {
			push_random(&h, &r);
		} else if (random_once_in(&r, 50)) {
			rebuild(&h, &r);
		} else if (random_once_in(&r, 2)) {
			pop_least(&h);
		} else if (heap_top(&h)) {
			struct item *least = model_least();

			least->key = random_key(&r);
			heap_rekey_top(&h, least->key);
		}
		check_top(&h);
	}
	while (heap_top(&h)) {
		pop_least(&h);
		check_top(&h);
	}
}

TEST(equal_keys_pop_in_order_of_arrival)
{
	struct heap_node node[5];
	struct heap h;
	u32 i;

	heap_init(&h);
	for (i = 0; i < ARRAY_SIZE(node); i++)
		heap_push(&h, &node[i], 42);
	/* The top stays first among equal keys. */
	heap_rekey_top(&h, 42);
	for (i = 0; i < ARRAY_SIZE(node); i++)
		assert_ptr_equal(heap_pop(&h), &node[i]);
	assert_null(heap_top(&h));
}

TEST(sequence_numbers_wrap)
{
	struct heap_node node[4];
	struct heap h;
	u32 i;

	heap_init(&h);
	h.seq = ~0ULL - 1;
	for (i = 0; i < ARRAY_SIZE(node); i++)
		heap_push(&h, &node[i], 0);
	for (i = 0; i < ARRAY_SIZE(node); i++)
		assert_ptr_equal(heap_pop(&h), &node[i]);
}
