// SPDX-License-Identifier: GPL-2.0
/* Figure 5 of the paper. */
#include <math.h>
#include <stdlib.h>

#include "ifq.h"

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
double ifq_figure5_on(struct test_case *t, u32 window_ms, u32 windows,
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

void ifq_due_weights(struct test_case *t)
{
	double worst = ifq_figure5_on(t, 2000, 24, true);

	if (worst > 0.1)
		case_fail(t, "a weight is off its due by %.1f %%", 100 * worst);
	case_note(t, "weights within %.1f %% of their due", 100 * worst);
}
