// SPDX-License-Identifier: GPL-2.0
/*
 * port.h of tests/mt on simulated CPUs.  A CPU that finds a lock taken waits,
 * and another one runs.
 */
#include "explore.h"

#include <stdlib.h>

static bool no_queue_is_mine(const struct queue *q)
{
	(void)q;
	return false;
}

bool (*port_queue_is_mine)(const struct queue *q) = no_queue_is_mine;

void port_assert_failed(const char *what, const char *file, int line)
{
	static char text[512];

	snprintf(text, sizeof(text), "%s:%d: assertion failed: %s", file, line,
		 what);
	if (cpu_driver)
		explore_failed(text);
	fprintf(stderr, "%s\n", text);
	abort();
}

/* All CPUs are one thread, so the owner is the number of the CPU. */
static pthread_t self(void)
{
	return (pthread_t)cpu_self() + 1;
}

void port_lock_init(struct port_lock *l)
{
	l->held = false;
}

void port_lock_deinit(struct port_lock *l)
{
	port_assert(!l->held);
}

unsigned long port_lock(struct port_lock *l)
{
	port_perturb();
	port_assert(!port_lock_is_mine(l));
	while (l->held)
		cpu_wait(l);
	l->held = true;
	l->owner = self();
	return 0;
}

void port_unlock(struct port_lock *l, unsigned long flags)
{
	(void)flags;
	port_assert_held(l);
	l->held = false;
	cpu_wake(l);
	explore_woke();
}

bool port_lock_is_mine(const struct port_lock *l)
{
	return l->held && l->owner == self();
}

void *port_zalloc(size_t size)
{
	void *p;

	size = (size + 63) & ~(size_t)63;
	p = aligned_alloc(64, size);
	if (p)
		memset(p, 0, size);
	return p;
}

void port_free(void *p)
{
	free(p);
}
