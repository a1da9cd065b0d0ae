// SPDX-License-Identifier: GPL-2.0
/*
 * mqfq, with one or two processors that stop half-way through a hook.
 *
 * A random history of whole operations makes the scenario.  Then three more
 * operations are interleaved in every way that replay.h knows.  After that the
 * queues that they woke are run.  No queue may wait without a reason then, and
 * completions must bring all requests out.
 */
#include "threads.h"
#include "sched/core/policies.h"
#include "replay.h"
#include "stall.h"

#include <string.h>

enum {
	QUEUES	= 4,
	FLOWS	= 3,
	IOS	= 64,
	OPS	= 3,
	HISTORY	= 40,		/* operations that make a scenario */
	FRESH	= 4,		/* the last ones: their wakes are under way */
};

/* Two sockets of two cores: the trees have every level. */
static const struct topo_place square[QUEUES] = { { 0, 0 }, { 1, 0 },
						  { 2, 1 }, { 3, 1 } };

struct op {
	enum { RUN, INSERT, FINISH, BLOCK, UNBLOCK, RESHARE, TUNE } kind;
	u32 queue, flow, bytes, pick;
	bool passes;		/* INSERT: for isolation */
	struct sched_params params;
};

struct scenario {
	struct sched sched;
	struct queue queue[QUEUES];
	struct queue *index[QUEUES];
	struct flow *root, *flow[FLOWS];
	struct io io[IOS];
	struct io *flight[IOS];
	u32 nr_ios, nr_flight, done;
	u32 wakes;			/* mask of queues to run */
	u32 blocked;			/* mask */
	struct sched_params params;	/* to begin with */
	struct op history[HISTORY];
	struct op op[OPS];
	vtime_t seen;
};

static bool always(const struct queue *q)
{
	(void)q;
	return true;
}

static struct mqfq *mqfq_of(struct scenario *s)
{
	return s->sched.own;
}

static bool is_blocked(const struct scenario *s, u32 queue)
{
	return s->blocked & (1U << queue);
}

/* Records the wakes, which are followed after all interleaved operations. */
static void act(struct scenario *s, struct wake *wake)
{
	vtime_t vt = (vtime_t)atomic64_read(&mqfq_of(s)->vt);
	u32 queue;

	while ((queue = wake_next(wake)) != QUEUES_MAX)
		s->wakes |= 1U << queue;
	if (wake->pinned_by < QUEUES && is_blocked(s, wake->pinned_by))
		s->wakes |= 1U << wake->pinned_by;
	threads_check(!vtime_before(vt, s->seen));
	s->seen = vt;
}

static void dispatch(struct scenario *s, u32 queue, struct wake *wake)
{
	const struct sched_ops *ops = s->sched.ops;
	struct io *io;

	if (is_blocked(s, queue)) {
		ops->block(&s->queue[queue], wake);
		return;
	}
	while (ops->dispatch(&s->queue[queue], 0, &io, wake) == DISPATCH_IO)
		s->flight[s->nr_flight++] = io;
}

static void run_queue(struct scenario *s, u32 queue)
{
	struct wake wake;

	wake_init(&wake);
	dispatch(s, queue, &wake);
	act(s, &wake);
}

/* Returns @n new ios of @op, by io.next. */
static struct io *new_ios(struct scenario *s, const struct op *op, u32 n)
{
	struct io *first = NULL;

	while (n--) {
		struct io *io = &s->io[s->nr_ios++];

		*io = (struct io){ .flow = s->flow[op->flow],
				   .bytes = op->bytes,
				   .next = first };
		first = io;
	}
	return first;
}

/* The scheduler sends the ios at once, if it may, as a host has it do. */
static void insert(struct scenario *s, const struct op *op)
{
	const struct sched_ops *ops = s->sched.ops;
	struct queue *q = &s->queue[op->queue];
	u32 n = min(1 + op->pick % 3, IOS - s->nr_ios);
	struct flow *f = s->flow[op->flow];
	struct io *io, *next;
	struct wake wake;
	bool sent;

	if (!n)
		return;
	io = new_ios(s, op, n);
	wake_init(&wake);
	WRITE_ONCE(f->isolation.pass_until, op->passes ? UINT64_MAX : 0);
	sent = !is_blocked(s, op->queue) && ops->send(q, io, n, 0, &wake);
	for (; io; io = next) {
		next = io->next;
		if (sent)
			s->flight[s->nr_flight++] = io;
		else
			ops->insert(q, io, 0, &wake);
	}
	dispatch(s, op->queue, &wake);
	act(s, &wake);
}

static void finish(struct scenario *s, u32 pick)
{
	struct wake wake;
	struct io *io;

	if (!s->nr_flight)
		return;
	pick %= s->nr_flight;
	io = s->flight[pick];
	s->flight[pick] = s->flight[--s->nr_flight];
	s->done++;
	wake_init(&wake);
	s->sched.ops->complete(io, 0, &wake);
	act(s, &wake);
}

static void tune(struct scenario *s, const struct sched_params *params)
{
	struct wake wake;

	wake_init(&wake);
	s->sched.ops->tune(&s->sched, params, &wake);
	act(s, &wake);
}

static void run(struct scenario *s, const struct op *op)
{
	switch (op->kind) {
	case RUN:
		run_queue(s, op->queue);
		break;
	case INSERT:
		insert(s, op);
		break;
	case FINISH:
		finish(s, op->pick);
		break;
	case BLOCK:
		s->blocked |= 1U << op->queue;
		run_queue(s, op->queue);
		break;
	case UNBLOCK:
		s->blocked &= ~(1U << op->queue);
		run_queue(s, op->queue);
		break;
	case RESHARE:
		flow_set_weight(s->flow[op->flow], 1 + op->pick);
		tune(s, NULL);
		break;
	default:
		tune(s, &op->params);
	}
}

static void follow_wakes(struct scenario *s)
{
	while (s->wakes) {
		u32 queue = port_ffs64(s->wakes);

		s->wakes &= s->wakes - 1;
		run_queue(s, queue);
	}
}

static void run_op(void *arg, u32 i)
{
	struct scenario *s = arg;

	run(s, &s->op[i]);
}

static void check_stalled(struct scenario *s)
{
	u32 q, in_use = 0;

	for (q = 0; q < s->nr_flight; q++)
		in_use += !!(s->flight[q]->flags & IO_SLOT);
	threads_check(token_total(&mqfq_of(s)->slots.tree) + in_use ==
		      s->sched.params.depth);
	for (q = 0; q < QUEUES; q++)
		if (s->queue[q].nr && !is_blocked(s, q))
			stall_check_waiting(mqfq_of(s), &s->queue[q]);
}

static struct flow *flow_create(struct scenario *s, struct flow *parent,
				u32 weight)
{
	struct flow *f = port_zalloc(flow_size(s->sched.ops, QUEUES));

	threads_check(f);
	flow_init(f, &s->sched, parent, weight);
	return f;
}

static void reset(void *arg)
{
	struct scenario *s = arg;
	u32 i;

	s->sched = (struct sched){ .queue = s->index, .nr_queues = QUEUES };
	for (i = 0; i < QUEUES; i++) {
		queue_init(&s->queue[i], &s->sched, i);
		s->index[i] = &s->queue[i];
	}
	threads_check(!sched_init(&s->sched, sched_find("mqfq"), &s->params,
				  square));
	s->root = flow_create(s, NULL, WEIGHT_DEFAULT);
	for (i = 0; i < FLOWS; i++)
		s->flow[i] = flow_create(s, s->root, 100 << i);
	s->nr_ios = 0;
	s->nr_flight = 0;
	s->done = 0;
	s->blocked = 0;
	s->wakes = 0;
	s->seen = (vtime_t)atomic64_read(&mqfq_of(s)->vt);
	for (i = 0; i < HISTORY; i++) {
		run(s, &s->history[i]);
		if (i < HISTORY - FRESH)
			follow_wakes(s);
	}
}

static void check(void *arg)
{
	struct scenario *s = arg;
	u32 i;

	follow_wakes(s);
	check_stalled(s);
	for (i = 0; i < QUEUES; i++) {
		s->blocked &= ~(1U << i);
		run_queue(s, i);
	}
	follow_wakes(s);
	check_stalled(s);
	while (s->nr_flight) {
		finish(s, 0);
		follow_wakes(s);
	}
	threads_check(s->done == s->nr_ios);
	stall_check_empty(mqfq_of(s));
	for (i = 0; i < FLOWS; i++) {
		flow_exit(s->flow[i]);
		port_free(s->flow[i]);
	}
	flow_exit(s->root);
	port_free(s->root);
	sched_exit(&s->sched);
}

static struct sched_params random_params(struct random *r)
{
	static const u32 thresholds[] = { 0, 0, 4096, 16384, 65536 };
	struct sched_params p = { .depth = 1 + random_below(r, 4) };

	mqfq_params(&p)->threshold =
		thresholds[random_below(r, ARRAY_SIZE(thresholds))];
	return p;
}

static struct op random_op(struct random *r)
{
	static const u32 kinds[] = { RUN,     RUN,     INSERT,	INSERT, INSERT,
				     INSERT,  FINISH,  FINISH,	FINISH, BLOCK,
				     UNBLOCK, RESHARE, RESHARE, TUNE };

	return (struct op){
		.kind = kinds[random_below(r, ARRAY_SIZE(kinds))],
		.queue = random_below(r, QUEUES),
		.flow = random_below(r, FLOWS),
		.bytes = random_once_in(r, 4) ? 65536 : 4096,
		.passes = random_once_in(r, 3),
		.pick = random_below(r, IOS),
		.params = random_params(r),
	};
}

static void draw(struct scenario *s, struct random *r)
{
	u32 i, tunes = 0, first = random_below(r, QUEUES);

	s->params = random_params(r);
	for (i = 0; i < HISTORY; i++) {
		s->history[i] = random_op(r);
		/* Requests must remain, or there is no queue to forget. */
		if (s->history[i].kind == TUNE)
			s->history[i].kind = INSERT;
	}
	for (i = 0; i < OPS; i++) {
		s->op[i] = random_op(r);
		/* Each has a queue lock to itself; tuning is serialised. */
		s->op[i].queue = (first + i) % QUEUES;
		if (s->op[i].kind == TUNE && tunes++)
			s->op[i].kind = FINISH;
	}
}

int main(void)
{
	struct random r = random_seeded("mt/replay_mqfq");
	static struct scenario s;
	struct replay two = { reset, run_op, 2, check, &s };
	struct replay three = { reset, run_op, 3, check, &s };
	u64 i, runs = 0;

	port_queue_is_mine = always;
	for (i = 0; i < random_rounds(200); i++) {
		draw(&s, &r);
		runs += replay_all(i % 10 ? &two : &three);
	}
	printf("replayed %llu interleavings of mqfq\n", runs);
	return 0;
}
