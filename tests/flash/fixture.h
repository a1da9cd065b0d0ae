/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fixture - a small drive for the tests of flash/, and commands for it
 *
 * fixture_do() submits one command and waits for it.  fixture_run() keeps a
 * number of commands outstanding.  Both call flash_advance() exactly when
 * flash_next_ns() says.  All times are simulated nanoseconds; @now is the time
 * of the test, which the functions advance.
 */
#ifndef MQFAIR_FLASH_FIXTURE_H
#define MQFAIR_FLASH_FIXTURE_H

#include "flash/drive.h"
#include "sim/stats.h"
#include "tests/random.h"

enum {
	US = 1000,
};

/*
 * The drive has 2 channels, each with 2 dies of 2 planes.  A flash page has 2
 * pages, a unit 8, a block 32.  The times in us: command 1, link 1 a page,
 * channel 10 a page, read 50, program 500, erase 2000, fixed 5 for a read and 3
 * for a write.
 */
extern const struct flash_params fixture_params;

/*
 * Makes a drive with the capacity of @blocks blocks in each die.  Ends the
 * program on an error.  The caller destroys the drive.
 */
struct flash *fixture_create(const struct flash_params *p, u32 blocks);
struct flash *fixture_create_ftl(const struct flash_params *p, u32 blocks,
				 enum flash_ftl ftl);

/* Writes every page once, in order, without time. */
void fixture_fill(struct flash *f, u32 owner);

/* Handles all events until none is left; returns the time of the last. */
u64 fixture_settle(struct flash *f, u64 now);

/* Submits a command and waits until it is done; returns its latency in ns. */
u64 fixture_do(struct flash *f, u64 *now, u8 op, u32 page, u32 pages);

/* A loop of @ios commands, of which @depth are outstanding. */
struct fixture_load {
	u8 op;
	u32 depth;
	u32 pages;		/* of each command */
	u32 first, range;	/* pages to go to; range 0: the whole drive */
	u32 owner;
	bool random;		/* places at random, else in order */
	u64 ios;
	struct histogram *latencies;	/* result, or NULL */
	/*
	 * Results over the commands that ended while @depth were outstanding:
	 * after the first @depth and before the last submission.
	 */
	u64 counted, latency_ns, elapsed_ns;	/* latency_ns: mean */
	u64 state;		/* private: of the random numbers */
};

/* Runs @load from @*now on, until no command is outstanding. */
void fixture_run(struct flash *f, struct fixture_load *load, u64 *now);

/* Returns NULL, or the condition that does not hold; ftl.h has F1 and F2. */
const char *audit(const struct flash *f);

#endif /* MQFAIR_FLASH_FIXTURE_H */
