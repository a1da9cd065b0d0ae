// SPDX-License-Identifier: GPL-2.0
/* The quotas of scheduler tags, with the examples of limit.h. */
#include "unit.h"
#include "sched/core/limit.h"
#include "sched/core/sched.h"

enum {
	FLOWS	= 80,
	MS	= 1000 * 1000,
};

static const struct sched_ops plain_ops = { .name = "plain" };

struct fixture {
	struct sched sched;
	struct limit limit;
	struct flow *root, *flow[FLOWS];
	u32 nr;
	u64 now;
	u64 has[FLOWS];		/* tags */
};

static struct flow *flow_create(struct fixture *b, struct flow *parent,
				u32 weight)
{
	struct flow *f = port_zalloc(flow_size(&plain_ops, 1));

	assert_non_null(f);
	flow_init(f, &b->sched, parent, weight);
	return f;
}

/* @nr active flows of these weights on one map of @depth tags. */
static void fixture_init(struct fixture *b, const u32 *weights, u32 nr,
			 u32 depth)
{
	struct flow_start start;
	u32 i;

	*b = (struct fixture){ .nr = nr, .limit.depth = depth };
	b->sched.ops = &plain_ops;
	b->sched.nr_queues = 1;
	share_tree_init(&b->sched.share);
	port_lock_init(&b->sched.active_lock);
	b->root = flow_create(b, NULL, WEIGHT_DEFAULT);
	for (i = 0; i < nr; i++) {
		b->flow[i] = flow_create(b, b->root, weights[i]);
		b->flow[i]->fq[0]->inserted++;
		flow_charge(b->flow[i], 512, 0, false, &start);
	}
	for (i = 0; i < nr; i++)
		flow_refresh(b->flow[i], 0);
}

static void fixture_deinit(struct fixture *b)
{
	u32 i;

	for (i = 0; i < b->nr; i++) {
		flow_exit(b->flow[i]);
		port_free(b->flow[i]);
	}
	flow_exit(b->root);
	port_free(b->root);
}

static u32 used(const struct fixture *b)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < b->nr; i++)
		sum += b->has[i];
	return (u32)sum;
}

/* Flow @i takes up to @tags tags, one at a time.  Returns their number. */
static u32 take(struct fixture *b, u32 i, u32 tags)
{
	u32 depth = b->limit.depth, n;

	for (n = 0; n < tags; n++) {
		u64 left = limit_left(&b->limit, b->flow[i], depth, used(b),
				      b->has[i]);

		limit_want(b->flow[i], left ? (u32)b->has[i] + 1 : LIMIT_ALL);
		if (!left || used(b) == depth)
			break;
		b->has[i]++;
	}
	return n;
}

/* Two intervals pass, and every tag comes back. */
static void settle(struct fixture *b)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		b->now += 100 * MS;
		assert_true(limit_level_tick(&b->limit, &b->sched, b->now));
		assert_false(limit_level_tick(&b->limit, &b->sched, b->now));
	}
	memset(b->has, 0, sizeof(b->has));
}

static void half_is_first_come_first_served(void **state)
{
	static const u32 weights[] = { 1, 10000 };
	struct fixture b;

	(void)state;
	fixture_init(&b, weights, 2, 64);
	assert_int_equal(take(&b, 0, 100), 32);
	/* Nothing is lent before the first interval. */
	assert_int_equal(take(&b, 0, 1), 0);
	assert_int_equal(take(&b, 1, 100), 32);
	assert_int_equal(used(&b), 64);
	fixture_deinit(&b);
}

/* All flows want all they can get: each has its quota, by weight. */
static void quotas_are_by_weight(void **state)
{
	static const u32 weights[] = { 100, 200, 500 };
	u32 due[] = { 16, 32, 80 }, i, n;
	struct fixture b;

	(void)state;
	fixture_init(&b, weights, 3, 128);
	for (n = 0; n < 4; n++) {
		for (i = 0; i < 3; i++)
			b.flow[i]->limit.waiters = 1;
		settle(&b);
		/* The heavy one has the first half and more: it comes last. */
		for (i = 0; i < 3; i++)
			b.has[i] = due[i] / 2;
		for (i = 0; i < 3; i++)
			take(&b, i, 128);
		for (i = 0; i < 3; i++)
			assert_in_range(b.has[i], due[i] - 1, due[i] + 1);
		assert_true(used(&b) <= 128);
	}
	fixture_deinit(&b);
}

/*
 * The example of limit.h: 32 tags, shares of 91 : 6 : 3.  The first flow wants
 * one request at a time.
 */
static void unused_quota_is_lent_by_share(void **state)
{
	static const u32 weights[] = { 91, 6, 3 };
	struct fixture b;
	u32 n;

	(void)state;
	fixture_init(&b, weights, 3, 32);
	for (n = 0; n < 3; n++) {
		take(&b, 0, 1);
		b.flow[1]->limit.waiters = b.flow[2]->limit.waiters = 1;
		settle(&b);
	}
	assert_int_equal(take(&b, 0, 1), 1);
	/* Both ask in turn, as their requests end. */
	for (n = 0; n < 32; n++) {
		take(&b, 1, 1);
		take(&b, 2, 1);
	}
	assert_in_range(b.has[1], 18, 20);
	assert_in_range(b.has[2], 9, 11);
	assert_in_range(used(&b), 29, 30);
	/* The tags that are never lent serve the next arrival. */
	assert_int_equal(take(&b, 0, 2), 2);
	fixture_deinit(&b);
}

/* The example of limit.h: 128 tags and 64 flows of depth 4. */
static void last_tags_are_for_flows_without_one(void **state)
{
	struct fixture b;
	u32 weights[64], i;

	(void)state;
	for (i = 0; i < 64; i++)
		weights[i] = 100;
	fixture_init(&b, weights, 64, 128);
	for (i = 0; i < 64; i++)
		take(&b, i, 4);
	for (i = 0; i < 64; i++)
		assert_true(b.has[i] >= 1);
	assert_true(used(&b) <= 128);
	fixture_deinit(&b);
}

/*
 * Any weights, any demands, in any order: tags are never given twice, a flow
 * below its quota is refused only while all tags are used or reserved, and a
 * flow alone above its quota never takes the reserve.
 */
static void tags_are_conserved(void **state)
{
	struct random r = random_seeded("limit");
	struct fixture b;
	u32 weights[12], turn, i;

	(void)state;
	for (turn = 0; turn < 300; turn++) {
		u32 nr = 2 + random_below(&r, 11);
		u32 depth = 4 + random_below(&r, 200), step;

		for (i = 0; i < nr; i++)
			weights[i] = 1 + random_below(&r, 10000);
		fixture_init(&b, weights, nr, depth);
		for (step = 0; step < 400; step++) {
			i = random_below(&r, nr);
			if (random_below(&r, 3))
				take(&b, i, 1 + random_below(&r, 8));
			else if (b.has[i])
				b.has[i]--;
			assert_true(used(&b) <= depth);
			if (step % 50 == 0) {
				b.now += 100 * MS;
				limit_level_tick(&b.limit, &b.sched, b.now);
			}
		}
		/* A flow without a tag gets one as long as one is free. */
		for (i = 0; i < nr; i++)
			if (!b.has[i] && used(&b) < depth)
				assert_int_equal(take(&b, i, 1), 1);
		fixture_deinit(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_is_first_come_first_served),
		cmocka_unit_test(quotas_are_by_weight),
		cmocka_unit_test(unused_quota_is_lent_by_share),
		cmocka_unit_test(last_tags_are_for_flows_without_one),
		cmocka_unit_test(tags_are_conserved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
