/* SPDX-License-Identifier: GPL-2.0 */
/*
 * slots - the D requests that may be in the device, and the queues that wait
 *
 * A token tree holds the free slots.  A set holds the queues that found none.
 * A queue to which slots_take() or slots_wait() gave no slot is in the set, until
 * it dispatches no more or another queue gives it a slot.
 *
 * Handing over.  A completion puts its slot into the leaf of its own queue.  If
 * that queue is in the set, the slot is for it.  The queue is woken and stays in
 * the set, so a queue that uses its own slots again writes no shared line.
 * Otherwise the slot goes into the leaf of the nearest queue in the set, which
 * is taken out of the set and woken.
 *
 *	D = 128, 64 queues with 128 requests each, 64 CPUs on two sockets: a
 *	queue that left and entered the set for each request, and looked through
 *	the tree, did 2.2 million requests a second.  It does 3.9 million so.
 *
 * One slot for each entry into the set: a queue that enters it for a moment
 * would otherwise collect the slots of all completions of that moment.
 *
 * Parts [R].  A queue that gets its slots back at every completion would keep
 * all slots while it has requests.  The other queues would starve.  Virtual
 * time prevents that.  Under a scheduler without virtual time, a queue is *due*
 * a slot only while it has less than its part of D.  The part is D / rivals.
 * The *rivals* are the queues that wait, this one included, and those that were
 * woken for a slot and have not run yet.
 *
 *	D = 16, four queues, the fourth comes last with one request:
 *	6 + 5 + 5 + 0 slots are in use, and a part is 4.  The fourth queue gets
 *	the slot of the next completion in a queue with more than 4.
 *
 *	D = 16, nine queues: a part is 1.8.  Each has 1 slot, and 7 slots are
 *	left.  They go round: the slot of a completion goes to the next queue
 *	that is due one.  The nearest would be the queue itself.
 *
 * So with parts the set is asked in a ring, first for queues below their part.
 * Queues with near indexes are near in the machine.
 *
 * A queue takes slots from other leaves only up to its part, rounded down.  The
 * slot in another leaf may be that of a queue which was woken for it.
 *
 *	D = 16, four queues: 16 requests complete before any woken queue runs.
 *	The first that ran took all 16 slots, and the last had none for ever.
 *
 * Leases.  A polled request (IO_POLLED) ends when its tenant asks whether it is
 * done.  A tenant that never asks would keep all slots.  So such a request has
 * its slot for a *lease*: until it ends, and for two *terms* at most.  A term
 * ends at the first tick after as many requests as twice the slots were sent, or
 * after LEASE_MOST_NS.  A drive that is full sends as many as it holds in one
 * mean time in it (Little's law).  So a lease is two to four mean times, or the
 * time between two ticks.  Leases are counted by queue and term, and not by
 * request.  When a request ends, so does the oldest lease of its queue, if any is
 * left.  So each slot that was taken comes back once.
 *
 *	D = 128: a tenant with a tenth of the requests that asks for none has 25
 *	to 51 slots.
 *
 * Synchronisation
 *	                 take, wait, withdraw (a)  put  hand_over  resize
 *	take, wait (a)              X               -       -        -
 *	withdraw (a)                X               -       -        -
 *	leave (a)                   X               -       -        -
 *	put                         -               -       -        -
 *	lease, end_lease            -               -       -        -
 *	end_term (one at a time)    -               -       -        -
 *	hand_over, offer            -               -       -        -
 *	resize, limit               -               -       -        -
 *   X: the caller serialises these calls: of queue a by its lock.
 *   -: these calls may run concurrently.
 *
 * Why no queue is forgotten.  The waiter adds its queue to the set (full order)
 * and then looks through the whole tree again.  The completion returns its slot
 * (full order) and then looks at the set.  One of the two sees the other.
 * A queue that stops dispatching, for any reason, calls slots_leave(): it may
 * have been woken for a slot that it does not use.  It leaves the set (full
 * order) and then looks at its leaf.  A CPU that gives it a slot puts the slot
 * there (full order) and then takes the queue out of the set.  If the queue is
 * in it no more, that CPU takes the slot back, unless the queue has done so.
 *
 * With parts, some rival is due a slot while one is free, because less than D
 * are in use.  slots_hand_over() finds a rival in the set.  It takes the slot
 * from any node but the leaf of a woken queue, because a queue may have seemed
 * to be over its part for a moment.  A woken rival runs.  A scheduler with parts
 * takes its queue out of both sets before each dispatch.  That makes the parts
 * of the others larger.  So it calls slots_hand_over() when the queue dispatches
 * no more: it got no io, it was blocked, or it dispatched its last io.
 *
 * Tested by tests/unit/slots.c, tests/sim/life.c, tests/sim/adversaries.c,
 * tests/mt/replay_slots.c, tests/mt/replay_budget.c, tests/mt/replay_mqfq.c.
 */
#ifndef MQFAIR_SLOTS_H
#define MQFAIR_SLOTS_H

#include "sched.h"
#include "mt/token_tree.h"

enum {
	LEASE_TERMS		= 2,
	LEASE_MOST_NS		= 20 * 1000 * 1000,
};

struct slots_queue {
	atomic64_t used;		/* slots of the queue's requests */
} __port_cacheline;

/* Leased slots of a queue, by the term in which the lease began. */
struct slots_leases {
	atomic64_t in_term[LEASE_TERMS];
} __port_cacheline;

struct slots {
	struct sched *sched;		/* I */
	struct port_lock resize_lock;	/* for the next two, and the tree's D */
	u32 depth, limit;		/* the tree's D is the lesser */
	struct token_tree tree;
	struct slots_queue *queue;	/* I: by index; NULL: without parts */
	struct slots_leases *leases;	/* I: by index */
	bool leased;			/* O: a slot was leased once */
	u32 term;			/* O: index of the present term */
	struct queue_set ready __port_cacheline;	/* the set */
	/* With parts: queues that were woken for a slot, and have not run yet. */
	struct queue_set woken __port_cacheline;
};

/*
 * Call this after topology_init().  With @parts, each queue has a part of D.
 * Returns 0 or -ENOMEM.
 */
int slots_init(struct slots *sl, struct sched *s, u32 depth, bool parts);
void slots_deinit(struct slots *sl);

/* Counts the slot of @queue, if it @got one. */
static inline bool slots_took(struct slots *sl, u32 queue, bool got)
{
	if (got && sl->queue)
		atomic64_inc(&sl->queue[queue].used);
	return got;
}

/* Takes a slot for @queue if one is near.  The queue does not wait for one. */
static inline bool slots_try(struct slots *sl, u32 queue)
{
	return slots_took(sl, queue, token_take(&sl->tree, queue));
}

/* Takes @n slots from the leaf of @queue, or none.  The queue does not wait. */
static inline bool slots_try_many(struct slots *sl, u32 queue, u32 n)
{
	if (!token_leaf_take_many(&sl->tree, queue, n))
		return false;
	if (sl->queue)
		atomic64_add(n, &sl->queue[queue].used);
	return true;
}

/* Counts the slot that @queue has just taken as leased.  Any context. */
static inline void slots_lease(struct slots *sl, u32 queue)
{
	if (!READ_ONCE(sl->leased))
		WRITE_ONCE(sl->leased, true);
	atomic64_inc(&sl->leases[queue].in_term[READ_ONCE(sl->term)]);
}

/* @io gets a slot that @queue has taken. */
static inline void slots_give_io(struct slots *sl, u32 queue, struct io *io)
{
	io->flags |= IO_SLOT;
	if (unlikely(io->flags & IO_POLLED))
		slots_lease(sl, queue);
}

/*
 * A request of @queue with a lease ends.  Returns true if a lease was left, and
 * its slot is the caller's.  False: a term has ended it.  Any context.
 */
bool slots_end_lease(struct slots *sl, u32 queue);

/*
 * Takes the slot of @io back, which @queue took.  Returns false if @io has none
 * any more.  Otherwise the slot is the caller's.
 */
static inline bool slots_take_back(struct slots *sl, u32 queue, struct io *io)
{
	u16 flags = io->flags;

	io->flags &= (u16)~IO_SLOT;
	if (likely((flags & (IO_SLOT | IO_POLLED)) == IO_SLOT))
		return true;
	return (flags & IO_SLOT) && slots_end_lease(sl, queue);
}

/* Of tick.  Ends the term, and gives back the slots that were leased before it. */
void slots_end_term(struct slots *sl, struct wake *wake);

/*
 * Takes a slot from any node, after slots_try() failed.  Returns false if
 * @queue waits in the set.
 */
bool slots_wait(struct slots *sl, u32 queue);

/*
 * Takes a slot for @queue, which has a part of D: one that is near, or one from
 * any node.  Returns false if @queue waits in the set.  Then the caller calls
 * slots_hand_over(), because another queue may be due a free slot.
 */
bool slots_take(struct slots *sl, u32 queue);

/* Takes @queue out of the set.  With parts, it counts as woken no more. */
void slots_withdraw(struct slots *sl, u32 queue);

/*
 * Puts @queue into the set, on any CPU.  Call slots_offer() after the last of
 * several: a slot may be free.  One look for all of them is enough.
 */
static inline void slots_announce(struct slots *sl, u32 queue)
{
	/* Pairs with slots_free(). */
	queue_set_add(&sl->ready, queue);
}

/* Hands all free slots to queues in the set. */
void slots_offer(struct slots *sl, struct wake *wake);

/* Takes all queues out of the set and wakes them. */
void slots_wake_all(struct slots *sl, struct wake *wake);

/* Changes D and wakes all queues in the set. */
void slots_resize(struct slots *sl, u32 depth, struct wake *wake);

/* At most @limit slots are in use.  Slots in use are not revoked. */
void slots_limit(struct slots *sl, u32 limit, struct wake *wake);

/* Returns the leased slots in use.  The number is exact while no other call runs. */
s64 slots_leased(const struct slots *sl);

/* Returns the slots in use.  The number is exact while no other call runs. */
s64 slots_used(const struct slots *sl);

/*
 * Returns whether @queue waits for a slot that it could have.  The result is a
 * snapshot.
 */
bool slots_forgot(const struct slots *sl, u32 queue);

/* Slow path of slots_hand_over(): a queue waits. */
void slots_hand_over_slow(struct slots *sl, u32 queue, struct wake *wake);

/* Hands the free slots near @queue to queues that are due one. */
static inline void slots_hand_over(struct slots *sl, u32 queue,
				   struct wake *wake)
{
	if (unlikely(queue_set_any(&sl->ready, sl->sched->nr_queues)))
		slots_hand_over_slow(sl, queue, wake);
}

/* Slow path of slots_leave(): a queue waits. */
void slots_leave_slow(struct slots *sl, u32 queue, struct wake *wake);

/*
 * Without parts.  @queue stops dispatching: it leaves the set, and the free slots
 * of its leaf go to queues that wait.
 */
static inline void slots_leave(struct slots *sl, u32 queue, struct wake *wake)
{
	if (unlikely(queue_set_any(&sl->ready, sl->sched->nr_queues)))
		slots_leave_slow(sl, queue, wake);
}

/* A slot is free: @queue or another may have it. */
static inline void slots_free(struct slots *sl, u32 queue, struct wake *wake)
{
	token_put(&sl->tree, queue);
	/* Pairs with slots_wait() and slots_announce(). */
	slots_hand_over(sl, queue, wake);
}

/* Gives back a slot of @queue and hands it over to a queue that waits. */
static inline void slots_put(struct slots *sl, u32 queue, struct wake *wake)
{
	if (sl->queue)
		atomic64_dec(&sl->queue[queue].used);
	slots_free(sl, queue, wake);
}

#endif /* MQFAIR_SLOTS_H */
