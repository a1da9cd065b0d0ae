/* SPDX-License-Identifier: GPL-2.0 */
/*
 * queue_set - a set of queues, one bit each
 *
 * Synchronisation
 *	          add  has  claim  find  drain
 *	any call   -    -     -     -      -
 *   -: these calls may run concurrently.
 *
 * Why no wake-up is lost.  The waiter adds its queue to the set and then looks
 * at its condition again.  The waker makes the condition true by a fully
 * ordered operation and then claims the waiter.  That operation pairs with
 * queue_set_add(), which is fully ordered as well.  So one of the two sees the
 * other: the waiter its condition, or the waker the waiter's bit.
 * If several wakers claim one member, one of them gets it.
 */
#ifndef MQFAIR_QUEUE_SET_H
#define MQFAIR_QUEUE_SET_H

#include "port.h"

enum {
	QUEUES_MAX	= 1024,
	QUEUE_WORDS	= QUEUES_MAX / 64,
};

struct queue_set {
	atomic64_t word[QUEUE_WORDS];
};

/* False if @queue was a member already. */
static inline bool queue_set_add(struct queue_set *s, u32 queue)
{
	s64 bit = (s64)BIT_ULL(queue % 64);

	return !(atomic64_fetch_or(bit, &s->word[queue / 64]) & bit);
}

static inline bool queue_set_has(const struct queue_set *s, u32 queue)
{
	return (u64)atomic64_read(&s->word[queue / 64]) & BIT_ULL(queue % 64);
}

/* Takes @queue out.  A caller that gets true has to wake that queue. */
static inline bool queue_set_claim(struct queue_set *s, u32 queue)
{
	s64 bit = (s64)BIT_ULL(queue % 64);

	return queue_set_has(s, queue) &&
	       (atomic64_fetch_andnot(bit, &s->word[queue / 64]) & bit);
}

/* First member in [first, last), or QUEUES_MAX. */
static inline u32 queue_set_find(const struct queue_set *s, u32 first, u32 last)
{
	u32 i, found;
	u64 bits;

	for (i = first / 64; i * 64 < last; i++) {
		bits = (u64)atomic64_read(&s->word[i]);
		if (i == first / 64)
			bits &= ~0ULL << (first % 64);
		if (!bits)
			continue;
		found = i * 64 + port_ffs64(bits);
		return found < last ? found : QUEUES_MAX;
	}
	return QUEUES_MAX;
}

/* Is there a member below @nr_queues?  A snapshot of each word. */
static inline bool queue_set_any(const struct queue_set *s, u32 nr_queues)
{
	u32 i;

	for (i = 0; i * 64 < nr_queues; i++)
		if (atomic64_read(&s->word[i]))
			return true;
	return false;
}

/* The number of members below @nr_queues. */
static inline u32 queue_set_count(const struct queue_set *s, u32 nr_queues)
{
	u32 i, n = 0;

	for (i = 0; i * 64 < nr_queues; i++)
		n += port_count64((u64)atomic64_read(&s->word[i]));
	return n;
}

/* Takes all members below @nr_queues out and calls @taken for each. */
static inline void queue_set_drain(struct queue_set *s, u32 nr_queues,
				   void (*taken)(void *arg, u32 queue),
				   void *arg)
{
	u32 i;
	u64 bits;

	for (i = 0; i * 64 < nr_queues; i++)
		for (bits = (u64)atomic64_xchg(&s->word[i], 0); bits;
		     bits &= bits - 1)
			taken(arg, i * 64 + port_ffs64(bits));
}

#endif /* MQFAIR_QUEUE_SET_H */
