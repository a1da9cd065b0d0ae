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

/* --------------------------- called by the compiler, under names it gives */

#define COUNT(size)							\
void __tsan_read##size(void *p);					\
void __tsan_read##size(void *p) { (void)p; accesses++; }		\
void __tsan_write##size(void *p);					\
void __tsan_write##size(void *p) { (void)p; accesses++; }		\
void __tsan_unaligned_read##size(void *p);				\
void __tsan_unaligned_read##size(void *p) { (void)p; accesses++; }	\
void __tsan_unaligned_write##size(void *p);				\
void __tsan_unaligned_write##size(void *p) { (void)p; accesses++; }

COUNT(1)
COUNT(2)
COUNT(4)
COUNT(8)
COUNT(16)

/* A range counts as its words. */
void __tsan_read_range(void *p, unsigned long size);
void __tsan_read_range(void *p, unsigned long size)
{
	(void)p;
	accesses += size / sizeof(u64);
}

void __tsan_write_range(void *p, unsigned long size);
void __tsan_write_range(void *p, unsigned long size)
{
	(void)p;
	accesses += size / sizeof(u64);
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}
