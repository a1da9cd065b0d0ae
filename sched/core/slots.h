/* SPDX-License-Identifier: GPL-2.0 */
/*
 * slots - the D requests that may be in the device, and the queues that wait
 *
 * A token tree holds the free slots.  A set holds the queues that found none.
 * A queue to which slots_take() or slots_wait() gave no slot is in the set, until
 * it dispatches no more.  Without parts another queue that gives it a slot takes it
 * out as well.
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
 * time prevents that.  Under a scheduler without virtual time, a queue keeps the
 * slots of its *part* alone.  The part is D / rivals.  The *rivals* are the queues
 * in the set.  A queue *holds* the slots of its requests and those in its leaf.
 *
 * A completion counts the rivals, and reads what its own queue holds.  A slot
 * within the part stays, and no counter of another queue is read.  A slot beyond it
 * goes to a rival: of the next RIVALS_READ in the ring the first that stays within
 * its part, else the one that holds the least.  That rival stays in the set.
 *
 *	D = 16, four queues, the fourth comes last with one request:
 *	6 + 5 + 5 + 0 slots are in use, and a part is 4.  The fourth queue gets
 *	the slot of the next completion in a queue with more than 4.
 *
 *	D = 16, nine queues: a part is 1.8.  Each has 1 slot, and 7 slots are
 *	left.  They go round: such a slot goes to the next queue in the ring.  With
 *	more queues than RIVALS_READ it comes to one with nothing after some turns.
 *
 *	D = 128, 64 queues, wdt, 64 CPUs on two sockets: with the counters of all
 *	rivals read at each completion, 228 lines moved for a request, and 0.6
 *	million requests were done in a second.  It is 7 lines and 3.9 million so.
 *
 * The counters choose among rivals and nothing else: while the set is not empty, a
 * slot that is given always goes to one of its members.  What a rival holds grows
 * with the gift, so completions of one moment choose different ones.
 *
 * Ranks [R].  Some requests go before all others: those that pass for isolation
 * (isolation.h), and a donor's (round.h).  A queue that waits with such a request
 * has a *rank*: slots_rank().  While queues with a rank are in the set, all slots
 * that get free are for them, and they alone are the rivals.  A queue without one
 * has no part then, and keeps no slot that it gets back.
 *
 *	D = 64, one queue of a flow that is due more than it asks for, with 64
 *	requests, and four queues of a light flow: a part was 12.8 slots, and the
 *	heavy flow did 115 thousand requests a second of the 357 that it does
 *	alone.  With a rank it does all of them.
 *
 * A queue that is due no more than its part needs no rank.  While all queues have one,
 * each slot that comes back goes to another queue.
 *
 *	D = 128, hwabc, 16 equal flows on 16 CPUs of two sockets: with a rank for each
 *	flow that leaves a bit of its credit, 20 lines moved for a request, and 2.5
 *	million requests were done in a second.  It is 5 lines and 4.0 million so.
 *
 * A rank is a hint.  Another CPU may take a queue out of the set at the moment when
 * that queue gets its rank.  The next CPU that has a slot for it takes the rank back.
 *
 * The slots in the leaf of a queue are its own.  From the root, and from leaves of
 * queues that do not wait, a queue takes slots up to its part, rounded down.  For a
 * request that passes it takes more.
 *
 * Beyond D [R].  The requests in a drive may end together, so that the next slot
 * that gets free is a mean time away.  A request that passes for isolation takes a
 * slot beyond D instead, while fewer than a part of D in SLOTS_BEYOND are in use, or
 * none: slots_borrow().  The next completions repay those slots, and a new request that
 * passes may take one again before a queue that waits with a rank.  Isolation bounds
 * that: it lets no flow pass beyond its due.
 *
 *	D = 64: a tenant with one request at a time beside bunches of 64 did 640
 *	of 1000 that it does alone, when it waited for the next slot.
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
 *	rank, put, borrow           -               -       -        -
 *	lease, end_lease            -               -       -        -
 *	end_term (one at a time)    -               -       -        -
 *	hand_over                   -               -       -        -
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
 * With parts, a CPU that gives a slot puts it into the leaf of the rival (full
 * order), and then looks whether that one is in the set.  If it has left, the CPU
 * takes the slot back, and gives it to another.  A queue that leaves calls
 * slots_hand_over() after slots_withdraw(), and so does one that has entered: a
 * slot that is not for it may be free.
 *
 * Tested by tests/unit/slots.c, tests/sim/life.c, tests/sim/adversaries.c,
 * tests/mt/replay_slots.c, tests/mt/replay_budget.c, tests/mt/replay_mqfq.c.
 */
#ifndef MQFAIR_SLOTS_H
#define MQFAIR_SLOTS_H

#include "sched.h"
#include "mt/token_tree.h"

enum {
	SLOTS_BEYOND		= 8,
	LEASE_TERMS		= 2,
	LEASE_MOST_NS		= 20 * 1000 * 1000,
};

/* Leased slots of a queue, by the term in which the lease began. */
struct slots_leases {
	atomic64_t in_term[LEASE_TERMS];
} __port_cacheline;

struct slots {
	struct sched *sched;		/* I */
	struct port_lock resize_lock;	/* for the next two, and the tree's D */
	u32 depth, limit;		/* the tree's D is the lesser */
	struct token_tree tree;
	bool parts;			/* I */
	struct slots_leases *leases;	/* I: by index */
	bool leased;			/* O: a slot was leased once */
	u32 term;			/* O: index of the present term */
	struct queue_set ready __port_cacheline;	/* the set */
	struct queue_set first;	/* queues of the set with a rank */
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
	if (got && sl->parts)
		atomic64_inc(&sl->tree.leaf[queue].used);
	return got;
}

/* Takes a slot for @queue if one is near.  The queue does not wait for one. */
static inline bool slots_try(struct slots *sl, u32 queue)
{
	return slots_took(sl, queue, token_take(&sl->tree, queue));
}

/* Returns the slots beyond @depth that may be in use. */
static inline u32 slots_beyond(u32 depth)
{
	return max(depth / SLOTS_BEYOND, 1U);
}

/* Takes a slot that is near, or one beyond D.  The queue does not wait. */
static inline bool slots_borrow(struct slots *sl, u32 queue)
{
	u32 most = slots_beyond(READ_ONCE(sl->tree.depth));

	return slots_took(sl, queue,
			  token_take(&sl->tree, queue) ||
				  token_owe(&sl->tree, most));
}

/* Takes @n slots from the leaf of @queue, or none.  The queue does not wait. */
static inline bool slots_try_many(struct slots *sl, u32 queue, u32 n)
{
	if (!token_leaf_take_many(&sl->tree, queue, n))
		return false;
	if (sl->parts)
		atomic64_add(n, &sl->tree.leaf[queue].used);
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

/*
 * @queue is in the set, and its next slot is for a request that goes before all
 * others if @first.
 */
void slots_rank(struct slots *sl, u32 queue, bool first);

/* With parts.  Is the part of a queue that waits less than @due slots? */
static inline bool slots_part_is_below(const struct slots *sl, s64 due)
{
	return due * queue_set_count(&sl->ready, sl->sched->nr_queues) >
	       (s64)READ_ONCE(sl->tree.depth);
}

/* Takes @queue out of the set. */
void slots_withdraw(struct slots *sl, u32 queue);

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

/* Returns whether @queue is in the set. */
static inline bool slots_waits(const struct slots *sl, u32 queue)
{
	return queue_set_has(&sl->ready, queue);
}

/*
 * Returns whether @queue waits for a slot that it could have.  The result is a
 * snapshot.
 */
bool slots_forgot(const struct slots *sl, u32 queue);

/* Slow path of slots_hand_over(): a queue waits. */
void slots_hand_over_slow(struct slots *sl, u32 queue, struct wake *wake);

/*
 * Hands free slots to queues in the set: those in the leaf of @queue.  With parts,
 * if @queue is in the set itself, they are those that no queue in the set holds.
 */
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

/* Slow path of slots_free(): a queue waits. */
void slots_free_slow(struct slots *sl, u32 queue, struct wake *wake);

/* A slot is free: @queue or another may have it. */
static inline void slots_free(struct slots *sl, u32 queue, struct wake *wake)
{
	token_put(&sl->tree, queue);
	/* Pairs with slots_wait(). */
	if (unlikely(queue_set_any(&sl->ready, sl->sched->nr_queues)))
		slots_free_slow(sl, queue, wake);
}

/* Gives back a slot of @queue and hands it over to a queue that waits. */
static inline void slots_put(struct slots *sl, u32 queue, struct wake *wake)
{
	if (sl->parts)
		atomic64_dec(&sl->tree.leaf[queue].used);
	slots_free(sl, queue, wake);
}

#endif /* MQFAIR_SLOTS_H */
