// SPDX-License-Identifier: GPL-2.0
/*
 * Runs every test under the scheduler that it is of, then each fairness test
 * under FIFO, where it has to fail: a test that cannot tell the two apart proves
 * nothing.
 *
 *	sim-tests [-q | -l] [-s SCHEDULER] [NAME]
 *		all, or those of SCHEDULER, or whose name begins with NAME;
 *		-q: the quick ones, -l: those that take long
 *
 * Prints TAP.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fifo.h"
#include "sched/core/policies.h"
#include "fixture.h"

static const struct {
	const struct sched_ops *ops;
	const struct test *tests;
	bool is_long;
} tables[] = {
	{ &mqfq_ops, bound_tests, false },
	{ &mqfq_ops, share_tests, false },
	{ &mqfq_ops, life_tests, false },
	{ &mqfq_ops, own_clock_tests, false },
	{ &mqfq_ops, cost_estimator_tests, true },
	{ &mqfq_ops, flash_tests, true },
	{ &ifq_ops, ifq_tests, false },
	{ &wdt_ops, wdt_tests, false },
	{ &wdt_ops, life_tests, false },
	{ &hwabc_ops, hwabc_tests, false },
	{ &hwabc_ops, life_tests, false },
	{ &kyber_fair_ops, kyber_tests, false },
	{ &kyber_fair_ops, life_tests, false },
};

struct tap_report {
	const char *scheduler;		/* NULL: all */
	const char *prefix;
	u32 run, failed;
};

static void report_test(struct tap_report *r, const char *name,
			const char *under, bool ok, const char *why)
{
	r->run++;
	r->failed += !ok;
	printf("%s %u - %s%s%s%s\n", ok ? "ok" : "not ok", r->run, name, under,
	       *why ? ": " : "", why);
	fflush(stdout);
}

static void run_test(struct tap_report *r, const struct sched_ops *ops,
		     const struct test *test)
{
	struct test_case t = { .ops = ops };
	char under[32] = "";

	if (r->scheduler && strcmp(ops->name, r->scheduler))
		return;
	if (strncmp(test->name, r->prefix, strlen(r->prefix)))
		return;
	if (ops != &mqfq_ops)
		snprintf(under, sizeof(under), " under %s", ops->name);
	test->run(&t);
	report_test(r, test->name, under, !case_failed(&t),
		    case_failed(&t) ? t.failure : t.note);
	if (!test->fairness)
		return;
	t = (struct test_case){ .ops = &fifo_ops };
	test->run(&t);
	report_test(r, test->name, " must fail under FIFO", case_failed(&t),
		    t.failure);
}

int main(int argc, char **argv)
{
	struct tap_report r = { .prefix = "" };
	const struct test *test;
	int option, only = 0;  /* 'q' or 'l'; 0: both */
	u32 i;

	while ((option = getopt(argc, argv, "qls:")) != -1) {
		if (option == '?')
			return 2;
		if (option == 's')
			r.scheduler = optarg;
		else
			only = option;
	}
	if (optind < argc)
		r.prefix = argv[optind];
	for (i = 0; i < ARRAY_SIZE(tables); i++) {
		if (only && tables[i].is_long != (only == 'l'))
			continue;
		for (test = tables[i].tests; test->name; test++)
			run_test(&r, tables[i].ops, test);
	}
	printf("1..%u\n", r.run);
	if (!r.run)
		fprintf(stderr,
			"no test of %s has a name that begins with '%s'\n",
			r.scheduler ? r.scheduler : "any", r.prefix);
	return r.failed || !r.run;
}
