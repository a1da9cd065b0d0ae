// SPDX-License-Identifier: GPL-2.0
/* Latency beside load. */
#include "ifq.h"
#include "sched/core/policies.h"

struct tail {
	u64 p50, p99, p999;	/* ns, of the reader */
	double total;		/* bytes of the others */
};

/*
 * A reader of small pieces with think times beside @heavy tenants that take
 * all they can get, in requests of 64 KiB: a drive of @slots, of 200 us a
 * request and 64 KiB.
 */
static struct tail read_beside(struct test_case *t, u32 heavy, u32 slots,
			       u32 depth, u64 ns)
{
	struct host_params p = ifq_host_params(t, 7);
	struct host_flow *flow[RIG_FLOWS], *reader;
	struct tail tail = { 0 };
	struct fixture r;
	u32 i;

	p.sched.depth = depth;
	p.device.slots = slots;
	p.device.base_ns = 100 * US;
	p.device.ns_per_kib = 100 * US / 64;
	fixture_open(&r, t, &p);
	for (i = 0; i < heavy; i++) {
		flow[i] = fixture_flow(&r, NULL, 100);
		fixture_closed(&r, flow[i], max(64U, 2 * depth / heavy + i),
			       64 * KIB);
	}
	reader = fixture_flow(&r, NULL, 100);
	fixture_add(&r, reader, .depth = 1, .bytes = 4 * KIB,
		    .bytes_max = 32 * KIB, .think_ns = 2 * MS,
		    .think_random = true, .start_ns = 500 * MS);
	fixture_run(&r, ns);
	for (i = 0; i < heavy; i++)
		tail.total += (double)flow[i]->stats.bytes;
	tail.p50 = histogram_at(&reader->stats.latency, 500);
	tail.p99 = histogram_at(&reader->stats.latency, 990);
	tail.p999 = histogram_at(&reader->stats.latency, 999);
	fixture_close(&r);
	return tail;
}

void ifq_tail(struct test_case *t)
{
	struct test_case fifo = { .ops = t->ops };
	struct tail alone = read_beside(t, 0, 8, 8, 10 * SEC);
	struct tail beside = read_beside(t, 6, 8, 8, 10 * SEC);
	struct tail most;

	/* The throughput of the drive when no scheduler holds requests back. */
	fifo.ops = &mqfq_ops;
	most = read_beside(&fifo, 6, 8, 256, 10 * SEC);
	if (beside.p999 > 3 * alone.p999)
		case_fail(
			t,
			"beside six readers 99.9 %% of the latencies are below %llu us, alone below %llu",
			beside.p999 / 1000, alone.p999 / 1000);
	if (beside.total < 0.9 * most.total)
		case_fail(
			t,
			"the heavy readers have %.3f of what the drive can give",
			beside.total / most.total);
	case_note(
		t,
		"p50, p99, p99.9 %llu, %llu, %llu us; alone %llu, %llu, %llu; heavy readers %.3f of the most",
		beside.p50 / 1000, beside.p99 / 1000, beside.p999 / 1000,
		alone.p50 / 1000, alone.p99 / 1000, alone.p999 / 1000,
		beside.total / most.total);
}

/*
 * What D costs and gains.  A slot is free every service time / D: below the
 * drive's parallelism a greater D is better for both, beyond it only the queue
 * in the drive grows.
 */
void ifq_depth_curve(struct test_case *t)
{
	static const u32 slots[] = { 8, 32, 128 };
	u32 i, depth;

	/* Deep enough for p99, in a run short enough for a test. */
	const u64 ns = 1200 * MS;

	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		struct tail alone = read_beside(t, 0, slots[i], 8, ns);
		double most = 0, at_8 = 0, total;
		struct tail at_slots = { 0 };

		for (depth = 256; depth >= 8; depth /= 2) {
			struct tail tail =
				read_beside(t, 6, slots[i], depth, ns);

			most = max(most, tail.total);
			total = tail.total / most;
			printf("# %3u slots, D = %3u: %5.1f %% of the throughput, p99 %.2f of alone\n",
			       slots[i], depth, 100 * total,
			       (double)tail.p99 / (double)alone.p99);
			if (depth == 8)
				at_8 = total;
			if (depth == slots[i])
				at_slots = tail;
		}
		if (off_by(at_8, min(8.0 / slots[i], 1.0), 0.05))
			case_fail(
				t,
				"D = 8 on %u slots gives %.3f of the throughput",
				slots[i], at_8);
		if (at_slots.total < 0.99 * most)
			case_fail(
				t,
				"D = %u on as many slots gives %.3f of the throughput",
				slots[i], at_slots.total / most);
		if (at_slots.p99 > 3 * alone.p99)
			case_fail(
				t,
				"D = %u on as many slots has p99 at %.1f of alone",
				slots[i],
				(double)at_slots.p99 / (double)alone.p99);
	}
}
