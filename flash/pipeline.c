// SPDX-License-Identifier: GPL-2.0
/*
 * pipeline - channels, planes and dies: reads, programs, erases and GC in time
 *
 * A *channel* carries one transfer at a time, in the order in which they were
 * requested, channel_ns a page.  Die d is on channel d % channels.
 *
 * A *plane* reads one flash page in read_ns.  A read of a command takes more or
 * less by read_spread_permille.  Then the pages wanted of it go over the
 * channel.  They stay in the plane's register until they have left, so the next
 * read of this plane starts only then.
 *
 * A *die* does four things with all its planes at once:
 *   - A program sends a unit over the channel, then takes program_ns.
 *   - A read for GC takes read_ns for a row; then its valid pages go over the
 *     channel and are placed again (ftl_gc_copy()).
 *   - A program of a unit that GC has filled takes as long as the first.
 *   - An erase takes erase_ns.
 *
 * While such work waits, at most read_burst more reads start on the die.  When
 * its planes have ended, the work starts.  A program of commands and a step of
 * GC take turns if both wait.  While the die has no more than its last free
 * block, GC goes first.
 *
 * Example, in us, with the numbers of tests/flash/fixture.c (read 50, channel
 * 10 a page, program 500, read_burst 2).  Six reads of one plane begin at 1,
 * and a unit of 8 pages for its die is full at 15.  The read under way and two
 * more end at 61, 121 and 181.  The unit has the channel until 261 and is
 * programmed until 761.  The fourth read leaves the plane at 821.
 *
 * If the driver keeps the map (FLASH_FTL_HOST), the queues of the planes are its
 * own.  There the reads of commands with cmd.ahead go before all others that
 * have not started, in the order of their arrival.
 *
 * Time for owners.  A read is charged to the owner of its command here.
 * Planes' time for GC is added to owed_ns, and buffer.c charges it to pages
 * written.
 *
 * Limits.  A program or an erase is never suspended for a read.  A drive
 * without a map (params.in_place) uses planes alone: no channel, no work of a
 * die.
 *
 * Tested by tests/flash/timing.c and gc.c.
 */
#include "drive.h"
#include "random.h"

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

/* Puts @op behind @before, or first if that is NULL. */
static void plane_insert(struct flash_plane *pl, struct flash_read *before,
			 struct flash_read *op)
{
	struct flash_read **link = before ? &before->next : &pl->first;

	op->next = *link;
	*link = op;
	if (!op->next)
		pl->last = op;
}

/* Returns the last of those that are being read or go ahead, or NULL. */
static struct flash_read *plane_ahead(const struct flash_plane *pl)
{
	struct flash_read *op = pl->busy ? pl->first : NULL;
	struct flash_read *next = op ? op->next : pl->first;

	for (; next && next->cmd->ahead; next = next->next)
		op = next;
	return op;
}

static void plane_queue(const struct flash *f, struct flash_plane *pl,
			struct flash_read *op)
{
	if (f->mode == FLASH_FTL_HOST && op->cmd->ahead)
		plane_insert(pl, plane_ahead(pl), op);
	else
		plane_insert(pl, pl->first ? pl->last : NULL, op);
}

static bool op_writes(const struct flash_read *op)
{
	return op->cmd->op == FLASH_WRITE;
}

/*
 * The time of a read of a plane.  Its product with 2^16 has 64 bits: model.c
 * bounds read_ns, and a host stretches it by 10^5 at most.
 */
static u64 plane_read_ns(struct flash *f)
{
	const struct flash_params *p = &f->params;
	u64 half, at;

	if (!p->read_spread_permille)
		return p->read_ns;
	half = div64_u64(p->read_ns * p->read_spread_permille, 1000);
	at = flash_random(&f->random) >> 48;
	return p->read_ns - half + ((2 * half * at) >> 16);
}

/*
 * Charges a flash read of @read_ns, with its transfer, to the owner of its
 * command.
 */
static void owner_reads(struct flash *f, const struct flash_read *op,
			u64 read_ns)
{
	u64 ns = read_ns + op->pages * f->params.channel_ns;

	if (f->params.in_place)
		return;
	f->spent.read_ns += ns;
	owner_busy(&f->ftl.owners, owner_tag(&f->ftl.owners, op->cmd->owner),
		   ns);
}

static void plane_start(struct flash *f, struct flash_plane *pl)
{
	u64 ns = op_writes(pl->first) ? f->params.program_ns : plane_read_ns(f);

	owner_reads(f, pl->first, ns);
	pl->busy = true;
	f->die[pl->die].busy_planes++;
	f->stats.read_busy_ns += ns;
	drive_event_arm(f, &pl->event, f->now + ns);
}

/* The plane's register is empty: plane and op are free. */
static void plane_done(struct flash *f, struct flash_plane *pl)
{
	struct flash_read *op = pl->first;

	pl->first = op->next;
	pl->busy = false;
	f->die[pl->die].busy_planes--;
	if (op_writes(op))
		controller_written(f, op->cmd, op->pages);
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

/* Returns whether work for all planes of @d waits. */
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

/* A transfer for GC keeps all planes of a die from other work. */
static void owe_transfer(struct flash *f, u32 pages)
{
	f->owed_ns += pages * f->params.channel_ns * f->params.planes;
}

/* The unit goes over the channel; die_transferred() then starts the program. */
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

/* Starts the work that waits for all planes.  They are free. */
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

/* Starts a read on each free plane.  @wanted: work for all planes waits. */
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

/* A row that GC has read is in the controller, or a unit is in the die. */
static void die_transferred(struct flash *f, struct flash_transfer *t)
{
	struct flash_die *d = container_of(t, struct flash_die, transfer);

	if (d->work == DIE_GC_READ) {
		ftl_gc_copy(&f->ftl, d->number);
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
	plane_queue(f, pl, op);
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
