/* SPDX-License-Identifier: GPL-2.0 */
/*
 * budget_fixture - four flows and three queues under the budget of a test
 *
 * The functions call one hook each and note the wakes and the tick that it
 * asks for.  A test acts on them itself.
 */
#ifndef MQFAIR_UNIT_BUDGET_FIXTURE_H
#define MQFAIR_UNIT_BUDGET_FIXTURE_H

#include "unit.h"
#include "sched/budget/budget.h"

enum {
	QUEUES	= 3,
	FLOWS	= 4,
	IOS	= 64,
	MS	= 1000 * 1000,
	PERIOD	= 40 * MS,	/* no flow is idle for FLOW_GRACE_NS */
};

struct scenario {
	struct sched sched;
	struct queue queue[QUEUES];
	struct queue *index[QUEUES];
	struct flow *root, *flow[FLOWS];
	struct io io[IOS];
	bool busy[IOS];
	u64 now, tick_ns;		/* 0: no tick was requested */
	u64 woken;			/* queues, since the test looked last */
};

extern struct scenario scenario;

/* One domain; and two of them, writes apart from the rest. */
extern const struct budget_ops one_domain, two_domains;

void scenario_init(const struct budget_ops *ops, enum budget_rule rule,
		   u64 total, u32 depth);

/* No request waits and none is in the device. */
void scenario_deinit(void);

static inline struct budget *budget(const struct scenario *s)
{
	return s->sched.own;
}

/* The total of the rounds that begin from now on. */
void set_total(u64 total);

/* A refill calls @on_predict from now on. */
void set_on_predict(void (*on_predict)(void));

/* Calls of predict. */
u32 predictions(void);

bool tick_is_requested(const struct scenario *s);
void tick(struct scenario *s);

/* NULL if all requests of the test are in use. */
struct io *insert(struct scenario *s, u32 queue, u32 flow, u32 bytes,
		  enum io_op op, u8 flags);
/* The request, for DISPATCH_IO; else NULL. */
struct io *dispatch(struct scenario *s, u32 queue,
		    enum dispatch_result expected);
void complete(struct scenario *s, struct io *io);
void reshare(struct scenario *s);
void destroy_flow(struct scenario *s, u32 flow);

/* All that waits goes and completes, without credit. */
void drain(struct scenario *s);
/* All that is in the device completes. */
void complete_all(struct scenario *s);

s64 left(const struct scenario *s, u32 flow);

/* The part of @total that is due to @flow. */
u64 part_of(const struct scenario *s, u32 flow, u64 total);

/* Spends all credit of @flow in requests of 4 KiB; returns their number. */
u32 spend_all(struct scenario *s, u32 flow);

/* I1. */
void check_conservation(const struct scenario *s);

#endif /* MQFAIR_UNIT_BUDGET_FIXTURE_H */
