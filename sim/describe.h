/* SPDX-License-Identifier: GPL-2.0 */
/*
 * describe - the description of one simulated run, read from text
 *
 * A description has one statement on each line.  Empty lines, and all that
 * follows a #, are skipped.  A word in capitals stands for a value, brackets
 * mean that a part may be left out.
 *
 *	scheduler NAME		of policies.def or comparators.h, or none
 *	set TUNABLE VALUE	as in queue/iosched/, research too; see tuning.h
 *	seed N			of all chance; default 1
 *	queues N		queues, each with a CPU; default 1
 *	sockets N		equal parts of these CPUs, in order; default 1
 *	tags N			most requests of a queue in the driver; 0: any
 *	tag_maps N		maps of that many tags; neighbours share one
 *	fetch N			most commands inside the device, which takes turns
 *				among the maps; 0: all, in order (device.h)
 *	answers N US		a map's ends are told together: N of them, or fewer
 *				US us after the first; without this line each end
 *				is told at once
 *	sched_tags N		scheduler tags of each map; 0: any (tags.h)
 *	most_bytes N		larger requests are split; 0: none is
 *	wake_ns N		a wake-up takes 0 to N ns; default 0
 *	submit_ns N, complete_ns N	CPU time of each request; default 0
 *	locked_ns N		.. under one lock that comes from another CPU
 *	device SLOTS BASE_NS NS_PER_KIB		fixed service times
 *	model NAME FIELD N ...	a model with these fields: flash/model.h
 *	drive MODEL SIZE_MIB FILL [PERCENT]	a drive of flash/, instead
 *	part FLOW PERCENT TIMES	the next part of the drive belongs to FLOW
 *	time_scale N		factor of all times of the drive; default 1
 *	write_times N		further factor of its programs and erases
 *	ftl device|host		which side keeps the map of the drive
 *	warm_ms N		nothing is measured before; default 0
 *	run_ms N		the measured time after it; default 1000
 *	series N [whole]	figures of each interval of N ms too
 *	audit all|end		how often the host compares accounts
 *	flow NAME weight W [parent NAME]
 *	load FLOW depth N bytes N[-M] [WORD VALUE ...]
 *	at MS retime PERCENT	all times of the drive are PERCENT % from now on
 *	at MS stall N		the device completes nothing for N ms
 *	at MS weight FLOW W
 *	at MS set TUNABLE VALUE
 *
 * FILL is empty, sequential (written once in order), random (written once,
 * shuffled) or steady (the same, then overwritten at random 1.5 times).  With
 * PERCENT only the beginning of the drive is filled, and steady overwrites it
 * twice, as the virtual SSD does.  With parts each part is filled for its flow,
 * in order or shuffled as FILL says, and overwritten TIMES times on average.
 *
 * The intervals of `series N whole` begin at the start and not after warm_ms,
 * which is a multiple of N then.
 *
 * All times in ms count from the start, the warm-up included.  The scheduler
 * comes before the lines that set its tunables, and a flow or a model before
 * the lines that name it.  A flow may have several loads.  The words of a load, with their
 * defaults:
 *
 *	write N			writes in a thousand; 0
 *	discard 0|1		they are discards of ranges of that size; 0
 *	urgent N		metadata in a thousand; 0
 *	queue Q, queues N	the first queue, 0, and their number, 1
 *	move_ms N		it is on one of them, for N ms; 0: on all
 *	think_us N		from an end to the next request; 0
 *	sizes N/W[,N/W]...	instead of bytes: N bytes with weight W each
 *	pace_ns N		a request is due every N ns; 0: none waits
 *	arrivals even|random	of a pace
 *	burst_ios N, burst_us N	see load.h; think_us is the pause after each
 *	reaped 0|1		latencies end when the task sees it: load.h; 0
 *	on_ms N, off_ms N	it pauses for off_ms after every on_ms
 *	start_ms N, stop_ms N	0, and never
 *	order random|sequential	of places
 *	first_mib N, mib N	the range of the drive; all of it
 *	first_kib N, kib N	the same in KiB
 *	trace FILE		replays FILE (replay.h); bytes is its largest size
 *
 * `sim-run --help` has an example.
 */
#ifndef MQFAIR_SIM_DESCRIBE_H
#define MQFAIR_SIM_DESCRIBE_H

#include "load.h"
#include "tuning.h"

enum {
	LINE_BYTES	= 4096,		/* room for a line with its end */
	FLOW_NAME_MAX	= 32,		/* of a flow or a model */
	TRACE_PATH_MAX	= 256,
	FLOWS_MAX	= 2048,
	LOADS_MAX	= 2048,
	ACTIONS_MAX	= 1024,
	SETTINGS_MAX	= 32,
	PARTS_MAX	= 64,
	NO_PARENT	= 0xffffffff,
};

#define NO_PERCENT	(~0ULL)

enum fill {
	FILL_EMPTY,
	FILL_SEQUENTIAL,
	FILL_RANDOM,
	FILL_STEADY,
};

struct described_flow {
	char name[FLOW_NAME_MAX];
	u64 weight;
	u32 parent;			/* index in description.flow, or NO_PARENT */
};

struct described_load {
	u32 line;
	u32 flow;			/* index in description.flow */
	u64 depth, bytes, bytes_max, write, queue, queues;
	u64 move_ms, think_us, reaped, on_ms, off_ms, start_ms, stop_ms;
	u64 first_mib, mib, first_kib, kib;
	u64 pace_ns, burst_ios, burst_us, discard, urgent;
	struct load_size size[LOAD_SIZES_MAX];
	u32 nr_sizes;
	u32 in_order, random_arrivals;
	char trace[TRACE_PATH_MAX];	/* or empty */
};

/* A part of the drive that is filled for a flow. */
struct described_part {
	u32 line;
	u32 flow;			/* index in description.flow */
	u64 percent, times;
};

enum action_kind {
	ACTION_RETIME,
	ACTION_STALL,
	ACTION_WEIGHT,
	ACTION_SET,
};

struct described_action {
	u32 kind;			/* enum action_kind */
	u32 line;
	u64 at_ms;
	u64 value;			/* percent, ms or weight */
	u32 flow;			/* ACTION_WEIGHT */
	struct setting setting;		/* ACTION_SET */
};

struct description {
	const struct sched_ops *ops;
	u64 seed, queues, sockets, tags, tag_maps, sched_tags, most_bytes, wake_ns;
	u64 fetch;
	u64 answers, answers_us;	/* 0: each end is told at once */
	u64 submit_ns, complete_ns, locked_ns, warm_ms, run_ms, series;
	bool series_whole;
	u64 slots, base_ns, ns_per_kib;	/* slots 0: a drive */
	struct flash_params own;	/* a described model, or without a name */
	char own_name[FLOW_NAME_MAX];
	const struct flash_params *model;	/* own, or a built-in one */
	u64 drive_mib;
	u64 time_scale, write_times;
	u32 fill;			/* enum fill */
	u64 fill_percent;		/* NO_PERCENT: as FILL says */
	struct described_part part[PARTS_MAX];
	u32 nr_parts;
	u32 ftl;			/* enum flash_ftl */
	u32 audit_end;			/* the audit at quiet moments is off */
	struct setting setting[SETTINGS_MAX];
	struct described_flow flow[FLOWS_MAX];
	struct described_load load[LOADS_MAX];
	struct described_action action[ACTIONS_MAX];
	u32 nr_settings, nr_flows, nr_loads, nr_actions;
	u32 line;			/* that is being read, or checked; or 0 */
	char wrong[512];		/* the first message, or empty */
};

/* Reads one line, which it changes.  Returns false with a message in wrong. */
bool describe_line(struct description *d, char *line);

/* Call this before the first line. */
void describe_begin(struct description *d);

/* Call this after the last line: it checks statements against each other. */
bool describe_end(struct description *d);

#endif /* MQFAIR_SIM_DESCRIBE_H */
