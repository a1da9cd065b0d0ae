/* SPDX-License-Identifier: GPL-2.0 */
/*
 * budget - the part that kyber-fair, wdt and hwabc have in common
 *
 * The idea.  Each flow gets *credit* in proportion to its share.  Every CPU
 * spends the credit of its flows without asking the others.  The CPUs meet only
 * when the next credit is granted.  The schedulers differ in the cost of a
 * request, in the total that is granted, and in the end of a round: struct
 * budget_ops.
 *
 *	total 12 MiB, weights 100 : 500, a 4 KiB request costs 4096:
 *	the round grants 2 MiB and 10 MiB.  After 512 requests the first flow is
 *	exhausted and waits, after 2560 the second: the next round starts.  Had
 *	the first flow gone 4 KiB into debt, it would get 4 KiB less.
 *
 * Words.  A *round* lasts from one *refill* to the next.  A flow is *exhausted*
 * when its credit is at 0 or below.  The last request of a flow may cost more
 * than its credit [R]: otherwise a request larger than a whole budget would
 * never go.  A *domain* is a sort of requests with slots of its own; most
 * schedulers have one.  A *lane* is the FIFO of one flow, in one queue, of one
 * domain.
 *
 * Dispatch on a queue touches that queue, its lanes, the credit line of each
 * flow that it looks at, and the slots.  Lanes of flows in credit take turns: those of
 * donors first (see below), then the others.
 * A lane of an exhausted flow is put aside until a refill.
 *   - Urgent and requeued requests (IO_URGENT) pass all others, without credit
 *     and up to a bound (core/urgent.h).
 *     A flow pays for a request once, when it is dispatched first (IO_PAID).
 *   - Requests that pass for isolation (IO_FIRST) go behind those, without credit.
 *     They wait for a slot of their domain with a rank (core/slots.h).
 *   - Polled requests (IO_POLLED) have their slot for a lease (core/slots.h).
 *   - While queue.drain is set, no request of the queue waits for credit or for a slot.
 *
 * The end of a round.  Each rule includes those above it.
 *   BUDGET_PERIODIC		The period is over.
 *   BUDGET_ALL_EXHAUSTED	Every active flow is exhausted.
 *   BUDGET_CONSERVING		A flow waits for credit, and the flows in credit
 *				leave the device idle [R].
 *   Under BUDGET_CONSERVING the first rule needs two periods, and two turnovers
 *   of the device [R].
 *
 * An idle device [R].  While a flow waits, tick checks the device every
 * millisecond.  The flows in credit leave the device idle if none of them has
 * requests queued, and more than an eighth of the slots of each domain is free.  So D
 * alone says how many requests a device needs, and isolation.h finds D.
 *
 *	D = 128.  The flow in credit keeps 4 requests, all of them inside.  A flow
 *	without credit has 500 that wait: the round ends.
 *
 * Donors [R].  If a round ends because the device was idle, the flows in credit become
 * *donors* for eight periods.  A round waits for donors only while they have a request for
 * each place of the device: then no other flow could use it.  In return the requests of a
 * donor go before those of the others: in a queue, and for a slot if the parts of the
 * queues would give it less (ranks of slots.h).  The others spend grants that they have
 * because of donors, so nothing but this order keeps a donor's share.  The order ends with
 * the donor's credit, so a donor cannot take more than its share by it.
 *
 *	Weights 100 and 1000, D = 64, 256 and 64 requests, in a guest.  The tasks of the
 *	second flow take a moment to send the next request.  So the device may seem idle,
 *	and the flow a donor.  If no round waited for it, the first flow would be in
 *	credit all the time, and kyber-fair would give it 15 % for 9.1.
 *	Weights 100 and 10000.  The second flow keeps 8 requests.  The first has the
 *	other slots, and each slot goes to the second if it has a request for it.
 *
 * A hook that finds a round over requests a tick; tick alone refills.  So
 * refills are serialised by the contract of tick, and off the I/O path.
 *
 * The cost of rounds [R].  A tick visits each active flow up to eight times.  So a
 * short round has four requests of each flow on average.  Otherwise a tenant with
 * thousands of cgroups could keep CPUs busy:
 *
 *	5000 flows of one request each on a drive that does a million a second:
 *	hwabc walked 8,000 times a second, and each walk took 0.28 ms.
 *
 * The protocol.  Why no end of a round is missed, and no queue by a refill.
 *
 *	                      spend   queue   refill  tick    insert
 *	                      to 0 or finds   grants  reads   makes it
 *	                      below   it out  credit  credit  active
 *	a flow
 *	 in credit            E       -       G       S       J
 *	 exhausted            -       A       G       -       J
 *	 exhausted, waiting   -       A       G W     D       J W
 *	its round
 *	 sentinel named       T if it  T if not  N    C       T
 *	                      is that  watched
 *	 no sentinel          T       the same  N     C       T
 *	 tick requested       -       -       N       C       -
 *
 *	A  The queue announces that it waits: sets its bit in flow.waits, reads
 *	   the credit again, and puts the lane aside if there is none.
 *	C  tick clears sentinel, tick_requested and watched before it reads.
 *	D  tick sets watched, and checks the device every millisecond.
 *	E  The flow is exhausted from now on.
 *	G  The flow gets its grant: it is in credit, or its debt is smaller.
 *	J  The insert grants the flow its part, unless it had one this round.
 *	N  tick alone refills, and names a sentinel afterwards.
 *	S  tick may name it the *sentinel*: of the flows for which the round waits,
 *	   the one with the most credit.  The others write to no shared line.
 *	T  Sets tick_requested.  If it was clear, asks the host for a tick now.
 *	W  Takes the bits out of flow.waits, and wakes those queues.
 *
 *   P1  1. A spender takes the credit to 0 or below (full order).
 *       2. It reads sentinel, and sets tick_requested (both full order).
 *       3. tick clears sentinel and tick_requested (full order).
 *       4. It reads the credits, and names a flow that has some.
 *       Either tick sees the flow exhausted (1 before 4), or the spender sees
 *       no sentinel and requests another tick (3 before 2).  A flow that tick
 *       names had credit in 4, so it requests a tick once it is exhausted.
 *       Until then the round is not over.
 *   P2  1. A queue sets its bit in flow.waits (full order).
 *       2. It reads the credit again.
 *       3. A refill raises the credit.
 *       4. It takes the bits out of flow.waits (full order).
 *       The queue sees the credit (3 before 2), or the refill sees the bit
 *       (1 before 4).
 *       A queue that sees the credit clears its bit only if it has set it in 1.
 *       If the bit was set before, a lane of another domain is put aside, and
 *       step 4 must find the bit.
 *   P3  1. A refill raises queue.grants (full order).
 *       2. It wakes the queue.
 *       3. dispatch reads queue.grants (acquire), and retries the lanes put
 *          aside if it has changed.
 *   P4  1. A queue announces its wait (P2), then reads watched.
 *       2. tick clears watched (full order).
 *       3. It looks for exhausted flows with requests, and sets watched if
 *          there are any.
 *       tick sees the flow (1 before 3), or the queue finds watched clear and
 *       requests a tick.  So the device is watched while a flow waits.
 *   After a refill at least one flow is in credit, however deep the debts: the
 *   refill grants as many rounds at once as that takes.
 *
 * Flows that come and go.  Credit is granted under sched.active_lock, which
 * flow_exit() takes as well.  An insert that makes a flow active grants it its part
 * of the total.  If it becomes active after a round began, it has its grant of that
 * round, and the refill leaves it out.  After a flow has left, tune(NULL) asks for a tick: all
 * others may have waited for that flow.  The refill reads the shares: if
 * weights change meanwhile, it may grant a little more or less than the total,
 * once.
 *
 * Locks.  The credit is changed by compare-and-swap, or under a lock: credit.h.
 * Order: queue lock, or sched.active_lock, > credit.lock, a leaf.
 *
 * Invariants
 *   I1  granted = spent + left, for each flow.  Forfeited credit does not count
 *       as granted.
 *   I2  A flow in credit has no bit in `waits`, or a hook is about to take the
 *       bit out.  A queue that waits for credit has a bit in the
 *       `waits` of a flow.
 *   I3  A lane with requests is in one list of its queue.
 *
 * Letters as in sched.h; L: sched.active_lock; T: tick alone.
 * Tested by tests/unit/{budget,budget_rounds}.c, tests/mt/replay_budget.c,
 * tests/sim.
 */
#ifndef MQFAIR_BUDGET_H
#define MQFAIR_BUDGET_H

#include "core/engine.h"
#include "credit.h"
#include "turnover.h"

enum {
	BUDGET_DOMAINS	= 4,
	BUDGET_MOST_SHIFT = 40,		/* no total is larger */
};

struct budget;

struct budget_ops {
	u32 nr_domains;			/* 1 .. BUDGET_DOMAINS */

	/* Requests of a domain in a row, before the next domain's turn. */
	u8 batch[BUDGET_DOMAINS];

	/* Optional.  The domain of a request that is inserted; else 0. */
	u32 (*domain)(const struct io *io);

	/* Optional.  The cost of @io with @bytes, not 0; else cost_of(). */
	u32 (*charge)(const struct budget *b, const struct io *io, u32 bytes);

	/*
	 * A round is over: sets b->total of the next one.  Called by tick.  The
	 * caller holds no lock.  budget_flow.past has the use of each flow,
	 * b->past that of all.  Round b->round began at b->start_ns.
	 */
	void (*predict)(struct budget *b, u64 now);

	/*
	 * Optional.  The part of b->total that @f gets; else total * share.
	 * @share is the flow's, in units of 2^-SHARE_SHIFT.  Called with
	 * sched.active_lock held, by tick and by an insert that makes the flow
	 * active.
	 */
	u64 (*grant)(const struct budget *b, const struct flow *f, u64 share);
};

/* When a round ends: see above. */
enum budget_rule {
	BUDGET_PERIODIC,
	BUDGET_ALL_EXHAUSTED,
	BUDGET_CONSERVING,
};

/* The FIFO of one flow, in one queue, of one domain; Q. */
struct budget_lane {
	struct budget_lane *next;	/* in a list, while not empty */
	struct flow *flow;		/* while not empty */
	struct io_list fifo;
	u32 domain;			/* while not empty */
};

/* A flow in one queue: flow_queue_own() begins with it. */
struct budget_flow_queue {
	u64 spent;			/* O */
	struct budget_lane lane[];	/* ops->nr_domains of them */
};

/* sched_ops.flow_queue_bytes of a scheduler with @domains domains. */
#define BUDGET_FLOW_QUEUE_BYTES(domains)		\
	(sizeof(struct budget_flow_queue) +		\
	 (domains) * sizeof(struct budget_lane))

/* A round that is over, of one flow or of all that are not donors; L. */
struct budget_past {
	u64 used;		/* credit; of all, donors as well */
	u64 ran_ns;		/* until exhausted, or the whole round */
	bool exhausted;		/* of all: each of them is */
};

/* flow_own() is, or begins with, this. */
struct budget_flow {
	/* the credit line */
	struct credit credit;
	atomic64_t exhausted_ns;	/* A: when it was last exhausted */
	u64 donor_until_ns;	/* O, by L: it is a donor before */

	/* A: queues that wait for its credit */
	atomic64_t waits[QUEUE_WORDS] __port_cacheline;
	s64 granted;		/* L: credit so far, less the forfeited */
	s64 mark;		/* L: credit at the start of the round */
	u64 due;		/* L: its grant for one round */
	u64 round;		/* L: of the last grant */
	struct budget_past past;
};

struct lane_list {
	struct budget_lane *head, *tail;
};

struct budget_queue {
	/* Q: lanes of flows that had credit, or were not looked at yet */
	struct lane_list runnable[BUDGET_DOMAINS];
	struct lane_list donors[BUDGET_DOMAINS];	/* Q: the same, of donors */
	struct lane_list exhausted;	/* Q: lanes put aside */
	u64 seen;		/* Q: of `grants` */
	u32 domain;		/* Q: the one that has its turn */
	u32 batch;		/* Q: its requests in a row */
	u32 waits;		/* Q: mask of domains without a slot */
	u32 passing;		/* Q: mask of those in which an io passes */
	atomic64_t grants;	/* A: grants to flows that wait here */
} __port_cacheline;

struct budget {
	struct sched *sched;		/* I */
	const struct budget_ops *ops;	/* I */
	enum budget_rule rule;		/* O, by tune */
	u64 total;			/* O, by T: of a round */
	u64 round;			/* L: number of the present one */
	struct budget_past past;	/* T: the sums of the last round */
	bool idle;			/* L: no flow active at the last tick */
	u64 start_ns;			/* T: of the present round */
	u64 least_used;			/* T: two turnovers, see above */
	struct chassis chassis;
	/* T: queues in the waits of a flow at the sweep, and of one with credit */
	u64 announced[QUEUE_WORDS], granted[QUEUE_WORDS];
	struct turnover turnover;	/* T */
	u64 used;			/* T: in all rounds that are over */
	u64 refills, early;		/* O by T: rounds; before their time */
	atomic64_t tick_requested __port_cacheline;	/* A: a tick is coming */
	atomic64_t sentinel;		/* A: struct budget_flow *, or 0 */
	atomic64_t watched;		/* A: tick watches the device */
	struct slots slots[BUDGET_DOMAINS];
};

/* sched_params.own begins with this. */
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

/* By init and tune of the scheduler alone. */
void budget_set_rule(struct budget *b, enum budget_rule rule);

/* The hooks of struct sched_ops but tick, with the same contract. */
void budget_insert(struct queue *q, struct io *io, u64 now, struct wake *wake);
void budget_merge(struct queue *q, struct io *io, u32 bytes);
enum dispatch_result budget_dispatch(struct queue *q, u64 now, struct io **io,
			     struct wake *wake);
bool budget_send(struct queue *q, struct io *first, u32 nr, u64 now,
		 struct wake *wake);
void budget_block(struct queue *q, struct wake *wake);
void budget_complete(struct io *io, u64 now, struct wake *wake);
void budget_requeue(struct io *io, struct wake *wake);

/*
 * Of tune: takes over @p, with the depth if there is one domain.  With several
 * the scheduler calls slots_resize(&b->slots[domain], ..) itself.  @p NULL: the
 * shares have changed.
 */
void budget_tune(struct sched *s, const struct sched_params *p,
		 struct wake *wake);

/* @f spends under @lock from now on: see credit_set_lock(). */
void budget_set_lock(struct flow *f, struct port_lock *lock);

/* Credit that @f has spent, over its queues; a snapshot. */
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
