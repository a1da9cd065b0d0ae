/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rate - work per time as an integer, and square roots
 *
 * A rate is the work done in 2^20 ns, about a millisecond.  Work is bytes, or
 * cost as in cost.h, and the rate counts the same unit.  The power of two makes
 * work_at() a product and a shift.  A drive of 1 MB/s has a rate of 1048.
 *
 *	3 GB/s in bytes: rate_of(3000000, 1000000) = 3145728
 *	in the next 2 ms: work_at(3145728, 2000000) = 6000000
 *
 * Products have 128 bits, so they do not overflow.  All functions round down.
 *
 * Tested by tests/unit/{isolation,demand,cost_rls}.c.
 */
#ifndef MQFAIR_RATE_H
#define MQFAIR_RATE_H

#include "port.h"

enum {
	RATE_SHIFT	= 20,
};

/* Returns the rate of @work done in @ns, or 0 if @ns is 0. */
static inline u64 rate_of(u64 work, u64 ns)
{
	return ns ? mul_u64_u64_div_u64(work, 1ULL << RATE_SHIFT, ns) : 0;
}

/* Returns the work that @rate does in @ns. */
static inline u64 work_at(u64 rate, u64 ns)
{
	return mul_u64_u64_shr(rate, ns, RATE_SHIFT);
}

/* Returns the largest integer with a square of at most @x. */
static inline u64 square_root(u64 x)
{
	u64 root = 0, bit;

	for (bit = 1ULL << 31; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= x)
			root |= bit;
	return root;
}

#endif /* MQFAIR_RATE_H */
