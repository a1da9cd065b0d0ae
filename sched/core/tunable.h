/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tunable - the parameters of a scheduler as data
 *
 * Each scheduler lists its tunables in one table (sched_ops.tunables), from
 * which the hosts make what their users see: the kernel the files under
 * queue/iosched/, with their defaults and the checks of what is written to
 * them.  A value is kept in struct sched_params as it is used (bytes, ns) and
 * shown as it is written (KiB, ms): stored = written * unit.
 *
 * Tested by tests/unit/tunable.c.
 */
#ifndef MQFAIR_TUNABLE_H
#define MQFAIR_TUNABLE_H

#include "port.h"

struct sched_params;

enum {
	TUNABLES_MAX	= 16,	/* of a scheduler */
};

enum tunable_kind {
	TUNABLE_NUMBER,		/* u32 */
	TUNABLE_CHOICE,		/* u32: index of .choices */
	TUNABLE_LINE,		/* struct cost_line: two numbers */
};

/* What the host finds a value for, when "auto" is written. */
enum tunable_auto {
	AUTO_NOT,
	AUTO_DEPTH,		/* what the device can hold */
	AUTO_THRESHOLD,		/* of the depth in force */
};

struct tunable {
	const char *name;		/* NULL ends a table */
	enum tunable_kind kind;
	enum tunable_auto automatic;	/* not AUTO_NOT: and it is the default */
	u32 offset;			/* in struct sched_params */
	u32 least, most;		/* as written; of each number of a line */
	u32 unit;
	u32 initial;			/* as written; of a line, per_kib */
	const char *const *choices;	/* NULL-terminated */
};

/* The number as written; @t is a number or a choice. */
u32 tunable_get(const struct tunable *t, const struct sched_params *p);

/* -EINVAL and nothing changed when @value, as written, is out of range. */
int tunable_set(const struct tunable *t, struct sched_params *p, u32 value);
int tunable_set_line(const struct tunable *t, struct sched_params *p, u32 base,
		     u32 per_kib);

/* The tunable of that name in @table, or NULL. */
const struct tunable *tunable_find(const struct tunable *table,
				   const char *name);

/* Sets the defaults of @table; what is automatic becomes its .initial. */
void tunables_init(const struct tunable *table, struct sched_params *p);

/* 0, or -EINVAL when a value of @table is out of range in @p. */
int tunables_check(const struct tunable *table, const struct sched_params *p);

extern const char *const cost_names[];

/* For the tables: @member is of struct sched_params. */
#define TUNABLE_U32(name_, member, least_, most_, unit_, initial_) {	\
	.name = name_, .kind = TUNABLE_NUMBER,				\
	.offset = offsetof(struct sched_params, member),		\
	.least = least_, .most = most_, .unit = unit_,			\
	.initial = initial_,						\
}

#define TUNABLE_FLAG(name_, member, initial_)				\
	TUNABLE_U32(name_, member, 0, 1, 1, initial_)

#define TUNABLE_NAMES(name_, member, choices_, initial_) {		\
	.name = name_, .kind = TUNABLE_CHOICE,				\
	.offset = offsetof(struct sched_params, member),		\
	.unit = 1, .initial = initial_, .choices = choices_,		\
}

#define TUNABLE_COST_LINE(name_, member) {				\
	.name = name_, .kind = TUNABLE_LINE,				\
	.offset = offsetof(struct sched_params, member),		\
	.most = COST_MOST, .unit = 1, .initial = 1024,			\
}

/* The D slots: a number or auto. */
#define TUNABLE_DEPTH {							\
	.name = "depth", .kind = TUNABLE_NUMBER,			\
	.automatic = AUTO_DEPTH,					\
	.offset = offsetof(struct sched_params, depth),			\
	.least = DEPTH_MIN, .most = DEPTH_MAX, .unit = 1,		\
	.initial = 64,							\
}

/* What a request is charged: see cost.h. */
#define TUNABLES_COST	TUNABLES_COST_OF(COST_BYTES)
#define TUNABLES_COST_OF(initial_)					\
	TUNABLE_NAMES("cost", cost.kind, cost_names, initial_),		\
	TUNABLE_COST_LINE("linear_read", cost.read),			\
	TUNABLE_COST_LINE("linear_write", cost.write)

#endif /* MQFAIR_TUNABLE_H */
