// SPDX-License-Identifier: GPL-2.0
#include "anticipate.h"

enum {
	SERVICE_SHIFT	= 3,		/* for an eighth of the service time */
	SLOTS_SHIFT	= 3,		/* an eighth of the slots */
	MOST_NS		= 10 * 1000 * 1000,
	/* On a fast drive a timer for each would cost more than the slot. */
	TICK_NS		= 100 * 1000,
	LATE_MOST	= 7,
};

bool keep_claim(struct keep *k, struct token_tree *slots, struct flow *f,
		u32 queue)
{
	u32 late = READ_ONCE(f->kept.late);

	if (!atomic64_xchg(&f->kept.until, 0))
		return false;
	atomic64_dec(&k->kept);
	WRITE_ONCE(f->kept.late, late ? late - 1 : 0);
	if (likely(!token_in_debt(slots)))
		return true;
	/* It is one of those that there are no more. */
	token_put(slots, queue);
	return false;
}

/* The more often it came too late, the less often. */
static bool is_its_turn(struct flow_kept *kept)
{
	u32 done = READ_ONCE(kept->done) + 1;

	WRITE_ONCE(kept->done, done);
	return !(done & ((1U << READ_ONCE(kept->late)) - 1));
}

bool keep_slot(struct keep *k, const struct token_tree *slots,
	       const struct io *io, u64 now, struct wake *wake)
{
	struct flow *f = io->flow;
	u64 took = now - io->dispatch_ns, until;
	s64 most = READ_ONCE(slots->depth) >> SLOTS_SHIFT;

	if (!READ_ONCE(f->sched->params.keep) || now <= io->dispatch_ns ||
	    token_in_debt(slots) || !is_its_turn(&f->kept))
		return false;
	if (atomic64_inc_return(&k->kept) > most)
		goto undo;
	until = now + min(took >> SERVICE_SHIFT, (u64)MOST_NS);
	if (atomic64_cmpxchg(&f->kept.until, 0, (s64)until))
		goto undo;
	wake_at(wake, max(until, now + TICK_NS));
	return true;
undo:
	atomic64_dec(&k->kept);
	return false;
}

static bool is_late(struct flow_kept *kept, u64 now)
{
	u64 until = (u64)atomic64_read(&kept->until);
	u32 late = READ_ONCE(kept->late);

	if (!until || now < until || !atomic64_xchg(&kept->until, 0))
		return false;
	WRITE_ONCE(kept->late, min(late + 1, (u32)LATE_MOST));
	return true;
}

u32 keep_tick(struct keep *k, struct sched *s, u64 now, struct wake *wake)
{
	unsigned long flags;
	struct flow *f;
	u32 late;

	if (likely(!atomic64_read(&k->kept)))
		return 0;
	late = (u32)atomic64_xchg(&k->left, 0);
	flags = port_lock(&s->active_lock);
	for (f = s->active; f; f = f->next_active)
		late += is_late(&f->kept, now);
	port_unlock(&s->active_lock, flags);
	if (atomic64_sub_return(late, &k->kept))
		wake_at(wake, now + TICK_NS);
	return late;
}

/* The slot stays counted until tick has handed it to somebody. */
void keep_flow_exit(struct keep *k, struct flow *f)
{
	if (atomic64_xchg(&f->kept.until, 0))
		atomic64_inc(&k->left);
}

u32 keep_drain(struct keep *k)
{
	return (u32)atomic64_xchg(&k->left, 0);
}
