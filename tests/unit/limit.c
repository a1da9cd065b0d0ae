// SPDX-License-Identifier: GPL-2.0
/* The order of the tasks that wait for scheduler tags: see limit.h. */
#include "unit.h"
#include "sched/core/limit.h"
#include "sched/core/sched.h"

enum {
	FLOWS	= 300,
	WAITERS	= 2000,
	MAPS	= 4,
	TAGS	= 64,			/* of each map */
	COST	= 4096,
	MS	= 1000 * 1000,
};

static const struct sched_ops plain_ops = { .name = "plain" };

struct fixture {
	struct sched sched;
	struct tag_waiters map[MAPS];
	struct flow *flow[FLOWS];	/* the first is the root */
	u32 nr;
	struct tag_waiter waiter[WAITERS];
	u32 nr_waiters;
};

static struct fixture b;

static struct flow *add_flow(struct flow *parent, u32 weight)
{
	struct flow *f = port_zalloc(flow_size(&plain_ops, MAPS));

	assert_non_null(f);
	flow_init(f, &b.sched, parent, weight);
	b.flow[b.nr++] = f;
	return f;
}

static void setup(void)
{
	u32 i;

	b = (struct fixture){ 0 };
	b.sched.ops = &plain_ops;
	b.sched.nr_queues = MAPS;
	b.sched.params.depth = 16;
	share_tree_init(&b.sched.share);
	port_lock_init(&b.sched.active_lock);
	for (i = 0; i < MAPS; i++) {
		limit_order_init(&b.map[i], i);
		b.map[i].depth = TAGS;
	}
	add_flow(NULL, WEIGHT_DEFAULT);
}

static void teardown(void)
{
	while (b.nr) {
		flow_exit(b.flow[--b.nr]);
		port_free(b.flow[b.nr]);
	}
}

FIXTURE(setup, teardown)

static void await(struct flow *f, u32 map, u32 tasks)
{
	while (tasks--) {
		struct tag_waiter *w = &b.waiter[b.nr_waiters++];

		*w = (struct tag_waiter){ .order = &b.map[map], .flow = f };
		limit_wait(w);
	}
}

/* With @used tags in use.  Returns the waiter that gets a tag and wakes up, or NULL. */
static struct tag_waiter *wake_up(u32 map, u32 used)
{
	unsigned long flags = port_lock(&b.map[map].lock);
	struct tag_use use = { .all = used };
	struct tag_waiter *w = limit_take(&b.sched, &b.map[map], use, true);

	port_unlock(&b.map[map].lock, flags);
	return w;
}

static void runs(struct tag_waiter *w)
{
	unsigned long flags = port_lock(&w->order->lock);

	limit_runs(w);
	port_unlock(&w->order->lock, flags);
}

/* A tag of the map is free, and the task that gets it runs at once; or NULL. */
static struct tag_waiter *take(u32 map)
{
	struct tag_waiter *w = wake_up(map, 0);

	if (w)
		runs(w);
	return w;
}

/*
 * Hands out @tags tags of the map.  Each task inserts a request of @cost, and
 * waits for the next tag.  Returns how many @f got.
 */
static u32 hand_out(u32 map, u32 tags, u32 cost, const struct flow *f)
{
	u32 got = 0;

	while (tags--) {
		struct tag_waiter *w = take(map);

		assert_non_null(w);
		got += w->flow == f;
		limit_charge(&b.map[map], w->flow, cost);
		limit_wait(w);
	}
	return got;
}

TEST(tags_go_by_weight)
{
	static const u32 weights[] = { 100, 200, 500 };
	u32 i;

	for (i = 0; i < 3; i++)
		await(add_flow(b.flow[0], weights[i]), 0, 100);
	hand_out(0, 100, COST, NULL);
	for (i = 0; i < 3; i++)
		assert_in_range(hand_out(0, 800, COST, b.flow[1 + i]),
				weights[i] - 2, weights[i] + 2);
}

/* The example of limit.h: 256 children of one task each. */
TEST(a_crowd_has_the_share_of_its_parent)
{
	struct flow *deep, *parent;
	u32 i;

	deep = add_flow(b.flow[0], 900);
	parent = add_flow(b.flow[0], 100);
	for (i = 0; i < 256; i++)
		await(add_flow(parent, 100), 0, 1);
	await(deep, 0, 64);
	/* Each child has two requests at once, as it is new. */
	hand_out(0, 600, COST, deep);
	assert_in_range(hand_out(0, 25600, COST, deep), 23000, 23080);
}

/* Costs differ: the tags differ by as much, and the work is by weight. */
TEST(large_requests_get_fewer_tags)
{
	struct flow *small, *large;
	struct tag_waiter *w;
	u32 i, got[2] = { 0 };

	small = add_flow(b.flow[0], 100);
	large = add_flow(b.flow[0], 100);
	await(small, 0, 50);
	await(large, 0, 50);
	for (i = 0; i < 1700; i++) {
		w = take(0);
		got[w->flow == large]++;
		limit_charge(&b.map[0], w->flow,
			     w->flow == large ? 16 * COST : COST);
		limit_wait(w);
	}
	assert_in_range(got[1], 98, 103);
}

/* May a task of @f take a tag of the reserve of map 0? */
static bool goes_first(const struct flow *f)
{
	struct tag_use most = { .all = TAGS - 1 };

	return limit_goes_first(&b.map[0], f, most, 1);
}

/* Tags that a task of the flow takes without waiting, when it runs. */
static u32 tags_without_a_wait(struct flow *f)
{
	u32 got;

	for (got = 0; goes_first(f); got++)
		limit_charge(&b.map[0], f, COST);
	return got;
}

/* A flow in debt does not take the reserve; a flow that has waited does. */
TEST(flows_behind_virtual_time_go_first)
{
	struct flow *deep, *light;

	deep = add_flow(b.flow[0], 100);
	light = add_flow(b.flow[0], 100);
	assert_true(goes_first(light));
	await(deep, 0, 10);
	hand_out(0, 10, COST, NULL);
	assert_false(goes_first(deep));
	assert_true(goes_first(light));
	/* It is new, so it is behind by nothing. */
	await(light, 0, 10);
	assert_in_range(hand_out(0, 20, COST, light), 10, 12);
}

/* The only task of a new flow gets a tag, and waits for the next. */
static struct flow *add_in_debt(u32 weight)
{
	struct flow *f = add_flow(b.flow[0], weight);

	await(f, 0, 1);
	hand_out(0, 1, COST, f);
	return f;
}

/* In use are all but four tags, so the flows share none.  The next task runs at once. */
static const struct flow *next_of_a_full_map(void)
{
	struct tag_waiter *w = wake_up(0, TAGS - 4);

	if (!w)
		return NULL;
	runs(w);
	return w->flow;
}

/* No task gets a tag, while the drive is sent twice as many requests. */
static void be_stuck(void)
{
	b.map[0].next_ns = 0;
	limit_refresh(&b.map[0], 0, 1);
	limit_refresh(&b.map[0], 2ULL * TAGS, 1 + FLOW_GRACE_NS);
}

/* Flows in debt take what is left of a map that is stuck, in order. */
TEST(a_stuck_map_gives_all_tags)
{
	struct flow *light = add_in_debt(100);

	add_in_debt(300);
	light->fq[0]->tag = b.map[0].vt + 10 * COST;
	assert_null(next_of_a_full_map());
	be_stuck();
	assert_ptr_not_equal(next_of_a_full_map(), light);
	assert_ptr_equal(next_of_a_full_map(), light);
}

/* A map is not stuck while tasks get tags, nor any more when there are tags to share. */
TEST(a_map_is_stuck_until_tags_are_left)
{
	u64 sent = 1000;

	await(add_flow(b.flow[0], 100), 0, 1);
	limit_refresh(&b.map[0], sent, 1);
	assert_false(b.map[0].stuck);
	await(add_flow(b.flow[0], 100), 0, 1);
	sent += 2ULL * TAGS - 1;
	limit_refresh(&b.map[0], sent, 1 + FLOW_GRACE_NS);
	assert_false(b.map[0].stuck);
	limit_refresh(&b.map[0], ++sent, 2 + 2ULL * FLOW_GRACE_NS);
	assert_true(b.map[0].stuck);
	take(0);
	assert_false(b.map[0].stuck);
	sent += 2ULL * TAGS;
	limit_refresh(&b.map[0], sent, 3 + 3ULL * FLOW_GRACE_NS);
	assert_false(b.map[0].stuck);
	sent += 2ULL * TAGS;
	limit_refresh(&b.map[0], sent, 4 + 4ULL * FLOW_GRACE_NS);
	assert_true(b.map[0].stuck);
}

/* The flow with the least tag fills the stuck map, so the next one has its turn. */
TEST(a_flow_that_fills_the_map_loses_its_turn)
{
	struct flow *full = add_in_debt(1), *other = add_in_debt(100);
	vtime_t place = b.map[0].vt + 2;

	full->fq[0]->tag = place;
	other->fq[0]->tag = place + 2;
	atomic64_set(&full->queued, TAGS / 2);
	assert_null(next_of_a_full_map());
	assert_int_equal(full->fq[0]->tag, place);
	be_stuck();
	assert_ptr_equal(next_of_a_full_map(), other);
	/* It is the only one that waits, and virtual time passes it once. */
	assert_int_equal(b.map[0].vt, place + 2);
	place = full->fq[0]->tag;
	assert_true(vtime_before(b.map[0].vt, place));
	assert_null(next_of_a_full_map());
	assert_int_equal(b.map[0].vt, place);
	atomic64_set(&full->queued, TAGS / 2 - 1);
	assert_ptr_equal(next_of_a_full_map(), full);
	atomic64_set(&full->queued, 0);
}

/* The tags that a flow of @weight takes at once, after its only task was awake for long. */
static u32 tags_after_a_while(u32 weight)
{
	struct flow *deep, *late;
	struct tag_waiter *w;

	deep = add_flow(b.flow[0], 300);
	late = add_flow(b.flow[0], weight);
	await(deep, 0, 100);
	await(late, 0, 1);
	hand_out(0, 10, COST, late);
	while ((w = take(0))->flow != late) {
		limit_charge(&b.map[0], deep, COST);
		limit_wait(w);
	}
	hand_out(0, 1000, COST, deep);
	return tags_without_a_wait(late);
}

/*
 * A fifth of 64 tags is 12.8, and three quarters are 48.  The first request is free, and
 * one at virtual time is not ahead of it.
 */
TEST(a_flow_is_behind_by_its_part_of_the_map)
{
	assert_in_range(tags_after_a_while(75), TAGS / 5, TAGS / 5 + 2);
}

TEST(a_heavy_flow_is_behind_by_few_tags)
{
	assert_in_range(tags_after_a_while(900), 16, 18);
}

/*
 * Eight requests finish at once, so eight tasks wake up before one is charged.  The flows
 * have less than one tag each by their shares of the map, beside one that has no request.
 */
TEST(flows_of_less_than_a_tag_share_by_weight)
{
	enum {
		AT_ONCE = 8,
		ROUNDS = 300
	};
	struct tag_waiter *w[AT_ONCE];
	struct flow *heavy;
	u32 i, round, got = 0;

	flow_await(add_flow(b.flow[0], 10000));
	await(add_flow(b.flow[0], 50), 0, 24);
	heavy = add_flow(b.flow[0], 100);
	await(heavy, 0, 24);
	hand_out(0, 100, COST, NULL);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < AT_ONCE; i++)
			w[i] = wake_up(0, 32 - AT_ONCE + i);
		for (i = 0; i < AT_ONCE; i++) {
			runs(w[i]);
			limit_charge(&b.map[0], w[i]->flow, COST);
			got += w[i]->flow == heavy;
		}
		for (i = 0; i < AT_ONCE; i++)
			limit_wait(w[i]);
	}
	assert_in_range(got, ROUNDS * AT_ONCE * 2 / 3 - AT_ONCE,
			ROUNDS * AT_ONCE * 2 / 3 + AT_ONCE);
}

/* The example of limit.h.  D is 16, so the four share 32 tags, and 12 are in use. */
enum { SLEEPERS = 4, WEIGHTS = 2000, LEFT = 20 };

static const u32 sleeper_weight[SLEEPERS] = { 200, 300, 500, 1000 };

/* All tasks wake up, and the rest of the tags is due to their flows. */
static void wake_sleepers(struct tag_waiter **w)
{
	struct flow *f[SLEEPERS], *light;
	u32 i;

	for (i = 0; i < SLEEPERS; i++) {
		f[i] = add_flow(b.flow[0], sleeper_weight[i]);
		await(f[i], 0, 1);
		limit_charge(&b.map[0], f[i], COST);
	}
	/* Their requests by now are in proportion to their weights. */
	for (i = 0; i < SLEEPERS; i++)
		f[i]->fq[0]->tag = b.map[0].vt;
	for (i = 0; i < SLEEPERS; i++)
		w[i] = wake_up(0, 32 - LEFT + i);
	assert_int_equal(b.map[0].due, 0);
	/* One that waits is far ahead. */
	light = add_flow(b.flow[0], 1);
	light->fq[0]->tag = b.map[0].vt + 10000ULL * COST;
	await(light, 0, 1);
	assert_null(wake_up(0, 32 - LEFT + SLEEPERS));
	assert_int_equal(b.map[0].due, LEFT - SLEEPERS);
}

TEST(tags_are_due_to_tasks_that_wake_up)
{
	struct tag_waiter *w[SLEEPERS];
	u32 i, got, due;

	wake_sleepers(w);
	for (i = 0; i < SLEEPERS; i++) {
		runs(w[i]);
		got = tags_without_a_wait(w[i]->flow);
		due = w[i]->flow->group.weight * LEFT / WEIGHTS;
		assert_in_range(got, due, due + 1);
	}
	assert_int_equal(b.map[0].due, 0);
	assert_null(b.map[0].woken);
}

/* Tags that are due to a flow count as used by all others. */
TEST(tags_that_are_due_are_not_taken)
{
	struct flow *late = add_flow(b.flow[0], 100);
	struct tag_use use = { .all = 8 };
	struct tag_waiter *w[SLEEPERS];

	wake_sleepers(w);
	late->fq[0]->tag = b.map[0].vt + 2;
	assert_true(limit_goes_first(&b.map[0], late, use, 32 - 8 - 16));
	assert_false(limit_goes_first(&b.map[0], late, use, 32 - 8 - 16 + 1));
}

/* One of two woken tasks has run: the other holds what is due to both. */
TEST(a_woken_task_inherits_what_is_due)
{
	struct tag_waiter *w[2];
	struct flow *f = add_flow(b.flow[0], 100);
	u32 turn, i;

	/* The tasks run in the order in which they woke up, or in the other one. */
	for (turn = 0; turn < 2; turn++) {
		await(f, 0, 2);
		limit_charge(&b.map[0], f, COST);
		for (i = 0; i < 2; i++)
			w[i] = wake_up(0, 40 + i);
		assert_null(wake_up(0, 42));
		/* A flow that is alone may take the whole map. */
		assert_int_equal(b.map[0].due, TAGS - 42);
		runs(w[turn]);
		assert_int_equal(b.map[0].due, TAGS - 42);
		runs(w[!turn]);
		assert_int_equal(b.map[0].due, 0);
		assert_false(limit_awaited(&b.map[0]));
	}
}

/* The task of `asleep` wakes up and has no CPU.  What is due to it ends with two refreshes. */
TEST(no_tag_is_due_to_a_task_without_a_cpu_for_long)
{
	struct flow *asleep = add_flow(b.flow[0], 100);
	struct flow *runner = add_flow(b.flow[0], 100);
	struct tag_waiter *woken, *w;
	u64 now = FLOW_GRACE_NS;

	await(asleep, 0, 1);
	limit_charge(&b.map[0], asleep, COST);
	woken = wake_up(0, 31);
	assert_null(wake_up(0, 32));
	assert_int_equal(b.map[0].due, TAGS - 32);
	await(runner, 0, 1);
	assert_null(wake_up(0, 32));
	assert_true(limit_refresh(&b.map[0], 0, now));
	assert_int_equal(b.map[0].due, TAGS - 32);
	assert_true(limit_refresh(&b.map[0], 0, now + FLOW_GRACE_NS));
	assert_int_equal(b.map[0].due, 0);
	/* The tags that come back go to the other flow. */
	w = wake_up(0, 32 - 1);
	assert_ptr_equal(w->flow, runner);
	assert_int_equal(b.map[0].due, 0);
	runs(w);
	runs(woken);
}

/* All late tasks of a flow keep their own tags, whichever of them has run. */
TEST(each_late_task_keeps_a_tag)
{
	struct flow *f = add_flow(b.flow[0], 100);
	struct tag_waiters *o = &b.map[0];
	struct tag_waiter *w[4];
	u32 turn, i;

	/* The first task that wakes up has the counts, and then the last one. */
	for (turn = 0; turn < 4; turn++) {
		await(f, 0, 4);
		limit_charge(o, f, COST);
		for (i = 0; i < 4; i++)
			w[i] = wake_up(0, 40 + i);
		assert_null(wake_up(0, 44));
		runs(w[turn]);
		assert_int_equal(o->due, TAGS - 44);
		for (i = 0; i < 2; i++) {
			o->next_ns = 0;
			limit_refresh(o, 0, 1);
		}
		assert_int_equal(o->due, 0);
		for (i = 0; i < 4; i++)
			if (i != turn)
				runs(w[i]);
		assert_int_equal(o->due, 0);
		assert_false(limit_awaited(o));
	}
}

/* Debts end when no task has waited for FLOW_GRACE_NS. */
TEST(debts_end_when_tags_are_ample)
{
	struct flow *deep;
	u64 now = 1;

	deep = add_flow(b.flow[0], 1);
	add_flow(b.flow[0], 10000);
	await(deep, 0, 1);
	assert_true(limit_refresh(&b.map[0], 0, now));
	take(0);
	limit_charge(&b.map[0], deep, COST);
	assert_false(limit_refresh(&b.map[0], 0, now + FLOW_GRACE_NS - 1));
	/* A task has waited in the time before this one. */
	assert_false(limit_refresh(&b.map[0], 0, now += FLOW_GRACE_NS));
	assert_false(goes_first(deep));
	assert_false(limit_refresh(&b.map[0], 0, now += FLOW_GRACE_NS));
	assert_true(goes_first(deep));
	assert_false(limit_is_scarce(&b.map[0]));
	/* No request is charged. */
	limit_charge(&b.map[0], deep, COST);
	assert_true(goes_first(deep));
}

/* A tag that nobody gave back is for those that are behind, or of the first half. */
TEST(tags_for_a_task_that_begins_to_wait)
{
	struct tag_use use = { 0 };
	struct tag_waiters *o = &b.map[0];
	struct flow *deep;
	unsigned long flags;
	bool given_back;
	u32 most;

	deep = add_flow(b.flow[0], 100);
	await(add_flow(b.flow[0], 100), 0, 1);
	take(0);
	await(deep, 0, 2);
	take(0);
	limit_charge(o, deep, COST);
	b.sched.params.depth = 24;
	for (given_back = false;; given_back = true) {
		most = given_back ? 48 : TAGS / 2;
		flags = port_lock(&o->lock);
		use.all = most;
		assert_null(limit_take(&b.sched, o, use, given_back));
		/* The tags of kernel threads do not count, but they are in use. */
		use.foreign = 1;
		use.all = TAGS;
		assert_null(limit_take(&b.sched, o, use, given_back));
		use.all = most;
		limit_runs(limit_take(&b.sched, o, use, given_back));
		port_unlock(&o->lock, flags);
		if (given_back)
			break;
		await(deep, 0, 1);
		limit_charge(o, deep, COST);
		use.foreign = 0;
	}
}

TEST(tags_beyond_the_reserve)
{
	/* A flow that is alone takes all tags. */
	await(add_flow(b.flow[0], 100), 0, 1);
	assert_int_equal(limit_most(&b.sched, 64), 64);
	await(add_flow(b.flow[0], 100), 0, 1);
	assert_int_equal(limit_most(&b.sched, 128), 64);
	/* Twice D fill the drive, while some are free. */
	assert_int_equal(limit_most(&b.sched, 48), 32);
	assert_int_equal(limit_most(&b.sched, 32), 24);
	assert_int_equal(limit_most(&b.sched, 8), 6);
	assert_int_equal(limit_most(&b.sched, 1), 1);
}

/* A flow whose task waits keeps its share, however long it waits. */
TEST(a_waiting_flow_stays_active)
{
	struct flow *f = add_flow(b.flow[0], 100);
	bool changed;
	u32 i;

	await(f, 0, 1);
	assert_true(flow_present_share(f) > 0);
	for (i = 1; i < 10; i++)
		assert_true(flow_sweep(&b.sched, (u64)i * 100 * MS, &changed));
	assert_ptr_equal(take(0)->flow, f);
	for (; i < 13; i++)
		flow_sweep(&b.sched, (u64)i * 100 * MS, &changed);
	assert_false(flow_any_active(&b.sched));
}

/* A share that grows while the flow waits counts at once after limit_reweigh(). */
TEST(a_raised_weight_ends_the_debt)
{
	struct flow *heavy, *f;
	u32 turn;

	heavy = add_flow(b.flow[0], 10000);
	f = add_flow(b.flow[0], 1);
	await(heavy, 0, 10);
	await(f, 0, 10);
	/* It is 10,001 requests ahead. */
	hand_out(0, 100, COST, f);
	assert_int_equal(hand_out(0, 1000, COST, f), 0);
	for (turn = 0; turn < 2; turn++) {
		flow_set_weight(f, turn ? 10000 : 100);
		limit_reweigh(&b.map[0]);
		assert_in_range(hand_out(0, 1010, COST, f), turn ? 500 : 9,
				turn ? 510 : 11);
	}
}

/* A flow on four maps and one on a single map have equal parts of the drive. */
TEST(a_share_is_divided_among_maps)
{
	struct flow *wide, *narrow;
	u32 i, map, got = 0;

	wide = add_flow(b.flow[0], 400);
	narrow = add_flow(b.flow[0], 100);
	for (map = 0; map < MAPS; map++)
		await(wide, map, 40);
	await(narrow, 0, 40);
	for (i = 0; i < 1000; i++) {
		got += hand_out(0, 1, COST, narrow);
		for (map = 1; map < MAPS; map++)
			hand_out(map, 1, COST, narrow);
	}
	/* 100 : 400 / 4 on the first map. */
	assert_in_range(got, 480, 520);
}

/* The waiter of the map that goes next, by looking at each of them. */
static const struct tag_waiter *oracle(const bool *waits, u32 map)
{
	const struct tag_waiter *best = NULL;
	u32 i;

	for (i = 0; i < b.nr_waiters; i++) {
		const struct tag_waiter *w = &b.waiter[i];

		if (!waits[i] || w->order != &b.map[map])
			continue;
		if (!best || vtime_before(w->flow->fq[map]->tag,
					  best->flow->fq[map]->tag))
			best = w;
	}
	return best;
}

/*
 * Any weights, costs, maps and order of arrival: each waiter is taken once, none
 * of a flow before an earlier one, and always one of a flow with the least tag.
 */
TEST(the_least_tag_goes_next)
{
	static u64 since[WAITERS];
	struct random r = random_seeded("unit/limit");
	bool waits[WAITERS] = { false };
	const struct tag_waiter *least;
	struct tag_waiter *w;
	u32 step, map, left = 0, i;

	for (i = 0; i < 20; i++)
		add_flow(b.flow[random_below(&r, b.nr)],
			 1 + random_below(&r, 10000));
	for (step = 0; step < 6000 || left; step++) {
		map = random_below(&r, MAPS);
		if (b.nr_waiters < WAITERS && step < 6000 &&
		    random_once_in(&r, 2)) {
			waits[b.nr_waiters] = true;
			since[b.nr_waiters] = step;
			await(b.flow[random_below(&r, b.nr)], map, 1);
			left++;
			continue;
		}
		least = oracle(waits, map);
		w = take(map);
		assert_int_equal(!w, !least);
		if (!w)
			continue;
		i = (u32)(w - b.waiter);
		assert_true(waits[i]);
		assert_int_equal(w->flow->fq[map]->tag,
				 least->flow->fq[map]->tag);
		waits[i] = false;
		left--;
		for (i = 0; i < b.nr_waiters; i++)
			if (waits[i] && b.waiter[i].flow == w->flow &&
			    b.waiter[i].order == w->order)
				assert_true(since[i] > since[w - b.waiter]);
		limit_charge(&b.map[map], w->flow,
			     COST * (1 + random_below(&r, 64)));
		if (random_once_in(&r, 20))
			limit_reweigh(&b.map[map]);
	}
	for (map = 0; map < MAPS; map++)
		assert_false(limit_awaited(&b.map[map]));
}
