// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "sched/core/slots.h"
#include "tests/machine.h"

/* Queues as a host has them, but always empty. */
struct scenario {
	struct sched sched;
	struct queue queue[MACHINE_QUEUES];
	struct queue *index[MACHINE_QUEUES];
	struct slots slots;
	/* the model: slots of each queue, and queues that were refused one */
	s64 used[MACHINE_QUEUES];
	bool waits[MACHINE_QUEUES];
	u32 depth;
};

static void scenario_init(struct scenario *s, struct random *r, u32 depth)
{
	struct topo_place place[MACHINE_QUEUES];
	u32 i;

	*s = (struct scenario){ .depth = depth };
	s->sched.queue = s->index;
	s->sched.nr_queues = machine_random(r, place);
	for (i = 0; i < s->sched.nr_queues; i++) {
		queue_init(&s->queue[i], &s->sched, i);
		s->index[i] = &s->queue[i];
	}
	assert_int_equal(topology_init(&s->sched.topo, place,
				       s->sched.nr_queues),
			 0);
	assert_int_equal(slots_init(&s->slots, &s->sched, depth, true), 0);
}

static void scenario_deinit(struct scenario *s)
{
	slots_deinit(&s->slots);
	topology_deinit(&s->sched.topo);
}

static s64 model_used(const struct scenario *s)
{
	s64 sum = 0;
	u32 i;

	for (i = 0; i < s->sched.nr_queues; i++)
		sum += s->used[i];
	return sum;
}

static s64 model_rivals(const struct scenario *s)
{
	s64 sum = 0;
	u32 i;

	for (i = 0; i < s->sched.nr_queues; i++)
		sum += s->waits[i];
	return sum;
}

static bool model_due(const struct scenario *s, u32 queue, s64 rivals)
{
	return s->used[queue] * rivals < s->depth;
}

/* Each woken queue tries to take a slot, and hands over the slots it leaves. */
static void follow(struct scenario *s, struct wake *wake)
{
	u32 queue;

	while ((queue = wake_next(wake)) != QUEUES_MAX) {
		assert_true(s->waits[queue]);
		assert_true(model_due(s, queue, model_rivals(s)));
		assert_true(model_used(s) < s->depth);
		slots_withdraw(&s->slots, queue);
		s->waits[queue] = false;
		if (slots_take(&s->slots, queue)) {
			s->used[queue]++;
		} else {
			s->waits[queue] = true;
		}
		slots_hand_over(&s->slots, queue, wake);
	}
}

/* No slot is free while a queue waits that is due one. */
static void check(const struct scenario *s)
{
	u32 i;

	assert_int_equal(slots_used(&s->slots), model_used(s));
	assert_int_equal(atomic64_read(&s->slots.waiting), model_rivals(s));
	for (i = 0; i < s->sched.nr_queues; i++) {
		assert_int_equal(atomic64_read(&s->slots.queue[i].used),
				 s->used[i]);
		assert_false(slots_forgot(&s->slots, i));
		if (s->waits[i] && model_due(s, i, model_rivals(s)))
			assert_true(model_used(s) >= s->depth);
	}
	/* By the pigeonhole principle no queue waits while a slot is free. */
	assert_true(!model_rivals(s) || model_used(s) >= s->depth);
}

static void take(struct scenario *s, u32 queue)
{
	s64 rivals = model_rivals(s);
	bool could = model_used(s) < s->depth &&
		     (!rivals || model_due(s, queue, rivals + 1)),
	     got;
	struct wake wake;

	if (s->waits[queue])
		return;
	wake_init(&wake);
	got = slots_take(&s->slots, queue);
	assert_int_equal(got, could);
	if (got)
		s->used[queue]++;
	else
		s->waits[queue] = true;
	slots_hand_over(&s->slots, queue, &wake);
	follow(s, &wake);
}

static void put(struct scenario *s, u32 queue)
{
	struct wake wake;

	if (!s->used[queue])
		return;
	wake_init(&wake);
	s->used[queue]--;
	slots_put(&s->slots, queue, &wake);
	follow(s, &wake);
}

static void resize(struct scenario *s, u32 depth)
{
	struct wake wake;
	u32 queue;

	wake_init(&wake);
	s->depth = depth;
	slots_resize(&s->slots, depth, &wake);
	/* All waiting queues are woken, and not only those due a slot. */
	while ((queue = wake_next(&wake)) != QUEUES_MAX)
		s->waits[queue] = false;
	for (queue = 0; queue < s->sched.nr_queues; queue++) {
		struct wake again;

		wake_init(&again);
		slots_hand_over(&s->slots, queue, &again);
		follow(s, &again);
	}
}

static void slots_match_a_model(void **state)
{
	struct random r = random_seeded("unit/slots");
	static struct scenario s;
	u64 round;
	u32 i, step;

	(void)state;
	for (round = 0; round < random_rounds(60); round++) {
		scenario_init(&s, &r, 1 + random_below(&r, 40));
		for (step = 0; step < 800; step++) {
			u32 queue = random_below(&r, s.sched.nr_queues);

			if (random_once_in(&r, 100))
				resize(&s, 1 + random_below(&r, 40));
			else if (random_below(&r, 100) < 55)
				take(&s, queue);
			else
				put(&s, queue);
			check(&s);
		}
		for (i = 0; i < s.sched.nr_queues; i++) {
			slots_withdraw(&s.slots, i);
			s.waits[i] = false;
		}
		for (i = 0; i < s.sched.nr_queues; i++)
			while (s.used[i])
				put(&s, i);
		scenario_deinit(&s);
	}
}

/* The example of slots.h. */
static void newcomer_gets_its_part_with_the_next_slot(void **state)
{
	static const struct topo_place four[] = {
		{ 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 0 }
	};
	static struct scenario s;
	u32 i, k;

	(void)state;
	s = (struct scenario){ .depth = 16, .sched.queue = s.index };
	s.sched.nr_queues = 4;
	for (i = 0; i < 4; i++) {
		queue_init(&s.queue[i], &s.sched, i);
		s.index[i] = &s.queue[i];
	}
	assert_int_equal(topology_init(&s.sched.topo, four, 4), 0);
	assert_int_equal(slots_init(&s.slots, &s.sched, 16, true), 0);
	for (i = 0; i < 3; i++)
		for (k = 0; k < (i ? 5 : 6); k++)
			take(&s, i);
	for (i = 0; i < 4; i++)
		take(&s, i);
	assert_true(s.waits[0] && s.waits[1] && s.waits[2] && s.waits[3]);
	put(&s, 1);
	assert_int_equal(s.used[3], 1);
	for (i = 0; i < 4; i++) {
		slots_withdraw(&s.slots, i);
		s.waits[i] = false;
	}
	for (i = 0; i < 4; i++)
		while (s.used[i])
			put(&s, i);
	scenario_deinit(&s);
}

static void init_fails_without_memory(void **state)
{
	struct random r = random_seeded("unit/slots");
	static struct scenario s;
	u32 allowed;

	(void)state;
	scenario_init(&s, &r, 8);
	slots_deinit(&s.slots);
	for (allowed = 0; allowed < 2; allowed++) {
		port_zalloc_fail_after(allowed);
		assert_int_equal(slots_init(&s.slots, &s.sched, 8, true),
				 -ENOMEM);
		port_zalloc_fail_never();
	}
	topology_deinit(&s.sched.topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_match_a_model),
		cmocka_unit_test(newcomer_gets_its_part_with_the_next_slot),
		cmocka_unit_test(init_fails_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
