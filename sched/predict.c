// SPDX-License-Identifier: GPL-2.0
#include "predict.h"

enum {
	/*
	 * A period used up sooner than in 1/1024 says no more than that: a
	 * moment's burst of a cache is not what the device can do, and the
	 * numbers stay below 2^64.
	 */
	SPEED_UP_MOST	= 1024,
};

#define USED_MOST	(1ULL << 48)

void predict_add(struct predict *p, u64 used, u64 until_ns, u64 period_ns)
{
	u64 value;

	if (!used)
		return;
	until_ns = clamp(until_ns, period_ns / SPEED_UP_MOST + 1, period_ns);
	value = mul_u64_u64_div_u64(min(used, USED_MOST), period_ns, until_ns);
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
