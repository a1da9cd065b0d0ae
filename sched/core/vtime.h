/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vtime - virtual time, the one unit every tag is in
 *
 * Virtual time counts bytes of total service.  The shares of the active flows
 * sum to one.  A request of cost c advances the tag of a flow with share s by
 * c / s.  So the tag of a flow that gets exactly its share advances as fast as
 * the service of the whole device, whatever its weight.
 *
 * The counter wraps at 2^64 (58 years at 10 GB/s).  So tags are compared only
 * by their signed difference, in vtime_before().  Tags are even.  VTIME_NONE,
 * "no tag" (plus infinity), is odd: arithmetic never yields it, wherever the
 * counter has wrapped to.
 *
 * A share is a fraction of 2^SHARE_SHIFT and never below SHARE_MIN = 2^-20 [R].
 * So its inverse fits in 40 bits, and the fixed point stays exact to a
 * millionth of the charge.
 *
 * Tested by tests/unit/vtime.c.
 */
#ifndef MQFAIR_VTIME_H
#define MQFAIR_VTIME_H

#include "port.h"

typedef u64 vtime_t;

#define VTIME_NONE	(~(vtime_t)0)

enum {
	SHARE_SHIFT	= 32,			/* a share of 1.0 is 1 << 32 */
	SHARE_MIN_SHIFT	= 20,			/* the least share is 2^-20 */
	INV_SHIFT	= 20,			/* fraction bits of 1 / share */
};

#define SHARE_ONE	(1ULL << SHARE_SHIFT)
#define SHARE_MIN	(SHARE_ONE >> SHARE_MIN_SHIFT)

/* Neither argument may be VTIME_NONE. */
static inline bool vtime_before(vtime_t a, vtime_t b)
{
	return (s64)(a - b) < 0;
}

static inline vtime_t vtime_max(vtime_t a, vtime_t b)
{
	return vtime_before(a, b) ? b : a;
}

/* Returns the lesser of two published head tags.  Either may be VTIME_NONE. */
static inline vtime_t vtime_min_tag(vtime_t a, vtime_t b)
{
	if (a == VTIME_NONE)
		return b;
	if (b == VTIME_NONE)
		return a;
	return vtime_before(b, a) ? b : a;
}

/* Returns 1 / @share in units of 2^-INV_SHIFT; @share is in 2^-SHARE_SHIFT. */
static inline u64 share_inverse(u64 share)
{
	share = clamp(share, (u64)SHARE_MIN, (u64)SHARE_ONE);
	return div64_u64(1ULL << (SHARE_SHIFT + INV_SHIFT), share);
}

/*
 * Returns the tag of @pos on the line through (@base_pos, @base) with slope
 * @inv.  The charges of a flow take its position from @base_pos to @pos, and
 * its tag from @base to the result.  @pos may lie on either side of @base_pos.
 */
static inline vtime_t vtime_at(vtime_t base, u64 base_pos, u64 inv, u64 pos)
{
	s64 ahead = (s64)(pos - base_pos);

	if (ahead >= 0)
		base += mul_u64_u64_shr((u64)ahead, inv, INV_SHIFT);
	else
		base -= mul_u64_u64_shr((u64)-ahead, inv, INV_SHIFT);
	return base & ~(vtime_t)1;
}

#endif /* MQFAIR_VTIME_H */
