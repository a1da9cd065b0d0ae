// SPDX-License-Identifier: GPL-2.0
/*
 * Counts everything again from the map that flash/ keeps a count of: valid
 * pages, lists of blocks, units, pages of owners, pages in the buffer.
 */
#include "fixture.h"

#define FAIL_IF(cond) do {			\
	if (cond)				\
		return "audit: " #cond;		\
} while (0)

static u32 physical(const struct ftl *ftl)
{
	return ftl->nr_dies * ftl->die_blocks << ftl->block_shift;
}

/* Checks F1 of ftl.h, in both directions. */
static const char *audit_map(const struct ftl *ftl)
{
	u32 mapped = 0, placed = 0, i;

	for (i = 0; i < ftl->pages; i++) {
		u32 at = ftl->page_at[i];

		if (at == FTL_NONE)
			continue;
		mapped++;
		FAIL_IF(at >= physical(ftl));
		FAIL_IF(ftl->page_of[at] != i);
		FAIL_IF(ftl->tag[at] == OWNER_NO_TAG);
	}
	for (i = 0; i < physical(ftl); i++)
		placed += ftl->page_of[i] != FTL_NONE;
	FAIL_IF(mapped != placed);
	return NULL;
}

/* Returns the number of pages of the block that have been placed. */
static u32 block_fill(const struct ftl *ftl, u32 number)
{
	const struct ftl_block *b = &ftl->block[number];
	const struct ftl_die *d = &ftl->die[b->die];
	u32 i;

	if (b->state == BLOCK_FREE)
		return 0;
	for (i = 0; i < FTL_STREAMS; i++)
		if (d->stream[i].open == number)
			return d->stream[i].fill;
	return ftl->block_pages;
}

/* Checks F2 of ftl.h, and the state of the block. */
static const char *audit_block(const struct ftl *ftl, u32 number)
{
	const struct ftl_block *b = &ftl->block[number];
	const struct ftl_die *d = &ftl->die[b->die];
	u32 first = number << ftl->block_shift, valid = 0, i;
	u32 fill = block_fill(ftl, number);
	u32 collected = d->victim == number ? d->scan : 0;

	FAIL_IF(b->die != number / ftl->die_blocks);
	for (i = 0; i < ftl->block_pages; i++) {
		bool written = i >= collected && i < fill;

		valid += ftl->page_of[first + i] != FTL_NONE;
		FAIL_IF(written != (ftl->tag[first + i] != OWNER_NO_TAG));
		FAIL_IF(!written && ftl->page_of[first + i] != FTL_NONE);
	}
	FAIL_IF(b->valid != valid);
	FAIL_IF((b->state == BLOCK_VICTIM) != (d->victim == number));
	FAIL_IF((u32)b->programmed << ftl->unit_shift > fill);
	if (b->state == BLOCK_CLOSED)
		FAIL_IF((u32)b->programmed << ftl->unit_shift !=
			ftl->block_pages);
	return NULL;
}

/* Checks the lists of closed blocks; counts their blocks in *@listed. */
static const char *audit_lists(const struct ftl *ftl, const struct ftl_die *d,
			       u32 *listed)
{
	u32 valid, number, previous;

	for (valid = 0; valid <= ftl->block_pages; valid++) {
		bool marked = d->lists[valid / 64] & BIT_ULL(valid % 64);

		number = d->by_valid[valid];
		FAIL_IF(marked != (number != FTL_NONE));
		previous = FTL_NONE;
		for (; number != FTL_NONE; number = ftl->block[number].next) {
			const struct ftl_block *b = &ftl->block[number];

			FAIL_IF(b->state != BLOCK_CLOSED);
			FAIL_IF(b->valid != valid);
			FAIL_IF(b->prev != previous);
			FAIL_IF(++*listed > ftl->die_blocks);
			previous = number;
		}
	}
	return NULL;
}

/* Counts the units from the oldest to the last that is full. */
static const char *audit_stream(const struct ftl *ftl,
				const struct ftl_stream *s)
{
	u32 number, units = 0, blocks = 0;

	for (number = s->oldest; number != FTL_NONE;
	     number = ftl->block[number].next) {
		u32 fill = number == s->open ? s->fill : ftl->block_pages;

		FAIL_IF(ftl->block[number].state != BLOCK_OPEN);
		FAIL_IF(++blocks > ftl->die_blocks);
		units += (fill >> ftl->unit_shift) -
			 ftl->block[number].programmed;
	}
	FAIL_IF(units != s->units);
	return NULL;
}

static const char *audit_die(const struct ftl *ftl, u32 number)
{
	const struct ftl_die *d = &ftl->die[number];
	u32 count[BLOCK_VICTIM + 1] = { 0 };
	u32 listed = 0, free = 0, i;
	const char *wrong;

	for (i = 0; i < ftl->die_blocks; i++)
		count[ftl->block[number * ftl->die_blocks + i].state]++;
	wrong = audit_lists(ftl, d, &listed);
	for (i = 0; !wrong && i < FTL_STREAMS; i++)
		wrong = audit_stream(ftl, &d->stream[i]);
	if (wrong)
		return wrong;
	FAIL_IF(listed != count[BLOCK_CLOSED]);
	for (i = d->free_first; d->nr_free && i != FTL_NONE;
	     i = ftl->block[i].next) {
		FAIL_IF(ftl->block[i].state != BLOCK_FREE);
		FAIL_IF(++free > ftl->die_blocks);
	}
	FAIL_IF(free != d->nr_free || free != count[BLOCK_FREE]);
	FAIL_IF(count[BLOCK_VICTIM] != (d->victim != FTL_NONE));
	return NULL;
}

/* A recount for one tag; children is ~0 for a free tag. */
struct count {
	u64 valid, invalid, pages, children;
};

static u16 root_of(const struct owners *o, u16 tag)
{
	while (o->owner[tag].parent != tag)
		tag = o->owner[tag].parent;
	return tag;
}

static const char *audit_counts(const struct owners *o, struct count *count)
{
	u32 tag;
	u16 free;

	for (free = o->free; free != OWNER_NO_TAG;
	     free = o->owner[free].hash_next)
		count[free].children = ~0ULL;
	for (tag = 0; tag <= o->nr; tag++)
		if (count[tag].children != ~0ULL && o->owner[tag].parent != tag)
			count[o->owner[tag].parent].children++;
	for (tag = 0; tag <= o->nr; tag++) {
		const struct owner *owner = &o->owner[tag];

		if (count[tag].children == ~0ULL) {
			FAIL_IF(count[tag].pages);
			continue;
		}
		FAIL_IF(owner->pages != count[tag].pages);
		FAIL_IF(owner->children != count[tag].children);
		if (owner->parent != tag) {
			FAIL_IF(!owner->pages && !owner->children);
			continue;
		}
		FAIL_IF(owner->usage.valid != count[tag].valid);
		FAIL_IF(owner->usage.invalid != count[tag].invalid);
	}
	return NULL;
}

static const char *audit_owners(const struct ftl *ftl)
{
	const struct owners *o = &ftl->owners;
	struct count *count = port_zalloc((o->nr + 1) * sizeof(*count));
	const char *wrong;
	u32 i;

	port_assert(count);
	for (i = 0; i < physical(ftl); i++) {
		struct count *root;

		if (ftl->tag[i] == OWNER_NO_TAG)
			continue;
		count[ftl->tag[i]].pages++;
		root = &count[root_of(o, ftl->tag[i])];
		if (ftl->page_of[i] == FTL_NONE)
			root->invalid++;
		else
			root->valid++;
	}
	wrong = audit_counts(o, count);
	port_free(count);
	return wrong;
}

/* The buffer holds pages on the link, and pages placed but not programmed. */
static const char *audit_buffer(const struct flash *f)
{
	const struct ftl *ftl = &f->ftl;
	u32 buffered = f->link_pages, i;

	for (i = 0; i < ftl->nr_dies; i++) {
		const struct ftl_stream *s =
			&ftl->die[i].stream[STREAM_COMMANDS];

		buffered += s->units << ftl->unit_shift;
		if (s->open != FTL_NONE)
			buffered += s->fill & (ftl->unit_pages - 1);
	}
	FAIL_IF(f->buffered != buffered);
	FAIL_IF(f->buffered > f->params.buffer_pages);
	return NULL;
}

const char *audit(const struct flash *f)
{
	const struct ftl *ftl = &f->ftl;
	const char *wrong = audit_map(ftl);
	u32 i;

	for (i = 0; !wrong && i < ftl->nr_dies * ftl->die_blocks; i++)
		wrong = audit_block(ftl, i);
	for (i = 0; !wrong && i < ftl->nr_dies; i++)
		wrong = audit_die(ftl, i);
	if (!wrong)
		wrong = audit_owners(ftl);
	return wrong ? wrong : audit_buffer(f);
}
