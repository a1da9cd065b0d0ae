/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tunable - the parameters of a scheduler as data
 *
 * Each scheduler lists its tunables in one table (sched_ops.tunables).  Each
 * host makes its user interface from this table.  The kernel makes the files
 * under queue/iosched/, with their defaults and the checks of written values.
 * A value is stored in the unit of the code (bytes, ns), in struct
 * sched_params.  A user reads and writes it in a larger unit (KiB, ms):
 * stored = written * unit.
 *
 * A user meets at most four tunables of a scheduler.  The others, marked
 * `research`, are alternatives that a paper compares.  The module offers them
 * only when it was loaded with research=1; simulator and tests always do.
 *
 * Locking: none.  The host serialises all writers of one struct sched_params.
 *
 * Tested by tests/unit/tunable.c.
 */
#ifndef MQFAIR_TUNABLE_H
#define MQFAIR_TUNABLE_H

#include "port.h"

struct cost_model;
struct sched_params;

enum {
	TUNABLES_MAX	= 16,	/* of a scheduler */
};

enum tunable_kind {
	TUNABLE_NUMBER,		/* u32 */
	TUNABLE_CHOICE,		/* u32: index of .choices */
	TUNABLE_COST,		/* struct cost_model: a name, or linear A B C D */
};

/* This is the rule for the value of "auto". */
enum tunable_auto {
	AUTO_NOT,
	AUTO_DEPTH,		/* found while running: window.h */
	/*
	 * It follows from D: that set, or auto's first.  The u32 behind it is
	 * the requests of a flow that it is worth at least; else that is 0.
	 */
	AUTO_THRESHOLD,
	AUTO_ISOLATION,		/* isolation.h */
};

struct tunable {
	const char *name;		/* NULL ends a table */
	enum tunable_kind kind;
	enum tunable_auto automatic;	/* not AUTO_NOT: also the default */
	bool research;
	u32 offset;			/* in struct sched_params */
	u32 least, most;		/* as written; of a cost, each coefficient */
	u32 unit;
	u32 initial;			/* as written; of a cost, enum cost_kind */
	const char *const *choices;	/* NULL-terminated */
};

/* Returns the value as a user writes it; @t is a number or a choice. */
u32 tunable_get(const struct tunable *t, const struct sched_params *p);

/* Sets @value, as a user writes it.  -EINVAL if it is out of range. */
int tunable_set(const struct tunable *t, struct sched_params *p, u32 value);

/* Sets @stored, in the unit of the code and in range; @t is a number. */
void tunable_put(const struct tunable *t, struct sched_params *p, u32 stored);

/* Sets kind and lines of @cost.  -EINVAL if a coefficient is out of range. */
int tunable_set_cost(const struct tunable *t, struct sched_params *p,
		     const struct cost_model *cost);

/* Returns the cost model in @p; @t is a cost. */
const struct cost_model *tunable_get_cost(const struct tunable *t,
					  const struct sched_params *p);

/* Returns the tunable @name of @table, or NULL. */
const struct tunable *tunable_find(const struct tunable *table,
				   const char *name);

/* Sets the defaults of @table.  An automatic tunable gets its .initial. */
void tunables_init(const struct tunable *table, struct sched_params *p);

/* Returns 0, or -EINVAL if a value of @table is out of range in @p. */
int tunables_check(const struct tunable *table, const struct sched_params *p);

/*
 * Sets the automatic tunables of @table.  The bits of @which are the indexes of
 * those to set.  The device takes @takes requests at once; 0 means any number.
 */
void tunables_set_auto(const struct tunable *table, unsigned long which,
		       u32 takes, struct sched_params *p);

/*
 * Reads "auto", or "N auto" for a depth that begins with N.  Returns false for
 * any other text.  *@start is N, or 0.  A newline may end @text.
 */
bool tunable_parse_auto(const struct tunable *t, const char *text, u32 *start);

/*
 * Makes the depth @t begin with @start; 0 changes nothing.  The caller then
 * calls tunables_set_auto(), which lowers @start to the most that the device
 * takes.
 */
void tunable_set_start(const struct tunable *t, struct sched_params *p,
		       u32 start);

extern const char *const cost_names[];

/*
 * Each macro below gives the fields of a table entry, between braces.  @member
 * is of @type, the struct that the scheduler keeps in sched_params.own.
 */
#define TUNABLE_U32(name_, type, member, least_, most_, unit_, initial_)	\
	.name = name_, .kind = TUNABLE_NUMBER,				\
	.offset = offsetof(struct sched_params, own) +			\
		  offsetof(type, member),				\
	.least = least_, .most = most_, .unit = unit_,			\
	.initial = initial_

#define TUNABLE_FLAG(name_, type, member, initial_)			\
	TUNABLE_U32(name_, type, member, 0, 1, 1, initial_)

#define TUNABLE_NAMES(name_, type, member, choices_, initial_)		\
	.name = name_, .kind = TUNABLE_CHOICE,				\
	.offset = offsetof(struct sched_params, own) +			\
		  offsetof(type, member),				\
	.unit = 1, .initial = initial_, .choices = choices_

/* The number of slots, D. */
#define TUNABLE_DEPTH(initial_)						\
	.name = "depth", .kind = TUNABLE_NUMBER,			\
	.offset = offsetof(struct sched_params, depth),			\
	.least = DEPTH_MIN, .most = DEPTH_MAX, .unit = 1,		\
	.initial = initial_

#define TUNABLE_DEPTH_AUTO						\
	TUNABLE_DEPTH(64), .automatic = AUTO_DEPTH

/* The throughput that may be given up for a short flow: isolation.h. */
#define TUNABLE_ISOLATION						\
	.name = "isolation", .kind = TUNABLE_NUMBER,			\
	.offset = offsetof(struct sched_params, isolation),		\
	.most = ISOLATION_MOST, .unit = 1, .initial = ISOLATION_AUTO,	\
	.automatic = AUTO_ISOLATION

/* The cost model: see cost.h. */
#define TUNABLE_COST_OF(initial_)					\
	.name = "cost", .kind = TUNABLE_COST,				\
	.offset = offsetof(struct sched_params, cost),			\
	.most = COST_MOST, .unit = 1, .initial = initial_

#endif /* MQFAIR_TUNABLE_H */
