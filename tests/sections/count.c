// SPDX-License-Identifier: GPL-2.0
/*
 * count - the accesses to memory of the code that is compiled for it
 *
 * The code of sched/ has the calls of a thread sanitizer at every access, and
 * this file is linked in place of the sanitizer.  The simulator has plain
 * accesses only, so there are no calls for atomic ones.
 */
#include "meter.h"

static u64 accesses;

u64 meter_now(void)
{
	return accesses;
}

static void on_access(void *p, unsigned long size, bool write)
{
	(void)p;
	(void)size;
	(void)write;
	accesses++;
}

/* A range counts as its words. */
static void on_range(void *p, unsigned long size, bool write)
{
	(void)p;
	(void)write;
	accesses += size / sizeof(u64);
}

#include "tests/compiler_calls.h"
