// SPDX-License-Identifier: GPL-2.0
#include "overwrite.h"

enum {
	INVALID_SHIFT	= 8,
	TAG_SHIFT	= 32,
	FULL		= OVERWRITE_ENTRIES / 4 * 3,
	/* At level 16 the sample is of a page in a million: of a petabyte. */
	LEVEL_MOST	= 16,
};

/* Murmur3's finaliser (Appleby, 2011): each bit depends on all. */
static u64 hash(u32 group)
{
	u64 h = group + 0x9e3779b97f4a7c15ULL;

	h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
	h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
	return h ^ (h >> 33);
}

/* The three uses of a hash have bits of their own. */
static u32 page_of(u32 group, u64 h)
{
	return (group << OVERWRITE_GROUP_SHIFT) |
	       (u32)(h & (BIT_ULL(OVERWRITE_GROUP_SHIFT) - 1));
}

static bool in_sample(u64 h, u32 level)
{
	return !((h >> 8) & (BIT_ULL(level) - 1));
}

static u32 home(u64 h)
{
	return (u32)(h >> 40) & (OVERWRITE_ENTRIES - 1);
}

/* ------------------------------------------------------------ the I/O path */

static void ring_put(struct overwrite_ring *ring, u32 group, u32 tag)
{
	u64 at = (u64)atomic64_fetch_add(1, &ring->next) % OVERWRITE_RING;

	/* tick may have passed by since: then it is found a lap later, here. */
	if (atomic64_xchg(&ring->wrote[at], (s64)((u64)tag << TAG_SHIFT | group)))
		atomic64_inc(&ring->lost);
}

void overwrites_wrote(struct overwrites *o, const struct overwrite_flow *of,
		      u32 queue, u32 page, u32 bytes)
{
	u32 level = READ_ONCE(o->level);
	u64 end = (u64)page + (bytes + OVERWRITE_PAGE - 1) / OVERWRITE_PAGE;
	u32 group = page >> OVERWRITE_GROUP_SHIFT;

	for (; (u64)group << OVERWRITE_GROUP_SHIFT < end; group++) {
		u64 h = hash(group);
		u32 sample = page_of(group, h);

		if (in_sample(h, level) && sample >= page && sample < end)
			ring_put(&o->ring[queue], group, of->tag);
	}
}

/* ------------------------------------------------------------------- flows */

static struct overwrite_flow **bucket_of(struct overwrites *o, u32 tag)
{
	return &o->bucket[tag % OVERWRITE_BUCKETS];
}

static struct overwrite_flow *find_flow(struct overwrites *o, u32 tag)
{
	struct overwrite_flow *of = *bucket_of(o, tag);

	port_assert_held(&o->lock);
	while (of && of->tag != tag)
		of = of->next;
	return of;
}

void overwrite_flow_init(struct overwrites *o, struct overwrite_flow *of)
{
	unsigned long flags = port_lock(&o->lock);

	/* After 2^32 cgroups two may share theirs. */
	if (!++o->tags)
		o->tags = 1;
	of->tag = o->tags;
	of->link = bucket_of(o, of->tag);
	of->next = *of->link;
	if (of->next)
		of->next->link = &of->next;
	*of->link = of;
	port_unlock(&o->lock, flags);
}

void overwrite_flow_exit(struct overwrites *o, struct overwrite_flow *of)
{
	unsigned long flags = port_lock(&o->lock);

	*of->link = of->next;
	if (of->next)
		of->next->link = of->link;
	port_unlock(&o->lock, flags);
}

static void gain_valid(struct overwrites *o, u32 tag)
{
	struct overwrite_flow *of = find_flow(o, tag);

	if (of)
		WRITE_ONCE(of->valid, of->valid + 1);
}

static struct overwrite_flow *lose_valid(struct overwrites *o, u32 tag)
{
	struct overwrite_flow *of = find_flow(o, tag);

	if (of)
		WRITE_ONCE(of->valid, of->valid - 1);
	return of;
}

/* --------------------------------------------------------------- the table */

/* Where @group is, or the empty place where it would be. */
static struct overwrite_entry *find_entry(struct overwrites *o, u32 group)
{
	u32 i = home(hash(group));

	while (o->entry[i].tag && o->entry[i].group != group)
		i = (i + 1) % OVERWRITE_ENTRIES;
	return &o->entry[i];
}

/* Those behind it that it kept from their home move up. */
static void drop_entry(struct overwrites *o, u32 hole)
{
	u32 i = hole;

	for (;;) {
		i = (i + 1) % OVERWRITE_ENTRIES;
		if (!o->entry[i].tag)
			break;
		/* Not if its home lies behind the hole. */
		if ((i - home(hash(o->entry[i].group))) % OVERWRITE_ENTRIES <
		    (i - hole) % OVERWRITE_ENTRIES)
			continue;
		o->entry[hole] = o->entry[i];
		hole = i;
	}
	o->entry[hole] = (struct overwrite_entry){ 0 };
	o->used--;
}

static bool thin_out(struct overwrites *o)
{
	bool found = false;
	u32 i;

	for (i = 0; i < OVERWRITE_ENTRIES; i++)
		while (o->entry[i].tag &&
		       !in_sample(hash(o->entry[i].group), o->level)) {
			lose_valid(o, o->entry[i].tag);
			drop_entry(o, i);
			found = true;
		}
	return found;
}

static void raise_level(struct overwrites *o)
{
	struct overwrite_flow *of;
	u32 i;

	WRITE_ONCE(o->level, o->level + 1);
	/* What moves up from the end to the beginning is missed by a pass. */
	while (thin_out(o))
		;
	for (i = 0; i < OVERWRITE_BUCKETS; i++)
		for (of = o->bucket[i]; of; of = of->next)
			WRITE_ONCE(of->invalid, of->invalid / 2);
}

static void take_in(struct overwrites *o, u32 group, u32 tag)
{
	struct overwrite_entry *e;
	struct overwrite_flow *of;

	/* From before the level was raised. */
	if (!in_sample(hash(group), o->level))
		return;
	e = find_entry(o, group);
	if (e->tag)
		of = lose_valid(o, e->tag);
	else
		of = find_flow(o, tag);
	o->used += !e->tag;
	if (of)
		WRITE_ONCE(of->invalid, of->invalid + (1 << INVALID_SHIFT));
	*e = (struct overwrite_entry){ .group = group, .tag = tag };
	gain_valid(o, tag);
	if (o->used > FULL && o->level < LEVEL_MOST)
		raise_level(o);
}

/* ---------------------------------------------------------------- collecting */

/* What is beyond the room that there is has been collected. */
static void collect(struct overwrites *o, u32 spare_pct)
{
	u64 valid = 0, invalid = 0, room;
	struct overwrite_flow *of;
	u32 i;

	for (i = 0; i < OVERWRITE_BUCKETS; i++)
		for (of = o->bucket[i]; of; of = of->next) {
			valid += of->valid;
			invalid += of->invalid;
		}
	room = div64_u64((valid << INVALID_SHIFT) * spare_pct, 100);
	if (invalid <= room)
		return;
	for (i = 0; i < OVERWRITE_BUCKETS; i++)
		for (of = o->bucket[i]; of; of = of->next)
			WRITE_ONCE(of->invalid,
				   mul_u64_u64_div_u64(of->invalid, room,
						       invalid));
}

static void empty_ring(struct overwrites *o, struct overwrite_ring *ring)
{
	u64 next = (u64)atomic64_read(&ring->next), wrote;

	if (next - ring->seen > OVERWRITE_RING)
		ring->seen = next - OVERWRITE_RING;
	for (; ring->seen != next; ring->seen++) {
		wrote = (u64)atomic64_xchg(
			&ring->wrote[ring->seen % OVERWRITE_RING], 0);
		if (wrote)
			take_in(o, (u32)wrote, (u32)(wrote >> TAG_SHIFT));
	}
}

void overwrites_tick(struct overwrites *o, u32 spare_pct)
{
	unsigned long flags;
	u32 i;

	for (i = 0; i < o->nr_queues; i++) {
		if ((u64)atomic64_read(&o->ring[i].next) == o->ring[i].seen)
			continue;
		flags = port_lock(&o->lock);
		empty_ring(o, &o->ring[i]);
		port_unlock(&o->lock, flags);
	}
	flags = port_lock(&o->lock);
	collect(o, spare_pct);
	port_unlock(&o->lock, flags);
}

/* -------------------------------------------------------------------- life */

u64 overwrites_valid(const struct overwrites *o,
		     const struct overwrite_flow *of)
{
	return READ_ONCE(of->valid)
	       << (OVERWRITE_GROUP_SHIFT + READ_ONCE(o->level));
}

u64 overwrites_invalid(const struct overwrites *o,
		       const struct overwrite_flow *of)
{
	return READ_ONCE(of->invalid)
		       << (OVERWRITE_GROUP_SHIFT + READ_ONCE(o->level)) >>
	       INVALID_SHIFT;
}

u64 overwrites_lost(const struct overwrites *o)
{
	u64 lost = 0;
	u32 i;

	for (i = 0; i < o->nr_queues; i++)
		lost += (u64)atomic64_read(&o->ring[i].lost);
	return lost;
}

int overwrites_init(struct overwrites *o, u32 nr_queues)
{
	o->nr_queues = nr_queues;
	o->used = 0;
	o->level = 0;
	o->tags = 0;
	port_lock_init(&o->lock);
	o->ring = port_zalloc(nr_queues * sizeof(*o->ring));
	o->entry = port_zalloc(OVERWRITE_ENTRIES * sizeof(*o->entry));
	if (o->ring && o->entry)
		return 0;
	overwrites_deinit(o);
	return -ENOMEM;
}

void overwrites_deinit(struct overwrites *o)
{
	port_free(o->entry);
	port_free(o->ring);
}
