/* SPDX-License-Identifier: GPL-2.0 */
/* The state of ifq.c, for its tests. */
#ifndef MQFAIR_IFQ_H
#define MQFAIR_IFQ_H

#include "ifq_weight.h"

/* The least start tag of a flow that has nothing waiting: see ifq.c. */
enum ifq_virtual_time {
	IFQ_MIN,
	IFQ_MAX,
	IFQ_4TAG,
};

/* Requests that were dispatched between two swaps of batches. */
struct dispatch_batch {
	u64 nr;			/* F: those still in the device */
	vtime_t start;		/* F: greatest start tag when it began */
};

/*
 * Start tags in the device, where virtual_time asks for them.  F: protected by
 * `lock`, which is irq-safe and a leaf.
 *
 * New requests enter the filling batch.  The draining batch only loses
 * requests.  When it is empty, the two swap their parts.
 */
struct device_tags {
	struct port_lock lock;
	struct dispatch_batch batch[2];	/* F */
	u32 filling;		/* F: index of the filling batch */
	atomic64_t least;	/* F: about the least start tag in the device */
	atomic64_t most;	/* F: greatest start tag dispatched */
};

struct ifq {
	struct mqfq mqfq;	/* first: sched.own is a struct mqfq, too */
	struct ifq_weight ifq_weight;
	struct device_tags tags;
};

#endif /* MQFAIR_IFQ_H */
