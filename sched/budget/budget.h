/* SPDX-License-Identifier: GPL-2.0 */
/*
 * budget - what kyber-fair, wdt and hwabc repeat exactly
 *
 * The idea of all three: give each flow a budget in proportion to its share,
 * let every processor spend its flows' budgets without asking anybody, and
 * meet only to hand out the next one.  They differ in what a request costs,
 * in how large the total is, and in who may end a round: struct budget_ops.
 *
 *	total 12 MiB, weights 100 : 500, a 4 KiB request costs 4096:
 *	the round gives 2 MiB and 10 MiB; after 512 requests the first flow is
 *	out and waits, after 2560 the second: all are out, the next round
 *	starts.  Had the first gone 4 KiB into debt it would get 4 KiB less.
 *
 * Words.  A *round* lasts from one refill to the next.  A flow *may spend*
 * while its credit is above 0, and goes into debt by what its last request
 * costs more than that [R]: a request larger than a whole budget would never
 * go otherwise.  At 0 or below it is *out*.  A refill forfeits what is left
 * and keeps what is owed.  A *domain* is a kind of request with slots of its
 * own (Kyber's domains; most schedulers have one).  A *lane* is the FIFO of
 * one flow, in one queue, of one domain.
 *
 * Dispatch on a queue touches that queue, the lanes in it, one credit line of
 * each flow that it looks at, and the slots.  Lanes whose flow may spend take
 * turns; a lane whose flow is out is put aside and not looked at again until
 * a refill says so.  Requests that may not be held (IO_URGENT, and those that
 * come back with IO_CHARGED) pass everything and are paid for once: when they
 * are dispatched for the first time.  Polled ones (IO_EXEMPT) spend budget
 * but take no slot.  While s->drain is set nothing is held back.
 *
 * When a round ends
 *   - its period is over (BUDGET_PERIODIC); for BUDGET_CONSERVING two periods,
 *     and the device has been turned over twice [R];
 *   - or every active flow is out (BUDGET_ALL_EXHAUSTED);
 *   - or somebody waits, while those who still may spend leave the device idle
 *     (BUDGET_CONSERVING).  They may lose a 32nd of what it can do in a period
 *     [R]: a bucket fills, while somebody waits, with what the device does less
 *     than 3/4 of what it can, and drains with what it does more.  What is in
 *     the device counts as done, so requests may take as long as they like.
 *     When the bucket is full they are *spare* for some periods: nobody waits
 *     for them, and what they ask for goes first; they have their credit still,
 *     so who is taken for spare and is not loses nothing that is due to it [R].
 *     What the device can do is found out by having nobody wait until it was
 *     turned over four times, if that was not done lately: every round then
 *     ends as soon as anybody would [R].
 *     Where the device's own account is known (budget_ops.device) they are spare
 *     if its parts worked for less than 5/8 of late, whomever for, and they have
 *     nothing waiting: a write buffer takes more for a while than can be done, and
 *     a host is slow to send the next request [R].
 *   Each rule includes those above it.
 * A hook decides that it may be time and asks for tick at once (wake.at_ns =
 * now); tick alone carries it out.  So refills are serialised by the contract
 * of tick, off the I/O path, and cost a visit of each active flow and one
 * mark for each queue that waits.
 *
 * Why no refill is missed, and nobody by a refill
 *   P1  A spender takes the credit to 0 or below (full order), then reads
 *       `witness`, and if that is itself or nobody sets `asked`; tick clears
 *       `witness` and `asked` (full order), then reads the credits, and in the
 *       end names a witness: somebody who may spend and is waited for.  Either
 *       tick sees a flow out, or its spender sees that nobody is named and
 *       `asked` clear, and asks for another tick.  Who is named was not seen
 *       out, so it asks or has asked when it is; until then the round is not
 *       over, whoever else is out.  A flow that comes in, or goes, asks as well.
 *   P2  A queue that finds a flow out sets its bit in flow.waits (full order)
 *       and then reads the credit again; a refill raises the credit and then
 *       takes the bits out of `waits` (full order).  One of the two sees the
 *       other.  Whoever takes a bit out names the queue.
 *   P3  A refill that finds a bit raises queue.grants (full order) before it
 *       names the queue; dispatch compares queue.grants (acquire) with what it
 *       has seen, and then looks at the lanes put aside again.
 *   P4  A queue that announces a wait reads `watched` after that; tick clears
 *       `watched` (full order) before it looks who waits.  So somebody is
 *       watching the device whenever somebody waits.
 *   After a refill at least one flow may spend, however deep the debts: the
 *   round then counts as many as it takes.
 *
 * Flows that come and go.  Credit is granted under sched.active_lock, which
 * flow_exit() takes to leave.  A flow that becomes active gets its part of
 * the total at once, by the insert that woke it, if it had none this round.
 * Shares are asked for during the refill: one that meets a change of weights
 * may hand out a little more or less than the total, once.
 *
 * Locks.  The credit is spent by compare-and-swap.  With budget_flow.lock set
 * it is spent and granted under that lock instead (wdt); the pointer changes
 * only under the lock that it points to.  Order: queue lock, or
 * sched.active_lock, > budget_flow.lock, a leaf.
 *
 * Invariants
 *   I1  granted = spent + left, for each flow (granted less what it forfeited).
 *   I2  a flow that may spend has no bit in `waits`, or a hook is about to
 *       take it out.
 *   I3  a lane with requests is in one list of its queue.
 *
 * Letters as in sched.h; L: sched.active_lock; T: tick alone.
 * Tested by tests/unit/budget.c, tests/mt/replay_budget.c, tests/sim.
 */
#ifndef MQFAIR_BUDGET_H
#define MQFAIR_BUDGET_H

#include "core/slots.h"
#include "credit.h"
#include "throughput.h"

enum {
	BUDGET_DOMAINS	= 4,
	BUDGET_MOST_SHIFT = 40,		/* no total is larger */
};

struct budget;

struct budget_ops {
	u32 nr_domains;			/* 1 .. BUDGET_DOMAINS */

	/* Requests of a domain in a row before it is the next one's turn. */
	u8 batch[BUDGET_DOMAINS];

	/* Optional: 0.  Of a request that is inserted. */
	u32 (*domain)(const struct io *io);

	/* Optional: cost_of().  What @io costs if it carries @bytes; not 0. */
	u32 (*charge)(const struct budget *b, const struct io *io, u32 bytes);

	/*
	 * A round is over: sets b->total of the next one.  Called by tick with
	 * sched.active_lock held: the active flows are sched.active, then
	 * next_active.  What each did is in its budget_flow.past; b->past has
	 * the sum of it.  Round b->round began at b->start_ns.
	 */
	void (*predict)(struct budget *b, u64 now);

	/*
	 * Optional: total * share.  What @f, whose share is @share
	 * (2^-SHARE_SHIFT), gets of b->total.  Called with sched.active_lock
	 * held, by tick and by an insert that wakes the flow.
	 */
	u64 (*grant)(const struct budget *b, const struct flow *f, u64 share);

	/*
	 * Optional: the credit that was used.  What the device was given to do
	 * so far, for a scheduler that charges some for more than that.
	 */
	u64 (*work)(const struct budget *b);

	/* Optional.  False: the drive's own account is not known.  By tick. */
	bool (*drive_time)(const struct budget *b, u64 now,
			   struct drive_time *time);
};

/* When a round ends: see above. */
enum budget_rule {
	BUDGET_PERIODIC,
	BUDGET_ALL_EXHAUSTED,
	BUDGET_CONSERVING,
};

/* FIFO of one flow in one queue of one domain; Q. */
struct budget_lane {
	struct budget_lane *next;	/* in a list, while not empty */
	struct flow *flow;		/* I */
	struct io_list fifo;
	u32 domain;			/* I */
};

/* A flow in one queue: what flow_queue_own() has. */
struct budget_flow_queue {
	u64 spent;			/* O */
	struct budget_lane lane[];	/* ops->nr_domains of them */
};

/* sched_ops.flow_queue_bytes of a scheduler with @domains domains. */
#define BUDGET_FLOW_QUEUE_BYTES(domains)		\
	(sizeof(struct budget_flow_queue) +		\
	 (domains) * sizeof(struct budget_lane))

/* What a flow, or all that nobody spared, did in a round; L. */
struct budget_past {
	u64 used;		/* credit */
	u64 ran_ns;		/* until out (all of them), or the whole round */
	bool exhausted;		/* all of them */
};

/* What flow_own() has, or begins with. */
struct budget_flow {
	/* the credit line */
	struct credit credit;
	atomic64_t exhausted_ns;	/* A: when it was last exhausted */
	u64 donor_until_ns;		/* O, by L: until when nobody waits for it */

	atomic64_t waits[QUEUE_WORDS] __port_cacheline;	/* A: queues */
	s64 granted;		/* L: less what was forfeited */
	s64 mark;		/* L: credit at the start of the round */
	u64 due;		/* L: what it is about to be granted */
	u64 round;		/* L: of the last grant */
	u32 suspect;		/* L: sweeps since it seems forgotten */
	struct budget_past past;
};

struct lane_list {
	struct budget_lane *head, *tail;
};

struct budget_queue {
	struct lane_list runnable[BUDGET_DOMAINS];	/* Q: taken to have credit */
	struct lane_list exhausted;	/* Q: their flows were out when looked at */
	u64 seen;		/* Q: of `grants` */
	u32 domain;		/* Q: whose turn it is */
	u32 batch;		/* Q: requests of it in a row */
	u32 waits;		/* Q: mask of domains without a slot */
	u32 suspect;		/* T: sweeps since it seems forgotten */
	u64 dispatched;		/* T: then */
	atomic64_t grants;	/* A: grants to flows that wait here */
} __port_cacheline;

struct budget {
	struct sched *sched;		/* I */
	const struct budget_ops *ops;	/* I */
	enum budget_rule rule;		/* O, by tune */
	u64 total;			/* L: of a round */
	u64 round;			/* L: number of the present one */
	struct budget_past past;	/* L: of the round that is over */
	bool idle;			/* L: no flow was active at the last tick */
	u64 start_ns;			/* T: of the present round */
	u64 least_used;			/* T: credit that it uses at least */
	u64 sweep_ns;			/* T: next look at the idle */
	struct throughput throughput;	/* T */
	u64 used;			/* T: in all rounds that are over */
	u64 refills, early;		/* O by T: rounds; those ended early */
	atomic64_t tick_requested __port_cacheline;	/* A: a tick is coming */
	atomic64_t sentinel;		/* A: budget_flow who asks when out; or 0 */
	atomic64_t watched;		/* A: tick watches the device */
	struct slots slots[BUDGET_DOMAINS];
};

/* sched_params.own begins with them. */
struct budget_params {
	u32 period_ns;
	u32 work_conserving;
};

static inline struct budget_params *budget_params(const struct sched_params *p)
{
	return (struct budget_params *)p->own;
}

/* queue.own is, or begins with, its part of the budget. */
static inline struct budget_queue *budget_queue_of(const struct queue *q)
{
	return q->own;
}

/* sched.own is, or begins with, its budget. */
static inline struct budget *budget_of(const struct sched *s)
{
	return s->own;
}

/*
 * @total: of the first round.  @depth: D of each domain.  0 or -ENOMEM.  The
 * rule is BUDGET_ALL_EXHAUSTED until another is set.
 */
int budget_init(struct budget *b, struct sched *s,
		const struct budget_ops *ops, u64 total, const u32 *depth);
void budget_deinit(struct budget *b);

/*
 * Of predict: what a round is worth at least.  Twice what is in the device, or a
 * flow whose requests are all in it could not use its part in time.
 */
u64 budget_least_total(const struct budget *b);

/* By init and tune of the scheduler alone. */
void budget_set_rule(struct budget *b, enum budget_rule rule);

/* The hooks of struct sched_ops, with the same contract. */
void budget_flow_init(struct flow *f);
void budget_insert(struct queue *q, struct io *io, u64 now, struct wake *wake);
void budget_merge(struct queue *q, struct io *io, u32 bytes);
enum dispatch_result budget_dispatch(struct queue *q, u64 now, struct io **io,
			     struct wake *wake);
void budget_block(struct queue *q, struct wake *wake);
void budget_complete(struct io *io, u64 now, struct wake *wake);
void budget_requeue(struct io *io, struct wake *wake);
void budget_tick(struct sched *s, u64 now, struct wake *wake);

/*
 * Of tune: takes over cost, budget and, if there is one domain, depth; else
 * the scheduler calls slots_resize(&b->slots[domain], ..) itself.  @p NULL: the
 * shares have changed.
 */
void budget_tune(struct sched *s, const struct sched_params *p,
		 struct wake *wake);

/*
 * Under which lock @f spends from now on.  The caller serialises; not between
 * NULL and a lock once the flow has seen requests.
 */
void budget_set_lock(struct flow *f, struct port_lock *lock);

/* Sum over the queues; a snapshot. */
u64 budget_spent(const struct flow *f);

void budget_report(const struct sched *s, struct report *r);
void budget_report_flow(const struct flow *f, struct report *r);

static inline struct budget_flow *budget_flow_of(const struct flow *f)
{
	return flow_own(f);
}

/* For the tables of tunables. */
#define TUNABLE_BUDGET_PERIOD(name_)					\
	TUNABLE_U32(name_, struct budget_params, period_ns, 1, 4000,	\
		    1000000, 100)
#define TUNABLE_WORK_CONSERVING						\
	TUNABLE_FLAG("work_conserving", struct budget_params,		\
		     work_conserving, 1), .research = true

#endif /* MQFAIR_BUDGET_H */
