// SPDX-License-Identifier: GPL-2.0
#include "predict.h"

enum {
	/*
	 * A period that was used up in less than 1/1024 of its time counts as
	 * 1/1024.  A short burst into a cache does not show the rate of the
	 * device, and the numbers stay below 2^64.
	 */
	SPEED_UP_MOST	= 1024,
};

#define USED_MOST	(1ULL << 48)

void predict_add(struct predict *p, u64 used, u64 ran_ns, u64 period_ns,
		 u64 least_ns)
{
	u64 value;

	if (!used)
		return;
	p->used = min(p->used + min(used, USED_MOST), USED_MOST);
	p->ran_ns += ran_ns;
	if (p->ran_ns < least_ns)
		return;
	ran_ns = max(p->ran_ns, period_ns / SPEED_UP_MOST + 1);
	value = mul_u64_u64_div_u64(p->used, period_ns, ran_ns);
	p->used = 0;
	p->ran_ns = 0;
	p->sum += value - p->value[p->next];
	p->value[p->next] = value;
	p->next = (p->next + 1) % PREDICT_PERIODS;
	if (p->nr < PREDICT_PERIODS)
		p->nr++;
}

u64 predict_mean(const struct predict *p)
{
	return p->nr ? div64_u64(p->sum, p->nr) : 0;
}
