/* SPDX-License-Identifier: GPL-2.0 */
/* The state of wdt.c, for its tests. */
#ifndef MQFAIR_WDT_H
#define MQFAIR_WDT_H

#include "budget/round.h"
#include "demand.h"

enum wdt_total {
	WDT_SUM,		/* of all demands */
	WDT_MEET,		/* the least that meets each demand */
};

/* sched_params.own */
struct wdt_params {
	struct budget_params budget;
	u32 history;			/* intervals */
	u32 total;			/* enum wdt_total */
	u32 caps_mbps;			/* 0: none */
	u32 single_lock;
};

static inline struct wdt_params *wdt_params(const struct sched_params *p)
{
	return (struct wdt_params *)p->own;
}

/* T as in budget.h; W: wdt.lock. */
struct wdt_flow {
	struct budget_flow budget;
	struct port_lock lock;		/* the container's own */
	struct demand demand;		/* T: bytes in an interval */
	u64 used;			/* T: since the last sample */
	u64 asks;			/* T: demand in bytes, or the total that meets it */
	struct wdt_flow *next, **link;	/* W: in wdt.flows */
	struct flow *flow;		/* I */
};

struct wdt {
	struct budget budget;
	u64 service;			/* T: of the device in an interval */
	u64 used, ran_ns;		/* T: since the last sample */
	struct port_lock single;	/* instead of the containers' locks */
	struct port_lock lock;		/* for the list; credit_set_lock() */
	struct wdt_flow *flows;		/* W: all flows, active or not */
};

#endif /* MQFAIR_WDT_H */
