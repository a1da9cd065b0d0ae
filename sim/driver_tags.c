// SPDX-License-Identifier: GPL-2.0
/* Which queue gets a driver tag that is free: see driver_tags.h. */
#include "driver_tags.h"
#include "host.h"

/* The queue is woken when a tag of its map is free. */
static void tags_await(struct host_queue *hq)
{
	hq->tags->waiting += !hq->awaits_tag;
	hq->awaits_tag = true;
}

/* Of two queues that wait for a tag, does the kernel ask @a before @b? */
static bool asked_first(const struct host_queue *a, const struct host_queue *b)
{
	if (!b || a->q.urgent.head || !a->host->params.ops->ordered)
		return !b || !b->q.urgent.head;
	return !b->q.urgent.head &&
	       vtime_min_tag(a->q.head_tag, b->q.head_tag) != b->q.head_tag;
}

/* Wakes a queue that waits for a tag of @t. */
static void tags_wake(struct host *h, struct host_tags *t)
{
	struct host_queue *next = NULL;
	bool ordered = h->params.ops->ordered;
	u32 i;

	if (!t->waiting)
		return;
	for (i = 0; i < t->nr; i++) {
		u32 at = t->first + (t->turn + i) % t->nr;
		struct host_queue *hq = &h->queues[at];

		if (!hq->awaits_tag)
			continue;
		if (asked_first(hq, next))
			next = hq;
		if (!ordered)
			break;
	}
	t->turn = (u32)(next - h->queues) - t->first + 1;
	t->waiting--;
	next->awaits_tag = false;
	host_queue_wake(next, h->params.wake_ns);
}

void driver_tags_settle(struct host_queue *hq)
{
	if (!host_queue_is_full(hq))
		tags_wake(hq->host, hq->tags);
	else if (!hq->blocked)
		tags_await(hq);
}

void driver_tags_return(struct host_queue *hq)
{
	if (host_queue_is_full(hq))
		tags_wake(hq->host, hq->tags);
	hq->tags->in_use--;
}
