// SPDX-License-Identifier: GPL-2.0
/* Runs the tests that a program has listed.  A program without a test fails. */
#include "unit.h"

enum {
	TESTS_MOST	= 64,
};

static struct CMUnitTest tests[TESTS_MOST];
static size_t nr_tests;
static void (*before_each)(void), (*after_each)(void);

static int before(void **state)
{
	(void)state;
	if (before_each)
		before_each();
	return 0;
}

static int after(void **state)
{
	(void)state;
	if (after_each)
		after_each();
	return 0;
}

void list_test(const char *name, CMUnitTestFunction test)
{
	assert_true(nr_tests < TESTS_MOST);
	tests[nr_tests++] = (struct CMUnitTest){
		.name = name,
		.test_func = test,
		.setup_func = before,
		.teardown_func = after,
	};
}

void list_fixture(void (*open)(void), void (*close)(void))
{
	before_each = open;
	after_each = close;
}

/* Weak: a program that lists its tests itself has its own main(). */
__attribute__((weak)) int main(void)
{
	if (!nr_tests)
		return 1;
	return _cmocka_run_group_tests("tests", tests, nr_tests, NULL, NULL);
}
