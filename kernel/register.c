// SPDX-License-Identifier: GPL-2.0
/*
 * register - one elevator type for each scheduler, and the life of a device
 *
 * The block layer calls the hooks of a device's life in this order.  compat.h
 * says how kernels differ in them.
 *
 *	alloc_data	memory of the device; before the freeze on new kernels
 *	init		queues, scheduler, blk-cgroup policy; queue frozen
 *	init_hctx	each hardware queue gets its host
 *	depth_updated	the tag maps have changed; queue frozen
 *	exit_hctx	each hardware queue forgets its host
 *	exit		init undone; queue frozen
 *	free_data	alloc_data undone
 */
#include "register.h"

#include "attrs.h"
#include "debugfs.h"
#include "elevator.h"
#include "layout.h"
#include "limit.h"
#include "tick.h"
#include "wake.h"
#include "cgroup.h"
#include "sched/core/policies.h"

static void *el_alloc_data(struct request_queue *q)
{
	struct device_host *d = kvzalloc_node(sizeof(*d), GFP_KERNEL, q->node);

	if (!d)
		return NULL;
	d->q = q;
	d->head = disk_head_get(q->disk);
	mutex_init(&d->tune_lock);
	INIT_LIST_HEAD(&d->groups);
	wake_setup(d);
	tick_setup(d);
	return d;
}

static void el_free_data(void *data)
{
	struct device_host *d = data;

	if (d->head)
		put_device(disk_to_dev(d->head));
	kvfree(d);
}

static int el_init(struct request_queue *q, struct elevator_queue *eq)
{
	struct device_host *d = eq->elevator_data;
	u32 i;
	int ret;

	ret = device_host_build(d, sched_find(eq->type->elevator_name));
	if (ret)
		return ret;
	for (i = 0; i < d->nr_hctx; i++)
		wake_setup_hctx(d->hctx[i]);
	limit_resized(d);
	ret = compat_activate_policy(q, &mqfair_policy);
	if (ret) {
		device_host_destroy(d);
		return ret;
	}
	compat_queue_run_all(q);
	compat_wbt_disable(q, eq);
	return 0;
}

/*
 * A removed hardware queue is kept for later use.  Then the block layer may ask
 * it for work before a scheduler is attached: see el_has_work().
 */
static void forget_hctx(struct device_host *d)
{
	u32 i;

	for (i = 0; i < d->nr_hctx; i++)
		d->hctx[i]->hctx->sched_data = NULL;
}

static void el_exit(struct elevator_queue *eq)
{
	struct device_host *d = eq->elevator_data;

	groups_leave(d);
	compat_deactivate_policy(d->q, &mqfair_policy);
	/* In this test build the groups of the policy are freed by now. */
	if (IS_ENABLED(MQFAIR_TEST_WINDOWS))
		rcu_barrier();
	groups_detach(d);
	/* From here on no cgroup can ask for a wake-up or a tick. */
	wake_stop(d);
	compat_wbt_restore(d->q, eq);
	forget_hctx(d);
	device_host_destroy(d);
}

static int el_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	struct device_host *d = device_of(hctx->queue);

	hctx->sched_data = d->hctx[index];
	return 0;
}

/*
 * The block layer clears hctx->sched_data if this hook exists.  It does not call
 * the hook for a hardware queue that was removed meanwhile: see forget_hctx().
 */
static void el_exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
}

static void el_depth_updated(struct request_queue *q)
{
	struct device_host *d = device_of(q);

	device_size_requests(d);
	limit_resized(d);
}

COMPAT_DEFINE_ELEVATOR_HOOKS(el_)

static const struct elevator_type template = {
	.ops = {
		COMPAT_ELEVATOR_OPS(el_),
		.init_hctx		= el_init_hctx,
		.exit_hctx		= el_exit_hctx,
		.limit_depth		= el_limit_depth,
		.prepare_request	= el_prepare_request,
		.insert_requests	= el_insert_requests,
		.dispatch_request	= el_dispatch_request,
		.has_work		= el_has_work,
		.bio_merge		= el_bio_merge,
		.completed_request	= el_completed_request,
		.requeue_request	= el_requeue_request,
		.finish_request		= el_finish_request,
	},
	.queue_debugfs_attrs	= mqfair_queue_debugfs,
	.elevator_owner		= THIS_MODULE,
};

/* One type for each scheduler, in the order of sched_policies[]. */
static struct {
	struct elevator_type type;
	struct elv_fs_entry attrs[TUNABLES_MAX + 1];
} elevators[POLICIES_MAX];

/*
 * The block layer asks for these modules when a task writes the name of a
 * scheduler that is not registered.
 */
#define SCHEDULER(symbol, name) MODULE_ALIAS(name "-iosched");
#ifdef MQFAIR_EXAMPLES
#define EXAMPLE(symbol, name) MODULE_ALIAS(name "-iosched");
#else
#define EXAMPLE(symbol, name)
#endif
#include "sched/core/policies.def"
#undef EXAMPLE
#undef SCHEDULER

static int elevator_register_one(u32 i)
{
	const struct sched_ops *ops = sched_policies[i];
	struct elevator_type *type = &elevators[i].type;

	/* Some members are const, so the whole type is copied. */
	memcpy(type, &template, sizeof(*type));
	type->elevator_name = ops->name;
	attrs_fill(ops->tunables, elevators[i].attrs);
	type->elevator_attrs = elevators[i].attrs;
	return elv_register(type);
}

static void elevator_unregister_first(u32 n)
{
	while (n--)
		elv_unregister(&elevators[n].type);
}

int elevator_register(void)
{
	u32 i;
	int ret;

	for (i = 0; sched_policies[i]; i++) {
		ret = elevator_register_one(i);
		if (ret) {
			elevator_unregister_first(i);
			return ret;
		}
	}
	return 0;
}

void elevator_unregister(void)
{
	elevator_unregister_first(sched_policies_count());
}
