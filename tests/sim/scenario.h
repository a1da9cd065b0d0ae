/* SPDX-License-Identifier: GPL-2.0 */
/*
 * scenario - tenants on a fixture, and the bytes that each of them got
 *
 * For the schedulers that promise shares of what the drive does without them:
 * "none" is FIFO with more slots than all flows ask for.
 */
#ifndef MQFAIR_TESTS_SIM_SCENE_H
#define MQFAIR_TESTS_SIM_SCENE_H

#include "fixture.h"

enum {
	SCENE_TENANTS	= 64,
};

/* What one flow asks for; as in struct load_params. */
struct tenant {
	u32 weight, depth, bytes, write_permille;
	u32 pages;			/* of a drive of flash/ */
	u64 think_ns, start_ns, stop_ns, on_ns, off_ns;
};

struct scenario {
	struct fixture r;
	const struct tenant *tenant;
	struct host_flow *flow[SCENE_TENANTS];
	u64 before[SCENE_TENANTS];
	u32 n;
};

struct outcome {
	u64 bytes[SCENE_TENANTS];
	u64 p50_ns[SCENE_TENANTS], p99_ns[SCENE_TENANTS];
	u64 total;
	double index;			/* Jain's, of bytes / weight */
};

/* Appends to the note of the test case. */
__attribute__((format(printf, 2, 3)))
void note(struct test_case *t, const char *fmt, ...);

/* Each tenant is a child of the root. */
void scenario_open(struct scenario *s, struct test_case *t, const struct host_params *p,
		const struct tenant *tenant, u32 n);
void scenario_close(struct scenario *s);

/* What each got from scenario_begin() on. */
void scenario_begin(struct scenario *s);
void scenario_end(const struct scenario *s, struct outcome *o);

/* The outcome of @ns after @warm_ns. */
void scenario_play(struct test_case *t, const struct host_params *p,
		const struct tenant *tenant, u32 n, u64 warm_ns, u64 ns,
		struct outcome *o);

/* The same under none: the total. */
u64 scenario_none(const struct host_params *p, const struct tenant *tenant, u32 n,
	       u64 warm_ns, u64 ns);

/*
 * One tenant of depth 1 beside three of depth 64, on drives that take long for
 * a request and behind a driver with as many tags as they serve at once: no
 * total is less than @permille of none's.  Queues, tags and the drive of @p are
 * replaced.
 */
void scenario_light(struct test_case *t, const struct host_params *p, u32 permille);

/* Weights 100, 250, 500 and 1000, otherwise alike. */
void scenario_four(struct tenant *tenant, u32 depth, u32 bytes,
		u32 write_permille);

/*
 * A drive of 16 slots and 100 us for a request, so 160,000 requests a second,
 * behind four queues.  The parameters are the defaults of @ops; the host runs
 * the scheduler of @t, which may be FIFO.
 */
struct host_params scenario_params(const struct test_case *t,
				   const struct sched_ops *ops);

/* The total is at least @permille of the total without a scheduler, @none. */
void scenario_expect_total(struct test_case *t, u64 total, u64 none,
			   u32 permille, const char *what);

/* Jain's index is at least @least. */
void scenario_expect_index(struct test_case *t, const struct outcome *o,
			   double least, const char *what);

/* Notes the index, and the total in thousandths of @none. */
void scenario_note_outcome(struct test_case *t, const struct outcome *o,
			   u64 none, const char *what);

/* What four tenants of scenario_four() are expected to get. */
struct fair_case {
	u32 depth, bytes, write_permille;
	u64 warm_ns, ns;
	double index;		/* Jain's, at least */
	u32 permille;		/* of the total without a scheduler, at least */
};

void scenario_fair(struct test_case *t, const struct host_params *p,
		   const struct fair_case *c, const char *what,
		   struct outcome *o);

/*
 * scenario_fair() for random and sequential, reads and writes; and for half of
 * each, if @mixed.  Sequential requests have @large bytes.  @c has the rest.
 */
void scenario_kinds(struct test_case *t, const struct host_params *p,
		    const struct fair_case *c, u32 large, bool mixed);

/* A P4500 of 1 GiB that collects, 85 % full: its first @pages. */
struct flash *scenario_drive(enum flash_ftl ftl, u32 *pages);

/*
 * Returns the time in us that the scheduler has learned for 4 KiB of the operation @op,
 * IO_READ or IO_WRITE.  It has cost=learned.
 */
double scenario_learned_us(const struct host *h, u32 op);

#endif /* MQFAIR_TESTS_SIM_SCENE_H */
