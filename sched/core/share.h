/* SPDX-License-Identifier: GPL-2.0 */
/*
 * share - hierarchical shares, compounded over the active siblings
 *
 * cgroup v2 promises that a parent's share is split between its active
 * children.  Each cgroup on a device is a group here, with an implicit leaf
 * below it for its own I/O [R]: weight 100, a sibling of the cgroup's
 * children.  So kernel threads in the root and a parent's own processes need
 * no rule of their own:
 *
 *	root ─┬─ (own, 100)
 *	      ├─ prod, 900 ─┬─ (own, 100)
 *	      │             ├─ db,  500 ── (own, 100)
 *	      │             └─ web, 500 ── (own, 100)
 *	      └─ batch, 100 ── (own, 100)
 *
 * With db, web and batch doing I/O, db's leaf has 100/100 of db, db 500/1000
 * of prod, prod 900/1000 of the root: 45 %.  When web has been idle for the
 * grace period, prod's active children weigh 500 and db has 90 %.
 *
 * A scheduler may multiply what people have set: a group's weight counts
 * weight * scale among its siblings, its own leaf's 100 * own_scale among its
 * children.  Both are 1 unless share_scale() is called.
 *
 * A node is active while its own leaf or any child is; a group knows the sum
 * of its active children's weights.  Changes happen when a leaf becomes active
 * or idle and when a weight or a scale is set: never per request.  Each bumps
 * the tree's generation; a flow that sees another generation than its own asks
 * for its share again when it next needs it.
 *
 * Locking: everything here takes share_tree.lock (irq-safe, a leaf lock: see
 * sched.h) by itself.
 *
 * Tested by tests/unit/share.c against a recomputation from scratch.
 */
#ifndef MQFAIR_SHARE_H
#define MQFAIR_SHARE_H

#include "port.h"

enum {
	WEIGHT_MIN	= 1,
	WEIGHT_DEFAULT	= 100,
	WEIGHT_MAX	= 10000,

	SCALE_SHIFT	= 16,		/* fraction bits of a scale */
	SCALE_ONE	= 1 << SCALE_SHIFT,
	SCALE_MAX	= 1 << 30,
};

struct share_tree {
	struct port_lock lock;
	atomic64_t generation;	/* release by the lock's holder */
	u32 nr_active;		/* L: active leaves */
};

/* L: share_tree.lock; I: set at initialisation. */
struct share_group {
	struct share_group *parent;	/* I: NULL for the root */
	u32 weight;			/* L */
	u32 scale, own_scale;		/* L: of the weight, of the own leaf's */
	u32 nr_active;			/* L: active children, own leaf included */
	u64 active_weight;		/* L: the sum of theirs, scaled */
	bool own_active;		/* L */
};

void share_tree_init(struct share_tree *t);

/* @weight in [WEIGHT_MIN, WEIGHT_MAX]. */
void share_group_init(struct share_group *g, struct share_group *parent,
		      u32 weight);

/* The group's own leaf does I/O from now on / no more.  Idempotent. */
void share_activate(struct share_tree *t, struct share_group *g);
void share_deactivate(struct share_tree *t, struct share_group *g);

void share_set_weight(struct share_tree *t, struct share_group *g, u32 weight);

/*
 * Scales in [1, SCALE_MAX].  All that are set between begin and end are one
 * change to who asks for a share.  Flags are those of the lock.
 */
unsigned long share_scale_begin(struct share_tree *t);
void share_scale(struct share_tree *t, struct share_group *g, u32 scale);
void share_scale_own(struct share_tree *t, struct share_group *g, u32 scale);
void share_scale_end(struct share_tree *t, unsigned long flags);

/*
 * Share of the group's own leaf, in units of 2^-SHARE_SHIFT, at least
 * SHARE_MIN; *@generation is the one that it belongs to.  0 when the leaf is
 * not active.
 */
u64 share_of(struct share_tree *t, struct share_group *g, u64 *generation);

static inline u64 share_generation(const struct share_tree *t)
{
	/* Pairs with the release in share.c: the sums are at least as new. */
	return (u64)atomic64_read_acquire(&t->generation);
}

#endif /* MQFAIR_SHARE_H */
