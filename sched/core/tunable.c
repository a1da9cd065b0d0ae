// SPDX-License-Identifier: GPL-2.0
/* Reads, sets and checks the parameters that a table of tunables lists. */
#include "sched.h"
#include "tunable.h"

enum {
	PER_KIB_INITIAL = 1024,		/* of a linear cost: as by bytes */
	AUTO_DEPTH_START = 16,		/* and doubles at once: window.h */
	/*
	 * Enough for most NVMe drives.  The MQFQ paper found 64 for an SSD and 128
	 * for a target in memory.
	 */
	AUTO_DEPTH_USUAL = 128,
	AUTO_DEPTH_MOST	= 1024,
	/*
	 * T = D * 4 KiB / 8.  In one round of the device, a queue gets ahead of
	 * a newcomer by an eighth of the round.
	 */
	AUTO_THRESHOLD_PER_SLOT = 512,
	/*
	 * One request of a flow is dispatched while virtual time passes the one
	 * before.  With 64 flows of 1 KiB each, T is 128 KiB instead of 64.
	 */
	AUTO_THRESHOLD_IOS = 2,
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

static u32 auto_value(const struct tunable *t, const struct sched_params *p,
		      u32 most)
{
	u32 depth = p->depth_most ? min(most, (u32)AUTO_DEPTH_USUAL) : p->depth;

	if (t->automatic == AUTO_THRESHOLD)
		return min(depth, (u32)DEPTH_MAX) * AUTO_THRESHOLD_PER_SLOT;
	return t->initial * t->unit;
}

static void set_least_ios(const struct tunable *t, struct sched_params *p,
			  bool automatic)
{
	if (t->automatic == AUTO_THRESHOLD)
		number_of(t, p)[1] = automatic ? AUTO_THRESHOLD_IOS : 0;
}

void tunables_set_auto(const struct tunable *table, unsigned long which,
		       u32 takes, struct sched_params *p)
{
	u32 most =
		min(takes ? takes : (u32)AUTO_DEPTH_MOST, (u32)AUTO_DEPTH_MOST);
	u32 start = min(most, (u32)AUTO_DEPTH_START), found = p->depth_most, i;

	p->depth_most = 0;
	for (i = 0; table[i].name; i++) {
		set_least_ios(&table[i], p, which & BIT_ULL(i));
		if (!(which & BIT_ULL(i)))
			continue;
		if (table[i].automatic != AUTO_DEPTH) {
			tunable_put(&table[i], p,
				    auto_value(&table[i], p, most));
			continue;
		}
		p->depth_most = most;
		/* A depth that was found, or set as a start, is kept. */
		p->depth = found ? min(p->depth, most) : start;
	}
}

/* Returns the text behind "N " at the start of @text; NULL if N is out of range. */
static const char *take_start(const struct tunable *t, const char *text,
			      u32 *start)
{
	const char *at = text;

	for (; *at >= '0' && *at <= '9' && *start <= t->most; at++)
		*start = 10 * *start + (u32)(*at - '0');
	if (at == text)
		return text;
	if (!in_bounds(t, *start) || *at != ' ')
		return NULL;
	while (*at == ' ')
		at++;
	return at;
}

bool tunable_parse_auto(const struct tunable *t, const char *text, u32 *start)
{
	static const char name[] = "auto";

	*start = 0;
	if (t->automatic == AUTO_DEPTH)
		text = take_start(t, text, start);
	if (t->automatic == AUTO_NOT || !text ||
	    strncmp(text, name, strlen(name)))
		return false;
	text += strlen(name);
	return !strcmp(text, "") || !strcmp(text, "\n");
}

void tunable_set_start(const struct tunable *t, struct sched_params *p,
		       u32 start)
{
	if (!start)
		return;
	tunable_put(t, p, start);
	/* tunables_set_auto() keeps a depth for which this is set. */
	p->depth_most = start;
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
