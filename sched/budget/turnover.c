// SPDX-License-Identifier: GPL-2.0
#include "turnover.h"

void turnover_start(struct turnover *t, const struct turnover_counts *c)
{
	t->since = *c;
}

void turnover_round(struct turnover *t, const struct turnover_counts *c,
		    u64 period_ns)
{
	u64 requests = c->dispatched - t->since.dispatched;
	u64 work = c->work - t->since.work, ns = c->now - t->since.now;

	if (t->mean && ns < period_ns)
		return;
	if (requests)
		t->mean = div64_u64(work, requests);
	/* A shorter time tells how fast the device fills. */
	if (requests && ns >= period_ns)
		t->rate = rate_of(work, ns);
	t->since = *c;
}
