/* SPDX-License-Identifier: GPL-2.0 */
/*
 * replay - every interleaving of up to three operations, one inside another
 *
 * The first is interrupted before each of its shared accesses in turn by the
 * whole of the second, and that in the same way by the whole of the third: a
 * thread that stands still at the worst place while others go on.  No threads
 * are used, so what fails fails again.
 */
#ifndef MQFAIR_REPLAY_H
#define MQFAIR_REPLAY_H

#include "port.h"

struct replay {
	void (*reset)(void *arg);
	void (*op[3])(void *arg);	/* the third may be NULL */
	void (*check)(void *arg);
	void *arg;
};

/* Returns the number of interleavings. */
u64 replay_all(const struct replay *r);

#endif /* MQFAIR_REPLAY_H */
