// SPDX-License-Identifier: GPL-2.0
/* Reads, sets and checks the parameters that a table of tunables lists. */
#include "sched.h"
#include "tunable.h"

enum {
	PER_KIB_INITIAL = 1024,		/* of a linear cost: as by bytes */
};

const char *const cost_names[] = {
	[COST_BYTES]	= "bytes",
	[COST_IOPS]	= "iops",
	[COST_LINEAR]	= "linear",
	[COST_LEARNED]	= "learned",
	[COST_KINDS]	= NULL,
};

static u32 *number_of(const struct tunable *t, struct sched_params *p)
{
	return (u32 *)((char *)p + t->offset);
}

static u32 choices_count(const struct tunable *t)
{
	u32 n = 0;

	while (t->choices[n])
		n++;
	return n;
}

static bool in_bounds(const struct tunable *t, u32 value)
{
	if (t->kind == TUNABLE_CHOICE)
		return value < choices_count(t);
	return value >= t->least && value <= t->most;
}

static bool line_in_bounds(const struct tunable *t,
			   const struct cost_line *line)
{
	return in_bounds(t, line->base) && in_bounds(t, line->per_kib);
}

static bool cost_in_bounds(const struct tunable *t,
			   const struct cost_model *cost)
{
	return cost->kind < COST_KINDS && line_in_bounds(t, &cost->read) &&
	       line_in_bounds(t, &cost->write);
}

u32 tunable_get(const struct tunable *t, const struct sched_params *p)
{
	return READ_ONCE(*number_of(t, (struct sched_params *)p)) / t->unit;
}

void tunable_put(const struct tunable *t, struct sched_params *p, u32 stored)
{
	*number_of(t, p) = stored;
}

int tunable_set(const struct tunable *t, struct sched_params *p, u32 value)
{
	if (!in_bounds(t, value))
		return -EINVAL;
	tunable_put(t, p, value * t->unit);
	return 0;
}

const struct cost_model *tunable_get_cost(const struct tunable *t,
					  const struct sched_params *p)
{
	return (const void *)((const char *)p + t->offset);
}

int tunable_set_cost(const struct tunable *t, struct sched_params *p,
		     const struct cost_model *cost)
{
	if (!cost_in_bounds(t, cost))
		return -EINVAL;
	cost_set((struct cost_model *)((char *)p + t->offset), cost);
	return 0;
}

const struct tunable *tunable_find(const struct tunable *table,
				   const char *name)
{
	const struct tunable *t;

	for (t = table; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

void tunables_init(const struct tunable *table, struct sched_params *p)
{
	const struct tunable *t;

	for (t = table; t->name; t++) {
		const struct cost_model cost = {
			.kind = t->initial,
			.read = { 0, PER_KIB_INITIAL },
			.write = { 0, PER_KIB_INITIAL },
		};

		if (t->kind == TUNABLE_COST)
			tunable_set_cost(t, p, &cost);
		else
			tunable_put(t, p, t->initial * t->unit);
	}
}

static bool is_in_range(const struct tunable *t, const struct sched_params *p)
{
	if (t->kind == TUNABLE_COST)
		return cost_in_bounds(t, tunable_get_cost(t, p));
	return in_bounds(t, tunable_get(t, p));
}

int tunables_check(const struct tunable *table, const struct sched_params *p)
{
	const struct tunable *t;

	for (t = table; t->name; t++)
		if (!is_in_range(t, p))
			return -EINVAL;
	return 0;
}
