// SPDX-License-Identifier: GPL-2.0
/* Takes, awaits and hands over slots; slots.h has the argument. */
#include "slots.h"
#include "queue.h"

enum {
	/* Rivals with a counter that one hook reads, a cache line each. */
	RIVALS_READ	= 8,
};

int slots_init(struct slots *sl, struct sched *s, u32 depth, bool parts)
{
	*sl = (struct slots){
		.sched = s,
		.depth = depth,
		.limit = DEPTH_MAX,
		.parts = parts,
	};
	port_lock_init(&sl->resize_lock);
	sl->leases = port_zalloc(s->nr_queues * sizeof(*sl->leases));
	if (!sl->leases)
		return -ENOMEM;
	if (!token_tree_init(&sl->tree, s->nr_queues, depth))
		return 0;
	port_free(sl->leases);
	return -ENOMEM;
}

void slots_deinit(struct slots *sl)
{
	port_assert(slots_used(sl) == 0);
	token_tree_deinit(&sl->tree);
	port_free(sl->leases);
}

s64 slots_used(const struct slots *sl)
{
	return (s64)READ_ONCE(sl->tree.depth) - token_total(&sl->tree);
}

s64 slots_leased(const struct slots *sl)
{
	s64 sum = 0;
	u32 i, term;

	for (i = 0; i < sl->sched->nr_queues; i++)
		for (term = 0; term < LEASE_TERMS; term++)
			sum += atomic64_read(&sl->leases[i].in_term[term]);
	return sum;
}

/* ----------------------------------------------------------------- the set */

void slots_withdraw(struct slots *sl, u32 queue)
{
	slots_rank(sl, queue, false);
	queue_set_claim(&sl->ready, queue);
}

void slots_rank(struct slots *sl, u32 queue, bool first)
{
	if (likely(queue_set_has(&sl->first, queue) == first))
		return;
	if (first)
		queue_set_add(&sl->first, queue);
	else
		queue_set_claim(&sl->first, queue);
}

/* With parts: the queues that share D.  They are those with a rank, if there are any. */
static const struct queue_set *rivals_of(const struct slots *sl)
{
	return queue_set_any(&sl->first, sl->sched->nr_queues) ? &sl->first :
								 &sl->ready;
}

static s64 nr_rivals(const struct slots *sl)
{
	return queue_set_count(rivals_of(sl), sl->sched->nr_queues);
}

/* Returns the slots that @queue holds: those of its requests, and in its leaf. */
static s64 held(const struct slots *sl, u32 queue)
{
	const struct token_node *leaf = &sl->tree.leaf[queue];

	return atomic64_read(&leaf->used) + atomic64_read(&leaf->free);
}

/* Is @queue, one of @rivals, below its part with @more slots, rounded down? */
static bool is_below(const struct slots *sl, u32 queue, s64 more, s64 rivals)
{
	return (held(sl, queue) + more) * rivals <=
	       (s64)READ_ONCE(sl->tree.depth);
}

/* Returns the first queue of the set in a ring from @first on, or QUEUES_MAX. */
static u32 next_in_ring(const struct slots *sl, u32 first)
{
	const struct queue_set *rivals = rivals_of(sl);
	u32 found = queue_set_find(rivals, first, sl->sched->nr_queues);

	return found != QUEUES_MAX ? found : queue_set_find(rivals, 0, first);
}

/* May @queue, which is in the set, have @more slots than it holds? */
static bool may_hold(const struct slots *sl, u32 queue, s64 more)
{
	return queue_set_has(rivals_of(sl), queue) &&
	       is_below(sl, queue, more, nr_rivals(sl));
}

/*
 * Returns the queue in the set that gets a slot beyond the part of @queue, or
 * QUEUES_MAX if the set is empty.  Of the next RIVALS_READ in the ring it is the
 * first that stays within its part, or the one that holds the least.
 */
static u32 next_rival(const struct slots *sl, u32 queue)
{
	u32 first = next_in_ring(sl, queue + 1), at = first, due = first, read;
	s64 rivals = nr_rivals(sl), least = 0, holds;

	for (read = 0; at != QUEUES_MAX && read < RIVALS_READ; read++) {
		if (is_below(sl, at, 1, rivals))
			return at;
		holds = held(sl, at);
		if (at == first || holds < least) {
			least = holds;
			due = at;
		}
		at = next_in_ring(sl, at + 1);
		if (at == first)
			break;
	}
	return due;
}

/* Returns the queue in @set that is nearest to @queue, itself included, or QUEUES_MAX. */
static u32 nearest_in(const struct slots *sl, const struct queue_set *set,
		      u32 queue)
{
	const struct topology *t = &sl->sched->topo;
	u32 node = queue, found;

	for (;;) {
		found = queue_set_find(set, t->node[node].first,
				       t->node[node].last);
		if (found != QUEUES_MAX || node == t->root)
			return found;
		node = t->node[node].parent;
	}
}

/*
 * Returns the queue in the set that is nearest to @queue, of those with a rank if
 * there are any.  QUEUES_MAX: no queue waits.
 */
static u32 nearest(const struct slots *sl, u32 queue)
{
	u32 due = QUEUES_MAX;

	if (queue_set_any(&sl->first, sl->sched->nr_queues))
		due = nearest_in(sl, &sl->first, queue);
	/* The last queue with a rank may have left meanwhile. */
	return due != QUEUES_MAX ? due : nearest_in(sl, &sl->ready, queue);
}

/* ------------------------------------------------------------------- slots */

/* A queue takes no slot that is in the leaf of a queue which waits. */
static bool steal(struct slots *sl, u32 queue)
{
	return token_steal(&sl->tree, queue, sl->parts ? &sl->ready : NULL);
}

/*
 * A queue in the set need not look: every slot that is freed goes to a queue in
 * the set.  The first look writes no shared line.  A queue that finds a slot by
 * it never enters the set, where completions would hand it slots of others.
 */
bool slots_wait(struct slots *sl, u32 queue)
{
	bool got;

	if (queue_set_has(&sl->ready, queue))
		return false;
	if (!sl->parts && steal(sl, queue))
		return true;
	/* Pairs with slots_free(). */
	queue_set_add(&sl->ready, queue);
	if (sl->parts && !may_hold(sl, queue, 1))
		got = token_leaf_take(&sl->tree, queue);
	else
		got = steal(sl, queue);
	if (!slots_took(sl, queue, got))
		return false;
	slots_withdraw(sl, queue);
	return true;
}

/* The slots in the leaf of @queue are its own.  Others it takes up to its part. */
bool slots_take(struct slots *sl, u32 queue)
{
	s64 rivals = nr_rivals(sl);
	bool waits = rivals && queue_set_has(&sl->ready, queue);

	if (token_leaf_take(&sl->tree, queue))
		return slots_took(sl, queue, true);
	/* The root has a slot while nothing waits, and after a debt. */
	if ((waits || !rivals || is_below(sl, queue, 1, rivals + 1)) &&
	    token_root_take(&sl->tree))
		return slots_took(sl, queue, true);
	return !waits && slots_wait(sl, queue);
}

/* Without parts: a free slot near @queue is for the nearest queue that waits. */
static bool hand_over_near(struct slots *sl, u32 queue, struct wake *wake)
{
	u32 due = nearest(sl, queue);
	bool gave;

	if (due == QUEUES_MAX)
		return false;
	if (due == queue && !queue_set_has(&sl->ready, due)) {
		slots_rank(sl, due, false);
		return true;
	}
	if (due == queue) {
		/* It stays in the set while it uses its own slots. */
		if (token_peek(&sl->tree, queue))
			sched_wake(sl->sched, queue, wake);
		return false;
	}
	gave = token_give(&sl->tree, queue, due);
	if (!gave && !token_peek(&sl->tree, due))
		return false;
	slots_rank(sl, due, false);
	/* The slot is in the leaf (full order).  Pairs with slots_leave_slow(). */
	if (queue_set_claim(&sl->ready, due)) {
		sched_wake(sl->sched, due, wake);
		return gave;
	}
	if (gave)
		token_give(&sl->tree, due, queue);
	return true;
}

/*
 * With parts: the caller has taken a slot, which goes to a rival.  That one stays
 * in the set.  If the set is empty, @queue has the slot in its leaf.
 */
static void give(struct slots *sl, u32 queue, struct wake *wake)
{
	u32 due;

	do {
		while ((due = next_rival(sl, queue)) != QUEUES_MAX) {
			token_put(&sl->tree, due);
			/* Full order before.  Pairs with slots_leave_slow(). */
			if (queue_set_has(&sl->ready, due)) {
				sched_wake(sl->sched, due, wake);
				return;
			}
			slots_rank(sl, due, false);
			/* It has left: it has handed the slot over, or has not. */
			if (!token_take(&sl->tree, due))
				return;
		}
		token_put(&sl->tree, queue);
		/* Full order before.  Pairs with slots_wait(). */
	} while (queue_set_any(&sl->ready, sl->sched->nr_queues) &&
		 token_leaf_take(&sl->tree, queue));
}

/*
 * With parts: takes a slot that no queue in the set holds.  A queue that leaves
 * has such slots in its leaf alone.  A queue that has entered looks everywhere.
 */
static bool take_idle(struct slots *sl, u32 queue)
{
	if (queue_set_has(&sl->ready, queue))
		return token_take_except(&sl->tree, queue, &sl->ready);
	return token_take(&sl->tree, queue);
}

void slots_hand_over_slow(struct slots *sl, u32 queue, struct wake *wake)
{
	if (!sl->parts)
		while (hand_over_near(sl, queue, wake))
			;
	else
		while (queue_set_any(&sl->ready, sl->sched->nr_queues) &&
		       take_idle(sl, queue))
			give(sl, queue, wake);
}

/*
 * With parts: @queue waits, and may have a slot back.  It keeps the slots of its
 * part, and reads no counter of another queue for that.
 */
static void keep_or_pass(struct slots *sl, u32 queue, struct wake *wake)
{
	if (!token_peek(&sl->tree, queue))
		return;
	/* Two CPUs that repay a debt may leave a slot in the root. */
	if (unlikely(token_root_take(&sl->tree)))
		token_put(&sl->tree, queue);
	if (may_hold(sl, queue, 0))
		sched_wake(sl->sched, queue, wake);
	else if (token_leaf_take(&sl->tree, queue))
		give(sl, queue, wake);
}

void slots_free_slow(struct slots *sl, u32 queue, struct wake *wake)
{
	/* The slot is in the leaf (full order).  Pairs with slots_leave_slow(). */
	if (sl->parts && queue_set_has(&sl->ready, queue))
		keep_or_pass(sl, queue, wake);
	else
		slots_hand_over_slow(sl, queue, wake);
}

bool slots_end_lease(struct slots *sl, u32 queue)
{
	atomic64_t *in_term = sl->leases[queue].in_term;
	u32 term = READ_ONCE(sl->term);

	return token_count_take(&in_term[!term]) ||
	       token_count_take(&in_term[term]);
}

void slots_end_term(struct slots *sl, struct wake *wake)
{
	u32 last = !sl->term, i;

	for (i = 0; i < sl->sched->nr_queues; i++)
		while (token_count_take(&sl->leases[i].in_term[last]))
			slots_put(sl, i, wake);
	WRITE_ONCE(sl->term, last);
}

/*
 * The queue leaves the set (full order), and then looks at its leaf.  Pairs with
 * hand_over_near() and give(), and with the look at the set in slots_free().
 */
void slots_leave_slow(struct slots *sl, u32 queue, struct wake *wake)
{
	slots_withdraw(sl, queue);
	slots_hand_over(sl, queue, wake);
}

void slots_wake_all(struct slots *sl, struct wake *wake)
{
	u32 i;

	for (i = 0; i < sl->sched->nr_queues; i++) {
		slots_rank(sl, i, false);
		if (queue_set_claim(&sl->ready, i))
			sched_wake(sl->sched, i, wake);
	}
}

/* Tick and tune may both resize. */
static void resize(struct slots *sl, u32 *field, u32 value, struct wake *wake)
{
	unsigned long flags = port_lock(&sl->resize_lock);

	WRITE_ONCE(*field, value);
	token_resize(&sl->tree, min(sl->depth, sl->limit));
	port_unlock(&sl->resize_lock, flags);
	slots_wake_all(sl, wake);
}

void slots_resize(struct slots *sl, u32 depth, struct wake *wake)
{
	resize(sl, &sl->depth, depth, wake);
}

void slots_limit(struct slots *sl, u32 limit, struct wake *wake)
{
	if (limit != READ_ONCE(sl->limit))
		resize(sl, &sl->limit, limit, wake);
}

bool slots_forgot(const struct slots *sl, u32 queue)
{
	if (!queue_set_has(&sl->ready, queue))
		return false;
	if (!sl->parts)
		return token_total(&sl->tree) > 0;
	/* The slots of another queue in the set are for that one. */
	return token_peek(&sl->tree, queue) ||
	       token_peek_except(&sl->tree, &sl->ready);
}
