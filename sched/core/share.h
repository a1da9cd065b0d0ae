/* SPDX-License-Identifier: GPL-2.0 */
/*
 * share - hierarchical shares, compounded over the active siblings
 *
 * cgroup v2 promises that a parent's share is split between its active
 * children.  Each cgroup on a device is a group here.  Below each group is an
 * implicit leaf of weight 100 for the cgroup's own I/O, a sibling of the
 * cgroup's children [R].  So kernel threads in the root, and processes in a
 * parent, need no special rule:
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
 * A scheduler may multiply the weights that an administrator has set.  A group
 * counts weight * scale among its siblings.  Its own leaf counts
 * 100 * own_scale among its children.  Both scales are 1 unless share_scale()
 * is called.
 *
 * Asking for less.  A child that asks for less than its share leaves the rest to its
 * siblings first, then to those of its parent.  So it counts in the sum by the *part* of
 * its weight that makes its share what it asks for.  Beside its siblings it keeps its
 * weight, for the moments in which it asks for more.  All products of such shares are
 * divided by their sum.  So a part changes nothing between two siblings, if both products
 * are less than 64 (see below):
 *
 *	prod, 900 ─┬─ db,  500: 64 requests at any time
 *	           └─ web, 500: a read of 4 KiB each 50 ms
 *	batch, 100: 64 requests at any time
 *	If web counted 500, db would have 45 % and batch 10 %, so 82 and 18 % of the work.
 *	Without web in the sum, db and web have 90 % each beside 10 %, that is 47.4, 47.4
 *	and 5.3 % of the sum.  So db gets 90 % of the work, and web as much as db if it asks.
 *
 * What a leaf is *due* of the work is the part that it would get by its whole weight: 90,
 * 45 and 10 %.
 *
 * A child of great weight may count by so small a part that its product is thousands.
 * Divided by a sum of thousands, small shares would all be SHARE_MIN.  So a product is 64
 * at most at each level:
 *
 *	Seed 75 of the gauntlet, without that bound: children of weight 10000 that ask
 *	for little made a sum near 1000, and two siblings of weights 1 and 10 had 1 to
 *	3.7 of the work.
 *
 * One such child has 64 of 65 places beside all children with a backlog.  Two siblings
 * that both reach 64 have equal shares.
 *
 * A leaf that was quiet before it was idle comes back so.  If web has a read each 200 ms,
 * it is idle in between.  If it counted 500 until a sweep saw how little it asks for, batch
 * would have 14 % of the work.
 *
 * A sweep says what each leaf asks for (share_ask()).  The order of siblings holds at once
 * if one uses more.  Beside the rest of the tree the children of a group could then have
 * more than its share.  So a leaf that has used what it asked for claims its whole weight
 * (share_claim()), and does not wait for the sweep.
 *
 * A group is active while its own leaf or any child is active.  It knows the
 * sum of what its active children count.  The sum changes when a leaf becomes
 * active or idle, when the weight or scale of an active group is set, in a sweep,
 * and by a claim, but not with each request.
 * Each change increments the tree's generation.  A group that sees another
 * generation than its own computes its share anew when it is next asked for it.
 * So it walks up to the root once in a generation, however often it is asked:
 *
 *	The tasks of 100 flows wake up for tags (limit.h).  Each further tag asks
 *	for the shares of all of them.  It takes 0.4 us, and with a walk for each
 *	share 2.7 us, or 7 us if the flows are eight levels deep.
 *
 * Between two sweeps the generation is incremented SHARE_CHANGES times at most.
 * If there are more changes, the sweep increments it once for all of them.  A
 * tenant may write weights in a loop, or many cgroups may start and stop I/O.
 * Without the bound, each group then computes its share anew at each request:
 *
 *	400 flows under mqfq, a weight written every 100 requests: a request
 *	takes 4.1 times as long as without the writes, and 1.15 with the bound.
 *
 * Locking: each function but share_group_weight() takes share_tree.lock
 * (irq-safe, a leaf lock: see sched.h) by itself.  share_present() takes it once
 * in a generation.
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

	SHARE_CHANGES	= 64,		/* at once, between two sweeps */

	ASKS_ALL	= 1 << 24,	/* all that a leaf can get */
};

struct share_tree {
	struct port_lock lock;
	atomic64_t generation;	/* released by the lock's holder */
	u32 nr_active;		/* L, read anywhere: active leaves */
	u32 changes;		/* L: of the generation since the last sweep */
	bool late;		/* L: the sweep increments the generation */
	u32 sweeps;		/* L, changed by tick: number of the present one */
	bool parted;		/* L: a part has changed in this sweep */
	u64 sum;		/* L: of all shares, before they are divided by it; .. */
	u64 summed;		/* L: .. and of those in this sweep so far */
};

/* L: share_tree.lock; I: set at initialisation. */
struct share_group {
	struct share_group *parent;	/* I: NULL for the root */
	u16 weight;			/* L; share_group_weight() reads it without */
	bool own_active;		/* L */
	u32 scale, own_scale;		/* L: of the weight; of the own leaf */
	u32 part, own_part;		/* L: of the scaled weights, in SCALE_ONE */
	u32 nr_active;			/* L: active children, own leaf included */
	u32 swept;			/* L: the last sweep in which a leaf below asked */
	u32 asks;			/* L: of all of them, in that sweep; .. */
	u32 level;			/* L: .. the share that it gets; of ASKS_ALL */
	u64 active_weight;		/* L: sum of what they count */
	u32 below;			/* L: weights of all children, active or not .. */
	u32 whole;			/* L: .. and of the active ones, own leaf included */
	u64 share;			/* L: of the own leaf; share_present() reads it .. */
	atomic64_t generation;		/* .. and L: of that share; 0: none is known */
};

void share_tree_init(struct share_tree *t);

/* @weight is in [WEIGHT_MIN, WEIGHT_MAX]. */
void share_group_init(struct share_group *g, struct share_group *parent,
		      u32 weight);

/* The weight that was set last.  Takes no lock; WRITE_ONCE() is in share_reweigh(). */
static inline u32 share_group_weight(const struct share_group *g)
{
	return READ_ONCE(g->weight);
}

/* @g is a child of its parent from the one call to the other. */
void share_add(struct share_tree *t, struct share_group *g);
void share_remove(struct share_tree *t, struct share_group *g);

/*
 * The group's own leaf becomes active or idle.  A repetition has no effect.  With @quiet
 * it counts as it did before it was idle, and so do its parents; else whole.
 */
void share_activate(struct share_tree *t, struct share_group *g, bool quiet);
void share_deactivate(struct share_tree *t, struct share_group *g);

/* Returns whether shares change now: not by a sweep, and not without effect. */
bool share_set_weight(struct share_tree *t, struct share_group *g, u32 weight);

/* Of flow_sweep().  Returns whether shares change now by earlier changes. */
bool share_sweep(struct share_tree *t);

/*
 * Scales are in [1, SCALE_MAX].  share_scaled() makes the scales that were set
 * before it take effect.
 */
void share_scale(struct share_tree *t, struct share_group *g, u32 scale);
void share_scale_own(struct share_tree *t, struct share_group *g, u32 scale);
void share_scaled(struct share_tree *t);

/*
 * Returns the share of the group's own leaf, in units of 2^-SHARE_SHIFT.  It is
 * at least SHARE_MIN, or 0 while the leaf is not active.  *@generation is the
 * generation of this share.
 */
u64 share_of(struct share_tree *t, struct share_group *g, u64 *generation);

/*
 * Of a sweep, for each active leaf before share_sweep(): the own leaf of @g asks for
 * @asks of the device, ASKS_ALL at most.  Groups count it in the next sweep, and the share
 * that a group gets comes to its children by one level in a sweep.
 */
void share_ask(struct share_tree *t, struct share_group *g, u32 asks);

/*
 * Returns the share that the own leaf of @g has, or would have if it were active.
 * The weights of @g and its parents are taken without their scales.  It is at
 * least SHARE_MIN.
 */
u64 share_by_weight(struct share_tree *t, const struct share_group *g);

/*
 * The own leaf of @g uses more than it asked for: it and its parents count whole until the
 * next sweep.
 */
void share_claim(struct share_tree *t, struct share_group *g);

/*
 * Returns what the own leaf of @g is due of the work, in the units of share_of(); see
 * above.  It is 0 while the leaf is not active.
 */
u64 share_due(struct share_tree *t, const struct share_group *g);

/*
 * Returns the share of the own leaf of @g by the weights of the active groups alone, or 0
 * while it is not active.
 */
u64 share_plain(struct share_tree *t, const struct share_group *g);

/*
 * Divides @amount of the root among all cgroups by weight, active or not: returns
 * the part of @g and of all cgroups below it.  Scales and own leaves do not count.
 */
u64 share_divide(struct share_tree *t, const struct share_group *g, u64 amount);

static inline u64 share_generation(const struct share_tree *t)
{
	/* Pairs with share_bump(): the sums are at least as new. */
	return (u64)atomic64_read_acquire(&t->generation);
}

/* Returns the same as share_of(), or the share of a moment ago. */
static inline u64 share_present(struct share_tree *t, struct share_group *g)
{
	u64 generation;

	/* Pairs with share_of(): the share is at least as new. */
	if (likely((u64)atomic64_read_acquire(&g->generation) ==
		   share_generation(t)))
		return READ_ONCE(g->share);
	return share_of(t, g, &generation);
}

#endif /* MQFAIR_SHARE_H */
