// SPDX-License-Identifier: GPL-2.0
/*
 * buffer - the write buffer: pages arrive over the link and are spread over
 * dies
 *
 * Writes are served in the order in which they leave the controller.  A
 * transfer brings up to LINK_PAGES pages of the first write, as far as the
 * buffer has room, link_ns a page.  A page that has arrived is *placed*: the
 * map names its physical page before it is programmed there.  A write is done
 * when its last page is placed, because the buffer survives power loss.
 *
 * Placed pages fill a unit, and one unit is open at a time.  Its die is the one
 * with the fewest full units waiting; among equals it is the next in turn,
 * which is on the next channel.  A full unit waits for its die.  Its pages
 * leave the buffer when the die has programmed them.
 *
 * Two conditions stop the link, and buffer_resume() ends both:
 *   - The buffer is full.  A program makes room.
 *   - No die can take a page: each one has its last free block left, which is
 *     GC's.  An erase brings another.
 *
 * Example, in us, with the times of tests/flash/fixture.c (command and link 1,
 * channel 10 a page, program 500, fixed 3).  There is one die, with units of 8
 * pages and room for 16.  Three writes of 8 pages come at 0.  The first arrives
 * from 1 to 9 and is done at 12; the second arrives until 17 and is done at 20.
 * The buffer is full.  The first unit has the channel until 89 and the die
 * until 589.  Then the third write arrives until 597, and it is done at 600.
 *
 * Limits.  Two writes of one page in the buffer are not merged: each is
 * programmed.
 *
 * Tested by tests/flash/timing.c and gc.c.
 */
#include "drive.h"

/* ---------------------------------------------------- which die takes a unit */

/* Returns the die for the next unit, or FTL_NONE if no die can take one. */
static u32 unit_choose_die(struct flash *f)
{
	u32 nr = f->ftl.nr_dies, best = FTL_NONE, least = ~0U, i;
	u32 at = f->unit_die;

	for (i = 0; i < nr; i++) {
		u32 units;

		at = at + 1 >= nr ? 0 : at + 1;
		if (!ftl_can_place(&f->ftl, at)) {
			/* A new invalid page may have given GC a victim. */
			pipeline_run_die(f, &f->die[at]);
			continue;
		}
		units = f->ftl.die[at].stream[STREAM_COMMANDS].units;
		if (units >= least)
			continue;
		least = units;
		best = at;
		if (!units)
			break;
	}
	return best;
}

static bool unit_ready(struct flash *f)
{
	u32 die;

	if (f->unit_open)
		return true;
	die = unit_choose_die(f);
	if (die == FTL_NONE)
		return false;
	f->unit_die = die;
	f->unit_open = true;
	return true;
}

/* --------------------------------------------------------- transfers to it */

/* Starts the next transfer, if a write waits and the buffer has room. */
static void link_in_start(struct flash *f)
{
	const struct flash_cmd *cmd = f->writes.first;
	u32 room = f->params.buffer_pages - f->buffered;

	if (!cmd || f->link_in.armed || f->link_stalled)
		return;
	if (!room) {
		f->stats.write_stalls += !f->buffer_full;
		f->buffer_full = true;
		return;
	}
	f->buffer_full = false;
	f->link_pages =
		min(min(room, cmd->pages - cmd->issued), (u32)LINK_PAGES);
	f->buffered += f->link_pages;
	drive_event_arm(f, &f->link_in,
			f->now + f->link_pages * f->params.link_ns);
}

/*
 * Charges a page to the owner of @tag that writes it.  The page pays its part
 * of the program and of the transfer of its unit, on all planes.  It also pays
 * a part of the GC time not yet paid for.
 */
static void owner_writes(struct flash *f, u16 tag)
{
	const struct flash_params *p = &f->params;
	u64 owed = f->owed_ns >> OWED_SHIFT;
	u64 ns = p->planes * (p->program_ns / p->program_pages + p->channel_ns);

	f->owed_ns -= owed;
	f->spent.write_ns += ns + owed;
	owner_busy(&f->ftl.owners, tag, ns + owed);
}

/* Places the pages that have arrived, until no die can take one. */
static void link_in_arrived(struct flash *f)
{
	struct flash_cmd *cmd = f->writes.first;
	u16 tag = owner_tag(&f->ftl.owners, cmd->owner);

	f->link_stalled = false;
	for (; f->link_pages; f->link_pages--) {
		if (!unit_ready(f)) {
			f->link_stalled = true;
			return;
		}
		f->stats.written++;
		owner_writes(f, tag);
		if (ftl_place(&f->ftl, cmd->page + cmd->issued++, tag,
			      f->unit_die)) {
			f->unit_open = false;
			pipeline_run_die(f, &f->die[f->unit_die]);
		}
	}
	if (cmd->issued == cmd->pages)
		controller_done(f, drive_fifo_take(&f->writes), f->now);
	link_in_start(f);
}

static void link_in_fired(struct flash *f, struct flash_event *ev)
{
	(void)ev;
	link_in_arrived(f);
}

void buffer_resume(struct flash *f)
{
	if (f->link_stalled)
		link_in_arrived(f);
	else
		link_in_start(f);
}

void buffer_write(struct flash *f, struct flash_cmd *cmd)
{
	drive_fifo_append(&f->writes, cmd);
	link_in_start(f);
}

void buffer_init(struct flash *f)
{
	f->link_in.fire = link_in_fired;
	/* The first unit goes to the die after this one, which is die 0. */
	f->unit_die = flash_nr_dies(&f->params) - 1;
}
