/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fixture - a simulated host with flows, loads and the invariants under watch
 *
 * A *test case* is one test of one scheduler; it does not end the program when
 * something is wrong but says what, because the fairness tests are also run
 * against a scheduler that must fail them.
 */
#ifndef MQFAIR_TESTS_SIM_FIXTURE_H
#define MQFAIR_TESTS_SIM_FIXTURE_H

#include <stdio.h>

#include "host.h"
#include "load.h"

#define US	1000ULL
#define MS	(1000 * US)
#define SEC	(1000 * MS)
#define KIB	1024U
#define MIB	(1024 * KIB)

struct test_case {
	const struct sched_ops *ops;
	u32 most_seeds;			/* of a test with several */
	char failure[256];		/* empty: none */
	bool host_failed;		/* it is a message of the host */
	char note[256];			/* a figure worth showing */
};

struct test {
	const char *name;
	void (*run)(struct test_case *t);
	bool fairness;			/* must fail under FIFO */
};

/* Of every scheduler. */
extern const struct test life_tests[], audit_tests[], generic_tests[];
extern const struct test isolation_tests[], urgent_tests[], tag_tests[];
extern const struct test adversary_tests[];
extern const struct test tick_tests[];
extern const struct test tunable_tests[];
extern const struct test crowd_tests[];

/* Of one scheduler. */
extern const struct test bound_tests[], share_tests[];
extern const struct test isolation_long_tests[];
extern const struct test isolation_mqfq_tests[];
extern const struct test ifq_tests[];
extern const struct test own_clock_tests[];
extern const struct test cost_estimator_tests[];
extern const struct test flash_tests[];
extern const struct test wdt_tests[];
extern const struct test hwabc_tests[];
extern const struct test kyber_tests[];
extern const struct test drr_tests[];
extern const struct test goal_tests[];

/* Keeps the first message only. */
__attribute__((format(printf, 2, 3)))
void case_fail(struct test_case *t, const char *fmt, ...);
__attribute__((format(printf, 2, 3)))
void case_note(struct test_case *t, const char *fmt, ...);

static inline bool case_failed(const struct test_case *t)
{
	return t->failure[0] != '\0';
}

enum {
	RIG_FLOWS	= 16,
	RIG_LOADS	= 2048,	/* a thousand tasks of two flows */
};

/*
 * Differences of weighted service of flows f and m over all intervals in
 * which both are backlogged: the range, within such an interval, of
 * X = Wf / rf - Wm / rm.
 */
struct pair {
	bool open;			/* both backlogged */
	s64 least, most;		/* of X since it was opened */
	s64 range;			/* greatest so far */
};

/*
 * X is counted twice: at dispatch and at completion.  Indexed by flow id, pairs
 * by the lesser first.
 */
struct bound {
	bool on;
	u64 tightest;			/* greatest range / limit seen, permille */
	u64 inv[RIG_FLOWS];		/* 1 / r */
	u64 dispatched[RIG_FLOWS];	/* W, cost */
	u64 completed[RIG_FLOWS];
	u32 largest[RIG_FLOWS];		/* l: cost */
	struct pair at_dispatch[RIG_FLOWS][RIG_FLOWS];
	struct pair at_completion[RIG_FLOWS][RIG_FLOWS];
};

struct fixture {
	struct test_case *test_case;
	struct host *host;
	struct host_flow *root;
	struct load *load[RIG_LOADS];
	u32 nr_loads;
	u64 vt;				/* as last seen */
	bool watch_urgent;		/* urgent ios must not wait */
	struct bound bound;
	/* ios by life's events, and a digest of their order */
	u64 inserted, dispatched, completed;
	u64 digest;
};

/*
 * A model of the Samsung 980 PRO with @mib MiB, and with so many owners of pages.
 * Each page was written once, in random order.  The caller destroys the drive.
 */
struct flash *fixture_full_drive(enum flash_ftl ftl, u32 mib, u32 owners);

/*
 * D = 16 on a drive of 16 slots, 100 us for each request of any size, T =
 * 64 KiB, one queue.
 */
struct host_params fixture_params(const struct test_case *t, u64 seed);

/* The tunables as a host has them that sets none: automatic where they can be. */
void fixture_defaults(const struct sched_ops *ops, struct sched_params *p);

/* @r is left usable after a failure too: nothing moves in it any more. */
void fixture_open(struct fixture *r, struct test_case *t, const struct host_params *params);
struct host_flow *fixture_flow(struct fixture *r, struct host_flow *parent, u32 weight);
struct load *fixture_load(struct fixture *r, const struct load_params *params);

/* A load of @flow_; @... has the other members of struct load_params that are not 0. */
#define fixture_add(r, flow_, ...) \
	fixture_load(r, &(struct load_params){ .flow = (flow_), __VA_ARGS__ })

/* A closed loop of @depth on all queues. */
struct load *fixture_closed(struct fixture *r, struct host_flow *flow, u32 depth,
			u32 bytes);

/* Frees a load of which nothing is outstanding. */
void fixture_drop_load(struct fixture *r, struct load *l);

void fixture_run(struct fixture *r, u64 ns);

/*
 * From now on no share changes: watches the bounds.  All flows are children of
 * the root and active.
 */
void bound_start(struct fixture *r);

/*
 * Hedayati et al., section 2, theorems 1 and 2.  With service counted when it
 * is dispatched the theorem for D = 1 holds for every D.
 */
void bound_check(struct fixture *r);

/* Finishes, checks that nothing was lost, and frees. */
void fixture_close(struct fixture *r);

/*
 * Part of flow @i's in what @n flows completed since @before (their bytes
 * then), in millionths.
 */
u64 fixture_part(struct host_flow *const *flow, const u64 *before, u32 n, u32 i);
void fixture_bytes(struct host_flow *const *flow, u64 *bytes, u32 n);

/* Checks each flow's part over the next @ns against @parts[] / their sum. */
void fixture_expect_parts(struct fixture *r, struct host_flow *const *flow,
		      const u32 *parts, u32 n, u64 ns, u32 permille,
		      const char *what);

#endif /* MQFAIR_TESTS_SIM_FIXTURE_H */
