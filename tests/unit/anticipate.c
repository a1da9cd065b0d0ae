// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "sched/mqfq/anticipate.h"

enum {
	SLOTS	= 16,
	TOOK_NS	= 8000 * 1000,
	SENT_NS	= 10000 * 1000,
	DONE_NS	= SENT_NS + TOOK_NS,
	TICK_NS = 1000 * 1000,
};

struct fixture {
	struct sched sched;
	struct token_tree slots;
	struct anticipate anticipate;
	struct flow *root, *flow[4];
	struct io io;
	struct wake wake;
};

static const struct sched_ops plain_ops = {
	.name = "plain",
	.flow_bytes = sizeof(struct flow_reserved),
};

static struct flow *flow_create(struct fixture *b, struct flow *parent)
{
	struct flow *f = port_zalloc(flow_size(b->sched.ops, 1));

	assert_non_null(f);
	flow_init(f, &b->sched, parent, WEIGHT_DEFAULT);
	return f;
}

/* Four flows are active and have nothing waiting; all slots are in use. */
static int setup(void **state)
{
	static const struct topo_place place[1];
	struct fixture *b = port_zalloc(sizeof(*b));
	struct flow_start start;
	u32 i;

	b->sched.ops = &plain_ops;
	b->sched.nr_queues = 1;
	mqfq_params(&b->sched.params)->anticipate = 1;
	share_tree_init(&b->sched.share);
	port_lock_init(&b->sched.active_lock);
	assert_int_equal(topology_init(&b->sched.topo, place, 1), 0);
	assert_int_equal(token_tree_init(&b->slots, &b->sched.topo, SLOTS), 0);
	while (token_take(&b->slots, 0))
		;
	b->root = flow_create(b, NULL);
	for (i = 0; i < ARRAY_SIZE(b->flow); i++) {
		b->flow[i] = flow_create(b, b->root);
		flow_charge(b->flow[i], 4096, 0, false, &start);
	}
	b->io = (struct io){ .flow = b->flow[0], .dispatch_ns = SENT_NS };
	anticipate_missed(&b->anticipate, SENT_NS + 1);
	wake_init(&b->wake);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *b = *state;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(b->flow); i++) {
		anticipate_flow_exit(&b->anticipate, b->flow[i]);
		flow_exit(b->flow[i]);
		port_free(b->flow[i]);
	}
	flow_exit(b->root);
	port_free(b->root);
	token_tree_deinit(&b->slots);
	topology_deinit(&b->sched.topo);
	port_free(b);
	return 0;
}

static bool anticipate(struct fixture *b, u32 flow)
{
	b->io.flow = b->flow[flow];
	return anticipate_wanted(&b->anticipate, &b->io) &&
	       anticipate_slot(&b->anticipate, &b->slots, &b->io, DONE_NS,
			       &b->wake);
}

static bool take(struct fixture *b, u32 flow)
{
	return anticipate_take(&b->anticipate, &b->slots, b->flow[flow], 0);
}

static u32 tick(struct fixture *b, u64 now)
{
	return anticipate_tick(&b->anticipate, &b->sched, now, &b->wake);
}

static void slot_is_reserved_for_an_eighth_of_the_service_time(void **state)
{
	struct fixture *b = *state;

	assert_true(anticipate(b, 0));
	assert_int_equal(b->wake.at_ns, DONE_NS + TOOK_NS / 8);
	assert_int_equal(tick(b, DONE_NS + TOOK_NS / 8 - 1), 0);
	assert_int_equal(tick(b, DONE_NS + TOOK_NS / 8), 1);
	assert_false(take(b, 0));
	assert_int_equal(atomic64_read(&b->anticipate.reserved), 0);
}

/* A timer for each slot of a fast drive would cost more than the slot. */
static void ticks_are_1_ms_apart_at_least(void **state)
{
	struct fixture *b = *state;

	/* Each slot is reserved for 10 us. */
	b->io.dispatch_ns = DONE_NS - 80 * 1000;
	anticipate_missed(&b->anticipate, DONE_NS);
	assert_true(anticipate(b, 0));
	assert_int_equal(b->wake.at_ns, DONE_NS + TICK_NS);
}

/* Another slot is reserved still. */
static void tick_asks_for_the_next_while_a_slot_is_reserved(void **state)
{
	struct fixture *b = *state;

	assert_true(anticipate(b, 0));
	b->io.dispatch_ns -= TOOK_NS;
	assert_true(anticipate(b, 1));
	wake_init(&b->wake);
	assert_int_equal(tick(b, DONE_NS + TOOK_NS / 8), 1);
	assert_int_equal(b->wake.at_ns, DONE_NS + TOOK_NS / 8 + TICK_NS);
	wake_init(&b->wake);
	assert_int_equal(tick(b, DONE_NS + TOOK_NS / 4), 1);
	assert_int_equal(b->wake.at_ns, 0);
}

static void no_slot_is_reserved_after_no_time(void **state)
{
	struct fixture *b = *state;

	b->io.dispatch_ns = DONE_NS;
	anticipate_missed(&b->anticipate, DONE_NS);
	assert_false(anticipate(b, 0));
}

static void returning_flow_takes_its_slot_once(void **state)
{
	struct fixture *b = *state;

	assert_true(anticipate(b, 0));
	assert_false(take(b, 1));
	assert_true(take(b, 0));
	assert_false(take(b, 0));
	assert_int_equal(tick(b, 2 * DONE_NS), 0);
}

static void no_slot_is_reserved_if_no_queue_missed_one(void **state)
{
	struct fixture *b = *state;

	b->io.dispatch_ns = SENT_NS + 2;
	assert_false(anticipate(b, 0));
}

static void no_slot_is_reserved_for_a_backlogged_flow(void **state)
{
	struct fixture *b = *state;

	atomic64_set(&b->flow[0]->queued, 1);
	assert_false(anticipate(b, 0));
	atomic64_set(&b->flow[0]->queued, 0);
}

static void no_slot_is_reserved_when_switched_off(void **state)
{
	struct fixture *b = *state;

	mqfq_params(&b->sched.params)->anticipate = 0;
	assert_false(anticipate(b, 0));
}

static void at_most_an_eighth_of_the_slots_is_reserved(void **state)
{
	struct fixture *b = *state;

	assert_true(anticipate(b, 0));
	assert_false(anticipate(b, 0)); /* one slot for each flow */
	assert_true(anticipate(b, 1));
	assert_false(anticipate(b, 2)); /* two slots of sixteen */
	assert_true(take(b, 1));
	assert_true(anticipate(b, 2));
}

static void overdue_flow_gets_fewer_reservations(void **state)
{
	struct fixture *b = *state;
	u32 i, reserved = 0;

	for (i = 0; i < 1024; i++) {
		if (!anticipate(b, 0))
			continue;
		reserved++;
		assert_int_equal(tick(b, 2 * DONE_NS), 1);
	}
	assert_in_range(reserved, 8, 16);
	/* Each return in time doubles the rate of reservations. */
	for (i = 0; i < 1024; i++)
		if (anticipate(b, 0))
			assert_true(take(b, 0));
	assert_true(anticipate(b, 0));
}

static void reserved_slot_beyond_the_depth_is_not_taken(void **state)
{
	struct fixture *b = *state;

	assert_true(anticipate(b, 0));
	token_resize(&b->slots, 4);
	assert_int_equal(token_total(&b->slots), -12);
	assert_false(take(b, 0));
	assert_int_equal(token_total(&b->slots), -11);
	assert_false(anticipate(b, 1));
}

static void tick_frees_the_slot_of_a_removed_flow(void **state)
{
	struct fixture *b = *state;

	assert_true(anticipate(b, 0));
	anticipate_flow_exit(&b->anticipate, b->flow[0]);
	assert_int_equal(atomic64_read(&b->anticipate.reserved), 1);
	assert_int_equal(tick(b, DONE_NS), 1);
	assert_int_equal(atomic64_read(&b->anticipate.reserved), 0);
	assert_int_equal(anticipate_drain(&b->anticipate), 0);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slot_is_reserved_for_an_eighth_of_the_service_time),
		TEST(ticks_are_1_ms_apart_at_least),
		TEST(tick_asks_for_the_next_while_a_slot_is_reserved),
		TEST(no_slot_is_reserved_after_no_time),
		TEST(returning_flow_takes_its_slot_once),
		TEST(no_slot_is_reserved_if_no_queue_missed_one),
		TEST(no_slot_is_reserved_for_a_backlogged_flow),
		TEST(no_slot_is_reserved_when_switched_off),
		TEST(at_most_an_eighth_of_the_slots_is_reserved),
		TEST(overdue_flow_gets_fewer_reservations),
		TEST(reserved_slot_beyond_the_depth_is_not_taken),
		TEST(tick_frees_the_slot_of_a_removed_flow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
