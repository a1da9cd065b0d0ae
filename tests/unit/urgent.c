// SPDX-License-Identifier: GPL-2.0
/* The bounds of urgent requests, under mqfq: urgent.h. */
#include "hooks.h"
#include "sched/core/policies.h"
#include "sched/core/queue.h"

enum {
	BYTES	= HOOKS_BYTES,
	D	= 32,
	PASSING	= D >> URGENT_DEPTH_SHIFT,
	/* 100 bytes per microsecond. */
	RATE	= (100 << URGENT_RATE_SHIFT) / 1000,
};

static struct hooks h;
static struct flow *light, *heavy;

static void bound(struct flow *f)
{
	atomic64_set(&f->urgent.passing, 0);
}

static void open_urgent(void)
{
	struct sched_params p;

	sched_params_init(&mqfq_ops, &p);
	p.isolation = 0;
	p.depth = D;
	hooks_open(&h, &mqfq_ops, &p, 2);
	light = hooks_flow(&h, 10);
	heavy = hooks_flow(&h, 1000);
	bound(h.root);
	bound(light);
	bound(heavy);
	h.sched.urgent.rate = RATE;
}

static void close_urgent(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

static struct io *urgent(u32 queue, struct flow *f)
{
	return hooks_insert(&h, queue, f, BYTES, IO_URGENT);
}

static bool passes(const struct io *io)
{
	return io->flags & IO_URGENT;
}

/* Both flows are active, so their shares are known. */
static void activate(void)
{
	hooks_complete(&h, (hooks_read(&h, 0, light), hooks_next(&h, 0)));
	hooks_complete(&h, (hooks_read(&h, 0, heavy), hooks_next(&h, 0)));
}

TEST(quarter_of_the_depth_passes)
{
	struct io *io[PASSING], *more;
	u32 i;

	open_urgent();
	activate();
	for (i = 0; i < PASSING; i++) {
		io[i] = urgent(0, heavy);
		assert_true(passes(io[i]));
		assert_ptr_equal(hooks_next(&h, 0), io[i]);
	}
	more = urgent(0, heavy);
	assert_false(passes(more));
	/* A flow with a larger share than the root's pays by itself. */
	assert_ptr_equal(more->flow, heavy);
	assert_ptr_equal(hooks_next(&h, 0), more);
	assert_int_equal(more->flags & IO_SLOT, IO_SLOT);
	hooks_complete(&h, io[0]);
	assert_true(passes(urgent(0, heavy)));
	close_urgent();
}

/* Sends urgent requests of @f until one does not pass; returns their cost. */
static u64 pass_all(struct flow *f)
{
	u64 cost = 0;

	for (;;) {
		struct io *io = urgent(0, f);

		if (!passes(io)) {
			hooks_complete(&h, hooks_next(&h, 0));
			return cost;
		}
		hooks_complete(&h, hooks_next(&h, 0));
		cost += BYTES;
	}
}

static u64 worth(u64 share, u64 ns)
{
	return mul_u64_u64_shr(mul_u64_u64_shr(ns, RATE, URGENT_RATE_SHIFT),
			       share, SHARE_SHIFT);
}

/* At once 50 ms of the share pass, and later half of the share. */
TEST(debt_is_bounded)
{
	u64 share, cost;

	open_urgent();
	activate();
	share = flow_share(heavy);
	cost = pass_all(heavy);
	assert_in_range(cost, worth(share, URGENT_DEBT_NS) - BYTES,
			worth(share, URGENT_DEBT_NS));
	h.now += 10 * MS;
	cost = pass_all(heavy);
	assert_in_range(cost, worth(share, 5 * MS) - BYTES,
			worth(share, 5 * MS) + BYTES);
	/* However long the flow sends none. */
	h.now += 10000 * MS;
	cost = pass_all(heavy);
	assert_in_range(cost, worth(share, URGENT_DEBT_NS) - BYTES,
			worth(share, URGENT_DEBT_NS));
	close_urgent();
}

/* A request that costs more than the bound does not pass, and is charged. */
TEST(large_request_is_ordered)
{
	struct io *io;

	open_urgent();
	activate();
	io = hooks_insert(&h, 0, light, 1 << 20, IO_URGENT);
	assert_false(passes(io));
	assert_ptr_equal(io->flow, h.root);
	assert_int_equal(atomic64_read(&h.root->pos), 1 << 20);
	assert_int_equal(atomic64_read(&light->pos), BYTES);
	close_urgent();
}

/*
 * The same if the flow is idle: its share is that of its weight.  A task that
 * waits for its swap writes leaves its flow idle.
 */
TEST(large_request_of_an_idle_flow_is_ordered)
{
	struct io *io;

	open_urgent();
	hooks_complete(&h, (hooks_read(&h, 0, heavy), hooks_next(&h, 0)));
	io = hooks_insert(&h, 0, light, 1 << 20, IO_URGENT);
	assert_false(passes(io));
	assert_ptr_equal(io->flow, h.root);
	assert_int_equal(flow_share(light), 0);
	close_urgent();
}

/* A request that will be ordered takes its tag in order, too. */
TEST(flow_of_large_requests_takes_no_tag_out_of_order)
{
	open_urgent();
	activate();
	assert_true(passes(urgent(0, light)));
	assert_true(urgent_may_pass(light, h.now));
	assert_false(passes(hooks_insert(&h, 0, light, 1 << 20, IO_URGENT)));
	assert_false(urgent_may_pass(light, h.now));
	assert_true(urgent_may_pass(heavy, h.now));
	/* Its next small one tells that it sends small ones. */
	assert_true(passes(urgent(0, light)));
	assert_true(urgent_may_pass(light, h.now));
	close_urgent();
}

/* Inserts an urgent request of the light flow that does not pass. */
static struct io *adopted(u32 queue)
{
	struct io *io;

	atomic64_set(&light->urgent.passing, PASSING);
	io = urgent(queue, light);
	atomic64_set(&light->urgent.passing, 0);
	assert_false(passes(io));
	assert_ptr_equal(io->flow, h.root);
	return io;
}

/* One adopted request of each queue is charged; the others follow one by one. */
TEST(adopted_requests_wait_for_each_other)
{
	struct io *first, *second, *third, *other;

	open_urgent();
	activate();
	first = adopted(0);
	second = adopted(0);
	third = adopted(0);
	other = adopted(1);
	assert_int_equal(h.queue[0].nr, 3);
	assert_true(first->flags & IO_CHARGED);
	assert_true(other->flags & IO_CHARGED);
	assert_true(second->flags & IO_TO_ADOPT);
	assert_true(third->flags & IO_TO_ADOPT);
	assert_int_equal(atomic64_read(&h.root->pos), 2 * BYTES);
	assert_int_equal(atomic64_read(&h.root->queued), 4);
	/* A merge is charged when its request is. */
	hooks_merge(&h, second, 2 * BYTES);
	assert_int_equal(atomic64_read(&h.root->pos), 2 * BYTES);
	assert_ptr_equal(hooks_next(&h, 0), first);
	assert_int_equal(second->flags & (IO_TO_ADOPT | IO_CHARGED),
			 IO_CHARGED);
	assert_int_equal(atomic64_read(&h.root->pos), 4 * BYTES);
	assert_int_equal(atomic64_read(&h.root->queued), 3);
	assert_ptr_equal(hooks_next(&h, 0), second);
	assert_ptr_equal(hooks_next(&h, 0), third);
	hooks_dispatch(&h, 0, DISPATCH_EMPTY);
	assert_null(h.queue[0].adopted);
	assert_ptr_equal(hooks_next(&h, 1), other);
	assert_int_equal(atomic64_read(&h.root->queued), 0);
	assert_int_equal(atomic64_read(&h.root->pos), 5 * BYTES);
	close_urgent();
}

/* The root's own request waits for one adopted request, and not for all. */
TEST(root_waits_for_one_adopted_request)
{
	struct io *first, *second, *own;

	open_urgent();
	activate();
	first = adopted(0);
	second = adopted(0);
	adopted(0);
	own = hooks_read(&h, 0, h.root);
	assert_ptr_equal(hooks_next(&h, 0), first);
	assert_ptr_equal(hooks_next(&h, 0), own);
	assert_ptr_equal(hooks_next(&h, 0), second);
	close_urgent();
}

/* The driver sends an adopted request back: it passes, and is not charged. */
TEST(requeued_request_passes)
{
	struct io *io;

	open_urgent();
	activate();
	io = adopted(0);
	hooks_next(&h, 0);
	hooks_requeue(&h, io);
	hooks_insert_again(&h, io);
	assert_true(passes(io));
	assert_int_equal(atomic64_read(&h.root->urgent.passing), 1);
	assert_ptr_equal(hooks_next(&h, 0), io);
	hooks_complete(&h, io);
	assert_int_equal(atomic64_read(&h.root->urgent.passing), 0);
	assert_int_equal(atomic64_read(&h.root->pos), BYTES);
	close_urgent();
}

/* Deferred requests go without delay while the scheduler drains. */
TEST(requests_to_adopt_drain)
{
	u32 i;

	open_urgent();
	activate();
	for (i = 0; i < 3 * D; i++)
		adopted(0);
	hooks_set_drain(&h, true);
	for (i = 0; i < 3 * D; i++)
		hooks_next(&h, 0);
	hooks_dispatch(&h, 0, DISPATCH_EMPTY);
	close_urgent();
}

/* The rate is the work of the flows, over a time that is not too long. */
TEST(rate_is_learned)
{
	u64 first;

	open_urgent();
	urgent_init(&h.sched.urgent);
	first = h.sched.urgent.rate;
	assert_int_equal(first, URGENT_RATE_FIRST);
	activate();
	urgent_measure(&h.sched.urgent, 1 << 20, 1 * MS);
	assert_int_equal(h.sched.urgent.rate,
			 first - first / 4 +
				 ((1ULL << (20 + URGENT_RATE_SHIFT)) / MS) / 4);
	first = h.sched.urgent.rate;
	/* The device did nothing, or the last sweep was long ago. */
	urgent_measure(&h.sched.urgent, 0, 1 * MS);
	urgent_measure(&h.sched.urgent, 1 << 20, 3000 * MS);
	assert_int_equal(h.sched.urgent.rate, first);
	close_urgent();
}
