// SPDX-License-Identifier: GPL-2.0
#include "port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local unsigned int allocations_left = UINT_MAX;

/* Without a host no queue is locked by anybody. */
static bool queue_is_nobodys(const struct queue *q)
{
	(void)q;
	return false;
}

bool (*port_queue_is_mine)(const struct queue *q) = queue_is_nobodys;

void port_assert_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, what);
	abort();
}

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
	pthread_mutex_lock(&l->mutex);
	__atomic_store_n(&l->owner, pthread_self(), __ATOMIC_RELAXED);
	__atomic_store_n(&l->held, true, __ATOMIC_RELAXED);
	return 0;
}

void port_unlock(struct port_lock *l, unsigned long flags)
{
	(void)flags;
	port_assert_held(l);
	__atomic_store_n(&l->held, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&l->mutex);
}

/*
 * Only the caller itself can have made this true, so it may be asked without
 * the lock; another thread's taking or dropping it does not change the answer.
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
