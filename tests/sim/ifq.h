/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ifq - the tests of interference fairness, a file for each subject
 *
 * Unless a test says otherwise: D = 8 on a drive of 8 slots and 100 us for a
 * request, so 80,000 requests a second, and the defaults of ifq.
 */
#ifndef MQFAIR_TESTS_SIM_IFQ_H
#define MQFAIR_TESTS_SIM_IFQ_H

#include "fixture.h"
#include "sched/ifq/ifq.h"

struct host_params ifq_host_params(const struct test_case *t, u64 seed);

/* The state of mqfq, on which ifq builds. */
const struct mqfq *mqfq_state(const struct fixture *r);

/* The number of windows that have ended. */
u64 ifq_window_of(const struct fixture *r);

/* The length of a window. */
u64 ifq_window_ns(const struct fixture *r);

void ifq_set_damping(struct fixture *r, u32 percent);

/* True if @got differs from @want by more than the fraction @part of it. */
bool off_by(double got, double want, double part);

/*
 * Figure 5 with windows of @window_ms.  Returns the greatest fraction by which
 * a weight was off its due, from the ninth of @windows windows on.
 */
double ifq_figure5_on(struct test_case *t, u32 window_ms, u32 windows,
		      bool print);

void ifq_example(struct test_case *t);
void ifq_two_readers(struct test_case *t);
void ifq_undamped(struct test_case *t);
void ifq_light_heavy_light(struct test_case *t);
void ifq_weights(struct test_case *t);
void ifq_tree(struct test_case *t);
void ifq_roll(struct test_case *t);
void ifq_debt(struct test_case *t);
void ifq_wakes(struct test_case *t);
void ifq_due_weights(struct test_case *t);
void ifq_sharing_incentive(struct test_case *t);
void ifq_no_gain_from_more(struct test_case *t);
void ifq_monotony(struct test_case *t);
void ifq_less_waits_less(struct test_case *t);
void ifq_tail(struct test_case *t);
void ifq_depth_curve(struct test_case *t);
void ifq_virtual_time(struct test_case *t);
void ifq_no_credit(struct test_case *t);
void ifq_window(struct test_case *t);

#endif /* MQFAIR_TESTS_SIM_IFQ_H */
