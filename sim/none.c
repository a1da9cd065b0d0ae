// SPDX-License-Identifier: GPL-2.0
/* No scheduler: see none.h.  The ios of a queue wait in queue.urgent. */
#include "none.h"

#include "sched/core/engine.h"

int none_init(struct sched *s)
{
	(void)s;
	return 0;
}

void none_exit(struct sched *s)
{
	(void)s;
}

/* The contract asks for charges, though nothing here depends on them. */
static u32 cost_with(const struct io *io, u32 bytes)
{
	return cost_of(&io->flow->sched->params.cost, io->op, bytes);
}

/* An urgent io waits like the others, so none waits to be adopted (urgent.h). */
void none_insert(struct queue *q, struct io *io, u64 now, struct wake *wake)
{
	struct flow_start start;

	queue_inserted(q, io, now);
	/* IO_URGENT marks an io that flow.queued does not count. */
	if (io->flags & IO_CHARGED)
		io->flags |= IO_URGENT;
	else
		engine_charge(io, cost_with(io, io->bytes), 0,
			      !(io->flags & IO_URGENT), now, &start, wake);
	io_list_append(&q->urgent, io);
}

void none_merge(struct queue *q, struct io *io, u32 bytes)
{
	engine_grow(q, io, cost_with(io, bytes), bytes);
}

enum dispatch_result none_dispatch(struct queue *q, u64 now, struct io **out,
				   struct wake *wake)
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
	if (io_returned(io))
		queue_requeued(io);
}

static void none_complete(struct io *io, u64 now, struct wake *wake)
{
	(void)now;
	none_requeue(io, wake);
}

void none_tick(struct sched *s, u64 now, struct wake *wake)
{
	bool changed;

	if (flow_sweep(s, now, &changed))
		wake_at(wake, now + SWEEP_NS);
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
