/* SPDX-License-Identifier: GPL-2.0 */
/*
 * wake - the requests that a hook leaves for its host
 *
 * A scheduler never arms a timer and never runs a queue.  A hook notes in a
 * struct wake, which the host owns, the queues to run and the time at which to
 * call tick.  The host acts on it after it has dropped its locks.
 *
 * wake_init() sets up no more than three words: mask[] is valid only where
 * summary has the word's bit.  So a hook that asks for nothing costs nothing.
 *
 * Locking: a struct wake is on its host's stack; no other CPU sees it.
 */
#ifndef MQFAIR_SCHED_WAKE_H
#define MQFAIR_SCHED_WAKE_H

#include "mt/queue_set.h"

struct wake {
	u64 summary;		/* words of mask[] that are in use */
	u64 at_ns;		/* call tick no later than this; 0: no need */
	u32 pinned_by;		/* see sched_ops.block; QUEUES_MAX: no queue */
	u64 mask[QUEUE_WORDS];	/* queues to run */
};

static inline void wake_init(struct wake *w)
{
	w->summary = 0;
	w->at_ns = 0;
	w->pinned_by = QUEUES_MAX;
}

static inline void wake_queue(struct wake *w, u32 queue)
{
	u32 word = queue / 64;

	if (!(w->summary & BIT_ULL(word))) {
		w->summary |= BIT_ULL(word);
		w->mask[word] = 0;
	}
	w->mask[word] |= BIT_ULL(queue % 64);
}

/* Keeps the earlier time.  @ns is not 0. */
static inline void wake_at(struct wake *w, u64 ns)
{
	if (!w->at_ns || ns < w->at_ns)
		w->at_ns = ns;
}

/* Takes out the next queue to run; QUEUES_MAX when there is none. */
static inline u32 wake_next(struct wake *w)
{
	u32 word, bit;

	if (!w->summary)
		return QUEUES_MAX;
	word = port_ffs64(w->summary);
	bit = port_ffs64(w->mask[word]);
	w->mask[word] &= w->mask[word] - 1;
	if (!w->mask[word])
		w->summary &= w->summary - 1;
	return word * 64 + bit;
}

#endif /* MQFAIR_SCHED_WAKE_H */
