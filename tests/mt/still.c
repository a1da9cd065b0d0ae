// SPDX-License-Identifier: GPL-2.0
#include "crew.h"
#include "still.h"

static bool in_mask(const atomic64_t *mask, u32 queue)
{
	return ((u64)atomic64_read(&mask[queue / 64]) >> (queue % 64)) & 1;
}

static bool in_bucket(const struct mqfq *m, u32 queue, u32 bucket)
{
	return in_mask(&m->wheel.mask[bucket * m->wheel.words], queue);
}

void still_check_waiting(const struct mqfq *m, const struct queue *q)
{
	u32 threshold = m->sched->params.threshold;
	vtime_t vt = (vtime_t)atomic64_read(&m->vt);
	vtime_t due = q->lead - threshold;

	/* It holds back virtual time. */
	crew_check(mindicator_lead(&m->leads, q->index) == q->lead);
	if (queue_set_has(&m->ready, q->index)) {
		crew_check(token_total(&m->slots) <= 0);
		return;
	}
	crew_check(q->state == VERDICT_THROTTLED);
	if (!threshold) {
		crew_check(queue_set_has(&m->held, q->index));
		/* I4: one by one, as each comes to hold back virtual time. */
		crew_check(mindicator_holder(&m->leads) != q->index);
		return;
	}
	/* Late by less than a bucket. */
	crew_check(in_bucket(m, q->index, q->bucket));
	crew_check(vtime_before(vt, due + (1ULL << m->wheel.shift)));
}

void still_check_empty(const struct mqfq *m)
{
	u32 q, bucket;

	for (q = 0; q < m->sched->nr_queues; q++) {
		crew_check(m->sched->queue[q]->nr == 0);
		crew_check(!queue_set_has(&m->ready, q));
		crew_check(!queue_set_has(&m->held, q));
		for (bucket = 0; bucket < WHEEL_BUCKETS; bucket++)
			crew_check(!in_bucket(m, q, bucket));
	}
	crew_check(mindicator_min(&m->leads) == VTIME_NONE);
}
