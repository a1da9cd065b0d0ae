// SPDX-License-Identifier: GPL-2.0
/* The hooks of a simple scheduler, and slow paths of the parts. */
#include "engine.h"
#include "cost/cost_estimator.h"

/* ------------------------------------------------------------------ insert */

/* @io passes all lanes, and waits for no slot.  Its flow has paid for it. */
static void let_pass(struct queue *q, struct io *io)
{
	io->flags &= (u16)~IO_FIRST;
	io->flags |= IO_URGENT;
	atomic64_inc(&io->flow->urgent.passing);
	io_list_append(&q->urgent, io);
}

/* The root has another adopted io in its lane: @io waits for that to go. */
static void adopt_later(struct queue *q, struct io *io, u32 cost)
{
	io->cost = cost;
	io->flags |= IO_TO_ADOPT;
	atomic64_inc(&io->flow->queued);
	io_list_append(&q->to_adopt, io);
}

/* @io waits in a lane.  False: it waits to be adopted. */
static bool order(struct queue *q, struct io *io, u32 cost, vtime_t vt, u64 now,
		  struct flow_start *start, struct wake *wake)
{
	struct flow *payer = urgent_payer(io->flow);
	bool adopted = payer != io->flow;

	io->flags &= (u16)~IO_URGENT;
	io->flow = payer;
	queue_inserted(q, io, now);
	if (adopted && q->adopted) {
		adopt_later(q, io, cost);
		return false;
	}
	if (adopted)
		WRITE_ONCE(q->adopted, io);
	engine_charge(io, cost, vt, true, now, start, wake);
	return true;
}

bool engine_arrive_urgent(struct queue *q, struct io *io, u32 cost, vtime_t vt,
			  u64 now, struct flow_start *start, struct wake *wake)
{
	start->woke = false;
	if (io->flags & IO_CHARGED) {
		queue_inserted(q, io, now);
		let_pass(q, io);
		return false;
	}
	/* It has been counted as waiting since its first insert. */
	if (io->flags & IO_TO_ADOPT) {
		io->flags &= (u16)~IO_TO_ADOPT;
		engine_charge(io, cost, vt, false, now, start, wake);
		return true;
	}
	flow_refresh(io->flow, vt);
	if (!urgent_passes(io->flow, cost, now))
		return order(q, io, cost, vt, now, start, wake);
	queue_inserted(q, io, now);
	engine_charge(io, cost, vt, false, now, start, wake);
	let_pass(q, io);
	return false;
}

/* Returns the lane of @io in @q, which is that of its flow from now on. */
static struct lane *lane_of(const struct queue *q, const struct io *io)
{
	struct lane *lane = flow_queue_own(io->flow, q->index);

	lane->flow = io->flow;
	return lane;
}

void engine_insert(struct queue *q, struct io *io, u64 now, struct wake *wake)
{
	u32 cost = cost_of(&q->sched->params.cost, io->op, io->bytes);
	const struct engine_ops *ops = engine_of(q)->ops;
	vtime_t vt = ops->start ? ops->start(io->flow) : 0;
	struct flow_start start;
	struct lane *lane;
	bool joins;

	if (!engine_arrive(q, io, cost, vt, now, &start, wake))
		return;
	lane = lane_of(q, io);
	joins = !lane->fifo.head;
	io_list_append(&lane->fifo, io);
	if (joins)
		ops->join(q, lane);
}

void engine_merge(struct queue *q, struct io *io, u32 bytes)
{
	struct lane *lane = lane_of(q, io);
	u32 cost = cost_of(&q->sched->params.cost, io->op, bytes);
	u32 more = engine_grow(q, io, cost, bytes);

	/* The flow pays for a waiting io when it is dispatched. */
	if (more && (io->flags & IO_PAID))
		engine_of(q)->ops->pay(q, lane, more);
}

/* ------------------------------------------------- one order for the device */

/* Publishes @tag as the place of the next io of @q. */
static void publish(struct queue *q, vtime_t tag)
{
	if (q->head_tag != tag)
		WRITE_ONCE(q->head_tag, tag);
}

static void publish_next(const struct engine *e, struct queue *q)
{
	if (e->ops->tag)
		publish(q, e->ops->tag(q));
}

/* Returns the queue that has published the least tag, the first of several; or NULL. */
static struct queue *first_queue(const struct sched *s)
{
	struct queue *first = NULL;
	vtime_t least = VTIME_NONE;
	u32 i;

	for (i = 0; i < s->nr_queues; i++) {
		vtime_t tag = READ_ONCE(s->queue[i]->head_tag);

		if (tag == VTIME_NONE || vtime_min_tag(least, tag) == least)
			continue;
		least = tag;
		first = s->queue[i];
	}
	return first;
}

/*
 * @q sends no more for now.  Wakes the first of all queues if that waits for its
 * turn.  If may_go() has just told @q to wait, its scheduler wakes it.
 */
static void pass_turn(struct engine *e, struct sched *s, const struct queue *q,
		      struct wake *wake)
{
	const struct queue *first;
	u8 state;

	if (!e->ops->tag)
		return;
	/* Fully ordered.  Pairs with itself for another queue: see engine.h. */
	atomic64_inc_return(&e->turns);
	first = first_queue(s);
	if (!first)
		return;
	state = READ_ONCE(first->state);
	if (state == DISPATCH_THROTTLED ||
	    (state == DISPATCH_NO_BUDGET && first != q))
		sched_wake(s, first->index, wake);
}

void engine_pass_turn(struct sched *s, struct wake *wake)
{
	pass_turn(s->own, s, NULL, wake);
}

/* ---------------------------------------------------------------- dispatch */

/* Returns whether @q waited for a slot. */
static bool withdraw(struct engine *e, const struct queue *q)
{
	if (q->state != DISPATCH_NO_SLOT)
		return false;
	slots_withdraw(&e->slots, q->index);
	return true;
}

static enum dispatch_result give_up(struct engine *e, struct queue *q,
				    enum dispatch_result why, struct wake *wake)
{
	queue_set_state(q, why);
	if (why == DISPATCH_NO_SLOT)
		WRITE_ONCE(q->stats.no_slot, q->stats.no_slot + 1);
	slots_hand_over(&e->slots, q->index, wake);
	pass_turn(e, q->sched, q, wake);
	return why;
}

/* May the first io of @lane go?  Otherwise returns why it may not. */
static enum dispatch_result may_send(struct engine *e, struct queue *q,
				     struct lane *lane, u64 now,
				     struct wake *wake)
{
	const struct engine_ops *ops = e->ops;

	/* With may_go(), the first of all may wait for a tick, so all may. */
	if (ops->tag && !q->drain && q != first_queue(q->sched))
		return ops->may_go ? DISPATCH_NO_BUDGET : DISPATCH_THROTTLED;
	if (ops->may_go && !q->drain && !ops->may_go(q, lane, now, wake))
		return DISPATCH_NO_BUDGET;
	return engine_get_slot(&e->slots, q, lane->fifo.head) ?
		       DISPATCH_IO :
		       DISPATCH_NO_SLOT;
}

/* The flow of @lane pays for @io once, even if a driver sends @io back. */
static void pay_once(struct engine *e, struct queue *q, struct lane *lane,
		     struct io *io)
{
	if (io->flags & IO_PAID)
		return;
	io->flags |= IO_PAID;
	e->ops->pay(q, lane, io->cost);
}

/* Takes the first io of @lane, which has its slot. */
static struct io *take_head(struct engine *e, struct queue *q,
			    struct lane *lane)
{
	struct io *io = io_list_take(&lane->fifo);

	atomic64_dec(&lane->flow->queued);
	pay_once(e, q, lane, io);
	if (!lane->fifo.head)
		e->ops->leave(q, lane);
	return io;
}

/* Takes @io, which passes and has its slot. */
static struct io *take_passer(struct engine *e, struct queue *q, struct io *io)
{
	struct lane *lane = lane_of(q, io);

	/* An empty lane has no turns in which it could pay a debt back. */
	if (lane->fifo.head)
		pay_once(e, q, lane, io);
	else
		io->flags |= IO_PAID;
	engine_take_passer(q);
	return io;
}

enum dispatch_result engine_dispatch(struct queue *q, u64 now, struct io **out,
				     struct wake *wake)
{
	struct engine *e = engine_of(q);
	struct io *passer;
	enum dispatch_result why;
	struct lane *lane;
	bool waited;

	queue_looked_at(q);
	waited = withdraw(e, q);
	passer = engine_passer(q);
	if (unlikely(passer)) {
		if (!engine_get_slot(&e->slots, q, passer)) {
			publish_next(e, q);
			slots_rank(&e->slots, q->index, true);
			return give_up(e, q, DISPATCH_NO_SLOT, wake);
		}
		*out = take_passer(e, q, passer);
	} else {
		lane = e->ops->next(q);
		publish_next(e, q);
		why = lane ? may_send(e, q, lane, now, wake) : DISPATCH_EMPTY;
		if (why != DISPATCH_IO)
			return give_up(e, q, why, wake);
		*out = take_head(e, q, lane);
	}
	publish_next(e, q);
	queue_dispatched(q, *out, now);
	queue_set_state(q, DISPATCH_IO);
	/* A host may ask an empty queue no more, and others are due more now. */
	if (unlikely(!q->nr)) {
		if (waited)
			slots_hand_over(&e->slots, q->index, wake);
		pass_turn(e, q->sched, q, wake);
	}
	return DISPATCH_IO;
}

void engine_block(struct queue *q, struct wake *wake)
{
	struct engine *e = engine_of(q);

	port_assert_queue_held(q);
	withdraw(e, q);
	publish(q, VTIME_NONE);
	queue_set_state(q, DISPATCH_IO);
	slots_hand_over(&e->slots, q->index, wake);
	pass_turn(e, q->sched, q, wake);
}

/* -------------------------------------------------------------- completion */

void engine_requeue(struct io *io, struct wake *wake)
{
	if (!(io->flags & IO_OUT))
		return;
	engine_give_back(&engine_of(io->queue)->slots, io->queue->index, io,
			 wake);
	queue_requeued(io);
}

void engine_complete(struct io *io, u64 now, struct wake *wake)
{
	u32 ios = !!(io->flags & IO_OUT);

	cost_estimator_done(io, now);
	engine_give_back(&engine_of(io->queue)->slots, io->queue->index, io,
			 wake);
	queue_completed(io, ios, now);
}

/* --------------------------------------------------------- slow work, life */

static bool forgotten(const struct queue *q)
{
	return slots_forgot(&engine_of(q)->slots, q->index);
}

void engine_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct engine *e = s->own;

	chassis_tick(&e->chassis, s, now, wake);
	chassis_sweep(&e->chassis, s, now, forgotten, wake);
}

void engine_tune(struct sched *s, const struct sched_params *p,
		 struct wake *wake)
{
	/* A share is computed when it is used: no queue waits for a change. */
	if (p)
		isolation_tune(s, p, wake);
}

void engine_report(const struct sched *s, struct report *r)
{
	const struct engine *e = s->own;

	report_number(r, "slots_used", slots_used(&e->slots));
	chassis_report(s, r);
}

int engine_init(struct sched *s, const struct engine_ops *ops)
{
	struct engine *e = s->own;

	e->ops = ops;
	return chassis_init(&e->chassis, s, &e->slots, 1, &s->params.depth,
			    true);
}

void engine_exit(struct sched *s)
{
	struct engine *e = s->own;

	chassis_exit(&e->chassis, s);
}
