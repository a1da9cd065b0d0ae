/* SPDX-License-Identifier: GPL-2.0 */
/*
 * drive - the insides of struct flash: its parts and how they call each other
 *
 * Private to flash/ and its tests.  The parts, by file:
 *
 *	flash.c		event loop, reports, creation
 *	controller.c	takes and splits commands, sends data over the link,
 *			hands commands back
 *	buffer.c	write buffer: receives pages and spreads them over dies
 *	pipeline.c	channels, planes and dies: reads, programs, erases
 *	ftl.[ch]	map, blocks and GC, without time
 *	fill.c		writes without time
 *
 * A command takes this way.  Each arrow is a place where it may wait:
 *
 *	submitted -> controller, one command at a time
 *	read	its pages become flash reads, one for all pages that lie in the
 *		same flash page; each takes one of FLASH_OPS
 *		-> plane -> channel -> link -> done
 *		pages in the buffer or never written: -> link -> done
 *	write	-> room in the buffer -> link -> placed on a die, and done
 *		a unit that is full: -> die -> channel -> programmed; its pages
 *		leave the buffer
 *	trim, flush	done
 *
 * The *link* joins drive and machine (PCIe), with a direction for reads and one
 * for writes.  A *flash page* is the read_pages pages that one read of a plane
 * brings.  A *unit* is the program_pages pages that are programmed at once, on
 * all planes of a die.
 *
 * A die is in one of two states.  Its planes read, each by itself; or all
 * planes do one thing together: a program, an erase, or a read for GC.  Reads
 * of commands go first, but at most read_burst of them pass work that waits for
 * the whole die.  Programs of commands and steps of GC take turns, unless only
 * GC can bring free blocks.
 *
 * An event is armed at most once at a time.  A server that takes work strictly
 * in turn (the controller, the link) needs no queue: the time at which it is
 * free is enough.
 */
#ifndef MQFAIR_FLASH_DRIVE_H
#define MQFAIR_FLASH_DRIVE_H

#include "ftl.h"
#include "sched/core/heap.h"

enum {
	FLASH_OPS	= 4096,		/* flash reads that the controller tracks */
	/*
	 * Each page written pays 2^-OWED_SHIFT of the GC time that is not yet
	 * paid for.  The part is small, so the pages of a large write pay
	 * nearly alike.
	 */
	OWED_SHIFT	= 10,
	LINK_PAGES	= 16,		/* most pages of one transfer to the drive */
};

struct flash_event {
	struct heap_node node;
	void (*fire)(struct flash *f, struct flash_event *ev);
	bool armed;
};

/* Commands, linked by next, in the order in which they were appended. */
struct flash_fifo {
	struct flash_cmd *first, *last;
};

struct flash_transfer {
	struct flash_transfer *next;
	u64 ns;
	void (*done)(struct flash *f, struct flash_transfer *t);
};

struct flash_channel {
	struct flash_event event;
	struct flash_transfer *first, *last;	/* first: on the channel now */
};

/* A flash read for one command; for a drive without a map, a write too. */
struct flash_read {
	struct flash_read *next;
	struct flash_cmd *cmd;
	u32 pages;
};

struct flash_plane {
	struct flash_event event;
	struct flash_transfer transfer;
	struct flash_read *first, *last;	/* first: being read if busy */
	u32 die;
	bool busy;
};

enum flash_die_work {
	DIE_IDLE,			/* its planes may read */
	DIE_PROGRAM,
	DIE_GC_SCAN,			/* passes rows without valid pages, in no time */
	DIE_GC_READ,
	DIE_GC_PROGRAM,
	DIE_GC_ERASE,
};

struct flash_die {
	struct flash_event event;
	struct flash_transfer transfer;
	u32 number;
	u32 busy_planes;
	u32 passed;			/* reads that passed the waiting work */
	u32 row_pages;			/* valid pages of the row that GC reads */
	u8 work;			/* enum flash_die_work */
	bool gc_next;			/* the next turn is GC's */
};

struct flash {
	struct flash_params params;
	enum flash_ftl mode;
	u32 pages;			/* capacity */
	u32 read_shift;			/* log2 of params.read_pages */
	struct ftl ftl;
	struct heap events;
	u64 now;
	u64 random;			/* state of flash_random(), for reads */
	u32 outstanding;

	/* controller.c: commands on their way in */
	struct flash_event front;	/* the next step of the controller */
	struct flash_fifo arrived;	/* commands that wait for the controller */
	struct flash_cmd *splitting;	/* command of which a part is issued */
	u64 front_free_ns;		/* when the controller is free */
	bool front_stalled;		/* all of FLASH_OPS are taken */

	/* buffer.c */
	struct flash_event link_in;	/* end of the transfer of link_pages */
	struct flash_fifo writes;	/* the first one is being transferred */
	u32 link_pages;			/* pages on the link or, if stalled, arrived */
	bool link_stalled;		/* no die can take the arrived pages */
	bool buffer_full;		/* the last transfer found no room */
	u32 buffered;			/* pages in the write buffer */
	bool unit_open;			/* a unit is being filled */
	u32 unit_die;			/* its die, which was the last in turn */

	/* controller.c: commands on their way out */
	u64 out_free_ns;		/* when the link to the machine is free */
	u64 in_free_ns;			/* from the machine; params.in_place only */
	struct flash_fifo done_out, done_in;	/* each in the order of done_ns */
	struct flash_event out_event, in_event;
	struct flash_fifo done;		/* commands to hand back */

	struct flash_channel *channel;
	struct flash_die *die;
	struct flash_plane *plane;
	struct flash_read *ops, *free_ops;
	struct flash_stats stats;
	struct flash_spent spent;
	u64 owed_ns;			/* planes' time for GC, not yet paid for */
};

static inline u32 drive_nr_planes(const struct flash_params *p)
{
	return flash_nr_dies(p) * p->planes;
}

static inline struct flash_plane *drive_plane(struct flash *f, u32 die, u32 n)
{
	return &f->plane[die * f->params.planes + n];
}

static inline void drive_event_arm(struct flash *f, struct flash_event *ev,
				   u64 ns)
{
	port_assert(!ev->armed);
	ev->armed = true;
	heap_push(&f->events, &ev->node, ns);
}

static inline void drive_fifo_append(struct flash_fifo *fifo,
				     struct flash_cmd *cmd)
{
	cmd->next = NULL;
	if (fifo->first)
		fifo->last->next = cmd;
	else
		fifo->first = cmd;
	fifo->last = cmd;
}

static inline struct flash_cmd *drive_fifo_take(struct flash_fifo *fifo)
{
	struct flash_cmd *cmd = fifo->first;

	fifo->first = cmd->next;
	return cmd;
}

/* controller.c */
void controller_init(struct flash *f);

/* A flash read has ended, so a command that waits for one may go on. */
void controller_retry(struct flash *f);

/* @pages of the read @cmd go over the link to the machine. */
void controller_send(struct flash *f, struct flash_cmd *cmd, u32 pages);

/* @pages of the write @cmd have been written; params.in_place only. */
void controller_written(struct flash *f, struct flash_cmd *cmd, u32 pages);

/* @cmd, which is no read, is complete at @ns and done write_fixed_ns later. */
void controller_done(struct flash *f, struct flash_cmd *cmd, u64 ns);

/* buffer.c */
void buffer_init(struct flash *f);

/* @cmd, a write, waits for room behind the writes that came before it. */
void buffer_write(struct flash *f, struct flash_cmd *cmd);

/* A program operation has freed buffer space, or an erase a block. */
void buffer_resume(struct flash *f);

/* pipeline.c */
void pipeline_init(struct flash *f);

/* Queues a flash read of @pages pages at @pl.  There is a free op. */
void pipeline_read(struct flash *f, struct flash_plane *pl,
		   struct flash_cmd *cmd, u32 pages);

/* @d may have got work: starts it if the die is free. */
void pipeline_run_die(struct flash *f, struct flash_die *d);

#endif /* MQFAIR_FLASH_DRIVE_H */
