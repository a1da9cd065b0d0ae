// SPDX-License-Identifier: GPL-2.0
/* The block device of a simulated host: see device.h. */
#include "device.h"

enum {
	FLASH_EVENTS	= 64,	/* budget of each flash_advance() */
};

/* The time that a device of fixed service time takes for a command. */
static u64 device_service_ns(const struct device_params *p, bool write,
			     u32 bytes)
{
	u64 ns = p->base_ns + p->ns_per_kib * bytes / 1024;

	return write ? ns * max(p->write_times, 1U) : ns;
}

static void device_accept(struct device *d, struct device_cmd *cmd);

/* ------------------------------------------------------------- arbitration */

/* The turn of @sq, which has commands, comes after all others. */
static void turn_append(struct device *d, struct submission_queue *sq)
{
	sq->next = NULL;
	if (d->turn)
		d->turn_last->next = sq;
	else
		d->turn = sq;
	d->turn_last = sq;
}

static void queue_append(struct device *d, struct device_cmd *cmd)
{
	struct submission_queue *sq = cmd->queue;

	cmd->next = NULL;
	if (sq->head) {
		sq->last->next = cmd;
	} else {
		sq->head = cmd;
		turn_append(d, sq);
	}
	sq->last = cmd;
}

/*
 * Fetches one command of each queue in turn while there is room.  A queue gets
 * its next turn not before the fetch that follows its own: a queue that gets a
 * command in between goes first.
 */
static void device_fetch(struct device *d)
{
	while (d->inside < d->params.fetch) {
		struct submission_queue *sq;
		struct device_cmd *cmd;

		if (d->had_turn)
			turn_append(d, d->had_turn);
		d->had_turn = NULL;
		if (!d->turn)
			return;
		sq = d->turn;
		cmd = sq->head;
		d->turn = sq->next;
		sq->head = cmd->next;
		d->had_turn = sq->head ? sq : NULL;
		d->inside++;
		device_accept(d, cmd);
	}
}

/* ----------------------------------------------------------------- answers */

static void answers_tell(struct completion_queue *cq)
{
	struct device_cmd *cmd = cq->head;

	cq->head = NULL;
	cq->nr = 0;
	while (cmd) {
		struct device_cmd *next = cmd->next;

		cq->device->done(cmd);
		cmd = next;
	}
}

static void answers_arm(struct completion_queue *cq)
{
	struct device *d = cq->device;

	event_arm(d->timeline, &cq->due, max(cq->due_ns, d->stalled_ns));
}

/* The event may be of commands that were told early, or the device stalls. */
static void answers_due(struct event *ev)
{
	struct completion_queue *cq =
		container_of(ev, struct completion_queue, due);
	struct device *d = cq->device;

	if (!cq->nr)
		return;
	if (d->timeline->now < max(cq->due_ns, d->stalled_ns))
		answers_arm(cq);
	else
		answers_tell(cq);
}

/* @cmd is done. */
static void device_answer(struct device *d, struct device_cmd *cmd)
{
	struct completion_queue *cq;

	if (!d->params.answers) {
		d->done(cmd);
		return;
	}
	cq = &cmd->queue->completions;
	cmd->next = NULL;
	if (cq->nr) {
		cq->last->next = cmd;
	} else {
		cq->device = d;
		cq->head = cmd;
		cq->due_ns = d->timeline->now + d->params.answers_ns;
	}
	cq->last = cmd;
	if (++cq->nr == d->params.answers) {
		answers_tell(cq);
	} else if (!cq->due.armed) {
		event_init(&cq->due, answers_due);
		answers_arm(cq);
	}
}

static void device_finish(struct device *d, struct device_cmd *cmd)
{
	if (!d->params.fetch) {
		device_answer(d, cmd);
		return;
	}
	d->inside--;
	device_answer(d, cmd);
	device_fetch(d);
}

/* ------------------------------------------------------- a drive of flash/ */

/* Arms the event of the drive for flash_next_ns(). */
static void flash_expect(struct device *d)
{
	u64 ns = flash_next_ns(d->params.flash);

	if (ns == FLASH_NEVER)
		return;
	ns = max(ns, d->stalled_ns);
	if (!d->flash_due.armed)
		event_arm(d->timeline, &d->flash_due, ns);
	else if (ns < d->flash_due.at_ns)
		event_hasten(d->timeline, &d->flash_due, ns);
}

static void flash_due(struct event *ev)
{
	struct device *d = container_of(ev, struct device, flash_due);
	struct flash_cmd *done = NULL;

	if (d->timeline->now >= d->stalled_ns)
		done = flash_advance(d->params.flash, d->timeline->now,
				     FLASH_EVENTS);
	while (done) {
		struct flash_cmd *next = done->next;

		device_finish(d, container_of(done, struct device_cmd, flash));
		done = next;
	}
	flash_expect(d);
}

/* A command that would reach beyond the end is shifted to end there. */
static void flash_start(struct device *d, struct device_cmd *cmd)
{
	struct flash *f = d->params.flash;
	u32 page_bytes = flash_params_of(f)->page_bytes;
	u32 pages = max(1U, (cmd->bytes + page_bytes - 1) / page_bytes);

	port_assert(pages <= flash_pages(f));
	cmd->flash = (struct flash_cmd){
		.op = cmd->write ? FLASH_WRITE : FLASH_READ,
		.page = min(cmd->page, flash_pages(f) - pages),
		.pages = pages,
		.owner = cmd->owner,
		.ahead = cmd->ahead,
	};
	flash_submit(f, &cmd->flash, d->timeline->now);
	flash_expect(d);
}

/* ------------------------------------------------------- fixed service time */

static void device_serve(struct device *d, struct device_cmd *cmd)
{
	u64 ns = device_service_ns(&d->params, cmd->write, cmd->bytes);

	d->busy++;
	d->served_ns += ns;
	event_arm(d->timeline, &cmd->event, d->timeline->now + ns);
}

static void device_served(struct event *ev)
{
	struct device_cmd *cmd = container_of(ev, struct device_cmd, event);
	struct device *d = cmd->device;
	struct device_cmd *next = d->head;

	if (d->timeline->now < d->stalled_ns) {
		event_arm(d->timeline, &cmd->event, d->stalled_ns);
		return;
	}
	d->busy--;
	if (next) {
		d->head = next->next;
		if (!d->head)
			d->tail = &d->head;
		device_serve(d, next);
	}
	device_finish(d, cmd);
}

/* @cmd is inside the device from now on. */
static void device_accept(struct device *d, struct device_cmd *cmd)
{
	cmd->next = NULL;
	if (d->params.flash) {
		flash_start(d, cmd);
		return;
	}
	if (d->busy < d->params.slots) {
		device_serve(d, cmd);
		return;
	}
	*d->tail = cmd;
	d->tail = &cmd->next;
}

void device_start(struct device *d, struct device_cmd *cmd, bool write,
		  u32 bytes)
{
	event_init(&cmd->event, device_served);
	cmd->device = d;
	cmd->write = write;
	cmd->bytes = bytes;
	d->commands++;
	if (!d->params.fetch) {
		device_accept(d, cmd);
		return;
	}
	queue_append(d, cmd);
	device_fetch(d);
}

void device_stall(struct device *d, u64 until_ns)
{
	d->stalled_ns = max(d->stalled_ns, until_ns);
}

void device_init(struct device *d, struct timeline *t,
		 const struct device_params *params,
		 void (*done)(struct device_cmd *cmd))
{
	*d = (struct device){ .timeline = t, .params = *params, .done = done };
	d->tail = &d->head;
	event_init(&d->flash_due, flash_due);
}
