// SPDX-License-Identifier: GPL-2.0
#include "port.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local unsigned int allocations_left = UINT_MAX;
static _Thread_local unsigned int locks_held;

/* Without a host no thread has locked a queue. */
static bool no_queue_is_mine(const struct queue *q)
{
	(void)q;
	return false;
}

bool (*port_queue_is_mine)(const struct queue *q) = no_queue_is_mine;

void port_assert_failed(const char *what, const char *file, int line)
{
	fflush(stdout);
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, what);
	abort();
}

#ifdef PORT_PERTURB
enum {
	PERTURB_ONCE_IN	= 32,	/* one access of this number yields */
	STALL_ONCE_IN	= 64,	/* one yield of this number is long */
	STALL_YIELDS	= 40,
};

static _Thread_local struct {
	void (*fn)(void *arg);
	void *arg;
	u32 accesses;		/* left before the interrupt */
} interrupt;

void port_interrupt_at(u32 access, void (*fn)(void *arg), void *arg)
{
	interrupt.fn = fn;
	interrupt.arg = arg;
	interrupt.accesses = access;
}

bool port_interrupt_done(void)
{
	bool done = !interrupt.fn;

	interrupt.fn = NULL;
	return done;
}

static void interrupt_run(void)
{
	void (*fn)(void *arg) = interrupt.fn;

	if (locks_held || interrupt.accesses--)
		return;
	interrupt.fn = NULL;
	fn(interrupt.arg);
}

void port_perturb(void)
{
	static _Thread_local u64 state;
	u64 yields;

	if (interrupt.fn) {
		interrupt_run();
		return;
	}
	if (!state)
		state = (u64)(uintptr_t)&state;
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	if (likely((state >> 32) % PERTURB_ONCE_IN))
		return;
	yields = (state >> 48) % STALL_ONCE_IN ? 1 : STALL_YIELDS;
	while (yields--)
		sched_yield();
}
#endif

void port_lock_init(struct port_lock *l)
{
	pthread_mutex_init(&l->mutex, NULL);
	l->held = false;
}

void port_lock_deinit(struct port_lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

unsigned long port_lock(struct port_lock *l)
{
	port_perturb();
	pthread_mutex_lock(&l->mutex);
	__atomic_store_n(&l->owner, pthread_self(), __ATOMIC_RELAXED);
	__atomic_store_n(&l->held, true, __ATOMIC_RELAXED);
	locks_held++;
	return 0;
}

void port_unlock(struct port_lock *l, unsigned long flags)
{
	(void)flags;
	port_assert_held(l);
	__atomic_store_n(&l->held, false, __ATOMIC_RELAXED);
	locks_held--;
	pthread_mutex_unlock(&l->mutex);
}

/*
 * Only the calling thread can make the answer true, so the call needs no lock.
 * The answer stays the same while other threads take or drop the lock.
 */
bool port_lock_is_mine(const struct port_lock *l)
{
	return __atomic_load_n(&l->held, __ATOMIC_RELAXED) &&
	       pthread_equal(__atomic_load_n(&l->owner, __ATOMIC_RELAXED),
			     pthread_self());
}

void *port_zalloc(size_t size)
{
	void *p;

	if (allocations_left != UINT_MAX) {
		if (!allocations_left)
			return NULL;
		allocations_left--;
	}
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

void port_zalloc_fail_after(unsigned int n)
{
	allocations_left = n;
}

void port_zalloc_fail_never(void)
{
	allocations_left = UINT_MAX;
}
