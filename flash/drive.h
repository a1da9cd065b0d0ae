/* SPDX-License-Identifier: GPL-2.0 */
/*
 * drive - the insides of struct flash, for flash.c, fill.c and the tests
 *
 * The way of a command, with what it may wait for:
 *
 *	submitted	the controller, one command at a time (front)
 *	read		its pages become flash reads, one for all that lie in
 *			the same flash page (they wait for one of the ops) ->
 *			plane -> channel -> host link -> done
 *			pages in the buffer or never written: host link -> done
 *	write		room in the buffer -> host link -> placed -> done
 *			a full unit: die -> channel -> programmed: room again
 *	trim, flush	done
 *
 * A die is either reading, each plane by itself, or doing one thing on all
 * planes: a program, an erase, or a read for collecting.  Reads go first, but
 * no more than read_burst of them pass what waits for the whole die.  What
 * commands have written and what collecting wants take turns, unless only
 * collecting can bring free blocks.
 *
 * An event is armed at most once at a time.  Servers that take things one
 * after another (controller, links) are a time at which they are free.
 */
#ifndef MQFAIR_FLASH_DRIVE_H
#define MQFAIR_FLASH_DRIVE_H

#include "ftl.h"
#include "sched/core/heap.h"

enum {
	FLASH_OPS	= 4096,		/* flash reads that the controller tracks */
	/*
	 * A page written pays for this part of what collecting has done and
	 * nobody paid for: small enough that who writes many pages at a time
	 * pays as much for each.
	 */
	OWED_SHIFT	= 10,
	LINK_PAGES	= 16,		/* most that one transfer from the host has */
};

struct flash_event {
	struct heap_node node;
	void (*fire)(struct flash *f, struct flash_event *ev);
	bool armed;
};

/* Commands in order of arrival, linked by next. */
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
	struct flash_transfer *first, *last;	/* first: under way */
};

/* A read of one plane, or an access in place, for one command. */
struct flash_read {
	struct flash_read *next;
	struct flash_cmd *cmd;
	u32 pages;
};

struct flash_plane {
	struct flash_event event;
	struct flash_transfer transfer;
	struct flash_read *first, *last;	/* first: under way if busy */
	u32 die;
	bool busy;
};

enum flash_die_work {
	DIE_IDLE,			/* its planes may be reading */
	DIE_PROGRAM,
	DIE_GC_SCAN,			/* takes no time */
	DIE_GC_READ,
	DIE_GC_PROGRAM,
	DIE_GC_ERASE,
};

struct flash_die {
	struct flash_event event;
	struct flash_transfer transfer;
	u32 number;
	u32 busy_planes;
	u32 passed;			/* reads that passed what waits */
	u32 row_pages;			/* of the row that collecting reads */
	u8 work;			/* enum flash_die_work */
	bool gc_next;			/* whose turn it is */
};

struct flash {
	struct flash_params params;
	enum flash_ftl mode;
	u32 pages;
	u32 read_shift;
	struct ftl ftl;
	struct heap events;
	u64 now;
	u32 outstanding;

	struct flash_event front;	/* the controller: */
	struct flash_fifo arrived;	/* waiting for it */
	struct flash_cmd *splitting;	/* not yet all issued */
	u64 front_free_ns;
	bool front_stalled;		/* no op free */

	struct flash_event link_in;	/* of the first of: */
	struct flash_fifo writes;
	u32 link_pages;			/* under way or, if stalled, arrived */
	bool link_stalled;		/* no die can place them */
	bool buffer_full;		/* was, when last wanted */
	u32 buffered;			/* pages in the write buffer */
	bool unit_open;			/* a unit is being filled */
	u32 unit_die;			/* on this die, which was the last in turn */

	u64 out_free_ns, in_free_ns;	/* host link; in: in place only */
	struct flash_fifo done_out, done_in;	/* each in order of done_ns */
	struct flash_event out_event, in_event;
	struct flash_fifo done;		/* to be handed back */

	struct flash_channel *channel;
	struct flash_die *die;
	struct flash_plane *plane;
	struct flash_read *ops, *free_ops;
	struct flash_stats stats;
	struct flash_spent spent;
	u64 owed_ns;			/* of planes, for collecting */
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

void controller_init(struct flash *f);
void controller_retry(struct flash *f);
void controller_send(struct flash *f, struct flash_cmd *cmd, u32 pages);
void controller_written(struct flash *f, struct flash_cmd *cmd, u32 pages);
void controller_done(struct flash *f, struct flash_cmd *cmd, u64 ns);

void buffer_init(struct flash *f);
void buffer_write(struct flash *f, struct flash_cmd *cmd);
void buffer_resume(struct flash *f);

void pipeline_init(struct flash *f);
void pipeline_read(struct flash *f, struct flash_plane *pl,
		   struct flash_cmd *cmd, u32 pages);
void pipeline_run_die(struct flash *f, struct flash_die *d);

#endif /* MQFAIR_FLASH_DRIVE_H */
