// SPDX-License-Identifier: GPL-2.0
/* Closed and open loops of requests: see load.h. */
#include "load.h"

struct load_slot {
	struct host_io hio;
	struct load *load;
	struct load_slot *next_free;	/* open loop */
	u32 queue;			/* closed loop */
};

struct load {
	struct host *host;
	struct load_params params;
	struct event arrival;		/* open loop */
	struct load_slot *free;
	u64 placed;			/* requests */
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

/* Returns the first page of the next request. */
static u32 load_place(struct load *l, const struct flash *f, u32 bytes)
{
	u32 pages = max(1U, bytes / flash_params_of(f)->page_bytes);
	u32 range = l->params.pages ? l->params.pages : flash_pages(f);
	u32 places = max(1U, range / pages);
	u64 place = l->params.in_order ?
			    l->placed++ % places :
			    rng_between(&l->host->rng, 0, places - 1);

	return l->params.first_page + (u32)place * pages;
}

static void load_submit(struct load *l, struct load_slot *slot, u32 queue)
{
	const struct load_params *p = &l->params;
	struct rng *rng = &l->host->rng;
	u32 bytes = p->bytes;
	u8 flags = 0;

	if (p->bytes_max)
		bytes = rng_size(rng, p->bytes, p->bytes_max);
	if (l->host->params.device.flash)
		slot->hio.page =
			load_place(l, l->host->params.device.flash, bytes);
	if (rng_chance(rng, p->urgent_permille))
		flags |= IO_URGENT;
	if (rng_chance(rng, p->exempt_permille))
		flags |= IO_EXEMPT;
	host_submit(&slot->hio, queue,
		    rng_chance(rng, p->write_permille) ? IO_WRITE : IO_READ,
		    bytes, flags);
	if (p->merge_bytes && slot->hio.state == HOST_IO_QUEUED)
		host_merge(&slot->hio, p->merge_bytes);
}

/* ------------------------------------------------------------- closed loop */

static void closed_submit(struct event *ev);

static void closed_submit_at(struct load_slot *slot, u64 ns)
{
	struct load *l = slot->load;

	ns = load_next_on(l, ns);
	if (load_over(l, ns))
		return;
	event_init(&slot->hio.event, closed_submit);
	event_arm(&l->host->timeline, &slot->hio.event, ns);
}

static void closed_submit(struct event *ev)
{
	struct load_slot *slot = container_of(ev, struct load_slot, hio.event);
	struct load *l = slot->load;

	if (!load_over(l, host_now(l->host)))
		load_submit(l, slot, slot->queue);
}

static void closed_done(struct host_io *hio)
{
	struct load_slot *slot = container_of(hio, struct load_slot, hio);
	struct load *l = slot->load;
	u64 think = l->params.think_ns;

	if (l->params.think_random)
		think = rng_exponential(&l->host->rng, think);
	closed_submit_at(slot, host_now(l->host) + think);
}

/* --------------------------------------------------------------- open loop */

static void open_arrive(struct event *ev);

static void open_arrive_after(struct load *l, u64 ns)
{
	ns = load_next_on(l, ns + rng_exponential(&l->host->rng,
						  l->params.arrival_ns));
	if (load_over(l, ns))
		return;
	event_init(&l->arrival, open_arrive);
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
		l->free = slot->next_free;
		queue = rng_between(&l->host->rng, 0, l->params.nr_queues - 1);
		load_submit(l, slot, l->params.first_queue + (u32)queue);
	}
	open_arrive_after(l, host_now(l->host));
}

static void open_done(struct host_io *hio)
{
	struct load_slot *slot = container_of(hio, struct load_slot, hio);

	slot->next_free = slot->load->free;
	slot->load->free = slot;
}

/* ------------------------------------------------- creation and destruction */

static void load_start(struct load *l)
{
	const struct load_params *p = &l->params;
	u32 i;

	for (i = 0; i < p->depth; i++) {
		struct load_slot *slot = &l->slot[i];

		slot->load = l;
		slot->hio.flow = p->flow;
		slot->queue = p->first_queue + i % p->nr_queues;
		slot->hio.done = p->arrival_ns ? open_done : closed_done;
		if (p->arrival_ns)
			open_done(&slot->hio);
		else
			closed_submit_at(slot, p->start_ns);
	}
	if (p->arrival_ns)
		open_arrive_after(l, p->start_ns);
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
	load_start(l);
	return l;
}

void load_destroy(struct load *l)
{
	port_free(l);
}

void load_set_bytes(struct load *l, u32 bytes)
{
	l->params.bytes = bytes;
	l->params.bytes_max = 0;
}

void load_stop(struct load *l)
{
	l->params.stop_ns = max(host_now(l->host), 1ULL);
}
