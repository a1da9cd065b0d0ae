/* SPDX-License-Identifier: GPL-2.0 */
/* The state of hwabc.c, for its tests. */
#ifndef MQFAIR_HWABC_H
#define MQFAIR_HWABC_H

#include "budget/round.h"
#include "gc_shadow.h"

enum hwabc_gc_share {
	GC_SHARE_FLOW,			/* valid / invalid of the flow's pages */
	GC_SHARE_VICTIM,		/* the same, in victim blocks alone */
};

enum {
	HWABC_FACTOR_SHIFT	= 16,
	/* The greatest valid / invalid that counts. */
	HWABC_RATIO_MOST	= 16,
};

/* sched_params.own */
struct hwabc_params {
	struct budget_params budget;
	u32 budget_ms;			/* device time of a round's total */
	u32 alpha_pct;
	u32 gc_share;			/* enum hwabc_gc_share */
	u32 spare_pct;			/* see gc_shadow.h */
};

static inline struct hwabc_params *hwabc_params(const struct sched_params *p)
{
	return (struct hwabc_params *)p->own;
}

/* L as in budget.h; T: tick alone. */
struct hwabc_flow {
	struct budget_flow budget;
	u32 factor;			/* O by T: of a write's cost */
	u32 ratio;			/* O by T: valid / invalid, the same shift */
	u32 writes_part;		/* O by T: write / total, the same shift */
	struct gc_shadow_flow gc_shadow;
	/* T: the counts when the factor was set last, .. */
	u64 requests, writes, written, copied;
	/* T: .. and decaying sums of them, x 2^8 */
	u64 recent_requests, recent_writes, recent_written, recent_copied;
};

/* A flow in one queue, behind its struct budget_flow_queue; O. */
struct hwabc_flow_queue {
	u64 requests, writes;
	u64 written;			/* pages of 4 KiB */
};

struct hwabc_queue {
	struct budget_queue budget;
	u64 work;			/* O: cost without factors */
} __port_cacheline;

struct hwabc {
	struct budget budget;
	struct gc_shadow gc_shadow;
	bool hidden;			/* O by T: the drive's map is not known */
	u64 drain_ns, judge_ns;		/* T: times of the next ones */
	u64 rate_ns, rate_work;		/* L: start of the sample; work then */
	u64 rate;			/* L: work per 2^20 ns, the recent best */
};

/* Factor of the cost of a write, 2^-HWABC_FACTOR_SHIFT. */
u32 hwabc_factor(u32 alpha_pct, u32 ratio, u32 writes_part);

/* valid / invalid, capped, 2^-HWABC_FACTOR_SHIFT. */
u32 hwabc_ratio(u64 valid, u64 invalid);

#endif /* MQFAIR_HWABC_H */
