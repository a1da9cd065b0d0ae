/* SPDX-License-Identifier: GPL-2.0 */
/*
 * hooks - a scheduler with a few queues and flows, called hook by hook
 *
 * Each function calls one hook and notes the wake-ups and the tick for which
 * the hook asks.  A test acts on them itself, and moves the time.
 */
#ifndef MQFAIR_UNIT_HOOKS_H
#define MQFAIR_UNIT_HOOKS_H

#include "unit.h"
#include "sched/core/sched.h"

enum {
	HOOKS_QUEUES	= 4,
	HOOKS_FLOWS	= 8,
	HOOKS_IOS	= 256,
	HOOKS_BYTES	= 4096,	/* of most requests */
};

#define MS	1000000ULL

/*
 * The rate of the device at first.  By this rate urgent requests cost nothing,
 * and a flow may have HOOKS_IOS of them.  tests/unit/urgent.c has the bounds.
 */
#define HOOKS_RATE	BIT_ULL(40)

struct hooks_io {
	enum io_op op;
	u32 bytes;
};

struct hooks {
	struct sched sched;
	struct queue queue[HOOKS_QUEUES];
	struct queue *index[HOOKS_QUEUES];
	struct flow *root, *flow[HOOKS_FLOWS];
	u32 nr_flows;
	struct io io[HOOKS_IOS];
	bool busy[HOOKS_IOS];
	u64 now, tick_ns;		/* 0: no tick was asked for */
	u64 woken;			/* queues, until the test clears it */
	u32 pinned_by;			/* of the last hook */
};

/* @nr_queues queues on cores of their own.  The root is the only flow. */
void hooks_open(struct hooks *h, const struct sched_ops *ops,
		const struct sched_params *p, u32 nr_queues);

/* The same on a device of @pages with the callbacks of @map. */
void hooks_open_on(struct hooks *h, const struct sched_ops *ops,
		   const struct sched_params *p, u32 nr_queues, u64 pages,
		   const struct host_map *map);

/* No request waits or is in the device. */
void hooks_close(struct hooks *h);

/* A child of the root; and its end, with no request left. */
struct flow *hooks_flow(struct hooks *h, u32 weight);
struct flow *hooks_flow_below(struct hooks *h, struct flow *parent, u32 weight);
void hooks_flow_gone(struct hooks *h, struct flow *f);

/* A read; and any operation. */
struct io *hooks_insert(struct hooks *h, u32 queue, struct flow *f, u32 bytes,
			u8 flags);
struct io *hooks_insert_op(struct hooks *h, u32 queue, struct flow *f,
			   enum io_op op, u32 bytes, u8 flags);
/* The request, for DISPATCH_IO; else NULL. */
struct io *hooks_dispatch(struct hooks *h, u32 queue,
			  enum dispatch_result expected);
/* The same for a read of HOOKS_BYTES, and for a dispatch that succeeds. */
struct io *hooks_read(struct hooks *h, u32 queue, struct flow *f);
struct io *hooks_next(struct hooks *h, u32 queue);
/* The next ios of @queue are of the flows with these indexes in h->flow[]. */
void hooks_expect_order(struct hooks *h, u32 queue, const char *digits);
/*
 * The @n ios @run of @f, for sched_ops.send.  Returns the first by io.next, or NULL
 * with nothing done if the hook did not send them.
 */
struct io *hooks_send_run(struct hooks *h, u32 queue, struct flow *f,
			  const struct hooks_io *run, u32 n);
/* Inserts and dispatches @n reads of @f, which find a slot. */
void hooks_send(struct hooks *h, u32 queue, struct flow *f, u32 n);
/* Inserts a read of @f, and @queue finds no slot. */
void hooks_send_in_vain(struct hooks *h, u32 queue, struct flow *f);
void hooks_merge(struct hooks *h, struct io *io, u32 bytes);
void hooks_complete(struct hooks *h, struct io *io);
void hooks_requeue(struct hooks *h, struct io *io);
/* Inserts @io again, which was requeued. */
void hooks_insert_again(struct hooks *h, struct io *io);
void hooks_block(struct hooks *h, u32 queue);
void hooks_tick(struct hooks *h);
void hooks_tune(struct hooks *h, const struct sched_params *p);

/* The present start tag of @io. */
vtime_t hooks_tag(const struct io *io);

/* Until @until_ns, the host calls tick exactly when a hook has asked for it. */
void hooks_run(struct hooks *h, u64 until_ns);

/*
 * For each allocation of init: if it fails, so does init, and nothing is left.
 * Returns the number of allocations.
 */
u32 hooks_init_without_memory(const struct sched_ops *ops);

/*
 * Scenes of a scheduler with parts of D (slots.h).  No request waits, and none is
 * in the device.  The caller has opened the scheduler with this D.
 *
 * D = 8, and queue 1 is woken for the free slot.  Before it runs, queue 3 waits
 * for a slot, too.  With three rivals queue 1 has its part, and queue 2 is due the
 * slot.
 */
void hooks_refused_queue_hands_over(struct hooks *h);

/*
 * D = 4, and two slots are free.  Queue 1 is woken for one of them, and queue 2 has
 * its part until queue 1 has sent its last io.  A host asks an empty queue no more.
 */
void hooks_last_io_hands_over(struct hooks *h);

/* Sets queue.drain of all queues. */
void hooks_set_drain(struct hooks *h, bool drain);

/* Dispatches without delay, and completes, all requests. */
void hooks_drain(struct hooks *h);

/* A cost is the bytes, also of a request of less than 4 KiB. */
extern const struct cost_model hooks_cost_by_size;

#endif /* MQFAIR_UNIT_HOOKS_H */
