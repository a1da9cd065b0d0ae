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

/* Does the kernel ask @a before @b, under an ordered scheduler? */
static bool comes_first(const struct queue *a, const struct queue *b)
{
	if (a->urgent.head || b->urgent.head)
		return !b->urgent.head;
	if (a->passing.head || b->passing.head)
		return !b->passing.head;
	return vtime_min_tag(a->head_tag, b->head_tag) != b->head_tag;
}

/* Wakes a queue that waits for a tag of @t. */
static void tags_wake(struct host *h, struct host_tags *t)
{
	struct host_queue *next = NULL;
	u32 i;

	if (!t->waiting)
		return;
	for (i = 0; i < t->nr; i++) {
		u32 at = t->first + (t->turn + i) % t->nr;
		struct host_queue *hq = &h->queues[at];

		if (!hq->awaits_tag)
			continue;
		if (!next || comes_first(&hq->q, &next->q))
			next = hq;
		if (!h->params.ops->ordered)
			break;
	}
	t->turn = (u32)(next - h->queues) - t->first + 1;
	t->waiting--;
	next->awaits_tag = false;
	next->next_tag = true;
	t->promised++;
	host_queue_wake(next, h->params.wake_ns);
}

void driver_tags_settle(struct host_queue *hq)
{
	hq->tags->promised -= hq->next_tag;
	hq->next_tag = false;
	if (!host_queue_is_full(hq))
		tags_wake(hq->host, hq->tags);
	else if (!hq->blocked)
		tags_await(hq);
}

void driver_tags_return(struct host_queue *hq)
{
	struct host_tags *t = hq->tags;

	if (t->in_use + t->promised >= hq->host->params.tags)
		tags_wake(hq->host, t);
	t->in_use--;
}
