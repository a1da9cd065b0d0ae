// SPDX-License-Identifier: GPL-2.0
/*
 * fill - writes without time, for a drive that starts full
 *
 * The map changes as writes would change it.  Programs, erases and the reads of
 * GC, which take time in pipeline.c, are done at once.
 *
 * Example (tests/flash/gc.c).  A drive is written once and overwritten six
 * times at random.  With its times its amplification is 2.33, without them
 * 2.36.
 *
 * Limits.  A drive without a map (params.in_place) has nothing to fill.
 *
 * Tested by tests/flash/gc.c.
 */
#include "drive.h"
#include "random.h"

/*
 * A permutation of the numbers of @bits bits: each of its lines has an inverse.
 * The caller skips results beyond its range.
 */
static u64 fill_shuffle(const struct flash_fill *fill, u64 n, u32 bits)
{
	u64 mask = BIT_ULL(bits) - 1;
	u32 half = bits / 2 + 1, round;

	n ^= fill->seed & mask;
	for (round = 0; round < 3; round++) {
		n ^= n >> half;
		n = (n * 0x9e3779b97f4a7c15ULL + round) & mask;
	}
	return n ^ (n >> half);
}

static void fill_collect(struct ftl *ftl, u32 die, u32 *copied)
{
	enum ftl_gc_step step;

	while ((step = ftl_gc_step(ftl, die)) != GC_NOTHING) {
		u32 pages;

		switch (step) {
		case GC_READ:
			pages = ftl_gc_read(ftl, die);
			if (pages)
				ftl_gc_copy(ftl, die);
			*copied += pages;
			break;
		case GC_PROGRAM:
			ftl_programmed(ftl, die, STREAM_GC);
			break;
		default:
			ftl_gc_erased(ftl, die);
			break;
		}
	}
}

/* Returns the next die in turn that can take a page, once GC has run on it. */
static u32 fill_choose_die(struct flash *f, u32 *copied)
{
	u32 die = f->unit_die;

	do {
		die = die + 1 == f->ftl.nr_dies ? 0 : die + 1;
		fill_collect(&f->ftl, die, copied);
	} while (!ftl_can_place(&f->ftl, die));
	return die;
}

/* Returns the number of pages written and copied. */
static u32 fill_write(struct flash *f, u32 page, u16 tag)
{
	u32 work = 1;

	if (!f->unit_open) {
		f->unit_die = fill_choose_die(f, &work);
		f->unit_open = true;
	}
	f->stats.written++;
	f->buffered++;
	if (ftl_place(&f->ftl, page, tag, f->unit_die)) {
		f->unit_open = false;
		ftl_programmed(&f->ftl, f->unit_die, STREAM_COMMANDS);
		f->stats.programs++;
		f->buffered -= f->ftl.unit_pages;
	}
	return work;
}

/* Returns the page for step @n of the first pass; it may be out of range. */
static u64 fill_first_pass(const struct flash_fill *fill, u64 n, u32 bits)
{
	return fill->shuffled ? fill_shuffle(fill, n, bits) : n;
}

bool flash_fill(struct flash *f, struct flash_fill *fill, u32 budget)
{
	u32 bits = port_fls64(fill->pages);
	u64 first_pass = fill->written	? 0 :
			 fill->shuffled ? BIT_ULL(bits) :
					  fill->pages;
	u64 steps = first_pass + fill->overwrites;
	u32 work = 0;
	u16 tag;

	if (f->params.in_place || !fill->pages)
		return false;
	port_assert(flash_next_ns(f) == FLASH_NEVER);
	port_assert(fill->first < f->pages &&
		    fill->pages <= f->pages - fill->first);
	if (!fill->done)
		fill->state = fill->seed;
	tag = owner_tag(&f->ftl.owners, fill->owner);
	for (; fill->done < steps && work < budget; fill->done++) {
		u64 page = fill->done < first_pass ?
				   fill_first_pass(fill, fill->done, bits) :
				   (flash_random(&fill->state) >> 32) *
						   fill->pages >>
					   32;

		work++;
		if (page < fill->pages)
			work += fill_write(f, fill->first + (u32)page, tag);
	}
	return fill->done < steps;
}
