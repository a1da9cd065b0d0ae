// SPDX-License-Identifier: GPL-2.0
#include "drive.h"

/* -------------------------------------------------------------------- writes */

/* The least work waiting; of equals the next in turn, channel by channel. */
static u32 unit_choose_die(struct flash *f)
{
	u32 nr = f->ftl.nr_dies, best = FTL_NONE, least = ~0U, i;
	u32 at = f->unit_die;

	for (i = 0; i < nr; i++) {
		u32 units;

		at = at + 1 >= nr ? 0 : at + 1;
		if (!ftl_can_place(&f->ftl, at)) {
			/* It may have had nothing to collect until now. */
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

/* Room in the buffer, then the data of the first write. */
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

/* One page's part of the unit it is programmed with, and of what is owed. */
static void owner_writes(struct flash *f, u16 tag)
{
	const struct flash_params *p = &f->params;
	u64 owed = f->owed_ns >> OWED_SHIFT;
	u64 ns = p->planes * (p->program_ns / p->program_pages + p->channel_ns);

	f->owed_ns -= owed;
	f->spent.write_ns += ns + owed;
	owner_busy(&f->ftl.owners, tag, ns + owed);
}

/* What has arrived is placed, as far as there are dies for it. */
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
	/* The first in turn is the one after it. */
	f->unit_die = flash_nr_dies(&f->params) - 1;
}
