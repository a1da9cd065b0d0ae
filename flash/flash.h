/* SPDX-License-Identifier: GPL-2.0 */
/*
 * flash - a drive with insides: timing model and flash translation layer
 *
 * The host submits commands and is told when each is done.  It holds the data
 * itself, by logical page: nothing is stored here, so collecting garbage moves
 * no data.  Logical pages are params.page_bytes large and numbered from 0.
 *
 *	flash_submit(f, cmd, now);		cmd is the drive's until it is done
 *	arm a timer for flash_next_ns(f);	FLASH_NEVER: nothing to wait for
 *	at that time:
 *	    done = flash_advance(f, now, 64);	a list, linked by cmd->next
 *	    arm the timer for flash_next_ns(f); already past: the budget was spent
 *
 * Time is the host's: any u64 of nanoseconds that never goes back between
 * calls for one drive.  A host that stretches time multiplies before it
 * arms its timer and divides what its clock says.  Being called late does not
 * slow the drive down: what was to happen at t happens at t, and cmd->done_ns
 * says when, at most `now`.  Commands are handed back in order of done_ns,
 * which is not the order in which they were submitted.
 *
 * Locking: the host serialises all calls for one drive, by one lock; different
 * drives share nothing.  Any context will do, with interrupts off too: no call
 * sleeps, allocates or takes a lock, except flash_create() and flash_destroy(),
 * which want a context that may sleep.  Work per call: submit and next_ns O(1);
 * advance at most @budget events of at most 64 pages each; a 4 KiB read takes
 * four events.
 *
 * Readable from anywhere under the same lock, O(1): flash_usage() of an owner,
 * flash_stats().
 */
#ifndef MQFAIR_FLASH_H
#define MQFAIR_FLASH_H

#include "model.h"
#include "owner.h"

#define FLASH_NEVER	(~0ULL)

struct flash;

enum flash_op {
	FLASH_READ,
	FLASH_WRITE,		/* done when the write buffer has it all */
	FLASH_TRIM,
	FLASH_FLUSH,		/* the write buffer is protected: done at once */
};

/* Who keeps the map, and so who may know whose pages are where. */
enum flash_ftl {
	FLASH_FTL_DEVICE,	/* the drive: hidden, as in an NVMe drive */
	FLASH_FTL_HOST,		/* the host: the scheduler may read ownership */
};

/* The caller's memory.  Set the first four; flash_submit() sets the rest. */
struct flash_cmd {
	u32 page;		/* first */
	u32 pages;		/* not 0 but for FLASH_FLUSH */
	u32 owner;		/* FLASH_NO_OWNER or whoever is charged */
	u8 op;			/* enum flash_op */
	u64 submit_ns;
	u64 done_ns;
	struct flash_cmd *next;	/* of those done */
	u32 issued;		/* pages: private, as is all below */
	u32 pending;
};

struct flash_config {
	const struct flash_params *params;	/* copied */
	u64 bytes;		/* capacity: a multiple of params->page_bytes */
	u32 owners;		/* most at a time, up to OWNERS_MAX */
	enum flash_ftl ftl;
};

/* What happens to physical pages; each member may be NULL. For tests. */
struct flash_watch {
	void *arg;
	void (*placed)(void *arg, u32 page, u32 at);
	void (*copied)(void *arg, u32 page, u32 from, u32 to);
	void (*dropped)(void *arg, u32 page, u32 at);	/* outdated or trimmed */
	void (*erased)(void *arg, u32 first, u32 pages);
};

/* Since creation.  Pages, unless the name says otherwise. */
struct flash_stats {
	u64 read;		/* by commands */
	u64 buffer_hits;	/* of these, not in flash: buffered or unwritten */
	u64 written;		/* by commands and flash_fill() */
	u64 copied;		/* by collecting */
	u64 trimmed;
	u64 programs;
	u64 erases;
	u64 write_stalls;	/* times the write buffer was full when wanted */
	u64 read_busy_ns;	/* planes reading for commands */
	u64 program_busy_ns;	/* dies programming for commands */
	u64 gc_busy_ns;		/* dies reading, programming, erasing for GC */
};

/* NULL if a drive can be made of it, or what is wrong and what would do. */
const char *flash_config_wrong(const struct flash_config *c);

/* What flash_create() takes. */
u64 flash_memory_bytes(const struct flash_config *c);

/* NULL: no memory, or flash_config_wrong(). */
struct flash *flash_create(const struct flash_config *c);

/* Nothing is outstanding. */
void flash_destroy(struct flash *f);

/* @cmd lies within the capacity. */
void flash_submit(struct flash *f, struct flash_cmd *cmd, u64 now);

/*
 * Has everything happen that is due at @now, up to @budget events.  Returns
 * the commands that are done, earliest first, or NULL.
 */
struct flash_cmd *flash_advance(struct flash *f, u64 now, u32 budget);

/* When flash_advance() should be called next, or FLASH_NEVER. */
u64 flash_next_ns(const struct flash *f);

/* Commands submitted and not yet handed back. */
u32 flash_outstanding(const struct flash *f);

/*
 * New times (the geometry, spare and buffer must be the same): a drive that
 * becomes slower, or one whose time is stretched in part.
 */
void flash_retime(struct flash *f, const struct flash_params *p);

const struct flash_params *flash_params_of(const struct flash *f);
u32 flash_pages(const struct flash *f);		/* capacity */
struct flash_stats flash_stats(const struct flash *f);

/* (written + moved) / written, in thousandths; 1000 before any write. */
u64 flash_amplification_permille(u64 written, u64 copied);

/*
 * Whose pages, and for whom planes were busy: flash_usage.busy_ns is what the
 * drive's time is made of, and the truth that a scheduler's costs are held to.
 * A plane is busy for an owner while it reads for its commands, and while what
 * it wrote is programmed, each plane of the die for that page's part; the
 * transfers of both count, waiting for a channel does not.  What collecting
 * keeps planes busy for is paid for by whoever writes, page by page: it is for
 * them that room is made.
 *
 * The scheduler's doors are flash_host_usage() and flash_host_spent(), the sum
 * over all owners, for reads and for writes: they answer only where the host
 * keeps the map.  flash_usage() is for reports and tests.  False, and zeroes:
 * the owner has never written (or is not to be known).
 */
struct flash_spent {
	u64 read_ns, write_ns;
	u64 busy_ns;		/* of planes, when they were, without transfers */
	u32 planes;		/* that there are */
};

bool flash_usage(const struct flash *f, u32 owner, struct flash_usage *usage);
bool flash_host_usage(const struct flash *f, u32 owner,
		      struct flash_usage *usage);
bool flash_host_spent(const struct flash *f, struct flash_spent *spent);

/*
 * @from goes: its pages and figures are @to's from now on.  O(1).  Writes of
 * @from that are still outstanding would make it known again.
 */
void flash_owner_move(struct flash *f, u32 from, u32 to);

/*
 * Fills the drive without the time that writing takes: the pages @first to
 * @first + @pages - 1 once each, in order or shuffled, then @overwrites more
 * at random among them, collecting garbage as the drive would.  One and a half
 * times the capacity in overwrites brings it to its steady state.
 *
 * The caller sets what is above the line and zeroes the rest, and calls again
 * until the answer is false; each call writes and moves about @budget pages.
 * From the first call to the last the drive is idle: flash_next_ns() says
 * FLASH_NEVER.
 */
struct flash_fill {
	u32 first, pages;
	u64 overwrites;
	u32 owner;
	u64 seed;
	bool shuffled;
	bool written;		/* already: only the overwrites */
	/* private */
	u64 done;		/* pages considered */
	u64 state;
};

bool flash_fill(struct flash *f, struct flash_fill *fill, u32 budget);

/* @watch: NULL to end; the caller's for as long. */
void flash_set_watch(struct flash *f, const struct flash_watch *watch);

/* Where page @page is in flash, or FLASH_NOWHERE. */
#define FLASH_NOWHERE	(~0U)
u32 flash_where(const struct flash *f, u32 page);

#endif /* MQFAIR_FLASH_H */
