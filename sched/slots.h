/* SPDX-License-Identifier: GPL-2.0 */
/*
 * slots - so many requests in the device at once, and who waits for room
 *
 * A token tree and the set of queues that found it empty.  A queue that gets
 * no slot is in the set when slots_take() returns; whoever leaves a slot
 * behind takes the nearest one out of the set and names it to the host.
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
 * then looks at the set.  One of the two sees the other.  A queue that is
 * named and has no use for the slot calls slots_hand_over().
 *
 * Tested by tests/unit/slots.c, tests/mt/replay_budget.c, tests/mt/wdt.c.
 */
#ifndef MQFAIR_SLOTS_H
#define MQFAIR_SLOTS_H

#include "sched.h"
#include "mt/token_tree.h"

struct slots {
	struct sched *sched;		/* I */
	struct token_tree tree;
	atomic64_t ready[QUEUE_WORDS] __port_cacheline;	/* wait for a slot */
};

/* After topology_init().  0 or -ENOMEM. */
int slots_init(struct slots *sl, struct sched *s, u32 depth);
void slots_deinit(struct slots *sl);

/* False: @queue is in the ready set. */
bool slots_take(struct slots *sl, u32 queue);

/* For who does not wait: a slot if one is near. */
bool slots_try(struct slots *sl, u32 queue);

/* @queue looks by itself: it waits for no slot while it does. */
void slots_withdraw(struct slots *sl, u32 queue);

/* A slot of @queue is free again. */
void slots_put(struct slots *sl, u32 queue, struct wake *wake);

/* Names the ready queue nearest to @queue if there is a slot for it. */
void slots_hand_over(struct slots *sl, u32 queue, struct wake *wake);

/* Changes D, and has everybody who waits look again. */
void slots_resize(struct slots *sl, u32 depth, struct wake *wake);

/* Does @queue wait here though there are slots?  A snapshot. */
bool slots_forgot(const struct slots *sl, u32 queue);

#endif /* MQFAIR_SLOTS_H */
