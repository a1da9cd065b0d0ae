// SPDX-License-Identifier: GPL-2.0
/* Sums of active weights, and the shares that follow from them. */
#include "share.h"
#include "vtime.h"

void share_tree_init(struct share_tree *t)
{
	*t = (struct share_tree){ 0 };
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

/* Returns false if share_sweep() does it. */
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
	bool late = t->late;

	t->changes = 0;
	if (late)
		share_bump(t);
	port_unlock(&t->lock, flags);
	return late;
}

/* Adds an active child of weight @weight.  The first child activates @g. */
static void share_enter(struct share_group *g, u64 weight)
{
	for (; g; g = g->parent) {
		g->active_weight += weight;
		if (g->nr_active++)
			return;
		weight = share_weight(g);
	}
}

static void share_leave(struct share_group *g, u64 weight)
{
	for (; g; g = g->parent) {
		g->active_weight -= weight;
		if (--g->nr_active)
			return;
		weight = share_weight(g);
	}
}

/* The share is computed anew, even if the tree's generation stays. */
static void share_forget(struct share_group *g)
{
	atomic64_set(&g->generation, 0);
}

void share_activate(struct share_tree *t, struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);

	if (!g->own_active) {
		g->own_active = true;
		share_forget(g);
		WRITE_ONCE(t->nr_active, t->nr_active + 1);
		share_enter(g, share_own_weight(g));
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
		share_leave(g, share_own_weight(g));
		share_bump(t);
	}
	port_unlock(&t->lock, flags);
}

static void share_reweigh(struct share_group *g, u32 weight, u32 scale)
{
	u64 before = share_weight(g);

	if (g->parent)
		g->parent->below += (u64)weight - g->weight;
	WRITE_ONCE(g->weight, (u16)weight);
	g->scale = scale;
	if (g->nr_active && g->parent)
		g->parent->active_weight += share_weight(g) - before;
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
	u64 before = share_own_weight(g);

	g->own_scale = scale;
	if (g->own_active)
		g->active_weight += share_own_weight(g) - before;
	port_unlock(&t->lock, flags);
}

void share_scaled(struct share_tree *t)
{
	unsigned long flags = port_lock(&t->lock);

	share_bump(t);
	port_unlock(&t->lock, flags);
}

/* The product over the path from the own leaf of @g up to the root. */
static u64 share_compute(const struct share_group *g)
{
	u64 share = SHARE_ONE, weight = share_own_weight(g);

	if (!g->own_active)
		return 0;
	for (; g; g = g->parent) {
		share = mul_u64_u64_div_u64(share, weight, g->active_weight);
		share = max(share, (u64)SHARE_MIN);
		weight = share_weight(g);
	}
	return share;
}

u64 share_of(struct share_tree *t, struct share_group *g, u64 *generation)
{
	unsigned long flags = port_lock(&t->lock);
	s64 now = atomic64_read(&t->generation);
	u64 share;

	if (atomic64_read(&g->generation) != now) {
		WRITE_ONCE(g->share, share_compute(g));
		/* Pairs with share_present(). */
		atomic64_set_release(&g->generation, now);
	}
	share = g->share;
	*generation = (u64)now;
	port_unlock(&t->lock, flags);
	return share;
}

u64 share_by_weight(struct share_tree *t, const struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);
	u64 share = SHARE_ONE, weight = (u64)WEIGHT_DEFAULT * SCALE_ONE, sum;
	bool active = g->own_active;

	for (; g; g = g->parent) {
		sum = g->active_weight + (active ? 0 : weight);
		share = mul_u64_u64_div_u64(share, weight, sum);
		/* The sum may have a scaled weight that is smaller. */
		share = min(max(share, (u64)SHARE_MIN), SHARE_ONE);
		active = g->nr_active;
		weight = (u64)g->weight * SCALE_ONE;
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
