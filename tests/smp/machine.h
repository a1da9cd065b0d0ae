/* SPDX-License-Identifier: GPL-2.0 */
/*
 * machine - simulated CPUs with a clock each, and the price of shared memory
 *
 * The compiler reports every access of the code under test, plain or atomic.
 * Each one costs what a stated machine charges, by the place of its cache line:
 *
 *	in the CPU's own cache		own_ps
 *	in the cache of another CPU	by the distance between the two
 *	nowhere				memory_ps
 *
 * A line has one writer or several readers.  A write takes it away from all
 * others, at the price of the farthest.  A line that travels is busy: another
 * CPU that wants it waits until it has arrived.  Plain stores are buffered: the
 * CPU goes on, and its next atomic read-modify-write waits for them.
 *
 * Example, on the machine `two-sockets`.  CPUs A and B share a core, and C is on
 * the other socket.  A has the line of a counter, and all three increment it at
 * time 0.  An increment takes 1 ns, and 8 more because it is locked:
 *
 *	A is done at 9 ns
 *	B has got the line from A at 9 + 7.6 ns
 *	C has got it from B 118 ns later, and is done at 135 ns
 *
 * The CPU with the earliest clock runs.  While it uses lines of its own it may
 * get LAG_PS ahead of the others.  Before any access that others can see it
 * waits for them.
 *
 * Limits.  Caches never overflow, so a line is fetched from memory once.  A CPU
 * waits for each of its misses in turn, where a real one overlaps some.  Two
 * hardware threads of a core do not slow each other.  Instructions that use no
 * memory cost nothing, except what machine_spend() adds.
 */
#ifndef MQFAIR_SMP_MACHINE_H
#define MQFAIR_SMP_MACHINE_H

#include "cpu.h"

enum distance {
	SAME_CORE,		/* hardware threads */
	SAME_CLUSTER,		/* cores that share a last-level cache */
	SAME_SOCKET,
	OTHER_SOCKET,
	DISTANCES,
};

struct machine {
	const char *name;
	u32 sockets, clusters, cores, threads;	/* each within the one before */
	u32 own_ps, locked_ps;		/* an access; more for a locked one */
	u32 travel_ps[DISTANCES];	/* of a line */
	u32 memory_ps;
	u32 interrupt_send_ps, interrupt_take_ps;
};

/* Of one CPU since machine_start(). */
struct machine_counts {
	u64 accesses, locked;
	u64 misses[DISTANCES], cold;
	u64 busy_ps;			/* waits for lines that travel */
	u64 lock_ps;			/* waits for locks */
};

const struct machine *machine_find(const char *name);
const char *machine_names(void);

/* The place of each of @cpus CPUs, in the order that topology_init() needs. */
void machine_places(const struct machine *m, u32 cpus, u32 *core, u32 *cluster,
		    u32 *socket);

/* Runs work(cpu, arg) on @cpus CPUs of @m, all with their clocks at 0. */
void machine_run(const struct machine *m, u32 cpus,
		 void (*work)(u32 cpu, void *arg), void *arg);

/* The clock of the running CPU, in picoseconds. */
u64 machine_now(void);

/* The CPU computes for @ps without shared memory. */
void machine_spend(u64 ps);

/*
 * The running CPU is idle until @at, or until another CPU calls
 * machine_interrupt() for it with an earlier time.  The earliest interrupt since the last
 * sleep bounds this one, whether the CPU has noticed it or not.
 */
void machine_sleep(u64 at);
void machine_interrupt(u32 cpu, u64 at);

const struct machine_counts *machine_counts(u32 cpu);

/* Names @size bytes from @start on, for machine_hot(). */
void machine_name(const char *name, const void *start, size_t size);

/*
 * Calls @seen for the names with the lines that cost the most time to fetch,
 * waits for busy lines included, the dearest first.  At most @most names.
 */
void machine_hot(u32 most, void (*seen)(const char *name, u64 ps));

#endif /* MQFAIR_SMP_MACHINE_H */
