// SPDX-License-Identifier: GPL-2.0
/*
 * Runs one test of tests/mt on simulated CPUs, with one seed after the other.
 * The test's main() is named scenario_main().
 */
#include "explore.h"
#include "tests/random.h"

#include <getopt.h>
#include <unistd.h>

int scenario_main(void);

static int usage(void)
{
	fprintf(stderr,
		"usage: %s [--from SEED] [--interleavings N] | --seed SEED\n",
		explore_program);
	return 2;
}

/* The tests print lines for each seed, and only reports are wanted here. */
static FILE *silence(FILE *stream)
{
	FILE *copy = fdopen(dup(fileno(stream)), "w");

	port_assert(copy && freopen("/dev/null", "w", stream));
	return copy;
}

static void run(u64 seed)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", seed);
	setenv("MQFAIR_SEED", text, 1);
	explore_seed(seed);
	if (scenario_main())
		explore_failed("the test returns a failure");
}

static bool number(const char *text, u64 *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "from", required_argument, NULL, 'f' },
		{ "interleavings", required_argument, NULL, 'i' },
		{ "seed", required_argument, NULL, 's' },
		{ 0 },
	};
	u64 seed = 1, wanted = 1000, first;
	bool one = false;
	FILE *out;
	int option;

	explore_program = argv[0];
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		one |= option == 's';
		if (option == '?' ||
		    !number(optarg, option == 'i' ? &wanted : &seed))
			return usage();
	}
	if (optind < argc)
		return usage();
	out = silence(stdout);
	explore_report = silence(stderr);
	for (first = seed; one ? seed == first : explore_count() < wanted;
	     seed++)
		run(seed);
	fprintf(out, "%llu interleavings, %llu accesses, seeds %llu to %llu\n",
		explore_count(), explore_steps(), first, seed - 1);
	return fclose(out) ? 1 : 0;
}
