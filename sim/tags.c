// SPDX-License-Identifier: GPL-2.0
/* Scheduler tags and the ios that wait for them: see tags.h. */
#include "host.h"
#include "sched/core/urgent.h"

static void list_init(struct tag_list *l)
{
	l->head = NULL;
	l->end = &l->head;
}

static void list_append(struct tag_list *l, struct host_io *hio)
{
	hio->next_waiter = NULL;
	*l->end = hio;
	l->end = &hio->next_waiter;
}

/* Takes the io at @link out of the list. */
static struct host_io *list_take(struct tag_list *l, struct host_io **link)
{
	struct host_io *hio = *link;

	*link = hio->next_waiter;
	if (!*link)
		l->end = link;
	return hio;
}

bool tags_init(struct host *h)
{
	u32 i;

	h->limit.depth = h->params.sched_tags;
	h->sched_tags =
		port_zalloc(h->params.tag_maps * sizeof(*h->sched_tags));
	for (i = 0; h->sched_tags && i < h->params.tag_maps; i++) {
		list_init(&h->sched_tags[i].list);
		list_init(&h->sched_tags[i].threads);
	}
	return h->sched_tags;
}

void tags_exit(struct host *h)
{
	port_free(h->sched_tags);
}

void tags_flow_init(struct host_flow *hf)
{
	list_init(&hf->tag_waiters);
}

static struct sched_tags *map_of(const struct host_queue *hq)
{
	return &hq->host->sched_tags[hq->tags - hq->host->tags];
}

/* The ios of @f that wait for a free tag of the map of @hq, though in its quota. */
static atomic64_t *claims(const struct flow *f, const struct host_queue *hq)
{
	/* Queues that share a map have one counter. */
	return &f->fq[hq->tags - hq->host->tags]->claims;
}

/* The tags of the map of @hq that the ios of @f occupy or have a claim to. */
static u64 occupied(const struct flow *f, const struct host_queue *hq)
{
	const struct host *h = hq->host;
	u64 sum = (u64)atomic64_read(claims(f, hq));
	u32 i;

	for (i = 0; i < h->params.nr_queues; i++)
		if (h->queues[i].tags == hq->tags)
			sum += f->fq[i]->inserted -
			       (u64)atomic64_read(&f->fq[i]->done);
	return sum;
}

/* How many tags @f may take now. */
static u64 tags_left(struct flow *f, const struct host_queue *hq)
{
	const struct host *h = hq->host;
	u32 depth = h->params.sched_tags;

	return limit_left(&h->limit, f, depth, map_of(hq)->used,
			  occupied(f, hq));
}

/* ------------------------------------------------------------- taking a tag */

/* The flow that pays for @hio; NULL if no quota matters for it. */
static struct flow *limited_flow(const struct host_io *hio)
{
	struct flow *f = hio->task ? hio->task->flow : hio->io.flow;

	if (hio->io.flags & IO_EXEMPT)
		return NULL;
	if (!(hio->io.flags & IO_URGENT))
		return f;
	if (!f->group.parent || urgent_may_pass(f, host_now(hio->flow->host)))
		return NULL;
	return urgent_payer(f);
}

/* Returns the owner of @f, which pays for @hio. */
static struct host_flow *payer_of(const struct host_io *hio,
				  const struct flow *f)
{
	struct host_flow *hf = hio->flow;

	if (hf->flow == f)
		return hf;
	hf = hf->host->flows;
	while (hf->flow != f)
		hf = hf->next;
	return hf;
}

/* Inserts @hio if its map has a free tag.  @f: its quota has room; or NULL. */
static void take(struct host_io *hio, struct host_queue *hq, struct flow *f)
{
	struct sched_tags *map = map_of(hq);
	struct host *h = hq->host;

	hio->claimant = NULL;
	if (map->used >= h->params.sched_tags) {
		hio->claimant = f;
		if (f)
			atomic64_inc(claims(f, hq));
		h->waiting_for_tags++;
		list_append(&map->list, hio);
		return;
	}
	map->used++;
	map->foreign += hio->task != NULL;
	host_insert(hio, hq);
}

/* The same for an io that has waited.  Returns whether it was inserted. */
static bool take_later(struct host_io *hio, struct flow *f)
{
	take(hio, hio->submit_queue, f);
	if (hio->state == HOST_IO_NO_TAG)
		return false;
	if (hio->got_tag)
		hio->got_tag(hio);
	return true;
}

/* Do the kernel threads have their part of the map? */
static bool threads_have_half(const struct host_queue *hq)
{
	const struct host *h = hq->host;

	return h->params.quotas && !limit_foreign_left(h->params.sched_tags,
						       map_of(hq)->foreign, 1);
}

/* Returns the flow that quotas limit to take a tag for @hio, or NULL. */
static struct flow *flow_asked(const struct host_io *hio,
			       const struct host_queue *hq)
{
	struct host *h = hq->host;

	if (!h->params.quotas || h->sched.share.nr_active < 2 ||
	    map_of(hq)->used + 1 <= h->params.sched_tags / 2)
		return NULL;
	return limited_flow(hio);
}

/* May @f take one more tag? */
static bool has_quota(struct flow *f, const struct host_queue *hq)
{
	bool left = tags_left(f, hq);

	limit_want(f, left ? (u32)occupied(f, hq) + 1 : LIMIT_ALL);
	return left;
}

void tags_submit(struct host_io *hio, struct host_queue *hq)
{
	struct host *h = hq->host;
	struct flow *f;

	if (!h->params.sched_tags) {
		host_insert(hio, hq);
		return;
	}
	hio->state = HOST_IO_NO_TAG;
	hio->submit_queue = hq;
	f = flow_asked(hio, hq);
	if (hio->task && threads_have_half(hq)) {
		h->waiting_for_tags++;
		list_append(&map_of(hq)->threads, hio);
	} else if (f && !has_quota(f, hq)) {
		h->waiting_for_tags++;
		f->limit.waiters++;
		list_append(&payer_of(hio, f)->tag_waiters, hio);
	} else {
		take(hio, hq, f);
	}
	if (hio->state == HOST_IO_NO_TAG)
		hio->flow->stats.tag_waits++;
}

/* ---------------------------------------------------------- giving one back */

/*
 * Finds the first waiter of @hf that may take a tag, and has it take one.  All
 * waiters for the map of @hq, if that is not NULL, count, and of the others the
 * first: as in wake_waiter() of kernel/limit.c.  Returns whether the waiter was
 * inserted.  If not, it waits for a free tag now, and has a claim to it.
 */
static bool wake_one(struct host_flow *hf, const struct host_queue *hq)
{
	u64 left = hq ? tags_left(hf->flow, hq) : 0;
	struct host *h = hf->host;
	struct host_io **link, *hio;
	bool looked = false, room;

	for (link = &hf->tag_waiters.head; *link;
	     link = &(*link)->next_waiter) {
		const struct host_queue *own = (*link)->submit_queue;

		if (hq && own->tags == hq->tags) {
			room = left;
		} else if (!looked) {
			looked = true;
			room = tags_left(hf->flow, own);
		} else {
			room = false;
		}
		if (room)
			break;
		if (!left && (looked || h->params.tag_maps == 1))
			return false;
	}
	if (!*link)
		return false;
	hio = list_take(&hf->tag_waiters, link);
	hf->flow->limit.waiters--;
	h->waiting_for_tags--;
	return take_later(hio, hf->flow);
}

/* An io of @hf has finished or was inserted: wakes waiters while there is room. */
static void wake_flow(struct host_flow *hf, const struct host_queue *hq)
{
	while (hf->tag_waiters.head && wake_one(hf, hq))
		;
}

/* The first kernel thread that waits may take a tag. */
static void wake_thread(struct host *h, struct sched_tags *map)
{
	if (!map->threads.head)
		return;
	h->waiting_for_tags--;
	take_later(list_take(&map->threads, &map->threads.head), NULL);
}

void tags_finished(struct host_io *hio, struct host_queue *hq)
{
	struct host *h = hq->host;
	struct sched_tags *map = map_of(hq);
	struct host_io *next;

	if (!h->params.sched_tags)
		return;
	map->used--;
	if (hio->task) {
		map->foreign--;
		wake_thread(h, map);
	}
	if (map->list.head) {
		next = list_take(&map->list, &map->list.head);
		h->waiting_for_tags--;
		if (next->claimant)
			atomic64_dec(claims(next->claimant, hq));
		take_later(next, next->claimant);
		wake_flow(next->flow, hq);
	}
	wake_flow(payer_of(hio, hio->io.flow), hq);
}

void tags_tick(struct host *h)
{
	struct host_flow *hf;

	if (!h->params.sched_tags || !h->params.quotas ||
	    !limit_level_tick(&h->limit, &h->sched, host_now(h)))
		return;
	for (hf = h->flows; hf; hf = hf->next)
		wake_flow(hf, NULL);
}

void tags_audit(struct host *h)
{
	u32 used = 0, i;

	if (!h->params.sched_tags)
		return;
	for (i = 0; i < h->params.tag_maps; i++)
		used += h->sched_tags[i].used;
	if (used + h->waiting_for_tags != h->outstanding)
		host_fail(
			h,
			"%llu ns: %u tags are in use and %u ios wait for one, of %u ios",
			host_now(h), used, h->waiting_for_tags, h->outstanding);
	if (h->waiting_for_tags && !used)
		host_fail(h, "%llu ns: %u ios wait for tags, and all are free",
			  host_now(h), h->waiting_for_tags);
}
