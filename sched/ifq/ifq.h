/* SPDX-License-Identifier: GPL-2.0 */
/* The state of ifq.c, for its tests. */
#ifndef MQFAIR_IFQ_H
#define MQFAIR_IFQ_H

#include "ifq_weight.h"
#include "mqfq/mqfq.h"

/* What a flow that has nothing waiting starts at: see ifq.c. */
enum ifq_virtual_time {
	IFQ_MIN,
	IFQ_MAX,
	IFQ_4TAG,
};

/* Requests in the device that were dispatched between two turns. */
struct dispatch_batch {
	u64 nr;			/* F */
	vtime_t start;		/* F: greatest start tag when it began */
};

/*
 * Start tags in the device, where virtual_time asks for them.  F: its lock,
 * irq-safe, a leaf.  Of the two turns one is being dispatched and the other
 * waited for; when that one is all back, they change places.
 */
struct device_tags {
	struct port_lock lock;
	struct dispatch_batch batch[2];	/* F */
	u32 filling;		/* F: index of the one that is dispatched */
	atomic64_t least;	/* F: no start tag in the device is below, nearly */
	atomic64_t most;	/* F: greatest start tag dispatched */
};

struct ifq {
	struct mqfq mqfq;	/* sched.engine */
	struct ifq_weight ifq_weight;
	struct device_tags tags;
};

#endif /* MQFAIR_IFQ_H */
