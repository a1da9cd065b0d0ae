// SPDX-License-Identifier: GPL-2.0
/* A table of cache lines, filled by calls of the compiler: see trace.h. */
#include "trace.h"

#include <stdio.h>
#include <string.h>

enum {
	LINE		= 64,
	LINES		= 1 << 14,	/* hash table of the lines accessed */
	NAMES		= 256,
};

static struct line {
	uintptr_t at;			/* 0: unused */
	uintptr_t written;		/* lowest byte that was written */
	u32 readers, writers;		/* masks of CPUs */
} lines[LINES];

static struct {
	const char *name;
	uintptr_t start, end;
} names[NAMES];

static u32 nr_names, nr_lines, cpu_bit;
static uintptr_t stack;		/* start of the stack of the code under test */

void trace_name(const char *name, const void *start, size_t size)
{
	port_assert(nr_names < NAMES);
	names[nr_names].name = name;
	names[nr_names].start = (uintptr_t)start;
	names[nr_names++].end = (uintptr_t)start + size;
}

void trace_reset(void)
{
	memset(lines, 0, sizeof(lines));
	nr_lines = 0;
}

void trace_cpu(u32 cpu)
{
	port_assert(cpu < TRACE_CPUS);
	cpu_bit = 1U << cpu;
	stack = (uintptr_t)__builtin_frame_address(0);
}

void trace_off(void)
{
	cpu_bit = 0;
}

static struct line *line_at(uintptr_t at)
{
	u32 i = (u32)((at / LINE * 0x9e3779b97f4a7c15ULL) >> 32) % LINES;

	while (lines[i].at && lines[i].at != at)
		i = (i + 1) % LINES;
	if (!lines[i].at) {
		port_assert(++nr_lines < LINES);
		lines[i].at = at;
	}
	return &lines[i];
}

static void touch(const volatile void *addr, size_t size, bool write)
{
	uintptr_t first = (uintptr_t)addr, at = first & ~(uintptr_t)(LINE - 1);

	/* Here all CPUs share a stack; real ones do not. */
	if (!cpu_bit ||
	    (first < stack && first > (uintptr_t)__builtin_frame_address(0)))
		return;
	for (; at < first + size; at += LINE) {
		struct line *l = line_at(at);

		if (!write) {
			l->readers |= cpu_bit;
			continue;
		}
		if (!l->writers || first < l->written)
			l->written = max(first, at);
		l->writers |= cpu_bit;
	}
}

static const char *name_of(uintptr_t at, size_t *offset)
{
	u32 i;

	for (i = 0; i < nr_names; i++)
		if (at >= names[i].start && at < names[i].end) {
			*offset = at - names[i].start;
			return names[i].name;
		}
	*offset = 0;
	return "?";
}

u32 trace_shared(void (*seen)(void *arg, const char *name, size_t offset,
			      u32 writers, u32 users),
		 void *arg)
{
	u32 i, shared = 0;

	for (i = 0; i < LINES; i++) {
		const struct line *l = &lines[i];
		u32 users = l->readers | l->writers;
		size_t offset;
		const char *name;

		/* The line counts if it was written and two CPUs used it. */
		if (!l->writers || !(users & (users - 1)))
			continue;
		name = name_of(l->written, &offset);
		seen(arg, name, offset, l->writers, users);
		shared++;
	}
	return shared;
}

/* --------------------------- called by the compiler, under names it gives */

static void on_access(void *p, unsigned long size, bool write)
{
	touch(p, size, write);
}

static void on_range(void *p, unsigned long size, bool write)
{
	touch(p, size, write);
}

#include "tests/compiler_calls.h"

#define TRACE_RMW(bits, type, op)					\
type __tsan_atomic##bits##_##op(volatile type *p, type v, int order);	\
type __tsan_atomic##bits##_##op(volatile type *p, type v, int order)	\
{									\
	(void)order;							\
	touch(p, sizeof(type), true);					\
	return __atomic_##op(p, v, __ATOMIC_SEQ_CST);			\
}

#define __atomic_exchange(p, v, order)	__atomic_exchange_n(p, v, order)

#define TRACE_ATOMIC(bits, type)					\
type __tsan_atomic##bits##_load(const volatile type *p, int order);	\
type __tsan_atomic##bits##_load(const volatile type *p, int order)	\
{									\
	(void)order;							\
	touch(p, sizeof(type), false);					\
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);			\
}									\
void __tsan_atomic##bits##_store(volatile type *p, type v, int order);	\
void __tsan_atomic##bits##_store(volatile type *p, type v, int order)	\
{									\
	(void)order;							\
	touch(p, sizeof(type), true);					\
	__atomic_store_n(p, v, __ATOMIC_SEQ_CST);			\
}									\
int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p,	\
						  type *old, type v,	\
						  int order, int failed);\
int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p,	\
						  type *old, type v,	\
						  int order, int failed)\
{									\
	(void)order;							\
	(void)failed;							\
	touch(p, sizeof(type), true);					\
	return __atomic_compare_exchange_n(p, old, v, false,		\
					   __ATOMIC_SEQ_CST,		\
					   __ATOMIC_SEQ_CST);		\
}									\
TRACE_RMW(bits, type, exchange)						\
TRACE_RMW(bits, type, fetch_add)					\
TRACE_RMW(bits, type, fetch_sub)					\
TRACE_RMW(bits, type, fetch_and)					\
TRACE_RMW(bits, type, fetch_or)

TRACE_ATOMIC(8, unsigned char)
TRACE_ATOMIC(16, unsigned short)
TRACE_ATOMIC(32, unsigned int)
TRACE_ATOMIC(64, unsigned long long)
