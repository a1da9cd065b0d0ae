// SPDX-License-Identifier: GPL-2.0
/* The order of sfq among the flows of a queue and among the queues, hook by hook. */
#include "hooks.h"
#include "sched/core/policies.h"

static struct hooks h;
static struct flow *flow[2];

static void open_sfq(u32 depth, u32 weight0, u32 weight1)
{
	struct sched_params p;

	sched_params_init(&sfq_ops, &p);
	p.depth = depth;
	hooks_open(&h, &sfq_ops, &p, HOOKS_QUEUES);
	flow[0] = hooks_flow(&h, weight0);
	flow[1] = hooks_flow(&h, weight1);
}

static void close_sfq(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

static void insert(u32 queue, u32 i, u32 n)
{
	while (n--)
		hooks_read(&h, queue, flow[i]);
}

static bool is_woken(u32 queue)
{
	return h.woken & BIT_ULL(queue);
}

static struct io *expect_io(u32 queue, u32 i)
{
	struct io *io = hooks_next(&h, queue);

	assert_ptr_equal(io->flow, flow[i]);
	return io;
}

static void expect_wait(u32 queue, enum dispatch_result why)
{
	assert_null(hooks_dispatch(&h, queue, why));
}

/*
 * Queue 0 has sent one of the @nr requests of flow 0, and queue 1 one of the four of
 * flow 1.  The next ones have equal tags, so queue 1 waits for its turn.
 */
static void open_with_queue_1_throttled(u32 nr)
{
	open_sfq(HOOKS_IOS, 100, 100);
	insert(0, 0, nr);
	insert(1, 1, 4);
	expect_io(0, 0);
	expect_io(1, 1);
	expect_wait(1, DISPATCH_THROTTLED);
	h.woken = 0;
}

/* Shares of 3/4 and 1/4: the second request of flow 1 is as early as the fourth of 0. */
TEST(flows_of_one_queue_go_by_start_tag)
{
	open_sfq(HOOKS_IOS, 300, 100);
	insert(0, 0, 7);
	insert(0, 1, 3);
	hooks_expect_order(&h, 0, "0100010001");
	close_sfq();
}

TEST(a_queue_waits_for_an_earlier_request_of_another)
{
	open_sfq(HOOKS_IOS, 100, 100);
	insert(0, 0, 2);
	insert(1, 1, 2);
	expect_io(0, 0);
	expect_io(1, 1);
	expect_wait(1, DISPATCH_THROTTLED);
	expect_io(0, 0);
	expect_io(1, 1);
	close_sfq();
}

/* Queue 0 has sent its second request, so the first one of queue 1 is earlier. */
TEST(the_queue_that_is_first_now_is_woken)
{
	open_with_queue_1_throttled(4);
	expect_io(0, 0);
	expect_wait(0, DISPATCH_THROTTLED);
	assert_true(is_woken(1));
	close_sfq();
}

/* The host asks an empty queue no more, so the last request wakes the other queue. */
TEST(the_last_request_of_a_queue_passes_the_turn)
{
	open_with_queue_1_throttled(2);
	expect_io(0, 0);
	assert_true(is_woken(1));
	close_sfq();
}

TEST(a_blocked_queue_does_not_hold_the_others)
{
	open_with_queue_1_throttled(3);
	hooks_block(&h, 0);
	assert_true(is_woken(1));
	expect_io(1, 1);
	expect_io(1, 1);
	close_sfq();
}

/* A flow that comes back begins at virtual time: it saves nothing for later. */
TEST(a_flow_that_was_away_is_not_ahead)
{
	open_sfq(HOOKS_IOS, 100, 100);
	insert(0, 0, 1);
	insert(0, 1, 1);
	hooks_expect_order(&h, 0, "01");
	insert(0, 0, 6);
	hooks_expect_order(&h, 0, "000");
	insert(0, 1, 2);
	hooks_expect_order(&h, 0, "10100");
	close_sfq();
}

TEST(a_drained_queue_waits_for_no_turn)
{
	open_with_queue_1_throttled(2);
	hooks_set_drain(&h, true);
	expect_io(1, 1);
	hooks_set_drain(&h, false);
	close_sfq();
}

/* Depth 1: the slot goes round by tags, though queue 1 has the greater number. */
TEST(one_slot_goes_to_the_first_of_all_queues)
{
	struct io *io;

	open_sfq(1, 100, 100);
	insert(0, 0, 2);
	insert(1, 1, 2);
	io = expect_io(0, 0);
	expect_wait(1, DISPATCH_NO_SLOT);
	expect_wait(0, DISPATCH_THROTTLED);
	h.woken = 0;
	hooks_complete(&h, io);
	assert_true(is_woken(1));
	expect_io(1, 1);
	close_sfq();
}
