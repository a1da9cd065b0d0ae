// SPDX-License-Identifier: GPL-2.0
/* Positions, epochs and activity of flows; see flow.h. */
#include "flow.h"
#include "sched.h"

enum {
	/* A request takes up to so many times as long beside those of others as alone. */
	ASKS_TIMES = 8,
};

/* The bytes of a flow without its queues. */
static size_t head_size(const struct sched_ops *ops, u32 nr_queues)
{
	size_t pointers = nr_queues * sizeof(struct flow_queue *);

	return whole_lines((u32)(offsetof(struct flow, fq) + pointers)) +
	       whole_lines(ops->flow_bytes);
}

/* The bytes of a flow for each queue. */
static size_t queue_size(const struct sched_ops *ops)
{
	return sizeof(struct flow_queue) + whole_lines(ops->flow_queue_bytes);
}

size_t flow_size(const struct sched_ops *ops, u32 nr_queues)
{
	return head_size(ops, nr_queues) + nr_queues * queue_size(ops);
}

const struct flow_queue_absent flow_absent;

/* Finds the scheduler's memory, and the first @queues queues behind it. */
static void lay_out_first(struct flow *f, const struct sched_ops *ops,
			  u32 nr_queues, u32 queues, size_t most)
{
	char *queue = (char *)f + head_size(ops, nr_queues);
	size_t bytes = queue_size(ops);
	u32 i;

	port_assert(bytes <= sizeof(flow_absent));
	f->nr_queues = nr_queues;
	f->first_queues = (u16)queues;
	f->piece_queues = (u16)max(most / bytes, (size_t)1);
	f->own = queue - whole_lines(ops->flow_bytes);
	for (i = 0; i < queues; i++, queue += bytes)
		f->fq[i] = (void *)queue;
	for (; i < nr_queues; i++)
		f->fq[i] = (struct flow_queue *)&flow_absent.queue;
}

/* Has the allocator make the piece that begins with queue @first; or NULL. */
static char *piece_alloc(const struct flow *f, const struct flow_memory *m,
			 const struct sched_ops *ops, u32 first, u32 *nr)
{
	*nr = min(f->nr_queues - first, (u32)f->piece_queues);
	return m->alloc(m, *nr * queue_size(ops));
}

static void piece_add(struct flow *f, const struct sched_ops *ops, u32 first,
		      u32 nr, char *piece)
{
	u32 i;

	for (i = 0; i < nr; i++, piece += queue_size(ops))
		/* The zeroes are there before.  Pairs with the dependency on fq[]. */
		smp_store_release(&f->fq[first + i], (void *)piece);
}

bool flow_add_queue(struct flow *f, const struct flow_memory *m, u32 queue)
{
	const struct sched_ops *ops = f->sched->ops;
	unsigned long flags;
	char *piece;
	u32 first, nr;

	if (flow_has_queue(f, queue))
		return true;
	first = queue - (queue - f->first_queues) % f->piece_queues;
	piece = piece_alloc(f, m, ops, first, &nr);
	if (!piece)
		return false;
	flags = port_lock(&f->lock);
	if (!flow_has_queue(f, queue)) {
		piece_add(f, ops, first, nr, piece);
		piece = NULL;
	}
	port_unlock(&f->lock, flags);
	/* Another CPU was faster. */
	if (piece)
		m->free(piece);
	return true;
}

struct flow *flow_alloc(const struct flow_memory *m,
			const struct sched_ops *ops, u32 nr_queues,
			size_t before)
{
	size_t head = before + head_size(ops, nr_queues);
	size_t room = m->most - min(head, m->most);
	u32 first = min((u32)(room / queue_size(ops)), nr_queues);
	char *memory = m->alloc(m, head + first * queue_size(ops));
	struct flow *f;

	if (!memory)
		return NULL;
	f = (void *)(memory + before);
	lay_out_first(f, ops, nr_queues, first, m->most);
	return f;
}

struct flow *flow_alloc_whole(const struct flow_memory *m,
			      const struct sched_ops *ops, u32 nr_queues,
			      size_t before)
{
	struct flow *f = flow_alloc(m, ops, nr_queues, before);
	u32 first, nr;
	char *piece;

	for (first = f ? f->first_queues : nr_queues; first < nr_queues;
	     first += nr) {
		piece = piece_alloc(f, m, ops, first, &nr);
		if (!piece) {
			flow_free(f, m->free, before);
			return NULL;
		}
		piece_add(f, ops, first, nr, piece);
	}
	return f;
}

void flow_free(struct flow *f, void (*release)(void *piece), size_t before)
{
	u32 i;

	for (i = f->first_queues; i < f->nr_queues; i += f->piece_queues)
		if (flow_has_queue(f, i))
			release(f->fq[i]);
	release((char *)f - before);
}

void flow_init(struct flow *f, struct sched *s, struct flow *parent, u32 weight)
{
	f->sched = s;
	if (!f->own)
		lay_out_first(f, s->ops, s->nr_queues, s->nr_queues, 0);
	port_lock_init(&f->lock);
	share_group_init(&f->group, parent ? &parent->group : NULL, weight);
	share_add(&s->share, &f->group);
	latency_init(&f->latency);
	f->asks.asked = ASKS_ALL;
	if (s->ops->flow_init)
		s->ops->flow_init(f);
}

static void list_append(struct flow *f)
{
	struct sched *s = f->sched;

	port_assert_held(&s->active_lock);
	f->active_link = s->active ? s->active_end : &s->active;
	f->next_active = NULL;
	*f->active_link = f;
	s->active_end = &f->next_active;
}

static void list_remove(struct flow *f)
{
	port_assert_held(&f->sched->active_lock);
	*f->active_link = f->next_active;
	if (f->next_active)
		f->next_active->active_link = f->active_link;
	else
		f->sched->active_end = f->active_link;
}

/* The host may free @f afterwards, but not before active_lock is dropped. */
static void flow_deactivate(struct flow *f)
{
	struct sched *s = f->sched;

	list_remove(f);
	share_deactivate(&s->share, &f->group);
	WRITE_ONCE(f->share, 0);
	f->idle_since_ns = 0;
	/* The flow computes its share anew, even if the generation stays. */
	atomic64_set(&f->generation, 0);
	if (s->hooks.let_go)
		s->hooks.let_go(f);
}

void flow_exit(struct flow *f)
{
	unsigned long flags = port_lock(&f->sched->active_lock);

	port_assert(atomic64_read(&f->queued) == 0);
	if (atomic64_xchg(&f->active, 0))
		flow_deactivate(f);
	port_unlock(&f->sched->active_lock, flags);
	share_remove(&f->sched->share, &f->group);
	if (f->sched->ops->flow_exit)
		f->sched->ops->flow_exit(f);
}

/* From @pos on the flow may use what it asks for, @asks of ASKS_ALL: see flow_charge(). */
static void flow_set_until(struct flow *f, u64 pos, u32 asks)
{
	u64 use =
		mul_u64_u64_div_u64(READ_ONCE(f->sched->swept), asks, ASKS_ALL);

	WRITE_ONCE(f->ask_until, asks < ASKS_ALL ? pos + use : ~0ULL);
}

/* A flow that was quiet before it was idle asks for as much as before, from @pos on. */
static void flow_activate(struct flow *f, u64 pos)
{
	struct sched *s = f->sched;
	unsigned long flags = port_lock(&s->active_lock);

	if (!atomic64_read(&f->active)) {
		/* A walk that goes on ends before this flow. */
		f->walk = s->walks;
		flow_set_until(f, pos, f->asks.asked);
		list_append(f);
		share_activate(&s->share, &f->group, f->asks.asked < ASKS_ALL);
		if (s->hooks.keep)
			s->hooks.keep(f);
		atomic64_set(&f->active, 1);
	}
	port_unlock(&s->active_lock, flags);
}

void flow_await(struct flow *f)
{
	/* Fully ordered, before `active` is read.  Pairs with flow_retire(). */
	atomic64_fetch_add(1, &f->limit.waiters);
	if (unlikely(!atomic64_read(&f->active)))
		flow_activate(f, (u64)atomic64_read(&f->pos));
}

bool flow_set_weight(struct flow *f, u32 weight)
{
	return share_set_weight(&f->sched->share, &f->group, weight);
}

u64 flow_share(const struct flow *f)
{
	return READ_ONCE(f->share);
}

u64 flow_share_ppm(const struct flow *f)
{
	u64 share = share_plain(&f->sched->share, &f->group);

	return (share * 1000000) >> SHARE_SHIFT;
}

u64 flow_present_share(struct flow *f)
{
	return share_present(&f->sched->share, &f->group);
}

u64 flow_due(struct flow *f)
{
	return share_due(&f->sched->share, &f->group);
}

static void flow_set_epoch(struct flow *f, vtime_t base, u64 base_pos, u64 inv)
{
	s64 seq = atomic64_read(&f->seq);

	port_assert_held(&f->lock);
	atomic64_set(&f->seq, seq + 1);
	/*
	 * These stores are releases after the odd number.  A reader that gets a
	 * new value does not find the old number again.  Pairs with flow_line().
	 */
	atomic64_set_release(&f->base, (s64)base);
	atomic64_set_release(&f->base_pos, (s64)base_pos);
	atomic64_set_release(&f->inv, (s64)inv);
	atomic64_set_release(&f->seq, seq + 2);
}

/*
 * Replaces the line by one with slope @inv that meets the present line at @vt.
 * So a request that is d ahead of virtual time is afterwards
 * d * old share / new share ahead of it.
 */
static void flow_turn_epoch(struct flow *f, vtime_t vt, u64 inv)
{
	vtime_t base = (vtime_t)atomic64_read(&f->base);
	u64 pos = (u64)atomic64_read(&f->base_pos);
	u64 old = (u64)atomic64_read(&f->inv);
	s64 d = (s64)(vt - base);

	if (!old)
		pos = (u64)atomic64_read(&f->pos);
	else if (d >= 0)
		pos += mul_u64_u64_div_u64((u64)d, 1ULL << INV_SHIFT, old);
	else
		pos -= mul_u64_u64_div_u64((u64)-d, 1ULL << INV_SHIFT, old);
	flow_set_epoch(f, vt, pos, inv);
}

static void flow_reshare(struct flow *f, vtime_t vt)
{
	unsigned long flags = port_lock(&f->lock);
	u64 share, generation;

	share = share_of(&f->sched->share, &f->group, &generation);
	if (share) {
		if (share != f->share)
			flow_turn_epoch(f, vt, share_inverse(share));
		WRITE_ONCE(f->share, share);
		atomic64_set(&f->generation, (s64)generation);
	}
	port_unlock(&f->lock, flags);
}

static __always_inline void refresh(struct flow *f, vtime_t vt)
{
	if (unlikely((u64)atomic64_read(&f->generation) !=
		     share_generation(&f->sched->share)))
		flow_reshare(f, vt);
}

void flow_refresh(struct flow *f, vtime_t vt)
{
	refresh(f, vt);
}

/* The flow was not backlogged until now: it loses the service it missed. */
static void catch_up(struct flow *f, vtime_t vt, struct flow_start *start)
{
	unsigned long flags = port_lock(&f->lock);

	start->tag = flow_tag(f, start->pos, &start->epoch);
	if (vtime_before(start->tag, vt)) {
		flow_set_epoch(f, vt, start->pos, (u64)atomic64_read(&f->inv));
		start->tag = flow_tag(f, start->pos, &start->epoch);
	}
	port_unlock(&f->lock, flags);
}

void flow_catch_up(struct flow *f, u64 pos, vtime_t vt)
{
	struct flow_start start = { .pos = pos };

	catch_up(f, vt, &start);
}

void flow_clamp_lag(struct flow *f, u64 pos, vtime_t vt, u64 allowance)
{
	unsigned long flags = port_lock(&f->lock);
	u64 epoch;

	if (vtime_before(flow_tag(f, pos, &epoch) + allowance, vt))
		flow_set_epoch(f, vt, pos, (u64)atomic64_read(&f->inv));
	port_unlock(&f->lock, flags);
}

/* The flow has used what it asked for. */
static void flow_claim(struct flow *f)
{
	WRITE_ONCE(f->ask_until, ~0ULL);
	share_claim(&f->sched->share, &f->group);
	/* The flow computes its share anew, even if the generation stays. */
	atomic64_set(&f->generation, 0);
}

static __always_inline bool begin(struct flow *f, u64 pos, vtime_t vt)
{
	/* Pairs with flow_sweep(). */
	bool woke = unlikely(!atomic64_read(&f->active));

	if (woke)
		flow_activate(f, pos);
	if (unlikely(pos > READ_ONCE(f->ask_until)))
		flow_claim(f);
	refresh(f, vt);
	return woke;
}

bool flow_begin(struct flow *f, u64 pos, vtime_t vt)
{
	return begin(f, pos, vt);
}

void flow_charge(struct flow *f, u32 cost, vtime_t vt, bool waits,
		 struct flow_start *start)
{
	bool backlogged;

	start->pos = (u64)atomic64_fetch_add(cost, &f->pos);
	start->woke = begin(f, start->pos, vt);
	if (waits)
		backlogged = atomic64_fetch_add(1, &f->queued) > 0;
	else
		backlogged = atomic64_read(&f->queued) > 0;
	start->tag = flow_tag(f, start->pos, &start->epoch);
	if (!backlogged && vtime_before(start->tag, vt))
		catch_up(f, vt, start);
}

u64 flow_count_elsewhere(struct flow *f, u32 queue, u32 ios, u32 cost,
			 u64 service_ns)
{
	struct flow_elsewhere *e = &f->elsewhere;

	atomic64_add(cost, &e->cost);
	atomic64_add((s64)service_ns, &e->service_ns);
	if (!READ_ONCE(f->wanted))
		WRITE_ONCE(f->wanted, queue + 1);
	return (u64)atomic64_fetch_add(ios, &e->done) + ios;
}

void flow_totals(const struct flow *f, struct flow_totals *t)
{
	const struct flow_elsewhere *e = &f->elsewhere;
	u32 i;

	*t = (struct flow_totals){
		.done = (u64)atomic64_read(&e->done),
		.cost = (u64)atomic64_read(&e->cost),
		.service_ns = (u64)atomic64_read(&e->service_ns),
	};
	for (i = 0; i < f->nr_queues; i++) {
		struct flow_queue *fq = f->fq[i];

		t->inserted += READ_ONCE(fq->inserted);
		t->dispatched += READ_ONCE(fq->dispatched);
		t->done += port_counted(&fq->done);
		t->bytes += READ_ONCE(fq->bytes);
		t->wait_ns += READ_ONCE(fq->wait_ns);
		t->cost += port_counted(&fq->cost);
		t->service_ns += port_counted(&fq->service_ns);
	}
}

/* Has an io been inserted since flow_is_idle(), or does a task wait for a tag? */
static bool flow_is_used(const struct flow *f, const struct flow_totals *t)
{
	return t->inserted != f->seen || atomic64_read(&f->limit.waiters);
}

/* Has the flow had no io, waiting or in the device, for the grace period? */
static bool flow_is_idle(struct flow *f, const struct flow_totals *t, u64 now)
{
	if (t->inserted != t->done || flow_is_used(f, t)) {
		f->seen = t->inserted;
		f->idle_since_ns = now;
		return false;
	}
	return now - f->idle_since_ns >= FLOW_GRACE_NS;
}

/* Takes an idle flow out of the shares, unless an io has arrived. */
static bool flow_retire(struct flow *f)
{
	struct flow_totals t;

	/* Pairs with flow_charge() and flow_await(). */
	atomic64_xchg(&f->active, 0);
	flow_totals(f, &t);
	if (flow_is_used(f, &t)) {
		atomic64_set(&f->active, 1);
		return false;
	}
	flow_deactivate(f);
	return true;
}

bool flow_any_active(struct sched *s)
{
	unsigned long flags = port_lock(&s->active_lock);
	bool any = s->active;

	port_unlock(&s->active_lock, flags);
	return any;
}

/* ----------------------------------------------------------------- walks */

static void walk_lock(struct flow_walk *w)
{
	w->left = max(FLOW_WALK_LINES / (FLOW_LINES + w->sched->nr_queues), 1U);
	w->flags = port_lock(&w->sched->active_lock);
}

/* The flows that were visited are at the end of the list, and those that came. */
static struct flow *walk_take(struct flow_walk *w)
{
	struct flow *f = w->sched->active;

	if (!f || f->walk == w->number) {
		port_unlock(&w->sched->active_lock, w->flags);
		return NULL;
	}
	f->walk = w->number;
	list_remove(f);
	list_append(f);
	return f;
}

struct flow *flow_walk_begin(struct flow_walk *w, struct sched *s)
{
	w->sched = s;
	walk_lock(w);
	w->number = ++s->walks;
	return walk_take(w);
}

struct flow *flow_walk_next(struct flow_walk *w)
{
	if (!--w->left) {
		port_unlock(&w->sched->active_lock, w->flags);
		walk_lock(w);
	}
	return walk_take(w);
}

void flows_count(struct sched *s)
{
	struct flow_walk w;
	struct flow *f;

	for_each_active_flow(f, &w, s)
		flow_totals(f, &f->counted);
}

/*
 * Returns what @f asks for.  @all is the cost of all flows in the interval before the last
 * sweep, and @ns is the time since that one.  A flow asks for all if one of its requests
 * waits for half of the time on average, or if it gets nothing for its requests.  A flow
 * with requests that hardly wait could get ASKS_TIMES as much as it does.  It asks for a
 * quarter less than at the last sweep at most: a task without a CPU sends nothing for some
 * sweeps, and is not quiet.
 */
static u32 flow_asks(struct flow *f, const struct flow_totals *t, u64 all,
		     u64 ns)
{
	struct flow_asks *a = &f->asks;
	u64 cost = t->cost - a->cost, wait_ns = t->wait_ns - a->wait_ns;
	bool lacks_tag = atomic64_read(&f->limit.waiters);
	bool wants = t->inserted != t->done || lacks_tag;
	bool waits = 2 * wait_ns > ns || lacks_tag ||
		     (!cost && wants && a->wanted);
	u32 asks;

	a->cost = t->cost;
	a->wait_ns = t->wait_ns;
	a->wanted = wants;
	if (waits)
		return ASKS_ALL;
	/* Its first sweep may see a part of the time alone. */
	if (!f->idle_since_ns)
		return READ_ONCE(f->ask_until) < ~0ULL ? a->asked : ASKS_ALL;
	asks = max(a->asked - a->asked / 4, 1U);
	cost *= ASKS_TIMES;
	if (cost >= all)
		return ASKS_ALL;
	return max(asks, (u32)mul_u64_u64_div_u64(cost, ASKS_ALL, all));
}

static void flow_ask(struct flow *f, u32 asks)
{
	f->asks.asked = asks;
	flow_set_until(f, (u64)atomic64_read(&f->pos), asks);
	share_ask(&f->sched->share, &f->group, asks);
}

bool flow_sweep(struct sched *s, u64 now, bool *changed)
{
	u64 swept = 0, ns = now - s->swept_ns;
	u32 asks;
	struct flow_totals t;
	unsigned long flags;
	struct flow_walk w;
	struct flow *f;
	bool any;

	*changed = false;
	s->swept_ns = now;
	for_each_active_flow(f, &w, s) {
		flow_totals(f, &t);
		swept += t.cost - f->asks.cost;
		asks = flow_asks(f, &t, s->swept, ns);
		if (flow_is_idle(f, &t, now) && flow_retire(f))
			*changed = true;
		else
			flow_ask(f, asks);
	}
	WRITE_ONCE(s->swept, swept);
	if (share_sweep(&s->share))
		*changed = true;
	flags = port_lock(&s->active_lock);
	any = s->active != NULL;
	urgent_measure(&s->urgent, s->swept, ns);
	port_unlock(&s->active_lock, flags);
	return any;
}
