// SPDX-License-Identifier: GPL-2.0
/* The three definitions of virtual time. */
#include "ifq.h"

/* Mean wait of four shallow tenants beside two deep ones, all of equal weight. */
static double wait_under(struct test_case *t, u32 virtual_time, double *parts)
{
	struct host_params p = ifq_host_params(t, 5);
	struct load_params shallow = {
		.depth = 2,
		.bytes = 4 * KIB,
		.think_ns = 120 * US,
		.think_random = true,
	};
	struct host_flow *flow[6];
	double wait = 0, ios = 0, all = 0;
	struct fixture r;
	u32 i;

	ifq_params(&p.sched)->virtual_time = virtual_time;
	ifq_params(&p.sched)->damping =
		0; /* of nothing else than virtual time */
	p.device.base_ns = 60 * US;
	p.device.ns_per_kib = 10 * US;
	fixture_open(&r, t, &p);
	for (i = 0; i < 6; i++) {
		flow[i] = fixture_flow(&r, NULL, 100);
		shallow.flow = flow[i];
		if (i < 4)
			fixture_load(&r, &shallow);
		else
			fixture_closed(&r, flow[i], 64, 8 * KIB);
	}
	fixture_run(&r, 5 * SEC);
	for (i = 0; i < 6; i++)
		all += (double)flow[i]->stats.bytes;
	*parts = 0;
	for (i = 0; i < 4; i++) {
		wait += (double)flow[i]->stats.wait_ns / 1000;
		ios += (double)flow[i]->stats.ios;
		*parts += (double)flow[i]->stats.bytes / all;
	}
	fixture_close(&r);
	return wait / ios;
}

/*
 * What the paper says of the three: with max and 4tag more of what different
 * users send goes to the drive at once, with min more of it is kept.
 */
void ifq_virtual_time(struct test_case *t)
{
	double part[3], wait[3];
	u32 i;

	for (i = IFQ_MIN; i <= IFQ_4TAG; i++)
		wait[i] = wait_under(t, i, &part[i]);
	if (wait[IFQ_MAX] >= wait[IFQ_MIN] || wait[IFQ_4TAG] >= wait[IFQ_MAX])
		case_fail(
			t,
			"requests of shallow tenants are kept for %.2f, %.2f, %.2f us under min, max, 4tag",
			wait[0], wait[1], wait[2]);
	case_note(
		t,
		"kept for %.2f, %.2f, %.2f us under min, max, 4tag; shallow tenants have %.3f, %.3f, %.3f",
		wait[0], wait[1], wait[2], part[0], part[1], part[2]);
}

/*
 * Whatever virtual time is: a second of silence gives no credit beyond what the
 * device holds.
 */
void ifq_no_credit(struct test_case *t)
{
	u32 i;

	for (i = IFQ_MIN; i <= IFQ_4TAG; i++) {
		struct host_params p = ifq_host_params(t, 1);
		struct host_flow *flow[2];
		u64 before[2], got[2];
		struct fixture r;
		u32 k;

		ifq_params(&p.sched)->virtual_time = i;
		ifq_params(&p.sched)->damping = 0;
		fixture_open(&r, t, &p);
		for (k = 0; k < 2; k++)
			flow[k] = fixture_flow(&r, NULL, 100);
		fixture_add(&r, flow[0], .depth = 64, .bytes = 4 * KIB,
			    .on_ns = 100 * MS, .off_ns = 900 * MS);
		fixture_closed(&r, flow[1], 64, 4 * KIB);
		fixture_run(&r, SEC);
		fixture_bytes(flow, before, 2);
		fixture_run(&r, 50 * MS);
		fixture_bytes(flow, got, 2);
		for (k = 0; k < 2; k++)
			got[k] -= before[k];
		if (got[0] > got[1] + 4ULL * 8 * 4 * KIB)
			case_fail(
				t,
				"after a second of silence a flow gets %llu bytes, the other %llu (virtual time %u)",
				got[0], got[1], i);
		fixture_close(&r);
	}
}
