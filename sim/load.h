/* SPDX-License-Identifier: GPL-2.0 */
/*
 * load - what a tenant asks for
 *
 * Closed loop: `depth` requests, each submitted again think_ns after it is
 * done; request i belongs to queue first_queue + i % nr_queues.  Open loop:
 * arrivals at random, arrival_ns apart on average, on a random queue, `depth`
 * of them outstanding at most: one that finds no room is not made.
 *
 * On a drive of flash/ each request is at a place of its size in the range of
 * pages from first_page on, at random or one after the other.
 *
 * Both pause for off_ns after every on_ns, if off_ns is not 0.
 */
#ifndef MQFAIR_SIM_LOAD_H
#define MQFAIR_SIM_LOAD_H

#include "host.h"

struct load_params {
	struct host_flow *flow;
	u32 first_queue;
	u32 nr_queues;			/* 0: one */
	u32 depth;
	u32 bytes, bytes_max;		/* bytes_max != 0: sizes at random */
	u32 write_permille;
	u32 first_page, pages;		/* pages 0: the whole drive */
	bool in_order;			/* one after the other */
	u32 urgent_permille;
	u32 exempt_permille;
	u32 merge_bytes;		/* joins each request that has to wait */
	u64 arrival_ns;			/* 0: closed loop */
	u64 think_ns;
	bool think_random;		/* exponential, with that mean */
	u64 start_ns, stop_ns;		/* stop_ns 0: never */
	u64 on_ns, off_ns;		/* from start_ns */
};

struct load;

/* NULL when there is no memory.  Belongs to the caller: see load_destroy(). */
struct load *load_create(struct host *h, const struct load_params *params);

/* After the host: its requests may be outstanding until then. */
void load_destroy(struct load *l);

/* From now on requests of this size. */
void load_set_bytes(struct load *l, u32 bytes);

/* No submission from now on. */
void load_stop(struct load *l);

#endif /* MQFAIR_SIM_LOAD_H */
