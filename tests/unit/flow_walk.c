// SPDX-License-Identifier: GPL-2.0
/* Walks over the active flows: each is visited once, whatever comes and leaves. */
#include "unit.h"
#include "sched/core/flow.h"
#include "sched/core/sched.h"

enum { FLOWS = 6 };

struct fixture {
	struct sched sched;
	struct flow *flow[FLOWS];
};

static const struct sched_ops plain_ops = { .name = "plain" };

static void fixture_init(struct fixture *b)
{
	u32 i;

	memset(b, 0, sizeof(*b));
	b->sched.ops = &plain_ops;
	b->sched.nr_queues = 1;
	share_tree_init(&b->sched.share);
	port_lock_init(&b->sched.active_lock);
	for (i = 0; i < FLOWS; i++) {
		b->flow[i] = port_zalloc(flow_size(&plain_ops, 1));
		assert_non_null(b->flow[i]);
		flow_init(b->flow[i], &b->sched, NULL, WEIGHT_DEFAULT);
	}
}

/* The flow has a request, and is active. */
static void come(struct fixture *b, u32 i)
{
	struct flow_start start;

	flow_charge(b->flow[i], 1, 0, false, &start);
	assert_int_equal(atomic64_read(&b->flow[i]->active), 1);
}

static void leave(struct fixture *b, u32 i)
{
	flow_exit(b->flow[i]);
}

static void fixture_deinit(struct fixture *b)
{
	u32 i;

	for (i = 0; i < FLOWS; i++) {
		flow_exit(b->flow[i]);
		port_free(b->flow[i]);
	}
	assert_null(b->sched.active);
}

static void visit(const struct fixture *b, const struct flow *f, u32 *visits)
{
	u32 i;

	port_assert_held(&f->sched->active_lock);
	for (i = 0; i < FLOWS; i++)
		visits[i] += b->flow[i] == f;
}

static void assert_visits(struct fixture *b, const u32 *times)
{
	u32 visits[FLOWS] = { 0 };
	struct flow_walk w;
	struct flow *f;

	for_each_active_flow(f, &w, &b->sched)
		visit(b, f, visits);
	assert_false(b->sched.active_lock.held);
	assert_memory_equal(visits, times, sizeof(visits));
}

/* Flows leave at both ends and in the middle, and come again. */
TEST(each_active_flow_is_visited_once)
{
	struct fixture b;
	u32 i;

	fixture_init(&b);
	assert_visits(&b, (u32[FLOWS]){ 0 });
	for (i = 0; i < 4; i++)
		come(&b, i);
	assert_visits(&b, (u32[FLOWS]){ 1, 1, 1, 1 });
	for (i = 0; i < 4; i += 3)
		leave(&b, i);
	come(&b, 4);
	come(&b, 5);
	assert_visits(&b, (u32[FLOWS]){ 0, 1, 1, 0, 1, 1 });
	for (i = 1; i < FLOWS; i++)
		leave(&b, i);
	come(&b, 2);
	assert_visits(&b, (u32[FLOWS]){ 0, 0, 1 });
	fixture_deinit(&b);
}

/* The queues of all flows have more lines than a walk reads at once. */
TEST(walk_releases_the_lock)
{
	struct fixture b;
	struct flow_walk w;
	u32 i;

	fixture_init(&b);
	for (i = 0; i < 2; i++)
		come(&b, i);
	b.sched.nr_queues = FLOW_WALK_LINES / 2 - FLOW_LINES;
	assert_ptr_equal(flow_walk_begin(&w, &b.sched), b.flow[0]);
	assert_int_equal(w.left, 2);
	b.sched.nr_queues = 2 * FLOW_WALK_LINES;
	assert_ptr_equal(flow_walk_next(&w), b.flow[1]);
	assert_null(flow_walk_next(&w));
	assert_ptr_equal(flow_walk_begin(&w, &b.sched), b.flow[0]);
	assert_int_equal(w.left, 1);
	assert_ptr_equal(flow_walk_next(&w), b.flow[1]);
	assert_null(flow_walk_next(&w));
	b.sched.nr_queues = 1;
	fixture_deinit(&b);
}

/* The lock is free between two flows, as with very many queues. */
static struct flow *walk_on(struct flow_walk *w, bool begins, struct sched *s)
{
	struct flow *f = begins ? flow_walk_begin(w, s) : flow_walk_next(w);

	if (f)
		port_unlock(&s->active_lock, 0);
	return f;
}

static void walk_lock_again(struct sched *s)
{
	(void)port_lock(&s->active_lock);
}

/* Of four flows, the first visit is over.  @change: what happens meanwhile. */
static void assert_rest(void (*change)(struct fixture *b), const u32 *rest)
{
	u32 visits[FLOWS] = { 0 };
	struct fixture b;
	struct flow_walk w;
	struct flow *f;
	u32 i;

	fixture_init(&b);
	for (i = 0; i < 4; i++)
		come(&b, i);
	f = walk_on(&w, true, &b.sched);
	assert_ptr_equal(f, b.flow[0]);
	change(&b);
	for (;;) {
		walk_lock_again(&b.sched);
		f = walk_on(&w, false, &b.sched);
		if (!f)
			break;
		for (i = 0; i < FLOWS; i++)
			visits[i] += b.flow[i] == f;
	}
	assert_memory_equal(visits, rest, sizeof(visits));
	fixture_deinit(&b);
}

static void first_leaves(struct fixture *b)
{
	leave(b, 0);
}

static void next_and_last_leave(struct fixture *b)
{
	leave(b, 1);
	leave(b, 3);
}

static void all_leave(struct fixture *b)
{
	u32 i;

	for (i = 0; i < 4; i++)
		leave(b, i);
}

static void others_come(struct fixture *b)
{
	come(b, 4);
	come(b, 5);
}

static void all_leave_and_others_come(struct fixture *b)
{
	all_leave(b);
	others_come(b);
}

static void one_leaves_and_returns(struct fixture *b)
{
	leave(b, 2);
	come(b, 2);
}

/* Those that stay are visited once, and those that come are not. */
TEST(flows_come_and_leave_during_a_walk)
{
	assert_rest(first_leaves, (u32[FLOWS]){ 0, 1, 1, 1 });
	assert_rest(next_and_last_leave, (u32[FLOWS]){ 0, 0, 1, 0 });
	assert_rest(all_leave, (u32[FLOWS]){ 0 });
	assert_rest(others_come, (u32[FLOWS]){ 0, 1, 1, 1 });
	assert_rest(all_leave_and_others_come, (u32[FLOWS]){ 0 });
	assert_rest(one_leaves_and_returns, (u32[FLOWS]){ 0, 1, 0, 1 });
}
