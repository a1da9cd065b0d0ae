/* SPDX-License-Identifier: GPL-2.0 */
/*
 * keep - a free slot waits a moment for the flow that had it
 *
 * The problem.  A tenant with one request at a time gives its slot back and
 * asks for it again a few microseconds later.  By then somebody who always has
 * requests waiting has it, and the tenant waits for the next.  Were requests
 * to complete at an even pace that would be 1/D of a service time later.  But
 * what was dispatched together completes together, and goes on doing so: the
 * next may be most of a service time away.
 *
 *	64 slots of 16 ms, completing in a few bunches: a lone reader beside
 *	three tenants of depth 64 had 81 % of its requests alone.
 *
 * The rule [R].  When a request completes whose flow has nothing else waiting,
 * and somebody went without a slot while it was out, the slot is kept for the
 * flow for an eighth of the time that the request took.  The flow's next
 * dispatch takes it.  It is no right to go first: order and throttling are as
 * without.
 *
 * What it costs.  No more than an eighth of the slots are kept at once, each
 * for no more than an eighth of a service time: less than 2 % of the device if
 * nobody comes back.  A flow is waited for half as often each time that it
 * comes too late, down to once in 128, and twice as often each time that it
 * does not.
 *
 * Who comes back.  tick, at the time that anticipate_slot() asks for, returns what
 * was kept too long and hands it to whoever waits.
 *
 * Source: waiting for who will be back soon is anticipatory scheduling, Iyer
 * and Druschel, SOSP 2001; there it was for seeks.
 * Tested by tests/unit/anticipate.c, tests/sim/shares.c.
 */
#ifndef MQFAIR_ANTICIPATE_H
#define MQFAIR_ANTICIPATE_H

#include "mqfq_params.h"
#include "mt/token_tree.h"

/* A slot that waits for a flow; flow_own() begins with it. */
struct flow_reserved {
	atomic64_t until;		/* A: ns; 0: none */
	u32 late;			/* how often the flow came too late */
	u32 done;			/* completions that asked for one */
};

static inline struct flow_reserved *flow_reserved(const struct flow *f)
{
	return flow_own(f);
}

/* Of the slots of a device. */
struct anticipate {
	atomic64_t reserved;	/* A: slots kept now */
	atomic64_t left;	/* A: of them, those of flows that are gone */
	u64 short_ns;		/* when somebody last went without a slot */
} __port_cacheline;

/* Somebody has found no slot. */
static inline void anticipate_missed(struct anticipate *k, u64 now)
{
	WRITE_ONCE(k->short_ns, now);
}

/* Of what follows, when one may have been. */
bool anticipate_claim(struct anticipate *k, struct token_tree *slots, struct flow *f,
		u32 queue);

/* The slot that was kept for @f, if one was, is the caller's, on @queue. */
static inline bool anticipate_take(struct anticipate *k,
				   struct token_tree *slots, struct flow *f,
				   u32 queue)
{
	return unlikely(atomic64_read(&flow_reserved(f)->until)) &&
	       anticipate_claim(k, slots, f, queue);
}

/* @io is done: is there anything to think about?  Cheap. */
static inline bool anticipate_wanted(const struct anticipate *k,
				     const struct io *io)
{
	return unlikely(READ_ONCE(k->short_ns) >= io->dispatch_ns) &&
	       !atomic64_read(&io->flow->queued);
}

/*
 * @io, which had a slot, is done, and anticipate_wanted().  True: the slot is kept
 * for the flow.  The caller has made sure that the flow might dispatch if it
 * came back.
 */
bool anticipate_slot(struct anticipate *k, const struct token_tree *slots,
	       const struct io *io, u64 now, struct wake *wake);

/* Of tick: how many slots, kept too long, the caller has to put back. */
u32 anticipate_tick(struct anticipate *k, struct sched *s, u64 now, struct wake *wake);

/* Of flow_exit. */
void anticipate_flow_exit(struct anticipate *k, struct flow *f);

/* All flows are gone: how many slots were still kept for them. */
u32 anticipate_drain(struct anticipate *k);

#endif /* MQFAIR_ANTICIPATE_H */
