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
 * A test of isolation is skipped under a scheduler without that tunable, and a
 * test of shares under one that is `unweighted`.
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
	bool weighted;			/* they judge shares by weight */
	bool isolation;			/* they need this tunable */
	bool is_long;
} of_all[] = {
	{ .tests = life_tests },
	{ .tests = audit_tests },
	{ .tests = generic_tests, .weighted = true },
	{ .tests = isolation_tests, .isolation = true },
	{ .tests = isolation_long_tests, .isolation = true, .is_long = true },
	{ .tests = urgent_tests, .weighted = true },
	{ .tests = tag_tests, .weighted = true },
	{ .tests = crowd_tests, .weighted = true },
	{ .tests = adversary_tests,
	  .weighted = true,
	  .isolation = true,
	  .is_long = true },
	{ .tests = tick_tests },
	{ .tests = tunable_tests },
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
		      const struct test *test, const char *why)
{
	printf("ok %u - %s under %s # SKIP %s\n", ++r->run, test->name,
	       ops->name, why);
}

/*
 * @fifo: the fairness tests run under FIFO, too.  @why_not: the reason why @ops
 * runs none of the tests, or NULL.
 */
static void run_table(struct tap_report *r, const struct sched_ops *ops,
		      const struct test *test, bool fifo, const char *why_not)
{
	if (r->scheduler && strcmp(ops->name, r->scheduler))
		return;
	for (; test->name; test++)
		if (!is_asked_for(r, test))
			continue;
		else if (why_not)
			skip_test(r, ops, test, why_not);
		else
			run_test(r, ops, test, fifo);
}

/* Why @ops runs none of the tests of_all[@i]; NULL if it runs them. */
static const char *why_not(const struct sched_ops *ops, u32 i)
{
	if (of_all[i].weighted && ops->unweighted)
		return "its order ignores weights";
	if (of_all[i].isolation && !tunable_find(ops->tunables, "isolation"))
		return "it has no tunable isolation";
	return NULL;
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
	for (ops = sched_policies; *ops; ops++)
		for (i = 0; i < ARRAY_SIZE(of_all); i++)
			if (!only || of_all[i].is_long == (only == 'l'))
				run_table(r, *ops, of_all[i].tests,
					  ops == sched_policies,
					  why_not(*ops, i));
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
