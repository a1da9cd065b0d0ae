// SPDX-License-Identifier: GPL-2.0
/* Scheduler tags and the ios that wait for them: see tags.h. */
#include "host.h"

/* Takes the first io out of the list, which is not empty. */
static struct host_io *list_take(struct io_list *l)
{
	return container_of(io_list_take(l), struct host_io, io);
}

bool tags_init(struct host *h)
{
	u32 i;

	h->sched_tags =
		port_zalloc(h->params.tag_maps * sizeof(*h->sched_tags));
	for (i = 0; h->sched_tags && i < h->params.tag_maps; i++) {
		limit_order_init(&h->sched_tags[i].order, i);
		h->sched_tags[i].order.depth = h->params.sched_tags;
	}
	return h->sched_tags;
}

void tags_exit(struct host *h)
{
	port_free(h->sched_tags);
}

static struct sched_tags *map_of(const struct host_queue *hq)
{
	return &hq->host->sched_tags[hq->tags - hq->host->tags];
}

/* ------------------------------------------------------------- taking a tag */

/* The flow that pays for @hio; NULL if it takes a tag in order of arrival. */
static struct flow *payer_of(const struct host_io *hio)
{
	struct flow *f = hio->task ? hio->task->flow : hio->io.flow;
	const struct host *h = hio->flow->host;

	if (!h->params.quotas || (hio->io.flags & IO_POLLED))
		return NULL;
	if (!(hio->io.flags & IO_URGENT))
		return f;
	if (!f->group.parent || urgent_may_pass(f, host_now(h)))
		return NULL;
	return urgent_payer(f);
}

static bool has_free_tag(const struct host_queue *hq)
{
	return map_of(hq)->used < hq->host->params.sched_tags;
}

static struct tag_use use_of(const struct sched_tags *map)
{
	return (struct tag_use){ .all = map->used, .foreign = map->foreign };
}

/* May a request of @f take a tag before those that wait? */
static bool goes_first(const struct host_queue *hq, const struct flow *f)
{
	const struct sched_tags *map = map_of(hq);
	const struct sched *s = &hq->host->sched;

	/* A flow that is alone takes all tags. */
	if (READ_ONCE(s->share.nr_active) < 2)
		return has_free_tag(hq);
	return limit_goes_first(&map->order, f, use_of(map), 1);
}

/* Do the kernel threads have their part of the map? */
static bool threads_have_half(const struct host_queue *hq)
{
	const struct host *h = hq->host;

	return h->params.quotas && !limit_foreign_left(h->params.sched_tags,
						       map_of(hq)->foreign, 1);
}

/* A tag of the map is free: @hio has it from now on. */
static void take(struct host_io *hio, struct host_queue *hq)
{
	map_of(hq)->used++;
	map_of(hq)->foreign += hio->task != NULL;
}

/* @hio has a tag. */
static void insert(struct host_io *hio, struct host_queue *hq)
{
	host_add_queue(hio->io.flow, map_of(hq)->order.line);
	host_insert(hio, hq);
	limit_charge(&map_of(hq)->order, hio->io.flow, hio->io.cost);
}

/* The task of an io that has waited runs. */
static void task_runs(struct event *ev)
{
	struct host_io *hio = container_of(ev, struct host_io, wake);
	struct tag_waiters *o = &map_of(hio->submit_queue)->order;
	unsigned long flags;

	if (hio->waits_in_order) {
		flags = port_lock(&o->lock);
		limit_runs(&hio->waiter);
		port_unlock(&o->lock, flags);
	}
	insert(hio, hio->submit_queue);
	if (hio->got_tag)
		hio->got_tag(hio);
}

/* @hio has waited: it gets a tag, and its task wakes up. */
static void take_later(struct host_io *hio)
{
	struct host *h = hio->flow->host;
	u64 most = h->params.task_wake_ns;

	h->waiting_for_tags--;
	take(hio, hio->submit_queue);
	event_init(&hio->wake, task_runs);
	if (most)
		event_arm(&h->timeline, &hio->wake,
			  host_now(h) + rng_between(&h->rng, 0, most));
	else
		task_runs(&hio->wake);
}

/* @hio waits: in @list, or in the order of the map in the name of @f. */
static void await(struct host_io *hio, struct host_queue *hq,
		  struct io_list *list, struct flow *f)
{
	hio->state = HOST_IO_NO_TAG;
	hio->submit_queue = hq;
	hio->waits_in_order = !list;
	hio->flow->stats.tag_waits++;
	hq->host->waiting_for_tags++;
	if (list) {
		io_list_append(list, &hio->io);
		return;
	}
	hio->waiter = (struct tag_waiter){
		.order = &map_of(hq)->order,
		.flow = f,
		.since_ns = host_now(hq->host),
	};
	host_add_queue(f, map_of(hq)->order.line);
	limit_wait(&hio->waiter);
}

void tags_submit(struct host_io *hio, struct host_queue *hq)
{
	struct flow *f;

	if (!hq->host->params.sched_tags) {
		host_insert(hio, hq);
		return;
	}
	f = payer_of(hio);
	if (hio->task && threads_have_half(hq))
		await(hio, hq, &map_of(hq)->threads, NULL);
	else if (has_free_tag(hq) && (!f || goes_first(hq, f))) {
		take(hio, hq);
		insert(hio, hq);
	} else
		await(hio, hq, f ? NULL : &map_of(hq)->list, f);
}

/* ---------------------------------------------------------- giving one back */

/* Returns the waiter that gets the next free tag of the map, or NULL. */
static struct host_io *next_waiter(struct host *h, struct sched_tags *map)
{
	struct tag_waiter *w = NULL;
	unsigned long flags;

	if (map->list.head)
		return list_take(&map->list);
	flags = port_lock(&map->order.lock);
	w = limit_take(&h->sched, &map->order, use_of(map), true);
	port_unlock(&map->order.lock, flags);
	return w ? container_of(w, struct host_io, waiter) : NULL;
}

/* The ios that wait take the free tags of the map. */
static void hand_out(struct host *h, struct sched_tags *map)
{
	struct host_io *hio;

	while (map->used < h->params.sched_tags && (hio = next_waiter(h, map)))
		take_later(hio);
}

void tags_finished(struct host_io *hio, struct host_queue *hq)
{
	struct host *h = hq->host;
	struct sched_tags *map = map_of(hq);

	if (!h->params.sched_tags)
		return;
	map->used--;
	if (hio->task) {
		map->foreign--;
		if (map->threads.head)
			take_later(list_take(&map->threads));
	}
	hand_out(h, map);
}

void tags_tick(struct host *h)
{
	u64 sent;
	u32 i;

	if (!h->params.sched_tags)
		return;
	sent = sched_dispatched(&h->sched);
	for (i = 0; i < h->params.tag_maps; i++)
		if (limit_refresh(&h->sched_tags[i].order, sent, host_now(h)))
			hand_out(h, &h->sched_tags[i]);
}

void tags_audit(struct host *h)
{
	u32 used = 0, i;

	if (!h->params.sched_tags)
		return;
	for (i = 0; i < h->params.tag_maps; i++)
		used += h->sched_tags[i].used;
	if (used + h->waiting_for_tags + h->waiting_for_lock != h->outstanding)
		host_fail(
			h,
			"%llu ns: %u tags are in use and %u ios wait for one, of %u ios",
			host_now(h), used, h->waiting_for_tags, h->outstanding);
	if (h->waiting_for_tags && !used)
		host_fail(h, "%llu ns: %u ios wait for tags, and all are free",
			  host_now(h), h->waiting_for_tags);
}
