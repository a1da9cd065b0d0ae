/* SPDX-License-Identifier: GPL-2.0 */
/*
 * model - drives as data
 *
 * A drive is a line of numbers: its geometry, its times, its spare flash and
 * when it collects garbage.  model.c has the table and says where each number
 * comes from.  The capacity is not part of it: the same drive can be made in
 * any size that flash_config_wrong() accepts, with the same number of dies.
 *
 * Erase blocks are 1 MiB, smaller than real ones, so that a drive of one GiB
 * still has dozens a die and behaves as its large sister does; the time of an
 * erase is scaled down with them, so an erase costs as much per page.
 */
#ifndef MQFAIR_FLASH_MODEL_H
#define MQFAIR_FLASH_MODEL_H

#include "port.h"

enum {
	FLASH_PLANES_MAX	= 4096,
	FLASH_STEP_PAGES	= 64,		/* most that one event deals with */
	FLASH_BLOCK_PAGES_MAX	= 32768,
	FLASH_PAGES_MAX		= 0x7fffffff,
};

/* read_pages, program_pages, block_programs, planes: powers of two. */
struct flash_params {
	const char *name;
	/* geometry */
	u32 channels;
	u32 dies;		/* on each channel */
	u32 planes;		/* of each die: each of them reads by itself */
	u32 page_bytes;		/* of what is mapped, and of what commands count */
	u32 read_pages;		/* pages that one read of a plane brings */
	u32 program_pages;	/* pages that are programmed at once, on all planes */
	u32 block_programs;	/* programs in an erase block, on all planes */
	/* space */
	u32 spare_permille;	/* flash beyond the capacity */
	u32 gc_start;		/* free blocks of a die at which collecting starts */
	u32 gc_stop;		/* and at which it ends */
	u32 buffer_pages;	/* of the write buffer, protected from power loss */
	/* time */
	u64 command_ns;		/* of the controller for each command, one at a time */
	u64 read_fixed_ns;	/* what every read takes besides, any number at a time */
	u64 write_fixed_ns;	/* the same for all others */
	u64 link_ns;		/* a page over the host link, each direction by itself */
	u64 channel_ns;		/* a page over a channel */
	u64 read_ns;		/* reading a plane */
	u64 program_ns;		/* one program */
	u64 erase_ns;		/* one block */
	u32 read_burst;		/* reads that may pass a waiting program or erase */
	/*
	 * Memory that is overwritten in place: no mapping, no garbage.  Page p
	 * is on plane p / read_pages % all planes; a write takes program_ns
	 * there; spare, program_pages, block, buffer, erase, channel: unused.
	 */
	bool in_place;
};

/* A published or stated figure of the drive: what the model is held to. */
struct flash_target {
	const char *model;
	const char *what;	/* "iops", "latency_ns" or "bytes_per_s" */
	u32 depth;		/* 0: the most at any depth */
	u32 bytes;		/* of each request */
	bool write;
	bool random;
	bool judged;		/* within 10 %; otherwise shown beside */
	u64 value;
	const char *source;
};

extern const struct flash_params flash_models[];	/* ends with no name */
extern const struct flash_target flash_targets[];	/* ends with no model */

/* NULL: there is none of that name. */
const struct flash_params *flash_model(const char *name);

/* NULL when the numbers fit each other, or what is wrong with them. */
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
