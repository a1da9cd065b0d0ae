/* SPDX-License-Identifier: GPL-2.0 */
/*
 * host - the simulated host of the contract in sched/core/sched.h
 *
 * Obeys the contract as the kernel does: after an insert it attempts dispatch
 * on that queue at once; what a hook leaves in struct wake is acted on after
 * the queue's lock is dropped; a queue that its driver has stopped is not
 * asked; tick runs at the time asked for; complete runs when the device is
 * done.  Queue i belongs to simulated CPU i.
 *
 * It believes nothing: an io handed out twice or from another queue, more
 * slots in use than D, a kick for a queue that does not exist, or ios waiting
 * when nothing is left that could wake them, end the run with a message in
 * host.failure.
 */
#ifndef MQFAIR_SIM_HOST_H
#define MQFAIR_SIM_HOST_H

#include "device.h"
#include "timeline.h"
#include "rng.h"
#include "sched/core/sched.h"
#include "stats.h"

struct host;
struct host_io;

enum host_io_state {
	HOST_IO_IDLE,
	HOST_IO_QUEUED,
	HOST_IO_DEVICE,		/* in the driver or the device */
};

struct host_flow {
	struct host_flow *next;
	struct host *host;
	struct flow *flow;
	u32 id;			/* in order of creation; owner of its flash pages */
	u32 parent_id;
	u32 queued;		/* ios waiting in the scheduler */
	u32 outstanding;	/* submitted and not completed */
	u64 charged;		/* cost of what was dispatched for the first time */
	struct flow_stats stats;
};

/* The caller owns it and sets flow, done and page. */
struct host_io {
	struct io io;
	struct host_flow *flow;
	void (*done)(struct host_io *hio);
	struct event event;	/* free for the caller while idle */
	struct device_cmd cmd;
	u32 page;		/* set by the caller, for a drive of flash/ */
	enum host_io_state state;
	bool counted;		/* in flow.charged */
	bool refused;		/* by the driver, for now */
	u64 submit_ns;
};

struct host_queue {
	struct queue q;
	struct host *host;
	struct event wake_work;
	struct event unblock;
	u32 waiting;
	u32 in_driver;
	bool locked;
	bool blocked;
};

/*
 * dispatch_delay_ns 0: after an insert the queue is dispatched until it is held back.
 * Otherwise up to dispatch_delay_ns pass, at random, before each single dispatch, as
 * when a submitter is plugged and a driver fetches one request at a time; a
 * queue that is to wait after an insert counts as blocked until then.
 */
struct host_params {
	u64 seed;
	u32 nr_queues;
	u32 queues_per_core;		/* 0: 1 */
	u32 cores_per_socket;		/* 0: all */
	const struct sched_ops *ops;
	struct sched_params sched;
	struct device_params device;
	u32 tags;			/* a queue's requests in the driver; 0: any */
	u64 wake_ns;			/* most that a kick takes: random */
	u64 dispatch_delay_ns;			/* see below */
	bool no_tick;			/* liveness must not need it */
	u32 refuse_permille;		/* driver sends back, see requeue */
	u64 refuse_ns;			/* and when */
};

/* What a test may watch; each member may be NULL. */
struct host_watch {
	void *arg;
	void (*inserted)(void *arg, struct host_io *hio);
	void (*dispatched)(void *arg, struct host_io *hio);
	void (*completed)(void *arg, struct host_io *hio);
	void (*step)(void *arg);	/* after every event */
	void (*quiet)(void *arg);	/* before time moves, no kick under way */
};

struct host {
	struct sched sched;
	struct host_params params;
	struct timeline timeline;
	struct device device;
	struct rng rng;
	struct host_watch watch;
	struct host_queue *queues;
	struct host_flow *flows;	/* latest first */
	struct topo_place *places;
	struct event tick;
	u32 nr_flows;
	u32 wakes;			/* under way */
	u32 blocked;			/* queues */
	u32 queued;			/* ios waiting in the scheduler */
	u32 outstanding;		/* ios submitted and not completed */
	u32 slots;			/* ios with IO_SLOT */
	u64 requeues;
	bool stopping;			/* loads submit nothing more */
	char failure[200];		/* empty: none */
};

/* NULL when there is no memory or the parameters are refused. */
struct host *host_create(const struct host_params *params);

/* Whatever is outstanding is finished first. */
void host_destroy(struct host *h);

/* @parent: NULL for the root, which is the first flow and has no weight. */
struct host_flow *host_flow_create(struct host *h, struct host_flow *parent,
				   u32 weight);

/* Nothing of it is outstanding, and it has no children. */
void host_flow_destroy(struct host_flow *hf);

/* The flow's weight from now on. */
void host_flow_weigh(struct host_flow *hf, u32 weight);

/* Submits on @queue: insert, then dispatch.  @flags of enum io_flags. */
void host_submit(struct host_io *hio, u32 queue, enum io_op op, u32 bytes,
		 u8 flags);

/* A bio of @bytes joins @hio, which is queued. */
void host_merge(struct host_io *hio, u32 bytes);

/* The driver runs @queue no more until @until_ns. */
void host_block(struct host *h, u32 queue, u64 until_ns);

void host_tune(struct host *h, const struct sched_params *p);

/* From now on nothing is held back. */
void host_drain(struct host *h);

/* Runs the events up to and including @until_ns, which is then the time. */
void host_run(struct host *h, u64 until_ns);

/* Stops the loads and runs until nothing is outstanding. */
void host_finish(struct host *h);

/* Keeps the first message only. */
__attribute__((format(printf, 2, 3)))
void host_fail(struct host *h, const char *fmt, ...);

static inline bool host_failed(const struct host *h)
{
	return h->failure[0] != '\0';
}

/* The completion that makes room runs it again. */
static inline bool host_queue_is_full(const struct host_queue *hq)
{
	u32 tags = hq->host->params.tags;

	return tags && hq->in_driver >= tags;
}

static inline u64 host_now(const struct host *h)
{
	return h->timeline.now;
}

#endif /* MQFAIR_SIM_HOST_H */
