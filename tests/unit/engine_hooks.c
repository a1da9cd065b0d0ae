// SPDX-License-Identifier: GPL-2.0
/*
 * The hooks of the engine under a scheduler that serves lanes in the order in
 * which they joined, and keeps account of all calls.
 */
#include "hooks.h"
#include "core/engine.h"

enum {
	BYTES	= HOOKS_BYTES,
};

struct mock_lane {
	struct lane lane;
	bool member;
	u32 paid, payments;
};

struct mock_queue {
	struct lane *lane[HOOKS_FLOWS];
	u32 nr;
};

static struct hooks h;

static struct mock_lane *mock_lane_of(struct lane *lane)
{
	return container_of(lane, struct mock_lane, lane);
}

static void mock_join(struct queue *q, struct lane *lane)
{
	struct mock_queue *mq = q->own;

	assert_false(mock_lane_of(lane)->member);
	assert_non_null(lane->fifo.head);
	mock_lane_of(lane)->member = true;
	mq->lane[mq->nr++] = lane;
}

static struct lane *mock_next(struct queue *q)
{
	struct mock_queue *mq = q->own;

	return mq->nr ? mq->lane[0] : NULL;
}

static void mock_pay(struct queue *q, struct lane *lane, u32 cost)
{
	(void)q;
	mock_lane_of(lane)->paid += cost;
	mock_lane_of(lane)->payments++;
}

static void mock_leave(struct queue *q, struct lane *lane)
{
	struct mock_queue *mq = q->own;

	assert_true(mock_lane_of(lane)->member);
	assert_null(lane->fifo.head);
	mock_lane_of(lane)->member = false;
	assert_ptr_equal(mq->lane[0], lane);
	memmove(&mq->lane[0], &mq->lane[1], --mq->nr * sizeof(mq->lane[0]));
}

static vtime_t virtual_time;

static vtime_t mock_start(struct flow *f)
{
	assert_ptr_equal(f->sched, &h.sched);
	return virtual_time;
}

static const struct engine_ops mock_lanes = {
	.join = mock_join,
	.next = mock_next,
	.pay = mock_pay,
	.leave = mock_leave,
	.start = mock_start,
};

static int mock_init(struct sched *s)
{
	return engine_init(s, &mock_lanes);
}

static const struct tunable mock_tunables[] = { { TUNABLE_DEPTH(4) }, {} };

static const struct sched_ops mock_ops = {
	.name = "mock",
	.tunables = mock_tunables,
	.bytes = sizeof(struct engine),
	.queue_bytes = sizeof(struct mock_queue),
	.flow_queue_bytes = sizeof(struct mock_lane),
	.init = mock_init,
	ENGINE_HOOKS,
};

static void open_mock(u32 depth)
{
	struct sched_params p;

	sched_params_init(&mock_ops, &p);
	p.depth = depth;
	hooks_open(&h, &mock_ops, &p, HOOKS_QUEUES);
}

static void close_mock(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

static const struct slots *slots(void)
{
	return &((const struct engine *)h.sched.own)->slots;
}

static const struct mock_lane *lane(const struct flow *f, u32 queue)
{
	return flow_queue_own(f, queue);
}

static struct io *insert_flagged(u32 queue, struct flow *f, u8 flags)
{
	return hooks_insert(&h, queue, f, BYTES, flags);
}

static bool is_woken(u32 queue)
{
	return h.woken & BIT_ULL(queue);
}

/* ------------------------------------------------------------------ payments */

/* The next io of a flow with one that waits follows that, whatever time it is. */
TEST(a_flow_without_ios_starts_at_virtual_time)
{
	struct io *io;
	struct flow *f;

	open_mock(4);
	f = hooks_flow(&h, 100);
	virtual_time = 1 << 20;
	io = hooks_read(&h, 1, f);
	assert_int_equal(hooks_tag(io), virtual_time);
	virtual_time = 2 << 20;
	io = hooks_read(&h, 1, f);
	assert_int_equal(hooks_tag(io), (1 << 20) + BYTES);
	virtual_time = 0;
	close_mock();
}

TEST(ios_go_in_the_order_of_their_lane)
{
	struct io *io[3];
	struct flow *f;
	u32 i;

	open_mock(4);
	f = hooks_flow(&h, 100);
	for (i = 0; i < 3; i++)
		io[i] = hooks_read(&h, 1, f);
	for (i = 0; i < 3; i++) {
		assert_int_equal(atomic64_read(&f->queued), 3 - i);
		assert_ptr_equal(hooks_next(&h, 1), io[i]);
		assert_int_equal(lane(f, 1)->paid, (i + 1) * BYTES);
	}
	assert_int_equal(atomic64_read(&f->queued), 0);
	hooks_dispatch(&h, 1, DISPATCH_EMPTY);
	close_mock();
}

/* A driver sends an io back.  Its flow was charged and has paid. */
TEST(requeued_io_is_paid_once)
{
	struct flow *f;
	struct io *io;
	u32 i;

	open_mock(4);
	f = hooks_flow(&h, 100);
	io = hooks_read(&h, 0, f);
	for (i = 0; i < 3; i++) {
		assert_ptr_equal(hooks_next(&h, 0), io);
		assert_int_equal(slots_used(slots()), 1);
		hooks_requeue(&h, io);
		hooks_requeue(&h, io);
		assert_int_equal(slots_used(slots()), 0);
		hooks_insert_again(&h, io);
	}
	hooks_next(&h, 0);
	assert_int_equal(lane(f, 0)->payments, 1);
	assert_int_equal(atomic64_read(&f->pos), BYTES);
	close_mock();
}

TEST(urgent_io_passes_and_is_paid)
{
	struct io *waiting, *urgent;
	struct flow *f;

	open_mock(4);
	f = hooks_flow(&h, 100);
	waiting = hooks_read(&h, 0, f);
	urgent = insert_flagged(0, f, IO_URGENT);
	assert_ptr_equal(hooks_next(&h, 0), urgent);
	assert_int_equal(lane(f, 0)->paid, BYTES);
	assert_int_equal(h.queue[0].stats.urgent, 1);
	assert_ptr_equal(hooks_next(&h, 0), waiting);
	assert_int_equal(lane(f, 0)->paid, 2 * BYTES);
	close_mock();
}

/* The flow pays at the dispatch for an io that waits, and at once for another. */
TEST(merged_bytes_are_paid_once)
{
	struct flow *f;
	struct io *io;

	open_mock(4);
	f = hooks_flow(&h, 100);
	io = hooks_read(&h, 0, f);
	hooks_merge(&h, io, 2 * BYTES);
	assert_int_equal(lane(f, 0)->paid, 0);
	hooks_next(&h, 0);
	assert_int_equal(lane(f, 0)->paid, 2 * BYTES);
	hooks_merge(&h, io, 5 * BYTES);
	assert_int_equal(lane(f, 0)->paid, 5 * BYTES);
	assert_int_equal(io->bytes, 5 * BYTES);
	assert_int_equal(atomic64_read(&f->pos), 5 * BYTES);
	/* Nothing is paid for nothing. */
	assert_int_equal(lane(f, 0)->payments, 2);
	hooks_merge(&h, io, 5 * BYTES);
	assert_int_equal(lane(f, 0)->payments, 2);
	close_mock();
}

/* --------------------------------------------------------------------- slots */

TEST(slots_are_for_ios_that_may_wait)
{
	struct flow *f;
	struct io *io;

	open_mock(2);
	f = hooks_flow(&h, 100);
	insert_flagged(0, f, IO_URGENT);
	io = hooks_next(&h, 0);
	assert_int_equal(slots_used(slots()), 1);
	hooks_send(&h, 0, f, 1);
	assert_int_equal(slots_used(slots()), 2);
	/* Without a free slot the urgent one goes all the same. */
	insert_flagged(0, f, IO_URGENT);
	hooks_next(&h, 0);
	assert_int_equal(slots_used(slots()), 2);
	hooks_complete(&h, io);
	assert_int_equal(slots_used(slots()), 1);
	close_mock();
}

/*
 * The first one goes beyond D = 1.  The second one waits: before the lane of its queue,
 * and before a queue that waited first.
 */
TEST(io_that_passes_has_the_next_slot)
{
	struct io *first, *beyond, *passer;
	struct flow *f;

	open_mock(1);
	f = hooks_flow(&h, 100);
	hooks_read(&h, 0, f);
	first = hooks_next(&h, 0);
	hooks_read(&h, 0, f);
	hooks_dispatch(&h, 0, DISPATCH_NO_SLOT);
	hooks_read(&h, 1, f);
	WRITE_ONCE(f->isolation.pass_until, UINT64_MAX);
	beyond = hooks_read(&h, 1, f);
	assert_ptr_equal(hooks_next(&h, 1), beyond);
	assert_int_equal(slots_used(slots()), 2);
	passer = hooks_read(&h, 1, f);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	h.woken = 0;
	hooks_complete(&h, beyond);
	assert_int_equal(h.woken, 0);
	hooks_complete(&h, first);
	assert_int_equal(h.woken, BIT_ULL(1));
	assert_ptr_equal(hooks_next(&h, 1), passer);
	assert_int_equal(slots_used(slots()), 1);
	close_mock();
}

/* A driver sent it back, and another queue has its slot. */
TEST(io_that_passed_waits_for_no_slot_when_it_comes_back)
{
	struct io *passer;
	struct flow *f;

	open_mock(1);
	f = hooks_flow(&h, 100);
	WRITE_ONCE(f->isolation.pass_until, UINT64_MAX);
	hooks_send(&h, 0, f, 1);
	hooks_read(&h, 0, f);
	passer = hooks_next(&h, 0);
	hooks_requeue(&h, passer);
	hooks_send(&h, 1, f, 1);
	hooks_insert_again(&h, passer);
	assert_ptr_equal(hooks_next(&h, 0), passer);
	assert_false(passer->flags & IO_SLOT);
	assert_int_equal(slots_used(slots()), 2);
	close_mock();
}

/* One that is urgent needs no slot, so it goes before one that waits for its slot. */
TEST(urgent_io_does_not_wait_behind_one_that_passes)
{
	struct io *urgent;
	struct flow *f;

	open_mock(1);
	f = hooks_flow(&h, 100);
	WRITE_ONCE(f->isolation.pass_until, UINT64_MAX);
	hooks_send(&h, 0, f, 2);
	hooks_read(&h, 0, f);
	hooks_dispatch(&h, 0, DISPATCH_NO_SLOT);
	urgent = insert_flagged(0, f, IO_URGENT);
	assert_ptr_equal(hooks_next(&h, 0), urgent);
	hooks_dispatch(&h, 0, DISPATCH_NO_SLOT);
	close_mock();
}

/* A queue that waits is counted and in the set until it dispatches again. */
TEST(queue_waits_for_a_slot)
{
	struct flow *f;
	struct io *io;

	open_mock(1);
	f = hooks_flow(&h, 100);
	hooks_read(&h, 0, f);
	io = hooks_next(&h, 0);
	assert_int_equal(h.queue[1].stats.no_slot, 0);
	hooks_send_in_vain(&h, 1, f);
	assert_int_equal(h.queue[1].stats.no_slot, 1);
	assert_int_equal(h.queue[1].state, DISPATCH_NO_SLOT);
	assert_true(queue_set_has(&slots()->ready, 1));
	assert_false(is_woken(1));
	hooks_complete(&h, io);
	assert_true(is_woken(1));
	hooks_next(&h, 1);
	assert_false(queue_set_has(&slots()->ready, 1));
	hooks_dispatch(&h, 1, DISPATCH_EMPTY);
	/* An empty queue was refused nothing. */
	assert_int_equal(h.queue[1].stats.no_slot, 1);
	close_mock();
}

/* An urgent io of a queue that waits: the queue waits no more. */
TEST(queue_that_dispatches_does_not_wait)
{
	struct flow *f;

	open_mock(1);
	f = hooks_flow(&h, 100);
	hooks_send(&h, 0, f, 1);
	hooks_send_in_vain(&h, 1, f);
	insert_flagged(1, f, IO_URGENT);
	hooks_next(&h, 1);
	assert_false(queue_set_has(&slots()->ready, 1));
	assert_int_equal(queue_set_count(&slots()->ready, h.sched.nr_queues),
			 0);
	close_mock();
}

/* The host cannot run the queue: the slot for which it waited is for others. */
TEST(blocked_queue_does_not_wait)
{
	struct flow *f;
	struct io *io;

	open_mock(1);
	f = hooks_flow(&h, 100);
	hooks_read(&h, 0, f);
	io = hooks_next(&h, 0);
	hooks_send_in_vain(&h, 1, f);
	hooks_send_in_vain(&h, 2, f);
	hooks_block(&h, 1);
	assert_false(queue_set_has(&slots()->ready, 1));
	assert_int_equal(queue_set_count(&slots()->ready, h.sched.nr_queues),
			 1);
	assert_int_not_equal(h.queue[1].state, DISPATCH_NO_SLOT);
	hooks_complete(&h, io);
	assert_int_equal(h.woken, BIT_ULL(2));
	close_mock();
}

/* The block comes after the wake-up. */
TEST(blocked_queue_hands_its_slot_over)
{
	struct flow *f;
	struct io *io;

	open_mock(1);
	f = hooks_flow(&h, 100);
	hooks_read(&h, 0, f);
	io = hooks_next(&h, 0);
	hooks_send_in_vain(&h, 1, f);
	hooks_send_in_vain(&h, 2, f);
	hooks_complete(&h, io);
	assert_int_equal(h.woken, BIT_ULL(1));
	hooks_block(&h, 1);
	assert_true(is_woken(2));
	close_mock();
}

TEST(refused_queue_hands_its_slot_over)
{
	open_mock(8);
	hooks_refused_queue_hands_over(&h);
	close_mock();
}

TEST(last_io_of_a_queue_hands_slots_over)
{
	open_mock(4);
	hooks_last_io_hands_over(&h);
	close_mock();
}

TEST(draining_queue_waits_for_no_slot)
{
	struct flow *f;
	u32 i;

	open_mock(1);
	f = hooks_flow(&h, 100);
	for (i = 0; i < 5; i++)
		hooks_read(&h, 0, f);
	hooks_read(&h, 1, f);
	h.queue[0].drain = true;
	for (i = 0; i < 5; i++)
		hooks_next(&h, 0);
	assert_int_equal(slots_used(slots()), 1);
	/* A CPU that goes offline ends no bound of the others. */
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	close_mock();
}

TEST(tune_changes_the_depth)
{
	struct sched_params p;
	struct flow *f;

	open_mock(1);
	f = hooks_flow(&h, 100);
	hooks_send(&h, 0, f, 1);
	hooks_send_in_vain(&h, 1, f);
	hooks_send_in_vain(&h, 2, f);
	/* New shares make no slot. */
	hooks_tune(&h, NULL);
	assert_int_equal(h.woken, 0);
	p = h.sched.params;
	p.depth = 3;
	hooks_tune(&h, &p);
	assert_int_equal(h.sched.params.depth, 3);
	assert_int_equal(h.woken, BIT_ULL(1) | BIT_ULL(2));
	hooks_next(&h, 1);
	hooks_next(&h, 2);
	hooks_send_in_vain(&h, 0, f);
	close_mock();
}

/* ---------------------------------------------------------------------- life */

TEST(init_fails_without_memory)
{
	/* Topology, queues, scheduler, watchdog, parts and tree at least. */
	assert_true(hooks_init_without_memory(&mock_ops) >= 6);
}
