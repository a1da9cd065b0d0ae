// SPDX-License-Identifier: GPL-2.0
/* Takes, awaits and hands over slots; slots.h has the argument. */
#include "slots.h"
#include "queue.h"

int slots_init(struct slots *sl, struct sched *s, u32 depth, bool parts)
{
	*sl = (struct slots){ .sched = s, .depth = depth, .limit = DEPTH_MAX };
	port_lock_init(&sl->resize_lock);
	sl->leases = port_zalloc(s->nr_queues * sizeof(*sl->leases));
	if (!sl->leases)
		return -ENOMEM;
	if (parts) {
		sl->queue = port_zalloc(s->nr_queues * sizeof(*sl->queue));
		if (!sl->queue)
			goto leases;
	}
	if (!token_tree_init(&sl->tree, s->nr_queues, depth))
		return 0;
	port_free(sl->queue);
leases:
	port_free(sl->leases);
	return -ENOMEM;
}

void slots_deinit(struct slots *sl)
{
	port_assert(slots_used(sl) == 0);
	token_tree_deinit(&sl->tree);
	port_free(sl->queue);
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

/* The queues that share D: those in the set, and with parts the woken ones. */
static s64 nr_rivals(const struct slots *sl)
{
	if (!sl->queue)
		return queue_set_count(&sl->ready, sl->sched->nr_queues);
	return queue_set_count_either(&sl->ready, &sl->woken,
				      sl->sched->nr_queues);
}

/* The set comes first.  Pairs with claim(). */
void slots_withdraw(struct slots *sl, u32 queue)
{
	queue_set_claim(&sl->ready, queue);
	if (sl->queue)
		queue_set_claim(&sl->woken, queue);
}

/*
 * Takes @queue out of the set, to wake it.  It is a rival until it runs, so it
 * is added to `woken` (full order) before it leaves the set.  If it has left the
 * set already, it may run no more, so the addition is taken back.
 */
static bool claim(struct slots *sl, u32 queue)
{
	bool added = sl->queue && queue_set_add(&sl->woken, queue);

	if (queue_set_claim(&sl->ready, queue))
		return true;
	if (added)
		queue_set_claim(&sl->woken, queue);
	return false;
}

/* May @queue have one more slot?  It is one of @rivals. */
static bool is_due(const struct slots *sl, u32 queue, s64 rivals)
{
	return !sl->queue || atomic64_read(&sl->queue[queue].used) * rivals <
				     (s64)READ_ONCE(sl->tree.depth);
}

/* Is it below its part even with one more, rounded down? */
static bool is_below(const struct slots *sl, u32 queue, s64 rivals)
{
	return !sl->queue ||
	       (atomic64_read(&sl->queue[queue].used) + 1) * rivals <=
		       (s64)READ_ONCE(sl->tree.depth);
}

/* is_due() or is_below() */
typedef bool (*entitled)(const struct slots *sl, u32 queue, s64 rivals);

/* Returns the first member of @set in [first, last) that @is, or QUEUES_MAX. */
static u32 find_in(const struct slots *sl, const struct queue_set *set,
		   u32 first, u32 last, s64 rivals, entitled is)
{
	u32 found = queue_set_find(set, first, last);

	while (found != QUEUES_MAX && !is(sl, found, rivals))
		found = queue_set_find(set, found + 1, last);
	return found;
}

/* Is a rival in @set below its part? */
static bool any_below(const struct slots *sl, const struct queue_set *set,
		      s64 rivals)
{
	return find_in(sl, set, 0, sl->sched->nr_queues, rivals, is_below) !=
	       QUEUES_MAX;
}

/*
 * Returns the first queue of the set that @is, in a ring from @first on, or
 * QUEUES_MAX.
 */
static u32 next_in_ring(const struct slots *sl, u32 first, s64 rivals,
			entitled is)
{
	u32 found = find_in(sl, &sl->ready, first, sl->sched->nr_queues, rivals,
			    is);

	return found != QUEUES_MAX ?
		       found :
		       find_in(sl, &sl->ready, 0, first, rivals, is);
}

/*
 * Returns the queue in the set that is nearest to @queue, itself included, or
 * QUEUES_MAX.
 */
static u32 nearest(const struct slots *sl, u32 queue)
{
	const struct topology *t = &sl->sched->topo;
	u32 node = queue, found;

	for (;;) {
		found = queue_set_find(&sl->ready, t->node[node].first,
				       t->node[node].last);
		if (found != QUEUES_MAX || node == t->root)
			return found;
		node = t->node[node].parent;
	}
}

/*
 * Returns the queue in the set that gets a slot of @queue, or QUEUES_MAX.  With
 * parts, queues below their part come first, @queue before the others.  If there
 * is none in the set but a woken one, the slot is left to that: it takes the slot
 * when it runs, in take_part().  The slots that parts leave over go round, so
 * @queue comes last for these.
 */
static u32 next_due(const struct slots *sl, u32 queue)
{
	s64 rivals;
	u32 found;

	if (!sl->queue)
		return nearest(sl, queue);
	rivals = nr_rivals(sl);
	found = next_in_ring(sl, queue, rivals, is_below);
	if (found != QUEUES_MAX || any_below(sl, &sl->woken, rivals))
		return found;
	return next_in_ring(sl, queue + 1, rivals, is_due);
}

/* ------------------------------------------------------------------- slots */

/*
 * Takes a slot from any node.  With parts, the leaves of woken queues are left
 * out.  Otherwise woken queues would take each other's slots in turn.
 */
static bool steal(struct slots *sl, u32 queue)
{
	return token_steal(&sl->tree, queue, sl->queue ? &sl->woken : NULL);
}

/*
 * Below its part @queue takes a slot near it, or from @any node.  If no
 * rival is below, it may have one more from its leaf, which was given to it.
 */
static bool take_part(struct slots *sl, u32 queue, s64 rivals, bool any)
{
	bool got;

	if (likely(is_below(sl, queue, rivals)))
		got = any ? steal(sl, queue) : token_take(&sl->tree, queue);
	else
		got = is_due(sl, queue, rivals) &&
		      !any_below(sl, &sl->ready, rivals) &&
		      !any_below(sl, &sl->woken, rivals) &&
		      token_leaf_take(&sl->tree, queue);
	return slots_took(sl, queue, got);
}

/*
 * A queue in the set need not look: every slot that is freed goes to a queue in
 * the set.  The first look writes no shared line.  A queue that finds a slot by
 * it never enters the set, where completions would hand it slots of others.
 */
bool slots_wait(struct slots *sl, u32 queue)
{
	if (!sl->queue) {
		if (queue_set_has(&sl->ready, queue))
			return false;
		if (steal(sl, queue))
			return true;
	}
	/* Pairs with slots_free(). */
	queue_set_add(&sl->ready, queue);
	if (!take_part(sl, queue, nr_rivals(sl), true))
		return false;
	slots_withdraw(sl, queue);
	return true;
}

bool slots_take(struct slots *sl, u32 queue)
{
	s64 others = nr_rivals(sl);

	if (likely(!others) && slots_try(sl, queue))
		return true;
	return take_part(sl, queue, others + 1, false) || slots_wait(sl, queue);
}

/*
 * Moves a free slot near @queue into the leaf of @due.  With parts the slot may
 * be anywhere: it was left when no queue seemed to be due it.
 */
static bool give(struct slots *sl, u32 queue, u32 due)
{
	if (token_give(&sl->tree, queue, due))
		return true;
	if (!sl->queue || !steal(sl, queue))
		return false;
	token_put(&sl->tree, due);
	return true;
}

/* Hands over one slot.  Returns true if another one may be left. */
static bool hand_over_one(struct slots *sl, u32 queue, u32 due,
			  struct wake *wake)
{
	bool gave = give(sl, queue, due);

	if (!gave && !token_peek(&sl->tree, due))
		return false;
	/* The slot is in the leaf (full order).  Pairs with slots_leave_slow(). */
	if (claim(sl, due)) {
		sched_wake(sl->sched, due, wake);
		/* With parts, a slot that is given is free for every queue. */
		return gave && !sl->queue;
	}
	if (gave)
		token_give(&sl->tree, due, queue);
	return true;
}

void slots_hand_over_slow(struct slots *sl, u32 queue, struct wake *wake)
{
	u32 due;

	while ((due = next_due(sl, queue)) != QUEUES_MAX) {
		if (due == queue && !sl->queue) {
			/* It stays in the set while it uses its own slots. */
			if (token_peek(&sl->tree, queue))
				sched_wake(sl->sched, queue, wake);
			return;
		}
		if (!hand_over_one(sl, queue, due, wake))
			return;
	}
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

void slots_offer(struct slots *sl, struct wake *wake)
{
	u32 i;

	/* Every queue may have the slots of the root. */
	if (token_peek(&sl->tree, 0))
		slots_hand_over(sl, 0, wake);
	for (i = token_next_leaf(&sl->tree, 1); i != QUEUES_MAX;
	     i = token_next_leaf(&sl->tree, i + 1))
		if (token_peek(&sl->tree, i))
			slots_hand_over(sl, i, wake);
}

/*
 * The queue leaves the set (full order), and then looks at its leaf.  Pairs with
 * hand_over_one(), and with the look at the set in slots_free().
 */
void slots_leave_slow(struct slots *sl, u32 queue, struct wake *wake)
{
	slots_withdraw(sl, queue);
	slots_hand_over(sl, queue, wake);
}

void slots_wake_all(struct slots *sl, struct wake *wake)
{
	u32 i;

	for (i = 0; i < sl->sched->nr_queues; i++)
		if (queue_set_has(&sl->ready, i) && claim(sl, i))
			sched_wake(sl->sched, i, wake);
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
	return queue_set_has(&sl->ready, queue) && token_total(&sl->tree) > 0 &&
	       is_due(sl, queue, nr_rivals(sl));
}
