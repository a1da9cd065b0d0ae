// SPDX-License-Identifier: GPL-2.0
/* Predictions, latencies and ticks of kyber-fair, hook by hook. */
#include "hooks.h"
#include "sched/kyber_fair/kyber_fair.h"
#include "sched/core/policies.h"

enum {
	BYTES		= 4096,
	FIRST_TOTAL	= 1 << 20,
	LEAST_TOTAL	= 1 << 16,
};

#define PERIOD	(100 * MS)

static struct hooks h;
/* Of equal weight; flow i sends to queue i. */
static struct flow *flow[2];
/* The start of the second round: the host has dispatched nothing so far. */
static u64 start_ns;

static const struct kyber_fair *kyber(void)
{
	return h.sched.own;
}

static s64 left(u32 i)
{
	return credit_left(&budget_flow_of(flow[i])->credit);
}

static struct io *insert(u32 i, u32 bytes)
{
	return hooks_insert(&h, i, flow[i], bytes, 0);
}

static struct io *dispatch(u32 i)
{
	return hooks_dispatch(&h, i, DISPATCH_IO);
}

/*
 * Rounds end as the paper has it.  Each flow has a request waiting, and no
 * credit was used in the first round.
 */
static void open_kyber(u32 predict)
{
	struct sched_params p;
	u32 i;

	sched_params_init(&kyber_fair_ops, &p);
	p.isolation = 0;
	kyber_params(&p)->predict = predict;
	budget_params(&p)->work_conserving = 0;
	/* More than any domain has. */
	p.depth = 1024;
	hooks_open(&h, &kyber_fair_ops, &p, 2);
	for (i = 0; i < 2; i++) {
		flow[i] = hooks_flow(&h, 100);
		insert(i, BYTES);
	}
	start_ns = h.now + PERIOD;
	hooks_run(&h, start_ns);
	assert_int_equal(kyber()->budget.refills, 1);
}

static void close_kyber(void)
{
	hooks_drain(&h);
	hooks_close(&h);
}

/* The flow spends all its credit.  Its request still waits, or a new one. */
static void exhaust(u32 i)
{
	while (left(i) > 0) {
		insert(i, BYTES);
		hooks_complete(&h, dispatch(i));
	}
}

/* ---------------------------------------------------------------- prediction */

TEST(first_round_without_use_predicts_nothing)
{
	open_kyber(KYBER_TOTAL);
	assert_int_equal(kyber()->predicted, FIRST_TOTAL);
	assert_int_equal(left(0), FIRST_TOTAL / 2);
	assert_int_equal(left(1), FIRST_TOTAL / 2);
	close_kyber();
}

TEST(prediction_has_a_least_value)
{
	open_kyber(KYBER_TOTAL);
	hooks_complete(&h, dispatch(0));
	insert(0, BYTES);
	hooks_run(&h, start_ns + PERIOD);
	assert_int_equal(kyber()->budget.refills, 2);
	assert_int_equal(kyber()->predicted, LEAST_TOTAL);
	close_kyber();
}

/* The example of predict.h: flow 0 is exhausted after half of the period. */
TEST(readings_differ_if_flows_are_exhausted_apart)
{
	static const u64 want[] = {
		[KYBER_TOTAL] = FIRST_TOTAL,
		[KYBER_PER_FLOW] = FIRST_TOTAL * 3 / 2,
	};
	u32 predict;

	for (predict = KYBER_TOTAL; predict <= KYBER_PER_FLOW; predict++) {
		const struct kyber_flow *kf;

		open_kyber(predict);
		hooks_run(&h, start_ns + PERIOD / 2);
		exhaust(0);
		hooks_run(&h, start_ns + PERIOD - 1);
		exhaust(1);
		hooks_run(&h, h.now);
		assert_int_equal(kyber()->budget.refills, 2);
		assert_in_range(kyber()->predicted, want[predict],
				want[predict] + want[predict] / 1000);
		/* Flow 0 was throttled for the other half. */
		kf = flow_own(flow[0]);
		assert_int_equal(kf->throttled_ns, PERIOD / 2 - 1);
		kf = flow_own(flow[1]);
		assert_int_equal(kf->throttled_ns, 0);
		close_kyber();
	}
}

/* ------------------------------------------------------------------ latencies */

struct recorded {
	u64 device_ns, total_ns;
};

/* Completes @io of queue 0; returns the times that this has recorded. */
static struct recorded complete(struct io *io)
{
	const struct domain_shard *shard =
		&kyber()->domains.domain[io->op].shard[0];
	struct recorded r = {
		(u64)atomic64_read(&shard->device.sum_ns),
		(u64)atomic64_read(&shard->total.sum_ns),
	};

	hooks_complete(&h, io);
	r.device_ns = (u64)atomic64_read(&shard->device.sum_ns) - r.device_ns;
	r.total_ns = (u64)atomic64_read(&shard->total.sum_ns) - r.total_ns;
	return r;
}

/* The request waited for the host, in this round and the one before. */
TEST(request_counts_from_its_arrival)
{
	struct recorded r;
	struct io *io;

	open_kyber(KYBER_TOTAL);
	h.now += 3 * MS;
	io = dispatch(0);
	h.now += 2 * MS;
	r = complete(io);
	assert_int_equal(r.device_ns, 2 * MS);
	assert_int_equal(r.total_ns, PERIOD + 5 * MS);
	close_kyber();
}

/* Its flow was exhausted meanwhile, by requests of the other queue. */
TEST(request_without_tokens_counts_from_the_refill)
{
	struct recorded r;
	struct io *io;

	open_kyber(KYBER_TOTAL);
	hooks_run(&h, start_ns + 10 * MS);
	while (left(0) > 0) {
		hooks_insert(&h, 1, flow[0], BYTES, 0);
		hooks_complete(&h, dispatch(1));
	}
	hooks_dispatch(&h, 0, DISPATCH_NO_BUDGET);
	hooks_run(&h, start_ns + PERIOD);
	assert_int_equal(kyber()->budget.refills, 2);
	h.now += 3 * MS;
	io = dispatch(0);
	h.now += 2 * MS;
	r = complete(io);
	assert_int_equal(r.device_ns, 2 * MS);
	assert_int_equal(r.total_ns, 5 * MS);
	close_kyber();
}

/* The round after that of the dispatch begins while it is in the device. */
TEST(a_later_round_shortens_no_time)
{
	struct recorded r;
	struct io *io;

	open_kyber(KYBER_TOTAL);
	hooks_run(&h, start_ns + 10 * MS);
	while (left(0) > 0) {
		hooks_insert(&h, 1, flow[0], BYTES, 0);
		hooks_complete(&h, dispatch(1));
	}
	hooks_dispatch(&h, 0, DISPATCH_NO_BUDGET);
	hooks_run(&h, start_ns + PERIOD);
	h.now += 3 * MS;
	io = dispatch(0);
	hooks_run(&h, start_ns + 2 * PERIOD + MS);
	assert_int_equal(kyber()->budget.refills, 3);
	r = complete(io);
	assert_int_equal(r.device_ns, PERIOD - 2 * MS);
	assert_int_equal(r.total_ns, PERIOD + MS);
	close_kyber();
}

/* Clocks of two CPUs: the completion seems to be before the dispatch. */
TEST(request_without_a_time_is_not_recorded)
{
	const struct domain_shard *shard;
	struct io *io;
	u32 i, k;

	open_kyber(KYBER_TOTAL);
	shard = &kyber()->domains.domain[IO_READ].shard[0];
	for (i = 0; i < 2; i++) {
		insert(0, BYTES);
		io = dispatch(0);
		h.now -= i;
		complete(io);
		h.now += i;
	}
	for (k = 0; k < LATENCY_BUCKETS; k++)
		assert_int_equal(atomic64_read(&shard->device.bucket[k]), 0);
	close_kyber();
}

/* ------------------------------------------------------------- depths, ticks */

/* domain.h: reads miss their target, so writes get fewer slots. */
TEST(depth_follows_in_the_same_tick)
{
	struct sched_params p;
	struct kyber_fair *k;
	u32 i;

	open_kyber(KYBER_TOTAL);
	p = h.sched.params;
	kyber_params(&p)->read_lat_us = 2000;
	kyber_params(&p)->write_lat_us = 10000;
	hooks_tune(&h, &p);
	k = h.sched.own;
	assert_int_equal(k->budget.slots[IO_WRITE].tree.depth, 128);
	for (i = 0; i < DOMAIN_SAMPLES; i++) {
		domain_done(&k->domains, IO_READ, 0, 3 * MS, 9 * MS);
		domain_done(&k->domains, IO_WRITE, 0, 4 * MS, 5 * MS);
	}
	h.now = k->domains.next_ns;
	hooks_tick(&h);
	assert_in_range(k->budget.slots[IO_WRITE].tree.depth, 64, 72);
	assert_int_equal(k->budget.slots[IO_READ].tree.depth, 256);
	close_kyber();
}

/* The host is late for one tick.  The next judgement of latencies is not. */
TEST(latencies_are_judged_on_time)
{
	struct sched_params p;

	open_kyber(KYBER_TOTAL);
	p = h.sched.params;
	budget_params(&p)->period_ns = 4000 * MS;
	hooks_tune(&h, &p);
	hooks_run(&h, h.now);
	h.now = h.tick_ns + 7 * MS;
	assert_true(h.now < kyber()->domains.next_ns);
	hooks_tick(&h);
	assert_true(h.tick_ns <= kyber()->domains.next_ns);
	close_kyber();
}

TEST(no_tick_without_flows)
{
	open_kyber(KYBER_TOTAL);
	hooks_drain(&h);
	hooks_run(&h, start_ns + 10 * PERIOD);
	assert_null(h.sched.active);
	assert_int_equal(h.tick_ns, 0);
	close_kyber();
}

/* --------------------------------------------------------------- init, tuning */

TEST(tunables_take_effect)
{
	const struct domain *domain;
	struct sched_params p;

	open_kyber(KYBER_TOTAL);
	domain = kyber()->domains.domain;
	assert_int_equal(domain[IO_READ].target_ns, 0);
	assert_int_equal(domain[IO_WRITE].target_ns, 0);
	assert_int_equal(kyber()->budget.rule, BUDGET_ALL_EXHAUSTED);
	p = h.sched.params;
	kyber_params(&p)->read_lat_us = 300;
	kyber_params(&p)->write_lat_us = 70000;
	budget_params(&p)->work_conserving = 1;
	hooks_tune(&h, &p);
	assert_int_equal(domain[IO_READ].target_ns, 3 * MS / 10);
	assert_int_equal(domain[IO_WRITE].target_ns, 70 * MS);
	assert_int_equal(kyber()->budget.rule, BUDGET_CONSERVING);
	/* New shares keep them. */
	hooks_tune(&h, NULL);
	assert_int_equal(domain[IO_READ].target_ns, 3 * MS / 10);
	close_kyber();
}

TEST(depth_is_the_most_of_each_domain)
{
	struct sched_params p;
	u32 op;

	open_kyber(KYBER_TOTAL);
	p = h.sched.params;
	p.depth = 40;
	hooks_tune(&h, &p);
	for (op = 0; op < DOMAINS; op++)
		assert_int_equal(kyber()->budget.slots[op].tree.depth,
				 min(domain_depth_most(op), 40U));
	close_kyber();
}

TEST(init_fails_without_memory)
{
	/* Shards and slots of four domains at least. */
	assert_true(hooks_init_without_memory(&kyber_fair_ops) >= 12);
}
