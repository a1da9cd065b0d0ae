/* SPDX-License-Identifier: GPL-2.0 */
/*
 * audit - compares the bookkeeping of a scheduler with the host's
 *
 * The simulated host counts by itself what the contract asks every scheduler to
 * count (sched/core/queue.h, sched/core/flow.h).  It compares the two accounts,
 * and ends the run with a message when they differ.  No check depends on the
 * scheduler.
 *
 *	when			the host checks
 *	after insert		the io starts at the end of its flow's charges
 *	after merge		the io carries the bytes; its cost did not fall
 *	before dispatch		a slot is free for the io, of D and of those beyond
 *	after dispatch		queue.state is the result; EMPTY means no io waits
 *	after tune		every tunable reads back as it was given
 *	at a quiet moment	queue.nr is the number of waiting ios
 *				no wake-up of a queue that has run is pending
 *				a tick is armed while any flow is active
 *	at one of sixteen,	a flow's position is the sum of its charges
 *	and at the end		a flow's counters, summed over its queues
 *				a flow with outstanding ios is active
 *
 * A moment is *quiet* if no wake-up is under way and time is about to move.
 */
#ifndef MQFAIR_SIM_AUDIT_H
#define MQFAIR_SIM_AUDIT_H

#include "sched/core/sched.h"

struct host;
struct host_flow;
struct host_io;
struct host_queue;

/* The host's account of a flow: struct flow_totals, and what was charged. */
struct account {
	u64 inserted;		/* ios, a requeued io again */
	u64 dispatched;
	u64 done;		/* left the device: completed or sent back */
	u64 bytes;		/* dispatched, of ops that transfer */
	u64 wait_ns;
	u64 charged;		/* cost at the first insert, and of merges */
	s64 backlog;		/* ios waiting, but urgent and requeued ones */
};

/* The flow that pays for @hio: the root may have adopted it (urgent.h). */
struct host_flow *audit_payer(const struct host_io *hio);

/* The host calls these after the hook of the name. */
void audit_inserted(struct host_io *hio);
void audit_merged(struct host_io *hio, u32 cost, u32 bytes);
void audit_dispatched(struct host_io *hio);
void audit_returned(struct host_io *hio);

/* The slot of @hio is taken, @n = 1, or comes back, @n = -1. */
void audit_slot(const struct host_io *hio, s32 n);

/* Is a slot free for @hio, if it has one?  The host has not counted it yet. */
bool audit_has_room(const struct host_io *hio);

void audit_result(const struct host_queue *hq, enum dispatch_result result);
void audit_tuned(struct host *h, const struct sched_params *p);

void audit_flow(const struct host_flow *hf);
void audit_quiet(struct host *h);
void audit_end(struct host *h);

#endif /* MQFAIR_SIM_AUDIT_H */
