/* SPDX-License-Identifier: GPL-2.0 */
/*
 * model - drives as data
 *
 * A model of a drive is a line of numbers: geometry, times, spare, watermarks
 * of GC.  models.c has the built-in ones.  A user gives others by field: in a
 * description of sim-run, or to the virtual SSD.  The capacity is not part of
 * it: flash_create() makes a drive of any size that flash_config_wrong()
 * accepts, with the same number of dies.
 *
 * Erase blocks are 1 MiB, smaller than real ones.  So a drive of one GiB still
 * has dozens in each die and behaves as a large one.  The time of an erase is
 * scaled down with them: an erase costs as much per page as a real one.
 *
 * Example.  The P4500 has 12 channels of 3 dies of 1 plane.  A plane reads 8
 * pages of 4 KiB in 66 us, a channel transfers a page in 8 us: 36 planes bring
 * at most 36 / 74 us = 486 000 random reads of 4 KiB a second.
 */
#ifndef MQFAIR_FLASH_MODEL_H
#define MQFAIR_FLASH_MODEL_H

#include "port.h"

enum {
	FLASH_PLANES_MAX	= 4096,
	FLASH_STEP_PAGES	= 64,		/* most pages of one event */
	FLASH_BLOCK_PAGES_MAX	= 32768,
	FLASH_PAGES_MAX		= 0x7fffffff,
};

/*
 * planes, page_bytes, read_pages, program_pages and block_programs are powers
 * of two.  flash_params_wrong() has the other bounds.  Times are in
 * nanoseconds.
 */
struct flash_params {
	const char *name;
	/* geometry */
	u32 channels;
	u32 dies;		/* on each channel */
	u32 planes;		/* of each die; each of them reads by itself */
	u32 page_bytes;		/* bytes of a page, which the FTL maps */
	u32 read_pages;		/* pages of a flash page: one read of a plane */
	u32 program_pages;	/* pages of a unit: one program on all planes */
	u32 block_programs;	/* units of an erase block */
	/* space */
	u32 spare_permille;	/* flash beyond the capacity, of the capacity */
	u32 gc_start;		/* free blocks of a die at which GC begins */
	u32 gc_stop;		/* free blocks of a die at which GC ends */
	u32 buffer_pages;	/* pages of the write buffer */
	/* time */
	u64 command_ns;		/* controller: each command, one at a time */
	u64 read_fixed_ns;	/* added to each read; any number overlap */
	u64 write_fixed_ns;	/* added to each other command, likewise */
	u64 link_ns;		/* link: a page, each direction by itself */
	u64 channel_ns;		/* channel: a page */
	u64 read_ns;		/* plane: a flash page */
	u64 program_ns;		/* die: a unit */
	u64 erase_ns;		/* die: a block */
	u32 read_burst;		/* reads that may pass work that waits for a die */
	/*
	 * Reads of commands take read_ns on average.  Each takes up to this part
	 * more or less, evenly spread: pages of a cell with several bits differ.
	 */
	u32 read_spread_permille;
	/*
	 * A drive without a map: memory that is overwritten in place, so there
	 * is no GC.  Page p is on plane p / read_pages % (number of planes).  A
	 * write keeps that plane busy for program_ns.  Spare, units, blocks,
	 * buffer, erase_ns and channel_ns are unused.
	 */
	bool in_place;
};

/* A published or measured figure of a real drive, for flash-curve --check. */
struct flash_target {
	const char *model;
	const char *what;	/* "iops", "latency_ns", "p99_ns" or "bytes_per_s" */
	const char *series;	/* of tests/flash/curve.c */
	u32 depth;		/* queue depth; 0: the most at any depth */
	bool judged;		/* the model must be within 10 %, a p99 within 25 % */
	u64 value;
	const char *source;	/* document or measurement */
};

extern const struct flash_params flash_models[];	/* ends with name NULL */
extern const struct flash_target flash_targets[];	/* ends with model NULL */

/* A number of struct flash_params that a user may set. */
struct flash_field {
	const char *name;	/* of the member */
	u64 most;		/* greatest value; flash_params_wrong() has the least */
	u32 offset, bytes;	/* of the member */
};

extern const struct flash_field flash_fields[];	/* ends with name NULL */

/* Returns the field with that name, or NULL. */
const struct flash_field *flash_field(const char *name);

/* @value is at most field->most; a field that is a bool takes 0 or 1. */
void flash_field_set(struct flash_params *p, const struct flash_field *field,
		     u64 value);
u64 flash_field_get(const struct flash_params *p,
		    const struct flash_field *field);

/* Returns the model with that name, or NULL. */
const struct flash_params *flash_model(const char *name);

/* Returns NULL, or a message that names the number out of bounds. */
const char *flash_params_wrong(const struct flash_params *p);

static inline u32 flash_nr_dies(const struct flash_params *p)
{
	return p->channels * p->dies;
}

static inline u32 flash_block_pages(const struct flash_params *p)
{
	return p->program_pages * p->block_programs;
}

#endif /* MQFAIR_FLASH_MODEL_H */
