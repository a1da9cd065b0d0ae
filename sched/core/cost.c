// SPDX-License-Identifier: GPL-2.0
/* Changes of a cost model while hooks charge by it. */
#include "cost.h"

void cost_set(struct cost_model *m, const struct cost_model *to)
{
	WRITE_ONCE(m->read.base, to->read.base);
	WRITE_ONCE(m->read.per_kib, to->read.per_kib);
	WRITE_ONCE(m->write.base, to->write.base);
	WRITE_ONCE(m->write.per_kib, to->write.per_kib);
	WRITE_ONCE(m->kind, to->kind);
}

void cost_learned_set(struct cost_model *m, const struct cost_line *line)
{
	u32 i;

	for (i = 0; line && i < ARRAY_SIZE(m->learned); i++) {
		WRITE_ONCE(m->learned[i].base, line[i].base);
		WRITE_ONCE(m->learned[i].per_kib, line[i].per_kib);
	}
	WRITE_ONCE(m->learned_known, line);
}
