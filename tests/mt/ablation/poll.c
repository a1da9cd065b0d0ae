// SPDX-License-Identifier: GPL-2.0
/*
 * The interface of the wheel without a wheel: it never wakes a queue.  A
 * throttled queue looks again by itself (poll= of the benchmark).
 *
 * It is for comparison, as in Hedayati et al., Multi-Queue Fair Queueing, ATC
 * 2019, figure 10.
 */
#include "sched/mt/wheel.h"

int wheel_init(struct wheel *w, u32 nr_queues, u32 shift, vtime_t vt)
{
	*w = (struct wheel){ .nr_queues = nr_queues, .shift = shift };
	(void)vt;
	return 0;
}

void wheel_deinit(struct wheel *w)
{
	(void)w;
}

bool wheel_park(struct wheel *w, u32 queue, vtime_t due, u32 *bucket)
{
	(void)w;
	(void)queue;
	(void)due;
	*bucket = 0;
	return true;
}

/* So a throttled queue looks at virtual time again whenever it is asked. */
bool wheel_has(const struct wheel *w, u32 queue, u32 bucket)
{
	(void)w;
	(void)queue;
	(void)bucket;
	return false;
}

bool wheel_unpark(struct wheel *w, u32 queue, u32 bucket)
{
	(void)w;
	(void)queue;
	(void)bucket;
	return true;
}

bool wheel_turn(struct wheel *w, vtime_t vt, void (*wake)(void *arg, u32 queue),
		void *arg)
{
	(void)w;
	(void)vt;
	(void)wake;
	(void)arg;
	return false;
}

void wheel_set_shift(struct wheel *w, u32 shift)
{
	w->shift = shift;
}

void wheel_flush(struct wheel *w, void (*wake)(void *arg, u32 queue), void *arg)
{
	(void)w;
	(void)wake;
	(void)arg;
}
