// SPDX-License-Identifier: GPL-2.0
/*
 * controller - commands enter the drive and leave it
 *
 * The controller takes commands one at a time, command_ns each.  It splits a
 * read into *runs*: the next pages that lie in one flash page, or the next
 * pages that are not in flash.  A run in flash becomes one flash read of its
 * plane (pipeline.c).  Any other run goes over the link at once.  A write goes
 * to the write buffer (buffer.c).  A drive without a map (params.in_place)
 * splits writes too, and a run of a write occupies its plane for program_ns.
 *
 * The pages of reads leave over the link one after another, link_ns each.  A
 * read is done read_fixed_ns after its last page has left, any other command
 * write_fixed_ns after its work has ended.  The fixed times of any number of
 * commands overlap.
 *
 * Example, in us, with the numbers of tests/flash/fixture.c (command 1, read
 * 50, channel 10 and link 1 a page, fixed 5).  A read of two pages of one flash
 * page has the controller until 1 and the plane until 51.  It has the channel
 * until 71 and the link until 73, and is done at 78.  If the two pages are on
 * two planes of one die, they leave the channel at 61 and 71.  They leave the
 * link at 62 and 72, so the read is done at 77.
 *
 * Limits.  A step of the controller ends after FLASH_STEP_PAGES pages, so each
 * event is bounded; a longer command takes more steps at the same time.  With
 * FLASH_OPS flash reads under way the controller waits until one of them ends.
 *
 * Tested by tests/flash/timing.c.
 */
#include "drive.h"

/* ---------------------------------------------------------------- completion */

/*
 * Appends @cmd to @fifo.  A command never precedes the one before it, not even
 * when flash_retime() has shortened the fixed time in between.
 */
static void cmd_done_at(struct flash *f, struct flash_cmd *cmd,
			struct flash_fifo *fifo, struct flash_event *ev, u64 ns)
{
	if (fifo->first)
		ns = max(ns, fifo->last->done_ns);
	else
		drive_event_arm(f, ev, ns);
	cmd->done_ns = ns;
	drive_fifo_append(fifo, cmd);
}

void controller_done(struct flash *f, struct flash_cmd *cmd, u64 ns)
{
	cmd_done_at(f, cmd, &f->done_in, &f->in_event,
		    ns + f->params.write_fixed_ns);
}

static void fifo_fired(struct flash *f, struct flash_fifo *fifo,
		       struct flash_event *ev)
{
	drive_fifo_append(&f->done, drive_fifo_take(fifo));
	f->outstanding--;
	if (fifo->first)
		drive_event_arm(f, ev, fifo->first->done_ns);
}

static void out_fired(struct flash *f, struct flash_event *ev)
{
	fifo_fired(f, &f->done_out, ev);
}

static void in_fired(struct flash *f, struct flash_event *ev)
{
	fifo_fired(f, &f->done_in, ev);
}

/* Appends a transfer to a link that is free at *@free_ns; returns its end. */
static u64 link_pass(struct flash *f, u64 *free_ns, u32 pages)
{
	*free_ns = max(*free_ns, f->now) + pages * f->params.link_ns;
	return *free_ns;
}

void controller_send(struct flash *f, struct flash_cmd *cmd, u32 pages)
{
	u64 ns = link_pass(f, &f->out_free_ns, pages);

	cmd->pending -= pages;
	if (!cmd->pending)
		cmd_done_at(f, cmd, &f->done_out, &f->out_event,
			    ns + f->params.read_fixed_ns);
}

void controller_written(struct flash *f, struct flash_cmd *cmd, u32 pages)
{
	u64 ns = link_pass(f, &f->in_free_ns, pages);

	cmd->pending -= pages;
	if (!cmd->pending)
		controller_done(f, cmd, ns);
}

/* ---------------------------------------------------------------- controller */

/*
 * Returns the length of the run of @cmd that begins at physical page @at.  Its
 * pages follow each other in one flash page of the plane *@pl.
 */
static u32 run_in_flash(struct flash *f, const struct flash_cmd *cmd, u32 at,
			struct flash_plane **pl)
{
	const u32 *page_at = &f->ftl.page_at[cmd->page + cmd->issued];
	u32 left = f->params.read_pages - (at & (f->params.read_pages - 1));
	u32 most = min(left, cmd->pages - cmd->issued), n = 1;

	*pl = drive_plane(f, ftl_die_of(&f->ftl, at),
			  (at >> f->read_shift) & (f->params.planes - 1));
	while (n < most && page_at[n] == at + n)
		n++;
	return n;
}

/* Returns the length of the run of @cmd that is not in flash. */
static u32 run_in_buffer(const struct flash *f, const struct flash_cmd *cmd)
{
	const u32 *page_at = &f->ftl.page_at[cmd->page + cmd->issued];
	u32 most = min(cmd->pages - cmd->issued, (u32)FLASH_STEP_PAGES), n = 1;

	while (n < most &&
	       (page_at[n] == FTL_NONE || ftl_buffered(&f->ftl, page_at[n])))
		n++;
	return n;
}

/* Without a map, flash pages are spread over all planes in turn. */
static u32 run_in_place(struct flash *f, const struct flash_cmd *cmd,
			struct flash_plane **pl)
{
	u32 page = cmd->page + cmd->issued;
	u32 left = f->params.read_pages - (page & (f->params.read_pages - 1));
	u32 planes = flash_nr_dies(&f->params) * f->params.planes;

	*pl = &f->plane[(page >> f->read_shift) % planes];
	return min(left, cmd->pages - cmd->issued);
}

/* Returns the length of the next run of @cmd; *@pl is its plane, or NULL. */
static u32 cmd_run(struct flash *f, const struct flash_cmd *cmd,
		   struct flash_plane **pl)
{
	u32 at;

	if (f->params.in_place)
		return run_in_place(f, cmd, pl);
	at = f->ftl.page_at[cmd->page + cmd->issued];
	if (at != FTL_NONE && !ftl_buffered(&f->ftl, at))
		return run_in_flash(f, cmd, at, pl);
	*pl = NULL;
	return run_in_buffer(f, cmd);
}

/* Splits a read, or a write without a map; returns whether it is finished. */
static bool front_read(struct flash *f, struct flash_cmd *cmd)
{
	u32 budget = FLASH_STEP_PAGES;

	while (budget && f->free_ops) {
		struct flash_plane *pl;
		u32 pages = cmd_run(f, cmd, &pl);

		budget -= min(pages, budget);
		cmd->issued += pages;
		if (pl) {
			pipeline_read(f, pl, cmd, pages);
		} else {
			f->stats.buffer_hits += pages;
			controller_send(f, cmd, pages);
		}
		/* By now @cmd may be done, so only this may be asked of it. */
		if (cmd->issued == cmd->pages)
			return true;
	}
	f->front_stalled = !f->free_ops;
	return false;
}

static bool front_trim(struct flash *f, struct flash_cmd *cmd)
{
	u32 budget = FLASH_STEP_PAGES;

	if (f->params.in_place)
		cmd->issued = cmd->pages;
	for (; budget && cmd->issued < cmd->pages; budget--)
		ftl_trim(&f->ftl, cmd->page + cmd->issued++);
	return cmd->issued == cmd->pages;
}

/* Takes one step of @cmd; returns whether it was the last one here. */
static bool front_step(struct flash *f, struct flash_cmd *cmd)
{
	switch (cmd->op) {
	case FLASH_READ:
		return front_read(f, cmd);
	case FLASH_WRITE:
		return !f->params.in_place || front_read(f, cmd);
	case FLASH_TRIM:
		return front_trim(f, cmd);
	default:
		return true;
	}
}

static void front_fired(struct flash *f, struct flash_event *ev)
{
	struct flash_cmd *cmd = f->splitting;

	if (!cmd)
		cmd = f->splitting = drive_fifo_take(&f->arrived);
	if (!front_step(f, cmd)) {
		if (!f->front_stalled)
			drive_event_arm(f, ev, f->now);
		return;
	}
	f->splitting = NULL;
	if (cmd->op == FLASH_WRITE && !f->params.in_place) {
		buffer_write(f, cmd);
	} else if (cmd->op == FLASH_TRIM || cmd->op == FLASH_FLUSH) {
		controller_done(f, cmd, f->now);
	}
	if (f->arrived.first)
		drive_event_arm(f, ev, max(f->arrived.first->done_ns, f->now));
}

void controller_retry(struct flash *f)
{
	if (!f->front_stalled)
		return;
	f->front_stalled = false;
	drive_event_arm(f, &f->front, f->now);
}

static void cmd_count(struct flash *f, const struct flash_cmd *cmd)
{
	if (cmd->op == FLASH_READ)
		f->stats.read += cmd->pages;
	else if (cmd->op == FLASH_WRITE && f->params.in_place)
		f->stats.written += cmd->pages;
}

void flash_submit(struct flash *f, struct flash_cmd *cmd, u64 now)
{
	bool idle = !f->arrived.first && !f->splitting;

	port_assert(now >= f->now);
	port_assert(cmd->op == FLASH_FLUSH ||
		    (cmd->pages && cmd->page < f->pages &&
		     cmd->pages <= f->pages - cmd->page));
	cmd->submit_ns = now;
	cmd->issued = 0;
	cmd->pending = cmd->pages;
	/* In the controller, done_ns is when the controller has taken it. */
	f->front_free_ns = max(f->front_free_ns, now) + f->params.command_ns;
	cmd->done_ns = f->front_free_ns;
	cmd_count(f, cmd);
	f->outstanding++;
	drive_fifo_append(&f->arrived, cmd);
	if (idle)
		drive_event_arm(f, &f->front, cmd->done_ns);
}

void controller_init(struct flash *f)
{
	f->front.fire = front_fired;
	f->out_event.fire = out_fired;
	f->in_event.fire = in_fired;
}
