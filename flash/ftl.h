/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ftl - page-mapped flash translation layer with greedy garbage collection
 *
 * The layer knows the physical page and the owner of every logical page, and it
 * knows no time.  Its caller says when a program or an erase has been done:
 * buffer.c and pipeline.c with the times of the model, fill.c with none.
 *
 * Space is managed by die.  A die has blocks of block_pages pages.  Two
 * *streams* fill blocks of a die: pages that commands write, and pages that
 * garbage collection (GC) copies.  A stream places pages into its open block in
 * order, and they are programmed in that order, in units of unit_pages.  A page
 * that is placed and not yet programmed is mapped already, and it is in the
 * buffer.  A block that is programmed to its end is *closed*.  A die has a list
 * of its closed blocks for each number of valid pages.
 *
 * GC of a die takes a closed block with the fewest valid pages as its victim
 * (greedy).  A bitmap of the lists that are not empty finds it.  It goes
 * through the victim by *rows*: a row is the row_pages pages that one read on
 * all planes brings.  ftl_gc_read() passes over rows without valid pages.
 * ftl_gc_copy() copies the valid pages of one row into the GC stream of the
 * die.  ftl_gc_erased() frees the block.  Each call handles at most a row or 64
 * pages.
 *
 * Watermarks, in free blocks of a die.  GC begins when gc_start blocks or fewer
 * are free, and ends when gc_stop are.  Commands may not take the last free
 * block, because GC cannot go on without one.
 *
 * Example.  gc_start is 2, gc_stop 3, and a block has 32 pages.  A command
 * takes the third free block, so GC begins.  The victim has 8 valid pages; they
 * are copied, and the victim is erased.  3 blocks are free again, so GC ends.
 * GC freed 32 pages and used 8, so 24 pages written by commands have cost 32
 * pages programmed: the amplification is 1.33.
 *
 * Invariants (tests/flash/audit.c checks F1 and F2)
 *   F1  page_at[] and page_of[] are inverse: no physical page is mapped twice,
 *       no logical page is lost.
 *   F2  `valid` of a block is the number of its pages that are mapped.
 *   F3  A die with a free block, or with a stream that is not at the end of its
 *       block, can collect.  A victim has fewer than block_pages valid pages.
 *       The open block and one free block hold them all, and the victim is free
 *       then.
 *   F4  Some die can place a page, or GC of some die will make it able to.  A
 *       die that can do neither has all but two blocks full of valid pages.
 *       With three blocks beyond its part of the capacity in each die, not all
 *       dies can be so.
 *
 * Memory: 4 bytes for each logical page; 6 for each physical page (its logical
 * page, and the tag of its owner).
 *
 * The caller serialises.
 */
#ifndef MQFAIR_FLASH_FTL_H
#define MQFAIR_FLASH_FTL_H

#include "flash.h"

#define FTL_NONE	(~0U)

enum ftl_block_state {
	BLOCK_FREE,
	BLOCK_OPEN,		/* being filled, or not yet programmed to its end */
	BLOCK_CLOSED,		/* in the list for its number of valid pages */
	BLOCK_VICTIM,
};

struct ftl_block {
	u32 next, prev;		/* in a list; open: next open block of the stream */
	u16 die;
	u16 valid;		/* pages */
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
	u32 fill;		/* pages placed in `open` */
	u32 oldest;		/* block of the next unit to program */
	u32 units;		/* full units that are not programmed */
};

struct ftl_die {
	struct ftl_stream stream[FTL_STREAMS];
	u32 free_first, free_last;
	u32 nr_free;
	u32 victim;		/* block, or FTL_NONE */
	u32 scan;		/* GC is done with the pages of the victim below */
	bool collecting;	/* GC has begun at gc_start and not yet ended */
	u32 *by_valid;		/* first block of each list of closed blocks */
	u64 *lists;		/* bitmap of the lists that are not empty */
};

struct ftl {
	u32 *page_at;		/* logical page -> physical, or FTL_NONE */
	u32 *page_of;		/* physical -> logical while valid */
	u16 *tag;		/* physical -> tag of the owner, until erased */
	struct ftl_block *block;
	struct ftl_die *die;
	u32 *by_valid;		/* of all dies: see struct ftl_die */
	u64 *lists;
	struct owners owners;
	const struct flash_watch *watch;
	u32 pages;		/* logical pages */
	u32 nr_dies, die_blocks;	/* blocks of each die */
	u32 block_pages, block_shift;
	u32 unit_pages, unit_shift;
	u32 row_pages;
	u32 gc_start, gc_stop;
	u64 copied, trimmed;	/* pages */
	u64 erases;
};

enum ftl_gc_step {
	GC_NOTHING,
	GC_READ,
	GC_PROGRAM,
	GC_ERASE,
};

/* Returns 0 or -ENOMEM. */
int ftl_init(struct ftl *ftl, const struct flash_config *c);
void ftl_exit(struct ftl *ftl);
/* Returns the bytes that ftl_init() allocates. */
u64 ftl_bytes(const struct flash_config *c);

/* Returns the blocks of each die for a capacity of @pages, spare included. */
u64 ftl_die_blocks(const struct flash_params *p, u64 pages);

/* Returns whether @die can take a page of a command. */
bool ftl_can_place(const struct ftl *ftl, u32 die);

/*
 * Places a new version of @page on @die, which can take it.  True: the page was
 * the last of a unit, and the caller has this unit programmed.
 */
bool ftl_place(struct ftl *ftl, u32 page, u16 tag, u32 die);

/* @page has no data any more. */
void ftl_trim(struct ftl *ftl, u32 page);

/* The oldest full unit of stream @kind of @die has been programmed. */
void ftl_programmed(struct ftl *ftl, u32 die, enum ftl_stream_kind kind);

/* Returns the next step of GC on @die; changes nothing. */
enum ftl_gc_step ftl_gc_step(const struct ftl *ftl, u32 die);

/* Returns whether @die has no free block left for commands. */
bool ftl_gc_urgent(const struct ftl *ftl, u32 die);

/*
 * For GC_READ: returns the number of valid pages in the row to read next.  0:
 * it passed over rows without any; the caller asks for the step again.
 */
u32 ftl_gc_read(struct ftl *ftl, u32 die);

/* The row has been read: copies the pages of it that are still valid. */
void ftl_gc_copy(struct ftl *ftl, u32 die);

/* For GC_ERASE: the victim has been erased and is free. */
void ftl_gc_erased(struct ftl *ftl, u32 die);

/* Returns whether physical page @at is placed and not yet programmed. */
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
