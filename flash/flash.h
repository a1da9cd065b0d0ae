/* SPDX-License-Identifier: GPL-2.0 */
/*
 * flash - a drive with insides: a timing model and a flash translation layer
 *
 * This header is the contract of the model.  A *drive* is one struct flash.
 * The *caller* is the code that owns it: sim/device.c in the simulator,
 * kernel/ssd in the virtual SSD.  "Device" is said of the block device that a
 * scheduler sees, never of the drive.
 *
 * The caller submits commands, and the drive says when each of them is done.
 * The drive stores no data: the caller keeps the data by logical page, so
 * garbage collection (GC) copies entries of the map only.  A page has
 * params.page_bytes bytes, and logical pages are numbered from 0.
 *
 *	flash_submit(f, cmd, now);		cmd belongs to the drive
 *	arm a timer for flash_next_ns(f);	FLASH_NEVER: no timer is needed
 *	when the timer fires:
 *	    done = flash_advance(f, now, 64);	a list, linked by cmd->next;
 *						these belong to the caller again
 *	    arm the timer for flash_next_ns(f); it is in the past if the budget
 *						of 64 events was used up
 *
 * Time.  All times are u64 nanoseconds of the caller's clock, which must not go
 * back between two calls for one drive.  A caller that stretches time
 * multiplies before it arms its timer, and divides the time of its clock.  A
 * call after flash_next_ns() does not slow the drive down: an event that is due
 * at t happens at t.  cmd->done_ns, at most `now`, says when the command was
 * done.  Commands are handed back in the order of done_ns, which differs from
 * the order of submission.
 *
 * Locking.  The caller serialises all calls for one drive by one lock.
 * Different drives share nothing.  flash_create() and flash_destroy() need a
 * context that may sleep.  All other calls neither sleep nor allocate nor take
 * a lock, and run in any context, with interrupts off too.
 *
 * Work per call.  flash_submit() and flash_next_ns() are O(1).  flash_advance()
 * handles at most @budget events of at most 64 pages each; a read of 4 KiB
 * takes four events.  flash_usage() and flash_stats() are O(1) and are called
 * under the same lock.
 *
 * drive.h tells how a command passes through the drive, model.h has the numbers
 * of the drives, ftl.h the translation layer, owner.h the owners of pages.
 */
#ifndef MQFAIR_FLASH_H
#define MQFAIR_FLASH_H

#include "model.h"
#include "owner.h"

#define FLASH_NEVER	(~0ULL)

struct flash;

enum flash_op {
	FLASH_READ,
	FLASH_WRITE,		/* done when all its pages are in the write buffer */
	FLASH_TRIM,
	FLASH_FLUSH,		/* done at once: the buffer survives power loss */
};

/* The FTL is hidden in the drive, or the machine's driver keeps it. */
enum flash_ftl {
	FLASH_FTL_DEVICE,	/* drive-managed, as in an NVMe drive */
	/*
	 * Host-managed.  A scheduler may ask for owners, and the driver keeps
	 * the queues of the planes: flash_cmd.ahead.
	 */
	FLASH_FTL_HOST,
};

/*
 * The caller's memory.  The caller sets the first five members, flash_submit()
 * the others.  page + pages is at most flash_pages().
 */
struct flash_cmd {
	u32 page;		/* first logical page */
	u32 pages;		/* number of pages; 0 for FLASH_FLUSH alone */
	u32 owner;		/* the owner that is charged, or FLASH_NO_OWNER */
	u8 op;			/* enum flash_op */
	bool ahead;		/* FLASH_FTL_HOST: its reads go before others */
	u64 submit_ns;
	u64 done_ns;
	struct flash_cmd *next;	/* next command that is done, or NULL */
	/* private */
	u32 issued;		/* pages that the controller has passed on */
	u32 pending;		/* pages not yet transferred */
};

struct flash_config {
	const struct flash_params *params;	/* flash_create() copies it */
	u64 bytes;		/* capacity: a multiple of params->page_bytes */
	u32 owners;		/* most owners at a time, up to OWNERS_MAX */
	enum flash_ftl ftl;
	u64 seed;		/* of the times of reads, if the model spreads them */
};

/*
 * A test sets these callbacks to follow physical pages.  @page is a logical
 * page, @at, @from, @to and @first are physical ones.  Each member may be NULL.
 */
struct flash_watch {
	void *arg;
	void (*placed)(void *arg, u32 page, u32 at);
	void (*copied)(void *arg, u32 page, u32 from, u32 to);
	void (*dropped)(void *arg, u32 page, u32 at);	/* outdated or trimmed */
	void (*erased)(void *arg, u32 first, u32 pages);
};

/* Sums since creation, in pages unless the name says otherwise. */
struct flash_stats {
	u64 read;		/* by commands */
	u64 buffer_hits;	/* of `read`, not in flash: buffered or unwritten */
	u64 written;		/* by commands and flash_fill() */
	u64 copied;		/* by GC */
	u64 trimmed;
	u64 programs;		/* program operations, GC's included */
	u64 erases;		/* erase operations */
	u64 write_stalls;	/* times that a write met a full write buffer */
	u64 read_busy_ns;	/* planes reading for commands */
	u64 program_busy_ns;	/* dies programming for commands */
	u64 gc_busy_ns;		/* dies reading, programming, erasing for GC */
};

/* Returns NULL, or a message that names the fault and the accepted range. */
const char *flash_config_wrong(const struct flash_config *c);

/* Returns the bytes that flash_create() allocates. */
u64 flash_memory_bytes(const struct flash_config *c);

/* Returns NULL if memory is short or flash_config_wrong() has a message. */
struct flash *flash_create(const struct flash_config *c);

/* No command is outstanding. */
void flash_destroy(struct flash *f);

/* @cmd lies within the capacity.  @now is not before that of an earlier call. */
void flash_submit(struct flash *f, struct flash_cmd *cmd, u64 now);

/*
 * Handles the events that are due at @now, at most @budget of them.  Returns
 * the commands that are done, in the order of done_ns, or NULL.
 */
struct flash_cmd *flash_advance(struct flash *f, u64 now, u32 budget);

/* Returns the time at which flash_advance() is due, or FLASH_NEVER. */
u64 flash_next_ns(const struct flash *f);

/* Returns the number of commands submitted and not yet handed back. */
u32 flash_outstanding(const struct flash *f);

/*
 * Sets the times of @p, for a drive that becomes slower or that is stretched in
 * part.  Geometry, spare and buffer of @p must be those of the drive.
 */
void flash_retime(struct flash *f, const struct flash_params *p);

const struct flash_params *flash_params_of(const struct flash *f);
u32 flash_pages(const struct flash *f);		/* capacity, in pages */
struct flash_stats flash_stats(const struct flash *f);

/* Returns (written + copied) / written in thousandths; 1000 for written = 0. */
u64 flash_amplification_permille(u64 written, u64 copied);

/*
 * Owners: their pages, and the time for which planes were busy for them.
 *
 * flash_usage.busy_ns is the drive's time, divided among the owners.  It is the
 * truth against which the estimated costs of a scheduler are compared.
 *   - A plane is busy for an owner while it reads for a command of the owner.
 *   - While a page of an owner is programmed, all planes of the die are busy
 *     for the owner, for that page's part of the program.
 *   - The transfers of both over a channel count; waiting for a channel does
 *     not.
 *   - GC keeps planes busy for the owners that write, because GC makes room for
 *     their pages.  Each page written pays a part.
 *
 * A scheduler asks flash_host_usage() for one owner, and flash_host_spent() for
 * the sums over all owners, by reads and writes.  Both return false and zeroes
 * for a drive-managed FTL.  flash_usage() answers for any FTL: it is for
 * reports and tests.  Both usage functions return false and zeroes for an owner
 * that never had a command that touched flash.
 */
struct flash_spent {
	u64 read_ns, write_ns;	/* of planes, charged to owners, with transfers */
	u64 busy_ns;		/* of planes, while they worked, without transfers */
	u32 planes;		/* number of planes of the drive */
};

bool flash_usage(const struct flash *f, u32 owner, struct flash_usage *usage);
bool flash_host_usage(const struct flash *f, u32 owner,
		      struct flash_usage *usage);
bool flash_host_spent(const struct flash *f, struct flash_spent *spent);

/*
 * Gives all pages and figures of @from to @to, for a cgroup that was removed.
 * O(1).  A write of @from that is still outstanding would make @from known
 * again, without the old figures.
 */
void flash_owner_move(struct flash *f, u32 from, u32 to);

/*
 * Fills the drive without the time that writing takes.  The pages @first to
 * @first + @pages - 1 are written once each, in order or shuffled.  Then
 * @overwrites more writes go to random pages of this range, and GC runs as it
 * would in time.  Overwrites of one and a half times the capacity bring the
 * drive to its steady state.
 *
 * The caller sets the members above the mark, zeroes those below it, and calls
 * until the answer is false.  One call writes and copies about @budget pages.
 * The drive is idle from the first call to the last: flash_next_ns() returns
 * FLASH_NEVER.
 */
struct flash_fill {
	u32 first, pages;
	u64 overwrites;		/* pages */
	u32 owner;
	u64 seed;
	bool shuffled;
	bool written;		/* the range is written already: overwrite only */
	/* private */
	u64 done;		/* pages considered */
	u64 state;		/* of the random numbers */
};

bool flash_fill(struct flash *f, struct flash_fill *fill, u32 budget);

/* Sets @watch, which belongs to the caller, or ends watching with NULL. */
void flash_set_watch(struct flash *f, const struct flash_watch *watch);

/* Returns the physical page of logical page @page, or FLASH_NOWHERE. */
#define FLASH_NOWHERE	(~0U)
u32 flash_where(const struct flash *f, u32 page);

#endif /* MQFAIR_FLASH_H */
