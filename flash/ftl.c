// SPDX-License-Identifier: GPL-2.0
/*
 * ftl - the map, the blocks of each die, and GC step by step.  See ftl.h.
 *
 * Source: the layer is the page-mapped one with greedy cleaning that Desnoyers
 * analyses in Analytic Models of SSD Write Performance, ACM TOS 2014.
 *
 * Tested by tests/flash/map.c (against a plain map), gc.c (watermarks,
 * amplification against a formula) and audit.c (recount).
 */
#include "ftl.h"

enum {
	/* Free blocks of a die that only GC may take (F3). */
	RESERVE		= 1,
	/* Pages of rows without a valid page that one call passes over. */
	SCAN_PAGES	= 64,
	/* Blocks beyond gc_stop: each stream is filling one. */
	OPEN_BLOCKS	= FTL_STREAMS,
};

static struct ftl_block *block_of(const struct ftl *ftl, u32 at)
{
	return &ftl->block[at >> ftl->block_shift];
}

static u32 block_number(const struct ftl *ftl, const struct ftl_block *b)
{
	return (u32)(b - ftl->block);
}

static u32 round_up_divide(u64 a, u32 b)
{
	return (u32)div64_u64(a + b - 1, b);
}

/* ---------------------------- lists of closed blocks, by valid pages */

static void list_insert(struct ftl *ftl, struct ftl_block *b)
{
	struct ftl_die *die = &ftl->die[b->die];
	u32 number = block_number(ftl, b);
	u32 *first = &die->by_valid[b->valid];

	b->prev = FTL_NONE;
	b->next = *first;
	if (*first != FTL_NONE)
		ftl->block[*first].prev = number;
	else
		die->lists[b->valid / 64] |= BIT_ULL(b->valid % 64);
	*first = number;
}

static void list_remove(struct ftl *ftl, struct ftl_block *b)
{
	struct ftl_die *die = &ftl->die[b->die];

	if (b->next != FTL_NONE)
		ftl->block[b->next].prev = b->prev;
	if (b->prev != FTL_NONE) {
		ftl->block[b->prev].next = b->next;
		return;
	}
	die->by_valid[b->valid] = b->next;
	if (b->next == FTL_NONE)
		die->lists[b->valid / 64] &= ~BIT_ULL(b->valid % 64);
}

/*
 * Returns a closed block with the fewest valid pages.  If all pages of all
 * blocks are valid it returns NULL, because GC would free nothing.
 */
static struct ftl_block *list_least(const struct ftl *ftl,
				    const struct ftl_die *die)
{
	u32 word, valid;

	for (word = 0; word * 64 < ftl->block_pages; word++) {
		if (!die->lists[word])
			continue;
		valid = word * 64 + port_ffs64(die->lists[word]);
		return valid < ftl->block_pages ?
			       &ftl->block[die->by_valid[valid]] :
			       NULL;
	}
	return NULL;
}

/* -------------------------------------------------------------- free blocks */

static void free_put(struct ftl *ftl, struct ftl_block *b)
{
	struct ftl_die *die = &ftl->die[b->die];
	u32 number = block_number(ftl, b);

	b->state = BLOCK_FREE;
	b->programmed = 0;
	b->next = FTL_NONE;
	if (die->nr_free++)
		ftl->block[die->free_last].next = number;
	else
		die->free_first = number;
	die->free_last = number;
}

/* Takes the block that was erased longest ago, so that wear is even. */
static u32 free_take(struct ftl *ftl, struct ftl_die *die)
{
	u32 number = die->free_first;

	port_assert(die->nr_free);
	die->nr_free--;
	die->free_first = ftl->block[number].next;
	ftl->block[number].state = BLOCK_OPEN;
	ftl->block[number].next = FTL_NONE;
	return number;
}

/* ------------------------------------------------------------------ streams */

static bool stream_at_end(const struct ftl *ftl, const struct ftl_stream *s)
{
	return s->open == FTL_NONE || s->fill == ftl->block_pages;
}

static void stream_extend(struct ftl *ftl, struct ftl_die *die,
			  struct ftl_stream *s)
{
	u32 number = free_take(ftl, die);

	/* The block before may still have units to program. */
	if (s->oldest == FTL_NONE)
		s->oldest = number;
	else
		ftl->block[s->open].next = number;
	s->open = number;
	s->fill = 0;
	if (die->nr_free <= ftl->gc_start)
		die->collecting = true;
}

/* Takes the next physical page of the stream. */
static u32 stream_take(struct ftl *ftl, struct ftl_die *die,
		       struct ftl_stream *s)
{
	u32 at;

	if (stream_at_end(ftl, s))
		stream_extend(ftl, die, s);
	at = (s->open << ftl->block_shift) + s->fill++;
	if (!(s->fill & (ftl->unit_pages - 1)))
		s->units++;
	return at;
}

void ftl_programmed(struct ftl *ftl, u32 die, enum ftl_stream_kind kind)
{
	struct ftl_stream *s = &ftl->die[die].stream[kind];
	struct ftl_block *b = &ftl->block[s->oldest];

	port_assert(s->units);
	s->units--;
	b->programmed++;
	if ((u32)b->programmed << ftl->unit_shift != ftl->block_pages)
		return;
	s->oldest = b->next;
	if (s->oldest == FTL_NONE)
		s->open = FTL_NONE;
	b->state = BLOCK_CLOSED;
	list_insert(ftl, b);
}

/* -------------------------------------------------------------------- pages */

static void page_map(struct ftl *ftl, u32 page, u32 at, u16 tag)
{
	ftl->page_at[page] = at;
	ftl->page_of[at] = page;
	ftl->tag[at] = tag;
	block_of(ftl, at)->valid++;
}

static void page_unmap(struct ftl *ftl, u32 at)
{
	struct ftl_block *b = block_of(ftl, at);
	bool listed = b->state == BLOCK_CLOSED;

	if (listed)
		list_remove(ftl, b);
	b->valid--;
	if (listed)
		list_insert(ftl, b);
	ftl->page_of[at] = FTL_NONE;
}

static void page_drop(struct ftl *ftl, u32 page)
{
	u32 at = ftl->page_at[page];

	if (at == FTL_NONE)
		return;
	page_unmap(ftl, at);
	owner_page_invalid(&ftl->owners, ftl->tag[at]);
	ftl->page_at[page] = FTL_NONE;
	if (ftl->watch && ftl->watch->dropped)
		ftl->watch->dropped(ftl->watch->arg, page, at);
}

bool ftl_can_place(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->die[die];

	return !stream_at_end(ftl, &d->stream[STREAM_COMMANDS]) ||
	       d->nr_free > RESERVE;
}

bool ftl_place(struct ftl *ftl, u32 page, u16 tag, u32 die)
{
	struct ftl_die *d = &ftl->die[die];
	struct ftl_stream *s = &d->stream[STREAM_COMMANDS];
	u32 at;

	port_assert(ftl_can_place(ftl, die));
	at = stream_take(ftl, d, s);
	page_drop(ftl, page);
	page_map(ftl, page, at, tag);
	owner_page_valid(&ftl->owners, tag);
	owner_wrote(&ftl->owners, tag);
	if (ftl->watch && ftl->watch->placed)
		ftl->watch->placed(ftl->watch->arg, page, at);
	return !(s->fill & (ftl->unit_pages - 1));
}

void ftl_trim(struct ftl *ftl, u32 page)
{
	if (ftl->page_at[page] == FTL_NONE)
		return;
	page_drop(ftl, page);
	ftl->trimmed++;
}

/* ------------------------------------------------------- garbage collection */

enum ftl_gc_step ftl_gc_step(const struct ftl *ftl, u32 die)
{
	const struct ftl_die *d = &ftl->die[die];

	if (d->stream[STREAM_GC].units)
		return GC_PROGRAM;
	if (d->victim != FTL_NONE)
		return d->scan == ftl->block_pages ? GC_ERASE : GC_READ;
	if (d->collecting && list_least(ftl, d))
		return GC_READ;
	return GC_NOTHING;
}

bool ftl_gc_urgent(const struct ftl *ftl, u32 die)
{
	return ftl->die[die].nr_free <= RESERVE;
}

static void victim_choose(struct ftl *ftl, struct ftl_die *d)
{
	struct ftl_block *b = list_least(ftl, d);

	list_remove(ftl, b);
	b->state = BLOCK_VICTIM;
	d->victim = block_number(ftl, b);
	d->scan = 0;
}

static u32 victim_page(const struct ftl *ftl, const struct ftl_die *d)
{
	return (d->victim << ftl->block_shift) + d->scan;
}

static u32 row_valid(const struct ftl *ftl, u32 first)
{
	u32 valid = 0, i;

	for (i = 0; i < ftl->row_pages; i++)
		valid += ftl->page_of[first + i] != FTL_NONE;
	return valid;
}

/* The row at @first has no valid page; its pages leave their owners. */
static void row_collect(struct ftl *ftl, u32 first)
{
	u32 i;

	for (i = 0; i < ftl->row_pages; i++) {
		if (ftl->tag[first + i] == OWNER_NO_TAG)
			continue;
		owner_page_collected(&ftl->owners, ftl->tag[first + i]);
		ftl->tag[first + i] = OWNER_NO_TAG;
	}
}

u32 ftl_gc_read(struct ftl *ftl, u32 die)
{
	struct ftl_die *d = &ftl->die[die];
	u32 passed, valid;

	if (d->victim == FTL_NONE)
		victim_choose(ftl, d);
	for (passed = 0; passed < SCAN_PAGES && d->scan < ftl->block_pages;
	     passed += ftl->row_pages) {
		valid = row_valid(ftl, victim_page(ftl, d));
		if (valid)
			return valid;
		row_collect(ftl, victim_page(ftl, d));
		d->scan += ftl->row_pages;
	}
	return 0;
}

static void page_copy(struct ftl *ftl, struct ftl_die *d, u32 from)
{
	u32 page = ftl->page_of[from];
	u32 to = stream_take(ftl, d, &d->stream[STREAM_GC]);
	u16 tag = owner_page_copied(&ftl->owners, ftl->tag[from]);

	page_unmap(ftl, from);
	ftl->tag[from] = OWNER_NO_TAG;
	page_map(ftl, page, to, tag);
	ftl->copied++;
	if (ftl->watch && ftl->watch->copied)
		ftl->watch->copied(ftl->watch->arg, page, from, to);
}

void ftl_gc_copy(struct ftl *ftl, u32 die)
{
	struct ftl_die *d = &ftl->die[die];
	u32 first = victim_page(ftl, d), i;

	for (i = 0; i < ftl->row_pages; i++)
		if (ftl->page_of[first + i] != FTL_NONE)
			page_copy(ftl, d, first + i);
	row_collect(ftl, first);
	d->scan += ftl->row_pages;
}

void ftl_gc_erased(struct ftl *ftl, u32 die)
{
	struct ftl_die *d = &ftl->die[die];
	struct ftl_block *b = &ftl->block[d->victim];

	port_assert(!b->valid && d->scan == ftl->block_pages);
	if (ftl->watch && ftl->watch->erased)
		ftl->watch->erased(ftl->watch->arg,
				   d->victim << ftl->block_shift,
				   ftl->block_pages);
	d->victim = FTL_NONE;
	ftl->erases++;
	free_put(ftl, b);
	if (d->nr_free >= ftl->gc_stop)
		d->collecting = false;
}

/* ------------------------------------------------- creation and destruction */

u64 ftl_die_blocks(const struct flash_params *p, u64 pages)
{
	u32 die_pages = flash_nr_dies(p) * flash_block_pages(p);
	u32 logical = round_up_divide(pages, die_pages);
	u32 spare = round_up_divide((u64)logical * p->spare_permille, 1000);

	return logical + max(spare, p->gc_stop + OPEN_BLOCKS);
}

static u64 physical_pages(const struct ftl *ftl)
{
	return (u64)ftl->nr_dies * ftl->die_blocks << ftl->block_shift;
}

static void ftl_shape(struct ftl *ftl, const struct flash_config *c)
{
	const struct flash_params *p = c->params;

	ftl->pages = (u32)div64_u64(c->bytes, p->page_bytes);
	ftl->nr_dies = flash_nr_dies(p);
	ftl->die_blocks = (u32)ftl_die_blocks(p, ftl->pages);
	ftl->block_pages = flash_block_pages(p);
	ftl->block_shift = port_ffs64(ftl->block_pages);
	ftl->unit_pages = p->program_pages;
	ftl->unit_shift = port_ffs64(ftl->unit_pages);
	ftl->row_pages = p->planes * p->read_pages;
	ftl->gc_start = p->gc_start;
	ftl->gc_stop = p->gc_stop;
}

static u32 list_words(const struct ftl *ftl)
{
	return ftl->block_pages / 64 + 1;
}

u64 ftl_bytes(const struct flash_config *c)
{
	struct ftl ftl = { 0 };
	u64 blocks;

	ftl_shape(&ftl, c);
	blocks = (u64)ftl.nr_dies * ftl.die_blocks;
	return ftl.pages * sizeof(*ftl.page_at) +
	       (blocks << ftl.block_shift) *
		       (sizeof(*ftl.page_of) + sizeof(*ftl.tag)) +
	       blocks * sizeof(*ftl.block) +
	       ftl.nr_dies * (sizeof(*ftl.die) +
			      (ftl.block_pages + 1) * sizeof(*ftl.by_valid) +
			      list_words(&ftl) * sizeof(*ftl.lists)) +
	       owners_bytes(c->owners);
}

static bool ftl_alloc(struct ftl *ftl)
{
	u64 physical = physical_pages(ftl);
	u64 blocks = (u64)ftl->nr_dies * ftl->die_blocks;

	ftl->page_at = port_zalloc(ftl->pages * sizeof(*ftl->page_at));
	ftl->page_of = port_zalloc(physical * sizeof(*ftl->page_of));
	ftl->tag = port_zalloc(physical * sizeof(*ftl->tag));
	ftl->block = port_zalloc(blocks * sizeof(*ftl->block));
	ftl->die = port_zalloc(ftl->nr_dies * sizeof(*ftl->die));
	ftl->by_valid = port_zalloc((u64)ftl->nr_dies * (ftl->block_pages + 1) *
				    sizeof(*ftl->by_valid));
	ftl->lists = port_zalloc((u64)ftl->nr_dies * list_words(ftl) *
				 sizeof(*ftl->lists));
	return ftl->page_at && ftl->page_of && ftl->tag && ftl->block &&
	       ftl->die && ftl->by_valid && ftl->lists;
}

static void die_init(struct ftl *ftl, u32 number)
{
	struct ftl_die *d = &ftl->die[number];
	u32 i;

	d->by_valid = &ftl->by_valid[number * (ftl->block_pages + 1)];
	d->lists = &ftl->lists[number * list_words(ftl)];
	d->victim = FTL_NONE;
	for (i = 0; i <= ftl->block_pages; i++)
		d->by_valid[i] = FTL_NONE;
	for (i = 0; i < FTL_STREAMS; i++) {
		d->stream[i].open = FTL_NONE;
		d->stream[i].oldest = FTL_NONE;
	}
	for (i = 0; i < ftl->die_blocks; i++) {
		struct ftl_block *b = &ftl->block[number * ftl->die_blocks + i];

		b->die = (u16)number;
		free_put(ftl, b);
	}
}

static void pages_init(struct ftl *ftl)
{
	u64 physical = physical_pages(ftl), i;

	for (i = 0; i < ftl->pages; i++)
		ftl->page_at[i] = FTL_NONE;
	for (i = 0; i < physical; i++) {
		ftl->page_of[i] = FTL_NONE;
		ftl->tag[i] = OWNER_NO_TAG;
	}
}

int ftl_init(struct ftl *ftl, const struct flash_config *c)
{
	u32 i;

	*ftl = (struct ftl){ 0 };
	ftl_shape(ftl, c);
	if (!ftl_alloc(ftl) || owners_init(&ftl->owners, c->owners)) {
		ftl_exit(ftl);
		return -ENOMEM;
	}
	pages_init(ftl);
	for (i = 0; i < ftl->nr_dies; i++)
		die_init(ftl, i);
	return 0;
}

void ftl_exit(struct ftl *ftl)
{
	owners_exit(&ftl->owners);
	port_free(ftl->lists);
	port_free(ftl->by_valid);
	port_free(ftl->die);
	port_free(ftl->block);
	port_free(ftl->tag);
	port_free(ftl->page_of);
	port_free(ftl->page_at);
}
