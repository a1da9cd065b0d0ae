// SPDX-License-Identifier: GPL-2.0
/* The start of a returning flow under min, max and 4tag, and windows on time. */
#include "hooks.h"
#include "sched/core/policies.h"
#include "sched/ifq/ifq.h"

enum {
	BYTES	= 4096,
};

static struct hooks h;

static void open_ifq_on(u32 nr_queues, u32 virtual_time, u32 depth)
{
	struct sched_params p;

	sched_params_init(&ifq_ops, &p);
	p.depth = depth;
	ifq_params(&p)->virtual_time = virtual_time;
	hooks_open(&h, &ifq_ops, &p, nr_queues);
}

static void open_ifq(u32 virtual_time, u32 depth)
{
	open_ifq_on(1, virtual_time, depth);
}

static void close_ifq(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

static void choose_virtual_time(u32 virtual_time)
{
	struct sched_params p = h.sched.params;

	ifq_params(&p)->virtual_time = virtual_time;
	hooks_tune(&h, &p);
}

static const struct device_tags *device_tags(void)
{
	return &((const struct ifq *)h.sched.own)->tags;
}

static vtime_t least_in_device(void)
{
	return (vtime_t)atomic64_read(&device_tags()->least);
}

static vtime_t most_dispatched(void)
{
	return (vtime_t)atomic64_read(&device_tags()->most);
}

/* Inserts @n requests of @f. */
static void send(struct flow *f, u32 n)
{
	while (n--)
		hooks_insert(&h, 0, f, BYTES, 0);
}

/* Dispatches a request that is its flow's first; *@tag is its start tag. */
static struct io *dispatch(vtime_t *tag)
{
	struct io *io = hooks_dispatch(&h, 0, DISPATCH_IO);

	*tag = hooks_tag(io);
	return io;
}

/* The start tag of the first request of a flow that was not there before. */
static vtime_t start_of_newcomer(void)
{
	return hooks_tag(hooks_insert(&h, 0, hooks_flow(&h, 100), BYTES, 0));
}

/*
 * Four requests are in the device, and others of the same flow wait.  A newcomer
 * is in line with those (min), before them (max), or at the oldest of the device
 * (4tag).
 */
TEST(newcomer_starts_where_virtual_time_says)
{
	u32 vt;

	for (vt = IFQ_MIN; vt <= IFQ_4TAG; vt++) {
		vtime_t tag[4], waiting, start;
		u32 i;

		open_ifq(vt, 4);
		send(hooks_flow(&h, 100), 6);
		for (i = 0; i < 4; i++)
			dispatch(&tag[i]);
		hooks_dispatch(&h, 0, DISPATCH_NO_SLOT);
		waiting = h.queue[0].head_tag;
		assert_true(waiting - tag[3] == tag[3] - tag[2]);
		start = start_of_newcomer();
		if (vt == IFQ_MIN)
			assert_true(start == waiting);
		else
			assert_true(start == tag[vt == IFQ_MAX ? 3 : 0]);
		close_ifq();
	}
}

/*
 * An urgent request passes those of its flow, so the device has a greater tag
 * than those that wait.  A newcomer does not start beyond the latter.
 */
TEST(newcomer_does_not_start_after_those_that_wait)
{
	vtime_t urgent, waiting;
	struct flow *f;

	open_ifq(IFQ_MAX, 4);
	f = hooks_flow(&h, 100);
	send(f, 4);
	waiting = h.queue[0].head_tag;
	hooks_insert(&h, 0, f, BYTES, IO_URGENT);
	dispatch(&urgent);
	assert_true(vtime_before(waiting, urgent));
	assert_true(most_dispatched() == urgent);
	assert_true(start_of_newcomer() == waiting);
	close_ifq();
}

/*
 * Requests go to the device and come back, in any order.  The greatest tag is
 * the greatest of those dispatched.  The least tag is one that was the greatest
 * before any request of the device was dispatched, and it never goes back.
 */
TEST(tags_bound_those_in_the_device)
{
	struct random r = random_seeded("unit/ifq");
	struct in_device {
		struct io *io;
		vtime_t before; /* greatest dispatched until then */
	} in[HOOKS_IOS];
	u32 depth, step, nr = 0, i;

	for (depth = 1; depth <= 8; depth++) {
		vtime_t most, least, tag;
		struct flow *f[2];

		open_ifq(IFQ_4TAG, depth);
		f[0] = hooks_flow(&h, 100);
		f[1] = hooks_flow(&h, 300);
		most = least = least_in_device();
		for (step = 0; step < 2000; step++) {
			send(f[random_below(&r, 2)], h.queue[0].nr < 20);
			if (nr < depth && !random_once_in(&r, 3)) {
				in[nr].before = most;
				in[nr++].io = dispatch(&tag);
				most = vtime_max(most, tag);
			} else if (nr) {
				i = random_below(&r, nr);
				hooks_complete(&h, in[i].io);
				in[i] = in[--nr];
			}
			assert_true(most_dispatched() == most);
			assert_false(vtime_before(least_in_device(), least));
			least = least_in_device();
			for (i = 0; i < nr; i++)
				assert_false(vtime_before(in[i].before, least));
		}
		while (nr)
			hooks_complete(&h, in[--nr].io);
		close_ifq();
	}
}

/* In order, a flow makes up for two rounds of the device at most. */
TEST(least_tag_follows_the_device)
{
	enum {
		REQUESTS = 100
	};
	vtime_t most_after[REQUESTS + 1]; /* so many were dispatched */
	struct io *io[REQUESTS];
	u32 depth, k;

	for (depth = 1; depth <= 8; depth++) {
		open_ifq(IFQ_4TAG, depth);
		send(hooks_flow(&h, 100), REQUESTS);
		most_after[0] = least_in_device();
		for (k = 0; k < REQUESTS; k++) {
			if (k >= depth)
				hooks_complete(&h, io[k - depth]);
			io[k] = dispatch(&most_after[k + 1]);
			if (k + 1 >= 2 * depth)
				assert_false(vtime_before(
					least_in_device(),
					most_after[k + 1 - 2 * depth]));
		}
		close_ifq();
	}
}

/* With one request at a time the tags are exact. */
TEST(least_tag_of_one_request_is_the_one_before)
{
	vtime_t tag, before = 0;
	struct io *io;
	u32 i;

	open_ifq(IFQ_4TAG, 4);
	send(hooks_flow(&h, 100), 6);
	for (i = 0; i < 6; i++) {
		io = dispatch(&tag);
		if (i)
			assert_true(least_in_device() == before);
		hooks_complete(&h, io);
		assert_true(least_in_device() == tag);
		before = tag;
	}
	close_ifq();
}

/*
 * While virtual time is min, no tags are kept.  The service of that time is no
 * credit after a change to max or 4tag.
 */
TEST(change_of_virtual_time_gives_no_credit)
{
	u32 vt, i;

	for (vt = IFQ_MAX; vt <= IFQ_4TAG; vt++) {
		vtime_t tag, changed;
		struct io *io;

		open_ifq(vt, 4);
		send(hooks_flow(&h, 100), 30);
		hooks_complete(&h, dispatch(&changed));
		hooks_complete(&h, dispatch(&changed));
		io = dispatch(&changed);
		choose_virtual_time(IFQ_MIN);
		for (i = 0; i < 10; i++)
			hooks_complete(&h, dispatch(&changed));
		choose_virtual_time(vt);
		/* No batch of requests remembers an older tag. */
		for (i = 0; i < 3; i++) {
			assert_false(vtime_before(start_of_newcomer(),
						  changed));
			hooks_complete(&h, io);
			assert_false(vtime_before(start_of_newcomer(),
						  changed));
			io = dispatch(&tag);
		}
		close_ifq();
	}
}

/* A change of another parameter loses no tag. */
TEST(other_changes_keep_the_tags)
{
	vtime_t tag[4];
	u32 i;

	open_ifq(IFQ_4TAG, 4);
	send(hooks_flow(&h, 100), 6);
	for (i = 0; i < 4; i++)
		dispatch(&tag[i]);
	hooks_dispatch(&h, 0, DISPATCH_NO_SLOT);
	choose_virtual_time(IFQ_4TAG);
	assert_true(least_in_device() == tag[0]);
	assert_true(most_dispatched() == tag[3]);
	close_ifq();
}

/* -------------------------------------------------------------------- windows */

static u64 window(void)
{
	return ((const struct ifq *)h.sched.own)->ifq_weight.window;
}

static void set_window(u32 window_ms, u32 damping)
{
	struct sched_params p = h.sched.params;

	ifq_params(&p)->window_ms = window_ms;
	ifq_params(&p)->damping = damping;
	hooks_tune(&h, &p);
}

TEST(windows_end_on_time)
{
	u64 first, i;
	vtime_t tag;

	open_ifq(IFQ_MIN, 4);
	set_window(70, 50);
	send(hooks_flow(&h, 100), 1);
	dispatch(&tag);
	first = window();
	for (i = 1; i < 20; i++) {
		hooks_run(&h, i * 70 * MS - 1);
		assert_true(window() == first + i - 1);
		hooks_run(&h, i * 70 * MS);
		assert_true(window() == first + i);
	}
	close_ifq();
}

/* No tick is asked for when all flows are idle. */
TEST(windows_need_no_tick_without_flows)
{
	vtime_t tag;

	open_ifq(IFQ_MIN, 4);
	set_window(70, 50);
	send(hooks_flow(&h, 100), 1);
	hooks_complete(&h, dispatch(&tag));
	hooks_run(&h, 1000 * MS);
	assert_null(h.sched.active);
	assert_true(h.tick_ns == 0);
	close_ifq();
}

/*
 * Two tenants are served alike in the first window.  One of them is idle in the
 * second.  Its share has grown with its first request, not with a later one.
 */
TEST(returning_tenant_has_its_weight_at_once)
{
	u64 generation;
	struct flow *f[2];
	vtime_t tag;
	u32 i, k;

	open_ifq(IFQ_MIN, 4);
	set_window(400, 100);
	for (k = 0; k < 2; k++)
		f[k] = hooks_flow(&h, 100);
	for (i = 1; i <= 90; i++) {
		for (k = 0; k < (i < 40 ? 2 : 1); k++)
			hooks_insert(&h, 0, f[k], 1 << 20, 0);
		while (h.queue[0].nr)
			hooks_complete(&h, dispatch(&tag));
		hooks_run(&h, i * 10 * MS);
	}
	assert_true(window() == 3);
	assert_true(flow_share(f[1]) == 0);
	send(f[1], 1);
	assert_true(share_of(&h.sched.share, &f[1]->group, &generation) >
		    SHARE_ONE * 9 / 10);
	close_ifq();
}

static void set_scale_of_root(u32 scale)
{
	share_scale_own(&h.sched.share, &h.root->group, scale * SCALE_ONE);
	share_scaled(&h.sched.share);
}

/*
 * The root has a large scale, so a queue of another tenant is far ahead of it.
 * Then the root adopts, and that queue may go earlier: it looks again (I7).
 */
TEST(adoption_wakes_throttled_queues)
{
	struct flow *light, *heavy;

	open_ifq_on(2, IFQ_MIN, 4);
	light = hooks_flow(&h, 10);
	heavy = hooks_flow(&h, 1000);
	hooks_send(&h, 0, h.root, 3);
	set_scale_of_root(300);
	hooks_send(&h, 1, heavy, 1);
	hooks_send_in_vain(&h, 0, h.root);
	hooks_read(&h, 1, heavy);
	hooks_dispatch(&h, 1, DISPATCH_THROTTLED);
	h.woken = 0;
	/* Too many of its requests pass. */
	atomic64_set(&light->urgent.passing, HOOKS_IOS);
	assert_ptr_equal(hooks_insert(&h, 0, light, BYTES, IO_URGENT)->flow,
			 h.root);
	atomic64_set(&light->urgent.passing, 0);
	assert_true(h.woken & BIT_ULL(1));
	assert_int_equal(h.root->group.own_scale, SCALE_ONE);
	close_ifq();
}
