/* SPDX-License-Identifier: GPL-2.0 */
/*
 * logarithm - powers of two and their inverse, in fixed point
 *
 * Where weights multiply, their logarithms add: an average of logarithms is a
 * power law.  Both functions work bit by bit on integers, because the kernel
 * has no floating point.  They take a few dozen instructions and are for slow
 * work.
 *
 * Tested by tests/unit/logarithm.c against the C library.
 */
#ifndef MQFAIR_LOGARITHM_H
#define MQFAIR_LOGARITHM_H

#include "port.h"

enum {
	LOG_SHIFT	= 16,		/* fraction bits of a logarithm */
	LOG_ONE		= 1 << LOG_SHIFT,
	LOG_MOST	= 32 * LOG_ONE,	/* of exp2_fixed() */
};

/* log2(@x) * LOG_ONE for @x > 0.  The result is too small by less than 2. */
u32 log2_fixed(u64 x);

/*
 * 2^(@log / LOG_ONE) * LOG_ONE for @log up to LOG_MOST.  The result is too
 * small by less than one part in 2^27 and one unit.
 */
u64 exp2_fixed(u32 log);

#endif /* MQFAIR_LOGARITHM_H */
