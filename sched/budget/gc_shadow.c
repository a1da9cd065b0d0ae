// SPDX-License-Identifier: GPL-2.0
#include "gc_shadow.h"

enum {
	TAG_SHIFT	= 32,
	/* Samples after which what was met has faded to 1/e. */
	MEMORY_SHIFT	= 10,
	PERCENT		= 100,
	/* Odd, so regions are placed in an order of their own. */
	SHUFFLE		= 7919,
};

/* Murmur3's finaliser (Appleby, 2011): each bit depends on all. */
static u64 hash(u32 region)
{
	u64 h = region + 0x9e3779b97f4a7c15ULL;

	h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
	h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
	return h ^ (h >> 33);
}

/* The page of the region that is watched. */
static u32 page_of(const struct gc_shadow *o, u32 region)
{
	return (region << o->region_shift) |
	       (u32)(hash(region) & (BIT_ULL(o->region_shift) - 1));
}

/* ------------------------------------------------------------ the I/O path */

static void ring_put(struct gc_shadow_ring *ring, u32 region, u32 tag)
{
	u64 at = (u64)atomic64_fetch_add(1, &ring->next) % OVERWRITE_RING;

	/* tick may have passed by since: then it is found a lap later, here. */
	if (atomic64_xchg(&ring->wrote[at],
			  (s64)((u64)tag << TAG_SHIFT | region)))
		atomic64_inc(&ring->lost);
}

void gc_shadow_wrote(struct gc_shadow *o, const struct gc_shadow_flow *of,
		     u32 queue, u32 page, u32 bytes)
{
	u64 end = (u64)page + (bytes + OVERWRITE_PAGE - 1) / OVERWRITE_PAGE;
	u32 region = page >> o->region_shift;

	for (; region < o->regions && (u64)region << o->region_shift < end;
	     region++) {
		u32 watched = page_of(o, region);

		if (watched >= page && watched < end)
			ring_put(&o->ring[queue], region, of->tag);
	}
}

/* ------------------------------------------------------------------- flows */

static struct gc_shadow_flow **bucket_of(struct gc_shadow *o, u32 tag)
{
	return &o->bucket[tag % OVERWRITE_BUCKETS];
}

static struct gc_shadow_flow *find_flow(struct gc_shadow *o, u32 tag)
{
	struct gc_shadow_flow *of = *bucket_of(o, tag);

	port_assert_held(&o->lock);
	while (of && of->tag != tag)
		of = of->next;
	return of;
}

void gc_shadow_flow_init(struct gc_shadow *o, struct gc_shadow_flow *of)
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

void gc_shadow_flow_exit(struct gc_shadow *o, struct gc_shadow_flow *of)
{
	unsigned long flags = port_lock(&o->lock);

	*of->link = of->next;
	if (of->next)
		of->next->link = of->link;
	WRITE_ONCE(o->owned, o->owned - (u32)of->invalid);
	WRITE_ONCE(o->unknown, o->unknown + (u32)of->valid);
	port_unlock(&o->lock, flags);
}

static void count_valid(struct gc_shadow *o, u32 tag, s32 more)
{
	struct gc_shadow_flow *of = find_flow(o, tag);

	if (of)
		WRITE_ONCE(of->valid, of->valid + more);
	else
		WRITE_ONCE(o->unknown, o->unknown + more);
}

static void count_invalid(struct gc_shadow *o, u32 tag, s32 more)
{
	struct gc_shadow_flow *of = find_flow(o, tag);

	o->invalid += more;
	if (!of)
		return;
	WRITE_ONCE(of->invalid, of->invalid + more);
	WRITE_ONCE(o->owned, o->owned + more);
}

/* It wrote a page that is @of's. */
static void count_met(struct gc_shadow *o, u32 tag, u32 of_tag)
{
	struct gc_shadow_flow *of = find_flow(o, tag);

	if (!of)
		return;
	of->known -= of->known >> MEMORY_SHIFT;
	WRITE_ONCE(of->known, of->known + (of->valid << MEMORY_SHIFT));
	of->met -= of->met >> MEMORY_SHIFT;
	if (tag == of_tag)
		WRITE_ONCE(of->met, of->met + (1 << MEMORY_SHIFT));
}

/* ----------------------------------------------------------- the miniature */

static u32 block_free(const struct gc_shadow *o)
{
	u32 i = 0;

	while (i < o->nr_blocks && o->block[i].fill)
		i++;
	port_assert(i < o->nr_blocks);
	return i;
}

static void place(struct gc_shadow *o, enum gc_shadow_stream stream, u32 region,
		  u32 tag)
{
	struct gc_shadow_block *b = &o->block[o->open[stream]];
	u32 slot;

	if (b->fill == OVERWRITE_BLOCK) {
		o->open[stream] = block_free(o);
		b = &o->block[o->open[stream]];
	}
	slot = o->open[stream] * OVERWRITE_BLOCK + b->fill++;
	b->valid++;
	o->slot[slot] = (struct gc_shadow_slot){ .region = region, .tag = tag };
	o->where[region] = slot;
}

/* The full block with the fewest valid pages, or nr_blocks. */
static u32 choose_victim(const struct gc_shadow *o)
{
	u32 victim = o->nr_blocks, least = OVERWRITE_BLOCK, i;

	for (i = 0; i < o->nr_blocks; i++)
		if (o->block[i].fill == OVERWRITE_BLOCK &&
		    o->block[i].valid < least) {
			least = o->block[i].valid;
			victim = i;
		}
	return victim;
}

static void collect_block(struct gc_shadow *o, u32 victim)
{
	u32 first = victim * OVERWRITE_BLOCK, i;

	for (i = first; i < first + OVERWRITE_BLOCK; i++) {
		struct gc_shadow_slot s = o->slot[i];

		if (o->where[s.region] == i)
			place(o, OVERWRITE_COPIED, s.region, s.tag);
		else
			count_invalid(o, s.tag, -1);
	}
	o->block[victim] = (struct gc_shadow_block){ 0 };
}

/* While there is more than the drive has room for. */
static void collect(struct gc_shadow *o, u32 spare_pct)
{
	u64 room = div64_u64((u64)o->regions * spare_pct, PERCENT);
	u32 victim;

	WRITE_ONCE(o->room, (u32)room);
	while (o->invalid > o->room) {
		victim = choose_victim(o);
		if (victim == o->nr_blocks)
			return;
		collect_block(o, victim);
	}
}

static void take_in(struct gc_shadow *o, u32 region, u32 tag)
{
	u32 slot = o->where[region], of = o->slot[slot].tag;

	count_met(o, tag, of);
	o->block[slot / OVERWRITE_BLOCK].valid--;
	count_valid(o, of, -1);
	/* What was there before is taken to have been the writer's. */
	if (!of)
		o->slot[slot].tag = tag;
	count_invalid(o, o->slot[slot].tag, 1);
	place(o, OVERWRITE_WRITTEN, region, tag);
	count_valid(o, tag, 1);
}

static void empty_ring(struct gc_shadow *o, struct gc_shadow_ring *ring,
		       u32 spare_pct)
{
	u64 next = (u64)atomic64_read(&ring->next), wrote;

	if (next - ring->seen > OVERWRITE_RING)
		ring->seen = next - OVERWRITE_RING;
	for (; ring->seen != next; ring->seen++) {
		wrote = (u64)
			atomic64_xchg(&ring->wrote[ring->seen % OVERWRITE_RING],
				      0);
		if (!wrote)
			continue;
		take_in(o, (u32)wrote, (u32)(wrote >> TAG_SHIFT));
		collect(o, spare_pct);
	}
}

void gc_shadow_tick(struct gc_shadow *o, u32 spare_pct)
{
	unsigned long flags;
	u32 i;

	for (i = 0; i < o->nr_queues; i++) {
		if ((u64)atomic64_read(&o->ring[i].next) == o->ring[i].seen)
			continue;
		flags = port_lock(&o->lock);
		empty_ring(o, &o->ring[i], spare_pct);
		port_unlock(&o->lock, flags);
	}
}

/* -------------------------------------------------------------- estimates */

u64 gc_shadow_valid(const struct gc_shadow *o, const struct gc_shadow_flow *of)
{
	u64 valid = READ_ONCE(of->valid), met = READ_ONCE(of->met);
	u64 most = valid + READ_ONCE(o->unknown), all = most;

	if (!valid)
		return 0;
	if (met)
		all = div64_u64(READ_ONCE(of->known), met);
	return min(max(all, valid), most) << o->region_shift;
}

u64 gc_shadow_invalid(const struct gc_shadow *o,
		      const struct gc_shadow_flow *of)
{
	u64 invalid = READ_ONCE(of->invalid), owned = READ_ONCE(o->owned);
	u64 room = READ_ONCE(o->room);

	if (!owned)
		return 0;
	return mul_u64_u64_div_u64(invalid, max(room, owned), owned)
	       << o->region_shift;
}

u64 gc_shadow_lost(const struct gc_shadow *o)
{
	u64 lost = 0;
	u32 i;

	for (i = 0; i < o->nr_queues; i++)
		lost += (u64)atomic64_read(&o->ring[i].lost);
	return lost;
}

/* -------------------------------------------------------------------- life */

static void choose_regions(struct gc_shadow *o, u64 pages)
{
	o->region_shift = OVERWRITE_REGION_SHIFT;
	while (pages > (u64)OVERWRITE_REGIONS << o->region_shift)
		o->region_shift++;
	o->regions = (u32)((pages + BIT_ULL(o->region_shift) - 1) >>
			   o->region_shift);
	/* As many outdated pages as valid ones, and what is being filled. */
	o->nr_blocks =
		2 * (o->regions / OVERWRITE_BLOCK + 1) + 2 * OVERWRITE_STREAMS;
}

/* Full of what was there before; neighbours do not lie side by side. */
static void place_all(struct gc_shadow *o)
{
	u32 i;

	o->open[OVERWRITE_WRITTEN] = 0;
	o->open[OVERWRITE_COPIED] = o->nr_blocks - 1;
	for (i = 0; i < o->regions; i++)
		place(o, OVERWRITE_WRITTEN,
		      (u32)((u64)i * SHUFFLE % o->regions), 0);
	o->unknown = o->regions;
}

int gc_shadow_init(struct gc_shadow *o, u32 nr_queues, u64 pages)
{
	*o = (struct gc_shadow){ .nr_queues = nr_queues };
	choose_regions(o, pages);
	port_lock_init(&o->lock);
	o->ring = port_zalloc(nr_queues * sizeof(*o->ring));
	o->where = port_zalloc((o->regions + 1ULL) * sizeof(*o->where));
	o->slot = port_zalloc((u64)o->nr_blocks * OVERWRITE_BLOCK *
			      sizeof(*o->slot));
	o->block = port_zalloc(o->nr_blocks * sizeof(*o->block));
	if (o->ring && o->where && o->slot && o->block) {
		place_all(o);
		return 0;
	}
	gc_shadow_deinit(o);
	return -ENOMEM;
}

void gc_shadow_deinit(struct gc_shadow *o)
{
	port_free(o->block);
	port_free(o->slot);
	port_free(o->where);
	port_free(o->ring);
}
