// SPDX-License-Identifier: GPL-2.0
/* Tunables as text: see tuning.h. */
#include "tuning.h"

#include "text.h"

enum {
	COEFFICIENTS		= 4,
	VALUE_BYTES		= 64,
};

void tuning_init(struct tuning *t, const struct sched_ops *ops, u32 takes)
{
	u32 i;

	*t = (struct tuning){ .ops = ops, .takes = takes };
	sched_params_init(ops, &t->params);
	for (i = 0; ops->tunables[i].name; i++)
		if (ops->tunables[i].automatic != AUTO_NOT)
			t->automatic |= (u32)BIT_ULL(i);
	tunables_set_auto(ops->tunables, t->automatic, takes, &t->params);
}

void tuning_set(struct tuning *t, const struct setting *s)
{
	u32 bit = (u32)BIT_ULL(s->tunable - t->ops->tunables);
	struct cost_model cost = s->cost;
	int ret = 0;

	t->automatic &= ~bit;
	if (s->automatic) {
		t->automatic |= bit;
		tunable_set_start(s->tunable, &t->params, s->start);
	} else if (s->tunable->kind == TUNABLE_COST) {
		if (!s->lines) {
			cost = *tunable_get_cost(s->tunable, &t->params);
			cost.kind = s->cost.kind;
		}
		ret = tunable_set_cost(s->tunable, &t->params, &cost);
	} else {
		ret = tunable_set(s->tunable, &t->params, s->value);
	}
	port_assert(!ret);
	tunables_set_auto(t->ops->tunables, t->automatic, t->takes, &t->params);
}

/* ----------------------------------------------------------------- parsing */

static bool parse_lines(struct setting *s, char *const *word)
{
	u32 *const coefficient[COEFFICIENTS] = {
		&s->cost.read.base,
		&s->cost.read.per_kib,
		&s->cost.write.base,
		&s->cost.write.per_kib,
	};
	u64 value;
	u32 i;

	for (i = 0; i < COEFFICIENTS; i++) {
		if (!text_number(word[i], 0, s->tunable->most, &value))
			return false;
		*coefficient[i] = (u32)value;
	}
	s->lines = true;
	return true;
}

static bool parse_cost(struct setting *s, char *const *word, u32 nr)
{
	s->cost.kind = text_find(cost_names, word[0]);
	if (nr == 1 && s->cost.kind < COST_KINDS)
		return true;
	return nr == 1 + COEFFICIENTS && s->cost.kind == COST_LINEAR &&
	       parse_lines(s, word + 1);
}

static void join(char *text, size_t size, char *const *word, u32 nr)
{
	struct text out = text_of(text, size);
	u32 i;

	for (i = 0; i < nr; i++)
		text_add(&out, "%s%s", i ? " " : "", word[i]);
}

static bool parse_value(struct setting *s, char *const *word, u32 nr)
{
	const struct tunable *t = s->tunable;
	char text[VALUE_BYTES];
	u64 value;

	if (t->kind == TUNABLE_COST)
		return parse_cost(s, word, nr);
	join(text, sizeof(text), word, nr);
	s->automatic = tunable_parse_auto(t, text, &s->start);
	if (s->automatic)
		return true;
	if (nr != 1)
		return false;
	if (t->kind == TUNABLE_CHOICE) {
		s->value = text_find(t->choices, word[0]);
		return t->choices[s->value];
	}
	if (!text_number(word[0], t->least, t->most, &value))
		return false;
	s->value = (u32)value;
	return true;
}

static void say_accepted(const struct tunable *t, struct text *out)
{
	if (t->kind == TUNABLE_COST) {
		text_list(out, cost_names);
		text_add(out, ", or linear A B C D with numbers up to %u",
			 t->most);
	} else if (t->kind == TUNABLE_CHOICE) {
		text_list(out, t->choices);
	} else {
		text_add(out, "a number from %u to %u%s", t->least, t->most,
			 t->automatic == AUTO_DEPTH ? ", auto, or N auto" :
			 t->automatic != AUTO_NOT   ? ", or auto" :
						      "");
	}
}

static void say_tunables(const struct sched_ops *ops, struct text *out)
{
	const struct tunable *t;

	text_add(out, "%s has ", ops->name);
	for (t = ops->tunables; t->name; t++)
		text_add(out, "%s%s", t == ops->tunables ? "" : ", ", t->name);
	if (!ops->tunables->name)
		text_add(out, "none");
}

bool setting_parse(struct setting *s, const struct sched_ops *ops,
		   const char *name, char *const *word, u32 nr, char *wrong,
		   size_t size)
{
	struct text out = text_of(wrong, size);
	char value[VALUE_BYTES];

	*s = (struct setting){ .tunable = tunable_find(ops->tunables, name) };
	if (!s->tunable) {
		text_add(&out, "no tunable '%s': ", name);
		say_tunables(ops, &out);
		return false;
	}
	if (nr && parse_value(s, word, nr))
		return true;
	join(value, sizeof(value), word, nr);
	text_add(&out, "%s '%s': use ", name, value);
	say_accepted(s->tunable, &out);
	return false;
}
