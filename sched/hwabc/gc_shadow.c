// SPDX-License-Identifier: GPL-2.0
#include "gc_shadow.h"

enum {
	TAG_SHIFT	= 32,
	/* Writes after which the sums `known` and `met` have decayed to 1/e. */
	MEMORY_SHIFT	= 10,
	PERCENT		= 100,
	/*
	 * A prime, so place_all() places each region once, if their number is
	 * no multiple of it.
	 */
	SHUFFLE		= 7919,
};

/* Murmur3's finaliser (Appleby, 2011): each bit depends on all others. */
static u64 hash(u32 region)
{
	u64 h = region + 0x9e3779b97f4a7c15ULL;

	h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
	h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
	return h ^ (h >> 33);
}

/* The page of the region that is in the sample. */
static u64 page_of(const struct gc_shadow *g, u32 region)
{
	return ((u64)region << g->region_shift) |
	       (hash(region) & (BIT_ULL(g->region_shift) - 1));
}

/* ----------------------------------------------------------- the I/O path */

static void ring_put(struct gc_shadow_ring *ring, u32 region, u32 tag)
{
	u64 at = (u64)atomic64_fetch_add(1, &ring->next) % GC_SHADOW_RING;

	/*
	 * If tick has passed this entry already, it never sees it.  The entry
	 * of the next lap replaces it, and counts it as lost.
	 */
	if (atomic64_xchg(&ring->wrote[at],
			  (s64)((u64)tag << TAG_SHIFT | region)))
		atomic64_inc(&ring->lost);
}

void gc_shadow_wrote(struct gc_shadow *g, const struct gc_shadow_flow *gf,
		     u32 queue, u64 page, u32 bytes)
{
	u64 end = page + (bytes + GC_SHADOW_PAGE - 1) / GC_SHADOW_PAGE;
	u64 region = page >> g->region_shift;

	for (; region < g->regions && region << g->region_shift < end;
	     region++) {
		u64 sampled = page_of(g, (u32)region);

		if (sampled >= page && sampled < end)
			ring_put(&g->ring[queue], (u32)region, gf->tag);
	}
}

/* ------------------------------------------------------------------ flows */

static struct gc_shadow_flow **bucket_of(struct gc_shadow *g, u32 tag)
{
	return &g->bucket[tag % GC_SHADOW_BUCKETS];
}

static struct gc_shadow_flow *find_flow(struct gc_shadow *g, u32 tag)
{
	struct gc_shadow_flow *gf = *bucket_of(g, tag);

	port_assert_held(&g->lock);
	while (gf && gf->tag != tag)
		gf = gf->next;
	return gf;
}

void gc_shadow_flow_init(struct gc_shadow *g, struct gc_shadow_flow *gf)
{
	unsigned long flags = port_lock(&g->lock);

	/* After 2^32 cgroups, two may have the same tag. */
	if (!++g->tags)
		g->tags = 1;
	gf->tag = g->tags;
	gf->link = bucket_of(g, gf->tag);
	gf->next = *gf->link;
	if (gf->next)
		gf->next->link = &gf->next;
	*gf->link = gf;
	port_unlock(&g->lock, flags);
}

void gc_shadow_flow_exit(struct gc_shadow *g, struct gc_shadow_flow *gf)
{
	unsigned long flags = port_lock(&g->lock);

	*gf->link = gf->next;
	if (gf->next)
		gf->next->link = gf->link;
	WRITE_ONCE(g->owned, g->owned - (u32)gf->invalid);
	WRITE_ONCE(g->unknown, g->unknown + (u32)gf->valid);
	port_unlock(&g->lock, flags);
}

static void count_valid(struct gc_shadow *g, u32 tag, s32 more)
{
	struct gc_shadow_flow *gf = find_flow(g, tag);

	if (gf)
		WRITE_ONCE(gf->valid, gf->valid + more);
	else
		WRITE_ONCE(g->unknown, g->unknown + more);
}

static void count_invalid(struct gc_shadow *g, u32 tag, s32 more)
{
	struct gc_shadow_flow *gf = find_flow(g, tag);

	g->invalid += more;
	if (!gf)
		return;
	WRITE_ONCE(gf->invalid, gf->invalid + more);
	WRITE_ONCE(g->owned, g->owned + more);
}

/* Flow @tag wrote a page of flow @owner_tag. */
static void count_met(struct gc_shadow *g, u32 tag, u32 owner_tag)
{
	struct gc_shadow_flow *gf = find_flow(g, tag);

	if (!gf)
		return;
	gf->known -= gf->known >> MEMORY_SHIFT;
	WRITE_ONCE(gf->known, gf->known + (gf->valid << MEMORY_SHIFT));
	gf->met -= gf->met >> MEMORY_SHIFT;
	if (tag == owner_tag)
		WRITE_ONCE(gf->met, gf->met + (1 << MEMORY_SHIFT));
}

/* --------------------------------------------------------------- the log */

static u32 find_free_block(const struct gc_shadow *g)
{
	u32 i = 0;

	while (i < g->nr_blocks && g->block[i].fill)
		i++;
	port_assert(i < g->nr_blocks);
	return i;
}

static void place(struct gc_shadow *g, enum gc_shadow_stream stream, u32 region,
		  u32 tag)
{
	struct gc_shadow_block *b = &g->block[g->open[stream]];
	u32 slot;

	if (b->fill == GC_SHADOW_BLOCK) {
		g->open[stream] = find_free_block(g);
		b = &g->block[g->open[stream]];
	}
	slot = g->open[stream] * GC_SHADOW_BLOCK + b->fill++;
	b->valid++;
	g->slot[slot] = (struct gc_shadow_slot){ .region = region, .tag = tag };
	g->where[region] = slot;
}

/* The full block with the fewest valid pages, or nr_blocks. */
static u32 choose_victim(const struct gc_shadow *g)
{
	u32 victim = g->nr_blocks, least = GC_SHADOW_BLOCK, i;

	for (i = 0; i < g->nr_blocks; i++)
		if (g->block[i].fill == GC_SHADOW_BLOCK &&
		    g->block[i].valid < least) {
			least = g->block[i].valid;
			victim = i;
		}
	return victim;
}

static void collect_block(struct gc_shadow *g, u32 victim)
{
	u32 first = victim * GC_SHADOW_BLOCK, i;

	for (i = first; i < first + GC_SHADOW_BLOCK; i++) {
		struct gc_shadow_slot s = g->slot[i];

		if (g->where[s.region] == i)
			place(g, GC_SHADOW_COPIED, s.region, s.tag);
		else
			count_invalid(g, s.tag, -1);
	}
	g->block[victim] = (struct gc_shadow_block){ 0 };
}

/* Collects while the drive has no room for so many invalid pages. */
static void collect(struct gc_shadow *g, u32 spare_pct)
{
	u64 room = div64_u64((u64)g->regions * spare_pct, PERCENT);
	u32 victim;

	WRITE_ONCE(g->room, (u32)room);
	while (g->invalid > g->room) {
		victim = choose_victim(g);
		if (victim == g->nr_blocks)
			return;
		collect_block(g, victim);
	}
}

static void take_in(struct gc_shadow *g, u32 region, u32 tag)
{
	u32 slot = g->where[region], owner = g->slot[slot].tag;

	count_met(g, tag, owner);
	g->block[slot / GC_SHADOW_BLOCK].valid--;
	count_valid(g, owner, -1);
	/* A page of no flow is taken to have been the writer's. */
	if (!owner)
		g->slot[slot].tag = tag;
	count_invalid(g, g->slot[slot].tag, 1);
	place(g, GC_SHADOW_WRITTEN, region, tag);
	count_valid(g, tag, 1);
}

static void empty_ring(struct gc_shadow *g, struct gc_shadow_ring *ring,
		       u32 spare_pct)
{
	u64 next = (u64)atomic64_read(&ring->next), wrote;

	if (next - ring->seen > GC_SHADOW_RING)
		ring->seen = next - GC_SHADOW_RING;
	for (; ring->seen != next; ring->seen++) {
		wrote = (u64)
			atomic64_xchg(&ring->wrote[ring->seen % GC_SHADOW_RING],
				      0);
		if (!wrote)
			continue;
		take_in(g, (u32)wrote, (u32)(wrote >> TAG_SHIFT));
		collect(g, spare_pct);
	}
}

void gc_shadow_tick(struct gc_shadow *g, u32 spare_pct)
{
	unsigned long flags;
	u32 i;

	for (i = 0; i < g->nr_queues; i++) {
		if ((u64)atomic64_read(&g->ring[i].next) == g->ring[i].seen)
			continue;
		flags = port_lock(&g->lock);
		empty_ring(g, &g->ring[i], spare_pct);
		port_unlock(&g->lock, flags);
	}
}

/* -------------------------------------------------------------- estimates */

u64 gc_shadow_valid(const struct gc_shadow *g, const struct gc_shadow_flow *gf)
{
	u64 valid = READ_ONCE(gf->valid), met = READ_ONCE(gf->met);
	u64 most = valid + READ_ONCE(g->unknown), all = most;

	if (!valid)
		return 0;
	if (met)
		all = div64_u64(READ_ONCE(gf->known), met);
	return min(max(all, valid), most) << g->region_shift;
}

u64 gc_shadow_invalid(const struct gc_shadow *g,
		      const struct gc_shadow_flow *gf)
{
	u64 invalid = READ_ONCE(gf->invalid), owned = READ_ONCE(g->owned);
	u64 room = READ_ONCE(g->room);

	if (!owned)
		return 0;
	return mul_u64_u64_div_u64(invalid, max(room, owned), owned)
	       << g->region_shift;
}

u64 gc_shadow_lost(const struct gc_shadow *g)
{
	u64 lost = 0;
	u32 i;

	for (i = 0; i < g->nr_queues; i++)
		lost += (u64)atomic64_read(&g->ring[i].lost);
	return lost;
}

/* ------------------------------------------------------------------- life */

static void choose_regions(struct gc_shadow *g, u64 pages)
{
	g->region_shift = GC_SHADOW_REGION_SHIFT;
	while (pages > (u64)GC_SHADOW_REGIONS << g->region_shift)
		g->region_shift++;
	g->regions = (u32)((pages + BIT_ULL(g->region_shift) - 1) >>
			   g->region_shift);
	/* As many invalid pages as valid ones, and the blocks being filled. */
	g->nr_blocks =
		2 * (g->regions / GC_SHADOW_BLOCK + 1) + 2 * GC_SHADOW_STREAMS;
}

/* Full of data from before; neighbours do not lie side by side. */
static void place_all(struct gc_shadow *g)
{
	u32 i;

	g->open[GC_SHADOW_WRITTEN] = 0;
	g->open[GC_SHADOW_COPIED] = g->nr_blocks - 1;
	for (i = 0; i < g->regions; i++)
		place(g, GC_SHADOW_WRITTEN,
		      (u32)((u64)i * SHUFFLE % g->regions), 0);
	g->unknown = g->regions;
}

int gc_shadow_init(struct gc_shadow *g, u32 nr_queues, u64 pages)
{
	*g = (struct gc_shadow){ .nr_queues = nr_queues };
	choose_regions(g, pages);
	port_lock_init(&g->lock);
	g->ring = port_zalloc(nr_queues * sizeof(*g->ring));
	g->where = port_zalloc((g->regions + 1ULL) * sizeof(*g->where));
	g->slot = port_zalloc((u64)g->nr_blocks * GC_SHADOW_BLOCK *
			      sizeof(*g->slot));
	g->block = port_zalloc(g->nr_blocks * sizeof(*g->block));
	if (g->ring && g->where && g->slot && g->block) {
		place_all(g);
		return 0;
	}
	gc_shadow_deinit(g);
	return -ENOMEM;
}

void gc_shadow_deinit(struct gc_shadow *g)
{
	port_free(g->block);
	port_free(g->slot);
	port_free(g->where);
	port_free(g->ring);
}
