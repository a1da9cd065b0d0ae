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

	if (t->mean && c->now - t->since.now < period_ns)
		return;
	if (requests)
		t->mean = div64_u64(c->work - t->since.work, requests);
	t->since = *c;
}
