// SPDX-License-Identifier: GPL-2.0
/*
 * Runs every test under its scheduler.  Each fairness test also runs once under
 * FIFO, and has to fail there: a test that cannot tell the two apart proves
 * nothing.  A failed check of the host, such as an audit, does not count.  A test
 * of every scheduler runs under FIFO beside the first one.
 *
 *	sim-tests [-q | -l] [-f] [-s SCHEDULER] [NAME]
 *		runs all tests, or those of SCHEDULER, or those with a name that
 *		begins with NAME.  The name "policy" is for those of the order of
 *		requests: life/, share/ and audit/.  -q: the quick tests, -l: the
 *		long tests, -f: few seeds, for a slow build
 *
 * A test of isolation is skipped under a scheduler without that tunable.
 *
 * Prints TAP.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fifo.h"
#include "sched/core/policies.h"
#include "fixture.h"

enum {
	FEW_SEEDS	= 2,
};

/* Every scheduler of policies.def runs these. */
static const struct {
	const struct test *tests;
	const char *tunable;		/* it needs this one, or NULL */
} of_all[] = {
	{ life_tests, NULL },
	{ audit_tests, NULL },
	{ generic_tests, NULL },
	{ isolation_tests, "isolation" },
	{ urgent_tests, NULL },
	{ tag_tests, NULL },
	{ crowd_tests, NULL },
	{ adversary_tests, "isolation" },
	{ tick_tests, NULL },
	{ tunable_tests, NULL },
};

/* The tests that "policy" names. */
static const char *const of_policy[] = { "life/", "share/", "audit/" };

/* The tests of one scheduler. */
static const struct {
	const struct sched_ops *ops;
	const struct test *tests;
	bool is_long;
} of_one[] = {
	{ &mqfq_ops, bound_tests, false },
	{ &mqfq_ops, share_tests, false },
	{ &mqfq_ops, own_clock_tests, false },
	{ &mqfq_ops, isolation_mqfq_tests, false },
	{ &mqfq_ops, cost_estimator_tests, true },
	{ &mqfq_ops, flash_tests, true },
	{ &mqfq_ops, goal_tests, true },
	{ &ifq_ops, ifq_tests, false },
	{ &wdt_ops, wdt_tests, false },
	{ &hwabc_ops, hwabc_tests, false },
	{ &kyber_fair_ops, kyber_tests, false },
	{ &drr_ops, drr_tests, false },
};

struct tap_report {
	const char *scheduler;		/* NULL: all */
	const char *prefix;
	u32 most_seeds;
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
		     const struct test *test, bool fifo)
{
	struct test_case t = { .ops = ops, .most_seeds = r->most_seeds };
	char under[32] = "";

	if (ops != &mqfq_ops)
		snprintf(under, sizeof(under), " under %s", ops->name);
	test->run(&t);
	report_test(r, test->name, under, !case_failed(&t),
		    case_failed(&t) ? t.failure : t.note);
	if (!test->fairness || !fifo)
		return;
	t = (struct test_case){ .ops = &fifo_ops };
	test->run(&t);
	report_test(r, test->name, " must fail under FIFO",
		    case_failed(&t) && !t.host_failed, t.failure);
}

static bool begins(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static bool is_asked_for(const struct tap_report *r, const struct test *test)
{
	u32 i;

	if (strcmp(r->prefix, "policy"))
		return begins(test->name, r->prefix);
	for (i = 0; i < ARRAY_SIZE(of_policy); i++)
		if (begins(test->name, of_policy[i]))
			return true;
	return false;
}

static void skip_test(struct tap_report *r, const struct sched_ops *ops,
		      const struct test *test, const char *tunable)
{
	printf("ok %u - %s under %s # SKIP it has no tunable %s\n", ++r->run,
	       test->name, ops->name, tunable);
}

/*
 * @fifo: the fairness tests run under FIFO, too.  A scheduler without @tunable
 * runs none of the tests.
 */
static void run_table(struct tap_report *r, const struct sched_ops *ops,
		      const struct test *test, bool fifo, const char *tunable)
{
	bool has = !tunable || tunable_find(ops->tunables, tunable);

	if (r->scheduler && strcmp(ops->name, r->scheduler))
		return;
	for (; test->name; test++)
		if (!is_asked_for(r, test))
			continue;
		else if (has)
			run_test(r, ops, test, fifo);
		else
			skip_test(r, ops, test, tunable);
}

/* @only: 'q' or 'l'; 0: both. */
static void run_all(struct tap_report *r, int only)
{
	const struct sched_ops *const *ops;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(of_one); i++)
		if (!only || of_one[i].is_long == (only == 'l'))
			run_table(r, of_one[i].ops, of_one[i].tests, true,
				  NULL);
	for (ops = sched_policies; *ops && only != 'l'; ops++)
		for (i = 0; i < ARRAY_SIZE(of_all); i++)
			run_table(r, *ops, of_all[i].tests,
				  ops == sched_policies, of_all[i].tunable);
}

int main(int argc, char **argv)
{
	struct tap_report r = { .prefix = "", .most_seeds = ~0U };
	int option, only = 0;

	while ((option = getopt(argc, argv, "qlfs:")) != -1) {
		if (option == '?')
			return 2;
		if (option == 's')
			r.scheduler = optarg;
		else if (option == 'f')
			r.most_seeds = FEW_SEEDS;
		else
			only = option;
	}
	if (optind < argc)
		r.prefix = argv[optind];
	run_all(&r, only);
	printf("1..%u\n", r.run);
	if (!r.run)
		fprintf(stderr,
			"sim-tests: no test%s%s has a name that begins with '%s'; the schedulers are those of sched/core/policies.def\n",
			r.scheduler ? " of " : "",
			r.scheduler ? r.scheduler : "", r.prefix);
	return r.failed || !r.run;
}
