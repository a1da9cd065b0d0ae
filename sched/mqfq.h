/* SPDX-License-Identifier: GPL-2.0 */
/* The state of mqfq.c, for its debugfs files and its tests. */
#ifndef MQFAIR_MQFQ_H
#define MQFAIR_MQFQ_H

#include "sched.h"
#include "mt/mindicator.h"
#include "mt/token_tree.h"
#include "mt/wheel.h"

struct mqfq {
	struct sched *sched;		/* I */
	u32 words;			/* I: of ready[] and held[] in use */
	struct mindicator leads;
	struct token_tree slots;
	struct wheel wheel;		/* throttled queues, T > 0 */
	atomic64_t vt __port_cacheline;	/* virtual time; only grows */
	atomic64_t ready[QUEUE_WORDS] __port_cacheline;
	atomic64_t held[QUEUE_WORDS] __port_cacheline; /* throttled, T = 0 */
	/* tick: see watch() */
	u64 sweep_ns;			/* tick: when to look at the flows */
	struct suspect {
		u64 dispatched;		/* when it was first seen */
		u32 sweeps;		/* since when nothing has changed */
	} suspect[];			/* tick: see watch() */
};

#endif /* MQFAIR_MQFQ_H */
