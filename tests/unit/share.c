// SPDX-License-Identifier: GPL-2.0
#include <math.h>

#include "unit.h"
#include "sched/core/share.h"
#include "sched/core/vtime.h"

enum {
	GROUPS	= 40,
	DEPTH	= 8,
};

/* The model knows the tree and the active leaves, and keeps no sums. */
struct model {
	struct share_group group;
	u32 parent;		/* index; 0 is the root */
	u32 weight;
	u32 scale, own_scale;
	u32 depth;
	bool active;		/* its own leaf */
};

static struct model models[GROUPS];

static bool model_active(u32 g)
{
	u32 i;

	if (models[g].active)
		return true;
	for (i = 1; i < GROUPS; i++)
		if (i != g && models[i].parent == g && model_active(i))
			return true;
	return false;
}

static double model_weight(u32 g)
{
	return (double)models[g].weight * models[g].scale;
}

static double model_own_weight(u32 g)
{
	return (double)WEIGHT_DEFAULT * models[g].own_scale;
}

static double model_active_weight(u32 g)
{
	double sum = models[g].active ? model_own_weight(g) : 0;
	u32 i;

	for (i = 1; i < GROUPS; i++)
		if (models[i].parent == g && model_active(i))
			sum += model_weight(i);
	return sum;
}

/* The share of the group's own leaf, as a part of the whole. */
static double model_share(u32 g)
{
	double share = model_own_weight(g) / model_active_weight(g);

	for (; g; g = models[g].parent)
		share *=
			model_weight(g) / model_active_weight(models[g].parent);
	return share;
}

static void check_share(struct share_tree *t, u32 g)
{
	double exact = model_share(g) * (double)SHARE_ONE;
	u64 generation;
	double share = (double)share_of(t, &models[g].group, &generation);

	assert_true(generation == share_generation(t));
	if (exact <= (double)SHARE_MIN) {
		assert_true(share == (double)SHARE_MIN);
		return;
	}
	/* Each level rounds down by less than one unit. */
	assert_true(share <= exact + 1);
	assert_true(share >= exact - (DEPTH + 1) || share == (double)SHARE_MIN);
}

/* The own leaf of @g, active or not, without the scales of its path. */
static void check_by_weight(struct share_tree *t, u32 g)
{
	double own = (double)WEIGHT_DEFAULT * SCALE_ONE, exact = SHARE_ONE;
	double share = (double)share_by_weight(t, &models[g].group);
	bool active = models[g].active;

	for (;; g = models[g].parent) {
		exact *= own / (model_active_weight(g) + (active ? 0 : own));
		exact = fmax(fmin(exact, (double)SHARE_ONE), (double)SHARE_MIN);
		if (!g)
			break;
		active = model_active(g);
		own = (double)models[g].weight * SCALE_ONE;
	}
	/* Each level rounds by a unit, and by at most 1 / SHARE_MIN of the share. */
	assert_true(fabs(share - exact) <=
		    (DEPTH + 1) * (1 + exact / (double)SHARE_MIN));
}

/* The part of @amount by the weights of all groups. */
static void check_divided(struct share_tree *t, u32 g, u64 amount)
{
	u64 part = amount;
	u32 child = g, k, below;

	for (; child; child = models[child].parent) {
		below = 0;
		for (k = 1; k < GROUPS; k++)
			if (models[k].parent == models[child].parent)
				below += models[k].weight;
		part = mul_u64_u64_div_u64(part, models[child].weight, below);
	}
	assert_true(share_divide(t, &models[g].group, amount) == part);
}

static void check_all(struct share_tree *t)
{
	u32 g, active = 0;
	u64 generation;

	for (g = 0; g < GROUPS; g++) {
		check_by_weight(t, g);
		check_divided(t, g, 1ULL << 40);
		if (!models[g].active) {
			assert_true(share_of(t, &models[g].group,
					     &generation) == 0);
			continue;
		}
		active++;
		check_share(t, g);
	}
	assert_int_equal(t->nr_active, active);
}

static u32 random_weight(struct random *r)
{
	static const u32 edges[] = { WEIGHT_MIN, WEIGHT_DEFAULT, WEIGHT_MAX };

	if (random_once_in(r, 2))
		return edges[random_below(r, ARRAY_SIZE(edges))];
	return WEIGHT_MIN + random_below(r, WEIGHT_MAX);
}

static void plant(struct share_tree *t, struct random *r)
{
	u32 g;

	for (g = 0; g < GROUPS; g++) {
		u32 parent = g ? random_below(r, g) : 0;

		while (models[parent].depth >= DEPTH - 1)
			parent = models[parent].parent;
		models[g] = (struct model){
			.parent = parent,
			.depth = g ? models[parent].depth + 1 : 0,
			.weight = random_weight(r),
			.scale = SCALE_ONE,
			.own_scale = SCALE_ONE,
		};
		share_group_init(&models[g].group,
				 g ? &models[parent].group : NULL,
				 models[g].weight);
		share_add(t, &models[g].group);
	}
}

/* A scale is 1, or an extreme, or between 1 and 1000. */
static u32 random_scale(struct random *r)
{
	switch (random_below(r, 4)) {
	case 0:
		return SCALE_ONE;
	case 1:
		return random_once_in(r, 2) ? 1 : SCALE_MAX;
	default:
		return SCALE_ONE + random_below(r, 1000) * SCALE_ONE;
	}
}

/* Sets a few scales at once, as at the end of a window: that is one change. */
static void scale_some(struct share_tree *t, struct random *r)
{
	u64 generation = share_generation(t);
	u32 i;

	for (i = 0; i < 5; i++) {
		struct model *model = &models[random_below(r, GROUPS)];

		model->scale = random_scale(r);
		model->own_scale = random_scale(r);
		share_scale(t, &model->group, model->scale);
		share_scale_own(t, &model->group, model->own_scale);
	}
	share_scaled(t);
	assert_true(share_generation(t) == generation + 1);
}

static void change_one(struct share_tree *t, struct random *r)
{
	u32 g = random_below(r, GROUPS);
	u64 generation = share_generation(t);
	bool changed;

	switch (random_below(r, 3)) {
	case 0:
		share_activate(t, &models[g].group, false);
		changed = !models[g].active;
		models[g].active = true;
		break;
	case 1:
		share_deactivate(t, &models[g].group);
		changed = models[g].active;
		models[g].active = false;
		break;
	default: {
		u32 weight = random_weight(r);

		share_set_weight(t, &models[g].group, weight);
		changed = weight != models[g].weight && model_active(g);
		models[g].weight = weight;
	}
	}
	/* The generation tells of each change, and of nothing else. */
	assert_int_equal(share_generation(t) != generation, changed);
}

TEST(shares_match_a_recomputation)
{
	struct random r = random_seeded("share");
	struct share_tree t;
	u64 i, tree;

	for (tree = 0; tree < random_rounds(10); tree++) {
		share_tree_init(&t);
		plant(&t, &r);
		for (i = 0; i < 200; i++) {
			if (i % SHARE_CHANGES == 0)
				assert_false(share_sweep(&t));
			if (random_once_in(&r, 4))
				scale_some(&t, &r);
			else
				change_one(&t, &r);
			check_all(&t);
		}
	}
}

/* Many changes at once: the generation changes for the last of them, too. */
TEST(many_changes_wait_for_a_sweep)
{
	struct share_group root, some, other;
	struct share_tree t;
	u64 generation;
	u32 i;

	share_tree_init(&t);
	share_group_init(&root, NULL, WEIGHT_DEFAULT);
	share_group_init(&some, &root, WEIGHT_DEFAULT);
	share_group_init(&other, &root, WEIGHT_DEFAULT);
	share_activate(&t, &some, false);
	share_sweep(&t);
	generation = share_generation(&t);
	for (i = 0; i < SHARE_CHANGES; i++)
		assert_true(share_set_weight(&t, &some, 1 + i));
	assert_int_equal(share_generation(&t), generation + SHARE_CHANGES);
	for (; i < 10 * SHARE_CHANGES; i++)
		assert_false(share_set_weight(&t, &some, 1 + i));
	/* A flow that becomes active computes its share of the present sums. */
	share_activate(&t, &other, false);
	assert_true(share_of(&t, &other, &generation) ==
		    SHARE_ONE * WEIGHT_DEFAULT /
			    (WEIGHT_DEFAULT + 10 * SHARE_CHANGES));
	assert_int_equal(share_generation(&t), generation);
	assert_true(share_sweep(&t));
	assert_int_equal(share_generation(&t), generation + 1);
	assert_false(share_sweep(&t));
	assert_int_equal(share_generation(&t), generation + 1);
	assert_true(share_set_weight(&t, &some, 1));
}

/* Sweeps so often that what each leaf asks for has come to all groups. */
static void ask_all(struct share_tree *t, const u32 *asks)
{
	u32 i, g;

	for (i = 0; i < 4 * DEPTH; i++) {
		for (g = 0; g < GROUPS; g++)
			share_ask(t, &models[g].group, asks[g]);
		share_sweep(t);
	}
}

/*
 * A leaf that asks for all is never due less than by weight, because others ask for less.
 * When all ask for all again, the shares are those by weight.
 */
TEST(asking_for_less_takes_from_nobody)
{
	struct random r = random_seeded("asks");
	u64 before[GROUPS];
	u32 asks[GROUPS];
	struct share_tree t;
	u32 tree, g;

	for (tree = 0; tree < random_rounds(20); tree++) {
		share_tree_init(&t);
		plant(&t, &r);
		for (g = 0; g < GROUPS; g++) {
			models[g].active = random_once_in(&r, 2);
			if (models[g].active)
				share_activate(&t, &models[g].group, false);
			asks[g] = ASKS_ALL;
			if (random_once_in(&r, 2))
				asks[g] >>= 1 + random_below(&r, 20);
		}
		share_sweep(&t);
		for (g = 0; g < GROUPS; g++)
			before[g] = share_due(&t, &models[g].group);
		ask_all(&t, asks);
		for (g = 0; g < GROUPS; g++)
			assert_true(share_due(&t, &models[g].group) + DEPTH +
					    1 >=
				    before[g]);
		for (g = 0; g < GROUPS; g++)
			asks[g] = ASKS_ALL;
		ask_all(&t, asks);
		check_all(&t);
	}
}

/*
 * In a flat tree the shares are those by weight, whatever the children ask for.  A child
 * that would have more than 64 times what all others have together has 64 times.
 */
TEST(asking_for_less_keeps_the_order_of_siblings)
{
	static const u32 weight[] = { 1, 100, 1000, 10000 };
	struct share_group root, child[ARRAY_SIZE(weight)];
	struct random r = random_seeded("flat");
	u64 generation, exact, share;
	struct share_tree t;
	u64 whole[ARRAY_SIZE(weight)], all;
	u32 i, j;

	share_tree_init(&t);
	share_group_init(&root, NULL, WEIGHT_DEFAULT);
	for (j = 0; j < ARRAY_SIZE(weight); j++) {
		share_group_init(&child[j], &root, weight[j]);
		share_activate(&t, &child[j], false);
	}
	for (i = 0; i < random_rounds(100); i++) {
		u32 asks = ASKS_ALL >> random_below(&r, 20);

		for (j = 0; j < 32; j++) {
			share_ask(&t, &child[j % 4], j % 4 ? asks : ASKS_ALL);
			if (j % 4 == 3)
				share_sweep(&t);
		}
		for (j = 0, all = 0; j < ARRAY_SIZE(weight); j++) {
			whole[j] = min((u64)weight[j] * SCALE_ONE,
				       64 * root.active_weight);
			all += whole[j];
		}
		for (j = 0; j < ARRAY_SIZE(weight); j++) {
			share = share_of(&t, &child[j], &generation);
			exact = mul_u64_u64_div_u64(SHARE_ONE, whole[j], all);
			/* The sum may be wrong by a sixteenth, for all of them. */
			assert_true(share + share / 15 >= exact &&
				    share - share / 15 <= exact);
		}
	}
}

/* What the own leaf of @g or its child counts, of the scaled weight @weight. */
static u64 counted(double weight, u32 part)
{
	return max(((u64)weight * part) >> SCALE_SHIFT, 1ULL);
}

/* Each sum is that of the active children, by their weights, scales and parts. */
static void check_sums(void)
{
	u32 g, i;

	for (g = 0; g < GROUPS; g++) {
		u64 sum = 0;

		if (models[g].active)
			sum = counted(model_own_weight(g),
				      models[g].group.own_part);
		for (i = 1; i < GROUPS; i++)
			if (models[i].parent == g && model_active(i))
				sum += counted(model_weight(i),
					       models[i].group.part);
		assert_true(models[g].group.active_weight == sum);
	}
}

static void ask_some(struct share_tree *t, struct random *r)
{
	u32 g;

	for (g = 0; g < GROUPS; g++)
		if (random_once_in(r, 2))
			share_ask(t, &models[g].group,
				  ASKS_ALL >> random_below(r, 24));
	share_sweep(t);
}

TEST(sums_follow_what_children_ask_for)
{
	struct random r = random_seeded("sums");
	struct share_tree t;
	u32 tree, i;

	for (tree = 0; tree < random_rounds(10); tree++) {
		share_tree_init(&t);
		plant(&t, &r);
		for (i = 0; i < 200; i++) {
			if (i % SHARE_CHANGES == 0)
				share_sweep(&t);
			if (random_once_in(&r, 2))
				ask_some(&t, &r);
			else if (random_once_in(&r, 4))
				scale_some(&t, &r);
			else
				change_one(&t, &r);
			check_sums();
		}
	}
}

/* The tree of share.h. */
static struct share_group root, prod, db, web, batch;

static void plant_example(struct share_tree *t)
{
	share_tree_init(t);
	share_group_init(&root, NULL, WEIGHT_DEFAULT);
	share_group_init(&prod, &root, 900);
	share_group_init(&db, &prod, 500);
	share_group_init(&web, &prod, 500);
	share_group_init(&batch, &root, 100);
}

/* A leaf that comes back to a quiet group has its share at once. */
TEST(a_leaf_that_comes_back_has_its_share_at_once)
{
	struct share_tree t;
	u64 generation, unit;
	u32 i;

	plant_example(&t);
	share_activate(&t, &web, false);
	share_activate(&t, &batch, false);
	for (i = 0; i < 8; i++) {
		share_ask(&t, &web, ASKS_ALL / 10000);
		share_ask(&t, &batch, ASKS_ALL);
		share_sweep(&t);
	}
	share_activate(&t, &db, false);
	assert_true(prod.part == SCALE_ONE);
	unit = share_of(&t, &batch, &generation);
	assert_true(share_of(&t, &db, &generation) >= 4 * unit);
	share_ask(&t, &web, ASKS_ALL / 10000);
	share_ask(&t, &db, ASKS_ALL);
	share_ask(&t, &batch, ASKS_ALL);
	share_sweep(&t);
	assert_true(prod.part == SCALE_ONE);
}

/* A leaf that was quiet before it was idle takes nothing from its sibling by coming back. */
TEST(a_quiet_leaf_comes_back_quiet)
{
	struct share_tree t;
	u64 generation, sibling, other;
	u32 i;

	plant_example(&t);
	share_activate(&t, &db, false);
	share_activate(&t, &web, false);
	share_activate(&t, &batch, false);
	for (i = 0; i < 8; i++) {
		share_ask(&t, &db, ASKS_ALL);
		share_ask(&t, &web, ASKS_ALL / 10000);
		share_ask(&t, &batch, ASKS_ALL);
		share_sweep(&t);
	}
	share_deactivate(&t, &web);
	for (i = 0; i < 8; i++) {
		share_ask(&t, &db, ASKS_ALL);
		share_ask(&t, &batch, ASKS_ALL);
		share_sweep(&t);
	}
	share_activate(&t, &web, true);
	for (i = 0; i < 8; i++) {
		sibling = share_of(&t, &db, &generation);
		other = share_of(&t, &batch, &generation);
		assert_in_range(sibling, other * 9 - other / 4,
				other * 9 + other / 4);
		share_ask(&t, &db, ASKS_ALL);
		share_ask(&t, &web, ASKS_ALL / 10000);
		share_ask(&t, &batch, ASKS_ALL);
		share_sweep(&t);
	}
}

static void expect_share(struct share_tree *t, struct share_group *g, u64 share)
{
	u64 generation;

	assert_true(share_present(t, g) == share);
	assert_true(share_of(t, g, &generation) == share);
}

/*
 * A walk up to the root would find the new scale.  It counts with the next
 * generation, so a group walks once in each.
 */
TEST(a_group_walks_once_in_a_generation)
{
	struct share_group root, some, other;
	struct share_tree t;

	share_tree_init(&t);
	share_group_init(&root, NULL, WEIGHT_DEFAULT);
	share_group_init(&some, &root, WEIGHT_DEFAULT);
	share_group_init(&other, &root, WEIGHT_DEFAULT);
	share_activate(&t, &some, false);
	share_activate(&t, &other, false);
	expect_share(&t, &some, SHARE_ONE / 2);
	share_scale(&t, &other, 3 * SCALE_ONE);
	expect_share(&t, &some, SHARE_ONE / 2);
	share_scaled(&t);
	expect_share(&t, &some, SHARE_ONE / 4);
}

/* The generation waits for a sweep, and the group has left and come back meanwhile. */
TEST(a_group_that_comes_back_walks_anew)
{
	struct share_group root, some;
	struct share_tree t;
	u32 i;

	share_tree_init(&t);
	share_group_init(&root, NULL, WEIGHT_DEFAULT);
	share_group_init(&some, &root, WEIGHT_DEFAULT);
	share_activate(&t, &some, false);
	for (i = 0; i < SHARE_CHANGES; i++)
		share_set_weight(&t, &some, 1 + i);
	expect_share(&t, &some, SHARE_ONE);
	share_deactivate(&t, &some);
	expect_share(&t, &some, 0);
	share_activate(&t, &some, false);
	expect_share(&t, &some, SHARE_ONE);
}

/* The tree of share.h. */
TEST(example_of_the_header_holds)
{
	struct share_tree t;
	u64 generation;
	const u64 percent = SHARE_ONE / 100;

	plant_example(&t);
	share_activate(&t, &db, false);
	share_activate(&t, &web, false);
	share_activate(&t, &batch, false);
	assert_int_equal(share_of(&t, &db, &generation) / percent, 45);
	assert_int_equal(share_of(&t, &web, &generation) / percent, 45);
	assert_int_equal(share_of(&t, &batch, &generation) / percent, 10);
	share_deactivate(&t, &web);
	assert_int_equal(share_of(&t, &db, &generation) / percent, 90);
	assert_int_equal(share_of(&t, &batch, &generation) / percent, 10);
	share_deactivate(&t, &db);
	assert_true(share_of(&t, &batch, &generation) == SHARE_ONE);
}

/* The second example of share.h: each child leaves the rest to its siblings first. */
TEST(what_a_child_leaves_goes_to_its_siblings)
{
	static const u64 percent = SHARE_ONE / 100;
	static const struct {
		u64 web, batch; /* what they ask for */
		u64 dues[3]; /* of db, web and batch */
		u64 shares[3]; /* in hundredths of those of batch */
	} cases[] = {
		{ ASKS_ALL, ASKS_ALL, { 45, 45, 10 }, { 450, 450, 100 } },
		{ ASKS_ALL / 10000,
		  ASKS_ALL,
		  { 89, 45, 10 },
		  { 899, 899, 100 } },
		{ ASKS_ALL / 10 * 3,
		  ASKS_ALL,
		  { 60, 45, 10 },
		  { 600, 600, 100 } },
		{ ASKS_ALL, ASKS_ALL / 25, { 48, 48, 10 }, { 450, 450, 100 } },
		{ ASKS_ALL, ASKS_ALL, { 45, 45, 10 }, { 450, 450, 100 } },
	};
	struct share_group *leaf[] = { &db, &web, &batch };
	struct share_tree t;
	u64 generation, unit;
	u32 i, j;

	plant_example(&t);
	for (i = 0; i < ARRAY_SIZE(leaf); i++)
		share_activate(&t, leaf[i], false);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (j = 0; j < 8; j++) {
			share_ask(&t, &db, ASKS_ALL);
			share_ask(&t, &web, cases[i].web);
			share_ask(&t, &batch, cases[i].batch);
			share_sweep(&t);
		}
		unit = share_of(&t, &batch, &generation) / 100;
		for (j = 0; j < ARRAY_SIZE(leaf); j++) {
			assert_int_equal(share_due(&t, leaf[j]) / percent,
					 cases[i].dues[j]);
			assert_int_equal(share_of(&t, leaf[j], &generation) /
						 unit,
					 cases[i].shares[j]);
		}
	}
}

TEST(weight_1_beside_10000_is_exact)
{
	struct share_group root, small, great;
	struct share_tree t;
	u64 generation;

	share_tree_init(&t);
	share_group_init(&root, NULL, WEIGHT_DEFAULT);
	share_group_init(&small, &root, WEIGHT_MIN);
	share_group_init(&great, &root, WEIGHT_MAX);
	share_activate(&t, &small, false);
	share_activate(&t, &great, false);
	assert_true(share_of(&t, &small, &generation) == SHARE_ONE / 10001);
	assert_true(share_of(&t, &great, &generation) ==
		    SHARE_ONE * 10000 / 10001);
	share_set_weight(&t, &small, WEIGHT_MAX);
	assert_true(share_of(&t, &small, &generation) == SHARE_ONE / 2);
}
