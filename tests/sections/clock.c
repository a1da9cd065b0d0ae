// SPDX-License-Identifier: GPL-2.0
#include "meter.h"

#include <time.h>

u64 meter_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ULL + (u64)t.tv_nsec;
}
