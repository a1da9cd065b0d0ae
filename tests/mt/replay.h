/* SPDX-License-Identifier: GPL-2.0 */
/*
 * replay - every interleaving of up to three operations, one inside another
 *
 * The second operation runs as a whole before each shared access of the first
 * one in turn.  The third interrupts the second in the same way.  This plays a
 * thread that stops at the worst place while other threads go on.  It needs no
 * threads, so a failure can be repeated.
 */
#ifndef MQFAIR_REPLAY_H
#define MQFAIR_REPLAY_H

#include "port.h"

struct replay {
	void (*reset)(void *arg);
	void (*run)(void *arg, u32 i);	/* operation i, below .. */
	u32 nr;				/* 2 or 3 */
	void (*check)(void *arg);
	void *arg;
};

/* Returns the number of interleavings. */
u64 replay_all(const struct replay *r);

#endif /* MQFAIR_REPLAY_H */
