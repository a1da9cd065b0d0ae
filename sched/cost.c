// SPDX-License-Identifier: GPL-2.0
#include "cost.h"

static u64 cost_line_at(const struct cost_line *line, u32 bytes)
{
	return READ_ONCE(line->base) +
	       (((u64)READ_ONCE(line->per_kib) * bytes) >> 10);
}

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
	static const struct cost_line by_bytes[] = {
		{ .per_kib = 1024 }, { .per_kib = 1024 },
	};
	u32 i;

	if (!line)
		line = by_bytes;
	for (i = 0; i < ARRAY_SIZE(m->learned); i++) {
		WRITE_ONCE(m->learned[i].base, line[i].base);
		WRITE_ONCE(m->learned[i].per_kib, line[i].per_kib);
	}
}

u32 cost_of(const struct cost_model *m, enum io_op op, u32 bytes)
{
	enum cost_kind kind = READ_ONCE(m->kind);
	u64 cost = bytes;

	if (!io_op_transfers(op) || kind == COST_IOPS)
		cost = COST_UNIT;
	else if (kind == COST_LINEAR)
		cost = cost_line_at(op == IO_READ ? &m->read : &m->write, bytes);
	else if (kind == COST_LEARNED)
		cost = cost_line_at(&m->learned[op], bytes);
	return (u32)clamp(cost, (u64)COST_LEAST, (u64)COST_MOST);
}
