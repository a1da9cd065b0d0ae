// SPDX-License-Identifier: GPL-2.0
/*
 * Order, throttling and slots of mqfq, hook by hook.  Tags are told as distances
 * from the first virtual time.
 */
#include "hooks.h"
#include "sched/core/policies.h"
#include "sched/cost/cost_estimator.h"
#include "sched/mqfq/mqfq.h"

enum {
	KIB	= 1024,
	BYTES	= 4 * KIB,
	T	= 64 * KIB,
	PINNED_NS	= 5 * 1000 * 1000,
};

static struct hooks h;
static struct flow *flow[2];
static vtime_t first;

static struct mqfq *mqfq(void)
{
	return h.sched.own;
}

static u64 vt(void)
{
	return mqfq_vt(mqfq()) - first;
}

static u64 tag(const struct io *io)
{
	return hooks_tag(io) - first;
}

static u64 head_tag(u32 queue)
{
	return h.queue[queue].head_tag - first;
}

static void open_mqfq(u32 threshold, u32 depth)
{
	struct sched_params p;

	sched_params_init(&mqfq_ops, &p);
	p.depth = depth;
	p.isolation = 0;
	mqfq_params(&p)->threshold = threshold;
	hooks_open(&h, &mqfq_ops, &p, HOOKS_QUEUES);
	first = mqfq_vt(mqfq());
	flow[0] = hooks_flow(&h, 100);
	flow[1] = hooks_flow(&h, 100);
}

static void close_mqfq(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

static struct io *insert(u32 queue, struct flow *f)
{
	return hooks_insert(&h, queue, f, BYTES, 0);
}

static struct io *dispatch(u32 queue)
{
	return hooks_dispatch(&h, queue, DISPATCH_IO);
}

/* A request that takes a slot. */
static struct io *send(u32 queue, struct flow *f)
{
	insert(queue, f);
	return dispatch(queue);
}

/* A request that waits for no slot, so the order alone may stop it. */
static void insert_slotless(u32 queue, struct flow *f)
{
	insert(queue, f)->flags |= IO_URGENT;
	atomic64_inc(&f->urgent.passing);
}

static void send_slotless(u32 queue, struct flow *f, u32 n)
{
	while (n--) {
		insert_slotless(queue, f);
		hooks_complete(&h, dispatch(queue));
	}
}

static void slotless_is_throttled(u32 queue, struct flow *f)
{
	insert_slotless(queue, f);
	hooks_dispatch(&h, queue, DISPATCH_THROTTLED);
}

/*
 * D = 2.  Flow 0 has both slots, and its next request has tag 16 KiB.  Flow 1 waits
 * in queue 1 for a slot, with @n requests of cost @bytes from tag 0 on.  vt is 0.
 */
static void open_rivals(u32 threshold, u32 n, u32 bytes, struct io *io[2])
{
	u32 i;

	open_mqfq(threshold, 2);
	cost_set(&h.sched.params.cost, &hooks_cost_by_size);
	/* Urgent ones raise no virtual time. */
	for (i = 0; i < 2; i++) {
		io[i] = hooks_insert(&h, 0, flow[0], BYTES, IO_URGENT);
		dispatch(0);
	}
	while (n--)
		hooks_insert(&h, 1, flow[1], bytes, 0);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	assert_int_equal(vt(), 0);
}

/* Both slots of flow 0 are free again. */
static void complete_both(struct io *io[2])
{
	hooks_complete(&h, io[0]);
	hooks_complete(&h, io[1]);
	h.woken = 0;
}

/* --------------------------------------------------------------- throttling */

/* The example in mqfq.c. */
TEST(queue_goes_at_most_t_ahead_of_one_that_waits)
{
	struct io *io[2];

	open_rivals(T, 2, BYTES, io);
	/* Tags 16, 24, .. 64 KiB. */
	send_slotless(0, flow[0], 7);
	slotless_is_throttled(0, flow[0]);
	assert_int_equal(head_tag(0), 72 * KIB);
	assert_int_equal(h.queue[0].state, DISPATCH_THROTTLED);
	assert_int_equal(h.queue[0].stats.throttled, 1);
	assert_int_equal(vt(), 0);
	complete_both(io);
	/* The next request of flow 1 has tag 8 KiB, and 72 - 64 = 8. */
	dispatch(1);
	assert_int_equal(vt(), 8 * KIB);
	assert_int_equal(h.woken, BIT_ULL(0));
	assert_int_equal(tag(dispatch(0)), 72 * KIB);
	slotless_is_throttled(0, flow[0]);
	assert_int_equal(h.queue[0].stats.throttled, 2);
	close_mqfq();
}

/* Tags of 4 KiB are not enough for the queue that is due at 8 KiB. */
TEST(throttled_queue_is_woken_when_it_is_due)
{
	struct io *io[2];

	open_rivals(T, 4, BYTES / 2, io);
	send_slotless(0, flow[0], 7);
	slotless_is_throttled(0, flow[0]);
	complete_both(io);
	hooks_complete(&h, dispatch(1));
	assert_int_equal(vt(), 4 * KIB);
	assert_int_equal(h.woken, 0);
	hooks_complete(&h, dispatch(1));
	assert_int_equal(vt(), 8 * KIB);
	assert_int_equal(h.woken, BIT_ULL(0));
	close_mqfq();
}

/* The host may have to run the queue that holds virtual time back. */
TEST(throttled_queue_names_the_one_that_holds_it_back)
{
	struct io *io[2];

	open_rivals(T, 1, BYTES, io);
	send_slotless(0, flow[0], 7);
	h.tick_ns = 0;
	slotless_is_throttled(0, flow[0]);
	assert_int_equal(h.pinned_by, 1);
	assert_int_equal(h.tick_ns, h.now + PINNED_NS);
	close_mqfq();
}

/* No other queue waits, so it need not stop. */
TEST(lone_queue_is_never_throttled)
{
	open_mqfq(T, 1);
	/* Tags 0, 4, .. 136 KiB; at 68 and 136 it is more than T ahead. */
	send_slotless(0, flow[0], 17);
	assert_int_equal(vt(), 0);
	send_slotless(0, flow[0], 1);
	assert_int_equal(vt(), 68 * KIB);
	send_slotless(0, flow[0], 17);
	assert_int_equal(vt(), 136 * KIB);
	assert_int_equal(h.queue[0].stats.throttled, 0);
	assert_true(mindicator_min(&mqfq()->tags) == VTIME_NONE);
	close_mqfq();
}

/* At T = 0 it goes on when it holds virtual time back itself. */
TEST(queue_follows_the_least_tag_at_t_0)
{
	struct io *io[2];

	open_rivals(0, 2, BYTES, io);
	slotless_is_throttled(0, flow[0]);
	assert_int_equal(head_tag(0), 16 * KIB);
	complete_both(io);
	hooks_complete(&h, dispatch(1));
	assert_int_equal(vt(), 8 * KIB);
	assert_int_equal(h.woken, 0);
	hooks_complete(&h, dispatch(1));
	assert_int_equal(vt(), 16 * KIB);
	assert_int_equal(h.woken, BIT_ULL(0));
	dispatch(0);
	close_mqfq();
}

/* An urgent request passes, and then the queue is in no list of waiters. */
TEST(queue_that_dispatches_is_not_woken)
{
	static const u32 thresholds[] = { T, 0 };
	struct io *io[2];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		open_rivals(thresholds[i], 2, BYTES, io);
		if (thresholds[i])
			send_slotless(0, flow[0], 7);
		slotless_is_throttled(0, flow[0]);
		hooks_insert(&h, 0, flow[0], BYTES, IO_URGENT);
		assert_true(dispatch(0)->flags & IO_URGENT);
		assert_int_equal(h.queue[0].state, DISPATCH_IO);
		complete_both(io);
		hooks_complete(&h, dispatch(1));
		hooks_complete(&h, dispatch(1));
		assert_int_equal(h.woken, 0);
		dispatch(0);
		close_mqfq();
	}
}

/* The wake-up found the queue still too far ahead. */
TEST(early_queue_is_parked_again)
{
	static const u32 thresholds[] = { T, 0 };
	struct io *io[2];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		open_rivals(thresholds[i], 2, BYTES, io);
		if (thresholds[i])
			send_slotless(0, flow[0], 7);
		slotless_is_throttled(0, flow[0]);
		hooks_dispatch(&h, 0, DISPATCH_THROTTLED);
		complete_both(io);
		hooks_complete(&h, dispatch(1));
		hooks_complete(&h, dispatch(1));
		assert_int_equal(h.woken, BIT_ULL(0));
		dispatch(0);
		close_mqfq();
	}
}

TEST(draining_queue_waits_for_nothing)
{
	struct io *io[2];

	open_rivals(T, 1, BYTES, io);
	send_slotless(0, flow[0], 7);
	slotless_is_throttled(0, flow[0]);
	hooks_set_drain(&h, true);
	dispatch(0);
	dispatch(1);
	assert_int_equal(slots_used(&mqfq()->slots), 2);
	close_mqfq();
}

/* --------------------------------------------------------------------- order */

TEST(requests_of_a_flow_go_in_order)
{
	struct io *io[4];
	u32 i;

	open_mqfq(T, 8);
	for (i = 0; i < 4; i++) {
		io[i] = insert(2, flow[0]);
		assert_int_equal(head_tag(2), 0);
	}
	for (i = 0; i < 4; i++) {
		assert_int_equal(atomic64_read(&flow[0]->queued), 4 - i);
		assert_int_equal(head_tag(2), 4 * i * KIB);
		assert_ptr_equal(dispatch(2), io[i]);
		assert_int_equal(h.queue[2].state, DISPATCH_IO);
	}
	assert_int_equal(atomic64_read(&flow[0]->queued), 0);
	assert_true(h.queue[2].head_tag == VTIME_NONE);
	hooks_dispatch(&h, 2, DISPATCH_EMPTY);
	assert_int_equal(h.queue[2].state, DISPATCH_EMPTY);
	close_mqfq();
}

/* After the heads are gone, flow 0 has the lesser tags; then it loses weight. */
TEST(new_weights_order_the_requests_that_wait)
{
	struct io *of[2][2];
	u32 i;

	open_mqfq(T, 8);
	flow_set_weight(flow[0], 300);
	for (i = 0; i < 4; i++)
		of[i % 2][i / 2] = insert(0, flow[i % 2]);
	dispatch(0);
	dispatch(0);
	assert_true(tag(of[0][1]) < tag(of[1][1]));
	assert_int_equal(h.queue[0].stats.rebuilds, 1);
	flow_set_weight(flow[0], 100);
	flow_set_weight(flow[1], 300);
	hooks_tune(&h, NULL);
	assert_ptr_equal(dispatch(0), of[1][1]);
	assert_int_equal(tag(of[0][1]), 16 * KIB);
	assert_int_equal(head_tag(0), 16 * KIB);
	assert_ptr_equal(dispatch(0), of[0][1]);
	/* One change costs the queue one rebuild. */
	assert_int_equal(h.queue[0].stats.rebuilds, 2);
	close_mqfq();
}

/* It has no tags that would be out of date. */
TEST(empty_queue_is_not_rebuilt)
{
	u64 before;

	open_mqfq(T, 8);
	send(0, flow[0]);
	send(1, flow[1]);
	before = h.queue[0].stats.rebuilds;
	hooks_dispatch(&h, 0, DISPATCH_EMPTY);
	send(0, flow[0]);
	assert_int_equal(h.queue[0].stats.rebuilds, before);
	close_mqfq();
}

/* The host asks the queue with the least head tag, so the tag must be right. */
TEST(throttled_queue_shows_its_new_tag)
{
	struct io *io[2];

	open_rivals(T, 1, BYTES, io);
	send_slotless(0, flow[0], 7);
	slotless_is_throttled(0, flow[0]);
	assert_int_equal(head_tag(0), 72 * KIB);
	/* Its share falls from a half to a third. */
	flow_set_weight(flow[1], 200);
	h.woken = 0;
	hooks_tune(&h, NULL);
	hooks_insert(&h, 0, flow[0], BYTES, IO_URGENT);
	dispatch(0);
	assert_in_range(head_tag(0), 108 * KIB - 16, 108 * KIB + 16);
	close_mqfq();
}

TEST(urgent_request_passes_and_takes_a_free_slot)
{
	struct io *waiting, *urgent;

	open_mqfq(T, 1);
	waiting = insert(0, flow[0]);
	urgent = hooks_insert(&h, 0, flow[1], BYTES, IO_URGENT);
	assert_ptr_equal(dispatch(0), urgent);
	assert_int_equal(h.queue[0].state, DISPATCH_IO);
	assert_int_equal(slots_used(&mqfq()->slots), 1);
	/* The next one finds none, and goes all the same. */
	hooks_insert(&h, 0, flow[1], BYTES, IO_URGENT);
	dispatch(0);
	assert_int_equal(slots_used(&mqfq()->slots), 1);
	hooks_dispatch(&h, 0, DISPATCH_NO_SLOT);
	hooks_complete(&h, urgent);
	assert_ptr_equal(dispatch(0), waiting);
	close_mqfq();
}

/*
 * The first one goes beyond D = 1.  The second one waits.  Queue 0 waits as well, and
 * for longer, but its slot is for queue 2.
 */
TEST(request_that_passes_has_the_next_slot)
{
	struct io *io, *beyond, *passer;

	open_mqfq(T, 1);
	io = send(0, flow[0]);
	insert(0, flow[0]);
	hooks_dispatch(&h, 0, DISPATCH_NO_SLOT);
	WRITE_ONCE(flow[1]->isolation.pass_until, UINT64_MAX);
	beyond = send(2, flow[1]);
	assert_int_equal(slots_used(&mqfq()->slots), 2);
	passer = insert(2, flow[1]);
	hooks_dispatch(&h, 2, DISPATCH_NO_SLOT);
	h.woken = 0;
	hooks_complete(&h, beyond);
	assert_int_equal(h.woken, 0);
	hooks_complete(&h, io);
	assert_int_equal(h.woken, BIT_ULL(2));
	assert_ptr_equal(dispatch(2), passer);
	assert_int_equal(slots_used(&mqfq()->slots), 1);
	h.woken = 0;
	hooks_complete(&h, passer);
	assert_int_equal(h.woken, BIT_ULL(0));
	close_mqfq();
}

/* ----------------------------------------------------------------------- lag */

/*
 * Flow 0 waits in queue 0, which does not run, while flow 1 goes on elsewhere.
 * The allowance is 64 KiB for the only slot.
 */
TEST(lag_within_the_allowance_is_kept)
{
	struct io *io;

	open_mqfq(32 * KIB, 1);
	send_slotless(2, flow[1], 1);
	io = insert(0, flow[0]);
	send_slotless(2, flow[1], 5);
	assert_int_equal(vt(), 40 * KIB);
	assert_ptr_equal(dispatch(0), io);
	assert_int_equal(tag(io), 0);
	close_mqfq();
}

TEST(greater_lag_is_forgotten)
{
	struct io *io;

	open_mqfq(32 * KIB, 1);
	send(3, flow[1]);
	io = insert(0, flow[0]);
	send_slotless(2, flow[1], 10);
	assert_int_equal(vt(), 80 * KIB);
	hooks_dispatch(&h, 0, DISPATCH_NO_SLOT);
	assert_int_equal(tag(io), 80 * KIB);
	assert_int_equal(head_tag(0), 80 * KIB);
	assert_true(mindicator_min(&mqfq()->tags) == hooks_tag(io));
	close_mqfq();
}

/* Queue 1 forgets the lag of flow 0.  The tag of queue 0 is its old one. */
TEST(forgotten_lag_reorders_the_other_queues)
{
	struct io *ours, *other;

	open_mqfq(32 * KIB, 4);
	ours = insert(0, flow[0]);
	insert(1, flow[0]);
	send_slotless(2, flow[1], 12);
	other = insert(0, flow[1]);
	assert_int_equal(tag(other), 96 * KIB);
	assert_int_equal(head_tag(0), 0);
	/* The allowance is 256 KiB. */
	send_slotless(2, flow[1], 24);
	assert_int_equal(vt(), 280 * KIB);
	dispatch(1);
	assert_int_equal(tag(ours), 272 * KIB);
	assert_ptr_equal(dispatch(0), other);
	assert_int_equal(head_tag(0), 272 * KIB);
	assert_ptr_equal(dispatch(0), ours);
	close_mqfq();
}

/* --------------------------------------------------------------------- slots */

/* The slot is in the leaf of a queue that does not need it. */
TEST(slot_is_taken_from_any_queue)
{
	struct io *io;

	open_mqfq(T, 1);
	io = send(0, flow[0]);
	hooks_complete(&h, io);
	io = send(3, flow[0]);
	assert_true(io->flags & IO_SLOT);
	assert_int_equal(slots_used(&mqfq()->slots), 1);
	hooks_complete(&h, io);
	assert_int_equal(slots_used(&mqfq()->slots), 0);
	close_mqfq();
}

TEST(queue_without_a_slot_is_woken_by_a_completion)
{
	struct io *io;

	open_mqfq(T, 1);
	io = send(0, flow[0]);
	insert(1, flow[1]);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	assert_int_equal(h.queue[1].state, DISPATCH_NO_SLOT);
	assert_int_equal(h.queue[1].stats.no_slot, 1);
	assert_int_equal(h.queue[0].stats.no_slot, 0);
	hooks_complete(&h, io);
	assert_int_equal(h.woken, BIT_ULL(1));
	assert_true(h.queue[1].wake_pending);
	dispatch(1);
	/* The tag of queue 1 is withdrawn, and virtual time stands still. */
	assert_int_equal(vt(), 0);
	assert_false(h.queue[1].wake_pending);
	assert_int_equal(h.queue[1].state, DISPATCH_IO);
	close_mqfq();
}

/* An urgent request passes, and the other request waits on. */
TEST(queue_with_an_urgent_request_goes_on_waiting)
{
	open_mqfq(T, 1);
	send(0, flow[0]);
	insert(1, flow[1]);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	assert_true(queue_set_has(&mqfq()->slots.ready, 1));
	hooks_insert(&h, 1, flow[1], BYTES, IO_URGENT);
	dispatch(1);
	assert_true(queue_set_has(&mqfq()->slots.ready, 1));
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	assert_true(queue_set_has(&mqfq()->slots.ready, 1));
	close_mqfq();
}

TEST(requeued_request_gives_its_slot_back_once)
{
	struct io *io;

	open_mqfq(T, 1);
	io = insert(0, flow[0]);
	insert(1, flow[1]);
	assert_ptr_equal(dispatch(0), io);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	hooks_requeue(&h, io);
	assert_int_equal(slots_used(&mqfq()->slots), 0);
	assert_int_equal(h.woken, BIT_ULL(1));
	hooks_requeue(&h, io);
	assert_int_equal(slots_used(&mqfq()->slots), 0);
	hooks_insert_again(&h, io);
	/* It is urgent now, and needs no slot.  The slot is for queue 1. */
	assert_ptr_equal(dispatch(0), io);
	assert_int_equal(slots_used(&mqfq()->slots), 0);
	dispatch(1);
	assert_int_equal(slots_used(&mqfq()->slots), 1);
	assert_int_equal(atomic64_read(&flow[0]->pos), BYTES);
	close_mqfq();
}

TEST(merged_bytes_are_charged)
{
	struct io *io;

	open_mqfq(T, 4);
	io = insert(0, flow[0]);
	hooks_merge(&h, io, 3 * BYTES);
	assert_int_equal(io->bytes, 3 * BYTES);
	assert_int_equal(atomic64_read(&flow[0]->pos), 3 * BYTES);
	assert_int_equal(tag(insert(0, flow[0])), 3 * BYTES);
	close_mqfq();
}

/* Its cost and its time count for the flow. */
TEST(completion_is_counted)
{
	struct flow_totals t;
	struct io *io;

	open_mqfq(T, 4);
	io = send(0, flow[0]);
	h.now += MS;
	hooks_complete(&h, io);
	flow_totals(flow[0], &t);
	assert_int_equal(t.done, 1);
	assert_int_equal(t.cost, BYTES);
	assert_int_equal(t.service_ns, MS);
	close_mqfq();
}

/* --------------------------------------------------------------------- block */

/* The host cannot run queue 1: no queue waits for its requests. */
TEST(blocked_queue_holds_no_queue_back)
{
	struct io *io[2];

	open_rivals(T, 1, BYTES, io);
	send_slotless(0, flow[0], 7);
	slotless_is_throttled(0, flow[0]);
	assert_int_equal(atomic64_read(&h.sched.stats.blocks), 0);
	complete_both(io);
	hooks_block(&h, 1);
	assert_int_equal(atomic64_read(&h.sched.stats.blocks), 1);
	assert_int_equal(h.queue[1].state, DISPATCH_IO);
	assert_int_equal(vt(), 72 * KIB);
	assert_int_equal(h.woken, BIT_ULL(0));
	dispatch(0);
	send_slotless(0, flow[0], 20);
	/* It has no tag any more that could be withdrawn. */
	hooks_block(&h, 1);
	assert_int_equal(atomic64_read(&h.sched.stats.blocks), 1);
	close_mqfq();
}

TEST(blocked_queue_waits_for_no_slot)
{
	struct io *io;

	open_mqfq(T, 1);
	io = send(0, flow[0]);
	insert(1, flow[1]);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	insert(2, flow[1]);
	hooks_dispatch(&h, 2, DISPATCH_NO_SLOT);
	hooks_block(&h, 1);
	assert_false(queue_set_has(&mqfq()->slots.ready, 1));
	hooks_complete(&h, io);
	assert_int_equal(h.woken, BIT_ULL(2));
	close_mqfq();
}

/* The block comes after the wake-up. */
TEST(blocked_queue_hands_its_slot_over)
{
	struct io *io;

	open_mqfq(T, 1);
	io = send(0, flow[0]);
	insert(1, flow[1]);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	insert(2, flow[1]);
	hooks_dispatch(&h, 2, DISPATCH_NO_SLOT);
	hooks_complete(&h, io);
	assert_int_equal(h.woken, BIT_ULL(1));
	hooks_block(&h, 1);
	assert_int_equal(h.woken, BIT_ULL(1) | BIT_ULL(2));
	close_mqfq();
}

/*
 * Queue 2 is woken for a slot, and has to wait for virtual time instead: its tag
 * has changed since it entered the set.
 */
TEST(throttled_queue_hands_its_slot_over)
{
	struct io *io[2];

	open_rivals(T, 1, BYTES, io);
	send_slotless(2, flow[0], 7);
	insert(2, flow[0]);
	hooks_dispatch(&h, 2, DISPATCH_THROTTLED);
	insert(3, flow[1]);
	hooks_dispatch(&h, 3, DISPATCH_NO_SLOT);
	slots_withdraw(&mqfq()->slots, 1);
	queue_set_add(&mqfq()->slots.ready, 2);
	hooks_complete(&h, io[0]);
	assert_int_equal(h.woken, BIT_ULL(2));
	hooks_dispatch(&h, 2, DISPATCH_THROTTLED);
	assert_int_equal(h.woken, BIT_ULL(2) | BIT_ULL(3));
	close_mqfq();
}

/* ---------------------------------------------------------------------- tick */

/* The queue is counted, not woken: a lost wake-up is a defect to be found. */
static void watch(u32 forgotten)
{
	h.woken = 0;
	hooks_run(&h, h.now + 2000 * MS);
	assert_int_equal(atomic64_read(&h.sched.stats.watchdog), forgotten);
	assert_int_equal(h.woken, 0);
	close_mqfq();
}

static void throttled_by_rivals(u32 threshold)
{
	struct io *io[2];

	open_rivals(threshold, 1, BYTES, io);
	if (threshold)
		send_slotless(0, flow[0], 7);
	slotless_is_throttled(0, flow[0]);
}

TEST(watchdog_leaves_waiting_queues_alone)
{
	throttled_by_rivals(T);
	watch(0);
	throttled_by_rivals(0);
	watch(0);
	/* The wheel wakes a queue up to one bucket after its due time. */
	throttled_by_rivals(T);
	atomic64_add(15 * KIB, &mqfq()->vt);
	watch(0);
}

TEST(watchdog_finds_a_queue_that_virtual_time_forgot)
{
	throttled_by_rivals(T);
	atomic64_add(16 * KIB, &mqfq()->vt);
	watch(1);
	throttled_by_rivals(0);
	mindicator_set(&mqfq()->tags, 1, VTIME_NONE);
	watch(1);
}

TEST(watchdog_finds_a_queue_that_a_slot_forgot)
{
	struct io *io[2];

	open_rivals(T, 1, BYTES, io);
	token_put(&mqfq()->slots.tree, 3);
	h.woken = 0;
	hooks_run(&h, h.now + 2000 * MS);
	assert_int_equal(atomic64_read(&h.sched.stats.watchdog), 1);
	assert_true(token_steal(&mqfq()->slots.tree, 3, NULL));
	close_mqfq();
}

/* Urgent requests alone: they wait for the host. */
TEST(watchdog_leaves_urgent_requests_alone)
{
	open_mqfq(T, 1);
	hooks_insert(&h, 0, flow[0], BYTES, IO_URGENT);
	watch(0);
}

/* A third flow becomes idle, so the tags of the others come nearer. */
TEST(tick_wakes_throttled_queues_when_shares_grow)
{
	struct io *io[2];

	open_mqfq(T, 2);
	hooks_complete(&h, send(0, hooks_flow(&h, 100)));
	io[0] = send(0, flow[0]);
	io[1] = send(0, flow[0]);
	insert(1, flow[1]);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	/* Tags 24, 36, 48 and 60 KiB. */
	send_slotless(0, flow[0], 4);
	slotless_is_throttled(0, flow[0]);
	complete_both(io);
	hooks_run(&h, h.now + FLOW_GRACE_NS / 2);
	assert_int_equal(h.woken, 0);
	hooks_run(&h, h.now + 2 * FLOW_GRACE_NS);
	assert_int_equal(h.woken, BIT_ULL(0));
	assert_in_range(tag(dispatch(0)), 48 * KIB - 16, 48 * KIB + 16);
	close_mqfq();
}

/* Isolation looks at the flows every two milliseconds at least. */
TEST(tick_looks_after_isolation)
{
	struct sched_params p;

	open_mqfq(T, 2);
	p = h.sched.params;
	p.isolation = 8;
	hooks_tune(&h, &p);
	insert(0, flow[0]);
	hooks_tick(&h);
	assert_true(h.tick_ns > 0);
	assert_true(h.tick_ns <= h.now + 2 * LOOK_LEAST_NS);
	close_mqfq();
}

/* One request of 100 us after another, for samples of 10 ms. */
TEST(costs_are_learned_from_completions)
{
	struct sched_params p;
	u32 i;

	open_mqfq(T, 2);
	p = h.sched.params;
	p.cost.kind = COST_LEARNED;
	hooks_tune(&h, &p);
	for (i = 0; i < 1000; i++) {
		struct io *io = send(0, flow[0]);

		hooks_run(&h, h.now + MS / 10);
		hooks_complete(&h, io);
	}
	assert_true(h.sched.cost_estimator->cost_rls.samples > 0);
	close_mqfq();
}

/* ---------------------------------------------------------------------- tune */

/* A share has changed: the tags by which queues are parked are old ones. */
TEST(new_shares_wake_throttled_queues)
{
	static const u32 thresholds[] = { T, 0 };
	struct io *io[2];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(thresholds); i++) {
		open_rivals(thresholds[i], 1, BYTES, io);
		if (thresholds[i])
			send_slotless(0, flow[0], 7);
		slotless_is_throttled(0, flow[0]);
		complete_both(io);
		hooks_tune(&h, NULL);
		assert_int_equal(h.woken, BIT_ULL(0));
		hooks_dispatch(&h, 0, DISPATCH_THROTTLED);
		close_mqfq();
	}
}

/* Each queue looks at the new parameters itself, whatever they are. */
TEST(new_parameters_wake_all_that_wait)
{
	struct sched_params p;
	struct io *io[2];

	open_rivals(T, 1, BYTES, io);
	send_slotless(0, flow[0], 7);
	slotless_is_throttled(0, flow[0]);
	h.woken = 0;
	p = h.sched.params;
	mqfq_params(&p)->threshold = 2 * T;
	hooks_tune(&h, &p);
	/* Queue 0 is not throttled any more, and no slot is free for it. */
	assert_int_equal(h.woken, BIT_ULL(0) | BIT_ULL(1));
	dispatch(0);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	p.depth = 3;
	hooks_tune(&h, &p);
	assert_int_equal(h.sched.params.depth, 3);
	dispatch(1);
	close_mqfq();
}

/* The width of the wheel follows T: the queue is due at 16 - 12 KiB. */
TEST(new_threshold_wakes_in_time)
{
	struct sched_params p;
	struct io *io[2];

	open_rivals(T, 4, BYTES / 2, io);
	p = h.sched.params;
	mqfq_params(&p)->threshold = 12 * KIB;
	hooks_tune(&h, &p);
	hooks_dispatch(&h, 1, DISPATCH_NO_SLOT);
	slotless_is_throttled(0, flow[0]);
	complete_both(io);
	dispatch(1);
	assert_int_equal(vt(), 4 * KIB);
	assert_int_equal(h.woken, BIT_ULL(0));
	dispatch(0);
	close_mqfq();
}

/* ---------------------------------------------------------------------- life */

TEST(virtual_time_starts_64_gib_before_its_wrap)
{
	open_mqfq(T, 2);
	assert_true(mqfq_vt(mqfq()) + (64ULL << 30) == 0);
	close_mqfq();
}

TEST(init_fails_without_memory)
{
	/* Topology, queues, scheduler, watchdog, estimator, trees, wheel. */
	assert_true(hooks_init_without_memory(&mqfq_ops) >= 8);
}
