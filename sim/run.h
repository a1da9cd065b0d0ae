/* SPDX-License-Identifier: GPL-2.0 */
/*
 * run - one described simulation: its state, and the output of sim-run
 *
 * The output is one JSON object:
 *
 *	scheduler, seed, run_ms		as described
 *	depth		slots in force at the end; 0 under none
 *	tunables	their values at the end, as the kernel's files show them
 *	totals		ios, bytes, iops, bytes_per_s of all flows
 *	flows		by name: the same, mean_ns, p50_ns, p99_ns, p999_ns, max_ns
 *			wait_ns (mean time from insert to dispatch),
 *			backlog_permille (of run_ms, with an io waiting), cost (of
 *			the ios that the scheduler let go, in its currency), report,
 *			and with series a list of ios, bytes, mean_ns, p99_ns,
 *			and histogram: the end of each bucket and its ios
 *	report		the scheduler's own numbers at the end
 *	series		inside (mean ios in driver and device) and window (the
 *			most slots in use, null if the scheduler has none)
 *	drive		written and copied pages, and the time of planes, by kind
 *	pressure	the part of the measured time for which each resource works:
 *			controller, link, channels and planes, or the slots of a
 *			device; cpus (mean) and busiest_cpu
 */
#ifndef MQFAIR_SIM_RUN_H
#define MQFAIR_SIM_RUN_H

#include "describe.h"

struct interval {
	u64 ios, bytes, mean_ns, p99_ns;
};

struct run_flow {
	struct host_flow *flow;
	struct flow_stats sum;		/* of the measured time */
	u64 warm_cost;			/* dispatched before it */
	struct interval *interval;
};

/* Of all flows together. */
struct run_interval {
	u64 inside_ns;		/* sum of the ios' times in driver and device */
	u64 ms;
	s64 window;		/* at its end, as the scheduler reports it; or -1 */
};

struct run_action {
	struct run *run;
	const struct described_action *action;
	struct event event;
};

/* What was used at the end of the warm-up. */
struct run_used {
	struct flash_stats flash;
	u64 commands, served_ns;
	u64 cpu_ns[QUEUES_MAX];
};

struct run {
	struct description described;
	struct host *host;
	struct flash *flash;
	struct tuning tuning;
	struct run_flow flow[FLOWS_MAX];
	struct load *load[LOADS_MAX];
	struct run_action action[ACTIONS_MAX];
	struct run_used before;
	struct run_interval *interval;
	u32 intervals;
};

static inline u64 mean(u64 sum, u64 n)
{
	return n ? sum / n : 0;
}

/* Prints all but wall_s, at the end of the measured time. */
void run_print(FILE *out, const struct run *r);

#endif /* MQFAIR_SIM_RUN_H */
