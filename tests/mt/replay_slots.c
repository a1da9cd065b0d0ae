// SPDX-License-Identifier: GPL-2.0
/*
 * Slots, with one or two processors that stop half-way.
 *
 * Each of three queues takes a slot, gives one back or wants none any more, while
 * the drive stops being paced or D changes.  Then the queues that were woken dispatch.  No queue may
 * wait while a slot is free that it is due.  No slot may be held on a drive that
 * is not paced.
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

struct op {
	enum { TAKE, PUT, LEAVE, OPEN, RESIZE, KINDS } kind;
	u32 queue, depth;
};

struct scenario {
	struct sched sched;
	struct queue queue[QUEUES];
	struct queue *index[QUEUES];
	struct slots slots;
	struct op history[HISTORY], op[OPS];
	u32 depth;		/* to begin with */
	bool parts, paces;
	u32 used[QUEUES];	/* slots of the requests of a queue */
	bool wants[QUEUES];	/* a request waits */
	u32 wakes;		/* mask of queues to run */
	atomic64_t paced_until;	/* full order, as open_drive() has */
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
	s->used[queue] += got;
	if (got)
		stop(s, queue, &wake);
	else if (s->parts)
		slots_hand_over(&s->slots, queue, &wake);
	act(s, &wake);
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

	if (!s->used[queue])
		return;
	wake_init(&wake);
	s->used[queue]--;
	slots_put(&s->slots, queue, &wake);
	act(s, &wake);
}

/* The drive stops being paced: see open_drive() in isolation.c. */
static void open_drive(struct scenario *s)
{
	struct wake wake;

	wake_init(&wake);
	WRITE_ONCE(s->sched.isolation.paces, false);
	(void)atomic64_xchg(&s->paced_until, 0);
	while (slots_held(&s->slots))
		slots_release(&s->slots, 0, &wake);
	act(s, &wake);
}

static void resize(struct scenario *s, u32 depth)
{
	struct wake wake;

	wake_init(&wake);
	slots_resize(&s->slots, depth, &wake);
	act(s, &wake);
}

static void run(struct scenario *s, const struct op *op)
{
	switch (op->kind) {
	case TAKE:
		take(s, op->queue);
		break;
	case PUT:
		put(s, op->queue);
		break;
	case LEAVE:
		leave(s, op->queue);
		break;
	case OPEN:
		open_drive(s);
		break;
	default:
		resize(s, op->depth);
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
		s->used[i] = 0;
		s->wants[i] = false;
	}
	s->sched.isolation.paces = false;
	threads_check(!slots_init(&s->slots, &s->sched, s->depth, s->parts));
	for (i = 0; i < HISTORY; i++) {
		run(s, &s->history[i]);
		follow_wakes(s);
	}
	s->sched.isolation.paces = s->paces;
	/* Each operation that puts a slot has one to put, if there are any. */
	for (i = 0; i < OPS; i++)
		if (s->op[i].kind == PUT && !s->wants[s->op[i].queue])
			take(s, s->op[i].queue);
}

/* Completions alone bring all requests out, at least one in each round. */
static void drain(struct scenario *s)
{
	u32 round, i;

	for (round = 0; round <= QUEUES; round++) {
		follow_wakes(s);
		for (i = 0; i < QUEUES; i++)
			while (s->used[i])
				put(s, i);
	}
	for (i = 0; i < QUEUES; i++)
		threads_check(!s->wants[i] && !s->used[i]);
}

static void check(void *arg)
{
	struct scenario *s = arg;
	s64 used = 0;
	u32 i;

	follow_wakes(s);
	for (i = 0; i < QUEUES; i++)
		used += s->used[i];
	threads_check(slots_used(&s->slots) == used);
	threads_check(s->sched.isolation.paces || !slots_held(&s->slots));
	/* All woken queues have run. */
	threads_check(!queue_set_any(&s->slots.woken, QUEUES));
	for (i = 0; i < QUEUES; i++) {
		threads_check(queue_set_has(&s->slots.ready, i) == s->wants[i]);
		threads_check(!slots_forgot(&s->slots, i));
	}
	open_drive(s);
	drain(s);
	slots_deinit(&s->slots);
}

static void draw(struct scenario *s, struct random *r)
{
	u32 i, resizes = 0, opens = 0, first = random_below(r, QUEUES);

	s->depth = 1 + random_below(r, 4);
	s->parts = random_once_in(r, 2);
	s->paces = random_once_in(r, 2);
	for (i = 0; i < HISTORY; i++)
		s->history[i] = (struct op){
			.kind = random_once_in(r, 3) ? PUT : TAKE,
			.queue = random_below(r, QUEUES),
		};
	for (i = 0; i < OPS; i++) {
		s->op[i] = (struct op){
			.kind = random_below(r, KINDS),
			.queue = (first + i) % QUEUES,
			.depth = 1 + random_below(r, 4),
		};
		/* One CPU at a time ends the pacing. */
		if ((s->op[i].kind == RESIZE && resizes++) ||
		    (s->op[i].kind == OPEN && opens++))
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
