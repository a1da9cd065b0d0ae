// SPDX-License-Identifier: GPL-2.0
/*
 * layout - builds the queues of a device after its real topology
 *
 * There is one scheduler queue for each CPU of each hardware queue.  Queues are
 * numbered by socket, core and CPU, as sched/mt/topology.h requires.  CPUs that
 * are not present yet count too, because the block layer maps them already.
 */
#include "layout.h"

#include "attrs.h"
#include "cgroup.h"
#include "host_ftl.h"
#include "tick.h"

#include <linux/sort.h>
#include <linux/topology.h>

static u32 cpu_socket(int cpu)
{
	return topology_physical_package_id(cpu);
}

/* A queue that is to be built. */
struct queue_plan {
	u32 socket, core;	/* numbers of the platform; core is of its socket */
	int cpu;
	u32 hctx;		/* number of its hardware queue */
	u32 ctx;		/* index in hctx->ctxs[] */
};

static int plan_compare(const void *a, const void *b)
{
	const struct queue_plan *x = a, *y = b;

	if (x->socket != y->socket)
		return x->socket < y->socket ? -1 : 1;
	if (x->core != y->core)
		return x->core < y->core ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->hctx < y->hctx ? -1 : x->hctx > y->hctx;
}

static u32 count_queues(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;
	u32 n = 0;

	queue_for_each_hw_ctx(q, hctx, i)
		n += hctx->nr_ctx;
	return n;
}

static void plan_queues(struct request_queue *q, struct queue_plan *plan, u32 n)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;
	u32 c;

	queue_for_each_hw_ctx(q, hctx, i) {
		for (c = 0; c < hctx->nr_ctx; c++, plan++) {
			plan->cpu = hctx->ctxs[c]->cpu;
			plan->socket = cpu_socket(plan->cpu);
			plan->core = topology_core_id(plan->cpu);
			plan->hctx = hctx->queue_num;
			plan->ctx = c;
		}
	}
	sort(plan - n, n, sizeof(*plan), plan_compare, NULL);
}

static void tag_map_init(struct tag_map *map)
{
	limit_order_init(&map->order, 0);
	INIT_LIST_HEAD(&map->tasks);
	init_waitqueue_head(&map->foreign.wait);
}

static struct hctx_host *hctx_build(struct device_host *d,
				    struct blk_mq_hw_ctx *hctx)
{
	struct hctx_host *h;

	h = kzalloc_node(sizeof(*h), GFP_NOIO, hctx->numa_node);
	if (!h)
		return NULL;
	h->queue = kcalloc_node(hctx->nr_ctx ?: 1, sizeof(*h->queue), GFP_NOIO,
				hctx->numa_node);
	if (!h->queue) {
		kfree(h);
		return NULL;
	}
	spin_lock_init(&h->lock);
	h->nr_queues = hctx->nr_ctx;
	h->hctx = hctx;
	h->device = d;
	h->exempt = hctx->type == HCTX_TYPE_POLL;
	h->requests_shared = compat_hw_tags_shared(d->q);
	h->alone = h->nr_queues == 1 && !h->requests_shared;
	h->map = h->requests_shared ? &d->map : &h->own_map;
	tag_map_init(&h->own_map);
	/* hctx_in_flight() does not tell how many tags are free if others share them. */
	if (!compat_hw_tags_shared(d->q))
		h->hw_depth = compat_hw_depth(hctx);
	return h;
}

static void hctx_destroy(struct hctx_host *h)
{
	if (!h)
		return;
	if (!h->requests_shared)
		kvfree(h->requests);
	kfree(h->queue);
	kfree(h);
}

static void queue_host_init(struct device_host *d, u32 index,
			    const struct queue_plan *plan)
{
	struct queue_host *qh = &d->queues[index];

	qh->hctx = d->hctx[plan->hctx];
	qh->cpu = plan->cpu;
	INIT_LIST_HEAD(&qh->requests);
	spin_lock_init(&qh->own_lock);
	qh->lock = qh->hctx->nr_queues > 1 ? &qh->own_lock : &qh->hctx->lock;
	qh->hctx->queue[plan->ctx] = qh;
	qh->place = plan->ctx;
	queue_init(&qh->queue, &d->sched, index);
	d->sched.queue[index] = &qh->queue;
}

/*
 * Finds a queue for each possible CPU that is the CPU's own.  The hardware queues of
 * the default type have one for each.
 */
static int assign_cpus(struct device_host *d)
{
	u16 *queue_of_cpu =
		kvmalloc_array(nr_cpu_ids, sizeof(*queue_of_cpu), GFP_NOIO);
	unsigned int cpu;
	u32 i;

	d->sched.queue_of_cpu = queue_of_cpu;
	if (!queue_of_cpu)
		return -ENOMEM;
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		queue_of_cpu[cpu] = QUEUES_MAX;
	for (i = 0; i < d->sched.nr_queues; i++)
		queue_of_cpu[d->queues[i].cpu] = (u16)i;
	for (cpu = 0; cpu < nr_cpu_ids; cpu++)
		if (cpu_possible(cpu) &&
		    WARN_ON_ONCE(queue_of_cpu[cpu] == QUEUES_MAX))
			return -EINVAL;
	return 0;
}

/* Allocates the parts of a device.  After a failure, missing parts are NULL. */
static int device_allocate(struct device_host *d, u32 n)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	tag_map_init(&d->map);
	d->nr_hctx = d->q->nr_hw_queues;
	d->hctx = kcalloc(d->nr_hctx, sizeof(*d->hctx), GFP_NOIO);
	d->queues = port_zalloc(n * sizeof(*d->queues));
	d->sched.queue = kvcalloc(n, sizeof(*d->sched.queue), GFP_NOIO);
	if (!d->hctx || !d->queues || !d->sched.queue)
		return -ENOMEM;
	queue_for_each_hw_ctx(d->q, hctx, i) {
		d->hctx[i] = hctx_build(d, hctx);
		if (!d->hctx[i])
			return -ENOMEM;
	}
	return 0;
}

static void device_release(struct device_host *d)
{
	u32 i;

	for (i = 0; d->hctx && i < d->nr_hctx; i++)
		hctx_destroy(d->hctx[i]);
	kvfree(d->requests);
	kvfree(d->sched.queue);
	kvfree(d->sched.queue_of_cpu);
	port_free(d->queues);
	kfree(d->hctx);
	d->requests = NULL;
	d->nr_requests = 0;
	d->sched.queue = NULL;
	d->sched.queue_of_cpu = NULL;
	d->queues = NULL;
	d->hctx = NULL;
}

/*
 * Numbers cores and sockets from 0, in the order of @plan.  The platform's own
 * numbers have up to 32 bits each, and two sockets may use the same core numbers.
 */
static void number_places(struct topo_place *place,
			  const struct queue_plan *plan, u32 n)
{
	u32 core = 0, socket = 0, i;

	for (i = 0; i < n; i++) {
		bool moved = i && plan[i].socket != plan[i - 1].socket;

		socket += moved;
		core += moved || (i && plan[i].core != plan[i - 1].core);
		place[i] = (struct topo_place){
			.core = core,
			.socket = socket,
		};
	}
}

static int device_start(struct device_host *d, const struct sched_ops *ops,
			const struct queue_plan *plan, u32 n)
{
	struct sched_params params;
	struct topo_place *place;
	u32 i;
	int ret;

	place = kvcalloc(n, sizeof(*place), GFP_NOIO);
	if (!place)
		return -ENOMEM;
	number_places(place, plan, n);
	for (i = 0; i < n; i++)
		queue_host_init(d, i, &plan[i]);
	ret = assign_cpus(d);
	if (ret) {
		kvfree(place);
		return ret;
	}
	for (i = 0; i < n; i++)
		d->queues[i].queue.home =
			d->queues[i].hctx->queue[0]->queue.index;
	device_default_params(d, ops, &params);
	d->sched.map.flow_pages = host_ftl_flow_pages;
	d->sched.map.flash_time = host_ftl_flash_time;
	d->sched.hooks.begin = tick_hooks_begin;
	d->sched.hooks.ended = tick_hooks_ended;
	d->sched.hooks.keep = group_keep;
	d->sched.hooks.let_go = group_let_go;
	d->sched.pages = get_capacity(d->q->disk) >>
			 (PAGE_SHIFT - SECTOR_SHIFT);
	ret = sched_init(&d->sched, ops, &params, place);
	kvfree(place);
	return ret;
}

int device_host_build(struct device_host *d, const struct sched_ops *ops)
{
	u32 n = count_queues(d->q);
	struct queue_plan *plan;
	int ret;

	if (n > QUEUES_MAX) {
		pr_err("mqfair: %s: %u queues, one for each CPU of each hardware queue; at most %u are supported\n",
		       d->q->disk ? d->q->disk->disk_name : "?", n, QUEUES_MAX);
		return -EINVAL;
	}
	plan = kvcalloc(n ?: 1, sizeof(*plan), GFP_NOIO);
	if (!plan)
		return -ENOMEM;
	plan_queues(d->q, plan, n);
	d->sched.nr_queues = n;
	ret = device_allocate(d, n);
	if (!ret)
		ret = device_start(d, ops, plan, n);
	kvfree(plan);
	if (ret)
		device_release(d);
	else
		device_size_requests(d);
	return ret;
}

void device_host_destroy(struct device_host *d)
{
	u32 i;

	for (i = 0; i < d->sched.nr_queues; i++) {
		WARN_ON_ONCE(d->queues[i].queue.nr);
		WARN_ON_ONCE(!list_empty(&d->queues[i].requests));
	}
	for (i = 0; i < d->nr_hctx; i++) {
		WARN_ON_ONCE(d->hctx[i]->staged);
		WARN_ON_ONCE(device_tags(d->hctx[i]));
	}
	sched_exit(&d->sched);
	device_release(d);
}

/*
 * The queue is frozen, so no request host is in use.  The hook that calls this
 * cannot fail, so the allocation waits until there is memory.
 */
static void size_requests(struct request_host **requests, u32 *nr, u32 wanted)
{
	struct request_host *new;
	unsigned int noio;

	if (*nr == wanted)
		return;
	noio = memalloc_noio_save();
	new = kvcalloc(wanted, sizeof(*new), GFP_KERNEL | __GFP_NOFAIL);
	memalloc_noio_restore(noio);
	kvfree(*requests);
	*requests = new;
	*nr = wanted;
}

void device_size_requests(struct device_host *d)
{
	u32 i;

	for (i = 0; i < d->nr_hctx; i++) {
		struct hctx_host *h = d->hctx[i];
		u32 wanted =
			h->hctx->sched_tags ? h->hctx->sched_tags->nr_tags : 1;

		if (h->requests_shared) {
			size_requests(&d->requests, &d->nr_requests, wanted);
			h->requests = d->requests;
			h->nr_requests = d->nr_requests;
		} else {
			size_requests(&h->requests, &h->nr_requests, wanted);
		}
	}
}
