/* SPDX-License-Identifier: GPL-2.0 */
/*
 * trace - the CPUs that read and write each cache line
 *
 * The code under test is compiled with the calls of a thread sanitizer at every
 * access, plain or atomic.  trace.c is linked in place of the sanitizer and
 * counts them.  One thread plays all CPUs in turn, so timing has no influence
 * and the counts are exact.
 *
 *	trace_name("flow", f, sizeof(*f));
 *	trace_reset();
 *	trace_cpu(0); ...		CPU 0 writes f->a
 *	trace_cpu(1); ...		CPU 1 reads f->b, in the same line
 *	trace_off();
 *	trace_shared(seen, arg);	calls seen(arg, "flow", 0, 0x1, 0x3)
 *
 * Limits.  There are at most TRACE_CPUS CPUs.  Accesses to the stack of the
 * code under test are not counted, because every CPU has another stack.
 */
#ifndef MQFAIR_MT_TRACE_H
#define MQFAIR_MT_TRACE_H

#include "port.h"

enum {
	TRACE_CPUS	= 8,
};

/* Names @size bytes from @start on, for reports. */
void trace_name(const char *name, const void *start, size_t size);

/* Forgets all accesses. */
void trace_reset(void);

/* Accesses from now on are made by @cpu.  Its stack begins at the caller. */
void trace_cpu(u32 cpu);

/* Accesses from now on are not counted. */
void trace_off(void);

/*
 * Calls @seen for each line that one CPU has written and another has used, with
 * the name and offset of its first written byte.  @writers and @users are masks
 * of CPUs.  Returns the number of these lines.
 */
u32 trace_shared(void (*seen)(void *arg, const char *name, size_t offset,
			      u32 writers, u32 users), void *arg);

#endif /* MQFAIR_MT_TRACE_H */
