/* SPDX-License-Identifier: GPL-2.0 */
/*
 * wake - the requests that a hook leaves for its host
 *
 * A scheduler never arms a timer and never runs a queue.  A hook notes in a
 * struct wake, which the host owns, the queues to run and the time at which to
 * call tick.  The host acts on it after it has dropped its locks.
 *
 * A host with many CPUs wakes them by a tree.  A turn of the wheel, or a refill, may
 * free a queue on every CPU.  The CPU of the hook wakes WAKE_FAN of them at most,
 * and tells each of these which part of the rest it is to wake first.
 *
 *	64 queues, 600 ns for each interrupt: one CPU sends the last after 38 us.
 *	With the tree it sends 8 in 5 us, and the last CPU is woken after 10 us.
 *
 * wake_init() sets up no more than three words: mask[] is valid only where
 * summary has the word's bit.  So a hook that asks for nothing costs nothing.
 *
 * Locking: a struct wake is on its host's stack; no other CPU sees it.
 */
#ifndef MQFAIR_SCHED_WAKE_H
#define MQFAIR_SCHED_WAKE_H

#include "mt/queue_set.h"

enum {
	WAKE_FAN	= 8,	/* CPUs that one hook wakes by itself */
};

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

/*
 * Returns how many queues each CPU is to wake: its own, and the others on behalf of
 * the hook.  It is 1 for up to WAKE_FAN queues.
 */
static inline u32 wake_part(const struct wake *w)
{
	u64 left = w->summary;
	u32 nr = 0;

	for (; left; left &= left - 1)
		nr += port_count64(w->mask[port_ffs64(left)]);
	return nr > WAKE_FAN ? (nr + WAKE_FAN - 1) / WAKE_FAN : 1;
}

#endif /* MQFAIR_SCHED_WAKE_H */
