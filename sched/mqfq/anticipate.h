/* SPDX-License-Identifier: GPL-2.0 */
/*
 * anticipate - reserve a freed slot for a moment for the flow that had it
 *
 * The problem.  A tenant with one request at a time frees its slot, and needs a
 * slot again a few microseconds later.  By then a flow with many requests has
 * taken the slot, and the tenant waits for the next completion.  If completions
 * came at an even pace, that would be 1/D of a service time later.  But
 * requests that were dispatched together complete together, and so do the
 * requests that follow them.  The next completion may be most of a service time
 * away.
 *
 *	64 slots of 16 ms, completing in a few bunches: a lone reader beside
 *	three tenants of depth 64 had 81 % of the requests that it has alone.
 *
 * The rule [R].  When a request completes, its slot is reserved for its flow if
 *   - the flow has no request waiting,
 *   - a queue found no slot while the request was in the device, and
 *   - virtual time lets the flow dispatch a request that arrives now.
 * The slot is reserved for an eighth of the time that the request was in the
 * device.  The flow's next dispatch takes it.  The flow gets no priority: order
 * and throttling are the same as without a reserved slot.
 *
 * The price.  At most an eighth of the slots are reserved at once, each for at
 * most an eighth of a service time.  If no flow comes back, that is less than
 * 2 % of the device.  A slot that expires unused halves the rate of reservations
 * for its flow, down to one in 128 completions.  A slot that the flow takes
 * doubles the rate again.
 *
 * Return.  anticipate_slot() requests a tick.  The tick takes back the slots
 * that have expired, and its caller hands them over to queues that wait.
 *
 * Source: to wait for a process that will be back soon is anticipatory
 * scheduling, Iyer and Druschel, SOSP 2001; they did it for seeks.
 * Tested by tests/unit/anticipate.c, tests/sim/shares.c.
 */
#ifndef MQFAIR_ANTICIPATE_H
#define MQFAIR_ANTICIPATE_H

#include "mqfq_params.h"
#include "mt/token_tree.h"

/* This slot is reserved for a flow.  flow_own() begins with it. */
struct flow_reserved {
	atomic64_t until;		/* A: ns; 0: no slot is reserved */
	u32 late;			/* expired less taken, at most 7 */
	u32 done;			/* completions that could reserve one */
};

static inline struct flow_reserved *flow_reserved(const struct flow *f)
{
	return flow_own(f);
}

/* The reserved slots of a device. */
struct anticipate {
	atomic64_t reserved;	/* A: slots reserved now */
	atomic64_t left;	/* A: of these, slots of flows that are gone */
	u64 short_ns;		/* time at which a queue last found no slot */
} __port_cacheline;

/* Notes that a queue has found no slot. */
static inline void anticipate_missed(struct anticipate *k, u64 now)
{
	WRITE_ONCE(k->short_ns, now);
}

/* Slow path of anticipate_take(): call only when flow_reserved.until is set. */
bool anticipate_claim(struct anticipate *k, struct token_tree *slots, struct flow *f,
		u32 queue);

/* Takes the slot that is reserved for @f.  False if there is none. */
static inline bool anticipate_take(struct anticipate *k,
				   struct token_tree *slots, struct flow *f,
				   u32 queue)
{
	return unlikely(atomic64_read(&flow_reserved(f)->until)) &&
	       anticipate_claim(k, slots, f, queue);
}

/*
 * Call this cheap test at the completion of @io.  Returns true if a queue has
 * found no slot since the dispatch of @io, and its flow has no request waiting.
 */
static inline bool anticipate_wanted(const struct anticipate *k,
				     const struct io *io)
{
	return unlikely(READ_ONCE(k->short_ns) >= io->dispatch_ns) &&
	       !atomic64_read(&io->flow->queued);
}

/*
 * @io, which had a slot, is complete, and anticipate_wanted() was true.  The
 * caller has made sure that virtual time lets the flow dispatch.  Returns true
 * if the slot is reserved for the flow now.
 */
bool anticipate_slot(struct anticipate *k, const struct token_tree *slots,
	       const struct io *io, u64 now, struct wake *wake);

/*
 * Tick calls this.  It takes back the slots that have expired, and those of
 * flows that are gone.  Returns their number: the caller puts that many slots.
 */
u32 anticipate_tick(struct anticipate *k, struct sched *s, u64 now, struct wake *wake);

/* The flow_exit hook calls this. */
void anticipate_flow_exit(struct anticipate *k, struct flow *f);

/* All flows are gone.  Returns the number of slots still reserved for them. */
u32 anticipate_drain(struct anticipate *k);

#endif /* MQFAIR_ANTICIPATE_H */
