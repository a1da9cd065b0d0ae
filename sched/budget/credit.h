/* SPDX-License-Identifier: GPL-2.0 */
/*
 * credit - the balance of one flow: spent on any CPU, granted by refills
 *
 * A flow may spend while its credit is above 0.  Its last request may cost
 * more than is left: the flow then has a debt [R].  A grant forfeits the
 * credit that is left, and subtracts the debt.
 *
 *	left   4096, a request of 65536 goes:	left -61440
 *	grant 100000:				left  38560
 *	grant 100000:				left 100000
 *
 * Two ways to change it.  With lock == NULL the credit is changed by
 * compare-and-swap.  Otherwise it is changed under *lock (wdt).  The pointer
 * changes only under the lock that it points to, so at each moment one lock
 * protects the credit.
 *
 *	             spend  grant  set_lock
 *	spend          -      -       -
 *	grant          -      X       -
 *	set_lock       -      -       X
 *
 * X: the caller serialises; -: may run at once.  Not between NULL and a lock,
 * however: that is for the time before the flow's first request.
 *
 * The functions are inline, for dispatch of each request spends.
 * Tested by tests/unit/budget.c, tests/mt/{budget,replay_budget}.c.
 */
#ifndef MQFAIR_CREDIT_H
#define MQFAIR_CREDIT_H

#include "port.h"

struct credit {
	atomic64_t left;	/* A: exhausted at 0 or below */
	struct port_lock *lock;	/* that protects `left`; NULL: none */
};

/* The lock that protects the credit, taken; or NULL. */
static inline struct port_lock *credit_lock(struct credit *c,
					    unsigned long *flags)
{
	struct port_lock *lock;

	/* Pairs with credit_set_lock(). */
	while ((lock = smp_load_acquire(&c->lock))) {
		*flags = port_lock(lock);
		if (lock == READ_ONCE(c->lock))
			break;
		port_unlock(lock, *flags);
	}
	return lock;
}

static inline void credit_set_lock(struct credit *c, struct port_lock *lock)
{
	unsigned long flags;
	struct port_lock *old = credit_lock(c, &flags);

	/* Pairs with credit_lock(): it sees all that was spent under @old. */
	smp_store_release(&c->lock, lock);
	if (old)
		port_unlock(old, flags);
}

static inline s64 credit_left(const struct credit *c)
{
	return atomic64_read(&c->left);
}

static inline bool credit_may_spend(const struct credit *c)
{
	return credit_left(c) > 0;
}

/* The credit of any flow is above this. */
#define CREDIT_ANY	(-(s64)(~0ULL >> 1))

/*
 * Spends @cost if the credit is above @least, and returns whether it was.
 * *@exhausted: this has taken the credit to 0 or below.
 */
static inline bool credit_spend(struct credit *c, u64 cost, s64 least,
				bool *exhausted)
{
	unsigned long flags;
	struct port_lock *lock = credit_lock(c, &flags);
	s64 left = credit_left(c);
	bool spent = left > least;

	if (lock) {
		if (spent)
			atomic64_set(&c->left, left - cost);
		port_unlock(lock, flags);
	} else {
		while (spent &&
		       !atomic64_try_cmpxchg(&c->left, &left, left - cost))
			spent = left > least;
	}
	*exhausted = spent && left > 0 && left <= (s64)cost;
	return spent;
}

/* Returns by how much the credit has grown: @amount, less the forfeited. */
static inline s64 credit_grant(struct credit *c, u64 amount)
{
	unsigned long flags;
	struct port_lock *lock = credit_lock(c, &flags);
	s64 left = credit_left(c);
	s64 then = min(left, (s64)0) + (s64)amount;

	if (lock) {
		atomic64_set(&c->left, then);
		port_unlock(lock, flags);
	} else {
		while (!atomic64_try_cmpxchg(&c->left, &left, then))
			then = min(left, (s64)0) + (s64)amount;
	}
	return then - left;
}

#endif /* MQFAIR_CREDIT_H */
