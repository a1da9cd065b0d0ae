/* SPDX-License-Identifier: GPL-2.0 */
/*
 * meter - how much work the code of sched/ has done so far
 *
 * clock.c gives the processor's time in nanoseconds.  count.c gives the number of
 * accesses to memory, which the compiler reports.  That number is the same in
 * each run, so a test can have a bound for it.
 */
#ifndef MQFAIR_TESTS_SECTIONS_METER_H
#define MQFAIR_TESTS_SECTIONS_METER_H

#include "port.h"

u64 meter_now(void);

#endif /* MQFAIR_TESTS_SECTIONS_METER_H */
