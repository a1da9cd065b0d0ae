// SPDX-License-Identifier: GPL-2.0
#include "share.h"
#include "vtime.h"

void share_tree_init(struct share_tree *t)
{
	port_lock_init(&t->lock);
	atomic64_set(&t->generation, 1);
	t->nr_active = 0;
}

void share_group_init(struct share_group *g, struct share_group *parent,
		      u32 weight)
{
	*g = (struct share_group){ .parent = parent, .weight = weight };
}

static void share_bump(struct share_tree *t)
{
	port_assert_held(&t->lock);
	/* Pairs with share_generation(). */
	atomic64_set_release(&t->generation, atomic64_read(&t->generation) + 1);
}

/* One more active child of weight @weight; a group's first activates it too. */
static void share_enter(struct share_group *g, u32 weight)
{
	for (; g; g = g->parent) {
		g->active_weight += weight;
		if (g->nr_active++)
			return;
		weight = g->weight;
	}
}

static void share_leave(struct share_group *g, u32 weight)
{
	for (; g; g = g->parent) {
		g->active_weight -= weight;
		if (--g->nr_active)
			return;
		weight = g->weight;
	}
}

void share_activate(struct share_tree *t, struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);

	if (!g->own_active) {
		g->own_active = true;
		t->nr_active++;
		share_enter(g, WEIGHT_DEFAULT);
		share_bump(t);
	}
	port_unlock(&t->lock, flags);
}

void share_deactivate(struct share_tree *t, struct share_group *g)
{
	unsigned long flags = port_lock(&t->lock);

	if (g->own_active) {
		g->own_active = false;
		t->nr_active--;
		share_leave(g, WEIGHT_DEFAULT);
		share_bump(t);
	}
	port_unlock(&t->lock, flags);
}

void share_set_weight(struct share_tree *t, struct share_group *g, u32 weight)
{
	unsigned long flags = port_lock(&t->lock);

	if (g->weight != weight) {
		if (g->nr_active && g->parent)
			g->parent->active_weight += (u64)weight - g->weight;
		g->weight = weight;
		share_bump(t);
	}
	port_unlock(&t->lock, flags);
}

u64 share_of(struct share_tree *t, struct share_group *g, u64 *generation)
{
	unsigned long flags = port_lock(&t->lock);
	u64 share = SHARE_ONE;
	u32 weight = WEIGHT_DEFAULT;

	*generation = (u64)atomic64_read(&t->generation);
	if (!g->own_active)
		share = 0;
	for (; share && g; g = g->parent) {
		/* At most 2^32 * 10^4: no overflow. */
		share = div64_u64(share * weight, g->active_weight);
		share = max(share, (u64)SHARE_MIN);
		weight = g->weight;
	}
	port_unlock(&t->lock, flags);
	return share;
}
