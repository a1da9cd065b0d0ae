/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace - which processor reads and writes which cache line
 *
 * The code under test is compiled with the calls that a thread sanitizer puts
 * at every access, plain or atomic, and linked with trace.c in place of the
 * sanitizer.  One thread plays all processors in turn, so nothing is timed and
 * the counts are exact.
 */
#ifndef MQFAIR_MT_TRACE_H
#define MQFAIR_MT_TRACE_H

#include "port.h"

enum {
	TRACE_CPUS	= 8,
};

/* What lies where, for reports. */
void trace_name(const char *name, const void *start, size_t size);

/* Forgets all accesses; those from now on are by @cpu. */
void trace_reset(void);
void trace_cpu(u32 cpu);
void trace_off(void);

/*
 * Lines that one processor wrote and another read or wrote.  Calls @seen for
 * each, with the name and the offset of its first written byte.
 */
u32 trace_shared(void (*seen)(void *arg, const char *name, size_t offset,
			      u32 writers, u32 users), void *arg);

#endif /* MQFAIR_MT_TRACE_H */
