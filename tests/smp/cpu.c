// SPDX-License-Identifier: GPL-2.0
/*
 * Coroutines.  ucontext makes a stack, and _setjmp() switches between stacks: it
 * makes no system call, as swapcontext() does.  A coroutine that has ended waits
 * for the next run, so its stack is made once.
 */
#include "cpu.h"

#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>

enum {
	STACK = 128 << 10,
};

static struct cpu {
	jmp_buf env;
	ucontext_t start;
	void *stack;		/* NULL: never started */
	const void *waits;	/* for cpu_wake(), or NULL */
} cpus[CPUS_MAX + 1];

static struct {
	u32 self;
	u64 ready;		/* mask */
	u64 running;		/* mask: work() has not returned */
	void (*work)(u32 cpu, void *arg);
	void *arg;
} now = { .self = CPU_NONE };

const struct cpu_driver *cpu_driver;

u32 cpu_self(void)
{
	return now.self;
}

u64 cpus_ready(void)
{
	return now.ready;
}

static void body(void);

static void resume(u32 to)
{
	struct cpu *c = &cpus[to];

	now.self = to;
	if (c->stack || to == CPU_NONE)
		_longjmp(c->env, 1);
	c->stack = aligned_alloc(64, STACK);
	port_assert(c->stack && !getcontext(&c->start));
	c->start.uc_stack.ss_sp = c->stack;
	c->start.uc_stack.ss_size = STACK;
	c->start.uc_link = NULL;
	makecontext(&c->start, body, 0);
	setcontext(&c->start);
	abort();
}

void cpu_switch(u32 to)
{
	if (to == now.self)
		return;
	if (!_setjmp(cpus[now.self].env))
		resume(to);
}

/* The CPU that runs cannot go on: picks another one, or the end of the run. */
static void leave(void)
{
	if (!now.running)
		cpu_switch(CPU_NONE);
	else if (now.ready)
		cpu_switch(cpu_driver->next());
	else
		cpu_driver->stuck();
}

static void body(void)
{
	for (;;) {
		u64 bit = BIT_ULL(now.self);

		now.work(now.self, now.arg);
		now.running &= ~bit;
		now.ready &= ~bit;
		leave();
	}
}

void cpus_run(u32 nr, void (*work)(u32 cpu, void *arg), void *arg)
{
	port_assert(nr && nr <= CPUS_MAX && now.self == CPU_NONE);
	now.ready = ~0ULL >> (64 - nr);
	now.running = now.ready;
	now.work = work;
	now.arg = arg;
	cpu_switch(cpu_driver->begin(nr));
}

void cpu_wait(const void *on)
{
	cpus[now.self].waits = on;
	now.ready &= ~BIT_ULL(now.self);
	leave();
}

void cpu_wake(const void *on)
{
	u64 others = now.running & ~now.ready;

	for (; others; others &= others - 1) {
		u32 cpu = port_ffs64(others);

		if (cpus[cpu].waits != on)
			continue;
		cpus[cpu].waits = NULL;
		now.ready |= BIT_ULL(cpu);
	}
}
