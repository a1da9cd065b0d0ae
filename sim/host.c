// SPDX-License-Identifier: GPL-2.0
/*
 * host - hooks are called, and their answers checked, in the order of an io's
 * life: submit, insert, dispatch, device, complete.  See host.h.
 */
#include <stdarg.h>
#include <stdio.h>

#include "host.h"

enum {
	/* No correct scheduler needs as many; it must be in an endless loop. */
	EVENTS_PER_INSTANT	= 1000 * 1000,
};

static struct host_queue *queue_of(const struct queue *q)
{
	return container_of(q, struct host_queue, q);
}

void port_assert_queue_held(const struct queue *q)
{
	port_assert(queue_of(q)->locked);
}

static void queue_lock(struct host_queue *hq)
{
	port_assert(!hq->locked);
	hq->locked = true;
}

static void queue_unlock(struct host_queue *hq)
{
	port_assert(hq->locked);
	hq->locked = false;
}

void host_fail(struct host *h, const char *fmt, ...)
{
	va_list args;

	if (host_failed(h))
		return;
	va_start(args, fmt);
	vsnprintf(h->failure, sizeof(h->failure), fmt, args);
	va_end(args);
}

/* ---------------------------------------------------------- acting on wake */

void host_queue_wake(struct host_queue *hq, u64 most_ns)
{
	struct host *h = hq->host;
	u64 takes = most_ns ? rng_between(&h->rng, 0, most_ns) : 0;

	if (hq->wake_work.armed)
		return;
	h->wakes++;
	event_arm(&h->timeline, &hq->wake_work, host_now(h) + takes);
}

static void host_wake_queue(struct host *h, u32 queue)
{
	if (queue >= h->params.nr_queues) {
		host_fail(h, "wake-up of queue %u, but there are %u queues",
			  queue, h->params.nr_queues);
		return;
	}
	host_queue_wake(&h->queues[queue], h->params.wake_ns);
}

static void queue_block(struct host_queue *hq, struct wake *wake)
{
	queue_lock(hq);
	hq->host->sched.ops->block(&hq->q, wake);
	queue_unlock(hq);
}

void host_act(struct host *h, struct wake *wake)
{
	u32 queue;

	/* A queue that cannot run must not hold virtual time back. */
	if (wake->pinned_by < h->params.nr_queues &&
	    h->queues[wake->pinned_by].blocked)
		queue_block(&h->queues[wake->pinned_by], wake);
	while ((queue = wake_next(wake)) != QUEUES_MAX)
		host_wake_queue(h, queue);
	ticks_ask(h, wake);
}

/* ------------------------------------------------------- the life of an io */

static struct host_io *io_of(struct io *io)
{
	return container_of(io, struct host_io, io);
}

static struct host *host_of(const struct host_io *hio)
{
	return hio->flow->host;
}

/* Checks a dispatch; returns whether a correct scheduler could make it. */
static bool dispatch_valid(struct host_queue *hq, const struct host_io *hio)
{
	struct host *h = hq->host;
	const char *wrong = NULL;

	if (hio->state != HOST_IO_QUEUED)
		wrong = "that is not queued";
	else if (hio->io.queue != &hq->q)
		wrong = "of another queue";
	else if (!audit_has_room(hio))
		wrong = "although all D slots are taken";
	if (!wrong)
		return true;
	host_fail(h, "%llu ns: queue %u dispatched an io of flow %u %s",
		  host_now(h), hq->q.index, hio->flow->id, wrong);
	return false;
}

/* A discard reads and programs the pages of the map of its range: cost.h. */
static void io_start(struct host_io *hio)
{
	u32 bytes = io_op_transfers(hio->io.op) ?
			    hio->io.bytes :
			    (u32)cost_of_range(hio->io.bytes);

	hio->cmd.page = hio->page;
	hio->cmd.owner = hio->flow->id;
	hio->cmd.ahead = hio->io.flags & IO_URGENT;
	hio->cmd.queue =
		&host_of(hio)->queues[hio->io.queue->index].tags->submissions;
	device_start(&host_of(hio)->device, &hio->cmd, hio->io.op == IO_WRITE,
		     bytes);
}

static void io_to_device(struct host_io *hio)
{
	struct host *h = host_of(hio);

	hio->state = HOST_IO_DEVICE;
	hio->refused = rng_chance(&h->rng, h->params.refuse_permille);
	if (hio->refused)
		event_arm(&h->timeline, &hio->event,
			  host_now(h) + h->params.refuse_ns);
	else
		io_start(hio);
}

void host_settle_inside(struct host *h)
{
	h->inside_ns += h->inside * (host_now(h) - h->inside_at);
	h->inside_at = host_now(h);
}

static void io_dispatched(struct host_queue *hq, struct host_io *hio)
{
	struct host *h = hq->host;

	host_settle_inside(h);
	h->inside++;
	hq->waiting--;
	hq->tags->in_use++;
	h->queued--;
	host_settle(hio->flow);
	hio->flow->queued--;
	hio->flow->stats.wait_ns += host_now(h) - hio->io.insert_ns;
	if (!hio->counted) {
		audit_payer(hio)->dispatched_cost += hio->io.cost;
		hio->counted = true;
	}
	audit_dispatched(hio);
	audit_slot(hio, 1);
	if (h->watch.dispatched)
		h->watch.dispatched(h->watch.arg, hio);
	io_to_device(hio);
}

/* ---------------------------------------------------------------- dispatch */

/* Asks the scheduler for an io; returns false if it has none. */
static bool queue_dispatch(struct host_queue *hq, struct io **io,
			   struct wake *wake)
{
	struct host *h = hq->host;
	enum dispatch_result result =
		h->sched.ops->dispatch(&hq->q, host_now(h), io, wake);

	audit_result(hq, result);
	return result == DISPATCH_IO;
}

static void queue_run(struct host_queue *hq)
{
	struct host *h = hq->host;
	struct wake wake;
	struct io *io;

	wake_init(&wake);
	if (hq->blocked || host_queue_is_full(hq)) {
		queue_block(hq, &wake);
		host_act(h, &wake);
		driver_tags_settle(hq);
		return;
	}
	queue_lock(hq);
	while (!host_queue_is_full(hq) && queue_dispatch(hq, &io, &wake)) {
		if (!dispatch_valid(hq, io_of(io)))
			break;
		io_dispatched(hq, io_of(io));
		if (h->params.dispatch_delay_ns) {
			host_queue_wake(hq, h->params.dispatch_delay_ns);
			break;
		}
	}
	if (host_queue_is_full(hq))
		h->sched.ops->block(&hq->q, &wake);
	queue_unlock(hq);
	host_act(h, &wake);
	driver_tags_settle(hq);
}

static void *piece_alloc(const struct flow_memory *m, size_t bytes)
{
	(void)m;
	return port_zalloc(bytes);
}

/*
 * Each queue of a flow has a piece of its own, which the flow gets with its first request
 * there.  So every simulated run also tests flow_add_queue().
 */
static const struct flow_memory memory = {
	.alloc = piece_alloc,
	.free = port_free,
	.most = 1,
};

void host_add_queue(struct flow *f, u32 queue)
{
	port_assert(flow_add_queue(f, &memory, queue));
}

/* Has the scheduler send @hio without a queue, if it does that at all. */
static bool queue_send(struct host_queue *hq, struct host_io *hio,
		       struct wake *wake)
{
	struct host *h = hq->host;
	const struct sched_ops *ops = h->sched.ops;

	hio->io.next = NULL;
	return ops->send && !h->params.dispatch_delay_ns && !hq->blocked &&
	       !host_queue_is_full(hq) &&
	       ops->send(&hq->q, &hio->io, 1, host_now(h), wake);
}

void host_insert(struct host_io *hio, struct host_queue *hq)
{
	struct host *h = hq->host;
	struct wake wake;
	bool sent;

	hio->state = HOST_IO_QUEUED;
	hq->waiting++;
	h->queued++;
	host_settle(hio->flow);
	hio->flow->queued++;
	wake_init(&wake);
	hio->inserted_ns = host_now(h);
	host_add_queue(hio->io.flow, hq->q.index);
	queue_lock(hq);
	sent = queue_send(hq, hio, &wake);
	if (!sent)
		h->sched.ops->insert(&hq->q, &hio->io, host_now(h), &wake);
	queue_unlock(hq);
	audit_inserted(hio);
	if (h->watch.inserted)
		h->watch.inserted(h->watch.arg, hio);
	if (sent) {
		audit_result(hq, DISPATCH_IO);
		io_dispatched(hq, hio);
	}
	if (h->params.dispatch_delay_ns) {
		queue_block(hq, &wake);
		host_queue_wake(hq, h->params.dispatch_delay_ns);
	}
	host_act(h, &wake);
	if (!h->params.dispatch_delay_ns)
		queue_run(hq);
}

/* The driver sent the io back: it is inserted again or goes to the device. */
static void io_refused(struct event *ev)
{
	struct host_io *hio = container_of(ev, struct host_io, event);
	struct host_queue *hq = queue_of(hio->io.queue);
	struct host *h = host_of(hio);
	struct wake wake;

	audit_slot(hio, -1);
	wake_init(&wake);
	h->sched.ops->requeue(&hio->io, &wake);
	audit_returned(hio);
	if (hio->io.flags & IO_SLOT)
		host_fail(h, "%llu ns: requeue left an io of flow %u its slot",
			  host_now(h), hio->flow->id);
	host_act(h, &wake);
	if (rng_chance(&h->rng, 500)) {
		hq->tags->in_use--;
		host_settle_inside(h);
		h->inside--;
		host_insert(hio, hq);
	} else {
		io_start(hio);
	}
}

/* Counts a completion.  Of a request in parts the last one counts. */
static void io_count(struct host_io *hio)
{
	struct flow_stats *stats = &hio->flow->stats;
	u64 submit_ns = hio->submit_ns;
	bool reaped = false;

	stats->bytes += hio->io.bytes;
	if (hio->whole) {
		if (--hio->whole->left)
			return;
		submit_ns = hio->whole->submit_ns;
		reaped = hio->whole->reaped;
	}
	stats->ios++;
	if (!reaped)
		histogram_add(&stats->latency,
			      host_now(host_of(hio)) - submit_ns);
}

void host_reaped(struct host_flow *hf, const struct host_whole *whole)
{
	histogram_add(&hf->stats.latency,
		      host_now(hf->host) - whole->submit_ns);
}

static void io_ended(struct host_io *hio)
{
	struct host_queue *hq = queue_of(hio->io.queue);
	struct host *h = host_of(hio);
	struct wake wake;

	io_count(hio);
	cpu_spend(&hq->cpu, h->params.complete_ns);
	host_settle_inside(h);
	h->inside--;
	h->outstanding--;
	hio->flow->outstanding--;
	audit_slot(hio, -1);
	driver_tags_return(hq);

	wake_init(&wake);
	h->sched.ops->complete(&hio->io, host_now(h), &wake);
	audit_returned(hio);
	hio->state = HOST_IO_IDLE;
	if (h->watch.completed)
		h->watch.completed(h->watch.arg, hio);
	host_act(h, &wake);
	tags_finished(hio, hq);
	hio->done(hio);
}

static void io_reaped(struct event *ev)
{
	io_ended(container_of(ev, struct host_io, event));
}

static void io_completed(struct device_cmd *cmd)
{
	struct host_io *hio = container_of(cmd, struct host_io, cmd);
	u64 reap_ns = hio->io.flags & IO_POLLED ? hio->reap_ns : 0;
	struct timeline *t = &host_of(hio)->timeline;

	event_init(&hio->event, io_reaped);
	if (reap_ns)
		event_arm(t, &hio->event, t->now + reap_ns);
	else
		io_ended(hio);
}

/* Converts a page of the drive to pages of 4 KiB. */
static u32 io_page(const struct host *h, u32 page)
{
	const struct flash *f = h->params.device.flash;

	return f ? (u32)((u64)page * flash_params_of(f)->page_bytes / 4096) : 0;
}

static void io_locked(struct event *ev)
{
	struct host_io *hio = container_of(ev, struct host_io, event);

	host_of(hio)->waiting_for_lock--;
	event_init(&hio->event, io_refused);
	tags_submit(hio, queue_of(hio->io.queue));
}

void host_submit(struct host_io *hio, u32 queue, enum io_op op, u32 bytes,
		 u16 flags)
{
	u64 wait_ns;

	struct host *h = host_of(hio);
	struct host_queue *hq = &h->queues[queue];

	port_assert(hio->state == HOST_IO_IDLE);
	hio->io = (struct io){
		.flow = hio->flow->flow,
		.queue = &hq->q,
		.bytes = bytes,
		.page = io_page(h, hio->page),
		.op = (u8)op,
		.flags = flags,
	};
	cpu_spend(&hq->cpu, h->params.submit_ns);
	event_init(&hio->event, io_refused);
	hio->counted = false;
	hio->charged = false;
	hio->out = false;
	hio->submit_ns = host_now(h);
	h->outstanding++;
	hio->flow->outstanding++;
	wait_ns = cpu_lock(&hq->cpu, &h->lock, h->params.locked_ns);
	if (!wait_ns) {
		tags_submit(hio, hq);
		return;
	}
	h->waiting_for_lock++;
	event_init(&hio->event, io_locked);
	event_arm(&h->timeline, &hio->event, hio->submit_ns + wait_ns);
}

struct cpu *host_cpu(struct host *h, u32 queue)
{
	return &h->queues[queue].cpu;
}

void host_merge(struct host_io *hio, u32 bytes)
{
	struct host_queue *hq = queue_of(hio->io.queue);
	u32 cost = hio->io.cost, total = hio->io.bytes + bytes;

	port_assert(hio->state == HOST_IO_QUEUED);
	queue_lock(hq);
	hq->host->sched.ops->merge(&hq->q, &hio->io, total);
	queue_unlock(hq);
	audit_merged(hio, cost, total);
}

/* ------------------------------------------------------------ slow changes */

void host_block(struct host *h, u32 queue, u64 until_ns)
{
	struct host_queue *hq = &h->queues[queue];

	port_assert(!hq->blocked);
	hq->blocked = true;
	event_arm(&h->timeline, &hq->unblock, until_ns);
	queue_run(hq);
}

static void queue_unblocked(struct event *ev)
{
	struct host_queue *hq = container_of(ev, struct host_queue, unblock);

	hq->blocked = false;
	queue_run(hq);
}

static void queue_woken(struct event *ev)
{
	struct host_queue *hq = container_of(ev, struct host_queue, wake_work);

	hq->host->wakes--;
	queue_run(hq);
}

void host_tune(struct host *h, const struct sched_params *p)
{
	struct wake wake;

	port_assert(!sched_params_check(h->sched.ops, p));
	wake_init(&wake);
	h->sched.ops->tune(&h->sched, p, &wake);
	audit_tuned(h, p);
	host_act(h, &wake);
}

/* Tells the scheduler that shares have changed. */
static void host_reshare(struct host *h)
{
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->tune(&h->sched, NULL, &wake);
	host_act(h, &wake);
}

void host_flow_weigh(struct host_flow *hf, u32 weight)
{
	if (flow_set_weight(hf->flow, weight))
		host_reshare(hf->host);
}

void host_drain(struct host *h)
{
	u32 i;

	for (i = 0; i < h->params.nr_queues; i++) {
		h->queues[i].q.drain = true;
		host_wake_queue(h, i);
	}
}

/* ---------------------------------------------------------------- event loop */

/* A queue without a flow in credit waits for a tick. */
static bool waits_for_tick(const struct host *h, const struct host_queue *hq)
{
	return h->tick.armed && hq->q.state == DISPATCH_NO_BUDGET;
}

/* If ios wait although the device is idle, a wake-up was lost. */
static void check_stall(struct host *h)
{
	u32 i;

	if (!h->queued || h->outstanding > h->queued + h->waiting_for_tags)
		return;
	for (i = 0; i < h->params.nr_queues; i++) {
		const struct host_queue *hq = &h->queues[i];

		if (!hq->waiting || hq->blocked || waits_for_tick(h, hq))
			continue;
		host_fail(
			h,
			"%llu ns: queue %u was not woken: %u ios wait and the device is idle",
			host_now(h), i, hq->waiting);
		return;
	}
}

static void host_quiet(struct host *h)
{
	if (h->wakes)
		return;
	check_stall(h);
	tags_audit(h);
	if (!h->params.audit_at_end)
		audit_quiet(h);
	if (h->watch.quiet)
		h->watch.quiet(h->watch.arg);
}

static void host_step(struct host *h)
{
	timeline_step(&h->timeline);
	if (h->watch.step)
		h->watch.step(h->watch.arg);
}

/* Fires all events of the next event's time. */
static void host_instant(struct host *h)
{
	u64 ns = timeline_next_ns(&h->timeline);
	u64 first = h->timeline.fired;

	while (timeline_next_ns(&h->timeline) == ns && !host_failed(h)) {
		host_step(h);
		if (h->timeline.fired - first > EVENTS_PER_INSTANT)
			host_fail(h, "%llu ns: endless loop of events", ns);
	}
	host_quiet(h);
}

void host_run(struct host *h, u64 until_ns)
{
	while (timeline_next_ns(&h->timeline) <= until_ns && !host_failed(h))
		host_instant(h);
	h->timeline.now = max(h->timeline.now, until_ns);
}

void host_finish(struct host *h)
{
	h->stopping = true;
	while (h->outstanding && !host_failed(h)) {
		if (timeline_next_ns(&h->timeline) == TIMELINE_NEVER)
			host_fail(h, "%u ios were lost: no event is left",
				  h->outstanding);
		else
			host_instant(h);
	}
	audit_end(h);
}

/* ------------------------------------------------------------------- flows */

struct host_flow *host_flow_create(struct host *h, struct host_flow *parent,
				   u32 weight)
{
	struct host_flow *hf = port_zalloc(sizeof(*hf));

	if (!hf)
		return NULL;
	/* The root pays for others, and so is in all queues. */
	hf->flow = (parent ? flow_alloc :
			     flow_alloc_whole)(&memory, h->params.ops,
					       h->params.nr_queues, 0);
	if (!hf->flow) {
		port_free(hf);
		return NULL;
	}
	flow_init(hf->flow, &h->sched, parent ? parent->flow : NULL, weight);
	hf->host = h;
	hf->id = h->nr_flows++;
	hf->parent_id = parent ? parent->id : hf->id;
	hf->next = h->flows;
	h->flows = hf;
	return hf;
}

void host_flow_destroy(struct host_flow *hf)
{
	struct host *h = hf->host;
	struct host_flow **p;

	for (p = &h->flows; *p != hf; p = &(*p)->next)
		;
	*p = hf->next;
	/* After a failure the state is undefined, so only memory is freed. */
	if (!host_failed(h)) {
		port_assert(!hf->outstanding);
		audit_flow(hf);
		flow_exit(hf->flow);
		host_reshare(h);
		if (h->params.device.flash)
			flash_owner_move(h->params.device.flash, hf->id,
					 hf->parent_id);
	}
	flow_free(hf->flow, port_free, 0);
	port_free(hf);
}

struct host_flow *host_flow_of(const struct host *h, const struct flow *f)
{
	struct host_flow *hf = h->flows;

	while (hf->flow != f)
		hf = hf->next;
	return hf;
}

/* With a host-managed FTL the scheduler may ask for the pages of a flow. */
static bool host_flow_pages(const struct sched *s, struct flow *f,
			    struct flow_pages *pages)
{
	const struct host *h = container_of(s, struct host, sched);
	const struct flash *flash = h->params.device.flash;
	struct flash_usage usage, unowned;
	bool known = flash_host_usage(flash, host_flow_of(h, f)->id, &usage);

	*pages = (struct flow_pages){
		.valid = usage.valid,
		.invalid = usage.invalid,
		.copied = usage.copied,
	};
	return known || flash_host_usage(flash, FLASH_NO_OWNER, &unowned);
}

static bool host_flash_time(const struct sched *s, struct flash_time *time)
{
	const struct host *h = container_of(s, struct host, sched);
	struct flash_spent spent;
	bool known = flash_host_spent(h->params.device.flash, &spent);

	*time = (struct flash_time){
		.read_ns = spent.read_ns,
		.write_ns = spent.write_ns,
		.busy_ns = spent.busy_ns,
		.planes = spent.planes,
	};
	return known;
}

/* ------------------------------------------------- creation and destruction */

static void host_place(struct host *h)
{
	u32 per_core = max(h->params.queues_per_core, 1U);
	u32 per_socket = h->params.cores_per_socket;
	u32 i;

	for (i = 0; i < h->params.nr_queues; i++) {
		h->places[i].core = i / per_core;
		h->places[i].socket = per_socket ? i / per_core / per_socket :
						   0;
	}
}

/* Returns the map of queue @i.  Neighbours share a map, as CPUs share queues. */
static struct host_tags *queue_tags(struct host *h, u32 i)
{
	return &h->tags[(u64)i * h->params.tag_maps / h->params.nr_queues];
}

static bool host_alloc(struct host *h)
{
	u32 nr = h->params.nr_queues;

	h->queues = port_zalloc(nr * sizeof(*h->queues));
	h->places = port_zalloc(nr * sizeof(*h->places));
	h->sched.queue = port_zalloc(nr * sizeof(*h->sched.queue));
	h->tags = port_zalloc(h->params.tag_maps * sizeof(*h->tags));
	return h->queues && h->places && h->sched.queue && h->tags &&
	       tags_init(h);
}

static void host_free(struct host *h)
{
	tags_exit(h);
	port_free(h->tags);
	port_free(h->sched.queue);
	port_free(h->places);
	port_free(h->queues);
	port_free(h);
}

static void host_init_queues(struct host *h)
{
	u32 i;

	for (i = 0; i < h->params.nr_queues; i++) {
		struct host_queue *hq = &h->queues[i];

		hq->host = h;
		hq->tags = queue_tags(h, i);
		if (!hq->tags->nr++)
			hq->tags->first = i;
		cpu_init(&hq->cpu, &h->timeline);
		event_init(&hq->wake_work, queue_woken);
		event_init(&hq->unblock, queue_unblocked);
		queue_init(&hq->q, &h->sched, i);
		h->sched.queue[i] = &hq->q;
	}
}

struct host *host_create(const struct host_params *params)
{
	struct host *h = port_zalloc(sizeof(*h));

	if (!h)
		return NULL;
	h->params = *params;
	if (!h->params.tag_maps)
		h->params.tag_maps = params->nr_queues;
	h->sched.nr_queues = params->nr_queues;
	if (!host_alloc(h))
		goto free;
	timeline_init(&h->timeline);
	rng_init(&h->rng, params->seed);
	device_init(&h->device, &h->timeline, &params->device, io_completed);
	ticks_init(h);
	host_init_queues(h);
	host_place(h);
	if (params->device.flash) {
		h->sched.map.flow_pages = host_flow_pages;
		h->sched.map.flash_time = host_flash_time;
		h->sched.pages =
			(u64)flash_pages(params->device.flash) *
			flash_params_of(params->device.flash)->page_bytes /
			4096;
	}
	if (sched_init(&h->sched, params->ops, &params->sched, h->places))
		goto free;
	return h;
free:
	host_free(h);
	return NULL;
}

void host_destroy(struct host *h)
{
	host_finish(h);
	while (h->flows)
		host_flow_destroy(h->flows);
	if (!host_failed(h))
		sched_exit(&h->sched);
	host_free(h);
}
