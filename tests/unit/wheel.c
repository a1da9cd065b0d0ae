// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "sched/mt/wheel.h"

enum {
	QUEUES	= 130,		/* nine groups, the last one nearly empty */
};

/* The model: the virtual time at which each queue is to be woken. */
struct model {
	struct wheel wheel;
	vtime_t turned;
	vtime_t wake_at[QUEUES];
	u32 bucket[QUEUES];
	bool parked[QUEUES];
	bool woken[QUEUES];
};

static u64 width(const struct model *w)
{
	return 1ULL << w->wheel.shift;
}

static vtime_t round_down(const struct model *w, vtime_t vt)
{
	return vt & ~(width(w) - 1);
}

static void on_wake(void *arg, u32 queue)
{
	struct model *w = arg;

	assert_true(queue < QUEUES);
	assert_true(w->parked[queue]);
	assert_false(w->woken[queue]);
	w->woken[queue] = true;
}

static void park(struct model *w, u32 queue, vtime_t due)
{
	vtime_t at = round_down(w, due + width(w) - 1);
	vtime_t last =
		round_down(w, w->turned) + (WHEEL_BUCKETS - 1) * width(w);
	bool later = vtime_before(w->turned, at);

	if (w->parked[queue])
		return;
	assert_int_equal(wheel_park(&w->wheel, queue, due, &w->bucket[queue]),
			 later);
	if (!later)
		return;
	w->parked[queue] = true;
	w->wake_at[queue] = vtime_before(last, at) ? last : at;
}

static void unpark(struct model *w, u32 queue)
{
	if (!w->parked[queue])
		return;
	assert_true(wheel_unpark(&w->wheel, queue, w->bucket[queue]));
	assert_false(wheel_unpark(&w->wheel, queue, w->bucket[queue]));
	w->parked[queue] = false;
}

static void turn(struct model *w, vtime_t vt)
{
	bool moves = vtime_before(w->turned, round_down(w, vt));
	u32 q;

	assert_int_equal(wheel_turn(&w->wheel, vt, on_wake, w), moves);
	if (moves)
		w->turned = round_down(w, vt);
	for (q = 0; q < QUEUES; q++) {
		bool due = w->parked[q] &&
			   !vtime_before(w->turned, w->wake_at[q]);

		assert_int_equal(w->woken[q], due);
		if (due) {
			w->parked[q] = false;
			w->woken[q] = false;
			assert_false(wheel_unpark(&w->wheel, q, w->bucket[q]));
		}
	}
}

static void flush(struct model *w)
{
	u32 q;

	wheel_flush(&w->wheel, on_wake, w);
	for (q = 0; q < QUEUES; q++) {
		assert_int_equal(w->woken[q], w->parked[q]);
		w->parked[q] = false;
		w->woken[q] = false;
	}
}

static void step(struct model *w, struct random *r, vtime_t *vt)
{
	u32 queue = random_below(r, QUEUES);
	u64 reach = WHEEL_BUCKETS * width(w);

	switch (random_below(r, 12)) {
	case 0 ... 5:
		/* It is from a little overdue to due far beyond reach. */
		park(w, queue, *vt - width(w) + random_next(r) % (2 * reach));
		break;
	case 6:
		unpark(w, queue);
		break;
	case 7 ... 9:
		*vt += random_next(r) % (3 * width(w));
		turn(w, *vt);
		break;
	case 10:
		if (random_once_in(r, 20))
			*vt += random_next(r) % (3 * reach);
		turn(w, *vt);
		break;
	default:
		if (!random_once_in(r, 30))
			break;
		wheel_set_shift(&w->wheel, 1 + random_below(r, 16));
		flush(w);
	}
}

TEST(wakes_match_a_list_of_times)
{
	struct random r = random_seeded("wheel");
	struct model w;
	u64 i, j;

	for (i = 0; i < random_rounds(20); i++) {
		vtime_t vt = (vtime_t)0 - (random_next(&r) % (1 << 20));

		memset(&w, 0, sizeof(w));
		assert_int_equal(wheel_init(&w.wheel, QUEUES,
					    1 + random_below(&r, 16), vt),
				 0);
		w.turned = round_down(&w, vt);
		for (j = 0; j < 5000; j++)
			step(&w, &r, &vt);
		turn(&w, vt + WHEEL_BUCKETS * width(&w));
		flush(&w);
		wheel_deinit(&w.wheel);
	}
}

static void remember(void *arg, u32 queue)
{
	*(u32 *)arg |= 1U << queue;
}

TEST(bucket_edges_are_exact)
{
	const vtime_t start = (vtime_t)-1024; /* the wheel spans the wrap */
	struct wheel w;
	u32 woken = 0, bucket;

	assert_int_equal(wheel_init(&w, 8, 7, start + 5), 0);
	assert_false(wheel_park(&w, 0, start, &bucket));
	assert_false(wheel_park(&w, 0, start - 100, &bucket));
	assert_true(wheel_park(&w, 0, start + 1, &bucket));
	assert_true(wheel_park(&w, 1, start + 128, &bucket));
	assert_true(wheel_park(&w, 2, start + 129, &bucket));
	/* These are due in the last bucket and beyond it. */
	assert_true(wheel_park(&w, 3, start + 31 * 128, &bucket));
	assert_true(wheel_park(&w, 4, start + 32 * 128, &bucket));
	assert_true(wheel_park(&w, 5, start + (1ULL << 40), &bucket));

	assert_false(wheel_turn(&w, start + 127, remember, &woken));
	assert_true(wheel_turn(&w, start + 128, remember, &woken));
	assert_int_equal(woken, 1 << 0 | 1 << 1);
	assert_true(wheel_turn(&w, start + 300, remember, &woken));
	assert_int_equal(woken, 1 << 0 | 1 << 1 | 1 << 2);
	assert_true(wheel_turn(&w, start + 30 * 128, remember, &woken));
	assert_int_equal(woken, 1 << 0 | 1 << 1 | 1 << 2);
	woken = 0;
	assert_true(wheel_turn(&w, start + 31 * 128, remember, &woken));
	assert_int_equal(woken, 1 << 3 | 1 << 4 | 1 << 5);
	/* Virtual time never turns it back. */
	assert_false(wheel_turn(&w, start, remember, &woken));
	assert_int_equal(atomic64_read(&w.turns), 4);
	wheel_deinit(&w);
}

/* A turn by more than the whole wheel wakes each queue once. */
TEST(leap_beyond_the_wheel_empties_all_buckets)
{
	struct wheel w;
	u32 woken = 0, q, bucket;

	assert_int_equal(wheel_init(&w, 32, 10, 0), 0);
	for (q = 0; q < 31; q++)
		assert_true(wheel_park(&w, q, (q + 1) << 10, &bucket));
	assert_true(wheel_turn(&w, 1ULL << 40, remember, &woken));
	assert_int_equal(woken, 0x7fffffff);
	wheel_deinit(&w);
}

TEST(init_fails_without_memory)
{
	struct wheel w;

	port_zalloc_fail_after(0);
	assert_int_equal(wheel_init(&w, 8, 10, 0), -ENOMEM);
	port_zalloc_fail_never();
}
