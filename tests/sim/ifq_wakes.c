// SPDX-License-Identifier: GPL-2.0
/* Windows, wake-ups and debts. */
#include <math.h>

#include "ifq.h"

/*
 * Six tenants that come and go, and the shortest windows.  fixture.c checks
 * virtual time, slots and waiting queues at every step.
 */
static void roll_under(struct test_case *t, u32 virtual_time, u64 delay_ns,
		       u32 refuse_permille)
{
	struct host_params p = ifq_host_params(t, 3);
	struct load_params bursts = {
		.on_ns = 30 * MS,
		.off_ns = 37 * MS,
		.polled_permille = 20,
		.urgent_permille = 20,
	};
	struct host_flow *flow;
	struct fixture r;
	u32 i;

	p.nr_queues = 4;
	p.wake_ns = 20 * US;
	p.dispatch_delay_ns = delay_ns;
	p.refuse_permille = refuse_permille;
	p.refuse_ns = 50 * US;
	ifq_params(&p.sched)->window_ms = 50;
	ifq_params(&p.sched)->virtual_time = virtual_time;
	fixture_open(&r, t, &p);
	for (i = 0; i < 6; i++) {
		flow = fixture_flow(&r, NULL, 100);
		bursts.flow = flow;
		bursts.nr_queues = 4;
		bursts.depth = 4 << i;
		bursts.bytes = (4 * KIB) << i;
		bursts.off_ns += 100 * US;
		fixture_load(&r, &bursts);
	}
	fixture_run(&r, 2 * SEC);
	if (ifq_window_of(&r) < 35)
		case_fail(t, "%llu windows ended in two seconds",
			  ifq_window_of(&r));
	fixture_close(&r);
}

void ifq_roll(struct test_case *t)
{
	u32 i;

	for (i = IFQ_MIN; i <= IFQ_4TAG; i++) {
		roll_under(t, i, 0, 0);
		roll_under(t, i, 30 * US, 0);
		roll_under(t, i, 0, 50);
	}
}

/*
 * The end of a window changes no position.  A flow that is ahead of virtual time
 * by d is ahead by d * old share / new share afterwards.
 */
struct debt {
	struct fixture r;
	struct host_flow *flow;
	u64 window;
	double owed;		/* bytes of its own that it is ahead */
	u64 pos;
	u32 seen;
};

static double debt_now(const struct debt *d)
{
	struct flow *f = d->flow->flow;
	u64 epoch;
	vtime_t finish = flow_tag(f, d->pos, &epoch);

	return (double)(s64)(finish - mqfq_vt(mqfq_state(&d->r))) *
	       (double)flow_share(f) / (double)SHARE_ONE;
}

/* Between the end of the window and the next event the shares are asked for. */
static void debt_step(void *arg)
{
	struct debt *d = container_of((struct fixture *)arg, struct debt, r);
	struct flow *f = d->flow->flow;

	if (d->window && ifq_window_of(&d->r) != d->window) {
		double now;

		flow_refresh(f, mqfq_vt(mqfq_state(&d->r)));
		now = debt_now(d);
		if (fabs(now - d->owed) > 64 * KIB)
			case_fail(
				d->r.test_case,
				"at the end of window %llu a flow that was %.0f bytes ahead is %.0f",
				d->window, d->owed, now);
		d->seen++;
	}
	d->window = ifq_window_of(&d->r);
	d->pos = (u64)atomic64_read(&f->pos);
	d->owed = debt_now(d);
}

void ifq_debt(struct test_case *t)
{
	struct host_params p = ifq_host_params(t, 1);
	struct load_params light = {
		.depth = 1,
		.bytes = 4 * KIB,
		.think_ns = MS,
	};
	struct debt d = { 0 };

	ifq_params(&p.sched)->window_ms = 50;
	fixture_open(&d.r, t, &p);
	light.flow = fixture_flow(&d.r, NULL, 100);
	fixture_load(&d.r, &light);
	d.flow = fixture_flow(&d.r, NULL, 100);
	/* 16 MiB are always charged ahead. */
	fixture_closed(&d.r, d.flow, 256, 64 * KIB);
	fixture_run(&d.r, 10 * MS);
	/* These replace the callbacks of the fixture. */
	d.r.host->watch.step = debt_step;
	d.r.host->watch.quiet = NULL;
	fixture_run(&d.r, 2 * SEC);
	if (d.seen < 35)
		case_fail(t, "the ends of %u windows were seen", d.seen);
	fixture_close(&d.r);
}

/*
 * At T = 0 a queue waits until virtual time is at its head tag.  The tenant had
 * a thousandth of the other weight, and its large requests were a gigabyte away.
 * When both weights are equal again, they are not.
 */
void ifq_wakes(struct test_case *t)
{
	struct host_params p = ifq_host_params(t, 1);
	struct load_params load = { .depth = 64, .bytes = 1 * MIB };
	struct host_flow *flow[2];
	u64 before[2], part;
	struct fixture r;
	u32 i;

	p.nr_queues = 2;
	ifq_params(&p.sched)->window_ms = 100;
	fixture_open(&r, t, &p);
	for (i = 0; i < 2; i++)
		flow[i] = fixture_flow(&r, NULL, 100);
	load.flow = flow[0];
	fixture_load(&r, &load);
	fixture_add(&r, flow[1], .first_queue = 1, .depth = 1, .bytes = 4 * KIB,
		    .think_ns = 10 * MS);
	fixture_run(&r, 1050 * MS);
	load.flow = flow[1];
	load.bytes = 4 * KIB;
	load.first_queue = 1;
	fixture_load(&r, &load);
	fixture_run(&r, 30 * MS);
	fixture_bytes(flow, before, 2);
	fixture_run(&r, 20 * MS);
	part = fixture_part(flow, before, 2, 0);
	if (part > 10000)
		case_fail(
			t,
			"the tenant that was served so much still has %llu ppm",
			part);
	/* A window ends 1.1 s after the start: then they are equal. */
	fixture_run(&r, 60 * MS);
	fixture_bytes(flow, before, 2);
	fixture_run(&r, 100 * MS);
	part = fixture_part(flow, before, 2, 0);
	if (part < 300000)
		case_fail(t, "in the next window it has %llu ppm", part);
	fixture_close(&r);
}
