// SPDX-License-Identifier: GPL-2.0
/*
 * mqfq - multi-queue fair queueing
 *
 * The problem.  Fair queueing wants one priority queue, from which a request
 * with the least start tag of all is always dispatched.  A drive with a queue
 * per CPU does a million requests a second.  At that rate a structure that
 * every CPU writes for every request costs more than the request.
 *
 * The idea (the paper).  Each CPU has a priority queue.  The CPU dispatches from
 * it by itself while its head tag is at most T ahead of *virtual time*.
 * Virtual time is the least published head tag of all queues.  T bounds the
 * unfairness.  Within T the dispatches of different queues commute, and their
 * CPUs need not meet.  At most D requests are in the device, for otherwise the
 * device would decide the order.  Three structures keep common state near the
 * CPUs that use it:
 *   - the mindicator knows virtual time,
 *   - the token tree holds the D slots,
 *   - the wheel holds the throttled queues, by the virtual time at which each
 *     may go on.
 * The set of queues that wait for a slot is in core/slots.h.  The watchdog and
 * the sweep for idle flows are in core/chassis.h.
 * mqfq_send.c has the way of requests past the order of an empty queue.
 *
 * Example.  T = 64 KiB.  Two flows of share 1/2 submit requests of 4 KiB, one
 * flow on each of two CPUs.  Each request advances its flow's tag by 8 KiB.
 * CPU 0 dispatches tags 0, 8, .. 64 KiB.  It stops at 72, because 72 > 0 + 64.
 * The waiting head tag of CPU 1 keeps virtual time at 0.  The queue of CPU 0 is
 * put into the wheel, due at 72 - 64 = 8.  CPU 1 then dispatches its first
 * request, virtual time becomes 8, and the wheel turns: CPU 0 goes on.
 *
 * Published tags.  Insert and dispatch are one critical section.  So a queue
 * that empties as fast as it is filled has nothing to wait for, and never shows
 * its head tag to other queues.  A queue publishes its head tag when dispatch
 * leaves it throttled or without a slot.  From then on the published tag
 * follows the head tag, until the queue is empty again.  While no queue
 * publishes a tag, virtual time stands still.  Then a queue that gets more than
 * T ahead raises virtual time to its own head tag.  That is one shared update
 * per T bytes instead of one per request.
 *
 * Invariants
 *   I1  virtual time never decreases.
 *   I2  no request that may be delayed starts with a tag beyond VT + T.  A T that
 *       was chosen ("auto") is no less than two requests of the flow, of 4 KiB
 *       at most.
 *   I3  slots in use and all counts of the token tree sum to D.
 *   I4  the queue that holds virtual time back is never parked.  A queue is
 *       throttled only while head tag > VT + T.  The wheel wakes a queue less
 *       than one bucket, at most T, after its due time.  At T = 0 there is no
 *       wheel: advance() wakes the queue that holds virtual time back.
 *   I5  a queue with requests is running, or in the wheel (at T = 0: in the set
 *       `throttled`), or in the ready set, or blocked by its host.
 *
 * Wake-ups (I5).
 *   throttled: the CPU that advances virtual time past the start of the
 *     queue's bucket turns the wheel, and wakes the queue itself.  The queue
 *     looks for a slot when it runs.
 *   ready: a completion puts its slot and then looks at the ready set.  A
 *     queue that waits goes on doing so until it is empty, throttled or
 *     blocked.  Then it leaves the set and hands over the slots that it has.
 *   A queue that waits announces itself first (a full-order atomic), and then
 *   looks at its condition again.  A waker changes the condition first (full
 *   order), and then looks for queues that wait.  One of the two sees the
 *   other.  The figure in the paper announces after the look, and so loses a
 *   slot that is freed in between.
 *   If a slot is in the leaf of an idle queue, the second look steals it.
 *
 * Urgent and polled requests.  An urgent request (IO_URGENT: metadata, swap, or
 * sent back by a driver) passes all others, up to a bound (core/urgent.h).  It
 * is charged, so its flow pays afterwards, and it takes a slot if one is free.
 * A request that passes for isolation (IO_FIRST) goes behind those, before the head of
 * its queue, and waits for a slot with a rank (core/slots.h).
 * A polled request (IO_POLLED) has its slot for a lease (core/slots.h).
 *
 * Limits.  While a CPU cannot run its queue (preempted, interrupts off), the
 * other queues go T ahead and wait.  A flow's position and backlog count are in
 * one cache line, which is written by every CPU that the flow submits from.
 *
 * Sources: Hedayati, Shen, Scott, Marty, Multi-Queue Fair Queueing, USENIX ATC
 * 2019, sections 3.1 to 3.3 and figure 2.  SFQ: Goyal, Vin, Cheng, 1996.
 * Tested by tests/sim (bounds, liveness), tests/mt (threads), tests/vm.
 */
#include "cost/cost_estimator.h"
#include "mqfq.h"
#include "core/policies.h"
#include "core/queue.h"

enum {
	/*
	 * A bucket is T / 8 wide.  So the wheel releases a queue while its head
	 * tag is still, on average, at least 7/8 T ahead of virtual time.
	 */
	WHEEL_SHARE_SHIFT = 3,
	/*
	 * While a queue is throttled, the host checks this often whether the
	 * queue that holds virtual time back can run at all.
	 */
	PINNED_NS = 5 * 1000 * 1000,
	/*
	 * The lag allowance of a flow, for each slot.  On a drive with few tags
	 * per hardware queue the queues take turns.  Meanwhile the requests
	 * that wait in one queue lag by the service of the other queues.  The
	 * device owes them this service, so that lag is not clamped.
	 */
	LAG_PER_SLOT = 1 << 16,
};

/*
 * Virtual time starts 64 GiB before its wrap.  So every machine has seen a wrap
 * after a minute of I/O.
 */
#define VT_START	((vtime_t)0 - (1ULL << 36))

static struct mqfq *mqfq_of(const struct queue *q)
{
	return q->sched->own;
}

/* Is @a more than T ahead of virtual time @vt? */
static bool beyond(const struct sched *s, vtime_t a, vtime_t vt)
{
	return vtime_before(vt + READ_ONCE(mqfq_params(&s->params)->threshold),
			    a);
}

/* Returns T for the first request of @q, which is not empty. */
static u64 threshold_of(const struct queue *q)
{
	const struct lane *l = &tag_order_top(&mqfq_queue_of(q)->order)->lane;

	return mqfq_threshold(q->sched, l->flow, l->fifo.head->cost);
}

/* Is the head tag of @q too far ahead? */
static bool is_ahead(const struct mqfq *m, const struct queue *q,
		     vtime_t head_tag)
{
	return beyond(q->sched, head_tag, mqfq_vt(m)) &&
	       vtime_before(mqfq_vt(m) + threshold_of(q), head_tag);
}

/* ---------------------------------------------------------- virtual time */

struct unpark {
	struct mqfq *m;
	struct wake *wake;
};

/* The queue is not throttled any more: it looks for a slot when it runs. */
static void unpark(void *arg, u32 queue)
{
	struct unpark *u = arg;

	sched_wake(u->m->sched, queue, u->wake);
}

/*
 * The tags have changed: each queue that waits publishes its head tag anew.  With
 * the old tag in force, a queue could use its own slots again and again, while a
 * queue with an earlier tag waits for one.
 */
static void unpark_all(struct mqfq *m, struct wake *wake)
{
	struct unpark u = { .m = m, .wake = wake };

	wheel_flush(&m->wheel, unpark, &u);
	queue_set_drain(&m->throttled, m->sched->nr_queues, unpark, &u);
	slots_wake_all(&m->slots, wake);
}

void mqfq_raise_vt(struct mqfq *m, vtime_t to)
{
	s64 vt = atomic64_read(&m->vt);

	while (vtime_before((vtime_t)vt, to))
		if (atomic64_try_cmpxchg(&m->vt, &vt, (s64)to))
			break;
}

/*
 * Raises virtual time to the least published head tag, and wakes the queues
 * that are no longer throttled.
 */
static void advance(struct mqfq *m, struct wake *wake)
{
	vtime_t least = mindicator_min(&m->tags);
	struct unpark u = { .m = m, .wake = wake };

	if (least == VTIME_NONE)
		return;
	mqfq_raise_vt(m, least);

	if (READ_ONCE(mqfq_params(&m->sched->params)->threshold)) {
		wheel_turn(&m->wheel, mqfq_vt(m), unpark, &u);
	} else {
		u32 holder = mindicator_holder(&m->tags);

		if (holder < m->sched->nr_queues &&
		    queue_set_claim(&m->throttled, holder))
			unpark(&u, holder);
	}
}

/*
 * Publishes @head_tag, or withdraws the published tag if @head_tag is
 * VTIME_NONE.  Then virtual time may advance.
 */
static void publish(struct mqfq *m, struct queue *q, vtime_t head_tag,
		    struct wake *wake)
{
	mqfq_queue_of(q)->published = head_tag != VTIME_NONE;
	if (mindicator_tag(&m->tags, q->index) != head_tag)
		mindicator_set(&m->tags, q->index, head_tag);
	advance(m, wake);
}

/* ------------------------------------------------------------- the queue */

/* Returns the start tag of the first request of the queue, or VTIME_NONE. */
static inline vtime_t queue_head_tag(struct queue *q)
{
	struct tag_lane *l = tag_order_first(&mqfq_queue_of(q)->order, q,
					     mqfq_vt(mqfq_of(q)));

	return l ? l->node.key : VTIME_NONE;
}

static void set_head_tag(struct queue *q, vtime_t head_tag)
{
	if (q->head_tag != head_tag)
		WRITE_ONCE(q->head_tag, head_tag);
}

static __always_inline void append(struct queue *q, struct tag_lane *l,
				   struct io *io,
				   const struct flow_start *start)
{
	struct tag_order *order = &mqfq_queue_of(q)->order;
	bool joins = !l->lane.fifo.head;

	io_list_append(&l->lane.fifo, io);
	if (!joins)
		return;
	l->lane.flow = io->flow;
	tag_order_add(order, l, start->tag, start->epoch);
	set_head_tag(q, tag_order_top(order)->node.key);
}

static struct io *first_io(const struct queue *q)
{
	return tag_order_top(&mqfq_queue_of(q)->order)->lane.fifo.head;
}

static void take_first(struct queue *q)
{
	struct tag_order *order = &mqfq_queue_of(q)->order;
	struct io *io = io_list_take(&tag_order_top(order)->lane.fifo);

	tag_order_took(order);
	atomic64_dec(&io->flow->queued);
}

static __always_inline bool insert_at(struct queue *q, struct io *io, u64 now,
				      vtime_t vt, struct wake *wake)
{
	u32 cost = cost_of(&q->sched->params.cost, io->op, io->bytes);
	struct flow_start start;

	if (likely(engine_arrive(q, io, cost, vt, now, &start, wake)))
		append(q, flow_queue_own(io->flow, q->index), io, &start);
	return start.woke;
}

bool mqfq_insert_at(struct queue *q, struct io *io, u64 now, vtime_t vt,
		    struct wake *wake)
{
	return insert_at(q, io, now, vt, wake);
}

static void mqfq_insert(struct queue *q, struct io *io, u64 now,
			struct wake *wake)
{
	insert_at(q, io, now, mqfq_vt(mqfq_of(q)), wake);
}

void mqfq_merge(struct queue *q, struct io *io, u32 bytes)
{
	engine_grow(q, io, cost_of(&q->sched->params.cost, io->op, bytes),
		    bytes);
}

/* -------------------------------------------------------------- dispatch */

/* While dispatch looks at the queue, the queue is not throttled. */
static inline void withdraw(struct mqfq *m, struct queue *q)
{
	if (q->state == DISPATCH_THROTTLED) {
		wheel_unpark(&m->wheel, q->index, mqfq_queue_of(q)->bucket);
		queue_set_claim(&m->throttled, q->index);
	}
}

/*
 * Is the queue in the wheel, for the head tag that it has now, and has no slot
 * to hand over?  Then an insert writes nothing shared.  A turn or a flush after
 * this look wakes the queue.
 */
static bool stays_parked(const struct mqfq *m, const struct queue *q,
			 vtime_t head_tag)
{
	return q->state == DISPATCH_THROTTLED && !queue_passes(q) &&
	       !q->drain && mindicator_tag(&m->tags, q->index) == head_tag &&
	       !token_peek(&m->slots.tree, q->home) &&
	       wheel_has(&m->wheel, q->index, mqfq_queue_of(q)->bucket);
}

/*
 * Parks the queue, because its head tag is too far ahead.  Returns false if
 * virtual time has caught up meanwhile: then the queue is not parked.
 */
static bool park(struct mqfq *m, struct queue *q, vtime_t head_tag)
{
	u32 threshold = READ_ONCE(mqfq_params(&q->sched->params)->threshold);

	queue_set_state(q, DISPATCH_THROTTLED);
	if (threshold) {
		if (!wheel_park(&m->wheel, q->index, head_tag - threshold_of(q),
				&mqfq_queue_of(q)->bucket))
			return false;
	} else {
		queue_set_add(&m->throttled, q->index);
	}
	/* Pairs with advance() and with the flush in mqfq_tune(). */
	if (is_ahead(m, q, head_tag) &&
	    threshold == READ_ONCE(mqfq_params(&q->sched->params)->threshold))
		return true;
	withdraw(m, q);
	return false;
}

/* Must the head tag wait for virtual time?  Then the queue is parked. */
static bool throttle(struct mqfq *m, struct queue *q, vtime_t head_tag,
		     struct wake *wake)
{
	if (likely(!is_ahead(m, q, head_tag)))
		return false;
	if (q->drain)
		return false;
	/* This queue may hold virtual time back by an unpublished tag. */
	if (mindicator_min(&m->tags) == VTIME_NONE) {
		/* No queue waits or is parked: no other queue needs the tag. */
		mqfq_raise_vt(m, head_tag);
		return false;
	}
	publish(m, q, head_tag, wake);
	while (is_ahead(m, q, head_tag)) {
		/* It waits for virtual time from now on, and for no slot. */
		slots_withdraw(&m->slots, q->home);
		if (park(m, q, head_tag))
			return true;
	}
	return false;
}

/* Clamps the lag of the flow at the head.  Returns the new head tag. */
static vtime_t clamp_lag(struct mqfq *m, struct queue *q, vtime_t head_tag)
{
	u64 allowance = (u64)READ_ONCE(q->sched->params.depth) * LAG_PER_SLOT;

	while (unlikely(vtime_before(head_tag + allowance, mqfq_vt(m)))) {
		struct io *io = first_io(q);

		flow_clamp_lag(io->flow, io->pos, mqfq_vt(m), allowance);
		head_tag = queue_head_tag(q);
	}
	set_head_tag(q, head_tag);
	return head_tag;
}

/*
 * Slow path of get_slot(): no slot is near.  The announcement in slots_wait()
 * pairs with slots_put().  A queue that waits already, with the same head tag,
 * writes nothing shared.
 */
static bool wait_for_slot(struct mqfq *m, struct queue *q, struct io *io,
			  vtime_t head_tag, struct wake *wake)
{
	if (io_is_counted(io) || q->drain)
		return true;
	if ((io->flags & IO_FIRST) && slots_borrow(&m->slots, q->home)) {
		slots_give_io(&m->slots, q->home, io);
		return true;
	}
	/* With VTIME_NONE, all requests here pass. */
	if (head_tag != VTIME_NONE &&
	    (!mqfq_queue_of(q)->published ||
	     mindicator_tag(&m->tags, q->index) != head_tag))
		publish(m, q, head_tag, wake);
	if (!slots_wait(&m->slots, q->home)) {
		slots_rank(&m->slots, q->home, io->flags & IO_FIRST);
		return false;
	}
	slots_give_io(&m->slots, q->home, io);
	return true;
}

/* True if @io has a slot or needs none.  Otherwise @q is in the ready set. */
static __always_inline bool get_slot(struct mqfq *m, struct queue *q,
				     struct io *io, vtime_t head_tag,
				     struct wake *wake)
{
	if (unlikely(!slots_try(&m->slots, q->home)))
		return wait_for_slot(m, q, io, head_tag, wake);
	slots_give_io(&m->slots, q->home, io);
	return true;
}

static enum dispatch_result give_up(struct mqfq *m, struct queue *q,
				    enum dispatch_result why, u64 now,
				    struct wake *wake)
{
	queue_set_state(q, why);
	/* The queue may have been woken for a slot that it does not use. */
	if (why == DISPATCH_EMPTY) {
		slots_leave(&m->slots, q->home, wake);
		return why;
	}
	WRITE_ONCE(q->stats.throttled, q->stats.throttled + 1);
	wake->pinned_by = mindicator_holder(&m->tags);
	wake_at(wake, now + PINNED_NS);
	/* The queue left the set before it was parked: see throttle(). */
	slots_hand_over(&m->slots, q->home, wake);
	return why;
}

static enum dispatch_result no_slot(struct queue *q)
{
	queue_set_state(q, DISPATCH_NO_SLOT);
	WRITE_ONCE(q->stats.no_slot, q->stats.no_slot + 1);
	return DISPATCH_NO_SLOT;
}

/* @io has left the lists of @q, and goes. */
static struct io *sent(struct queue *q, struct io *io, u64 now)
{
	queue_dispatched(q, io, now);
	queue_set_state(q, DISPATCH_IO);
	return io;
}

enum dispatch_result mqfq_dispatch(struct queue *q, u64 now, struct io **out,
				   struct wake *wake)
{
	struct mqfq *m = mqfq_of(q);
	struct mqfq_queue *mq = mqfq_queue_of(q);
	vtime_t head_tag;
	struct io *io;

	queue_looked_at(q);
	head_tag = queue_head_tag(q);
	set_head_tag(q, head_tag);
	if (unlikely(stays_parked(m, q, head_tag))) {
		wake_at(wake, now + PINNED_NS);
		return DISPATCH_THROTTLED;
	}
	withdraw(m, q);
	io = engine_passer(q);
	if (unlikely(io)) {
		if (!get_slot(m, q, io, head_tag, wake))
			return no_slot(q);
		engine_take_passer(q);
		*out = sent(q, io, now);
		return DISPATCH_IO;
	}
	if (head_tag == VTIME_NONE)
		return give_up(m, q, DISPATCH_EMPTY, now, wake);
	if (throttle(m, q, head_tag, wake))
		return give_up(m, q, DISPATCH_THROTTLED, now, wake);
	head_tag = clamp_lag(m, q, head_tag);
	io = first_io(q);
	if (!get_slot(m, q, io, head_tag, wake))
		return no_slot(q);
	take_first(q);
	*out = sent(q, io, now);
	set_head_tag(q, queue_head_tag(q));
	if (mq->published)
		publish(m, q, q->head_tag, wake);
	return DISPATCH_IO;
}

void mqfq_block(struct queue *q, struct wake *wake)
{
	struct mqfq *m = mqfq_of(q);

	port_assert_queue_held(q);
	withdraw(m, q);
	queue_set_state(q, DISPATCH_IO);
	if (mqfq_queue_of(q)->published) {
		atomic64_inc(&q->sched->stats.blocks);
		publish(m, q, VTIME_NONE, wake);
	}
	slots_leave(&m->slots, q->home, wake);
}

/* ------------------------------------------------------------ completion */

void mqfq_requeue(struct io *io, struct wake *wake)
{
	if (!(io->flags & IO_OUT))
		return;
	engine_give_back(&mqfq_of(io->queue)->slots, io->queue->home, io, wake);
	queue_requeued(io);
}

void mqfq_complete(struct io *io, u64 now, struct wake *wake)
{
	u32 ios = !!(io->flags & IO_OUT);

	cost_estimator_done(io, now);
	engine_give_back(&mqfq_of(io->queue)->slots, io->queue->home, io, wake);
	queue_completed(io, ios, now);
}

/* ------------------------------------------------------------- slow work */

/* Could the queue run, though it is parked or waits for a slot? */
static bool forgotten(const struct queue *q)
{
	const struct mqfq *m = mqfq_of(q);
	vtime_t head_tag = READ_ONCE(q->head_tag);

	if (head_tag == VTIME_NONE && !READ_ONCE(q->nr))
		return false;
	/* It waits for a slot, and a drive that stalls frees none. */
	if (queue_set_has(&m->slots.ready, q->home))
		return slots_forgot(&m->slots, q->home);
	if (READ_ONCE(q->state) != DISPATCH_THROTTLED)
		return false;
	/* Several queues may have the least tag: advance() wakes one by one. */
	if (!READ_ONCE(mqfq_params(&m->sched->params)->threshold))
		return mindicator_holder(&m->tags) == q->index;
	/*
	 * The wheel wakes a queue up to one bucket after its due time, however
	 * long virtual time stands still before that.
	 */
	return !beyond(q->sched, head_tag + BIT_ULL(READ_ONCE(m->wheel.shift)),
		       mqfq_vt(m));
}

void mqfq_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct mqfq *m = s->own;

	chassis_tick(&m->chassis, s, now, wake);
	/* Larger shares bring tags nearer: due times in the wheel are old. */
	if (chassis_sweep(&m->chassis, s, now, forgotten, wake))
		unpark_all(m, wake);
}

static u32 wheel_shift(u32 threshold)
{
	u32 log2 = threshold ? port_fls64(threshold) - 1 : 0;

	return log2 > WHEEL_SHARE_SHIFT ? log2 - WHEEL_SHARE_SHIFT : 0;
}

void mqfq_tune(struct sched *s, const struct sched_params *p, struct wake *wake)
{
	struct mqfq *m = s->own;

	if (!p) {
		unpark_all(m, wake);
		return;
	}
	if (mqfq_params(p)->threshold != mqfq_params(&s->params)->threshold)
		wheel_set_shift(&m->wheel,
				wheel_shift(mqfq_params(p)->threshold));
	isolation_tune(s, p, wake);
	unpark_all(m, wake);
}

int mqfq_init(struct sched *s)
{
	struct mqfq *m = s->own;
	int ret = chassis_init(&m->chassis, s, &m->slots, 1, &s->params.depth,
			       false);

	if (ret)
		return ret;
	m->sched = s;
	atomic64_set(&m->vt, (s64)VT_START);
	ret = mindicator_init(&m->tags, &s->topo);
	if (ret)
		goto chassis;
	ret = wheel_init(&m->wheel, s->nr_queues,
			 wheel_shift(mqfq_params(&s->params)->threshold),
			 VT_START);
	if (!ret)
		return 0;
	mindicator_deinit(&m->tags);
chassis:
	chassis_exit(&m->chassis, s);
	return ret;
}

void mqfq_exit(struct sched *s)
{
	struct mqfq *m = s->own;

	port_assert(mindicator_min(&m->tags) == VTIME_NONE);
	wheel_deinit(&m->wheel);
	mindicator_deinit(&m->tags);
	chassis_exit(&m->chassis, s);
}

/* --------------------------------------------------------------- reports */

void mqfq_report(const struct sched *s, struct report *r)
{
	const struct mqfq *m = s->own;
	s64 in_leaves = token_in_leaves(&m->slots.tree);

	report_number(r, "threshold", mqfq_params(&s->params)->threshold);
	report_number(r, "virtual_time", (s64)mqfq_vt(m));
	report_number(r, "min_tag", (s64)mindicator_min(&m->tags));
	report_part(r, "slots_free", "queue", in_leaves);
	report_part(r, "slots_free", "machine",
		    token_total(&m->slots.tree) - in_leaves);
	report_number(r, "wheel_turns", atomic64_read(&m->wheel.turns));
	chassis_report(s, r);
}

void mqfq_report_flow(const struct flow *f, struct report *r)
{
	u64 epoch;
	vtime_t finish = flow_tag(f, (u64)atomic64_read(&f->pos), &epoch);

	isolation_report_flow(&f->isolation, r);
	report_number(r, "ahead", (s64)(finish - mqfq_vt(f->sched->own)));
}

static const struct tunable mqfq_tunables[] = {
	{ TUNABLE_DEPTH_AUTO },
	{
		TUNABLE_U32("threshold_kb", struct mqfq_params, threshold, 0,
			    THRESHOLD_MAX >> 10, 1024, 32),
		.automatic = AUTO_THRESHOLD,
	},
	{ TUNABLE_COST_OF(COST_BYTES) },
	{ TUNABLE_ISOLATION },
	{ }
};

const struct sched_ops mqfq_ops = {
	.name		= "mqfq",
	.tunables	= mqfq_tunables,
	.ordered	= true,
	.bytes		= sizeof(struct mqfq),
	.queue_bytes	= sizeof(struct mqfq_queue),
	.params_bytes	= sizeof(struct mqfq_params),
	.flow_queue_bytes = sizeof(struct tag_lane),
	.init		= mqfq_init,
	.exit		= mqfq_exit,
	.insert		= mqfq_insert,
	.merge		= mqfq_merge,
	.dispatch	= mqfq_dispatch,
	.block		= mqfq_block,
	.send		= mqfq_send,
	.complete	= mqfq_complete,
	.requeue	= mqfq_requeue,
	.tick		= mqfq_tick,
	.tune		= mqfq_tune,
	.report		= mqfq_report,
	.report_flow	= mqfq_report_flow,
};
