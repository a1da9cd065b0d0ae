// SPDX-License-Identifier: GPL-2.0
/* The length of the window. */
#include "ifq.h"
#include "sched/core/policies.h"

/*
 * How long others suffer from a tenant that was light and asks for all it can
 * get from one moment to the next: until they have nine tenths of their half.
 */
static double suffering_ms(struct test_case *t, u32 window_ms)
{
	struct host_params p = ifq_host_params(t, 1);
	struct host_flow *flow[2];
	u64 before, ms;
	struct fixture r;

	ifq_params(&p.sched)->window_ms = window_ms;
	p.device.base_ns = MS;
	fixture_open(&r, t, &p);
	flow[0] = fixture_flow(&r, NULL, 100);
	flow[1] = fixture_flow(&r, NULL, 100);
	fixture_add(&r, flow[0], .depth = 1, .bytes = 4 * KIB,
		    .think_ns = 5 * MS);
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
void ifq_window(struct test_case *t)
{
	static const u32 windows[] = { 50, 100, 200, 500, 1000, 2000 };
	struct sched_params p;
	u32 i;

	sched_params_init(&ifq_ops, &p);
	p.isolation = 0;
	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		u32 ms = windows[i];
		double off = ifq_figure5_on(t, ms, max(24U, 20000 / ms), false);
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
