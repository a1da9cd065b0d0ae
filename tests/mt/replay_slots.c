// SPDX-License-Identifier: GPL-2.0
/*
 * Slots, with one or two processors that stop half-way.
 *
 * Each of three queues takes a slot, gives one back or wants none any more, while
 * D or the limit changes, or a term of the leases ends.  Then the queues that were
 * woken dispatch.  No queue may wait while a slot is free that it is due, and each
 * slot comes back once.
 */
#include "threads.h"
#include "replay.h"
#include "sched/core/queue.h"
#include "sched/core/slots.h"

enum {
	QUEUES	= 4,
	OPS	= 3,
	HISTORY	= 12,		/* operations that make a scenario */
};

/* Two sockets of two cores: the tree has every level. */
static const struct topo_place square[QUEUES] = { { 0, 0 }, { 1, 0 },
						  { 2, 1 }, { 3, 1 } };

enum op_kind {
	TAKE,
	BORROW,
	PUT,
	LEAVE,
	RESIZE,
	LIMIT,
	TERM,
	KINDS,
};

struct op {
	enum op_kind kind;
	u32 queue, depth;
};

struct scenario {
	struct sched sched;
	struct queue queue[QUEUES];
	struct queue *index[QUEUES];
	struct slots slots;
	struct op history[HISTORY], op[OPS];
	u32 depth;		/* to begin with */
	bool parts, leaves, full;
	bool polls[QUEUES];	/* the requests of the queue are polled */
	u32 sent[QUEUES];	/* requests of the queue in the drive */
	bool wants[QUEUES];	/* a request waits */
	bool first[QUEUES];	/* and goes first */
	u32 wakes;		/* mask of queues to run */
};

static void act(struct scenario *s, struct wake *wake)
{
	u32 queue;

	while ((queue = wake_next(wake)) != QUEUES_MAX)
		s->wakes |= 1U << queue;
}

static bool gets_slot(struct scenario *s, u32 queue)
{
	if (!s->parts)
		return slots_try(&s->slots, queue) ||
		       slots_wait(&s->slots, queue);
	/* Half of the schedulers with parts leave the set first. */
	if (s->leaves)
		slots_withdraw(&s->slots, queue);
	return slots_take(&s->slots, queue);
}

/* A queue dispatches no more: slots_leave() is for schedulers without parts. */
static void stop(struct scenario *s, u32 queue, struct wake *wake)
{
	if (!s->parts) {
		slots_leave(&s->slots, queue, wake);
		return;
	}
	slots_withdraw(&s->slots, queue);
	slots_hand_over(&s->slots, queue, wake);
}

/* A queue dispatches its request if it gets a slot. */
static void take(struct scenario *s, u32 queue)
{
	bool got = gets_slot(s, queue);
	struct wake wake;

	wake_init(&wake);
	s->wants[queue] = !got;
	s->sent[queue] += got;
	if (got && s->polls[queue])
		slots_lease(&s->slots, queue);
	if (got)
		stop(s, queue, &wake);
	else
		slots_rank(&s->slots, queue, s->first[queue]);
	if (!got && s->parts)
		slots_hand_over(&s->slots, queue, &wake);
	act(s, &wake);
}

/* A request passes.  The queue may wait for another one, and goes on to do so. */
static void borrow(struct scenario *s, u32 queue)
{
	if (!slots_borrow(&s->slots, queue))
		return;
	s->sent[queue]++;
	if (s->polls[queue])
		slots_lease(&s->slots, queue);
}

static void leave(struct scenario *s, u32 queue)
{
	struct wake wake;

	wake_init(&wake);
	s->wants[queue] = false;
	stop(s, queue, &wake);
	act(s, &wake);
}

static void put(struct scenario *s, u32 queue)
{
	struct wake wake;

	if (!s->sent[queue])
		return;
	wake_init(&wake);
	s->sent[queue]--;
	if (!s->polls[queue] || slots_end_lease(&s->slots, queue))
		slots_put(&s->slots, queue, &wake);
	act(s, &wake);
}

static void end_term(struct scenario *s)
{
	struct wake wake;

	wake_init(&wake);
	slots_end_term(&s->slots, &wake);
	act(s, &wake);
}

static void resize(struct scenario *s, u32 depth)
{
	struct wake wake;

	wake_init(&wake);
	slots_resize(&s->slots, depth, &wake);
	act(s, &wake);
}

static void set_limit(struct scenario *s, u32 limit)
{
	struct wake wake;

	wake_init(&wake);
	slots_limit(&s->slots, limit, &wake);
	act(s, &wake);
}

static void run(struct scenario *s, const struct op *op)
{
	switch (op->kind) {
	case TAKE:
		take(s, op->queue);
		break;
	case BORROW:
		borrow(s, op->queue);
		break;
	case PUT:
		put(s, op->queue);
		break;
	case LEAVE:
		leave(s, op->queue);
		break;
	case RESIZE:
		resize(s, op->depth);
		break;
	case LIMIT:
		set_limit(s, op->depth);
		break;
	default:
		end_term(s);
	}
}

static void run_op(void *arg, u32 i)
{
	struct scenario *s = arg;

	run(s, &s->op[i]);
}

static void follow_wakes(struct scenario *s)
{
	while (s->wakes) {
		u32 queue = port_ffs64(s->wakes);

		s->wakes &= s->wakes - 1;
		if (s->wants[queue])
			take(s, queue);
		else
			leave(s, queue);
	}
}

static void reset(void *arg)
{
	struct scenario *s = arg;
	u32 i;

	s->wakes = 0;
	for (i = 0; i < QUEUES; i++) {
		s->sent[i] = 0;
		s->wants[i] = false;
	}
	threads_check(!slots_init(&s->slots, &s->sched, s->depth, s->parts));
	for (i = 0; i < HISTORY; i++) {
		run(s, &s->history[i]);
		follow_wakes(s);
	}
	/* Each operation that puts a slot has one to put, if there are any. */
	for (i = 0; i < OPS; i++)
		if (s->op[i].kind == PUT && !s->wants[s->op[i].queue])
			take(s, s->op[i].queue);
	/* Half of the time, one that leaves has a request that waits. */
	for (i = 0; i < OPS && s->full; i++)
		while (s->op[i].kind == LEAVE && !s->wants[s->op[i].queue])
			take(s, s->op[i].queue);
}

/* Completions alone bring all requests out, at least one in each round. */
static void drain(struct scenario *s)
{
	u32 round, i;

	for (round = 0; round <= QUEUES; round++) {
		follow_wakes(s);
		for (i = 0; i < QUEUES; i++)
			while (s->sent[i])
				put(s, i);
	}
	for (i = 0; i < QUEUES; i++)
		threads_check(!s->wants[i] && !s->sent[i]);
}

static void check(void *arg)
{
	struct scenario *s = arg;
	s64 used = 0, polled = 0;
	u32 i;

	follow_wakes(s);
	for (i = 0; i < QUEUES; i++)
		if (s->polls[i])
			polled += s->sent[i];
		else
			used += s->sent[i];
	threads_check(slots_leased(&s->slots) <= polled);
	threads_check(slots_used(&s->slots) == used + slots_leased(&s->slots));
	for (i = 0; i < QUEUES; i++) {
		threads_check(queue_set_has(&s->slots.ready, i) == s->wants[i]);
		threads_check(!slots_forgot(&s->slots, i));
	}
	drain(s);
	slots_deinit(&s->slots);
}

static enum op_kind draw_past(struct random *r)
{
	if (random_once_in(r, 8))
		return TERM;
	return random_once_in(r, 3) ? PUT : TAKE;
}

/* Mostly an operation of a queue. */
static enum op_kind draw_kind(struct random *r)
{
	return random_below(r, random_once_in(r, 3) ? KINDS : LEAVE + 1);
}

static void draw(struct scenario *s, struct random *r)
{
	u32 i, seen[KINDS] = { 0 }, first = random_below(r, QUEUES);

	s->depth = 1 + random_below(r, 4);
	s->parts = random_once_in(r, 2);
	s->leaves = random_once_in(r, 2);
	s->full = random_once_in(r, 2);
	for (i = 0; i < QUEUES; i++) {
		s->polls[i] = random_once_in(r, 3);
		s->first[i] = random_once_in(r, 3);
	}
	for (i = 0; i < HISTORY; i++)
		s->history[i] = (struct op){
			.kind = draw_past(r),
			.queue = random_below(r, QUEUES),
		};
	for (i = 0; i < OPS; i++) {
		s->op[i] = (struct op){
			.kind = draw_kind(r),
			.queue = (first + i) % QUEUES,
			.depth = 1 + random_below(r, 4),
		};
		/* One CPU at a time ends a term, and tunes D. */
		if (seen[s->op[i].kind]++ && s->op[i].kind >= RESIZE)
			s->op[i].kind = PUT;
	}
}

int main(void)
{
	struct random r = random_seeded("mt/replay_slots");
	static struct scenario s;
	struct replay two = { reset, run_op, 2, check, &s };
	struct replay three = { reset, run_op, 3, check, &s };
	u64 i, runs = 0;

	s.sched = (struct sched){ .queue = s.index, .nr_queues = QUEUES };
	for (i = 0; i < QUEUES; i++) {
		queue_init(&s.queue[i], &s.sched, (u32)i);
		s.index[i] = &s.queue[i];
	}
	threads_check(!topology_init(&s.sched.topo, square, QUEUES));
	for (i = 0; i < random_rounds(200); i++) {
		draw(&s, &r);
		runs += replay_all(i % 4 ? &three : &two);
	}
	printf("replayed %llu interleavings of slots\n", runs);
	topology_deinit(&s.sched.topo);
	return 0;
}
