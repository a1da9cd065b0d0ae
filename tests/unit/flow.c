// SPDX-License-Identifier: GPL-2.0
#include "unit.h"
#include "sched/core/flow.h"
#include "sched/core/policies.h"
#include "sched/core/sched.h"

#include <math.h>

enum {
	FLOWS	= 6,
	QUEUES	= 2,
	WAITING	= 40,
	MS	= 1000 * 1000,
};

/* The fixture does the part of the host and of mqfq for a flow, and no more. */
struct fixture {
	struct sched sched;
	vtime_t vt;
	struct flow *root;
	struct flow *flow[FLOWS];
};

static const struct sched_ops plain_ops = { .name = "plain" };

static struct flow *flow_create(struct fixture *b, struct flow *parent,
				u32 weight)
{
	struct flow *f = port_zalloc(flow_size(b->sched.ops, QUEUES));

	assert_non_null(f);
	flow_init(f, &b->sched, parent, weight);
	return f;
}

static void fixture_init(struct fixture *b, const u32 *weights, u32 nr)
{
	u32 i;

	memset(b, 0, sizeof(*b));
	b->sched.ops = &plain_ops;
	b->sched.nr_queues = QUEUES;
	share_tree_init(&b->sched.share);
	port_lock_init(&b->sched.active_lock);
	b->vt = (vtime_t)0 - (1 << 22);
	b->root = flow_create(b, NULL, WEIGHT_DEFAULT);
	for (i = 0; i < nr; i++)
		b->flow[i] = flow_create(b, b->root, weights[i]);
}

static void fixture_deinit(struct fixture *b)
{
	u32 i;

	for (i = 0; i < FLOWS && b->flow[i]; i++) {
		atomic64_set(&b->flow[i]->queued, 0);
		flow_exit(b->flow[i]);
		port_free(b->flow[i]);
	}
	flow_exit(b->root);
	assert_null(b->sched.active);
	assert_int_equal(b->sched.share.nr_active, 0);
	port_free(b->root);
}

static u64 charge(struct fixture *b, struct flow *f, u32 cost)
{
	struct flow_start start;
	u64 epoch;

	f->fq[0]->inserted++;
	flow_charge(f, cost, b->vt, true, &start);
	assert_true(start.tag == flow_tag(f, start.pos, &epoch));
	assert_true(start.epoch == epoch);
	return start.pos;
}

static void refresh(struct fixture *b, struct flow *f)
{
	flow_refresh(f, b->vt);
}

/* One request leaves its queue. */
static void served(struct flow *f)
{
	atomic64_dec(&f->queued);
	f->fq[0]->dispatched++;
}

static s64 ahead(const struct fixture *b, const struct flow *f, u64 pos)
{
	u64 epoch;

	return (s64)(flow_tag(f, pos, &epoch) - b->vt);
}

/*
 * The model: each waiting request carries its own tag, the distance from the
 * start of virtual time.  A change of the share rewrites all of them.
 */
struct model {
	double share, finish;
	u64 generation;
	u32 nr;
	struct {
		u64 pos;
		double tag;
	} waiting[WAITING];
};

static void model_refresh(struct fixture *b, struct model *w, struct flow *f,
			  double vt)
{
	u64 generation = share_generation(&b->sched.share), ignore;
	double share = (double)share_of(&b->sched.share, &f->group, &ignore) /
		       (double)SHARE_ONE;
	u32 i;

	if (w->generation == generation || share == 0)
		return;
	if (w->share == 0) {
		w->finish = vt;
		w->share = share;
	}
	w->finish = vt + (w->finish - vt) * w->share / share;
	for (i = 0; i < w->nr; i++)
		w->waiting[i].tag =
			vt + (w->waiting[i].tag - vt) * w->share / share;
	w->share = share;
	w->generation = generation;
}

static void model_charge(struct model *w, u64 pos, u32 cost, double vt)
{
	double tag = w->nr ? w->finish : fmax(w->finish, vt);

	w->waiting[w->nr].pos = pos;
	w->waiting[w->nr++].tag = tag;
	w->finish = tag + cost / w->share;
}

static void model_check(const struct fixture *b, const struct model *w,
			const struct flow *f, double vt)
{
	u32 i;

	for (i = 0; i < w->nr; i++) {
		double want = w->waiting[i].tag - vt;
		double got = (double)ahead(b, f, w->waiting[i].pos);

		assert_true(fabs(got - want) <=
			    2 + 1e-4 * fabs(want) + 64 / w->share);
	}
}

static void model_served(struct model *w)
{
	w->nr--;
	memmove(&w->waiting[0], &w->waiting[1], w->nr * sizeof(w->waiting[0]));
}

TEST(tags_match_a_model_that_rewrites_each)
{
	static const u32 weights[FLOWS] = { 1, 10000, 100, 100, 500, 2500 };
	static const u32 costs[] = { 512, 4096, 65536, 1 << 20 };
	struct random r = random_seeded("flow");
	struct model models[FLOWS] = { 0 };
	struct fixture b;
	vtime_t start;
	u64 i;

	fixture_init(&b, weights, FLOWS);
	start = b.vt;
	for (i = 0; i < random_rounds(20000); i++) {
		u32 n = random_below(&r, FLOWS);
		struct flow *f = b.flow[n];
		struct model *w = &models[n];
		double vt = (double)(b.vt - start);
		u32 cost = costs[random_below(&r, ARRAY_SIZE(costs))];
		u64 pos;

		switch (random_below(&r, 8)) {
		case 0 ... 2:
			if (w->nr == WAITING)
				break;
			pos = charge(&b, f, cost);
			model_refresh(&b, w, f, vt);
			model_charge(w, pos, cost, vt);
			break;
		case 3 ... 5:
			if (!w->nr)
				break;
			served(f);
			model_served(w);
			break;
		case 6:
			if (random_once_in(&r, 10))
				flow_set_weight(f, 1 + random_below(&r, 10000));
			refresh(&b, f);
			model_refresh(&b, w, f, vt);
			break;
		default:
			b.vt += random_below(&r, 1 << 16) & ~1U;
		}
		model_check(&b, w, f, (double)(b.vt - start));
	}
	fixture_deinit(&b);
}

/* The example in flow.h. */
TEST(new_share_rescales_the_waiting_tags)
{
	static const u32 weights[] = { 100, 900 };
	struct fixture b;
	u64 pos[3];
	u32 i;

	fixture_init(&b, weights, 2);
	charge(&b, b.flow[1], 4096);
	for (i = 0; i < 3; i++)
		pos[i] = charge(&b, b.flow[0], 4096);
	for (i = 0; i < 3; i++)
		assert_in_range(ahead(&b, b.flow[0], pos[i]) + 1, i * 40960,
				i * 40960 + 2);
	flow_set_weight(b.flow[0], 600);
	refresh(&b, b.flow[0]);
	for (i = 0; i < 3; i++)
		assert_in_range(ahead(&b, b.flow[0], pos[i]) + 4, i * 10240,
				i * 10240 + 8);
	fixture_deinit(&b);
}

TEST(flow_made_heavy_is_not_left_behind)
{
	static const u32 weights[] = { 1, 10000 };
	struct fixture b;
	u64 last = 0;
	u32 i;

	fixture_init(&b, weights, 2);
	charge(&b, b.flow[1], 4096);
	for (i = 0; i < 256; i++)
		last = charge(&b, b.flow[0], 1 << 20);
	/* 255 MiB at 1/10001 of the device. */
	assert_true(ahead(&b, b.flow[0], last) > 2400LL << 30);
	flow_set_weight(b.flow[0], 10000);
	refresh(&b, b.flow[0]);
	assert_in_range(ahead(&b, b.flow[0], last), (510 << 20) - 4096,
			(510 << 20) + 4096);
	fixture_deinit(&b);
}

TEST(returning_flow_keeps_its_finish_tag_and_saves_nothing)
{
	static const u32 weights[] = { 100, 100 };
	struct fixture b;
	u64 pos;

	fixture_init(&b, weights, 2);
	charge(&b, b.flow[1], 4096);
	pos = charge(&b, b.flow[0], 65536);
	assert_in_range(ahead(&b, b.flow[0], pos), 0, 2);
	served(b.flow[0]);
	/* Its finish tag is twice 64 KiB of total service ahead, and stays. */
	b.vt += 4096;
	pos = charge(&b, b.flow[0], 4096);
	assert_in_range(ahead(&b, b.flow[0], pos), 131072 - 4096 - 2,
			131072 - 4096);
	served(b.flow[0]);
	/* After a long idle time it starts at virtual time. */
	b.vt += 1 << 30;
	pos = charge(&b, b.flow[0], 4096);
	assert_true(ahead(&b, b.flow[0], pos) == 0);
	fixture_deinit(&b);
}

TEST(idle_flow_leaves_the_shares_after_its_grace)
{
	static const u32 weights[] = { 100, 300 };
	const u64 done = 10ULL * FLOW_GRACE_NS;
	struct fixture b;
	bool changed;

	fixture_init(&b, weights, 2);
	charge(&b, b.flow[0], 4096);
	charge(&b, b.flow[1], 4096);
	refresh(&b, b.flow[0]);
	assert_true(flow_share(b.flow[0]) == SHARE_ONE / 4);
	assert_true(flow_sweep(&b.sched, 0, &changed));

	/* A request that waits or is in the device keeps its flow active. */
	served(b.flow[1]);
	assert_true(flow_sweep(&b.sched, done, &changed));
	assert_false(changed);

	atomic64_inc(&b.flow[1]->fq[0]->done);
	assert_true(flow_sweep(&b.sched, done + FLOW_GRACE_NS - 1, &changed));
	assert_false(changed);
	assert_true(flow_sweep(&b.sched, done + FLOW_GRACE_NS, &changed));
	assert_true(changed);
	assert_true(flow_share(b.flow[1]) == 0);
	refresh(&b, b.flow[0]);
	assert_true(flow_share(b.flow[0]) == SHARE_ONE);

	/* The flow becomes active again with its first request. */
	charge(&b, b.flow[1], 4096);
	refresh(&b, b.flow[0]);
	assert_true(flow_share(b.flow[0]) == SHARE_ONE / 4);
	fixture_deinit(&b);
}

static s32 kept[FLOWS];

static u32 number_of(const struct flow *f)
{
	const struct fixture *b = container_of(f->sched, struct fixture, sched);
	u32 i = 0;

	while (b->flow[i] != f)
		i++;
	return i;
}

static void keep(struct flow *f)
{
	port_assert_held(&f->sched->active_lock);
	kept[number_of(f)]++;
}

static void let_go(struct flow *f)
{
	port_assert_held(&f->sched->active_lock);
	kept[number_of(f)]--;
}

TEST(host_keeps_a_flow_from_its_first_request_to_its_grace)
{
	static const u32 weights[] = { 100, 100, 100 };
	const u64 done = 10ULL * FLOW_GRACE_NS;
	struct fixture b;
	bool changed;

	fixture_init(&b, weights, 3);
	b.sched.hooks = (struct host_hooks){ .keep = keep, .let_go = let_go };
	memset(kept, 0, sizeof(kept));
	charge(&b, b.flow[0], 4096);
	charge(&b, b.flow[0], 4096);
	flow_await(b.flow[1]);
	assert_int_equal(kept[0], 1);
	assert_int_equal(kept[1], 1);
	assert_int_equal(kept[2], 0);

	/* The second request is in the device, and a task waits. */
	atomic64_inc(&b.flow[0]->fq[0]->done);
	flow_sweep(&b.sched, done, &changed);
	flow_sweep(&b.sched, done + 2ULL * FLOW_GRACE_NS, &changed);
	assert_int_equal(kept[0], 1);
	assert_int_equal(kept[1], 1);

	atomic64_inc(&b.flow[0]->fq[0]->done);
	flow_sweep(&b.sched, done + 3ULL * FLOW_GRACE_NS - 1, &changed);
	assert_int_equal(kept[0], 1);
	flow_sweep(&b.sched, done + 3ULL * FLOW_GRACE_NS, &changed);
	assert_int_equal(kept[0], 0);

	/* A device that goes deactivates its flows. */
	charge(&b, b.flow[2], 4096);
	assert_int_equal(kept[2], 1);
	fixture_deinit(&b);
	assert_int_equal(kept[1], 0);
	assert_int_equal(kept[2], 0);
}

/* --------------------------------------------------------------- small cases */

/* The line turns at a virtual time that is before its base. */
TEST(new_share_rescales_tags_ahead_of_the_line)
{
	static const u32 weights[] = { 100, 900 };
	struct fixture b;
	u64 pos;

	fixture_init(&b, weights, 2);
	charge(&b, b.flow[1], 4096);
	pos = charge(&b, b.flow[0], 4096);
	b.vt -= 40960;
	assert_in_range(ahead(&b, b.flow[0], pos), 40960, 40962);
	flow_set_weight(b.flow[0], 600);
	refresh(&b, b.flow[0]);
	assert_in_range(ahead(&b, b.flow[0], pos), 10240 - 4, 10240 + 4);
	fixture_deinit(&b);
}

/* A lag up to the allowance stays, and a greater one is forgiven. */
TEST(lag_is_clamped_beyond_its_allowance)
{
	static const u32 weights[] = { 100 };
	struct fixture b;
	u64 pos;

	fixture_init(&b, weights, 1);
	pos = charge(&b, b.flow[0], 4096);
	b.vt += 65536;
	flow_clamp_lag(b.flow[0], pos, b.vt, 65536);
	assert_true(ahead(&b, b.flow[0], pos) == -65536);
	/* Tags are even. */
	b.vt += 2;
	flow_clamp_lag(b.flow[0], pos, b.vt, 65536);
	assert_true(ahead(&b, b.flow[0], pos) == 0);
	/* Requests behind that one keep their distance. */
	assert_true(ahead(&b, b.flow[0], pos + 4096) == 4096);
	/* The lock is free. */
	flow_clamp_lag(b.flow[0], pos, b.vt, 65536);
	fixture_deinit(&b);
}

/* It is charged, and no request of the flow waits for its turn. */
TEST(request_that_does_not_wait_is_no_backlog)
{
	static const u32 weights[] = { 100 };
	struct flow_start start;
	struct fixture b;
	struct flow *f;

	fixture_init(&b, weights, 1);
	f = b.flow[0];
	f->fq[0]->inserted++;
	flow_charge(f, 4096, b.vt, false, &start);
	assert_true(start.woke);
	assert_int_equal(atomic64_read(&f->queued), 0);
	assert_int_equal(atomic64_read(&f->pos), 4096);
	b.vt += 1 << 20;
	flow_charge(f, 4096, b.vt, false, &start);
	assert_false(start.woke);
	assert_int_equal(start.pos, 4096);
	/* Without a backlog the flow has saved nothing. */
	assert_true(start.tag == b.vt);
	fixture_deinit(&b);
}

static u32 flows_begun, flows_ended;

static void count_begin(struct flow *f)
{
	/* The memory of the scheduler is there, and zeroed. */
	assert_int_equal(*(char *)flow_own(f), 0);
	assert_int_equal(*(char *)flow_queue_own(f, QUEUES - 1), 0);
	flows_begun++;
}

static void count_end(struct flow *f)
{
	assert_int_equal(atomic64_read(&f->active), 0);
	flows_ended++;
}

/* In whole cache lines, each apart from all others. */
TEST(flow_has_memory_for_its_scheduler)
{
	static const struct sched_ops ops = {
		.flow_bytes = 65,
		.flow_queue_bytes = 130,
		.flow_init = count_begin,
		.flow_exit = count_end,
	};
	struct fixture b = { .sched = { .ops = &ops, .nr_queues = QUEUES } };
	struct flow *f;
	u32 q;

	flows_begun = flows_ended = 0;
	share_tree_init(&b.sched.share);
	port_lock_init(&b.sched.active_lock);
	f = flow_create(&b, NULL, 100);
	assert_int_equal(flows_begun, 1);
	assert_true((char *)f->own >= (char *)&f->fq[QUEUES]);
	memset(flow_own(f), 0xaa, 65);
	for (q = 0; q < QUEUES; q++) {
		char *own = flow_queue_own(f, q);

		assert_int_equal((unsigned long)own % 64, 0);
		assert_int_equal(own[0], 0);
		assert_int_equal(own[129], 0);
		memset(own, 0xbb, 130);
	}
	/* Nothing else was hit. */
	assert_ptr_equal(f->sched, &b.sched);
	assert_int_equal(atomic64_read(&f->fq[QUEUES - 1]->done), 0);
	charge(&b, f, 4096);
	served(f);
	assert_true(flow_any_active(&b.sched));
	flow_exit(f);
	assert_false(flow_any_active(&b.sched));
	assert_int_equal(flows_ended, 1);
	port_free(f);
}

TEST(totals_are_sums_over_the_queues)
{
	static const u32 weights[] = { 100 };
	struct flow_totals t;
	struct fixture b;
	u32 q;

	fixture_init(&b, weights, 1);
	for (q = 0; q < QUEUES; q++) {
		b.flow[0]->fq[q]->inserted = 1000 + q;
		b.flow[0]->fq[q]->dispatched = 100 + q;
		atomic64_set(&b.flow[0]->fq[q]->done, 10 + q);
		b.flow[0]->fq[q]->bytes = 1ULL << (40 + q);
		b.flow[0]->fq[q]->wait_ns = q;
		atomic64_set(&b.flow[0]->fq[q]->cost, 4 + q);
		atomic64_set(&b.flow[0]->fq[q]->service_ns, 7 + q);
	}
	flow_totals(b.flow[0], &t);
	assert_int_equal(t.inserted, 2001);
	assert_int_equal(t.dispatched, 201);
	assert_int_equal(t.done, 21);
	assert_int_equal(t.bytes, 3ULL << 40);
	assert_int_equal(t.wait_ns, 1);
	assert_int_equal(t.cost, 9);
	assert_int_equal(t.service_ns, 15);
	fixture_deinit(&b);
}

/* One MiB in a ms, for the limit on urgent requests. */
TEST(sweep_measures_the_rate_of_the_device)
{
	static const u32 weights[] = { 100 };
	struct fixture b;
	bool changed;

	fixture_init(&b, weights, 1);
	charge(&b, b.flow[0], 4096);
	atomic64_set(&b.flow[0]->fq[0]->cost, 1 << 20);
	assert_int_equal(b.sched.urgent.rate, 0);
	flow_sweep(&b.sched, MS, &changed);
	assert_true(b.sched.urgent.rate > 0);
	fixture_deinit(&b);
}

enum {
	SWEEP_NS	= 50 * MS,
	WORK		= 1 << 24,	/* of the busy flow in a sweep */
	READ		= 4096,
};

/* A request of @f comes, and ends at once. */
static void serve(struct fixture *b, struct flow *f, u32 cost)
{
	charge(b, f, cost);
	served(f);
	atomic64_add(1, &f->fq[0]->done);
	atomic64_add(cost, &f->fq[0]->cost);
}

/* Flow 0 works in @nr sweeps.  Flow 1 has a read in each if @reads, and else nothing. */
static void sweeps(struct fixture *b, u64 *now, u32 nr, bool reads)
{
	bool changed;

	while (nr--) {
		serve(b, b->flow[0], WORK);
		if (reads)
			serve(b, b->flow[1], READ);
		*now += SWEEP_NS;
		flow_sweep(&b->sched, *now, &changed);
	}
}

static bool asks_for_all(const struct flow *f)
{
	return f->ask_until == ~0ULL;
}

/* Until it has used more than it asked for. */
TEST(flow_that_was_quiet_comes_back_quiet)
{
	static const u32 weights[] = { 100, 100 };
	struct fixture b;
	u64 now = 0;
	u32 i;

	fixture_init(&b, weights, 2);
	sweeps(&b, &now, 1, true);
	assert_true(asks_for_all(b.flow[1]));
	sweeps(&b, &now, 40, true);
	assert_false(asks_for_all(b.flow[1]));
	sweeps(&b, &now, 4, false);
	assert_int_equal(atomic64_read(&b.flow[1]->active), 0);
	sweeps(&b, &now, 2, true);
	assert_false(asks_for_all(b.flow[1]));
	sweeps(&b, &now, 4, false);
	for (i = 0; i < 100; i++)
		serve(&b, b.flow[1], READ);
	assert_true(asks_for_all(b.flow[1]));
	sweeps(&b, &now, 1, false);
	assert_true(asks_for_all(b.flow[1]));
	fixture_deinit(&b);
}

/* It waits since the last sweep at least, and not since a moment. */
TEST(flow_that_gets_nothing_asks_for_all)
{
	static const u32 weights[] = { 100, 100 };
	struct fixture b;
	u64 now = 0;

	fixture_init(&b, weights, 2);
	sweeps(&b, &now, 40, true);
	charge(&b, b.flow[1], READ);
	served(b.flow[1]);
	sweeps(&b, &now, 1, false);
	assert_false(asks_for_all(b.flow[1]));
	sweeps(&b, &now, 1, false);
	assert_true(asks_for_all(b.flow[1]));
	atomic64_add(1, &b.flow[1]->fq[0]->done);
	fixture_deinit(&b);
}

/* The rate of its requests is not known yet. */
TEST(new_flow_records_one_latency_in_16)
{
	static const u32 weights[] = { 100 };
	struct fixture b;

	fixture_init(&b, weights, 1);
	assert_int_equal(b.flow[0]->latency.mask, 15);
	fixture_deinit(&b);
}

/* A count is of the flows that are active, and stays until the next one. */
TEST(active_flows_are_counted)
{
	static const u32 weights[] = { 1, 1 };
	struct fixture b;

	fixture_init(&b, weights, 2);
	charge(&b, b.flow[0], 1);
	b.flow[1]->fq[1]->inserted = 7;
	flows_count(&b.sched);
	assert_int_equal(b.flow[0]->counted.inserted, 1);
	assert_int_equal(b.flow[1]->counted.inserted, 0);
	charge(&b, b.flow[1], 1);
	flows_count(&b.sched);
	assert_int_equal(b.flow[1]->counted.inserted, 8);
	fixture_deinit(&b);
}
