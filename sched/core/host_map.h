/* SPDX-License-Identifier: GPL-2.0 */
/*
 * host_map - facts about a drive with a host-managed FTL
 *
 * An open-channel drive or the virtual SSD keeps its map of pages on the host.
 * Such a host knows which cgroup each flash page belongs to and how long each
 * plane worked.  A scheduler may ask for both; on other drives it estimates.
 *
 * Both callbacks are NULL where no such map exists.  They return false while
 * the facts are not at hand.  Only tick calls them; it calls flow_pages with
 * sched.active_lock held.
 */
#ifndef MQFAIR_HOST_MAP_H
#define MQFAIR_HOST_MAP_H

#include "port.h"

struct flow;
struct sched;

/* This counts the flash pages of one flow. */
struct flow_pages {
	u64 valid;		/* hold data of the flow */
	u64 invalid;		/* hold outdated data, not collected yet */
	u64 copied;		/* valid pages that garbage collection copied */
};

/* Busy times so far are summed over the planes, in ns. */
struct flash_time {
	u64 read_ns;		/* for reads */
	u64 write_ns;		/* for writes and the collection they cause */
	u64 busy_ns;		/* for either: buffered writes end before it */
	u32 planes;		/* number of planes */
};

struct host_map {
	bool (*flow_pages)(const struct sched *s, struct flow *f,
			   struct flow_pages *pages);
	bool (*flash_time)(const struct sched *s, struct flash_time *time);
};

#endif /* MQFAIR_HOST_MAP_H */
