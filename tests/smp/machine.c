// SPDX-License-Identifier: GPL-2.0
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	LINE		= 64,
	ARENA		= 256 << 20,	/* bytes for port_zalloc() */
	NS		= 1000,		/* picoseconds */
	LAG_PS		= 100 * NS,
	WAITERS		= CPUS_MAX,
};

#define NEVER	(~0ULL)

/*
 * [S] is from a source that was read; [C] is chosen.
 *
 * Sources.  Lines between CPUs: the tables of core-to-core-latency
 * (github.com/nviennot/core-to-core-latency), one way, by compare-and-swap.
 * `two-sockets` is the Xeon E5-2695 v4, of the class of the server in Hedayati
 * et al.  `epyc` is the EPYC 7773X; the latency within eight cores is of the 7R13
 * of the same generation, as is that between sockets.  Interrupts: 1600 to 2000
 * cycles at the sender (Pallipadi, LKML, 6 February 2012, on a Westmere).
 *
 * Chosen.  `four-sockets` is of the class of the Dell R920 in WDT.  Its times
 * have the magnitude that David, Guerraoui and Trigonakis report for a Xeon of
 * eight sockets (SOSP 2013); they were not compared with the paper.  Nor were
 * the times of locked instructions compared with a table.  Cores are chosen so
 * that each machine has 64 CPUs.
 */
static const struct machine machines[] = {
	{
		.name = "two-sockets",
		.sockets = 2, .clusters = 1, .cores = 16, .threads = 2,
		.own_ps = 1000,			/* [C] */
		.locked_ps = 8 * NS,		/* [C] */
		.travel_ps = { 7600, 44 * NS, 44 * NS, 118 * NS },	/* [S] */
		.memory_ps = 90 * NS,		/* [C] */
		.interrupt_send_ps = 600 * NS,	/* [S] */
		.interrupt_take_ps = 600 * NS,	/* [C] */
	},
	{
		.name = "four-sockets",
		.sockets = 4, .clusters = 1, .cores = 8, .threads = 2,
		.own_ps = 1200,			/* [C] */
		.locked_ps = 9 * NS,		/* [C] */
		.travel_ps = { 7600, 56 * NS, 56 * NS, 152 * NS },	/* [C] */
		.memory_ps = 167 * NS,		/* [C] */
		.interrupt_send_ps = 800 * NS,	/* [S] */
		.interrupt_take_ps = 800 * NS,	/* [C] */
	},
	{
		.name = "epyc",
		.sockets = 1, .clusters = 8, .cores = 8, .threads = 1,
		.own_ps = 800,			/* [C] */
		.locked_ps = 6 * NS,		/* [C] */
		.travel_ps = { 10 * NS, 23 * NS, 115 * NS, 197 * NS },	/* [S] */
		.memory_ps = 110 * NS,		/* [C] */
		.interrupt_send_ps = 500 * NS,	/* [C] */
		.interrupt_take_ps = 500 * NS,	/* [C] */
	},
};

struct line {
	u64 users;		/* CPUs that have it; one: it may write */
	u64 busy_ps;		/* it travels until then */
	u64 cost_ps;		/* of all CPUs that fetched it */
};

enum {
	NAMES		= 128,
};

static struct name {
	const char *name;
	size_t first, last;	/* lines */
	u64 cost_ps;
} names[NAMES];
static u32 nr_names;

static struct cpu_clock {
	u64 stored_ps;		/* all buffered stores have arrived */
	u64 due_ps;		/* the earliest interrupt while it was awake, or NEVER */
	bool asleep;
	u32 core, cluster, socket;
	u64 within[DISTANCES];	/* mask: CPUs at that distance or nearer */
	struct machine_counts counts;
} cpus[CPUS_MAX];

static struct {
	const struct machine *machine;
	u32 nr, self;		/* self: as cpu_self(), for speed */
	u64 now[CPUS_MAX];	/* NEVER: waits for a lock, or no such CPU */
	u64 others;		/* the earliest of the other clocks */
	u32 leaves;		/* of the tree: a power of two */
	u8 winner[2 * CPUS_MAX];
	char *arena;
	size_t used;
	struct line *line;
} s = { .self = CPU_NONE };

const struct machine *machine_find(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(machines); i++)
		if (!strcmp(machines[i].name, name))
			return &machines[i];
	return NULL;
}

const char *machine_names(void)
{
	return "two-sockets, four-sockets, epyc";
}

/* -------------------------------------------------------------------- clocks */

/*
 * A tree of CPUs by their clocks.  A node has the earlier of its two children,
 * the first of equals.  Node 1 is the root, 2i and 2i + 1 are the children of i,
 * and the leaf of a CPU never changes.  The nodes above the running CPU are right
 * only after update(), because its clock goes on with each access.
 */
static void update(u32 cpu)
{
	u32 i, left, right;

	for (i = (s.leaves + cpu) / 2; i; i /= 2) {
		left = s.winner[2 * i];
		right = s.winner[2 * i + 1];
		s.winner[i] = (u8)(s.now[right] < s.now[left] ? right : left);
	}
}

static void plant(void)
{
	u32 i;

	s.leaves = 1;
	while (s.leaves < s.nr)
		s.leaves *= 2;
	for (i = 0; i < s.leaves; i++) {
		s.now[i] = i < s.nr ? 0 : NEVER;
		s.winner[s.leaves + i] = (u8)i;
	}
	for (i = 0; i < s.leaves; i++)
		update(i);
}

static u32 earliest(void)
{
	u32 best;

	update(s.self);
	best = s.winner[1];
	if (s.now[best] == NEVER) {
		fprintf(stderr, "machine: every CPU waits for a lock\n");
		abort();
	}
	return best;
}

/* Sets the bound up to which the running CPU may go on. */
static void look(void)
{
	u32 i;

	s.self = cpu_self();
	s.others = NEVER;
	for (i = s.leaves + s.self; i > 1; i /= 2)
		s.others = min(s.others, s.now[s.winner[i ^ 1]]);
}

/* Gives way to the CPU with the earliest clock. */
static void give_way(void)
{
	cpu_switch(earliest());
	look();
}

/* Nothing that the other CPUs do before this time is still to come. */
static void in_turn(void)
{
	while (s.now[s.self] > s.others)
		give_way();
}

u64 machine_now(void)
{
	return s.now[s.self];
}

void machine_spend(u64 ps)
{
	s.now[s.self] += ps;
}

/*
 * An interrupt that came while the CPU was awake ends the sleep.  The CPU may have looked
 * for it before.
 */
void machine_sleep(u64 at)
{
	struct cpu_clock *c = &cpus[s.self];

	at = min(at, c->due_ps);
	c->due_ps = NEVER;
	if (at <= s.now[s.self])
		return;
	c->asleep = true;
	s.now[s.self] = at;
	in_turn();
	c->asleep = false;
}

void machine_interrupt(u32 cpu, u64 at)
{
	if (!cpus[cpu].asleep) {
		cpus[cpu].due_ps = min(cpus[cpu].due_ps, at);
		return;
	}
	if (s.now[cpu] <= at)
		return;
	s.now[cpu] = at;
	update(cpu);
	if (cpu != s.self && at < s.others)
		s.others = at;
}

const struct machine_counts *machine_counts(u32 cpu)
{
	return &cpus[cpu].counts;
}

static u32 first(u32 nr)
{
	(void)nr;
	return 0;
}

static u32 after_end(void)
{
	/* The CPU that runs has ended. */
	s.now[s.self] = NEVER;
	return earliest();
}

static void stuck(void)
{
	abort();
}

/* -------------------------------------------------------------------- places */

/*
 * A run takes one hardware thread of each core of the first socket, then of the
 * next, and then the second threads.  Linux numbers CPUs in this order, and the
 * paper pins its threads so.  Simulated CPUs are in the order of cores, as queues are.
 */
static void place_all(const struct machine *m, u32 nr)
{
	u32 cores = m->clusters * m->cores, all = m->sockets * cores;
	u32 core, thread, i = 0;

	for (core = 0; core < all; core++)
		for (thread = 0; thread * all + core < nr; thread++)
			cpus[i++] = (struct cpu_clock){
				.core = core,
				.socket = core / cores,
				.cluster = core / m->cores,
				.due_ps = NEVER,
			};
}

void machine_places(const struct machine *m, u32 nr, u32 *core, u32 *cluster,
		    u32 *socket)
{
	u32 i;

	place_all(m, nr);
	for (i = 0; i < nr; i++) {
		core[i] = cpus[i].core;
		cluster[i] = cpus[i].cluster;
		socket[i] = cpus[i].socket;
	}
}

static enum distance distance(u32 a, u32 b)
{
	if (cpus[a].core == cpus[b].core)
		return SAME_CORE;
	if (cpus[a].cluster == cpus[b].cluster)
		return SAME_CLUSTER;
	return cpus[a].socket == cpus[b].socket ? SAME_SOCKET : OTHER_SOCKET;
}

/* Fills in `within` of each CPU. */
static void measure_all(u32 nr)
{
	u32 i, j, d;

	for (i = 0; i < nr; i++)
		for (j = 0; j < nr; j++)
			for (d = distance(i, j); d < DISTANCES; d++)
				cpus[i].within[d] |= BIT_ULL(j);
}

struct start {
	void (*work)(u32 cpu, void *arg);
	void *arg;
};

static void start(u32 cpu, void *arg)
{
	const struct start *start = arg;

	look();
	start->work(cpu, start->arg);
	s.self = cpu;
}

void machine_run(const struct machine *m, u32 nr,
		 void (*work)(u32 cpu, void *arg), void *arg)
{
	static const struct cpu_driver driver = { first, after_end, stuck };
	struct start all = { work, arg };

	port_assert(nr <= m->sockets * m->clusters * m->cores * m->threads);
	cpu_driver = &driver;
	s.machine = m;
	s.nr = nr;
	place_all(m, nr);
	measure_all(nr);
	plant();
	cpus_run(nr, start, &all);
	s.self = CPU_NONE;
}

/* --------------------------------------------------------------------- lines */

enum kind {
	LOAD,
	STORE,
	LOCKED,
};

/* The nearest or the farthest of the users, other than @self. */
static enum distance reach(u64 users, u32 self, bool farthest)
{
	const u64 *within = cpus[self].within;
	enum distance d;

	users &= ~BIT_ULL(self);
	if (farthest) {
		for (d = OTHER_SOCKET; d && !(users & ~within[d - 1]); d--)
			;
	} else {
		for (d = SAME_CORE; d < OTHER_SOCKET && !(users & within[d]);
		     d++)
			;
	}
	return d;
}

/* When the line has arrived that leaves at @from, or later if it is busy. */
static u64 travel(struct line *l, u64 from, bool write)
{
	struct cpu_clock *c = &cpus[s.self];
	bool alone = !(l->users & (l->users - 1));
	u64 leaves = max(from, l->busy_ps);

	c->counts.busy_ps += leaves - from;
	if (!l->users) {
		c->counts.cold++;
		leaves += s.machine->memory_ps;
	} else {
		enum distance d = reach(l->users, s.self, write);

		c->counts.misses[d]++;
		leaves += s.machine->travel_ps[d];
	}
	/* A line that several CPUs read is copied to more of them at once. */
	if (write || alone)
		l->busy_ps = leaves;
	l->cost_ps += leaves - from;
	return leaves;
}

static void miss(struct line *l, enum kind kind)
{
	struct cpu_clock *c = &cpus[s.self];
	u64 bit = BIT_ULL(s.self), *now = &s.now[s.self], arrives;

	in_turn();
	if (kind == LOCKED)
		*now = max(*now, c->stored_ps);
	/* While this CPU gave way the line may have come. */
	if (kind == LOAD ? !!(l->users & bit) : l->users == bit)
		return;
	arrives = travel(l, *now, kind != LOAD);
	l->users = kind == LOAD ? l->users | bit : bit;
	if (kind == STORE)
		c->stored_ps = max(c->stored_ps, arrives);
	else
		*now = arrives;
}

static inline void touch(const volatile void *addr, enum kind kind)
{
	size_t at = (size_t)((const char *)addr - s.arena);
	struct cpu_clock *c;
	struct line *l;
	u64 bit;

	if (s.self == CPU_NONE)
		return;
	c = &cpus[s.self];
	c->counts.accesses++;
	s.now[s.self] += s.machine->own_ps;
	/* Stacks and constants are the CPU's own. */
	if (at >= ARENA)
		return;
	l = &s.line[at / LINE];
	bit = BIT_ULL(s.self);
	if (kind == LOCKED) {
		c->counts.locked++;
		s.now[s.self] += s.machine->locked_ps;
		miss(l, kind);
	} else if (!(kind == LOAD ? l->users & bit : l->users == bit)) {
		miss(l, kind);
	} else if (unlikely(s.now[s.self] > s.others + LAG_PS)) {
		give_way();
	}
}

/* ------------------------------------------------------------------ hot lines */

void machine_name(const char *name, const void *start, size_t size)
{
	size_t at = (size_t)((const char *)start - s.arena);

	port_assert(nr_names < NAMES && at < ARENA);
	names[nr_names++] = (struct name){
		name,
		at / LINE,
		(at + size + LINE - 1) / LINE,
		0,
	};
}

void machine_hot(u32 most, void (*seen)(const char *name, u64 ps))
{
	struct name *best;
	size_t line;
	u32 i;

	for (i = 0; i < nr_names; i++)
		for (line = names[i].first; line < names[i].last; line++)
			names[i].cost_ps += s.line[line].cost_ps;
	while (most--) {
		best = names;
		for (i = 1; i < nr_names; i++)
			if (names[i].cost_ps > best->cost_ps)
				best = &names[i];
		if (!best->cost_ps)
			return;
		seen(best->name, best->cost_ps);
		best->cost_ps = 0;
	}
}

/* ----------------------------------------------------------- port.h, on these */

static bool no_queue_is_mine(const struct queue *q)
{
	(void)q;
	return false;
}

bool (*port_queue_is_mine)(const struct queue *q) = no_queue_is_mine;

void port_assert_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, what);
	abort();
}

void *port_zalloc(size_t size)
{
	size_t at = s.used;

	if (!s.arena) {
		s.arena = aligned_alloc(1 << 12, ARENA);
		s.line = calloc(ARENA / LINE, sizeof(*s.line));
		port_assert(s.arena && s.line);
	}
	s.used += (size + LINE - 1) / LINE * LINE;
	port_assert(s.used <= ARENA);
	return memset(s.arena + at, 0, s.used - at);
}

/* A run ends with its process. */
void port_free(void *p)
{
	(void)p;
}

/* CPUs that wait for a lock, in the order of arrival. */
static struct waiting {
	const struct port_lock *lock;
	u32 cpu;
} waiting[WAITERS];
static u32 nr_waiting;

static pthread_t owner(u32 cpu)
{
	return (pthread_t)cpu + 1;
}

void port_lock_init(struct port_lock *l)
{
	l->held = false;
}

void port_lock_deinit(struct port_lock *l)
{
	port_assert(!l->held);
}

unsigned long port_lock(struct port_lock *l)
{
	u64 from;

	touch(&l->held, LOCKED);
	if (!l->held) {
		l->held = true;
		l->owner = owner(s.self);
		return 0;
	}
	/* The CPU spins on a line of its own, until the lock is handed to it. */
	from = s.now[s.self];
	waiting[nr_waiting++] = (struct waiting){ l, s.self };
	s.now[s.self] = NEVER;
	while (s.now[s.self] == NEVER)
		give_way();
	cpus[s.self].counts.lock_ps += s.now[s.self] - from;
	touch(&l->held, LOCKED);
	return 0;
}

void port_unlock(struct port_lock *l, unsigned long flags)
{
	u32 i, cpu;

	(void)flags;
	port_assert_held(l);
	touch(&l->held, STORE);
	for (i = 0; i < nr_waiting && waiting[i].lock != l; i++)
		;
	if (i == nr_waiting) {
		l->held = false;
		return;
	}
	cpu = waiting[i].cpu;
	memmove(&waiting[i], &waiting[i + 1],
		(--nr_waiting - i) * sizeof(waiting[0]));
	l->owner = owner(cpu);
	s.now[cpu] =
		s.now[s.self] + s.machine->travel_ps[distance(s.self, cpu)];
	update(cpu);
	look();
}

bool port_lock_is_mine(const struct port_lock *l)
{
	return l->held && l->owner == owner(s.self);
}

/* --------------------------- called by the compiler, under names it gives */

static void on_access(void *p, unsigned long size, bool write)
{
	(void)size;
	touch(p, write ? STORE : LOAD);
}

static void on_range(void *p, unsigned long size, bool write)
{
	unsigned long at;

	for (at = 0; at < size; at += LINE)
		touch((char *)p + at, write ? STORE : LOAD);
}

#include "tests/compiler_calls.h"

#define RMW(bits, type, op)						\
type __tsan_atomic##bits##_##op(volatile type *p, type v, int order);	\
type __tsan_atomic##bits##_##op(volatile type *p, type v, int order)	\
{									\
	(void)order;							\
	touch(p, LOCKED);						\
	return __atomic_##op(p, v, __ATOMIC_RELAXED);			\
}

#define __atomic_exchange(p, v, order)	__atomic_exchange_n(p, v, order)

#define ATOMIC(bits, type)						\
type __tsan_atomic##bits##_load(const volatile type *p, int order);	\
type __tsan_atomic##bits##_load(const volatile type *p, int order)	\
{									\
	(void)order;							\
	touch(p, LOAD);							\
	return *p;							\
}									\
void __tsan_atomic##bits##_store(volatile type *p, type v, int order);	\
void __tsan_atomic##bits##_store(volatile type *p, type v, int order)	\
{									\
	(void)order;							\
	touch(p, STORE);						\
	*p = v;								\
}									\
int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p,	\
						  type *old, type v,	\
						  int order, int failed);\
int __tsan_atomic##bits##_compare_exchange_strong(volatile type *p,	\
						  type *old, type v,	\
						  int order, int failed)\
{									\
	(void)order;							\
	(void)failed;							\
	touch(p, LOCKED);						\
	return __atomic_compare_exchange_n(p, old, v, false,		\
					   __ATOMIC_RELAXED,		\
					   __ATOMIC_RELAXED);		\
}									\
RMW(bits, type, exchange)						\
RMW(bits, type, fetch_add)						\
RMW(bits, type, fetch_sub)						\
RMW(bits, type, fetch_and)						\
RMW(bits, type, fetch_or)

ATOMIC(8, unsigned char)
ATOMIC(16, unsigned short)
ATOMIC(32, unsigned int)
ATOMIC(64, unsigned long long)
