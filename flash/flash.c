// SPDX-License-Identifier: GPL-2.0
#include "drive.h"

/* ------------------------------------------------------------------- events */

static void event_fire(struct flash *f)
{
	struct flash_event *ev =
		container_of(heap_pop(&f->events), struct flash_event, node);

	f->now = ev->node.key;
	ev->armed = false;
	ev->fire(f, ev);
}

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
void controller_taken(struct flash *f, struct flash_cmd *cmd, u32 pages)
{
	u64 ns = link_pass(f, &f->in_free_ns, pages);

	cmd->pending -= pages;
	if (!cmd->pending)
		controller_done(f, cmd, ns);
}

/* ------------------------------------------------------------------ channels */

static void channel_start(struct flash *f, struct flash_channel *ch)
{
	drive_event_arm(f, &ch->event, f->now + ch->first->ns);
}

static void channel_transfer(struct flash *f, struct flash_channel *ch,
			     struct flash_transfer *t, u32 pages)
{
	t->ns = pages * f->params.channel_ns;
	t->next = NULL;
	if (ch->first) {
		ch->last->next = t;
		ch->last = t;
		return;
	}
	ch->first = ch->last = t;
	channel_start(f, ch);
}

static void channel_fired(struct flash *f, struct flash_event *ev)
{
	struct flash_channel *ch =
		container_of(ev, struct flash_channel, event);
	struct flash_transfer *t = ch->first;

	ch->first = t->next;
	if (ch->first)
		channel_start(f, ch);
	t->done(f, t);
}

static struct flash_channel *die_channel(struct flash *f,
					 const struct flash_die *d)
{
	return &f->channel[d->number % f->params.channels];
}

/* -------------------------------------------------------------------- planes */

static struct flash_read *op_take(struct flash *f)
{
	struct flash_read *op = f->free_ops;

	if (op)
		f->free_ops = op->next;
	return op;
}

static void op_give(struct flash *f, struct flash_read *op)
{
	op->next = f->free_ops;
	f->free_ops = op;
	controller_retry(f);
}

static void plane_append(struct flash_plane *pl, struct flash_read *op)
{
	op->next = NULL;
	if (pl->first)
		pl->last->next = op;
	else
		pl->first = op;
	pl->last = op;
}

static bool op_writes(const struct flash_read *op)
{
	return op->cmd->op == FLASH_WRITE;
}

static void owner_reads(struct flash *f, const struct flash_read *op)
{
	const struct flash_params *p = &f->params;
	u64 ns = p->read_ns + op->pages * p->channel_ns;

	if (p->in_place)
		return;
	f->spent.read_ns += ns;
	owner_busy(&f->ftl.owners, owner_tag(&f->ftl.owners, op->cmd->owner),
		   ns);
}

static void plane_start(struct flash *f, struct flash_plane *pl)
{
	u64 ns = op_writes(pl->first) ? f->params.program_ns :
					f->params.read_ns;

	owner_reads(f, pl->first);

	pl->busy = true;
	f->die[pl->die].busy_planes++;
	f->stats.read_busy_ns += ns;
	drive_event_arm(f, &pl->event, f->now + ns);
}

/* The plane's register has been emptied: it is free, and so is the op. */
static void plane_done(struct flash *f, struct flash_plane *pl)
{
	struct flash_read *op = pl->first;

	pl->first = op->next;
	pl->busy = false;
	f->die[pl->die].busy_planes--;
	if (op_writes(op))
		controller_taken(f, op->cmd, op->pages);
	else
		controller_send(f, op->cmd, op->pages);
	op_give(f, op);
	pipeline_run_die(f, &f->die[pl->die]);
}

static void plane_transferred(struct flash *f, struct flash_transfer *t)
{
	plane_done(f, container_of(t, struct flash_plane, transfer));
}

static void plane_fired(struct flash *f, struct flash_event *ev)
{
	struct flash_plane *pl = container_of(ev, struct flash_plane, event);

	if (f->params.in_place)
		plane_done(f, pl);
	else
		channel_transfer(f, die_channel(f, &f->die[pl->die]),
				 &pl->transfer, pl->first->pages);
}

/* ---------------------------------------------------------------------- dies */

static bool die_program_waits(const struct flash *f, const struct flash_die *d)
{
	return f->ftl.die[d->number].stream[STREAM_COMMANDS].units;
}

static enum ftl_gc_step die_gc_step(const struct flash *f,
				    const struct flash_die *d)
{
	return ftl_gc_step(&f->ftl, d->number);
}

/* Does anything wait for all its planes? */
static bool die_wanted(const struct flash *f, const struct flash_die *d)
{
	return !f->params.in_place &&
	       (die_program_waits(f, d) || die_gc_step(f, d) != GC_NOTHING);
}

static void die_work_for(struct flash *f, struct flash_die *d,
			 enum flash_die_work work, u64 ns)
{
	d->work = (u8)work;
	if (work == DIE_PROGRAM) {
		f->stats.program_busy_ns += ns;
	} else {
		f->stats.gc_busy_ns += ns;
		f->owed_ns += ns * f->params.planes;
	}
	drive_event_arm(f, &d->event, f->now + ns);
}

static void owe_transfer(struct flash *f, u32 pages)
{
	f->owed_ns += pages * f->params.channel_ns * f->params.planes;
}

/* The data of a unit goes to the die first: see die_transferred(). */
static void die_program(struct flash *f, struct flash_die *d,
			enum flash_die_work work)
{
	d->work = (u8)work;
	if (work == DIE_GC_PROGRAM)
		owe_transfer(f, f->params.program_pages);
	channel_transfer(f, die_channel(f, d), &d->transfer,
			 f->params.program_pages);
}

static void die_collect(struct flash *f, struct flash_die *d,
			enum ftl_gc_step step)
{
	switch (step) {
	case GC_READ:
		d->row_pages = ftl_gc_read(&f->ftl, d->number);
		if (d->row_pages)
			die_work_for(f, d, DIE_GC_READ, f->params.read_ns);
		else
			die_work_for(f, d, DIE_GC_SCAN, 0);
		break;
	case GC_PROGRAM:
		die_program(f, d, DIE_GC_PROGRAM);
		break;
	case GC_ERASE:
		die_work_for(f, d, DIE_GC_ERASE, f->params.erase_ns);
		break;
	case GC_NOTHING:
		break;
	}
}

/* Something for the whole die, which is free. */
static void die_start(struct flash *f, struct flash_die *d)
{
	enum ftl_gc_step step = die_gc_step(f, d);
	bool program = die_program_waits(f, d);

	d->passed = 0;
	if (step != GC_NOTHING &&
	    (!program || d->gc_next || ftl_gc_urgent(&f->ftl, d->number))) {
		d->gc_next = false;
		die_collect(f, d, step);
		return;
	}
	d->gc_next = true;
	die_program(f, d, DIE_PROGRAM);
}

static void die_start_reads(struct flash *f, struct flash_die *d, bool wanted)
{
	u32 i;

	for (i = 0; i < f->params.planes; i++) {
		struct flash_plane *pl = drive_plane(f, d->number, i);

		if (pl->busy || !pl->first)
			continue;
		if (wanted && d->passed >= f->params.read_burst)
			return;
		d->passed += wanted;
		plane_start(f, pl);
	}
}

void pipeline_run_die(struct flash *f, struct flash_die *d)
{
	bool wanted;

	if (d->work != DIE_IDLE)
		return;
	wanted = die_wanted(f, d);
	die_start_reads(f, d, wanted);
	if (wanted && !d->busy_planes)
		die_start(f, d);
}

static void die_transferred(struct flash *f, struct flash_transfer *t)
{
	struct flash_die *d = container_of(t, struct flash_die, transfer);

	if (d->work == DIE_GC_READ) {
		ftl_gc_move(&f->ftl, d->number);
		d->work = DIE_IDLE;
		pipeline_run_die(f, d);
		return;
	}
	die_work_for(f, d, d->work, f->params.program_ns);
}

static void die_programmed(struct flash *f, struct flash_die *d)
{
	ftl_programmed(&f->ftl, d->number, STREAM_COMMANDS);
	f->stats.programs++;
	f->buffered -= f->params.program_pages;
}

static void die_fired(struct flash *f, struct flash_event *ev)
{
	struct flash_die *d = container_of(ev, struct flash_die, event);
	u8 work = d->work;

	if (work == DIE_GC_READ) {
		owe_transfer(f, d->row_pages);
		channel_transfer(f, die_channel(f, d), &d->transfer,
				 d->row_pages);
		return;
	}
	d->work = DIE_IDLE;
	if (work == DIE_PROGRAM) {
		die_programmed(f, d);
	} else if (work == DIE_GC_PROGRAM) {
		ftl_programmed(&f->ftl, d->number, STREAM_GC);
		f->stats.programs++;
	} else if (work == DIE_GC_ERASE) {
		ftl_gc_erased(&f->ftl, d->number);
	}
	pipeline_run_die(f, d);
	if (work == DIE_PROGRAM || work == DIE_GC_ERASE)
		buffer_resume(f);
}

void pipeline_read(struct flash *f, struct flash_plane *pl,
		   struct flash_cmd *cmd, u32 pages)
{
	struct flash_read *op = op_take(f);

	op->cmd = cmd;
	op->pages = pages;
	plane_append(pl, op);
	pipeline_run_die(f, &f->die[pl->die]);
}

void pipeline_init(struct flash *f)
{
	u32 i;

	for (i = 0; i < f->params.channels; i++)
		f->channel[i].event.fire = channel_fired;
	for (i = 0; i < flash_nr_dies(&f->params); i++) {
		f->die[i].number = i;
		f->die[i].transfer.done = die_transferred;
		f->die[i].event.fire = die_fired;
	}
	for (i = 0; i < drive_nr_planes(&f->params); i++) {
		f->plane[i].die = i / f->params.planes;
		f->plane[i].transfer.done = plane_transferred;
		f->plane[i].event.fire = plane_fired;
	}
	for (i = FLASH_OPS; i-- > 0;) {
		f->ops[i].next = f->free_ops;
		f->free_ops = &f->ops[i];
	}
}

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
static void link_in_place(struct flash *f)
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
	link_in_place(f);
}

void buffer_resume(struct flash *f)
{
	if (f->link_stalled)
		link_in_place(f);
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

/* ------------------------------------------------------------- for the host */

struct flash_cmd *flash_advance(struct flash *f, u64 now, u32 budget)
{
	struct flash_cmd *done;

	for (; flash_next_ns(f) <= now; budget--) {
		if (!budget)
			break;
		event_fire(f);
	}
	if (flash_next_ns(f) > now)
		f->now = max(f->now, now);
	done = f->done.first;
	f->done.first = NULL;
	return done;
}

u64 flash_next_ns(const struct flash *f)
{
	const struct heap_node *top = heap_top(&f->events);

	return top ? top->key : FLASH_NEVER;
}

u32 flash_outstanding(const struct flash *f)
{
	return f->outstanding;
}

void flash_retime(struct flash *f, const struct flash_params *p)
{
	f->params.command_ns = p->command_ns;
	f->params.read_fixed_ns = p->read_fixed_ns;
	f->params.write_fixed_ns = p->write_fixed_ns;
	f->params.link_ns = p->link_ns;
	f->params.channel_ns = p->channel_ns;
	f->params.read_ns = p->read_ns;
	f->params.program_ns = p->program_ns;
	f->params.erase_ns = p->erase_ns;
}

const struct flash_params *flash_params_of(const struct flash *f)
{
	return &f->params;
}

u32 flash_pages(const struct flash *f)
{
	return f->pages;
}

struct flash_stats flash_stats(const struct flash *f)
{
	struct flash_stats stats = f->stats;

	stats.copied = f->ftl.copied;
	stats.erases = f->ftl.erases;
	stats.trimmed = f->ftl.trimmed;
	return stats;
}

u64 flash_amplification_permille(u64 written, u64 copied)
{
	return written ? div64_u64((written + copied) * 1000, written) : 1000;
}

bool flash_usage(const struct flash *f, u32 owner, struct flash_usage *usage)
{
	*usage = (struct flash_usage){ 0 };
	return !f->params.in_place && owner_usage(&f->ftl.owners, owner, usage);
}

bool flash_host_usage(const struct flash *f, u32 owner,
		      struct flash_usage *usage)
{
	*usage = (struct flash_usage){ 0 };
	return f->mode == FLASH_FTL_HOST && flash_usage(f, owner, usage);
}

bool flash_host_spent(const struct flash *f, struct flash_spent *spent)
{
	bool known = f->mode == FLASH_FTL_HOST && !f->params.in_place;

	*spent = known ? f->spent : (struct flash_spent){ 0 };
	if (!known)
		return false;
	spent->planes = drive_nr_planes(&f->params);
	spent->busy_ns = f->stats.read_busy_ns +
			 f->params.planes * (f->stats.program_busy_ns +
					     f->stats.gc_busy_ns);
	return true;
}

void flash_owner_move(struct flash *f, u32 from, u32 to)
{
	if (!f->params.in_place)
		owner_move(&f->ftl.owners, from, to);
}

void flash_set_watch(struct flash *f, const struct flash_watch *watch)
{
	f->ftl.watch = watch;
}

u32 flash_where(const struct flash *f, u32 page)
{
	return f->params.in_place ? FLASH_NOWHERE : f->ftl.page_at[page];
}

/* --------------------------------------------------------------- life of it */

const char *flash_config_wrong(const struct flash_config *c)
{
	const char *wrong = flash_params_wrong(c->params);
	u64 pages, physical;

	if (wrong)
		return wrong;
	if (c->bytes & (c->params->page_bytes - 1))
		return "the size must be a multiple of the model's page";
	pages = div64_u64(c->bytes, c->params->page_bytes);
	if (pages <
	    (u64)flash_nr_dies(c->params) * flash_block_pages(c->params))
		return "the size must be at least one erase block for each die";
	if (pages > FLASH_PAGES_MAX)
		return "the size must be at most 2^31 pages";
	physical = (u64)flash_nr_dies(c->params) *
		   ftl_die_blocks(c->params, pages) *
		   flash_block_pages(c->params);
	if (physical > FLASH_PAGES_MAX)
		return "the size with the spare flash must be at most 2^31 pages";
	if (c->owners > OWNERS_MAX)
		return "there can be at most 65534 owners";
	return NULL;
}

u64 flash_memory_bytes(const struct flash_config *c)
{
	const struct flash_params *p = c->params;

	return sizeof(struct flash) + (p->in_place ? 0 : ftl_bytes(c)) +
	       p->channels * sizeof(struct flash_channel) +
	       flash_nr_dies(p) * sizeof(struct flash_die) +
	       drive_nr_planes(p) * sizeof(struct flash_plane) +
	       FLASH_OPS * sizeof(struct flash_read);
}

static bool flash_alloc(struct flash *f)
{
	const struct flash_params *p = &f->params;

	f->channel = port_zalloc(p->channels * sizeof(*f->channel));
	f->die = port_zalloc(flash_nr_dies(p) * sizeof(*f->die));
	f->plane = port_zalloc(drive_nr_planes(p) * sizeof(*f->plane));
	f->ops = port_zalloc(FLASH_OPS * sizeof(*f->ops));
	return f->channel && f->die && f->plane && f->ops;
}

static void flash_free(struct flash *f)
{
	port_free(f->ops);
	port_free(f->plane);
	port_free(f->die);
	port_free(f->channel);
	port_free(f);
}

static void flash_init(struct flash *f)
{
	heap_init(&f->events);
	f->read_shift = port_ffs64(f->params.read_pages);
	controller_init(f);
	buffer_init(f);
	pipeline_init(f);
}

struct flash *flash_create(const struct flash_config *c)
{
	struct flash *f;

	if (flash_config_wrong(c))
		return NULL;
	f = port_zalloc(sizeof(*f));
	if (!f)
		return NULL;
	f->params = *c->params;
	f->mode = c->ftl;
	f->pages = (u32)div64_u64(c->bytes, c->params->page_bytes);
	if (!flash_alloc(f))
		goto free;
	if (!c->params->in_place && ftl_init(&f->ftl, c))
		goto free;
	flash_init(f);
	return f;
free:
	flash_free(f);
	return NULL;
}

void flash_destroy(struct flash *f)
{
	port_assert(!f->outstanding);
	if (!f->params.in_place)
		ftl_exit(&f->ftl);
	flash_free(f);
}
