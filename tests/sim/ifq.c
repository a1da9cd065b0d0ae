// SPDX-License-Identifier: GPL-2.0
/*
 * Interference fairness.  Unless said otherwise: D = 8 on a drive of 8 slots
 * and 100 us a request, hence 80,000 requests a second, and what ifq has by
 * default.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sched/ifq/ifq.h"
#include "sched/core/policies.h"
#include "fixture.h"

static struct host_params ifq_host_params(const struct test_case *t, u64 seed)
{
	struct host_params p = {
		.seed = seed,
		.nr_queues = 1,
		.ops = t->ops,
		.device = { .slots = 8, .base_ns = 100 * US },
	};

	sched_params_init(&ifq_ops, &p.sched);
	return p;
}

static const struct mqfq *mqfq_state(const struct fixture *r)
{
	return r->host->sched.own;
}

static u64 window_of(const struct fixture *r)
{
	return container_of(mqfq_state(r), struct ifq, mqfq)->ifq_weight.window;
}

static u64 window_ns(const struct fixture *r)
{
	return ifq_params(&r->host->sched.params)->window_ms * MS;
}

static void set_damping(struct fixture *r, u32 percent)
{
	struct sched_params p = r->host->sched.params;

	ifq_params(&p)->damping = percent;
	host_tune(r->host, &p);
}

static bool off_by(double got, double want, double part)
{
	return fabs(got / want - 1) > part;
}

/* ------------------------------------------- the example: figure 4 of the paper */

/* A unit is 1000 requests of 4 KiB, a time unit one second. */
enum { UNIT = 1000 };

struct need {
	struct host_flow *flow;
	struct load *load;
	u64 ios;
	u64 done_ns;
};

static void need_look(struct need *n, u64 now)
{
	if (n->flow->stats.ios + n->flow->outstanding >= n->ios)
		load_stop(n->load);
	if (!n->done_ns && n->flow->stats.ios >= n->ios)
		n->done_ns = now;
}

static void run_needs(struct fixture *r, struct need *need, u32 n, u64 until_ns)
{
	u32 i;

	while (host_now(r->host) < until_ns && !case_failed(r->test_case)) {
		fixture_run(r, MS);
		for (i = 0; i < n; i++)
			need_look(&need[i], host_now(r->host));
	}
}

static void expect_units(struct test_case *t, const struct host_flow *flow,
			 double units, double at)
{
	double got = (double)flow->stats.ios / UNIT;

	if (off_by(got, units, 0.01))
		case_fail(t, "at t = %g flow %u has moved %.3f units, not %g",
			  at, flow->id, got, units);
}

static void expect_done(struct test_case *t, const struct need *n, double at)
{
	double got = (double)n->done_ns / (double)SEC;

	if (off_by(got, at, 0.01))
		case_fail(t, "flow %u is done at %.3f, not at %g", n->flow->id,
			  got, at);
}

static void example_on(struct test_case *t, u32 queues)
{
	static const u32 weights[] = { 200, 200, 100 };
	struct host_params p = ifq_host_params(t, 1);
	struct need need[2];
	struct host_flow *flow[3];
	struct fixture r;
	u32 i;

	p.nr_queues = queues;
	p.sched.depth = 6;
	ifq_params(&p.sched)->damping = 0; /* weights by hand */
	p.device.slots = 6;
	p.device.base_ns = SEC / UNIT;
	fixture_open(&r, t, &p);
	for (i = 0; i < 3; i++) {
		struct load_params load = {
			.flow = flow[i] = fixture_flow(&r, NULL, weights[i]),
			.nr_queues = queues,
			.depth = i == 2 ? 32 : 16,
			.bytes = 4 * KIB,
			.start_ns = i == 1 ? 2 * SEC : 0,
		};
		struct load *l = fixture_load(&r, &load);

		if (i < 2)
			need[i] = (struct need){ flow[i], l, 18 * UNIT, 0 };
	}
	run_needs(&r, need, 2, 2 * SEC);
	expect_units(t, flow[0], 8, 2);
	expect_units(t, flow[2], 4, 2);
	run_needs(&r, need, 2, 4 * SEC);
	expect_units(t, flow[0], 8 + 2 * 2.4, 4);
	expect_units(t, flow[1], 2 * 2.4, 4);
	expect_units(t, flow[2], 4 + 2 * 1.2, 4);
	run_needs(&r, need, 2, 7 * SEC);
	expect_units(t, flow[1], 10 + 4 * (7 - 37 / 6.0), 7);
	expect_units(t, flow[2], 9 + 2 * (7 - 37 / 6.0), 7);
	run_needs(&r, need, 2, 12 * SEC);
	expect_done(t, &need[0], 37 / 6.0);
	expect_done(t, &need[1], 49 / 6.0);
	expect_units(t, flow[0], 18, 12);
	expect_units(t, flow[1], 18, 12);
	expect_units(t, flow[2], 36, 12);
	case_note(t, "done at %.3f and %.3f, C has %.2f at 12",
		  (double)need[0].done_ns / (double)SEC,
		  (double)need[1].done_ns / (double)SEC,
		  (double)flow[2]->stats.ios / UNIT);
	fixture_close(&r);
}

static void test_example(struct test_case *t)
{
	example_on(t, 1);
	example_on(t, 3);
}

/* ---------------------------------------------------------------- the estimator */

/* Bytes of two flows in a window, and what they had when it began. */
struct couple {
	struct host_flow *flow[2];
	u64 before[2];
	double copied[2];
};

static double couple_window(struct fixture *r, struct couple *c)
{
	u32 i;

	fixture_bytes(c->flow, c->before, 2);
	fixture_run(r, window_ns(r));
	for (i = 0; i < 2; i++)
		c->copied[i] = (double)(c->flow[i]->stats.bytes - c->before[i]);
	return c->copied[0] / c->copied[1];
}

/* The weights in force, first to second: of siblings. */
static double couple_weights(const struct fixture *r, const struct couple *c)
{
	if (r->test_case->ops != &ifq_ops)
		return 1;
	return (double)c->flow[0]->flow->group.scale /
	       c->flow[1]->flow->group.scale;
}

/*
 * One window in which the first asks for a third of what the second gets, and
 * the rule is literal: then the first asks for more than it can get, with three
 * times the weight.
 */
static void couple_open(struct fixture *r, struct test_case *t,
			struct couple *c)
{
	struct host_params p = ifq_host_params(t, 1);
	double ratio;

	ifq_params(&p.sched)->window_ms = 100;
	ifq_params(&p.sched)->damping = 100;
	fixture_open(r, t, &p);
	c->flow[0] = fixture_flow(r, NULL, 100);
	c->flow[1] = fixture_flow(r, NULL, 100);
	fixture_closed(r, c->flow[0], 4, 4 * KIB);
	fixture_closed(r, c->flow[1], 64, 4 * KIB);
	fixture_run(r, US);
	couple_window(r, c);
	fixture_closed(r, c->flow[0], 64, 4 * KIB);
	ratio = couple_window(r, c);
	if (off_by(ratio, 3, 0.2))
		case_fail(t, "two readers start at %.2f : 1, not 3 : 1", ratio);
}

static void test_two_readers(struct test_case *t)
{
	struct couple c;
	struct fixture r;
	double ratio = 0, worst = 0;
	u32 i;

	couple_open(&r, t, &c);
	set_damping(&r, 50);
	for (i = 1; i <= 30; i++) {
		ratio = couple_window(&r, &c);
		if (i >= 5)
			worst = max(worst, fabs(ratio - 1));
	}
	if (worst > 0.02)
		case_fail(
			t,
			"five windows after 3 : 1 two readers differ by %.1f %%",
			100 * worst);
	case_note(t, "from the fifth window on never off by more than %.2f %%",
		  100 * worst);
	fixture_close(&r);
}

/* The literal rule: the reason for the damping. */
static void test_undamped(struct test_case *t)
{
	struct couple c;
	struct fixture r;
	u32 i;

	couple_open(&r, t, &c);
	for (i = 0; i < 20; i++) {
		double ratio = couple_window(&r, &c);

		if (i % 2)
			ratio = 1 / ratio;
		/* The first window after the start is the third of them all. */
		if (ratio > 0.5)
			case_fail(
				t,
				"undamped, two readers come to rest at %.2f : 1",
				i % 2 ? 1 / ratio : ratio);
	}
	case_note(t, "3 : 1, 1 : 3, 3 : 1, .. for %u windows", i);
	fixture_close(&r);
}

struct phase {
	const char *name;
	u32 windows;
	u32 settled;		/* from this window on */
	double within;
};

/* Estimated weights beside those that what is moved now makes due. */
static void run_phase(struct fixture *r, struct couple *c,
		      const struct phase *p)
{
	u32 i;

	for (i = 1; i <= p->windows; i++) {
		double weights = couple_weights(r, c);
		double due = 1 / couple_window(r, c);

		printf("# %s, window %2u: weights %7.2f : 1, due %7.2f : 1\n",
		       p->name, i, weights, due);
		if (i >= p->settled && off_by(weights, due, p->within))
			case_fail(
				r->test_case,
				"%s, window %u: weights are %.2f : 1, due are %.2f : 1",
				p->name, i, weights, due);
	}
}

static void test_light_heavy_light(struct test_case *t)
{
	static const struct phase phases[] = {
		{ "light", 10, 8, 0.05 },
		{ "heavy", 10, 5, 0.02 },
		{ "light again", 12, 9, 0.05 },
	};
	struct host_params p = ifq_host_params(t, 1);
	struct load_params light = {
		.depth = 1,
		.bytes = 4 * KIB,
		.think_ns = 900 * US,
	};
	struct load *heavy;
	struct couple c;
	struct fixture r;

	ifq_params(&p.sched)->window_ms = 200;
	fixture_open(&r, t, &p);
	c.flow[0] = fixture_flow(&r, NULL, 100);
	c.flow[1] = fixture_flow(&r, NULL, 100);
	light.flow = c.flow[0];
	fixture_load(&r, &light);
	fixture_closed(&r, c.flow[1], 64, 4 * KIB);
	fixture_run(&r, US);
	run_phase(&r, &c, &phases[0]);
	heavy = fixture_closed(&r, c.flow[0], 64, 4 * KIB);
	run_phase(&r, &c, &phases[1]);
	load_stop(heavy);
	run_phase(&r, &c, &phases[2]);
	fixture_close(&r);
}

/* With weights of people: who takes all that it can get has its share of them. */
static void test_weights(struct test_case *t)
{
	static const u32 weights[] = { 100, 250, 500, 1000 };
	struct host_params p = ifq_host_params(t, 1);
	struct host_flow *flow[4];
	struct fixture r;
	u32 i;

	p.nr_queues = 2;
	ifq_params(&p.sched)->window_ms = 100;
	fixture_open(&r, t, &p);
	for (i = 0; i < 4; i++) {
		flow[i] = fixture_flow(&r, NULL, weights[i]);
		fixture_closed(&r, flow[i], 64, 4 * KIB);
	}
	fixture_run(&r, SEC);
	fixture_expect_parts(&r, flow, weights, 4, 500 * MS, 20, "weights");
	fixture_close(&r);
}

/* A parent's share is split among its children, however many and however busy. */
static void test_tree(struct test_case *t)
{
	static const u32 parts[] = { 45, 45, 10 };
	struct host_params p = ifq_host_params(t, 1);
	struct host_flow *prod, *flow[3];
	struct fixture r;
	u32 i;

	ifq_params(&p.sched)->window_ms = 100;
	fixture_open(&r, t, &p);
	prod = fixture_flow(&r, NULL, 900);
	flow[0] = fixture_flow(&r, prod, 500);
	flow[1] = fixture_flow(&r, prod, 500);
	flow[2] = fixture_flow(&r, NULL, 100);
	for (i = 0; i < 3; i++)
		fixture_closed(&r, flow[i], 32 << i, 4 * KIB);
	fixture_run(&r, SEC);
	fixture_expect_parts(&r, flow, parts, 3, 500 * MS, 20, "tree");
	fixture_close(&r);
}

/*
 * Six tenants that come and go, and windows as short as can be: rig.c watches
 * virtual time, slots and who waits, at every step.
 */
static void roll_under(struct test_case *t, u32 virtual_time, u64 delay_ns,
		       u32 refuse_permille)
{
	struct host_params p = ifq_host_params(t, 3);
	struct load_params bursts = {
		.on_ns = 30 * MS,
		.off_ns = 37 * MS,
		.exempt_permille = 20,
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
	if (window_of(&r) < 35)
		case_fail(t, "%llu windows ended in two seconds",
			  window_of(&r));
	fixture_close(&r);
}

static void test_roll(struct test_case *t)
{
	u32 i;

	for (i = IFQ_MIN; i <= IFQ_4TAG; i++) {
		roll_under(t, i, 0, 0);
		roll_under(t, i, 30 * US, 0);
		roll_under(t, i, 0, 50);
	}
}

/*
 * The end of a window changes no position: who is ahead of virtual time by so
 * much of its share is ahead by as much of its new one.
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

	if (d->window && window_of(&d->r) != d->window) {
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
	d->window = window_of(&d->r);
	d->pos = (u64)atomic64_read(&f->pos);
	d->owed = debt_now(d);
}

static void test_debt(struct test_case *t)
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
	/* Instead of the rig's own. */
	d.r.host->watch.step = debt_step;
	d.r.host->watch.quiet = NULL;
	fixture_run(&d.r, 2 * SEC);
	if (d.seen < 35)
		case_fail(t, "the ends of %u windows were seen", d.seen);
	fixture_close(&d.r);
}

/*
 * At T = 0 a queue waits until virtual time is at its lead.  The large requests
 * of a tenant whose weight was a thousandth were a gigabyte away; when its
 * weight is as good as the other's again, they are not.
 */
static void test_wakes(struct test_case *t)
{
	struct host_params p = ifq_host_params(t, 1);
	struct load_params load = { .depth = 64, .bytes = 1 * MIB };
	struct load_params light = {
		.first_queue = 1,
		.depth = 1,
		.bytes = 4 * KIB,
		.think_ns = 10 * MS,
	};
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
	light.flow = flow[1];
	fixture_load(&r, &light);
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
		case_fail(t, "who moved so much still has %llu ppm", part);
	/* A window ends 1.1 s after the start: then they are equal. */
	fixture_run(&r, 60 * MS);
	fixture_bytes(flow, before, 2);
	fixture_run(&r, 100 * MS);
	part = fixture_part(flow, before, 2, 0);
	if (part < 300000)
		case_fail(t, "in the next window it has %llu ppm", part);
	fixture_close(&r);
}

/* -------------------------------------------------------- figure 5 of the paper */

enum {
	FIG5_IO		= 512 * KIB,
	FIG5_BURST	= 20,		/* 10 MiB */
	FIG5_POOL	= 64,
};

/* Requests that the test submits by itself. */
struct pool {
	struct host_io io[FIG5_POOL];
	struct host_flow *flow;
	u64 dropped;
};

static void pool_done(struct host_io *hio)
{
	(void)hio;
}

static void pool_submit(struct pool *p, u32 n)
{
	u32 i;

	for (i = 0; i < FIG5_POOL && n; i++)
		if (p->io[i].state == HOST_IO_IDLE) {
			p->io[i].flow = p->flow;
			p->io[i].done = pool_done;
			host_submit(&p->io[i], 0, IO_READ, FIG5_IO, 0);
			n--;
		}
	p->dropped += n;
}

struct fig5 {
	struct fixture r;
	struct host_flow *user[3];
	struct pool burst, steady;
	u64 bursts, beats;
};

/* User 2 follows user 1, user 3 the clock. */
static void fig5_step(struct fig5 *f)
{
	u64 now;

	fixture_run(&f->r, MS);
	now = host_now(f->r.host);
	for (; f->user[0]->stats.bytes / (20 * MIB) > f->bursts; f->bursts++)
		pool_submit(&f->burst, FIG5_BURST);
	for (; now / (100 * MS) > f->beats; f->beats++)
		pool_submit(&f->steady, 1);
}

/* The weights in force and those due, as parts of their sums. */
struct weights {
	double actual[3], due[3];
};

static void normalise(double *w)
{
	double sum = w[0] + w[1] + w[2];
	u32 i;

	for (i = 0; i < 3; i++)
		w[i] /= sum;
}

static void fig5_window(struct fig5 *f, struct weights *w)
{
	u64 before[3], steps = ifq_params(&f->r.host->sched.params)->window_ms;
	u32 i;

	for (i = 0; i < 3; i++)
		w->actual[i] = f->user[i]->flow->group.scale;
	fixture_bytes(f->user, before, 3);
	while (steps--)
		fig5_step(f);
	for (i = 0; i < 3; i++)
		w->due[i] =
			1.0 /
			(double)max(f->user[i]->stats.bytes - before[i],
				    (u64)ifq_params(&f->r.host->sched.params)
					    ->floor);
	normalise(w->actual);
	normalise(w->due);
}

/* Greatest part by which an actual weight is off, over @windows windows. */
static double fig5_on(struct test_case *t, u32 window_ms, u32 windows,
		      bool print)
{
	struct host_params p = ifq_host_params(t, 1);
	struct fig5 *f = calloc(1, sizeof(*f));
	double worst = 0;
	u32 i, k;

	port_assert(f);
	ifq_params(&p.sched)->window_ms = window_ms;
	/* 512 MiB/s from eight slots, as a drive on SATA. */
	p.device.base_ns = 0;
	p.device.ns_per_kib = 15625;
	fixture_open(&f->r, t, &p);
	for (i = 0; i < 3; i++)
		f->user[i] = fixture_flow(&f->r, NULL, 100);
	f->burst.flow = f->user[1];
	f->steady.flow = f->user[2];
	fixture_closed(&f->r, f->user[0], 16, FIG5_IO);
	for (i = 0; i < windows; i++) {
		struct weights w;

		fig5_window(f, &w);
		for (k = 0; k < 3 && i >= 8; k++)
			worst = max(worst, fabs(w.actual[k] / w.due[k] - 1));
		if (print)
			printf("# window %2u: actual %.4f %.4f %.4f, due %.4f %.4f %.4f\n",
			       i, w.actual[0], w.actual[1], w.actual[2],
			       w.due[0], w.due[1], w.due[2]);
	}
	if (f->burst.dropped || f->steady.dropped)
		case_fail(t, "a user found no room for its requests");
	fixture_close(&f->r);
	free(f);
	return worst;
}

static void test_due_weights(struct test_case *t)
{
	double worst = fig5_on(t, 2000, 24, true);

	if (worst > 0.1)
		case_fail(t, "a weight is off its due by %.1f %%", 100 * worst);
	case_note(t, "weights within %.1f %% of their due", 100 * worst);
}

/* ------------------------------------------------------------ the four principles */

/* A tenant: what it asks for. */
struct ask {
	u32 depth, bytes;	/* sizes from this up to twice as much */
	u64 think_ns;
	bool absent;
};

enum { ASKS = 4 };

/* Two who take all they can get, two who wait for each request. */
static const struct ask mixed[ASKS] = {
	{ .depth = 64, .bytes = 8 * KIB },
	{ .depth = 128, .bytes = 8 * KIB },
	{ .depth = 1, .bytes = 4 * KIB, .think_ns = 900 * US },
	{ .depth = 1, .bytes = 4 * KIB, .think_ns = 150 * US },
};

/* On a drive of 80 us, and 5 us a KiB. */
enum { LONGEST_US = 80 + 5 * 16 };

/* What each gets in a second, after as long to settle. */
struct got {
	double bytes[ASKS];
	double wait_us[ASKS];	/* mean from insert to dispatch */
};

static struct got serve(struct test_case *t, const struct ask *ask, u32 slots)
{
	struct host_params p = ifq_host_params(t, 1);
	struct host_flow *flow[ASKS];
	u64 ios[ASKS], wait[ASKS], bytes[ASKS];
	struct got got;
	struct fixture r;
	u32 i;

	ifq_params(&p.sched)->window_ms = 100;
	p.sched.depth = slots;
	p.device.slots = slots;
	p.device.base_ns = 80 * US;
	p.device.ns_per_kib = 5 * US;
	fixture_open(&r, t, &p);
	for (i = 0; i < ASKS; i++) {
		struct load_params load = {
			.flow = flow[i] = fixture_flow(&r, NULL, 100),
			.depth = ask[i].depth,
			/* At random, or the slots would keep step. */
			.bytes = ask[i].bytes,
			.bytes_max = 2 * ask[i].bytes,
			.think_ns = ask[i].think_ns,
		};

		if (!ask[i].absent)
			fixture_load(&r, &load);
	}
	fixture_run(&r, SEC);
	for (i = 0; i < ASKS; i++) {
		ios[i] = flow[i]->stats.ios;
		wait[i] = flow[i]->stats.wait_ns;
		bytes[i] = flow[i]->stats.bytes;
	}
	fixture_run(&r, SEC);
	for (i = 0; i < ASKS; i++) {
		u64 n = max(flow[i]->stats.ios - ios[i], 1ULL);

		got.bytes[i] = (double)(flow[i]->stats.bytes - bytes[i]);
		got.wait_us[i] = (double)(flow[i]->stats.wait_ns - wait[i]) /
				 1000 / (double)n;
	}
	fixture_close(&r);
	return got;
}

/*
 * There is no preemption: a request waits until a slot is free, and perhaps for
 * that of another tenant who came just before.
 */
static double least_of_quarter(const struct ask *ask)
{
	double period_us = (double)ask->think_ns / 1000 + 80;

	if (!ask->think_ns)
		return 1;
	return period_us / (period_us + 2.0 * LONGEST_US / 8);
}

/* Sharing incentive: nobody is worse off than with a quarter to itself. */
static void test_sharing_incentive(struct test_case *t)
{
	struct got shared = serve(t, mixed, 8);
	double least = 1e9;
	u32 i, k;

	for (i = 0; i < ASKS; i++) {
		struct ask alone[ASKS];
		struct got quarter;

		for (k = 0; k < ASKS; k++) {
			alone[k] = mixed[k];
			alone[k].absent = k != i;
		}
		quarter = serve(t, alone, 8 / ASKS);
		least = min(least, shared.bytes[i] / quarter.bytes[i]);
		if (shared.bytes[i] <
		    least_of_quarter(&mixed[i]) * quarter.bytes[i])
			case_fail(
				t,
				"tenant %u gets %.2f of what a quarter of the drive gave it",
				i, shared.bytes[i] / quarter.bytes[i]);
	}
	case_note(t, "at least %.2f of a quarter", least);
}

/*
 * The requests of interest of a tenant that sends others besides: one at a
 * time, with think times.
 */
struct reader {
	struct host_io hio;
	struct fixture *fixture;
	u64 done;
};

static void reader_submit(struct event *ev)
{
	struct host_io *hio = container_of(ev, struct host_io, event);
	struct reader *reader = container_of(hio, struct reader, hio);

	if (!reader->fixture->host->stopping)
		host_submit(hio, 0, IO_READ, 4 * KIB, 0);
}

static void reader_done(struct host_io *hio)
{
	struct reader *reader = container_of(hio, struct reader, hio);
	struct host *h = reader->fixture->host;

	reader->done++;
	event_init(&hio->event, reader_submit);
	event_arm(&h->timeline, &hio->event, host_now(h) + 900 * US);
}

/* Requests of interest in a second, beside @junk of no interest. */
static u64 useful(struct test_case *t, u32 junk)
{
	struct host_params p = ifq_host_params(t, 1);
	struct reader reader = { 0 };
	struct fixture r;
	u64 before;
	u32 i;

	ifq_params(&p.sched)->window_ms = 100;
	fixture_open(&r, t, &p);
	for (i = 0; i < 3; i++)
		fixture_closed(&r, fixture_flow(&r, NULL, 100), 64,
			       4 * KIB << i);
	reader.fixture = &r;
	reader.hio.flow = fixture_flow(&r, NULL, 100);
	reader.hio.done = reader_done;
	event_init(&reader.hio.event, reader_submit);
	event_arm(&r.host->timeline, &reader.hio.event, US);
	if (junk)
		fixture_closed(&r, reader.hio.flow, junk, 4 * KIB);
	fixture_run(&r, SEC);
	before = reader.done;
	fixture_run(&r, SEC);
	before = reader.done - before;
	fixture_close(&r);
	return before;
}

/* Strategy: asking for more than one needs, or deeper, gains nothing. */
static void test_no_gain_from_more(struct test_case *t)
{
	struct ask deeper[ASKS];
	struct got plain, inflated;
	u64 honest, padded;

	honest = useful(t, 0);
	padded = useful(t, 32);
	if (padded > honest)
		case_fail(
			t,
			"with requests that it does not need a tenant has %llu of use, without %llu",
			padded, honest);
	memcpy(deeper, mixed, sizeof(deeper));
	deeper[0].depth *= 8;
	plain = serve(t, mixed, 8);
	inflated = serve(t, deeper, 8);
	if (inflated.bytes[0] > 1.01 * plain.bytes[0])
		case_fail(t,
			  "eight times as deep a tenant gets %.2f times as much",
			  inflated.bytes[0] / plain.bytes[0]);
	case_note(
		t,
		"padded: %llu requests of use instead of %llu; deeper: %.3f times as much",
		padded, honest, inflated.bytes[0] / plain.bytes[0]);
}

static double worst_change(const struct ask *ask, const struct got *from,
			   const struct got *to)
{
	double worst = 1e9;
	u32 i;

	for (i = 0; i < ASKS; i++)
		if (!ask[i].absent)
			worst = min(worst, to->bytes[i] / from->bytes[i]);
	return worst;
}

/* Monotony: with fewer tenants, or a larger drive, nobody gets less. */
static void test_monotony(struct test_case *t)
{
	struct got all = serve(t, mixed, 8), other;
	double worst;
	u32 i;

	for (i = 0; i < ASKS; i++) {
		struct ask without[ASKS];

		memcpy(without, mixed, sizeof(without));
		without[i].absent = true;
		other = serve(t, without, 8);
		worst = worst_change(without, &all, &other);
		if (worst < 0.99)
			case_fail(
				t,
				"when tenant %u has left somebody gets %.3f of what it got",
				i, worst);
	}
	other = serve(t, mixed, 16);
	worst = worst_change(mixed, &all, &other);
	if (worst < 0.99)
		case_fail(
			t,
			"on a drive twice as large somebody gets %.3f of what it got",
			worst);
}

/*
 * More for who takes less: the less a tenant moves, the less it waits.  Those
 * who do not use their part are next whenever they come, and differ by chance.
 */
static void test_less_waits_less(struct test_case *t)
{
	static const struct ask asks[ASKS] = {
		{ .depth = 1, .bytes = 4 * KIB, .think_ns = 2 * MS },
		{ .depth = 4, .bytes = 4 * KIB, .think_ns = 300 * US },
		{ .depth = 8, .bytes = 4 * KIB, .think_ns = 300 * US },
		{ .depth = 256, .bytes = 4 * KIB },
	};
	struct got got = serve(t, asks, 8);
	u32 i;

	for (i = 1; i < ASKS; i++) {
		if (got.bytes[i] < got.bytes[i - 1] * 1.5)
			case_fail(t, "tenant %u does not move more than %u", i,
				  i - 1);
		if (got.wait_us[i] < 0.95 * got.wait_us[i - 1])
			case_fail(
				t,
				"tenant %u, which moves more, waits %.1f us, tenant %u %.1f us",
				i, got.wait_us[i], i - 1, got.wait_us[i - 1]);
	}
	if (got.wait_us[ASKS - 1] < 10 * got.wait_us[ASKS - 2])
		case_fail(t,
			  "who takes all waits %.1f us, who takes less %.1f us",
			  got.wait_us[ASKS - 1], got.wait_us[ASKS - 2]);
	case_note(t, "waits %.1f, %.1f, %.1f, %.1f us", got.wait_us[0],
		  got.wait_us[1], got.wait_us[2], got.wait_us[3]);
}

/* --------------------------------------------------------- latency beside load */

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
	struct load_params reading = {
		.depth = 1,
		.bytes = 4 * KIB,
		.bytes_max = 32 * KIB,
		.think_ns = 2 * MS,
		.think_random = true,
		.start_ns = 500 * MS,
	};
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
	reading.flow = reader;
	fixture_load(&r, &reading);
	fixture_run(&r, ns);
	for (i = 0; i < heavy; i++)
		tail.total += (double)flow[i]->stats.bytes;
	tail.p50 = histogram_at(&reader->stats.latency, 500);
	tail.p99 = histogram_at(&reader->stats.latency, 990);
	tail.p999 = histogram_at(&reader->stats.latency, 999);
	fixture_close(&r);
	return tail;
}

static void test_tail(struct test_case *t)
{
	struct test_case fifo = { .ops = t->ops };
	struct tail alone = read_beside(t, 0, 8, 8, 10 * SEC);
	struct tail beside = read_beside(t, 6, 8, 8, 10 * SEC);
	struct tail most;

	/* What the drive gives when nobody holds anything back. */
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
static void test_depth_curve(struct test_case *t)
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

/* ------------------------------------------------------------------ virtual time */

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
static void test_virtual_time(struct test_case *t)
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
static void test_no_credit(struct test_case *t)
{
	u32 i;

	for (i = IFQ_MIN; i <= IFQ_4TAG; i++) {
		struct host_params p = ifq_host_params(t, 1);
		struct load_params back = {
			.depth = 64,
			.bytes = 4 * KIB,
			.on_ns = 100 * MS,
			.off_ns = 900 * MS,
		};
		struct host_flow *flow[2];
		u64 before[2], got[2];
		struct fixture r;
		u32 k;

		ifq_params(&p.sched)->virtual_time = i;
		ifq_params(&p.sched)->damping = 0;
		fixture_open(&r, t, &p);
		for (k = 0; k < 2; k++)
			flow[k] = fixture_flow(&r, NULL, 100);
		back.flow = flow[0];
		fixture_load(&r, &back);
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

/* ------------------------------------------------------------------- the window */

/*
 * How long others suffer from a tenant that was light and asks for all it can
 * get from one moment to the next: until they have nine tenths of their half.
 */
static double suffering_ms(struct test_case *t, u32 window_ms)
{
	struct host_params p = ifq_host_params(t, 1);
	struct load_params light = {
		.depth = 1,
		.bytes = 4 * KIB,
		.think_ns = 5 * MS,
	};
	struct host_flow *flow[2];
	u64 before, ms;
	struct fixture r;

	ifq_params(&p.sched)->window_ms = window_ms;
	p.device.base_ns = MS;
	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	light.flow = flow[0];
	fixture_load(&r, &light);
	fixture_closed(&r, flow[1], 64, 4 * KIB);
	/* In the middle of a window. */
	fixture_run(&r, 8 * window_ms * MS + window_ms * MS / 2);
	fixture_closed(&r, flow[0], 64, 4 * KIB);
	for (ms = 0; ms < 100ULL * window_ms; ms += 10) {
		before = flow[1]->stats.bytes;
		fixture_run(&r, 10 * MS);
		/* 40 requests are half of what the drive does. */
		if (flow[1]->stats.bytes - before >= 36 * 4 * KIB)
			break;
	}
	fixture_close(&r);
	return (double)ms;
}

/* The measurements behind the default. */
static void test_window(struct test_case *t)
{
	static const u32 windows[] = { 50, 100, 200, 500, 1000, 2000 };
	struct sched_params p;
	u32 i;

	sched_params_init(&ifq_ops, &p);
	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		u32 ms = windows[i];
		double off = fig5_on(t, ms, max(24U, 20000 / ms), false);
		double suffers = suffering_ms(t, ms);

		if (ms == ifq_params(&p)->window_ms &&
		    (off > 0.1 || suffers > 2 * ms))
			case_fail(
				t,
				"by default weights are off their due by %.1f %%, a tenant turned heavy is felt for %.0f ms",
				100 * off, suffers);
		if (ms < ifq_params(&p)->window_ms && off < 0.1)
			case_fail(t, "%u ms are enough", ms);
		printf("# window %4u ms: weights off their due by %5.1f %% at most, a tenant turned heavy is felt for %5.0f ms\n",
		       ms, 100 * off, suffers);
	}
}

const struct test ifq_tests[] = {
	{ "ifq/example", test_example, true },
	{ "ifq/two-readers", test_two_readers, true },
	{ "ifq/undamped", test_undamped, true },
	{ "ifq/light-heavy-light", test_light_heavy_light, true },
	{ "ifq/weights", test_weights, true },
	{ "ifq/tree", test_tree, true },
	{ "ifq/roll", test_roll, false },
	{ "ifq/debt", test_debt, false },
	{ "ifq/wakes", test_wakes, false },
	{ "ifq/due-weights", test_due_weights, true },
	{ "ifq/sharing-incentive", test_sharing_incentive, true },
	{ "ifq/no-gain-from-more", test_no_gain_from_more, true },
	{ "ifq/monotony", test_monotony, false },
	{ "ifq/less-waits-less", test_less_waits_less, true },
	{ "ifq/tail", test_tail, true },
	{ "ifq/depth-curve", test_depth_curve, false },
	{ "ifq/virtual-time", test_virtual_time, false },
	{ "ifq/no-credit", test_no_credit, false },
	{ "ifq/window", test_window, false },
	{ NULL, NULL, false },
};
