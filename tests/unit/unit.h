/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The headers of every unit test, in the order that cmocka wants, and how a
 * program lists its tests for main.c.
 */
#ifndef MQFAIR_UNIT_H
#define MQFAIR_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/random.h"

/* TEST() and FIXTURE() call these before main(). */
void list_test(const char *name, CMUnitTestFunction test);
void list_fixture(void (*open)(void), void (*close)(void));

/* A test, which main.c runs: TEST(sum_is_even) { assert_int_equal(sum % 2, 0); } */
#define TEST(name)							\
	static void name(void **state);					\
	static __attribute__((constructor)) void name##_listed(void)	\
	{								\
		list_test(#name, name);					\
	}								\
	static void name(void **state __attribute__((unused)))

/* Each test of the program runs between @open and @close. */
#define FIXTURE(open, close)						\
	static __attribute__((constructor)) void fixture_listed(void)	\
	{								\
		list_fixture(open, close);				\
	}

#endif /* MQFAIR_UNIT_H */
