/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat - one block layer for the files of kernel/: the interface of 7.2
 *
 * This directory makes older kernels look like 7.2. No file outside of it asks
 * for the kernel. The files here ask the kernel's BTF (features.h), or the
 * running kernel where only its behaviour tells (compat_init()). A version in
 * the table is a kernel in which the form was found. No code tests a version.
 *
 * subject		6.1		6.12		7.2
 * -------		---		----		---
 * init_sched()		(q, type), we allocate and free		(q, eq), the core
 *			the elevator_queue			allocates; data from an
 *								extra hook, before freeze
 *			6.17 has the second form without the extra hook
 * depth_updated()	(hctx), before nr_requests is stored	(q), after
 * insert_requests()	bool at_head	blk_insert_t	blk_insert_t
 * shallow depth	per map word	whole map	whole map (measured)
 * "prepared by us"	RQF_ELVPRIV	RQF_USE_SCHED	RQF_USE_SCHED
 * FUA, PREFLUSH data	bypass us	pass through us	pass through us
 * zoned disks		refused		scheduled	scheduled
 * policy (de)activate	queue		disk		disk
 * pd_alloc_fn()	(gfp, q, blkcg)	(disk, blkcg, gfp)
 * WBT			queue		disk, elevator	disk, queue flag
 *					flag
 * per-CPU workqueue	the default	the default	WQ_PERCPU
 * hrtimer		init, then	init, then	hrtimer_setup()
 *			.function	.function
 * debugfs files	gone before the data is		outlive it: guard
 * elevator_attrs	not const	not const	const
 * a disk's limits	set later	with alloc	with alloc, flags too
 * merging		asked for	asked for	always
 *
 * elevator_attrs: an array without const fits all three.
 *
 * A row may go with the last kernel that has its older form: those of 6.1 with
 * Debian 12, those of 6.12 with Debian 13 (doc/compatibility.md). Upstream commits:
 * d4c3ef56a161 gave Kyber alloc_sched_data(), 930c2ea566af added WQ_PERCPU.
 */
#ifndef MQFAIR_COMPAT_H
#define MQFAIR_COMPAT_H

#include "public.h"
#include "features.h"

#if !MQFAIR_HAVE_INSERT_FLAGS
typedef bool blk_insert_t;
#endif

#include "private.h"
#include "prototypes.h"

/*
 * The kernel has a macro for the flag, so the BTF does not have it. The flag has
 * been bit 0 for as long as insert_requests() has had flags. Before that it was
 * the whole argument.
 */
#if MQFAIR_HAVE_INSERT_FLAGS
#define BLK_MQ_INSERT_AT_HEAD	((__force blk_insert_t)0x01)
#else
#define BLK_MQ_INSERT_AT_HEAD	true
#endif

/*
 * Marks a local variable that its first user fills in. Kernels that zero every
 * local (INIT_STACK_ALL_ZERO) then do not write it twice.
 */
#ifndef __uninitialized
#define __uninitialized		__attribute__((__uninitialized__))
#endif

/* ---------------------------------------------------------- capabilities */

/*
 * The flag is a macro of a public header in every kernel that has it, and only the
 * newer ones make it of an enumerator. So the header is asked, and not the BTF.
 */
#ifdef RQF_USE_SCHED
#define COMPAT_HAVE_USE_SCHED		1
#else
#define COMPAT_HAVE_USE_SCHED		0
#endif

/* Data writes with FUA or PREFLUSH reach insert_requests(). */
#define COMPAT_SCHEDULES_FLUSH_DATA	COMPAT_HAVE_USE_SCHED

/*
 * Zoned disks accept our schedulers: the kernel does not ask a scheduler to keep
 * the order of zone writes. Kernels with elevator_features ask for it, by a flag
 * that we do not set, because we do not lock zones. They refuse our schedulers
 * for such a disk.
 */
#define COMPAT_SCHEDULES_ZONED		(!MQFAIR_HAVE_ELEVATOR_FEATURES)

/* ------------------------------------------------------- start and end */

/* Measures the properties that only behaviour tells. Call first in module init. */
int compat_init(void);

/* -------------------------------------------------- elevator entry points */

/*
 * An elevator defines these functions, for a prefix such as el_:
 *
 *   void *el_alloc_data(struct request_queue *q)
 *	Returns the memory of elevator_data; NULL is -ENOMEM. It may sleep and
 *	does no I/O. Its size must not depend on q->nr_hw_queues: on 7.2 it runs
 *	before a change of that number takes effect.
 *   void el_free_data(void *data)
 *   int el_init(struct request_queue *q, struct elevator_queue *eq)
 *	eq->elevator_data and q->elevator are set, and scheduler tags exist. On
 *	failure it undoes its own work. The caller undoes data, eq and
 *	q->elevator.
 *   void el_exit(struct elevator_queue *eq)
 *	The data is freed after this.
 *   void el_depth_updated(struct request_queue *q)
 *	The scheduler's tag maps changed; the queue is frozen. Up to 6.12 it is
 *	called once per hardware queue, before q->nr_requests is stored and
 *	before a map shared by the hardware queues is resized. So it must be
 *	idempotent, set the minimal shallow depth anew (the maps may be new), and
 *	leave depths to compat_sched_depth() at the time of their use.
 *
 * COMPAT_DEFINE_ELEVATOR_HOOKS(el_) defines the entry points and
 * COMPAT_ELEVATOR_OPS(el_) fills them into elevator_type.ops.
 */
typedef void *(*compat_alloc_data_fn)(struct request_queue *q);
typedef void (*compat_free_data_fn)(void *data);
typedef int (*compat_init_fn)(struct request_queue *q, struct elevator_queue *eq);
typedef void (*compat_exit_fn)(struct elevator_queue *eq);

#if MQFAIR_HAVE_ALLOC_SCHED_DATA && !MQFAIR_HAVE_INIT_SCHED_QUEUE
#error "elevator_mq_ops: alloc_sched_data without an elevator_queue for init_sched"
#endif

#if MQFAIR_HAVE_ALLOC_SCHED_DATA

int compat_init_sched(struct request_queue *q, struct elevator_queue *eq,
		      compat_init_fn init);

#define COMPAT_DEFINE_ELEVATOR_HOOKS(prefix)				\
	static int prefix##compat_init_sched(struct request_queue *q,	\
					     struct elevator_queue *eq)	\
	{								\
		return compat_init_sched(q, eq, prefix##init);		\
	}								\
	COMPAT_DEFINE_DEPTH_UPDATED(prefix)

#define COMPAT_ELEVATOR_OPS(prefix)					\
	.alloc_sched_data = prefix##alloc_data,				\
	.free_sched_data = prefix##free_data,				\
	.init_sched = prefix##compat_init_sched,			\
	.exit_sched = prefix##exit,					\
	COMPAT_DEPTH_UPDATED(prefix)

#else

/* The second argument of init_sched(): ready, or the type to allocate one of. */
#if MQFAIR_HAVE_INIT_SCHED_QUEUE
typedef struct elevator_queue compat_init_arg;
#else
typedef struct elevator_type compat_init_arg;
#endif

int compat_init_sched(struct request_queue *q, compat_init_arg *arg,
		      compat_alloc_data_fn alloc_data,
		      compat_free_data_fn free_data, compat_init_fn init);
void compat_exit_sched(struct elevator_queue *eq, compat_exit_fn exit,
		       compat_free_data_fn free_data);

#define COMPAT_DEFINE_ELEVATOR_HOOKS(prefix)				\
	static int prefix##compat_init_sched(struct request_queue *q,	\
					     compat_init_arg *arg)	\
	{								\
		return compat_init_sched(q, arg, prefix##alloc_data,	\
					 prefix##free_data, prefix##init);	\
	}								\
	static void prefix##compat_exit_sched(struct elevator_queue *eq)	\
	{								\
		compat_exit_sched(eq, prefix##exit, prefix##free_data);	\
	}								\
	COMPAT_DEFINE_DEPTH_UPDATED(prefix)

#define COMPAT_ELEVATOR_OPS(prefix)					\
	.init_sched = prefix##compat_init_sched,			\
	.exit_sched = prefix##compat_exit_sched,			\
	COMPAT_DEPTH_UPDATED(prefix)

#endif

#if MQFAIR_HAVE_DEPTH_UPDATED_QUEUE
#define COMPAT_DEFINE_DEPTH_UPDATED(prefix)
#define COMPAT_DEPTH_UPDATED(prefix)	.depth_updated = prefix##depth_updated
#else
#define COMPAT_DEFINE_DEPTH_UPDATED(prefix)				\
	static void prefix##compat_depth_updated(struct blk_mq_hw_ctx *hctx)	\
	{								\
		prefix##depth_updated(hctx->queue);			\
	}
#define COMPAT_DEPTH_UPDATED(prefix)					\
	.depth_updated = prefix##compat_depth_updated
#endif

/*
 * This request went through our prepare_request(), so its elv.priv[] is ours.
 * On 6.1 completed_request() is called for others too, and their elv.priv[]
 * shares its storage with the state of the flush machinery.
 */
static inline bool mqfair_rq_is_ours(const struct request *rq)
{
#if COMPAT_HAVE_USE_SCHED
	return rq->rq_flags & RQF_USE_SCHED;
#else
	return rq->rq_flags & RQF_ELVPRIV;
#endif
}

/* ------------------------------------------------------------ workqueues */

/*
 * Newer kernels warn about a workqueue with neither WQ_PERCPU nor WQ_UNBOUND.
 * On older ones the first is the default and has no name.
 */
#if !MQFAIR_HAVE_WQ_PERCPU
#define WQ_PERCPU		0
#endif

/* ---------------------------------------------------------------- queues */

/*
 * Whether a task waits for the queue to run empty, or the queue goes away. Then
 * no request may be delayed. Needs no lock: a freeze sets the depth first and
 * runs the hardware queues afterwards.
 */
static inline bool compat_queue_draining(struct request_queue *q)
{
	return READ_ONCE(q->mq_freeze_depth) || blk_queue_dying(q);
}

/*
 * The time. While a task flushes a plug, this is the time at which it made the first
 * request of the plug: since 6.9 the kernel keeps that time until the task sleeps,
 * and gives it to the requests as their start. So a batch reads the clock once.
 */
static inline u64 compat_batch_time_ns(void)
{
#if MQFAIR_HAVE_PLUG_TIME
	const struct blk_plug *plug = current->plug;

	if (plug && plug->cur_ktime)
		return plug->cur_ktime;
#endif
	return ktime_get_ns();
}

/*
 * Has a run of the queue run all hardware queues, because our state is per
 * hardware queue. Call it in init: an earlier scheduler may have set the flag.
 */
static inline void compat_queue_run_all(struct request_queue *q)
{
	blk_queue_flag_clear(QUEUE_FLAG_SQ_SCHED, q);
}

/* The software queue of this CPU. The task may migrate, which costs locality only. */
static inline struct blk_mq_ctx *blk_mq_get_ctx(struct request_queue *q)
{
	return per_cpu_ptr(q->queue_ctx, raw_smp_processor_id());
}

static inline enum hctx_type compat_hctx_type(blk_opf_t opf)
{
	if (opf & REQ_POLLED)
		return HCTX_TYPE_POLL;
	if ((opf & REQ_OP_MASK) == REQ_OP_READ)
		return HCTX_TYPE_READ;
	return HCTX_TYPE_DEFAULT;
}

/* The hardware queue that requests with these flags from this software queue use. */
static inline struct blk_mq_hw_ctx *blk_mq_map_queue(blk_opf_t opf,
						     struct blk_mq_ctx *ctx)
{
	return ctx->hctxs[compat_hctx_type(opf)];
}

static inline bool blk_mq_hctx_stopped(struct blk_mq_hw_ctx *hctx)
{
	return test_bit(BLK_MQ_S_STOPPED, &hctx->state);
}

/*
 * Writeback throttling (WBT) makes buffered writers sleep above the scheduler,
 * without regard to weights. Init disables it, and exit restores its default,
 * except on kernels where that could deadlock.
 */
void compat_wbt_disable(struct request_queue *q, struct elevator_queue *eq);
void compat_wbt_restore(struct request_queue *q, struct elevator_queue *eq);

/* ------------------------------------------------------------------ tags */

/* Scheduler tags of this hardware queue, or of all when they share one map. */
static inline unsigned int compat_sched_depth(struct blk_mq_hw_ctx *hctx)
{
	return hctx->sched_tags ? hctx->sched_tags->bitmap_tags.sb.depth : 0;
}

/* Tags of the device for this hardware queue, or of all when they share one map. */
static inline unsigned int compat_hw_depth(struct blk_mq_hw_ctx *hctx)
{
	return hctx->tags ? hctx->tags->bitmap_tags.sb.depth : 0;
}

/* Whether the hardware queues of the device share one map of tags. */
static inline bool compat_hw_tags_shared(struct request_queue *q)
{
	return q->tag_set->flags & BLK_MQ_F_TAG_HCTX_SHARED;
}

/*
 * The number of requests that the device can hold for this queue. Polled queues
 * do not count, because their requests end only when a task reaps them.
 */
unsigned int compat_queue_hw_depth(struct request_queue *q);

/*
 * The value of blk_mq_alloc_data.shallow_depth with which about @depth tags of
 * the scheduler's map can be taken. It is never 0, which would mean "no limit".
 * It is never below the minimum that compat_set_min_shallow_depth() sets for the
 * same @depth.
 */
unsigned int compat_shallow_depth(struct blk_mq_hw_ctx *hctx, unsigned int depth);

/*
 * Sets the smallest @depth with which compat_shallow_depth() will be called. The
 * block layer batches wake-ups of sleepers by it. Call it in init and
 * depth_updated.
 */
void compat_set_min_shallow_depth(struct request_queue *q, unsigned int depth);

/* ----------------------------------------------------------------- timers */

#if !MQFAIR_HAVE_HRTIMER_SETUP
static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* ------------------------------------------------------------- blk-cgroup */

static inline struct blkcg *css_to_blkcg(struct cgroup_subsys_state *css)
{
	return css ? container_of(css, struct blkcg, css) : NULL;
}

/* The policy's part of a cgroup; NULL when the policy is not registered. */
static inline struct blkcg_policy_data *
blkcg_to_cpd(struct blkcg *blkcg, const struct blkcg_policy *pol)
{
	return blkcg ? READ_ONCE(blkcg->cpd[pol->plid]) : NULL;
}

/*
 * The policy's part of a cgroup on a device. NULL when the policy is not
 * active there, and for a removed cgroup's last bios when it was activated
 * after the removal.
 */
static inline struct blkg_policy_data *
blkg_to_pd(struct blkcg_gq *blkg, const struct blkcg_policy *pol)
{
	return blkg ? READ_ONCE(blkg->pd[pol->plid]) : NULL;
}

/* The caller holds a reference already, such as that of a live bio. Any context. */
static inline void blkg_get(struct blkcg_gq *blkg)
{
	percpu_ref_get(&blkg->refcnt);
}

/* For a blkg that was found under RCU and may be about to go. Accepts NULL. */
static inline bool blkg_tryget(struct blkcg_gq *blkg)
{
	return blkg && percpu_ref_tryget(&blkg->refcnt);
}

/* Any context: the release is deferred by the core. */
static inline void blkg_put(struct blkcg_gq *blkg)
{
	percpu_ref_put(&blkg->refcnt);
}

/*
 * The blkg of a cgroup on a queue, or NULL. Call it under rcu_read_lock(). The
 * blkg stays until the unlock, or longer with a reference.
 */
static inline struct blkcg_gq *blkg_lookup(struct blkcg *blkcg,
					   struct request_queue *q)
{
	struct blkcg_gq *blkg;

	if (blkcg == &blkcg_root)
		return READ_ONCE(q->root_blkg);
	blkg = rcu_dereference(blkcg->blkg_hint);
	if (!blkg || blkg->q != q)
		blkg = radix_tree_lookup(&blkcg->blkg_tree, q->id);
	return blkg && blkg->q == q ? blkg : NULL;
}

/* Visits @root and every blkg below it on its queue, parents first. Under RCU. */
#define blkg_for_each_descendant_pre(blkg, pos, root)			\
	css_for_each_descendant_pre(pos, &(root)->blkcg->css)		\
		if (((blkg) = blkg_lookup(css_to_blkcg(pos), (root)->q)) == NULL) \
			continue;					\
		else

/* Whether no scheduler may delay this bio: metadata and swap. Its flow pays later. */
static inline bool bio_issue_as_root_blkg(const struct bio *bio)
{
	return bio->bi_opf & (REQ_META | REQ_SWAP);
}

/*
 * The cgroup of the running task, under rcu_read_lock(). A kernel thread that
 * works for another cgroup counts with its own: only its bios tell the other.
 */
static inline struct blkcg *compat_current_blkcg(void)
{
	return css_to_blkcg(task_css(current, io_cgrp_id));
}

/* Writes the path of the cgroup from the root. Returns its length or -errno. */
static inline int compat_blkcg_path(struct blkcg *blkcg, char *buf, size_t len)
{
	return cgroup_path(blkcg->css.cgroup, buf, len);
}

/* The caller or the block layer has frozen the queue. Sleeps. */
static inline int compat_activate_policy(struct request_queue *q,
					 struct blkcg_policy *pol)
{
#if MQFAIR_HAVE_POLICY_DISK
	return blkcg_activate_policy(q->disk, pol);
#else
	return blkcg_activate_policy(q, pol);
#endif
}

static inline void compat_deactivate_policy(struct request_queue *q,
					    struct blkcg_policy *pol)
{
#if MQFAIR_HAVE_POLICY_DISK
	blkcg_deactivate_policy(q->disk, pol);
#else
	blkcg_deactivate_policy(q, pol);
#endif
}

/*
 * The arguments of blkcg_policy.pd_alloc_fn:
 *	static struct blkg_policy_data *my_alloc(COMPAT_PD_ALLOC_ARGS)
 * The function can use the names gfp and blkcg, and COMPAT_PD_QUEUE for the
 * queue. pd_free_fn may run under spin locks while RCU readers use the data. So
 * it needs call_rcu() with an rcu_head in our structure: not every kernel's
 * blkg_policy_data has one.
 */
#if MQFAIR_HAVE_PD_ALLOC_DISK
#define COMPAT_PD_ALLOC_ARGS \
	struct gendisk *disk, struct blkcg *blkcg __maybe_unused, gfp_t gfp
#define COMPAT_PD_QUEUE		(disk->queue)
#else
#define COMPAT_PD_ALLOC_ARGS \
	gfp_t gfp, struct request_queue *q, struct blkcg *blkcg __maybe_unused
#define COMPAT_PD_QUEUE		(q)
#endif

/* ---------------------------------------------------------------- debugfs */

/*
 * For readers of elevator debugfs files. On 7.2 the files outlive the scheduler,
 * so a reader may find the data of another scheduler, or none. Returns whether
 * @ours holds for the queue's scheduler. compat_debugfs_exit() must follow in
 * both cases. In a seq_file, start() enters and stop() exits.
 */
bool compat_debugfs_enter(struct request_queue *q,
			  bool (*ours)(const struct elevator_type *type));
void compat_debugfs_exit(struct request_queue *q);

#endif
