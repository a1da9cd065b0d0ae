// SPDX-License-Identifier: GPL-2.0
/* Sums of active weights, and the shares that follow from them. */
#include "share.h"
#include "vtime.h"

/* The greatest product: share.h. */
#define PRODUCT_MOST (64 * SHARE_ONE)

void share_tree_init(struct share_tree *t)
{
	*t = (struct share_tree){ .sum = SHARE_ONE, .sweeps = 2 };
	port_lock_init(&t->lock);
	atomic64_set(&t->generation, 1);
}

void share_group_init(struct share_group *g, struct share_group *parent,
		      u32 weight)
{
	*g = (struct share_group){
		.parent = parent,
		.weight = (u16)weight,
		.scale = SCALE_ONE,
		.own_scale = SCALE_ONE,
		.part = SCALE_ONE,
		.own_part = SCALE_ONE,
		.asks = ASKS_ALL,
	};
}

void share_add(struct share_tree *t, struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);

	if (g->parent)
		g->parent->below += g->weight;
	port_unlock(&t->lock, flags);
}

void share_remove(struct share_tree *t, struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);

	if (g->parent)
		g->parent->below -= g->weight;
	port_unlock(&t->lock, flags);
}

/* Returns the scaled weight of the group among its siblings. */
static u64 share_weight(const struct share_group *g)
{
	return (u64)g->weight * g->scale;
}

/* Returns the scaled weight of the group's own leaf among its children. */
static u64 share_own_weight(const struct share_group *g)
{
	return (u64)WEIGHT_DEFAULT * g->own_scale;
}

/* Returns what a child of the scaled weight @weight counts. */
static u64 share_counted(u64 weight, u32 part)
{
	return max((weight * part) >> SCALE_SHIFT, 1ULL);
}

static u64 share_counts(const struct share_group *g)
{
	return share_counted(share_weight(g), g->part);
}

static u64 share_own_counts(const struct share_group *g)
{
	return share_counted(share_own_weight(g), g->own_part);
}

/* Returns false if share_sweep() will increment the generation. */
static bool share_bump(struct share_tree *t)
{
	port_assert_held(&t->lock);
	t->late = t->changes == SHARE_CHANGES;
	if (t->late)
		return false;
	t->changes++;
	/* Pairs with share_generation(). */
	atomic64_set_release(&t->generation, atomic64_read(&t->generation) + 1);
	return true;
}

bool share_sweep(struct share_tree *t)
{
	unsigned long flags = port_lock(&t->lock);
	bool late = t->late || t->parted;
	u64 sum = t->summed;

	/* Rounding and leaves that come and go make a sum of 1 inexact. */
	if (sum < SHARE_ONE + SHARE_ONE / 16)
		sum = SHARE_ONE;
	late |= sum > t->sum + t->sum / 16 || sum < t->sum - t->sum / 16;
	t->changes = 0;
	t->parted = false;
	t->summed = 0;
	t->sweeps++;
	/* All shares of a generation are divided by the same sum. */
	if (late) {
		t->sum = sum;
		share_bump(t);
	}
	port_unlock(&t->lock, flags);
	return late;
}

/* Adds an active child of weight @weight.  The first child activates @g. */
static void share_enter(struct share_group *g, u64 weight)
{
	u32 whole = WEIGHT_DEFAULT;

	for (; g; g = g->parent) {
		g->active_weight += weight;
		g->whole += whole;
		whole = g->weight;
		if (g->nr_active++)
			return;
		weight = share_counts(g);
	}
}

static void share_leave(struct share_group *g, u64 weight)
{
	u32 whole = WEIGHT_DEFAULT;

	for (; g; g = g->parent) {
		g->active_weight -= weight;
		g->whole -= whole;
		whole = g->weight;
		if (--g->nr_active)
			return;
		weight = share_counts(g);
	}
}

/* The share is computed anew, even if the tree's generation stays. */
static void share_forget(struct share_group *g)
{
	atomic64_set(&g->generation, 0);
}

/* A leaf below @g asks for more: @g and its parents count whole until a sweep asks. */
static void share_count_whole(struct share_group *g)
{
	u64 counts;

	do {
		counts = share_counts(g);
		g->part = SCALE_ONE;
		g->asks = ASKS_ALL;
		if (g->nr_active && g->parent)
			g->parent->active_weight += share_counts(g) - counts;
		g = g->parent;
	} while (g);
}

void share_activate(struct share_tree *t, struct share_group *g, bool quiet)
{
	unsigned long flags = port_lock(&t->lock);

	if (!g->own_active) {
		g->own_active = true;
		if (!quiet) {
			g->own_part = SCALE_ONE;
			share_count_whole(g);
		}
		share_forget(g);
		WRITE_ONCE(t->nr_active, t->nr_active + 1);
		share_enter(g, share_own_counts(g));
		share_bump(t);
	}
	port_unlock(&t->lock, flags);
}

void share_deactivate(struct share_tree *t, struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);

	if (g->own_active) {
		g->own_active = false;
		share_forget(g);
		WRITE_ONCE(t->nr_active, t->nr_active - 1);
		share_leave(g, share_own_counts(g));
		share_bump(t);
	}
	port_unlock(&t->lock, flags);
}

static void share_reweigh(struct share_group *g, u32 weight, u32 scale)
{
	u64 before = share_counts(g);

	if (g->parent)
		g->parent->below += weight - g->weight;
	if (g->parent && g->nr_active)
		g->parent->whole += weight - g->weight;
	WRITE_ONCE(g->weight, (u16)weight);
	g->scale = scale;
	if (g->nr_active && g->parent)
		g->parent->active_weight += share_counts(g) - before;
}

bool share_set_weight(struct share_tree *t, struct share_group *g, u32 weight)
{
	unsigned long flags = port_lock(&t->lock);
	bool changed = false;

	if (g->weight != weight) {
		share_reweigh(g, weight, g->scale);
		/* The weight of an idle group is in no sum. */
		if (g->nr_active)
			changed = share_bump(t);
	}
	port_unlock(&t->lock, flags);
	return changed;
}

void share_scale(struct share_tree *t, struct share_group *g, u32 scale)
{
	unsigned long flags = port_lock(&t->lock);

	share_reweigh(g, g->weight, scale);
	port_unlock(&t->lock, flags);
}

void share_scale_own(struct share_tree *t, struct share_group *g, u32 scale)
{
	unsigned long flags = port_lock(&t->lock);
	u64 before = share_own_counts(g);

	g->own_scale = scale;
	if (g->own_active)
		g->active_weight += share_own_counts(g) - before;
	port_unlock(&t->lock, flags);
}

void share_scaled(struct share_tree *t)
{
	unsigned long flags = port_lock(&t->lock);

	share_bump(t);
	port_unlock(&t->lock, flags);
}

/*
 * Returns the part of @amount of a child of @g with the scaled weight @weight, which is
 * @counts in the sum: as if it counted whole.
 */
static u64 share_among(const struct share_group *g, u64 amount, u64 weight,
		       u64 counts)
{
	return mul_u64_u64_div_u64(amount, weight,
				   g->active_weight - counts + weight);
}

/*
 * The product over the path from the own leaf of @g up to the root, of its weight in the
 * sum of those that count.  It is greater than 1 for a leaf that counts by a small part.
 */
static u64 share_product(const struct share_group *g)
{
	u64 share = SHARE_ONE, weight = share_own_weight(g);

	for (; g; g = g->parent) {
		share = mul_u64_u64_div_u64(share, weight, g->active_weight);
		share = clamp(share, (u64)SHARE_MIN, PRODUCT_MOST);
		weight = share_weight(g);
	}
	return share;
}

/* All products are divided by their sum. */
static u64 share_normal(const struct share_tree *t, u64 product)
{
	u64 share = mul_u64_u64_div_u64(product, SHARE_ONE, t->sum);

	return clamp(share, (u64)SHARE_MIN, SHARE_ONE);
}

u64 share_due(struct share_tree *t, const struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);
	u64 due = g->own_active ? SHARE_ONE : 0;
	u64 weight = share_own_weight(g), counts = share_own_counts(g);

	for (; due && g; g = g->parent) {
		due = share_among(g, due, weight, counts);
		due = max(due, (u64)SHARE_MIN);
		weight = share_weight(g);
		counts = share_counts(g);
	}
	port_unlock(&t->lock, flags);
	return due;
}

u64 share_of(struct share_tree *t, struct share_group *g, u64 *generation)
{
	unsigned long flags = port_lock(&t->lock);
	s64 now = atomic64_read(&t->generation);
	u64 share;

	if (atomic64_read(&g->generation) == now) {
		share = g->share;
	} else {
		share = g->own_active ? share_normal(t, share_product(g)) : 0;
		WRITE_ONCE(g->share, share);
		/* Pairs with share_present(). */
		atomic64_set_release(&g->generation, now);
	}
	*generation = (u64)now;
	port_unlock(&t->lock, flags);
	return share;
}

/* A part that is wrong by less than a quarter changes no share by much. */
static bool share_part_is_near(u32 old, u32 part)
{
	return old == part || (part < SCALE_ONE && part <= old + old / 4 &&
			       part >= old - old / 4);
}

/*
 * A child of @g, of the scaled weight @weight, asks for @asks of the device.  Sets its
 * *@part, and returns the share that it gets.  Both are parts of ASKS_ALL.
 */
static u32 share_set_part(struct share_tree *t, struct share_group *g,
			  u64 weight, u32 *part, u32 asks)
{
	u64 counts = share_counted(weight, *part);
	u64 others = g->active_weight - counts, fit;
	u32 due = (u32)share_among(g, g->level, weight, counts);
	u32 next = SCALE_ONE;

	if (asks < due && others) {
		/* fit / (fit + others) = asks / level, and asks < due <= level. */
		fit = mul_u64_u64_div_u64(others, asks, g->level - asks);
		fit = mul_u64_u64_div_u64(fit, SCALE_ONE, weight);
		next = (u32)clamp(fit, 1ULL, (u64)SCALE_ONE);
	}
	if (!share_part_is_near(*part, next)) {
		*part = next;
		g->active_weight += share_counted(weight, next) - counts;
		t->parted = true;
	}
	return min(asks, due);
}

/* Of the first leaf below @g in this sweep: what it asked for in its last one counts. */
static void share_ask_group(struct share_tree *t, struct share_group *g)
{
	u32 asks = g->asks;

	g->swept = t->sweeps;
	g->asks = 0;
	g->level = g->parent ? share_set_part(t, g->parent, share_weight(g),
					      &g->part, asks) :
			       asks;
}

void share_ask(struct share_tree *t, struct share_group *g, u32 asks)
{
	unsigned long flags = port_lock(&t->lock);
	struct share_group *p;

	if (g->own_active) {
		for (p = g; p; p = p->parent) {
			if (p->swept != t->sweeps)
				share_ask_group(t, p);
			p->asks = min(p->asks + asks, (u32)ASKS_ALL);
		}
		share_set_part(t, g, share_own_weight(g), &g->own_part, asks);
		t->summed += share_product(g);
	}
	port_unlock(&t->lock, flags);
}

u64 share_by_weight(struct share_tree *t, const struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);
	u64 share = SHARE_ONE, weight = (u64)WEIGHT_DEFAULT * SCALE_ONE, sum;
	bool active = g->own_active;

	for (; g; g = g->parent) {
		sum = g->active_weight + (active ? 0 : weight);
		share = mul_u64_u64_div_u64(share, weight, sum);
		/* The sum may have a smaller weight for the group. */
		share = clamp(share, (u64)SHARE_MIN, SHARE_ONE);
		active = g->nr_active;
		weight = (u64)g->weight * SCALE_ONE;
	}
	share = share_normal(t, share);
	port_unlock(&t->lock, flags);
	return share;
}

void share_claim(struct share_tree *t, struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);
	u64 counts;

	if (g->own_active) {
		counts = share_own_counts(g);
		g->own_part = SCALE_ONE;
		g->active_weight += share_own_counts(g) - counts;
		share_count_whole(g);
		share_forget(g);
		share_bump(t);
	}
	port_unlock(&t->lock, flags);
}

u64 share_plain(struct share_tree *t, const struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);
	u64 share = g->own_active ? SHARE_ONE : 0;
	u32 weight = WEIGHT_DEFAULT;

	for (; share && g; g = g->parent) {
		share = max(div64_u64(share * weight, g->whole),
			    (u64)SHARE_MIN);
		weight = g->weight;
	}
	port_unlock(&t->lock, flags);
	return share;
}

u64 share_divide(struct share_tree *t, const struct share_group *g, u64 amount)
{
	unsigned long flags = port_lock(&t->lock);

	for (; g->parent; g = g->parent)
		amount = mul_u64_u64_div_u64(amount, g->weight,
					     g->parent->below);
	port_unlock(&t->lock, flags);
	return amount;
}
