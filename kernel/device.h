/* SPDX-License-Identifier: GPL-2.0 */
/*
 * device - the structures that mqfair keeps for one block device
 *
 *	struct device_host		one per request queue
 *	  struct hctx_host		one per hardware queue
 *	    struct queue_host		one per CPU that submits to it
 *	      struct queue		the scheduler's
 *	  struct sched			the scheduler's
 *	struct request_host		one per scheduler tag, by its number
 *	struct group_host		one per cgroup; holds the flow
 *
 * layout.c builds and frees all of these but the groups, which belong to
 * cgroup.c.  The device_host itself comes from register.c.
 *
 * Lock order, outermost first
 *
 *	blkcg->lock > groups_lock
 *	device_host.tune_lock
 *	request queue's lock > groups_lock
 *	groups_lock > the locks of sched/ and device_host.timer_lock
 *	groups_lock > cgroup_host.lock > share_tree.lock
 *	hctx_host.lock > queue_host.lock > the locks of sched/
 *	any of these > tag_map.order.lock > flow.lock, share_tree.lock
 *	any of these > the lock of tag_kind.wait
 *	any of these > host_ftl_lock > the lock of a driver
 *
 * The locks of sched/ are flow.lock and sched.active_lock, both above
 * share_tree.lock; sched.h explains them.
 *
 * hctx_host.lock and queue_host.lock are taken in task context only, with
 * interrupts on.  A hardware queue with one CPU uses hctx_host.lock for its
 * queue.  A completion takes neither.
 *
 * Marks on fields
 *
 *	I	set at initialisation
 *	H	under hctx_host.lock
 *	Q	under the lock of the queue
 *	A	atomic
 *	O	written by one owner, read anywhere: see sched.h
 *	tick	used by tick work only
 *	frozen	changed only while the request queue is frozen
 */
#ifndef MQFAIR_DEVICE_H
#define MQFAIR_DEVICE_H

#include "compat.h"
#include "sched/core/sched.h"

struct device_host;

/* A request while it is inserted or in the device. */
struct request_host {
	struct io io;
	struct request *rq;
	struct flow *kept;		/* a driver sent it back: see el_requeue_request() */
};

/* The requests of one kind: limit.c bounds their tags. */
struct tag_kind {
	atomic_t held;			/* A: tags of these requests */
	wait_queue_head_t wait;		/* tasks that wait until one is given back */
};

/*
 * A request takes a scheduler tag, and a driver tag when it is staged.  One number
 * counts both: a completing request gives both back by one addition.
 */
#define TAG_OF_SCHED		1ULL
#define TAG_OF_DRIVER		(1ULL << 32)

/* The host's flag of struct io: the request has a driver tag. */
#define IO_HAS_DRIVER_TAG	IO_OF_HOST

/* The scheduler tags of a hardware queue, or of all that share one map. */
struct tag_map {
	atomic64_t returned;		/* A: tags given back: device_tags() */
	u32 half;			/* frozen: of the tags; limit_admit() */
	struct tag_waiters order;		/* line: I */
	u32 granted;			/* order.lock: handed to tasks that wake up */
	struct list_head tasks;		/* order.lock: waiters, in order of arrival */
	struct tag_kind foreign;	/* of kernel threads */
	atomic64_t taken;		/* tags of inserted requests: limit_took() */
} ____cacheline_aligned_in_smp;

/* The tags of a flow that limit.c bounds. */
struct flow_tags {
	struct tag_kind swap;		/* of tasks that write pages to swap */
};

/* A cgroup on a device: its blk-cgroup policy data; see cgroup.c. */
struct group_host {
	struct blkg_policy_data pd;
	struct rcu_head rcu;
	struct list_head node;		/* groups_lock: in device_host.groups */
	bool set_up;			/* groups_lock: the flow may be used */
	bool keeps_module;		/* groups_lock: the device has gone */
	bool holds_cgroup;		/* I: a reference on pd.blkg->blkcg */
	struct flow_tags tags;
	struct flow flow;
};

/* The queue of one CPU of a hardware queue. */
struct queue_host {
	struct queue queue;
	spinlock_t *lock;		/* I: own_lock or hctx_host.lock */
	spinlock_t own_lock;		/* if several queues share the hctx */
	struct list_head requests;	/* Q: waiting, for merging */
	struct hctx_host *hctx;		/* I */
	u32 place;			/* I: in hctx_host.queue[] */
	int cpu;			/* I */
} ____cacheline_aligned_in_smp;

/* A hardware queue; stage.h explains `staged` and `blocked`. */
struct hctx_host {
	spinlock_t lock;		/* H: serialises staging */
	bool busy;			/* O, under H: a request is queued or staged */
	struct request *staged;		/* O, under H: the next ones by io.next */
	u64 staged_ns;			/* H: time at which it was staged */
	u64 sent;			/* O, under H: staged so far, times TAG_OF_DRIVER */
	struct queue_host **queue;	/* I: by request->mq_ctx->index_hw[] */
	u32 nr_queues;			/* I */
	u32 turn;			/* O, under H: next queue, if no tag decides */
	struct blk_mq_hw_ctx *hctx;	/* I */
	struct device_host *device;	/* I */
	struct request_host *requests;	/* frozen: by scheduler tag */
	u32 nr_requests;		/* frozen */
	bool requests_shared;		/* I: requests[] is the device's */
	bool alone;			/* I: only H covers tag_map.taken */
	struct tag_map *map;		/* I: own_map or the device's */
	u32 hw_depth;			/* I: driver tags; 0: queues share them */
	bool exempt;			/* I: polled, its flows are not limited */
	u64 null_dispatches;		/* H: the core fetched and got none */
	u64 lost_ns, lost_dispatched;	/* tick: watchdog of wake-ups, tick.c */
	unsigned long lost_grace;	/* tick: the same */
	struct work_struct wake_work;
	struct queue_set forward;	/* A: queues that wake_work wakes first */
	struct tag_map own_map;
	atomic_t full ____cacheline_aligned_in_smp;	/* A: waits for a driver tag */
	bool blocked;			/* O: written under H */
	bool drains;			/* H: queue.drain of its queues */
	/* The next three are of places in queue[], if there are several. */
	DECLARE_BITMAP(asked, QUEUES_MAX);	/* H: dispatched from since block */
	DECLARE_BITMAP(filled, QUEUES_MAX)	/* Q: with waiting requests */
		____cacheline_aligned_in_smp;
	DECLARE_BITMAP(woken, QUEUES_MAX);	/* A: with a wake-up to pass on */
} ____cacheline_aligned_in_smp;

/* A request queue: elevator_queue.elevator_data. */
struct device_host {
	struct sched sched;
	struct request_queue *q;	/* I */
	struct gendisk *head;		/* I: disk_head_get() */
	struct hctx_host **hctx;	/* I: by hctx->queue_num */
	u32 nr_hctx;			/* I */
	struct queue_host *queues;	/* I: by queue->index */
	struct request_host *requests;	/* frozen: of shared tag maps */
	u32 nr_requests;		/* frozen */
	struct tag_map map;		/* if the hardware queues share one */
	struct list_head groups;	/* groups_lock: of group_host */
	struct mutex tune_lock;		/* serialises writers of tunables */
	unsigned long automatic;	/* tune_lock: bit per tunable, attrs.c */
	struct port_lock timer_lock;	/* serialises arming the timers */
	u64 look_next_ns;		/* tick: when look_at_queues() is due */
	struct hrtimer timer;		/* queues the tick work */
	struct work_struct tick;
	bool grace_wanted;		/* tick: see tick_hooks_begin() */
	bool exiting;			/* O, by wake_stop(): wake no queue */
};

static inline struct queue_host *queue_host_of(const struct queue *q)
{
	return container_of(q, struct queue_host, queue);
}

static inline struct request_host *request_host_of(struct io *io)
{
	return container_of(io, struct request_host, io);
}

/*
 * The tags that the requests of @h hold: the scheduler tags of its map in the low
 * half, and the driver tags of @h in the high half.  A snapshot, any context.
 *
 * Each request was added to `taken` and `sent` before it was added to `returned`.
 * The acquire keeps this order, so that neither half is ever negative.  Pairs with
 * limit_returned().
 */
static inline u64 device_tags(const struct hctx_host *h)
{
	u64 returned = (u64)atomic64_read_acquire(&h->map->returned);

	return (u64)atomic64_read(&h->map->taken) + READ_ONCE(h->sent) -
	       returned;
}

/* The requests of @h that are staged or in the driver; 0 if it shares tags. */
static inline u32 hctx_in_flight(const struct hctx_host *h)
{
	return (u32)(device_tags(h) >> 32);
}

/* NULL between prepare_request() and the first insertion. */
static inline struct request_host *rq_host(const struct request *rq)
{
	return rq->elv.priv[0];
}

/* @q runs one of our schedulers. */
static inline struct device_host *device_of(const struct request_queue *q)
{
	return q->elevator->elevator_data;
}

#endif /* MQFAIR_DEVICE_H */
