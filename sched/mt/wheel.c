// SPDX-License-Identifier: GPL-2.0
#include "wheel.h"

static_assert((WHEEL_BUCKETS & (WHEEL_BUCKETS - 1)) == 0,
	      "a bucket's place must not depend on wrap-around");

int wheel_init(struct wheel *w, u32 nr_queues, u32 shift, vtime_t vt)
{
	w->nr_queues = nr_queues;
	w->groups = (nr_queues + WHEEL_GROUP - 1) / WHEEL_GROUP;
	w->shift = shift;
	w->mask = port_zalloc(sizeof(*w->mask) * WHEEL_BUCKETS * w->groups);
	if (!w->mask)
		return -ENOMEM;
	atomic64_set(&w->turned, (s64)(vt & ~(BIT_ULL(shift) - 1)));
	atomic64_set(&w->turns, 0);
	return 0;
}

void wheel_deinit(struct wheel *w)
{
	port_free(w->mask);
}

static u32 bucket_of(vtime_t start, u32 shift)
{
	return (u32)(start >> shift) % WHEEL_BUCKETS;
}

static atomic64_t *queue_word(const struct wheel *w, u32 queue, u32 bucket)
{
	return &w->mask[queue / WHEEL_GROUP * WHEEL_BUCKETS + bucket];
}

/* The start of the bucket for @due, or of the last bucket in reach. */
static vtime_t park_start(vtime_t turned, vtime_t due, u64 width)
{
	vtime_t start = (due + width - 1) & ~(width - 1);
	vtime_t last = (turned & ~(width - 1)) + (WHEEL_BUCKETS - 1) * width;

	return vtime_before(last, start) ? last : start;
}

bool wheel_park(struct wheel *w, u32 queue, vtime_t due, u32 *bucket)
{
	vtime_t turned, start;
	u32 shift, in;

	for (;;) {
		shift = READ_ONCE(w->shift);
		turned = (vtime_t)atomic64_read(&w->turned);
		start = park_start(turned, due, BIT_ULL(shift));
		if (!vtime_before(turned, start))
			return false;
		in = bucket_of(start, shift);
		(void)atomic64_fetch_or((s64)BIT_ULL(queue % WHEEL_GROUP),
					queue_word(w, queue, in));
		/*
		 * The fetch_or above is fully ordered.  Pairs with the swap in
		 * wheel_turn(), and with the flush after wheel_set_shift().
		 */
		turned = (vtime_t)atomic64_read(&w->turned);
		if (vtime_before(turned, start) && READ_ONCE(w->shift) == shift)
			break;
		(void)wheel_unpark(w, queue, in);
	}
	*bucket = in;
	return true;
}

bool wheel_has(const struct wheel *w, u32 queue, u32 bucket)
{
	return (u64)atomic64_read(queue_word(w, queue, bucket)) &
	       BIT_ULL(queue % WHEEL_GROUP);
}

bool wheel_unpark(struct wheel *w, u32 queue, u32 bucket)
{
	atomic64_t *word = queue_word(w, queue, bucket);
	u64 bit = BIT_ULL(queue % WHEEL_GROUP);

	/* Only the queue itself sets its bit, so a cleared bit stays clear. */
	if (!((u64)atomic64_read(word) & bit))
		return false;
	return (u64)atomic64_fetch_andnot((s64)bit, word) & bit;
}

static void group_empty(struct wheel *w, u32 bucket, u32 group,
			void (*wake)(void *arg, u32 queue), void *arg)
{
	u64 queues =
		(u64)atomic64_xchg(queue_word(w, group * WHEEL_GROUP, bucket),
				   0);

	for (; queues; queues &= queues - 1)
		wake(arg, group * WHEEL_GROUP + port_ffs64(queues));
}

static void bucket_empty(struct wheel *w, u32 bucket,
			 void (*wake)(void *arg, u32 queue), void *arg)
{
	u32 group;

	for (group = 0; group < w->groups; group++)
		if (atomic64_read(queue_word(w, group * WHEEL_GROUP, bucket)))
			group_empty(w, bucket, group, wake, arg);
}

bool wheel_turn(struct wheel *w, vtime_t vt, void (*wake)(void *arg, u32 queue),
		void *arg)
{
	u32 shift = READ_ONCE(w->shift);
	u64 width = BIT_ULL(shift), passed, i;
	vtime_t to = vt & ~(width - 1);
	s64 from = atomic64_read(&w->turned);

	do {
		if (!vtime_before((vtime_t)from, to))
			return false;
		/* Fully ordered.  Pairs with the fetch_or in wheel_park(). */
	} while (!atomic64_try_cmpxchg(&w->turned, &from, (s64)to));

	atomic64_inc(&w->turns);
	passed = (to - ((vtime_t)from & ~(width - 1))) >> shift;
	passed = min(passed, (u64)WHEEL_BUCKETS);
	for (i = 0; i < passed; i++)
		bucket_empty(w, bucket_of(to - (i << shift), shift), wake, arg);
	/* A queue parked by another width may be in any other bucket. */
	if (unlikely(READ_ONCE(w->shift) != shift))
		wheel_flush(w, wake, arg);
	return true;
}

void wheel_set_shift(struct wheel *w, u32 shift)
{
	WRITE_ONCE(w->shift, shift);
}

/*
 * Each word is exchanged without a look at it first.  The exchange orders the
 * caller's earlier changes before the emptying.  Pairs with the second look of
 * the parker, in wheel_park() and in the caller of wheel_park().
 */
void wheel_flush(struct wheel *w, void (*wake)(void *arg, u32 queue), void *arg)
{
	u32 bucket, group;

	for (bucket = 0; bucket < WHEEL_BUCKETS; bucket++)
		for (group = 0; group < w->groups; group++)
			group_empty(w, bucket, group, wake, arg);
}
