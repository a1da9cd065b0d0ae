// SPDX-License-Identifier: GPL-2.0
/* The fair queue of the tasks that wait for tags: see limit.h. */
#include "limit.h"
#include "sched.h"

enum {
	/*
	 * Most tags by which a flow without woken tasks may be behind.  Its task needs
	 * time to ask for the next tag.
	 */
	BEHIND_MOST = 16,
};

void limit_order_init(struct tag_waiters *o, u32 line)
{
	*o = (struct tag_waiters){ .line = line };
	port_lock_init(&o->lock);
	heap_init(&o->heap);
}

/* The start tag of the next request of @f in the map of @o. */
static vtime_t *start_of(const struct tag_waiters *o, const struct flow *f)
{
	return &f->fq[o->line]->tag;
}

u32 limit_most(const struct sched *s, u32 depth)
{
	if (READ_ONCE(s->share.nr_active) < 2)
		return depth;
	return clamp(2 * READ_ONCE(s->params.depth), limit_half(depth),
		     depth - depth / 4);
}

/* The tags that flows share which are not behind virtual time. */
static u32 open_use(const struct tag_waiters *o, struct tag_use use)
{
	return READ_ONCE(o->due) + use.all - min(use.foreign, use.all);
}

static struct tag_waiter *waiter_of(struct heap_node *n)
{
	return container_of(n, struct tag_waiter, node);
}

static bool is_behind(const struct tag_waiters *o, vtime_t start)
{
	return !vtime_before(READ_ONCE(o->vt), start);
}

bool limit_goes_first(const struct tag_waiters *o, const struct flow *f,
		      struct tag_use use, u32 tags)
{
	u32 depth = READ_ONCE(o->depth);

	if (open_use(o, use) + tags <= limit_half(depth))
		return use.all + tags <= depth;
	return tags == 1 && use.all < depth &&
	       is_behind(o, READ_ONCE(*start_of(o, f)));
}

/* The link to the first waiter of @f for the map of @o; it links to NULL if none. */
static struct tag_waiter **first_link(const struct tag_waiters *o,
				      struct flow *f)
{
	struct tag_waiter **link = &f->limit.first;

	port_assert_held(&f->lock);
	while (*link && (*link)->order != o)
		link = &(*link)->next_first;
	return link;
}

/* The tag to which @cost takes the tag @from, by the present share of @f. */
static vtime_t ahead_by(struct flow *f, vtime_t from, u64 cost)
{
	return vtime_at(from, 0, share_inverse(flow_present_share(f)), cost);
}

/* The woken task that has the counts of its flow, or NULL. */
static struct tag_waiter *woken_of(const struct tag_waiters *o,
				   const struct flow *f)
{
	struct tag_waiter *w = o->woken;

	while (w && (w->flow != f || !w->tags))
		w = w->next_woken;
	return w;
}

/* The least start tag of @f: behind by BEHIND_MOST tags, or its part of the map if less. */
static vtime_t least_start(const struct tag_waiters *o, struct flow *f)
{
	u64 cost = READ_ONCE(f->tag_cost);
	u64 part = (u64)READ_ONCE(o->depth) * cost;
	u64 behind = min(part, ahead_by(f, 0, BEHIND_MOST * cost));

	return (o->vt - behind) & ~(vtime_t)1;
}

/*
 * Advances the start tag of @f to @start, or to the least one.  @f may be further behind
 * while its tasks wake up: limit_charge() has not charged their tags yet.
 */
static void advance(struct tag_waiters *o, struct flow *f, vtime_t start)
{
	if (vtime_before(start, o->vt) && !woken_of(o, f))
		start = vtime_max(start, least_start(o, f));
	WRITE_ONCE(*start_of(o, f), start);
	o->last = vtime_max(o->last, start);
}

/* The start tag of the flow once it has used @tags tags.  Its last cost is taken. */
static vtime_t start_after(const struct tag_waiters *o, struct flow *f,
			   u32 tags)
{
	vtime_t start = *start_of(o, f);

	if (!tags)
		return start;
	return ahead_by(f, start,
			(u64)tags * (READ_ONCE(f->tag_cost) ?: o->cost));
}

/* The start tag of @f after the tags of its woken tasks: its place in the order. */
static vtime_t key_of(const struct tag_waiters *o, struct flow *f)
{
	const struct tag_waiter *woken = woken_of(o, f);

	return start_after(o, f, woken ? woken->tags : 0);
}

/* @w is the first waiter of its flow: it joins the heap.  least() corrects its key. */
static void push(struct tag_waiter *w)
{
	struct tag_waiters *o = w->order;
	const vtime_t *start = start_of(o, w->flow);

	advance(o, w->flow, *start);
	heap_push(&o->heap, &w->node, *start);
}

void limit_wait(struct tag_waiter *w)
{
	struct tag_waiters *o = w->order;
	struct flow *f = w->flow;
	unsigned long flags, flow_flags;
	struct tag_waiter **link;

	w->next = w->next_first = NULL;
	w->last = w;
	w->nr = 1;
	flow_await(f);
	flags = port_lock(&o->lock);
	flow_flags = port_lock(&f->lock);
	link = first_link(o, f);
	if (*link) {
		(*link)->last->next = w;
		(*link)->last = w;
		(*link)->nr++;
	} else {
		*link = w;
		push(w);
	}
	port_unlock(&f->lock, flow_flags);
	WRITE_ONCE(o->scarce, true);
	o->waited = true;
	o->gave |= !limit_awaited(o);
	/* Fully ordered: see limit.h. */
	atomic64_fetch_add(1, &o->nr);
	port_unlock(&o->lock, flags);
}

/* The next waiter of the flow takes the place of @w, which is in no heap. */
static void succeed(struct tag_waiter *w)
{
	struct flow *f = w->flow;
	unsigned long flags = port_lock(&f->lock);
	struct tag_waiter **link = first_link(w->order, f), *next = w->next;

	if (next) {
		next->last = w->last;
		next->nr = w->nr - 1;
		next->next_first = w->next_first;
		*link = next;
		push(next);
	} else {
		*link = w->next_first;
	}
	port_unlock(&f->lock, flags);
}

/*
 * A flow's place may have advanced since its waiter was pushed.  Each charge and each
 * tag makes one key old, so all calls together re-key as often as tags are given.
 */
static struct heap_node *least(struct tag_waiters *o)
{
	struct heap_node *n;

	while ((n = heap_top(&o->heap))) {
		vtime_t key = key_of(o, waiter_of(n)->flow);

		if (n->key == key)
			break;
		heap_rekey_top(&o->heap, key);
	}
	return n;
}

/* Of the flows with a woken task that is not late, that of the least place, *@key; or NULL. */
static struct tag_waiter *least_woken(const struct tag_waiters *o, vtime_t *key)
{
	struct tag_waiter *w, *best = NULL;

	for (w = o->woken; w; w = w->next_woken) {
		vtime_t own;

		if (!w->tags || w->late)
			continue;
		own = start_after(o, w->flow, w->tags);
		if (!best || vtime_before(own, *key)) {
			best = w;
			*key = own;
		}
	}
	return best;
}

/*
 * Is a flow at @key to have a tag of those that are free, by the rule for a map that is
 * not stuck?
 */
static bool has_room(const struct sched *s, struct tag_waiters *o,
		     struct tag_use use, vtime_t key, bool given_back)
{
	u32 most = given_back ? limit_most(s, o->depth) : limit_half(o->depth);
	bool room = open_use(o, use) < most;

	if (room)
		o->stuck = false;
	return room || is_behind(o, key);
}

/* Do so many requests of @f wait in the scheduler that they leave no tag to share? */
static bool fills_map(const struct sched *s, const struct tag_waiters *o,
		      const struct flow *f)
{
	return (u64)atomic64_read(&f->queued) >= limit_most(s, o->depth);
}

/* Virtual time passes @f, which is at @key, without a tag. */
static void lose_turn(struct tag_waiters *o, struct flow *f, vtime_t key)
{
	WRITE_ONCE(o->vt, vtime_max(o->vt, key));
	advance(o, f, ahead_by(f, key, READ_ONCE(f->tag_cost)));
}

/* @w, which was waiting, wakes up for a tag. */
static void wake(struct tag_waiter *w)
{
	struct tag_waiters *o = w->order;
	struct tag_waiter *first = woken_of(o, w->flow);

	w->late = false;
	w->tags = !first;
	w->nr_woken = !first;
	if (first) {
		first->tags++;
		first->nr_woken++;
	}
	w->next_woken = o->woken;
	o->woken = w;
}

/* The waiter with the least place wakes up. */
static struct tag_waiter *pop(struct tag_waiters *o)
{
	struct tag_waiter *w = waiter_of(heap_pop(&o->heap));

	succeed(w);
	wake(w);
	o->gave = true;
	atomic64_fetch_add(-1, &w->flow->limit.waiters);
	return w;
}

struct tag_waiter *limit_take(const struct sched *s, struct tag_waiters *o,
			      struct tag_use use, bool given_back)
{
	struct tag_waiter *woken;
	struct heap_node *n;
	struct flow *f;
	vtime_t key = 0;
	bool lost = false;

	port_assert_held(&o->lock);
	while (use.all + o->due < o->depth) {
		n = least(o);
		woken = least_woken(o, &key);
		if (woken && n && !vtime_before(key, n->key))
			woken = NULL;
		if (!woken && !n)
			return NULL;
		key = woken ? key : n->key;
		f = woken ? woken->flow : waiter_of(n)->flow;
		if (!has_room(s, o, use, key, given_back)) {
			if (!o->stuck)
				return NULL;
			if (fills_map(s, o, f)) {
				if (woken || lost)
					return NULL;
				lose_turn(o, f, key);
				lost = true;
				continue;
			}
		}
		WRITE_ONCE(o->vt, vtime_max(o->vt, key));
		if (!woken)
			return pop(o);
		woken->tags++;
		WRITE_ONCE(o->due, o->due + 1);
	}
	return NULL;
}

void limit_runs(struct tag_waiter *w)
{
	struct tag_waiters *o = w->order;
	struct tag_waiter *holder = woken_of(o, w->flow);
	struct tag_waiter **link = &o->woken;

	port_assert_held(&o->lock);
	holder->tags--;
	holder->nr_woken--;
	while (*link != w)
		link = &(*link)->next_woken;
	*link = w->next_woken;
	atomic64_fetch_add(-1, &o->nr);
	if (w != holder)
		return;
	/* Another woken task of the flow has the counts from now on. */
	for (holder = o->woken; holder; holder = holder->next_woken)
		if (holder->flow == w->flow)
			break;
	if (holder) {
		holder->tags = w->tags;
		holder->nr_woken = w->nr_woken;
	} else {
		WRITE_ONCE(o->due, o->due - w->tags);
	}
}

/* Returns @cost, or its part for a flow that waits in several maps: limit.h. */
static u64 cost_in_map(const struct tag_waiters *o, struct flow *f, u32 cost)
{
	u64 all = (u64)atomic64_read(&f->limit.waiters), here = 0;
	unsigned long flags = port_lock(&f->lock);
	const struct tag_waiter *first = *first_link(o, f);

	if (first)
		here = first->nr;
	port_unlock(&f->lock, flags);
	/* The request that is charged counts as one here. */
	return div64_u64(cost * (max(all, here) + 1), here + 1);
}

void limit_charge_slow(struct tag_waiters *o, struct flow *f, u32 cost)
{
	unsigned long flags = port_lock(&o->lock);

	advance(o, f, ahead_by(f, *start_of(o, f), cost_in_map(o, f, cost)));
	WRITE_ONCE(f->tag_cost, cost);
	o->cost = cost;
	port_unlock(&o->lock, flags);
}

/* Bounds the start tag of the flow of @n; see limit.h.  least() corrects the key. */
static vtime_t bounded(struct heap_node *n, const void *unused)
{
	struct tag_waiter *w = waiter_of(n);
	struct tag_waiters *o = w->order;
	vtime_t *start = start_of(o, w->flow);
	vtime_t most = ahead_by(w->flow, o->vt, READ_ONCE(w->flow->tag_cost));

	(void)unused;
	if (vtime_before(most, *start))
		WRITE_ONCE(*start, most);
	return *start;
}

void limit_reweigh(struct tag_waiters *o)
{
	unsigned long flags = port_lock(&o->lock);
	struct heap_node *n = heap_top(&o->heap);
	u64 now;

	if (n) {
		now = share_generation(&waiter_of(n)->flow->sched->share);
		if (now != o->generation)
			heap_rebuild(&o->heap, bounded, NULL);
		o->generation = now;
	}
	port_unlock(&o->lock, flags);
}

/* Ends the debts if no task waits, or has waited since the last call. */
static void end_debts(struct tag_waiters *o)
{
	bool waits = limit_awaited(o);

	if (!waits && !o->waited) {
		WRITE_ONCE(o->vt, o->last);
		WRITE_ONCE(o->scarce, false);
	}
	o->waited = waits;
}

/* A task that was late at the last call has no CPU: no more tags are due to its flow. */
static void end_due(struct tag_waiters *o)
{
	struct tag_waiter *w;
	u32 own;

	for (w = o->woken; w; w = w->next_woken) {
		if (!w->tags)
			continue;
		own = w->late ? w->nr_woken : w->tags;
		WRITE_ONCE(o->due, o->due - (w->tags - own));
		w->tags = own;
		w->late = true;
	}
}

/* Notes whether the map is stuck.  @sent: requests so far, of all maps. */
static void look_if_stuck(struct tag_waiters *o, u64 sent)
{
	if (o->gave || !limit_awaited(o))
		o->sent = sent;
	o->gave = false;
	o->stuck |= sent - o->sent >= 2ULL * o->depth;
}

bool limit_refresh(struct tag_waiters *o, u64 sent, u64 now)
{
	unsigned long flags;

	if (!limit_is_scarce(o) || now < o->next_ns)
		return false;
	o->next_ns = now + FLOW_GRACE_NS;
	limit_reweigh(o);
	flags = port_lock(&o->lock);
	look_if_stuck(o, sent);
	end_due(o);
	end_debts(o);
	port_unlock(&o->lock, flags);
	return limit_awaited(o);
}
