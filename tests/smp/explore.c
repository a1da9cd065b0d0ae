// SPDX-License-Identifier: GPL-2.0
#include "explore.h"
#include "tests/random.h"

#include <signal.h>
#include <unistd.h>

enum {
	CHANGES_MOST	= 4,		/* of priorities, in an interleaving */
	DRAW_ONCE_IN	= 8,		/* accesses, by the strategy random */
	ALONE_MOST	= 2000,		/* accesses before a CPU gives way */
	STEPS_MOST	= 20000000,	/* of an interleaving that ends */
	SHOWN		= 24,		/* switches in a report */
	SPIN_MOST	= 300,		/* the same, in a bounded schedule */
	CHOICES_MOST	= 8192,		/* accesses of a bounded schedule */
	FORCED_MOST	= 64,		/* switches of a bounded schedule */
};

enum strategy {
	PRIORITIES,
	RANDOM,
	BOUNDED,
};

struct forced {
	u32 step, cpu;
};

/* The CPUs that could have run at a step, and the one that did. */
struct choice {
	u64 ready;
	u8 chosen;
	bool free;		/* the CPU before it could not go on */
};

static struct {
	u64 seed;
	struct random random;
	enum strategy strategy;
	u64 count, steps_before;
	u32 step, alone, length;	/* length: of the interleaving before */
	u32 priority[CPUS_MAX], lowest;
	u32 change[CHANGES_MOST], changes;
	bool pick;			/* a CPU has become ready */
	bool watching;
	void (*watch)(void *arg);
	void *watch_arg;
	/* Of the strategy BOUNDED. */
	struct forced forced[FORCED_MOST];
	u32 nr_forced;
	struct choice choice[CHOICES_MOST];
	u32 nr_choices;
	struct {
		u32 step, from, to;
		uintptr_t at;		/* in the program */
	} shown[SHOWN];
	u64 switches;
} x;

FILE *explore_report;
const char *explore_program;

u64 explore_count(void)
{
	return x.count;
}

u64 explore_steps(void)
{
	return x.steps_before + x.step;
}

void explore_watch(void (*check)(void *arg), void *arg)
{
	x.watch = check;
	x.watch_arg = arg;
}

/* ------------------------------------------------------------------ failures */

void explore_failed(const char *why)
{
	u64 i = x.switches > SHOWN ? x.switches - SHOWN : 0;

	fprintf(explore_report,
		"%s\n%s: seed %llu, interleaving %llu, access %u"
		" of CPU %u; the last switches:\n",
		why, explore_program, x.seed, x.count, x.step, cpu_self());
	for (; i < x.switches; i++)
		fprintf(explore_report,
			"\taccess %5u: CPU %u stops at %#zx, CPU"
			" %u goes on\n",
			x.shown[i % SHOWN].step, x.shown[i % SHOWN].from,
			(size_t)x.shown[i % SHOWN].at, x.shown[i % SHOWN].to);
	fprintf(explore_report,
		"places: addr2line -pfie %s ADDRESS; repeat: %s --seed %llu\n",
		explore_program, explore_program, x.seed);
	fflush(explore_report);
	_exit(1);
}

static void on_signal(int signal)
{
	explore_failed(signal == SIGSEGV ? "a bad address was used" :
					   "the program aborted");
}

static void stuck(void)
{
	explore_failed("every CPU waits for another one");
}

/* --------------------------------------------------------------- the choices */

static u32 highest(u64 ready)
{
	u32 best = port_ffs64(ready);

	for (; ready; ready &= ready - 1)
		if (x.priority[port_ffs64(ready)] > x.priority[best])
			best = port_ffs64(ready);
	return best;
}

static u32 any(u64 ready)
{
	u32 skip = random_below(&x.random, (u32)__builtin_popcountll(ready));

	while (skip--)
		ready &= ready - 1;
	return port_ffs64(ready);
}

static u32 by_priority(void)
{
	u32 i;

	for (i = 0; i < x.changes; i++)
		if (x.change[i] == x.step) {
			x.priority[cpu_self()] = --x.lowest;
			x.pick = true;
		}
	if (!x.pick)
		return cpu_self();
	x.pick = false;
	return highest(cpus_ready());
}

/* The ready CPU after this one, in order. */
static u32 after(u64 ready)
{
	u64 later = cpu_self() == CPU_NONE ? 0 : ready & (~1ULL << cpu_self());

	return port_ffs64(later ? later : ready);
}

/*
 * The same CPU goes on, or the next one in order if it cannot, unless the
 * schedule has another one for this step.
 */
static u32 by_schedule(bool can_go_on)
{
	u64 ready = cpus_ready();
	u64 self = cpu_self() == CPU_NONE ? 0 : BIT_ULL(cpu_self());
	u32 cpu, i;

	/* A CPU that waits in a loop is no choice, unless it is the only one. */
	if (!can_go_on && ready != self)
		ready &= ~self;
	cpu = can_go_on ? cpu_self() : after(ready);

	for (i = 0; i < x.nr_forced; i++)
		if (x.forced[i].step == x.nr_choices)
			cpu = x.forced[i].cpu;
	port_assert(x.nr_choices < CHOICES_MOST && ready & BIT_ULL(cpu));
	x.choice[x.nr_choices++] = (struct choice){
		.ready = ready,
		.chosen = (u8)cpu,
		.free = !can_go_on,
	};
	return cpu;
}

/* The start of the program, from the linker: it is another one in each run. */
extern char __executable_start[];

static void go_on_with(u32 cpu, const char *at)
{
	u32 i = x.switches % SHOWN;

	x.alone = 0;
	x.shown[i].step = x.step;
	x.shown[i].from = cpu_self();
	x.shown[i].to = cpu;
	x.shown[i].at = (uintptr_t)(at - __executable_start);
	x.switches++;
	cpu_switch(cpu);
}

static void watch(void)
{
	x.watching = true;
	x.watch(x.watch_arg);
	x.watching = false;
}

/* A shared access is about to happen. */
void port_perturb(void)
{
	u32 cpu;

	if (cpu_self() == CPU_NONE || x.watching)
		return;
	if (x.watch)
		watch();
	if (++x.step > STEPS_MOST)
		explore_failed("the CPUs do not come to an end");
	/* A CPU that waits in a loop must not keep the others from running. */
	if (++x.alone == ALONE_MOST && x.strategy == PRIORITIES) {
		x.alone = 0;
		x.priority[cpu_self()] = --x.lowest;
		x.pick = true;
	}
	if (x.strategy == PRIORITIES)
		cpu = by_priority();
	else if (x.strategy == RANDOM)
		cpu = random_once_in(&x.random, DRAW_ONCE_IN) ?
			      any(cpus_ready()) :
			      cpu_self();
	else
		cpu = by_schedule(x.alone % SPIN_MOST);
	if (cpu != cpu_self())
		go_on_with(cpu, __builtin_return_address(0));
}

void explore_woke(void)
{
	x.pick = true;
}

static u32 next(void)
{
	u64 ready = cpus_ready();

	x.alone = 0;
	if (x.strategy == PRIORITIES)
		return highest(ready);
	return x.strategy == RANDOM ? any(ready) : by_schedule(false);
}

static u32 begin(u32 nr)
{
	if (x.strategy == BOUNDED)
		return by_schedule(false);
	explore_random(nr);
	return next();
}

static const struct cpu_driver driver = { begin, next, stuck };

/* ---------------------------------------------------------------- strategies */

void explore_seed(u64 seed)
{
	cpu_driver = &driver;
	signal(SIGSEGV, on_signal);
	signal(SIGABRT, on_signal);
	x.seed = seed;
	x.random.state = ~seed;
	x.strategy = PRIORITIES;
	x.length = 1000;
}

static void begin_count(void)
{
	x.count++;
	x.steps_before += x.step;
	x.step = 0;
	x.alone = 0;
	x.switches = 0;
}

void explore_random(u32 cpus)
{
	u32 i, j;

	/* An interleaving has about as many accesses as the one before. */
	x.length = max(x.step, 50U);
	begin_count();
	x.strategy = random_once_in(&x.random, 4) ? RANDOM : PRIORITIES;
	x.changes = random_below(&x.random, CHANGES_MOST + 1);
	for (i = 0; i < x.changes; i++)
		x.change[i] = 1 + random_below(&x.random, x.length);
	x.lowest = 1U << 20;
	for (i = 0; i < cpus; i++)
		x.priority[i] = x.lowest + i;
	for (i = cpus; i-- > 1;) {
		u32 was = x.priority[i];

		j = random_below(&x.random, i + 1);
		x.priority[i] = x.priority[j];
		x.priority[j] = was;
	}
	x.pick = true;
}

/* A scenario, and the callbacks that make and judge it. */
struct bounded {
	u32 nr;
	void (*before)(void *arg);
	void (*work)(u32 cpu, void *arg);
	void (*after)(void *arg);
	void *arg;
	u64 runs;
};

/*
 * Runs the schedule x.forced, and then all that differ from it at one later
 * step and have at most @left preemptions more.
 */
static void run_from(struct bounded *b, u32 first, u32 left)
{
	struct choice *made;
	u32 nr, i;
	u64 others;

	begin_count();
	b->runs++;
	x.nr_choices = 0;
	b->before(b->arg);
	cpus_run(b->nr, b->work, b->arg);
	b->after(b->arg);
	nr = x.nr_choices;
	made = malloc(nr * sizeof(*made));
	port_assert(made);
	memcpy(made, x.choice, nr * sizeof(*made));
	for (i = first; i < nr; i++) {
		others = made[i].ready & ~BIT_ULL(made[i].chosen);
		if ((!made[i].free && !left) || x.nr_forced == FORCED_MOST)
			continue;
		for (; others; others &= others - 1) {
			x.forced[x.nr_forced++] = (struct forced){
				.step = i,
				.cpu = port_ffs64(others),
			};
			run_from(b, i + 1, left - !made[i].free);
			x.nr_forced--;
		}
	}
	free(made);
}

u64 explore_bounded(u32 nr, u32 preemptions, void (*before)(void *arg),
		    void (*work)(u32 cpu, void *arg), void (*after)(void *arg),
		    void *arg)
{
	struct bounded b = { nr, before, work, after, arg, 0 };

	x.strategy = BOUNDED;
	x.nr_forced = 0;
	run_from(&b, 0, preemptions);
	return b.runs;
}
