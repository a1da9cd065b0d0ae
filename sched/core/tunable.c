// SPDX-License-Identifier: GPL-2.0
#include "sched.h"
#include "tunable.h"

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

static struct cost_line *line_of(const struct tunable *t,
				 struct sched_params *p)
{
	return (struct cost_line *)((char *)p + t->offset);
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

u32 tunable_get(const struct tunable *t, const struct sched_params *p)
{
	return READ_ONCE(*number_of(t, (struct sched_params *)p)) / t->unit;
}

int tunable_set(const struct tunable *t, struct sched_params *p, u32 value)
{
	if (!in_bounds(t, value))
		return -EINVAL;
	*number_of(t, p) = value * t->unit;
	return 0;
}

int tunable_set_line(const struct tunable *t, struct sched_params *p, u32 base,
		     u32 per_kib)
{
	if (!in_bounds(t, base) || !in_bounds(t, per_kib))
		return -EINVAL;
	*line_of(t, p) = (struct cost_line){ base, per_kib };
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
		if (t->kind == TUNABLE_LINE)
			*line_of(t, p) = (struct cost_line){ 0, t->initial };
		else
			*number_of(t, p) = t->initial * t->unit;
	}
}

int tunables_check(const struct tunable *table, const struct sched_params *p)
{
	const struct tunable *t;

	for (t = table; t->name; t++) {
		const struct cost_line *line;

		if (t->kind != TUNABLE_LINE) {
			if (!in_bounds(t, tunable_get(t, p)))
				return -EINVAL;
			continue;
		}
		line = line_of(t, (struct sched_params *)p);
		if (!in_bounds(t, line->base) || !in_bounds(t, line->per_kib))
			return -EINVAL;
	}
	return 0;
}
