// SPDX-License-Identifier: GPL-2.0
/* The wheel, with a parker, a turner or a flusher that stops half-way. */
#include "threads.h"
#include "replay.h"
#include "sched/mt/wheel.h"

enum {
	SHIFT	= 7,
	OPS	= 3,
};

/* One of the three operations. */
struct op {
	enum { PARK, UNPARK, TURN, RESHIFT, KINDS } kind;
	u32 queue;
	vtime_t vt;		/* due, or where to turn to */
	u32 shift;
};

struct scenario {
	struct wheel wheel;
	struct op op[OPS];
	vtime_t start;
	vtime_t vt;		/* of the furthest turn */
	bool in[OPS];		/* by queue: parked, as far as it knows */
	bool woken[OPS];	/* since it was parked */
	u32 bucket[OPS];
	vtime_t due[OPS];
};

static void on_wake(void *arg, u32 queue)
{
	struct scenario *s = arg;

	s->woken[queue] = true;
}

static void park(struct scenario *s, u32 queue, vtime_t due)
{
	s->woken[queue] = false;
	s->due[queue] = due;
	s->in[queue] = wheel_park(&s->wheel, queue, due, &s->bucket[queue]);
}

static void turn(struct scenario *s, vtime_t vt)
{
	s->vt = vtime_max(s->vt, vt);
	wheel_turn(&s->wheel, vt, on_wake, s);
}

static void run(struct scenario *s, const struct op *op)
{
	switch (op->kind) {
	case PARK:
		park(s, op->queue, op->vt);
		break;
	case UNPARK:
		if (s->in[op->queue])
			wheel_unpark(&s->wheel, op->queue,
				     s->bucket[op->queue]);
		s->in[op->queue] = false;
		break;
	case TURN:
		turn(s, op->vt);
		break;
	default:
		wheel_set_shift(&s->wheel, op->shift);
		wheel_flush(&s->wheel, on_wake, s);
	}
}

static void run_op(void *arg, u32 i)
{
	struct scenario *s = arg;

	run(s, &s->op[i]);
}

static void reset(void *arg)
{
	struct scenario *s = arg;
	u32 q;

	wheel_set_shift(&s->wheel, SHIFT);
	wheel_flush(&s->wheel, on_wake, s);
	atomic64_set(&s->wheel.turned, (s64)s->start);
	s->vt = s->start;
	for (q = 0; q < OPS; q++) {
		s->in[q] = false;
		/* Only a parked queue can be unparked. */
		if (s->op[q].kind == UNPARK)
			park(s, s->op[q].queue, s->op[q].vt);
	}
}

/* A queue that is parked and was not woken is due after virtual time. */
static void check(void *arg)
{
	struct scenario *s = arg;
	u64 width = 1ULL << s->wheel.shift;
	u32 q;

	/* No operation is half-way now: turn the wheel to virtual time. */
	wheel_turn(&s->wheel, s->vt, on_wake, s);
	for (q = 0; q < OPS; q++)
		if (s->in[q] && !s->woken[q])
			threads_check(vtime_before(s->vt,
						   s->due[q] + width - 1));
	for (q = 0; q < OPS; q++)
		if (s->in[q] && !s->woken[q])
			threads_check(wheel_unpark(&s->wheel, q, s->bucket[q]));
}

static void draw(struct scenario *s, struct random *r, u32 i)
{
	u64 reach = random_once_in(r, 3) ? 40 << SHIFT : 3 << SHIFT;

	s->op[i] = (struct op){
		.kind = random_below(r, KINDS),
		.queue = i,
		.vt = s->start + random_next(r) % reach,
		.shift = SHIFT - 2 + random_below(r, 5),
	};
	/* Changing the width is serialised by its caller. */
	if (s->op[i].kind == RESHIFT && i && s->op[i - 1].kind == RESHIFT)
		s->op[i].kind = TURN;
	if (s->op[i].kind == RESHIFT && i == 2 && s->op[0].kind == RESHIFT)
		s->op[i].kind = PARK;
}

int main(void)
{
	struct random r = random_seeded("mt/replay_wheel");
	struct scenario s = { .start = (vtime_t) - (10 << SHIFT) };
	struct replay replay = { reset, run_op, 3, check, &s };
	u64 i, runs = 0;
	u32 j;

	threads_check(!wheel_init(&s.wheel, OPS, SHIFT, s.start));
	for (i = 0; i < random_rounds(3000); i++) {
		for (j = 0; j < OPS; j++)
			draw(&s, &r, j);
		runs += replay_all(&replay);
	}
	printf("replayed %llu interleavings of the wheel\n", runs);
	wheel_deinit(&s.wheel);
	return 0;
}
