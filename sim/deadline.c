// SPDX-License-Identifier: GPL-2.0
/*
 * deadline - mq-deadline of Linux: reads before writes, in batches, oldest first
 *
 * There is one order for the whole drive, and no flow has a share of it.  Requests
 * go in batches of one direction, of at most fifo_batch requests.  A new batch has
 * reads while any wait.  After writes_starved batches of reads beside waiting
 * writes, one batch has writes.  In a batch the oldest request goes first.
 *
 *	fifo_batch 16, writes_starved 2, both directions always wait: 32 reads,
 *	16 writes, 32 reads ..: two reads for each write.
 *
 * Nothing limits the requests in the drive but the driver's tags.  While a tag
 * is free, a request goes at once, so the order decides nothing.
 *
 * Departures.  The kernel goes through a batch by place, and begins at the oldest
 * request if its deadline has passed.  Here the order is that of arrival, so
 * deadlines decide nothing: a flash drive has no arm, and nothing is merged.  A
 * request does not pass another one of its flow and CPU, whatever their
 * directions.  A queue that has found no driver tag is out of the order until it
 * gets one.  There are no I/O priorities, and writes may use all scheduler tags.
 *
 * Source: Documentation/block/deadline-iosched.rst, Linux 6.12, which has these
 * defaults.  Tested by tests/sim/sim_run.py.
 */
#include "comparators.h"

enum {
	/* The place of the direction that is not served, beyond any time. */
	OTHER_DIRECTION	= 62,
};

struct deadline_params {
	u32 fifo_batch, writes_starved;
};

struct deadline {
	struct engine engine;		/* first */
	bool writes;			/* the batch has writes */
	u32 sent;			/* requests of the batch so far */
	u32 starved;			/* batches of reads while writes wait */
};

static const struct deadline_params *params_of(const struct sched *s)
{
	return (const void *)s->params.own;
}

static bool is_write(const struct io *io)
{
	return io->op != IO_READ;
}

/* The place of @io in the order of all queues. */
static vtime_t tag_of(const struct io *io)
{
	const struct deadline *d = io->flow->sched->own;
	vtime_t other = is_write(io) != d->writes;

	/* Tags are even. */
	return (other << OTHER_DIRECTION) + (io->insert_ns << 1);
}

static const struct io *queue_first(const struct queue *q)
{
	const struct io *first = NULL;
	struct flow *f;

	comparator_each(q->sched, f)
	{
		const struct io *io = comparator_head(q, f);

		if (io && (!first || tag_of(io) < tag_of(first)))
			first = io;
	}
	return first;
}

static vtime_t deadline_tag(struct queue *q)
{
	const struct io *first = queue_first(q);

	return first ? tag_of(first) : VTIME_NONE;
}

/* Is a request of this direction the first of a lane? */
static bool waits(const struct sched *s, bool writes)
{
	struct flow *f;
	u32 i;

	comparator_each(s, f)
	{
		for (i = 0; i < s->nr_queues; i++) {
			const struct io *io = comparator_head(s->queue[i], f);

			if (io && is_write(io) == writes)
				return true;
		}
	}
	return false;
}

/* Chooses the direction of the next batch. */
static bool next_is_writes(struct sched *s)
{
	bool reads = waits(s, false), writes = waits(s, true);
	struct deadline *d = s->own;

	if (!writes || !reads)
		return writes;
	return d->starved++ >= params_of(s)->writes_starved;
}

/* The queues that have published a tag publish the present one. */
static void publish_all(struct sched *s)
{
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		if (s->queue[i]->head_tag != VTIME_NONE)
			WRITE_ONCE(s->queue[i]->head_tag,
				   deadline_tag(s->queue[i]));
}

static void begin_batch(struct sched *s)
{
	struct deadline *d = s->own;
	bool writes = next_is_writes(s);

	d->sent = 0;
	if (writes)
		d->starved = 0;
	if (writes == d->writes)
		return;
	d->writes = writes;
	publish_all(s);
}

static struct lane *deadline_next(struct queue *q)
{
	const struct deadline *d = q->sched->own;
	const struct io *first;

	if (d->sent >= params_of(q->sched)->fifo_batch ||
	    !waits(q->sched, d->writes))
		begin_batch(q->sched);
	first = queue_first(q);
	return first ? flow_queue_own(first->flow, q->index) : NULL;
}

static void deadline_pay(struct queue *q, struct lane *lane, u32 cost)
{
	struct deadline *d = q->sched->own;

	(void)lane;
	(void)cost;
	d->sent++;
}

static const struct engine_ops deadline_lanes = {
	.join	= comparator_join,
	.next	= deadline_next,
	.pay	= deadline_pay,
	.leave	= comparator_join,
	.tag	= deadline_tag,
};

static int deadline_init(struct sched *s)
{
	return engine_init(s, &deadline_lanes);
}

static const struct tunable deadline_tunables[] = {
	{ TUNABLE_U32("fifo_batch", struct deadline_params, fifo_batch, 1,
		      65536, 1, 16) },
	{ TUNABLE_U32("writes_starved", struct deadline_params, writes_starved,
		      0, 65536, 1, 2) },
	{ }
};

const struct sched_ops deadline_ops = {
	.name			= "mq-deadline",
	.tunables		= deadline_tunables,
	.params_bytes		= sizeof(struct deadline_params),
	.bytes			= sizeof(struct deadline),
	.flow_queue_bytes	= sizeof(struct lane),
	.ordered		= true,
	.unweighted		= true,
	.init			= deadline_init,
	.insert			= engine_insert,
	.dispatch		= engine_dispatch,
	.complete		= engine_complete,
	.requeue		= engine_requeue,
	.tick			= engine_tick,
	.tune			= engine_tune,
	COMPARATOR_HOOKS,
};
