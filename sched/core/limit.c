// SPDX-License-Identifier: GPL-2.0
/* Quotas of tags and the level of the loans: see limit.h. */
#include "limit.h"
#include "sched.h"

enum {
	LEVEL_SHIFT	= 8,	/* fraction bits of the water level */
	LEVEL_ONE	= 1 << LEVEL_SHIFT,
	/* At this level the least share is the whole map. */
	LEVEL_MAX	= LEVEL_ONE << SHARE_MIN_SHIFT,
	/* The level rises with each pass; fewer passes lend less. */
	LEVEL_PASSES	= 8,
	INTERVAL_NS	= FLOW_GRACE_NS,
	RESERVE_SHIFT	= 4,	/* part of the map that is never lent */
	MANY_SHIFT	= 3,	/* flows are many from this part of the map on */
	LAST_SHIFT	= 2,	/* most of the map for flows without a tag */
};

/* The part of a map that a flow fills at @level, in units of a share. */
static u64 part_at(u64 share, u32 level)
{
	return min(share * level >> LEVEL_SHIFT, (u64)1 << SHARE_SHIFT);
}

/* @tags of @depth tags, in units of a share. */
static u64 part_of(u32 tags, u32 depth)
{
	return div64_u64((u64)min(tags, depth) << SHARE_SHIFT, depth);
}

static u64 quota(u64 part, u32 depth)
{
	return max((part * depth) >> SHARE_SHIFT, (u64)1);
}

/* Tags that are never lent. */
static u32 reserve(u32 depth)
{
	return max(depth >> RESERVE_SHIFT, 1U);
}

/* Tags that are reserved for flows without a tag: one for each flow. */
static u32 last_tags(const struct sched *s, u32 depth)
{
	u32 flows = READ_ONCE(s->share.nr_active);

	return flows < depth >> MANY_SHIFT ? 0 :
					     min(flows, depth >> LAST_SHIFT);
}

u64 limit_left(const struct limit *l, const struct flow *f, u32 depth, u32 used,
	       u64 occupied)
{
	u32 free = depth - used;
	u64 share = flow_share(f), most = quota(share, depth), lent;

	if (used < depth / 2)
		return depth / 2 - used;
	if (occupied && free < last_tags(f->sched, depth))
		return 0;
	if (free > reserve(depth)) {
		lent = quota(part_at(share, READ_ONCE(l->level)), depth);
		most = max(most, min(lent, occupied + free - reserve(depth)));
	}
	return occupied < most ? most - occupied : 0;
}

void limit_want(struct flow *f, u32 tags)
{
	if (READ_ONCE(f->limit.wants) < tags)
		WRITE_ONCE(f->limit.wants, tags);
}

/* Takes the demands of the interval that ends, and begins a new one. */
static void interval_ends(struct sched *s)
{
	struct flow *f;

	port_assert_held(&s->active_lock);
	for (f = s->active; f; f = f->next_active) {
		struct limit_flow *t = &f->limit;
		u32 wants = READ_ONCE(t->wants);

		/* A snapshot: a waiter that comes now counts in the next interval. */
		t->counted = READ_ONCE(t->waiters) ? LIMIT_ALL :
						     max(wants, t->wanted);
		t->wanted = wants;
		WRITE_ONCE(t->wants, 0);
	}
}

/*
 * One pass of water-filling.  A flow that wants less than its part at @level
 * gets its demand.  The other flows share the rest, and the result is the level
 * of that.  From the second pass on the level does not fall.
 */
static u32 next_level(struct sched *s, u32 level, u32 depth)
{
	u64 rest = part_of(depth - reserve(depth), depth), shares = 0;
	struct flow *f;

	port_assert_held(&s->active_lock);
	for (f = s->active; f; f = f->next_active) {
		u64 share = flow_share(f);
		u64 wants = part_of(f->limit.counted, depth);

		if (wants < part_at(share, level))
			rest -= min(wants, rest);
		else
			shares += share;
	}
	if (!shares)
		return LEVEL_MAX;
	return (u32)min(div64_u64(rest << LEVEL_SHIFT, shares), (u64)LEVEL_MAX);
}

bool limit_level_tick(struct limit *l, struct sched *s, u64 now)
{
	u32 level = LEVEL_ONE, depth = READ_ONCE(l->depth), next, pass;
	unsigned long flags;

	if (now < l->next_ns)
		return false;
	l->next_ns = now + INTERVAL_NS;
	flags = port_lock(&s->active_lock);
	interval_ends(s);
	for (pass = 0; pass < LEVEL_PASSES; pass++) {
		next = next_level(s, level, depth);
		if (next <= level)
			break;
		level = next;
	}
	port_unlock(&s->active_lock, flags);
	WRITE_ONCE(l->level, level);
	return true;
}
