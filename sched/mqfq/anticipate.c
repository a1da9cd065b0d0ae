// SPDX-License-Identifier: GPL-2.0
/* The life of a reserved slot: reserved, then taken or expired. */
#include "anticipate.h"

enum {
	SERVICE_SHIFT	= 3,		/* an eighth of the service time */
	SLOTS_SHIFT	= 3,		/* an eighth of the slots */
	MOST_NS		= 10 * 1000 * 1000,	/* of one reservation */
	/* Tick reads each flow, so it does not come for each slot of a fast drive. */
	TICK_NS		= 1000 * 1000,
	LATE_MOST	= 7,		/* one in 2^7 completions */
};

bool anticipate_claim(struct anticipate *k, struct token_tree *slots,
		      struct flow *f, u32 queue)
{
	u32 late = READ_ONCE(flow_reserved(f)->late);

	if (!atomic64_xchg(&flow_reserved(f)->until, 0))
		return false;
	atomic64_dec(&k->reserved);
	WRITE_ONCE(flow_reserved(f)->late, late ? late - 1 : 0);
	if (likely(!token_in_debt(slots)))
		return true;
	/*
	 * The depth was lowered while this slot was reserved.  Give it back
	 * instead of using it.
	 */
	token_put(slots, queue);
	return false;
}

/* Every 2^late-th completion may reserve a slot. */
static bool is_its_turn(struct flow_reserved *reserved)
{
	u32 done = READ_ONCE(reserved->done) + 1;

	WRITE_ONCE(reserved->done, done);
	return !(done & ((1U << READ_ONCE(reserved->late)) - 1));
}

bool anticipate_slot(struct anticipate *k, const struct token_tree *slots,
		     const struct io *io, u64 now, struct wake *wake)
{
	struct flow *f = io->flow;
	u64 took = now - io->dispatch_ns, until;
	s64 most = READ_ONCE(slots->depth) >> SLOTS_SHIFT;

	if (!READ_ONCE(mqfq_params(&f->sched->params)->anticipate) ||
	    now <= io->dispatch_ns || token_in_debt(slots) ||
	    !is_its_turn(flow_reserved(f)))
		return false;
	if (atomic64_inc_return(&k->reserved) > most)
		goto undo;
	until = now + min(took >> SERVICE_SHIFT, (u64)MOST_NS);
	if (atomic64_cmpxchg(&flow_reserved(f)->until, 0, (s64)until))
		goto undo;
	wake_at(wake, max(until, now + TICK_NS));
	return true;
undo:
	atomic64_dec(&k->reserved);
	return false;
}

/* Has the reserved slot expired?  Then it is the caller's. */
static bool is_late(struct flow_reserved *reserved, u64 now)
{
	u64 until = (u64)atomic64_read(&reserved->until);
	u32 late = READ_ONCE(reserved->late);

	if (!until || now < until || !atomic64_xchg(&reserved->until, 0))
		return false;
	WRITE_ONCE(reserved->late, min(late + 1, (u32)LATE_MOST));
	return true;
}

u32 anticipate_tick(struct anticipate *k, struct sched *s, u64 now,
		    struct wake *wake)
{
	struct flow_walk w;
	struct flow *f;
	u32 late;

	if (likely(!atomic64_read(&k->reserved)))
		return 0;
	late = (u32)atomic64_xchg(&k->left, 0);
	for_each_active_flow(f, &w, s)
		late += is_late(flow_reserved(f), now);
	if (atomic64_sub_return(late, &k->reserved))
		wake_at(wake, now + TICK_NS);
	return late;
}

/* The slot counts as reserved until tick has handed it over. */
void anticipate_flow_exit(struct anticipate *k, struct flow *f)
{
	if (atomic64_xchg(&flow_reserved(f)->until, 0))
		atomic64_inc(&k->left);
}

u32 anticipate_drain(struct anticipate *k)
{
	return (u32)atomic64_xchg(&k->left, 0);
}
