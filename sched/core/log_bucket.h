/* SPDX-License-Identifier: GPL-2.0 */
/*
 * log_bucket - numbers of the buckets of a log-linear histogram
 *
 * Each octave has 2^@shift buckets of equal width.  The first 2^@shift values
 * have a bucket each.  A value is at most 1 / 2^@shift above the start of its
 * bucket.  With @shift 2 the buckets begin at:
 *
 *	0 1 2 3 4 5 6 7 8 10 12 14 16 20 24 28 32 40 ...
 */
#ifndef MQFAIR_LOG_BUCKET_H
#define MQFAIR_LOG_BUCKET_H

#include "port.h"

/* Returns the bucket of @value. */
static inline u32 log_bucket(u64 value, u32 shift)
{
	u32 octave;

	if (value >> shift == 0)
		return (u32)value;
	octave = port_fls64(value) - 1 - shift;
	return ((octave + 1) << shift) +
	       (u32)((value >> octave) & (BIT_ULL(shift) - 1));
}

/* Returns the least value of @bucket. */
static inline u64 log_bucket_start(u32 bucket, u32 shift)
{
	u32 octave = bucket >> shift;
	u64 step = bucket & (BIT_ULL(shift) - 1);

	return octave ? (BIT_ULL(shift) + step) << (octave - 1) : step;
}

#endif /* MQFAIR_LOG_BUCKET_H */
