/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ftl - page-mapped translation layer with greedy garbage collection
 *
 * Knows where every logical page is and whose it is, and nothing of time:
 * whoever drives it (flash.c with the times of the model, fill.c with none)
 * says when a program or an erase has been done.
 *
 * Space is managed by die.  A die has blocks of block_pages pages; pages are
 * placed into the open block of one of two *streams*, what commands write and
 * what collecting moves, and are programmed in units of program_pages, in the
 * order of placing.  A page that is placed and not yet programmed is in the
 * buffer and is mapped already.  A block that is programmed to its end waits
 * in a list of its number of valid pages; the victim is from the first list
 * that is not empty (greedy), found by a bitmap.
 *
 * Collecting a victim goes row by row (a row is what one read on all planes
 * brings): ftl_gc_read() passes over rows without valid pages, ftl_gc_copy()
 * moves those of one row into the same die's second stream, ftl_gc_erased()
 * gives the block back.  So each call is bounded by a row, or by 64 pages.
 *
 * Watermarks, in free blocks of a die: collecting begins at gc_start or fewer
 * and ends at gc_stop.  Commands may not take the last one: it is what
 * collecting needs to go on.
 *
 * Invariants (checked by tests/flash/audit.c)
 *   F1  page_at[] and page_of[] are inverse: no page twice, none lost.
 *   F2  a block's `valid` is the number of its pages that are mapped.
 *   F3  a die with a free block or a stream that is not at its end can collect:
 *       a victim has less than block_pages valid pages, the open block and one
 *       free block hold them all, and the victim itself is then free.
 *   F4  some die can place a page, or one that collects will: a die that can
 *       neither has all but two blocks full of valid pages, and with three
 *       blocks beyond its part of the capacity not all dies are so.
 *
 * Memory: 4 bytes for each logical page; 6 for each page of flash (the logical
 * page, the owner's tag).
 *
 * The caller serialises.
 */
#ifndef MQFAIR_FLASH_FTL_H
#define MQFAIR_FLASH_FTL_H

#include "flash.h"

#define FTL_NONE	(~0U)

enum ftl_block_state {
	BLOCK_FREE,
	BLOCK_OPEN,		/* being filled, or not programmed to its end */
	BLOCK_CLOSED,		/* in the list of its number of valid pages */
	BLOCK_VICTIM,
};

struct ftl_block {
	u32 next, prev;		/* in a list; open: next is the one after it */
	u16 die;
	u16 valid;
	u16 programmed;		/* units */
	u8 state;
};

enum ftl_stream_kind {
	STREAM_COMMANDS,
	STREAM_GC,
	FTL_STREAMS,
};

struct ftl_stream {
	u32 open;		/* block that is being filled, or FTL_NONE */
	u32 fill;		/* pages in it */
	u32 oldest;		/* block of the next unit to be programmed */
	u32 units;		/* full, not programmed */
};

struct ftl_die {
	struct ftl_stream stream[FTL_STREAMS];
	u32 free_first, free_last;
	u32 nr_free;
	u32 victim;		/* block, or FTL_NONE */
	u32 scan;		/* its pages below this one are done */
	bool collecting;	/* from gc_start to gc_stop */
	u32 *by_valid;		/* first block of each list */
	u64 *lists;		/* bitmap of those not empty */
};

struct ftl {
	u32 *page_at;		/* logical page -> physical, or FTL_NONE */
	u32 *page_of;		/* physical -> logical while valid */
	u16 *tag;		/* physical -> owner, while not erased */
	struct ftl_block *block;
	struct ftl_die *die;
	u32 *by_valid;
	u64 *lists;
	struct owners owners;
	const struct flash_watch *watch;
	u32 pages;		/* logical */
	u32 nr_dies, die_blocks;
	u32 block_pages, block_shift;
	u32 unit_pages, unit_shift;
	u32 row_pages;
	u32 gc_start, gc_stop;
	u64 copied, erases, trimmed;
};

enum ftl_gc_step {
	GC_NOTHING,
	GC_READ,
	GC_PROGRAM,
	GC_ERASE,
};

/* 0 or -ENOMEM. */
int ftl_init(struct ftl *ftl, const struct flash_config *c);
void ftl_exit(struct ftl *ftl);
u64 ftl_bytes(const struct flash_config *c);

/* Blocks of a die for a capacity. */
u64 ftl_die_blocks(const struct flash_params *p, u64 pages);

/* May @die take a page of a command? */
bool ftl_can_place(const struct ftl *ftl, u32 die);

/*
 * Puts a new version of @page on @die, which can take it.  True: this was the
 * last of a unit, and the unit is to be programmed.
 */
bool ftl_place(struct ftl *ftl, u32 page, u16 tag, u32 die);

void ftl_trim(struct ftl *ftl, u32 page);

/* The oldest full unit of that stream of @die is in flash. */
void ftl_programmed(struct ftl *ftl, u32 die, enum ftl_stream_kind kind);

/* What collecting on @die wants next; changes nothing. */
enum ftl_gc_step ftl_gc_step(const struct ftl *ftl, u32 die);

/* Only collecting can bring @die a free block for commands. */
bool ftl_gc_urgent(const struct ftl *ftl, u32 die);

/*
 * GC_READ: the number of valid pages in the row to be read now; 0: passed over
 * some, ask for the step again.
 */
u32 ftl_gc_read(struct ftl *ftl, u32 die);

/* That row has been read: moves what is still valid of it. */
void ftl_gc_copy(struct ftl *ftl, u32 die);

/* GC_ERASE has been done. */
void ftl_gc_erased(struct ftl *ftl, u32 die);

/* Is physical page @at in the buffer? */
static inline bool ftl_buffered(const struct ftl *ftl, u32 at)
{
	u32 unit = (at & (ftl->block_pages - 1)) >> ftl->unit_shift;

	return unit >= ftl->block[at >> ftl->block_shift].programmed;
}

static inline u32 ftl_die_of(const struct ftl *ftl, u32 at)
{
	return ftl->block[at >> ftl->block_shift].die;
}

#endif /* MQFAIR_FLASH_FTL_H */
