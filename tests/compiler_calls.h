/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compiler_calls - the calls of the compiler at each plain access to memory
 *
 * Code that is compiled with -fsanitize=thread calls a function at each access.
 * One file of a program includes this header, and is linked in place of the
 * sanitizer.  Before that it defines two functions:
 *
 *	static void on_access(void *p, unsigned long size, bool write);
 *	static void on_range(void *p, unsigned long size, bool write);
 *
 * on_access() gets a read or a write of 1 to 16 bytes, and on_range() one of a
 * structure.  The calls for atomic accesses are the file's own, if it has any.
 */
#ifndef MQFAIR_TESTS_COMPILER_CALLS_H
#define MQFAIR_TESTS_COMPILER_CALLS_H

/* The compiler gives the names, and declares nothing. */
#define PLAIN_ACCESS(size)						\
void __tsan_read##size(void *p);					\
void __tsan_read##size(void *p) { on_access(p, size, false); }		\
void __tsan_write##size(void *p);					\
void __tsan_write##size(void *p) { on_access(p, size, true); }		\
void __tsan_unaligned_read##size(void *p);				\
void __tsan_unaligned_read##size(void *p) { on_access(p, size, false); } \
void __tsan_unaligned_write##size(void *p);				\
void __tsan_unaligned_write##size(void *p) { on_access(p, size, true); }

PLAIN_ACCESS(1)
PLAIN_ACCESS(2)
PLAIN_ACCESS(4)
PLAIN_ACCESS(8)
PLAIN_ACCESS(16)

void __tsan_read_range(void *p, unsigned long size);
void __tsan_read_range(void *p, unsigned long size)
{
	on_range(p, size, false);
}

void __tsan_write_range(void *p, unsigned long size);
void __tsan_write_range(void *p, unsigned long size)
{
	on_range(p, size, true);
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

#endif /* MQFAIR_TESTS_COMPILER_CALLS_H */
