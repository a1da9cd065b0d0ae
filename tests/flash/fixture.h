/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rig - a drive under test: small numbers, commands one by one or in a loop
 */
#ifndef MQFAIR_FLASH_RIG_H
#define MQFAIR_FLASH_RIG_H

#include "flash/drive.h"
#include "sim/stats.h"
#include "tests/random.h"

enum {
	US = 1000,
};

/*
 * 2 channels, 2 dies each, 2 planes each; 2 pages a read, 8 a program, 32 a
 * block.  Times in us: command 1, link 1 a page, channel 10 a page, read 50,
 * program 500, erase 2000, fixed 5 reading and 3 writing.
 */
extern const struct flash_params fixture_params;

/* A drive with @blocks blocks of capacity a die; ends the program if it fails. */
struct flash *fixture_create(const struct flash_params *p, u32 blocks);

/* Every page once, in order, without time. */
void fixture_fill(struct flash *f, u32 owner);

/* Until nothing is to happen any more; returns the time. */
u64 fixture_settle(struct flash *f, u64 now);

/* Submits, and waits until that command is done; returns what it took. */
u64 fixture_do(struct flash *f, u64 *now, u8 op, u32 page, u32 pages);

/* @depth commands outstanding, resubmitted until @ios have been done. */
struct fixture_load {
	u8 op;
	u32 depth;
	u32 pages;		/* of each */
	u32 first, range;	/* range 0: the whole drive */
	u32 owner;
	bool random;		/* aligned to its size; otherwise in order */
	u64 ios;
	struct histogram *latencies;	/* NULL: not wanted */
	/* out: what was done between the first @depth and the last submission */
	u64 counted, latency_ns, elapsed_ns;	/* latency: mean */
	u64 state;		/* of the random numbers; private */
};

/* At @*now, which moves on. */
void fixture_run(struct flash *f, struct fixture_load *load, u64 *now);

/* NULL, or what is inconsistent; see ftl.h for F1 and F2. */
const char *audit(const struct flash *f);

#endif /* MQFAIR_FLASH_RIG_H */
