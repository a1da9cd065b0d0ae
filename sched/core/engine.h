/* SPDX-License-Identifier: GPL-2.0 */
/*
 * engine - the obligations of every scheduler, written once
 *
 * Every scheduler must charge each io once, let urgent ios pass, and count
 * slots.  It must survive requeues and merges, take idle flows out of the
 * shares, and notice a queue that was forgotten.  The larger schedulers use
 * these parts one by one.  A simple scheduler uses all of them, joined to a
 * scheduler without a policy.
 *
 * A simple scheduler gives four callbacks or more (struct engine_ops) and uses the
 * hooks below in its struct sched_ops.  It sees lanes: a *lane* is the FIFO of
 * one flow in one queue (queue.h).  The callbacks run under the queue's lock:
 *
 *	join(q, lane)		the lane is empty no more
 *	next(q)			the lane that has the turn; NULL if none has ios
 *	pay(q, lane, cost)	the lane's flow pays for an io that goes, or for
 *				the bytes that a merge added to one that went
 *	leave(q, lane)		the lane is empty
 *
 * Three more are optional:
 *
 *	start(f)		the tag at which @f begins when it has nothing
 *				waiting, or later; see tag_order.h
 *	tag(q)			the place of the io that next() would send, in one
 *				order of all queues; see below
 *	may_go(q, lane, now, wake)
 *				may the first io of @lane go?  If it may not, the
 *				scheduler wakes @q when it may
 *
 *	Flow A submits two ios to an empty queue, and the engine calls join(A).
 *	Then next() returns A, the engine takes a slot, sends the first io and
 *	calls pay(A, 4096).  After the same for the second io it calls leave(A).
 *
 * One order for the device.  By default each queue has an order of its own.  With
 * tag(), a queue sends an io only while no other queue has an earlier one.  The
 * engine publishes the tag of each queue in queue.head_tag, and the scheduler sets
 * sched_ops.ordered.  A queue publishes VTIME_NONE while it is empty or blocked.  Of
 * queues with equal tags the one with the least index is first.
 *
 * Why no queue is forgotten.  A queue that must wait sets its state (full order)
 * and then reads all tags.  A queue whose tag has changed, and that sends no more
 * for now, has published it (full order) and then reads the state of the first
 * queue.  One of the two sees the other, and the first queue is woken.  Each reads
 * all tags, so this is for devices with few queues; mt/mindicator.h is for many.
 *
 * sched.own begins with struct engine, flow_queue_own() with struct lane.
 * queue.own and flow_own() are the scheduler's.
 *
 * Rules that the engine keeps
 *   Urgent ios (IO_URGENT: metadata, swap; and those that were requeued) pass
 *   all lanes and need no slot.  Their flow pays, if it has others in the lane.
 *   Beyond a bound they wait in a lane: urgent.h.
 *   Ios that pass for isolation (IO_FIRST) go behind those and before all lanes.
 *   They wait for a slot with a rank, or take one beyond D: slots.h.
 *   Polled ios (IO_POLLED) are ordered, and have their slot for a lease: slots.h.
 *   While queue.drain is set, no io of the queue waits for a slot.
 *   A queue that stops dispatching hands its slots over (slots.h).
 *
 * Locking: as struct sched_ops states for the hook of the same name.
 *
 * Tested by tests/sim (life/, share/ under drr), tests/mt, tests/vm.
 */
#ifndef MQFAIR_ENGINE_H
#define MQFAIR_ENGINE_H

#include "chassis.h"
#include "queue.h"

/* ------------------------------------------------- parts: the life of an io */

/*
 * Charges @cost to the flow of @io, which starts there.  If @waits, the flow has
 * one more io waiting.  A flow that gets active may be short beside a flow that
 * was alone, so tick looks soon.
 */
static __always_inline void engine_charge(struct io *io, u32 cost, vtime_t vt,
					  bool waits, u64 now,
					  struct flow_start *start,
					  struct wake *wake)
{
	io->cost = cost;
	flow_charge(io->flow, cost, vt, waits, start);
	io->pos = start->pos;
	io->flags |= IO_CHARGED;
	if (unlikely(start->woke))
		wake_at(wake, now + LOOK_LEAST_NS);
}

/*
 * Slow path of engine_arrive(): @io is urgent, was inserted before, or
 * waited to be adopted (urgent.h).
 */
bool engine_arrive_urgent(struct queue *q, struct io *io, u32 cost, vtime_t vt,
			  u64 now, struct flow_start *start,
			  struct wake *wake);

/*
 * The insert hook calls this.  It counts @io, charges @cost unless @io was here
 * before, and puts an io that passes into its list.  Returns true if @io is
 * for the lane of its flow, which may be another flow than before: see urgent.h.
 * A flow that has nothing waiting starts at @vt or later, and *@start says where.
 * If start->woke is set, the flow has become active, and tick was requested.
 */
static __always_inline bool engine_arrive(struct queue *q, struct io *io,
					  u32 cost, vtime_t vt, u64 now,
					  struct flow_start *start,
					  struct wake *wake)
{
	u64 pass_until = READ_ONCE(io->flow->isolation.pass_until);
	bool passes;

	if (unlikely(io->flags & (IO_URGENT | IO_CHARGED | IO_TO_ADOPT)))
		return engine_arrive_urgent(q, io, cost, vt, now, start, wake);
	queue_inserted(q, io, now);
	passes = unlikely(pass_until) &&
		 pass_until > (u64)atomic64_read(&io->flow->pos);
	engine_charge(io, cost, vt, !passes, now, start, wake);
	if (likely(!passes))
		return true;
	io->flags |= IO_URGENT | IO_FIRST;
	io_list_append(&q->passing, io);
	return false;
}

/* Returns the io that passes all lanes next, or NULL. */
static inline struct io *engine_passer(const struct queue *q)
{
	return q->urgent.head ? q->urgent.head : q->passing.head;
}

/* Takes that io out of its list. */
static inline void engine_take_passer(struct queue *q)
{
	WRITE_ONCE(q->stats.urgent, q->stats.urgent + 1);
	io_list_take(q->urgent.head ? &q->urgent : &q->passing);
}

/*
 * The merge hook calls this.  @io costs @cost with @bytes.  Returns the
 * addition to its cost.
 */
static inline u32 engine_grow(struct queue *q, struct io *io, u32 cost,
			      u32 bytes)
{
	u32 more = cost > io->cost ? cost - io->cost : 0;

	port_assert_queue_held(q);
	if (more && (io->flags & IO_CHARGED))
		atomic64_add(more, &io->flow->pos);
	io->cost += more;
	io->bytes = bytes;
	return more;
}

/*
 * Dispatch calls this under a scheduler with parts.  True if @io has a slot of
 * @sl or needs none.  Otherwise @q waits for a slot.
 */
static inline bool engine_get_slot(struct slots *sl, const struct queue *q,
				   struct io *io)
{
	bool waits = !io_is_counted(io) && !q->drain;

	if ((unlikely(io->flags & IO_FIRST) && slots_borrow(sl, q->index)) ||
	    (waits ? slots_take(sl, q->index) : slots_try(sl, q->index))) {
		slots_give_io(sl, q->index, io);
		return true;
	}
	return !waits;
}

/*
 * Complete and requeue call this.  Frees the slot of @sl that @queue took for @io,
 * once for each time that @io was out with it, and if @io still has it.
 */
static __always_inline void engine_give_back(struct slots *sl, u32 queue,
					     struct io *io, struct wake *wake)
{
	if (io_returned(io) && slots_take_back(sl, queue, io))
		slots_put(sl, queue, wake);
}

/* ------------------------------------------------------- a simple scheduler */

struct engine_ops {
	void (*join)(struct queue *q, struct lane *lane);
	struct lane *(*next)(struct queue *q);
	void (*pay)(struct queue *q, struct lane *lane, u32 cost);
	void (*leave)(struct queue *q, struct lane *lane);
	/* Optional: */
	vtime_t (*start)(struct flow *f);
	vtime_t (*tag)(struct queue *q);
	bool (*may_go)(struct queue *q, struct lane *lane, u64 now,
		       struct wake *wake);
};

struct engine {
	const struct engine_ops *ops;	/* I */
	atomic64_t turns;		/* with tag(): orders pass_turn() */
	struct slots slots;
	struct chassis chassis;
};

static inline struct engine *engine_of(const struct queue *q)
{
	return q->sched->own;
}

/* The init hook calls this.  Returns 0 or -ENOMEM. */
int engine_init(struct sched *s, const struct engine_ops *ops);
void engine_exit(struct sched *s);

/* These are the hooks of struct sched_ops. */
void engine_insert(struct queue *q, struct io *io, u64 now, struct wake *wake);
void engine_merge(struct queue *q, struct io *io, u32 bytes);
enum dispatch_result engine_dispatch(struct queue *q, u64 now, struct io **out,
				     struct wake *wake);
void engine_block(struct queue *q, struct wake *wake);
void engine_complete(struct io *io, u64 now, struct wake *wake);
void engine_requeue(struct io *io, struct wake *wake);
void engine_tick(struct sched *s, u64 now, struct wake *wake);
void engine_tune(struct sched *s, const struct sched_params *p,
		 struct wake *wake);
void engine_report(const struct sched *s, struct report *r);

/*
 * Of a scheduler with tag(): wakes the queue with the first io if that waits for
 * its turn.  The engine does so when tags change.  A scheduler calls this when
 * may_go() may have changed its answer.
 */
void engine_pass_turn(struct sched *s, struct wake *wake);

#define ENGINE_HOOKS				\
	.exit		= engine_exit,		\
	.insert		= engine_insert,	\
	.merge		= engine_merge,		\
	.dispatch	= engine_dispatch,	\
	.block		= engine_block,		\
	.complete	= engine_complete,	\
	.requeue	= engine_requeue,	\
	.tick		= engine_tick,		\
	.tune		= engine_tune,		\
	.report		= engine_report

#endif /* MQFAIR_ENGINE_H */
