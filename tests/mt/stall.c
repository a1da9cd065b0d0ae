// SPDX-License-Identifier: GPL-2.0
#include "threads.h"
#include "stall.h"

void stall_check_waiting(const struct mqfq *m, const struct queue *q)
{
	u32 threshold = mqfq_params(&m->sched->params)->threshold;
	vtime_t vt = (vtime_t)atomic64_read(&m->vt);
	vtime_t due = q->head_tag - threshold;

	/* The queue has published its head tag. */
	threads_check(mindicator_tag(&m->tags, q->index) == q->head_tag);
	if (queue_set_has(&m->slots.ready, q->index)) {
		threads_check(token_total(&m->slots.tree) <= 0);
		return;
	}
	threads_check(q->state == DISPATCH_THROTTLED);
	if (!threshold) {
		threads_check(queue_set_has(&m->throttled, q->index));
		/* I4: a queue that holds virtual time back is woken. */
		threads_check(mindicator_holder(&m->tags) != q->index);
		return;
	}
	/* The wheel wakes it less than a bucket after it is due. */
	threads_check(wheel_has(&m->wheel, q->index, mqfq_queue_of(q)->bucket));
	threads_check(vtime_before(vt, due + (1ULL << m->wheel.shift)));
}

void stall_check_empty(const struct mqfq *m)
{
	u32 q, bucket;

	for (q = 0; q < m->sched->nr_queues; q++) {
		threads_check(m->sched->queue[q]->nr == 0);
		threads_check(!queue_set_has(&m->slots.ready, q));
		threads_check(!queue_set_has(&m->throttled, q));
		for (bucket = 0; bucket < WHEEL_BUCKETS; bucket++)
			threads_check(!wheel_has(&m->wheel, q, bucket));
	}
	threads_check(mindicator_min(&m->tags) == VTIME_NONE);
}
