// SPDX-License-Identifier: GPL-2.0
/*
 * attrs - the files under queue/iosched/, one for each tunable of a scheduler
 *
 *	number		N
 *	automatic	N or "auto"; a reader gets the number in force and "auto"
 *	depth		also "N auto": automatic, and begins with N
 *	choice		one of the names
 *	cost		"bytes", "iops", "learned", "linear" or "linear A B C D"
 *
 * A read costs A + B * KiB and a write C + D * KiB, in bytes of 4 KiB reads
 * (sched/core/cost.h).  "linear" alone keeps the coefficients in force.
 *
 * A tunable for research has a file only if the module was loaded with
 * research=1.
 *
 * A value that cannot be parsed or is out of range is EINVAL and changes
 * nothing.
 *
 * The block layer calls show() and store() without the name of the file.  So
 * there is a pair of functions for each place in a scheduler's table.
 */
#include "attrs.h"

#include "parse.h"
#include "wake.h"

static bool research;
module_param(research, bool, 0444);
MODULE_PARM_DESC(research, "also offer the tunables of the alternatives that papers compare");

static void set_automatic(struct device_host *d, unsigned long automatic,
			  struct sched_params *p)
{
	tunables_set_auto(d->sched.ops->tunables, automatic,
			  compat_queue_hw_depth(d->q), p);
}

void device_default_params(struct device_host *d, const struct sched_ops *ops,
			   struct sched_params *p)
{
	const struct tunable *table = ops->tunables;
	u32 i;

	sched_params_init(ops, p);
	d->sched.ops = ops;
	d->automatic = 0;
	for (i = 0; table[i].name; i++)
		if (table[i].automatic != AUTO_NOT)
			d->automatic |= BIT(i);
	set_automatic(d, d->automatic, p);
}

/* A value that user space has written for a tunable. */
struct wish {
	bool automatic;
	u32 start;		/* of an automatic depth; 0: the rule's own */
	u32 value;
	struct cost_model cost;
};

static int parse_choice(const struct tunable *t, const char *text, u32 *value)
{
	int i;

	for (i = 0; t->choices[i]; i++) {
		if (sysfs_streq(text, t->choices[i])) {
			*value = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Takes "linear A B C D". */
static int parse_lines(const char *text, struct cost_model *cost)
{
	u32 *const number[] = { &cost->read.base, &cost->read.per_kib,
				&cost->write.base, &cost->write.per_kib };
	char copy[64], *rest, *word;
	u32 n = 0;

	if (strscpy(copy, text, sizeof(copy)) < 0 ||
	    !strstarts(copy, "linear "))
		return -EINVAL;
	rest = strim(copy + strlen("linear "));
	while ((word = strsep(&rest, " \t"))) {
		if (!*word)
			continue;
		if (n == ARRAY_SIZE(number) || parse_number(word, number[n++]))
			return -EINVAL;
	}
	cost->kind = COST_LINEAR;
	return n == ARRAY_SIZE(number) ? 0 : -EINVAL;
}

/* A name without numbers leaves the coefficients as they are. */
static int parse_cost(const char *text, struct cost_model *cost)
{
	int kind = __sysfs_match_string(cost_names, COST_KINDS, text);

	if (kind < 0)
		return parse_lines(text, cost);
	cost->kind = kind;
	return 0;
}

static int parse(const struct tunable *t, const struct sched_params *p,
		 const char *text, struct wish *wish)
{
	*wish = (struct wish){ .cost = p->cost };
	wish->automatic = tunable_parse_auto(t, text, &wish->start);
	if (wish->automatic)
		return 0;
	if (t->kind == TUNABLE_COST)
		return parse_cost(text, &wish->cost);
	if (t->kind == TUNABLE_CHOICE)
		return parse_choice(t, text, &wish->value);
	return parse_number(text, &wish->value);
}

static int apply(const struct tunable *t, const struct wish *wish,
		 struct sched_params *p)
{
	if (wish->automatic) {
		tunable_set_start(t, p, wish->start);
		return 0;
	}
	if (t->kind == TUNABLE_COST)
		return tunable_set_cost(t, p, &wish->cost);
	return tunable_set(t, p, wish->value);
}

static int device_tune(struct device_host *d, u32 place, const char *text)
{
	const struct sched_ops *ops = d->sched.ops;
	unsigned long automatic = d->automatic & ~BIT(place);
	struct sched_params p = d->sched.params;
	struct wake wake __uninitialized;
	struct wish wish;
	int ret;

	lockdep_assert_held(&d->tune_lock);
	ret = parse(&ops->tunables[place], &p, text, &wish);
	if (!ret)
		ret = apply(&ops->tunables[place], &wish, &p);
	if (ret)
		return ret;
	if (wish.automatic)
		automatic |= BIT(place);
	set_automatic(d, automatic, &p);
	ret = sched_params_check(ops, &p);
	if (ret)
		return ret;
	d->automatic = automatic;
	wake_init(&wake);
	ops->tune(&d->sched, &p, &wake);
	host_wake(d, &wake);
	return 0;
}

static ssize_t tunable_store(struct elevator_queue *e, const char *page,
			     size_t count, u32 place)
{
	struct device_host *d = e->elevator_data;
	int ret;

	if (!parse_is_text(page, count))
		return -EINVAL;
	mutex_lock(&d->tune_lock);
	ret = device_tune(d, place, page);
	mutex_unlock(&d->tune_lock);
	return ret ?: count;
}

static ssize_t cost_show(const struct cost_model *cost, char *page)
{
	u32 kind = READ_ONCE(cost->kind);

	if (kind != COST_LINEAR)
		return sysfs_emit(page, "%s\n", cost_names[kind]);
	return sysfs_emit(page, "linear %u %u %u %u\n",
			  READ_ONCE(cost->read.base),
			  READ_ONCE(cost->read.per_kib),
			  READ_ONCE(cost->write.base),
			  READ_ONCE(cost->write.per_kib));
}

static ssize_t tunable_show(struct elevator_queue *e, char *page, u32 place)
{
	struct device_host *d = e->elevator_data;
	const struct tunable *t = &d->sched.ops->tunables[place];
	const struct sched_params *p = &d->sched.params;

	if (t->kind == TUNABLE_COST)
		return cost_show(tunable_get_cost(t, p), page);
	if (t->kind == TUNABLE_CHOICE)
		return sysfs_emit(page, "%s\n", t->choices[tunable_get(t, p)]);
	return sysfs_emit(page,
			  READ_ONCE(d->automatic) & BIT(place) ? "%u auto\n" :
								 "%u\n",
			  tunable_get(t, p));
}

#define PLACE(n)							\
static ssize_t show_##n(struct elevator_queue *e, char *page)		\
{									\
	return tunable_show(e, page, n);				\
}									\
static ssize_t store_##n(struct elevator_queue *e, const char *page,	\
			 size_t count)					\
{									\
	return tunable_store(e, page, count, n);			\
}

PLACE(0) PLACE(1) PLACE(2) PLACE(3) PLACE(4) PLACE(5) PLACE(6) PLACE(7)
PLACE(8) PLACE(9) PLACE(10) PLACE(11) PLACE(12) PLACE(13) PLACE(14) PLACE(15)

#define AT(n)	[n] = { .show = show_##n, .store = store_##n }

static const struct elv_fs_entry places[] = {
	AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7),
	AT(8), AT(9), AT(10), AT(11), AT(12), AT(13), AT(14), AT(15),
};
static_assert(ARRAY_SIZE(places) == TUNABLES_MAX);

void attrs_fill(const struct tunable *table,
		struct elv_fs_entry attrs[TUNABLES_MAX + 1])
{
	u32 i, n = 0;

	for (i = 0; table[i].name; i++) {
		if (WARN_ON_ONCE(i == TUNABLES_MAX))
			return;
		if (table[i].research && !research)
			continue;
		attrs[n] = places[i];
		attrs[n].attr.name = table[i].name;
		attrs[n].attr.mode = 0644;
		n++;
	}
}
