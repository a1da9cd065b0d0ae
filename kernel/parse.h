/* SPDX-License-Identifier: GPL-2.0 */
/*
 * parse - the text that a user writes into a file
 *
 * The kernel's own functions take a sign before a number, and end at a NUL.  A
 * file of mqfair takes digits alone, and nothing after a NUL.
 *
 * Tested by tests/vm/test_keys.py.
 */
#ifndef MQFAIR_PARSE_H
#define MQFAIR_PARSE_H

#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>

/* Do all of the @n bytes at @s count, but for a NUL at the end? */
static inline bool parse_is_text(const char *s, size_t n)
{
	return strnlen(s, n) + 1 >= n;
}

/* Returns 0, or -EINVAL unless @s is a decimal number below 2^32. */
static inline int parse_number(const char *s, unsigned int *number)
{
	return isdigit(*s) && !kstrtouint(s, 10, number) ? 0 : -EINVAL;
}

#endif /* MQFAIR_PARSE_H */
