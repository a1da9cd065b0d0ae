/* SPDX-License-Identifier: GPL-2.0 */
/*
 * slots - so many requests in the device at once, and who waits for room
 *
 * A token tree and the set of queues that found it empty.  A queue that gets
 * no slot is in the set when slots_take() returns; whoever leaves a slot
 * behind takes the nearest one out of the set and names it to the host.
 *
 * A queue that gets its own slots back at every completion would keep all of
 * them for as long as it has requests, and the others would starve.  mqfq has
 * virtual time against that; here a queue is *due* a slot only while it has
 * less than its part, D / (queues that wait, itself included) [R]:
 *
 *	D = 16, four queues, the fourth comes last with one request:
 *	6 + 5 + 5 + 0 slots in use, a part is 4; of the next completions the
 *	first one of any queue that has more than 4 goes to the fourth.
 *
 *	               take(a)  withdraw(a)  put  hand_over  resize
 *	take(a)           X          X        -       -         -
 *	withdraw(a)       X          X        -       -         -
 *	put               -          -        -       -         -
 *	hand_over         -          -        -       -         -
 *	resize            -          -        -       -         X
 *
 * X: serialised by the queue's lock, or by the caller for resize;
 * -: may run at once.
 *
 * Why nobody is forgotten.  take announces the queue (full order) and then
 * looks through the whole tree again; put returns the slot (full order) and
 * then looks at the set.  One of the two sees the other.  If a slot is free
 * some queue in the set is due it, for less than D are in use; and a queue that
 * is not due one has some in use, and is looked at when they come back.  Who
 * stops dispatching, for whatever reason, calls slots_hand_over(): it may have
 * been refused, or named and have no use for the slot.
 *
 * Tested by tests/unit/slots.c, tests/mt/replay_budget.c, tests/mt/wdt.c.
 */
#ifndef MQFAIR_SLOTS_H
#define MQFAIR_SLOTS_H

#include "sched.h"
#include "mt/token_tree.h"

struct slots_queue {
	atomic64_t used;		/* slots of the queue's requests */
} __port_cacheline;

struct slots {
	struct sched *sched;		/* I */
	struct token_tree tree;
	struct slots_queue *queue;	/* I: by index */
	atomic64_t waiting __port_cacheline;	/* queues in the set */
	atomic64_t ready[QUEUE_WORDS];	/* the set */
};

/* After topology_init().  0 or -ENOMEM. */
int slots_init(struct slots *sl, struct sched *s, u32 depth);
void slots_deinit(struct slots *sl);

/* False: @queue is in the set, and slots_hand_over() is to follow. */
bool slots_take(struct slots *sl, u32 queue);

/* For who does not wait: a slot if one is near. */
bool slots_try(struct slots *sl, u32 queue);

/* @queue looks by itself: it waits for no slot while it does. */
void slots_withdraw(struct slots *sl, u32 queue);

/* A slot of @queue is free again. */
void slots_put(struct slots *sl, u32 queue, struct wake *wake);

/* Names the nearest queue to @queue that is due a slot, if one is free. */
void slots_hand_over(struct slots *sl, u32 queue, struct wake *wake);

/* Changes D, and has everybody who waits look again. */
void slots_resize(struct slots *sl, u32 depth, struct wake *wake);

/* Slots in use; exact when nothing is under way. */
s64 slots_used(const struct slots *sl);

/* Does @queue wait for a slot that it could have?  A snapshot. */
bool slots_forgot(const struct slots *sl, u32 queue);

#endif /* MQFAIR_SLOTS_H */
