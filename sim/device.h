/* SPDX-License-Identifier: GPL-2.0 */
/*
 * device - the block device of a simulated host
 *
 * The host passes a dispatched request to its device, and the device calls
 * done() when it has served it.  A device is one of two:
 *
 *   - A device of fixed service time.  `slots` commands are served at once;
 *     more wait in the order of arrival.  Each takes base_ns, plus ns_per_kib
 *     for every KiB; a write takes write_times as long.
 *   - A *drive* of flash/: commands are served as flash/flash.h says, at their
 *     page and for their owner.
 *
 * Example.  slots 2, base_ns 80 000, ns_per_kib 500.  A read of 4 KiB takes 82
 * us, so the device serves 24 390 of them a second.  Of three reads that start
 * together two are done at 82 us, the third at 164 us.
 *
 * Arbitration.  A device takes each command when it starts.  With `fetch` it is
 * as an NVMe drive with a submission queue for each hardware queue.  At most
 * `fetch` commands are inside, and the device fetches the next when one is done.
 * The queues take turns, with one command each.  Source: NVM Express Base
 * Specification, round robin arbitration, with a burst of one.
 *
 * Example.  One slot of 100 us and fetch 1; one queue always has 3 commands,
 * another one has 1.  With turns the second one has a command done every 200
 * us.  Without fetch it waits for all others, and has one every 400 us.
 *
 * Answers.  Without `answers` a device tells each end at once.  With it, the device tells
 * those of a submission queue together: when so many wait, or answers_ns after the first
 * of them.  Meanwhile the commands are outside the device, which serves others.
 * An NVMe drive that coalesces interrupts does so, and a volume behind a network.
 * Source: NVM Express Base Specification, feature Interrupt Coalescing.
 *
 * Example.  One slot of 100 us, answers 4, answers_ns 1 000 000.  Six commands that
 * start together end 100 to 600 us later.  The caller learns of four at 400 us, and
 * of two at 1500 us.
 *
 * Ownership.  A command belongs to its caller, which keeps it until done().
 * The caller makes the drive, fills it if it should be full, and destroys it
 * after the device.  A drive runs on one timeline alone.
 *
 * A device has no errors: each command that has started is done at some time.
 *
 * Tested by tests/sim/sim_run.py.
 */
#ifndef MQFAIR_SIM_DEVICE_H
#define MQFAIR_SIM_DEVICE_H

#include "timeline.h"
#include "flash/flash.h"

struct device_params {
	u32 slots;			/* commands served at once */
	u64 base_ns;
	u64 ns_per_kib;
	u32 write_times;		/* 0: a write takes as long as a read */
	struct flash *flash;		/* a drive; then the above is unused */
	u32 fetch;			/* most commands inside; 0: no arbitration */
	u32 answers;			/* most that wait to be told; 0: none */
	u64 answers_ns;			/* the longest such wait */
};

/* Commands that are done, in order, and not told.  Zeroed, it is empty. */
struct completion_queue {
	struct device *device;
	struct device_cmd *head, *last;
	u32 nr;
	u64 due_ns;			/* when the first of them is told at the latest */
	struct event due;		/* at due_ns, or when it is armed for nothing */
};

/* Commands that the device has not fetched.  Zeroed, it is empty. */
struct submission_queue {
	struct device_cmd *head, *last;
	struct submission_queue *next;	/* next queue in turn that has commands */
	struct completion_queue completions;
};

struct device_cmd {
	struct event event;
	struct device *device;
	struct device_cmd *next;	/* next command that waits for the same thing */
	struct submission_queue *queue;	/* set by the caller: fetch, answers */
	u32 bytes;
	bool write;
	u32 page, owner;		/* set by the caller, for a drive */
	bool ahead;			/* the same: flash_cmd.ahead */
	struct flash_cmd flash;
};

struct device {
	struct timeline *timeline;
	struct device_params params;
	void (*done)(struct device_cmd *cmd);
	struct device_cmd *head, **tail;	/* commands that wait for a slot */
	u32 busy;			/* slots in use */
	u32 inside;			/* commands fetched and not done */
	u64 commands;			/* started */
	u64 served_ns;			/* of fixed service times, started */
	/* Queues with commands: those in turn, and the one fetched from last. */
	struct submission_queue *turn, *turn_last, *had_turn;
	struct event flash_due;
	u64 stalled_ns;			/* nothing is done before: device_stall() */
};

/* @done is called for each command that has been served, when it is told. */
void device_init(struct device *d, struct timeline *t,
		 const struct device_params *params,
		 void (*done)(struct device_cmd *cmd));

/* Starts @cmd, of @bytes.  A drive serves whole pages. */
void device_start(struct device *d, struct device_cmd *cmd, bool write,
		  u32 bytes);

/*
 * Stalls @d until @until_ns: no command is done before.  Commands that would
 * have been done earlier are done together at that time.
 */
void device_stall(struct device *d, u64 until_ns);

#endif /* MQFAIR_SIM_DEVICE_H */
