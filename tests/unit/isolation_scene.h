/* SPDX-License-Identifier: GPL-2.0 */
/*
 * isolation_scene - a reader and its neighbours, by counters that the test sets
 *
 * A reader has weight 1000 and keeps one request of 4 KiB.  The others have
 * weight 100 and keep 50 of 64 KiB.  The drive does 100 requests of theirs in a
 * look of 2 ms.  The scheduler is drr.
 */
#ifndef MQFAIR_UNIT_ISOLATION_SCENE_H
#define MQFAIR_UNIT_ISOLATION_SCENE_H

#include "hooks.h"
#include "sched/core/engine.h"

enum {
	LOOK_NS		= LOOK_LEAST_NS,
	DEPTH		= 64,
	KNOWN		= 6,		/* looks until the capacity is known */
	TRIAL		= 32,		/* paced looks that judge the benefit */
	FIRST_PROBE	= 96,		/* paced looks before the first probe */
	PROBE		= 6,		/* looks of a probe */
	FIRST_LIMIT	= 51,		/* the requests inside */
};

/* The work of a flow in each look. */
struct act {
	u32 done, bytes;
	u64 service_ns, wait_ns;	/* of each request */
	u32 inside;			/* requests in the drive all the time */
	u32 waiting;			/* requests outside all the time */
};

struct scene {
	struct hooks h;
	struct flow *reader, *others;
	struct act reads, other;
	struct wake wake;
};

extern const struct act slow_reads, fast_reads, deep, nothing;

struct isolation *iso(struct scene *x);
struct slots *slots(struct scene *x);
struct isolation_flow *reader(struct scene *x);

/* Makes @f active. */
void first_io(struct scene *x, struct flow *f);
/* The requests of @f so far are not of a look. */
void see(struct flow *f);
void tick(struct scene *x);

/* Both flows are active, and the first look has begun. */
void scene_open(struct scene *x, u32 percent);
void scene_close(struct scene *x);
/* The same; the drive has just been paced. */
void open_and_pace(struct scene *x, u32 percent);
/* The same; the reader has its share, so D up to @most may be tried. */
void depth_scene(struct scene *x, u32 most);

/* @ns pass; the flow does its work in queue 1. */
void do_work(struct flow *f, const struct act *a, u64 ns);
/* Passes the time of a look, and has the look taken. */
void look_behind(struct scene *x);
/* The same; requests have kept up with the pace, so the next may go now. */
void look(struct scene *x);
void looks(struct scene *x, u32 n);
/* The same; a queue has found no slot. */
void waiting_look(struct scene *x);

/* Sends @n requests of the others, and completes them while paced. */
void hold_slots(struct scene *x, u32 n);

void assert_open(struct scene *x);
/* The work of @bytes in a look, as a rate. */
u64 rate_of_bytes(u64 bytes);
void assert_near(u64 got, u64 want, u64 permille);

#endif /* MQFAIR_UNIT_ISOLATION_SCENE_H */
