// SPDX-License-Identifier: GPL-2.0
#include "drive.h"

/* ---------------------------------------------------------------- completion */

/* Each list is in order of time, also when flash_retime() shortens a delay. */
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

/* One after another over a link that is free at *@free_ns; when it ends. */
static u64 link_pass(struct flash *f, u64 *free_ns, u32 pages)
{
	*free_ns = max(*free_ns, f->now) + pages * f->params.link_ns;
	return *free_ns;
}

/* @pages of a read go to the host. */
void controller_send(struct flash *f, struct flash_cmd *cmd, u32 pages)
{
	u64 ns = link_pass(f, &f->out_free_ns, pages);

	cmd->pending -= pages;
	if (!cmd->pending)
		cmd_done_at(f, cmd, &f->done_out, &f->out_event,
			    ns + f->params.read_fixed_ns);
}

/* @pages of a write have been taken in place. */
void controller_written(struct flash *f, struct flash_cmd *cmd, u32 pages)
{
	u64 ns = link_pass(f, &f->in_free_ns, pages);

	cmd->pending -= pages;
	if (!cmd->pending)
		controller_done(f, cmd, ns);
}

/* ---------------------------------------------------------------- controller */

/* Of @cmd's next pages: how many are one flash read, and of which plane. */
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

/* How many of them are not in flash. */
static u32 run_in_buffer(const struct flash *f, const struct flash_cmd *cmd)
{
	const u32 *page_at = &f->ftl.page_at[cmd->page + cmd->issued];
	u32 most = min(cmd->pages - cmd->issued, (u32)FLASH_STEP_PAGES), n = 1;

	while (n < most &&
	       (page_at[n] == FTL_NONE || ftl_buffered(&f->ftl, page_at[n])))
		n++;
	return n;
}

static u32 run_in_place(struct flash *f, const struct flash_cmd *cmd,
			struct flash_plane **pl)
{
	u32 page = cmd->page + cmd->issued;
	u32 left = f->params.read_pages - (page & (f->params.read_pages - 1));
	u32 planes = flash_nr_dies(&f->params) * f->params.planes;

	*pl = &f->plane[(page >> f->read_shift) % planes];
	return min(left, cmd->pages - cmd->issued);
}

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

/* A step of a read, or of a write in place; true: all of it is under way. */
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
		/* It may be in the list of those done by now. */
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

/* One step of the first command; true: the controller is done with it. */
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
	/* Until it is done: when the controller is done with it. */
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
