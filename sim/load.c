// SPDX-License-Identifier: GPL-2.0
/* Closed and open loops of requests: see load.h. */
#include "load.h"

#include "replay.h"

/* A part of a request, or a whole one. */
struct load_part {
	struct host_io hio;
	struct load_slot *slot;
};

struct load_slot {
	struct event event;		/* closed loop: it is due */
	struct load *load;
	struct load_slot *next;		/* in load.free or load.ready */
	struct load_part *part;		/* load.parts of them */
	struct host_whole whole;
	struct replay_request request;	/* replay: the next one */
	u32 queue;			/* closed loop */
	bool unreaped;			/* it is done, and its latency goes on */
};

struct load {
	struct host *host;
	struct load_params params;
	struct event arrival;		/* open loop */
	struct event rested;		/* closed loop: the pause is over */
	struct cpu_task task;		/* closed loop: it submits */
	struct load_slot *free;		/* open loop */
	struct load_slot *ready, **ready_end;	/* closed loop: to be submitted */
	struct load_part *part;		/* of all slots */
	struct replay *replay;		/* or NULL */
	u64 position[2];		/* in bytes, of reads and writes in order */
	u64 due_ns;			/* of the next request of a pace */
	u64 burst_start_ns;
	u64 burst_issued;		/* requests */
	u64 size_weights;		/* sum */
	u32 parts;			/* of the largest request */
	u32 outstanding;		/* requests */
	u32 least_bytes;
	bool resting;			/* a burst has ended: no submission */
	bool asleep;			/* closed loop: its task waits for a tag */
	struct load_slot slot[];
};

static bool load_over(const struct load *l, u64 ns)
{
	return l->host->stopping ||
	       (l->params.stop_ns && ns >= l->params.stop_ns);
}

/* Returns the first time from @ns on at which the load does not pause. */
static u64 load_next_on(const struct load *l, u64 ns)
{
	const struct load_params *p = &l->params;
	u64 phase;

	if (!p->off_ns)
		return ns;
	phase = (ns - p->start_ns) % (p->on_ns + p->off_ns);
	return phase < p->on_ns ? ns : ns - phase + p->on_ns + p->off_ns;
}

/* --------------------------------------------------- the request: size, place */

static u32 load_bytes(struct load *l)
{
	const struct load_params *p = &l->params;
	struct rng *rng = &l->host->rng;
	u64 chosen;
	u32 i;

	if (p->bytes_max)
		return rng_size(rng, p->bytes, p->bytes_max);
	if (!p->nr_sizes)
		return p->bytes;
	chosen = rng_between(rng, 0, l->size_weights - 1);
	for (i = 0; chosen >= p->sizes[i].weight; i++)
		chosen -= p->sizes[i].weight;
	return p->sizes[i].bytes;
}

static u32 load_range(const struct load *l, const struct flash *f)
{
	return l->params.pages ? l->params.pages : flash_pages(f);
}

static u32 pages_of(const struct flash *f, u32 bytes)
{
	return max(1U, bytes / flash_params_of(f)->page_bytes);
}

/* Returns the first page of a request at a random place. */
static u32 load_random_page(struct load *l, const struct flash *f, u32 bytes)
{
	u32 pages = pages_of(f, bytes), range = load_range(l, f);
	u32 unit = pages, places;

	if (l->params.nr_sizes)
		unit = pages_of(f, l->least_bytes);
	places = range < pages ? 1 : (range - pages) / unit + 1;
	return l->params.first_page +
	       (u32)rng_between(&l->host->rng, 0, places - 1) * unit;
}

/* Returns the first page of the next request in order. */
static u32 load_next_page(struct load *l, const struct flash *f, enum io_op op,
			  u32 bytes)
{
	u32 page_bytes = flash_params_of(f)->page_bytes;
	u64 *position = &l->position[op == IO_WRITE];
	u64 at = *position;

	if (at + bytes > (u64)load_range(l, f) * page_bytes)
		at = 0;
	*position = at + bytes;
	return l->params.first_page + (u32)(at / page_bytes);
}

/* ------------------------------------------------------------------ submission */

/* Does the latency of a request end when the task takes the completion? */
static bool load_reaps(const struct load *l)
{
	const struct load_params *p = &l->params;

	return p->reaped && !p->arrival_ns && !p->pace_ns && !p->think_ns &&
	       !p->off_ns && !p->trace;
}

static void slot_submit_parts(struct load_slot *slot, u32 queue, enum io_op op,
			      u32 bytes, u16 flags, u32 page)
{
	struct load *l = slot->load;
	const struct flash *f = l->host->params.device.flash;
	u32 most = l->params.most_bytes ? l->params.most_bytes : bytes;
	u32 nr = (bytes + most - 1) / most, i;

	slot->whole = (struct host_whole){
		.left = nr,
		.submit_ns = host_now(l->host),
		.reaped = load_reaps(l),
	};
	for (i = 0; i < nr; i++) {
		struct host_io *hio = &slot->part[i].hio;

		hio->whole = &slot->whole;
		hio->reap_ns = slot->load->params.reap_ns;
		hio->page = page;
		if (f)
			hio->page += (u32)((u64)i * most /
					   flash_params_of(f)->page_bytes);
		host_submit(hio, queue, op, min(most, bytes - i * most), flags);
		if (l->params.merge_bytes && hio->state == HOST_IO_QUEUED)
			host_merge(hio, l->params.merge_bytes);
	}
}

static void load_submit(struct load *l, struct load_slot *slot, u32 queue)
{
	const struct flash *f = l->host->params.device.flash;
	const struct load_params *p = &l->params;
	struct rng *rng = &l->host->rng;
	u32 bytes = load_bytes(l), page = 0;
	enum io_op op;
	u16 flags = 0;

	if (f && !p->in_order)
		page = load_random_page(l, f,
					p->discards ?
						(u32)cost_of_range(bytes) :
						bytes);
	if (rng_chance(rng, p->urgent_permille))
		flags |= IO_URGENT;
	if (rng_chance(rng, p->polled_permille))
		flags |= IO_POLLED;
	op = rng_chance(rng, p->write_permille) ? IO_WRITE : IO_READ;
	if (p->discards)
		op = IO_DISCARD;
	if (f && p->in_order)
		page = load_next_page(l, f, op, bytes);
	l->outstanding++;
	slot_submit_parts(slot, queue, op, bytes, flags, page);
}

static void load_submit_replayed(struct load_slot *slot)
{
	const struct flash *f = slot->load->host->params.device.flash;
	const struct replay_request *q = &slot->request;
	u32 page = 0;

	if (f)
		page = (u32)(q->offset / flash_params_of(f)->page_bytes);
	slot->load->outstanding++;
	slot_submit_parts(slot, slot->queue, q->op, q->bytes, 0, page);
}

/* Returns the slot of a part that is done, or NULL if other parts are not. */
static struct load_slot *part_done(struct host_io *hio)
{
	struct load_slot *slot = container_of(hio, struct load_part, hio)->slot;

	if (slot->whole.left)
		return NULL;
	slot->load->outstanding--;
	return slot;
}

/* ------------------------------------------------------------- closed loop */

/* Ends the burst if it is long enough. */
static void burst_issued(struct load *l)
{
	const struct load_params *p = &l->params;

	l->burst_issued++;
	if (p->burst_ios && l->burst_issued >= p->burst_ios)
		l->resting = true;
	if (p->burst_ns && host_now(l->host) - l->burst_start_ns >= p->burst_ns)
		l->resting = true;
}

/* Does a part of the request wait for a scheduler tag? */
static bool slot_awaits_tag(const struct load_slot *slot)
{
	u32 i;

	for (i = 0; i < slot->load->parts; i++)
		if (slot->part[i].hio.state == HOST_IO_NO_TAG)
			return true;
	return false;
}

/* Asks the CPU of the next request for a turn. */
static void closed_pump(struct load *l)
{
	if (l->ready && !l->resting && !l->asleep)
		cpu_want(host_cpu(l->host, l->ready->queue), &l->task);
}

/* The load has its turn: it submits a request, and asks for the next turn. */
static void closed_run(struct cpu_task *task)
{
	struct load *l = container_of(task, struct load, task);
	struct load_slot *slot = l->ready;

	/* A burst may have ended since the load asked. */
	if (!slot || l->resting || l->asleep)
		return;
	l->ready = slot->next;
	if (!l->ready)
		l->ready_end = &l->ready;
	if (slot->unreaped)
		host_reaped(l->params.flow, &slot->whole);
	slot->unreaped = false;
	if (!load_over(l, host_now(l->host))) {
		if (l->replay)
			load_submit_replayed(slot);
		else
			load_submit(l, slot, slot->queue);
		burst_issued(l);
		l->asleep = slot_awaits_tag(slot);
	}
	closed_pump(l);
}

/* The task of the load may have waited for this tag. */
static void closed_got_tag(struct host_io *hio)
{
	struct load_slot *slot = container_of(hio, struct load_part, hio)->slot;

	slot->load->asleep = slot_awaits_tag(slot);
	closed_pump(slot->load);
}

/* Returns the queue of the CPU on which the task of @l runs now. */
static u32 load_queue_now(const struct load *l)
{
	const struct load_params *p = &l->params;
	u64 moves = (host_now(l->host) - p->start_ns) / p->move_ns;

	return p->first_queue + (u32)(moves % p->nr_queues);
}

static void closed_due(struct event *ev)
{
	struct load_slot *slot = container_of(ev, struct load_slot, event);
	struct load *l = slot->load;

	if (l->params.move_ns)
		slot->queue = load_queue_now(l);
	slot->next = NULL;
	*l->ready_end = slot;
	l->ready_end = &slot->next;
	closed_pump(l);
}

static void closed_submit_at(struct load_slot *slot, u64 ns)
{
	struct load *l = slot->load;

	ns = load_next_on(l, ns);
	if (load_over(l, ns))
		return;
	event_init(&slot->event, closed_due);
	event_arm(&l->host->timeline, &slot->event, ns);
}

/* Submits @slot when the next request of the trace is due, if there is one. */
static void closed_submit_replayed(struct load_slot *slot)
{
	struct load *l = slot->load;

	if (replay_next(l->replay, &slot->request))
		closed_submit_at(slot,
				 max(l->params.start_ns + slot->request.at_ns,
				     host_now(l->host)));
	else if (replay_wrong(l->replay))
		host_fail(l->host, "%s", replay_wrong(l->replay));
}

static bool has_pace(const struct load *l)
{
	return l->params.pace_ns || l->replay;
}

/* Submits @slot when the next request of the pace is due. */
static void closed_submit_paced(struct load_slot *slot)
{
	struct load *l = slot->load;
	u64 gap = l->params.pace_ns, due = l->due_ns;

	if (l->replay) {
		closed_submit_replayed(slot);
		return;
	}
	if (l->params.pace_random)
		gap = rng_exponential(&l->host->rng, gap);
	l->due_ns += gap;
	closed_submit_at(slot, max(due, host_now(l->host)));
}

static void closed_rested(struct event *ev)
{
	struct load *l = container_of(ev, struct load, rested);

	l->resting = false;
	l->burst_issued = 0;
	l->burst_start_ns = host_now(l->host);
	closed_pump(l);
}

static void closed_done(struct host_io *hio)
{
	struct load_slot *slot = part_done(hio);
	struct load *l;
	u64 think;

	if (!slot)
		return;
	l = slot->load;
	slot->unreaped = load_reaps(l);
	think = l->params.think_ns;
	if (l->params.think_random)
		think = rng_exponential(&l->host->rng, think);
	if (l->resting && !l->outstanding)
		event_arm(&l->host->timeline, &l->rested,
			  host_now(l->host) + think);
	if (l->params.burst_ios || l->params.burst_ns)
		think = 0;
	if (has_pace(l))
		closed_submit_paced(slot);
	else
		closed_submit_at(slot, host_now(l->host) + think);
}

/* --------------------------------------------------------------- open loop */

static void open_arrive_after(struct load *l, u64 ns)
{
	ns = load_next_on(l, ns + rng_exponential(&l->host->rng,
						  l->params.arrival_ns));
	if (load_over(l, ns))
		return;
	event_arm(&l->host->timeline, &l->arrival, ns);
}

static void open_arrive(struct event *ev)
{
	struct load *l = container_of(ev, struct load, arrival);
	struct load_slot *slot = l->free;
	u64 queue;

	if (load_over(l, host_now(l->host)))
		return;
	if (slot) {
		l->free = slot->next;
		queue = rng_between(&l->host->rng, 0, l->params.nr_queues - 1);
		load_submit(l, slot, l->params.first_queue + (u32)queue);
	}
	open_arrive_after(l, host_now(l->host));
}

static void open_free(struct load_slot *slot)
{
	slot->next = slot->load->free;
	slot->load->free = slot;
}

static void open_done(struct host_io *hio)
{
	struct load_slot *slot = part_done(hio);

	if (slot)
		open_free(slot);
}

/* ------------------------------------------------- creation and destruction */

static void slot_init(struct load *l, u32 index)
{
	struct load_slot *slot = &l->slot[index];
	u32 i;

	slot->load = l;
	slot->queue = l->params.first_queue + index % l->params.nr_queues;
	slot->part = l->part + (size_t)index * l->parts;
	for (i = 0; i < l->parts; i++) {
		slot->part[i].slot = slot;
		slot->part[i].hio.flow = l->params.flow;
		slot->part[i].hio.task = l->params.task;
		slot->part[i].hio.done = l->params.arrival_ns ? open_done :
								closed_done;
		if (!l->params.arrival_ns)
			slot->part[i].hio.got_tag = closed_got_tag;
	}
}

static void load_start(struct load *l)
{
	const struct load_params *p = &l->params;
	u32 i;

	for (i = 0; i < p->depth; i++) {
		struct load_slot *slot = &l->slot[i];

		slot_init(l, i);
		if (p->arrival_ns)
			open_free(slot);
		else if (has_pace(l))
			closed_submit_paced(slot);
		else
			closed_submit_at(slot, p->start_ns);
	}
	if (p->arrival_ns)
		open_arrive_after(l, p->start_ns);
}

/* Finds the least and the largest size, and the parts of a request. */
static void load_measure(struct load *l)
{
	const struct load_params *p = &l->params;
	u32 most = max(p->bytes, p->bytes_max), i;

	l->least_bytes = p->bytes;
	for (i = 0; i < p->nr_sizes; i++) {
		u32 bytes = p->sizes[i].bytes;

		l->least_bytes = i ? min(l->least_bytes, bytes) : bytes;
		most = i ? max(most, bytes) : bytes;
		l->size_weights += p->sizes[i].weight;
	}
	l->parts = p->most_bytes ? (most + p->most_bytes - 1) / p->most_bytes :
				   1;
}

/* Opens the trace of a replay.  False if memory is short. */
static bool load_open_trace(struct load *l)
{
	const struct load_params *p = &l->params;
	const struct flash *f = l->host->params.device.flash;
	u64 end = 0;

	if (!p->trace)
		return true;
	if (f)
		end = (u64)flash_pages(f) * flash_params_of(f)->page_bytes;
	l->replay = replay_open(p->trace, p->bytes, end);
	return l->replay;
}

struct load *load_create(struct host *h, const struct load_params *params)
{
	struct load *l =
		port_zalloc(sizeof(*l) + params->depth * sizeof(l->slot[0]));

	if (!l)
		return NULL;
	l->host = h;
	l->params = *params;
	l->params.nr_queues = max(params->nr_queues, 1U);
	l->params.start_ns = max(params->start_ns, host_now(h));
	l->due_ns = l->params.start_ns;
	l->burst_start_ns = l->params.start_ns;
	l->ready_end = &l->ready;
	event_init(&l->rested, closed_rested);
	event_init(&l->arrival, open_arrive);
	l->task.run = closed_run;
	load_measure(l);
	l->part = port_zalloc((size_t)params->depth * l->parts *
			      sizeof(l->part[0]));
	if (!l->part || !load_open_trace(l)) {
		load_destroy(l);
		return NULL;
	}
	load_start(l);
	return l;
}

void load_destroy(struct load *l)
{
	if (!l)
		return;
	replay_close(l->replay);
	port_free(l->part);
	port_free(l);
}

void load_stop(struct load *l)
{
	l->params.stop_ns = max(host_now(l->host), 1ULL);
}
