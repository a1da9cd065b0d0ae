// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel on threads.  A queue that parks is in a bucket that has not passed,
 * or it has been woken, or wheel_park() has returned that it is due.
 */
#include "threads.h"
#include "sched/mt/wheel.h"

enum {
	QUEUES		= 100,
	MEETINGS	= 3000,
	STEPS		= 8,		/* few: a full turn finds lost queues */
	SHIFT		= 7,
	SHIFT_MIN	= 5,
	SHIFT_MAX	= 9,
	SHIFT_SPAN	= SHIFT_MAX - SHIFT_MIN + 1,
};

struct parker {
	atomic64_t wakes;	/* A: calls of on_wake() */
	u64 parked, unparked;	/* counted by its member */
	vtime_t due;		/* when it was parked last */
	u32 bucket;
	bool in;		/* parked, as far as its member knows */
} __port_cacheline;

struct scenario {
	struct wheel wheel;
	atomic64_t vt;
	struct parker parker[QUEUES];
	u32 threads;
	bool shifting;		/* the first member changes the width */
	u64 woken;		/* sum of all wakes, at meetings */
	vtime_t seen;		/* the wheel turned to it, at any time */
};

static void on_wake(void *arg, u32 queue)
{
	struct scenario *s = arg;

	threads_check(queue < QUEUES);
	atomic64_inc(&s->parker[queue].wakes);
}

static bool bit_is_set(const struct scenario *s, u32 queue, u32 bucket)
{
	const struct wheel *w = &s->wheel;

	return wheel_has(w, queue, bucket);
}

static void check(void *arg)
{
	struct scenario *s = arg;
	vtime_t turned = (vtime_t)atomic64_read(&s->wheel.turned);
	vtime_t vt = (vtime_t)atomic64_read(&s->vt);
	u64 width = 1ULL << s->wheel.shift;
	u32 q, bucket;

	/* The wheel has turned up to virtual time, less than a width behind. */
	threads_check(!vtime_before(vt, turned));
	threads_check(vt - turned < (s->shifting ? 1 << SHIFT_MAX : width));
	for (q = 0; q < QUEUES; q++) {
		struct parker *p = &s->parker[q];
		u64 wakes = (u64)atomic64_read(&p->wakes);
		vtime_t start = (p->due + width - 1) & ~(width - 1);
		u32 set = 0;

		for (bucket = 0; bucket < WHEEL_BUCKETS; bucket++)
			set += bit_is_set(s, q, bucket);
		threads_check(set <= 1);
		if (set) {
			/* The bit is in its bucket, which has not passed. */
			threads_check(p->in && bit_is_set(s, q, p->bucket));
			threads_check(vtime_before(turned, start));
		}
		/* Each time it was parked, it was unparked or woken. */
		threads_check(p->unparked + wakes + set >= p->parked);
		s->woken += wakes;
	}
}

/* At any time the wheel turns forward, and never beyond virtual time. */
static void check_any_time(void *arg)
{
	struct scenario *s = arg;
	vtime_t turned = (vtime_t)atomic64_read(&s->wheel.turned);

	threads_check(!vtime_before(turned, s->seen));
	threads_check(!vtime_before((vtime_t)atomic64_read(&s->vt), turned));
	s->seen = turned;
}

static void park(struct scenario *s, u32 queue, struct random *r)
{
	struct parker *p = &s->parker[queue];
	u64 width = 1ULL << READ_ONCE(s->wheel.shift);
	vtime_t vt = (vtime_t)atomic64_read(&s->vt);
	u64 reach;

	if (p->in) {
		p->unparked += wheel_unpark(&s->wheel, queue, p->bucket);
		p->in = false;
		return;
	}
	/* Mostly it is due soon, where races are, sometimes beyond reach. */
	reach = random_once_in(r, 4) ? 40 * width : 2 * width;
	p->due = vt - width / 2 + random_next(r) % reach;
	p->in = wheel_park(&s->wheel, queue, p->due, &p->bucket);
	p->parked += p->in;
}

static void turn(struct scenario *s, struct random *r)
{
	u64 step = random_once_in(r, 50) ? 5000 : 100;
	vtime_t vt = (vtime_t)atomic64_add_return(random_below(r, (u32)step),
						  &s->vt);

	wheel_turn(&s->wheel, vt, on_wake, s);
}

static void work(struct member *me, void *arg)
{
	struct scenario *s = arg;
	u32 mine = (QUEUES - me->index + s->threads - 1) / s->threads;
	u32 meetings = threads_meetings(MEETINGS), steps = threads_steps(STEPS);
	u32 meeting, i;

	for (meeting = 0; meeting < meetings; meeting++) {
		for (i = 0; i < steps; i++) {
			if (random_once_in(&me->random, 4))
				turn(s, &me->random);
			else
				park(s,
				     me->index +
					     s->threads *
						     random_below(&me->random,
								  mine),
				     &me->random);
			if (s->shifting && me->index == 0 &&
			    random_once_in(&me->random, 3)) {
				wheel_set_shift(
					&s->wheel,
					SHIFT_MIN + random_below(&me->random,
								 SHIFT_SPAN));
				wheel_flush(&s->wheel, on_wake, s);
			}
		}
		threads_meet(me, check, s);
	}
}

static void run_scenario(struct random *r, bool shifting)
{
	struct scenario *s = port_zalloc(sizeof(*s));
	vtime_t vt = (vtime_t)-4000;

	threads_check(s);
	s->threads = threads_size();
	s->shifting = shifting;
	atomic64_set(&s->vt, (s64)vt);
	threads_check(!wheel_init(&s->wheel, QUEUES, SHIFT, vt));
	s->seen = (vtime_t)atomic64_read(&s->wheel.turned);
	threads_watch(check_any_time, s);
	threads_run(s->threads, r, work, s);
	threads_seen(s->woken, "queues that were woken");
	wheel_deinit(&s->wheel);
	port_free(s);
}

int main(void)
{
	struct random r = random_seeded("mt/wheel");
	u64 round;

	for (round = 0; round < random_rounds(2); round++) {
		run_scenario(&r, false);
		run_scenario(&r, true);
	}
	return 0;
}
