/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cost - the amount that a request is charged
 *
 * Every model gives it in one unit, bytes of 4 KiB reads [R].  So the threshold
 * T and virtual time mean the same under each model.  A request that takes as
 * long as three 4 KiB reads costs 12288, whatever its size.
 *
 *	bytes	the bytes that the request transfers: the default, as in the
 *		MQFQ paper.  4096 at least [R]: no drive reads less of the flash
 *	iops	4096 for each request: for drives bound by their number
 *	linear	base + per_kib * KiB, for reads and for writes
 *	learned	the same, with coefficients that were fitted to the device, see
 *		cost_estimator.h; a read of 4 KiB is 4096.  As `bytes` until the
 *		coefficients are known
 *
 * A discard transfers nothing: it has a range.  It costs as much as one 4 KiB
 * request for each started 4 MiB of its range, under each model [R].  A page of
 * 4 KiB of a drive's map has 1024 entries of 4 bytes, so it maps 4 MiB.  A request
 * that costs the same for any range would be a way out of a weight: a discard of
 * 2 GiB changes 512 pages of the map, and any task that may remove a file can
 * cause it.
 *
 *	discard of 64 KiB	4096	1 page of the map
 *	discard of 2 GiB	2 MiB	512 pages
 *
 * Write zeroes have a range, too.  They cost as much as a write of it [R]: many
 * drives program the zeroes, and the host does not know which.  Other operations
 * (flush, zones) are charged the same way, most of them with a range of 0.
 *
 * Tested by tests/unit/cost.c.
 */
#ifndef MQFAIR_COST_H
#define MQFAIR_COST_H

#include "port.h"

enum cost_kind {
	COST_BYTES,
	COST_IOPS,
	COST_LINEAR,
	COST_LEARNED,
	COST_KINDS,
};

enum io_op {
	IO_READ,
	IO_WRITE,
	IO_DISCARD,		/* this and all below transfer nothing */
	IO_OTHER,		/* write zeroes and rarer operations */
	IO_OPS,
};

static inline bool io_op_transfers(enum io_op op)
{
	return op <= IO_WRITE;
}

enum {
	COST_UNIT	= 4096,		/* one 4 KiB read */
	COST_RANGE	= 1 << 22,	/* bytes that a page of the map maps */
	COST_LEAST	= 512,		/* no request is free */
	COST_MOST	= 1 << 26,	/* a tag's step is far below a wrap */
};

struct cost_line {
	u32 base;		/* per request */
	u32 per_kib;		/* per KiB carried */
};

struct cost_model {
	u32 kind;			/* enum cost_kind */
	struct cost_line read, write;	/* COST_LINEAR */
	struct cost_line learned[2];	/* COST_LEARNED: O, by cost_estimator.c */
	bool learned_known;		/* O: `learned` is set; else as COST_BYTES */
};

/*
 * Copies all of @to but what is learned, field by field.  A request that meets the
 * change may be charged once by a mixture of the old and the new model.
 */
void cost_set(struct cost_model *m, const struct cost_model *to);

/* Sets the lines of COST_LEARNED: read, write.  With NULL they are not known. */
void cost_learned_set(struct cost_model *m, const struct cost_line *line);

static inline u64 cost_line_at(const struct cost_line *line, u32 bytes)
{
	return READ_ONCE(line->base) +
	       (((u64)READ_ONCE(line->per_kib) * bytes) >> 10);
}

/* Returns the charge for a discard of @bytes. */
static inline u64 cost_of_range(u32 bytes)
{
	return COST_UNIT *
	       max(((u64)bytes + COST_RANGE - 1) / COST_RANGE, 1ULL);
}

/* Returns the charge for @bytes of @op, in [COST_LEAST, COST_MOST]. */
static inline u32 cost_of(const struct cost_model *m, enum io_op op, u32 bytes)
{
	enum cost_kind kind = READ_ONCE(m->kind);
	u64 cost = max((u64)bytes, (u64)COST_UNIT);

	if (op == IO_DISCARD)
		cost = cost_of_range(bytes);
	else if (kind == COST_IOPS)
		cost = COST_UNIT;
	else if (kind == COST_LINEAR)
		cost = cost_line_at(op == IO_READ ? &m->read : &m->write,
				    bytes);
	else if (kind == COST_LEARNED && READ_ONCE(m->learned_known))
		cost = cost_line_at(&m->learned[op != IO_READ], bytes);
	return (u32)clamp(cost, (u64)COST_LEAST, (u64)COST_MOST);
}

#endif /* MQFAIR_COST_H */
