/* SPDX-License-Identifier: GPL-2.0 */
/*
 * device - what mqfair keeps for one block device, and who may touch it
 *
 *	struct device_host		one per request queue
 *	  struct hctx_host		one per hardware queue
 *	    struct queue_host		one per CPU that submits to it
 *	      struct queue		the scheduler's
 *	  struct sched			the scheduler's
 *	struct request_host		one per scheduler tag, by its number
 *	struct group_host		one per cgroup; holds the flow
 *
 * Staging.  A request that the scheduler lets go waits in hctx_host.staged for
 * the core to fetch it, and has_work() says whether one does.  So the core is
 * asked to run a hardware queue only when there is something for it to take:
 * when it finds has_work() true and is then given nothing it re-runs all
 * queues 3 ms later, which costs time and would hide a lost wake-up.
 *
 * Locking
 *   hctx_host.lock > queue_host.lock > (flow lock > share_tree.lock), all but
 *   the last two in task context only; completions take neither of the first.
 *   A hardware queue with a single CPU uses hctx_host.lock for its queue.
 *
 * Letters on fields: I set at initialisation; H hctx_host.lock; Q the queue's
 * lock; A atomic; see sched.h.
 */
#ifndef MQFAIR_DEVICE_H
#define MQFAIR_DEVICE_H

#include "compat.h"
#include "sched/core/sched.h"

struct device_host;

struct request_host {
	struct io io;
	struct request *rq;		/* while inserted or in the device */
	struct blkcg_gq *blkg;		/* referenced, pins the flow */
};

/* Scheduler tags in use: of a hardware queue, or of all that share a map. */
struct tag_map {
	atomic_t used;
} ____cacheline_aligned_in_smp;

/* What limit.c knows of a flow. */
struct flow_tags {
	wait_queue_head_t wait;
	u32 wants;			/* O: at most, in this interval */
	u32 wanted, counted;		/* tick: in the last; by the level */
};

/* See weights.c. */
struct group_host {
	struct blkg_policy_data pd;
	struct rcu_head rcu;
	struct list_head node;		/* groups_lock: in device_host.groups */
	bool set_up;			/* groups_lock: the flow has a device */
	struct flow_tags tags;
	struct flow flow;
};

struct queue_host {
	struct queue queue;
	spinlock_t *lock;		/* I */
	spinlock_t own_lock;
	struct list_head requests;	/* Q: waiting, for merging */
	struct hctx_host *hctx;		/* I */
	int cpu;			/* I */
	u64 lost_ns, lost_dispatched;	/* tick: see watch_wakes() */
} ____cacheline_aligned_in_smp;

struct hctx_host {
	spinlock_t lock;
	struct request *staged;		/* O: written under H */
	u64 staged_ns;			/* H: since when */
	struct queue_host **queue;	/* I: by request->mq_ctx->index_hw[] */
	u32 nr_queues;			/* I */
	u32 turn;			/* H: who is asked first, unordered */
	struct blk_mq_hw_ctx *hctx;	/* I */
	struct device_host *device;	/* I */
	struct request_host *requests;	/* frozen: by scheduler tag */
	u32 nr_requests;		/* frozen */
	bool requests_shared;		/* I: the device's, not ours */
	struct tag_map *map;		/* I: own_map or the device's */
	u32 hw_depth;			/* I: driver tags; 0: not known */
	bool exempt;			/* I: polled */
	u64 null_dispatches;		/* H: the core asked in vain */
	struct work_struct wake_work;
	struct tag_map own_map;
	atomic_t in_flight ____cacheline_aligned_in_smp;
	atomic_t full;			/* A: waits for a driver tag */
	bool blocked;			/* H: told so to the scheduler */
} ____cacheline_aligned_in_smp;

struct device_host {
	struct sched sched;
	struct request_queue *q;	/* I */
	struct hctx_host **hctx;	/* I: by hctx->queue_num */
	u32 nr_hctx;			/* I */
	struct queue_host *queues;	/* I: by queue->index */
	struct request_host *requests;	/* frozen: of shared tag maps */
	u32 nr_requests;		/* frozen */
	struct tag_map map;
	u32 tag_depth;			/* frozen: of each map */
	u32 tag_level;			/* O, by tick: see limit.c */
	u64 tag_next_ns;		/* tick: when it is due again */
	struct list_head groups;	/* of weights.c, see there */
	struct mutex tune_lock;		/* tune() against itself */
	unsigned long automatic;	/* tune_lock: by place, see attrs.c */
	struct port_lock timer_lock;	/* arming it against itself */
	struct hrtimer timer;		/* to tick */
	struct work_struct tick;
};

static inline struct queue_host *queue_host_of(const struct queue *q)
{
	return container_of(q, struct queue_host, queue);
}

static inline struct request_host *request_host_of(struct io *io)
{
	return container_of(io, struct request_host, io);
}

static inline struct request_host *rq_host(const struct request *rq)
{
	return rq->elv.priv[0];
}

static inline struct device_host *device_of(const struct request_queue *q)
{
	return q->elevator->elevator_data;
}

/* register.c */
bool elevator_is_ours(const struct elevator_type *type);
/* device.c */
int device_host_build(struct device_host *d, const struct sched_ops *ops);
void device_host_destroy(struct device_host *d);
void device_size_requests(struct device_host *d);

/* classify.c */
void classify(struct request *rq, struct request_host *r);

static inline void declassify(struct request_host *r)
{
	if (r->blkg)
		blkg_put(r->blkg);
	r->blkg = NULL;
	r->rq = NULL;
}

/* limit.c */
void el_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void limit_depth_updated(struct device_host *d);
void limit_wake(struct hctx_host *h, struct flow *f);
void limit_tick(struct device_host *d, u64 now);

static inline struct flow_tags *flow_tags(struct flow *f)
{
	return &container_of(f, struct group_host, flow)->tags;
}

/* What the flow holds of @h's tags has changed: there may be room for another. */
static inline void limit_changed(struct hctx_host *h, struct flow *f)
{
	if (unlikely(waitqueue_active(&flow_tags(f)->wait)))
		limit_wake(h, f);
}

static inline void limit_taken(struct hctx_host *h)
{
	atomic_inc(&h->map->used);
}

static inline void limit_released(struct hctx_host *h, struct flow *f)
{
	/* Full order; pairs with wait_for_tags(). */
	atomic_dec_return(&h->map->used);
	limit_changed(h, f);
}

/* attrs.c */
void attrs_fill(const struct tunable *table,
		struct elv_fs_entry attrs[TUNABLES_MAX + 1]);
void device_default_params(struct device_host *d, const struct sched_ops *ops,
			   struct sched_params *p);

/* debugfs.c */
extern const struct blk_mq_debugfs_attr mqfair_queue_debugfs[];
extern const struct blk_mq_debugfs_attr mqfair_hctx_debugfs[];

/* weights.c */
extern struct blkcg_policy mqfair_policy;

static inline struct group_host *group_of(struct blkg_policy_data *pd)
{
	return pd ? container_of(pd, struct group_host, pd) : NULL;
}

/* NULL if the cgroup went before the scheduler came. */
static inline struct flow *group_flow(struct blkcg_gq *blkg)
{
	struct group_host *g = group_of(blkg_to_pd(blkg, &mqfair_policy));

	return g && likely(READ_ONCE(g->set_up)) ? &g->flow : NULL;
}

static inline struct flow *root_flow(struct request_queue *q)
{
	return group_flow(q->root_blkg);
}

void groups_let_go(struct device_host *d);
struct blkcg *flow_blkcg(struct flow *f);
int weights_init(void);
void weights_exit(void);

#endif /* MQFAIR_DEVICE_H */
