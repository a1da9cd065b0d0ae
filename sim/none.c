// SPDX-License-Identifier: GPL-2.0
/* No scheduler: see none.h.  The ios of a queue wait in queue.urgent. */
#include "none.h"

#include "sched/core/queue.h"

enum {
	TICK_NS	= FLOW_GRACE_NS / 2,
};

static int none_init(struct sched *s)
{
	(void)s;
	return 0;
}

static void none_exit(struct sched *s)
{
	(void)s;
}

/* The contract asks for charges, though nothing here depends on them. */
static void none_charge(struct io *io, u64 now, struct wake *wake)
{
	bool waits = !(io->flags & IO_URGENT);
	struct flow_start start;

	io->cost = cost_of(&io->flow->sched->params.cost, io->op, io->bytes);
	flow_charge(io->flow, io->cost, 0, waits, &start);
	io->pos = start.pos;
	io->flags |= IO_CHARGED;
	if (start.woke)
		wake_at(wake, now + TICK_NS);
}

static void none_insert(struct queue *q, struct io *io, u64 now,
			struct wake *wake)
{
	queue_inserted(q, io, now);
	/* IO_URGENT marks an io that flow.queued does not count. */
	if (io->flags & IO_CHARGED)
		io->flags |= IO_URGENT;
	else
		none_charge(io, now, wake);
	io_list_append(&q->urgent, io);
}

static void none_merge(struct queue *q, struct io *io, u32 bytes)
{
	u32 cost = cost_of(&q->sched->params.cost, io->op, bytes);

	if (cost > io->cost) {
		atomic64_add(cost - io->cost, &io->flow->pos);
		io->cost = cost;
	}
	io->bytes = bytes;
}

static enum dispatch_result none_dispatch(struct queue *q, u64 now,
					  struct io **out, struct wake *wake)
{
	(void)wake;
	queue_looked_at(q);
	if (!q->urgent.head) {
		queue_set_state(q, DISPATCH_EMPTY);
		return DISPATCH_EMPTY;
	}
	*out = io_list_take(&q->urgent);
	queue_dispatched(q, *out, now);
	if (!((*out)->flags & IO_URGENT))
		atomic64_dec(&(*out)->flow->queued);
	queue_set_state(q, DISPATCH_IO);
	return DISPATCH_IO;
}

static void none_block(struct queue *q, struct wake *wake)
{
	(void)q;
	(void)wake;
}

static void none_requeue(struct io *io, struct wake *wake)
{
	(void)wake;
	io_returned(io);
}

static void none_complete(struct io *io, u64 now, struct wake *wake)
{
	(void)now;
	none_requeue(io, wake);
}

static void none_tick(struct sched *s, u64 now, struct wake *wake)
{
	bool changed;

	if (flow_sweep(s, now, &changed))
		wake_at(wake, now + TICK_NS);
}

static void none_tune(struct sched *s, const struct sched_params *p,
		      struct wake *wake)
{
	(void)wake;
	if (p)
		s->params = *p;
}

static const struct tunable none_tunables[] = {
	{ }
};

const struct sched_ops none_ops = {
	.name		= "none",
	.tunables	= none_tunables,
	.init		= none_init,
	.exit		= none_exit,
	.insert		= none_insert,
	.merge		= none_merge,
	.dispatch	= none_dispatch,
	.block		= none_block,
	.complete	= none_complete,
	.requeue	= none_requeue,
	.tick		= none_tick,
	.tune		= none_tune,
};
