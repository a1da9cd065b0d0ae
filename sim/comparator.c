// SPDX-License-Identifier: GPL-2.0
/* The parts that comparators share: see comparator.h. */
#include "comparator.h"

const struct sched_ops *const comparators[] = {
	&sfq_ops,
	&flashfq_ops,
	&bwf2q_ops,
	&cfq_ops,
	&mfap_ops,
	&stf_ops,
	&iocost_ops,
	&throttle_ops,
	NULL,
};

const struct sched_ops *comparator_find(const char *name)
{
	const struct sched_ops *const *p;

	for (p = comparators; *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	return NULL;
}

static u32 cost_with(const struct io *io, u32 bytes)
{
	return cost_of(&io->flow->sched->params.cost, io->op, bytes);
}

static void lane_append(struct queue *q, struct io *io)
{
	struct comparator_lane *l = flow_queue_own(io->flow, q->index);
	struct comparator_queue *cq = q->own;
	struct comparator_lane **last = &cq->lanes;

	if (!l->lane.fifo.head) {
		while (*last)
			last = &(*last)->next;
		*last = l;
		l->next = NULL;
	}
	io_list_append(&l->lane.fifo, io);
}

void comparator_insert(struct queue *q, struct io *io, vtime_t vt, u64 now,
		       struct wake *wake)
{
	struct flow_start start;

	queue_inserted(q, io, now);
	if (io->flags & IO_CHARGED)
		io->flags |= IO_URGENT;
	else
		engine_charge(io, cost_with(io, io->bytes), vt,
			      !(io->flags & IO_URGENT), now, &start, wake);
	if (io->flags & IO_URGENT)
		io_list_append(&q->urgent, io);
	else
		lane_append(q, io);
}

void comparator_merge(struct queue *q, struct io *io, u32 bytes)
{
	engine_grow(q, io, cost_with(io, bytes), bytes);
}

static struct io *lane_take(struct queue *q, struct comparator_lane *lane)
{
	struct comparator_queue *cq = q->own;
	struct comparator_lane **p = &cq->lanes;
	struct io *io = io_list_take(&lane->lane.fifo);

	atomic64_dec(&io->flow->queued);
	if (lane->lane.fifo.head)
		return io;
	while (*p != lane)
		p = &(*p)->next;
	*p = lane->next;
	return io;
}

struct io *comparator_take(struct queue *q, struct comparator_lane *lane,
			   u64 now)
{
	struct io *io = q->urgent.head ? engine_take_urgent(q) :
					 lane_take(q, lane);

	queue_dispatched(q, io, now);
	queue_set_state(q, DISPATCH_IO);
	return io;
}

enum dispatch_result comparator_give_up(struct queue *q,
					enum dispatch_result why)
{
	queue_set_state(q, why);
	return why;
}
