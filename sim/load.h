/* SPDX-License-Identifier: GPL-2.0 */
/*
 * load - the requests of one tenant
 *
 * A load submits requests for one flow of a simulated host, in one of two ways:
 *
 *   - Closed loop: `depth` requests, each submitted again think_ns after it is
 *     done.  Request i goes to queue first_queue + i % nr_queues.  With move_ns
 *     the task has one CPU at a time instead, and goes to the next of these
 *     queues every move_ns.
 *   - Open loop (arrival_ns != 0): requests arrive at random, arrival_ns apart
 *     on average, at a random queue.  At most `depth` of them are outstanding;
 *     a request that would exceed this is not made.
 *
 * A closed loop may have one of three further rules:
 *
 *   - A *pace* (pace_ns != 0): request n is due n * pace_ns after the start, or
 *     at random times that are pace_ns apart on average.  A request that is due
 *     while all others are outstanding is submitted when one of them is done.
 *   - *Bursts* (burst_ios or burst_ns != 0): after burst_ios requests, or when
 *     burst_ns have passed since the last pause, the load submits no more until
 *     all its requests are done.  It pauses for think_ns then.
 *
 * A *replay* (trace != NULL) is a pace with the requests of a file
 * (replay.h): each has its time, operation, place and size there.  At the end of
 * the file the load submits no more.  A fault in the file ends the run.
 *
 * On a drive of flash/ each request goes to a place in the range of pages from
 * first_page on.  Places are taken at random or in order; reads and writes have
 * each an order for themselves.  A random place is a multiple of the request's
 * size, or of the least size if there are `sizes`.  On a device of fixed service
 * time places do not matter.
 *
 * A request of more than most_bytes is submitted in parts of at most this size,
 * as the block layer splits it.  It counts as one request in the statistics, and
 * is done when its last part is.
 *
 * A closed loop is one task.  While a request of it waits for a scheduler tag
 * (tags.h), it submits no other.  A request of an open loop waits by itself.
 *
 * With `reaped` the task takes each completion before it submits the request
 * again, and the latency ends there.  So a request that is done while the task
 * sleeps for a tag counts on.  fio measures so: it waits for a tag inside the
 * call of the kernel that submits.  A load with a pace or pauses has latencies
 * that end with the request, because its task waits for completions meanwhile.
 *
 * If off_ns is not 0 the load pauses for off_ns after every on_ns.
 *
 * Example.  A load has depth 32, bytes 4096 and think_ns 0, and its flow is
 * alone on a device that serves 24 390 requests a second.  Each request takes
 * 32 / 24 390 s = 1.3 ms.
 *
 * Times are nanoseconds of the timeline of the host.  All chance comes from the
 * host's rng, so the same seed gives the same requests.
 */
#ifndef MQFAIR_SIM_LOAD_H
#define MQFAIR_SIM_LOAD_H

#include "host.h"

enum {
	LOAD_SIZES_MAX	= 32,
};

/* A size of requests, and how often it is chosen relative to the other sizes. */
struct load_size {
	u32 bytes, weight;
};

struct load_params {
	struct host_flow *flow;
	struct host_flow *task;		/* a kernel thread of that flow submits */
	u32 first_queue;
	u32 nr_queues;			/* 0: one */
	u32 depth;
	u32 bytes, bytes_max;		/* bytes_max != 0: random sizes between */
	const struct load_size *sizes;	/* instead of bytes; load_create() reads .. */
	u32 nr_sizes;			/* .. them, and load_destroy() ends the use */
	u32 most_bytes;			/* larger requests are split; 0: none */
	u32 write_permille;
	bool discards;			/* of a range of `bytes`; the pages are the map's */
	u32 first_page, pages;		/* of the drive; pages 0: all of it */
	bool in_order;			/* places in order, not at random */
	u32 urgent_permille;
	u32 polled_permille;
	u64 reap_ns;			/* a polled request ends so late */
	u32 merge_bytes;		/* merged into each request that waits */
	u64 arrival_ns;			/* 0: closed loop */
	u64 move_ns;			/* 0: requests go to all queues */
	u64 think_ns;
	bool think_random;		/* exponential with mean think_ns */
	bool reaped;			/* see above */
	u64 pace_ns;			/* 0: as fast as requests are done */
	bool pace_random;		/* exponential with mean pace_ns */
	u64 burst_ios, burst_ns;	/* 0 and 0: no bursts */
	const char *trace;		/* a file; its sizes are up to bytes; or NULL */
	u64 start_ns, stop_ns;		/* stop_ns 0: never */
	u64 on_ns, off_ns;		/* counted from start_ns */
};

struct load;

/*
 * Returns a load of @h that begins at start_ns, or NULL if memory is short.
 * The caller frees it by load_destroy().
 */
struct load *load_create(struct host *h, const struct load_params *params);

/* Frees @l.  Its host is gone, because the host may have its requests. */
void load_destroy(struct load *l);

/* The load submits nothing from now on. */
void load_stop(struct load *l);

#endif /* MQFAIR_SIM_LOAD_H */
