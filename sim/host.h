/* SPDX-License-Identifier: GPL-2.0 */
/*
 * host - the simulated host, which runs a scheduler without a kernel
 *
 * How the files of sim/ play together:
 *
 *	load -- host_submit() --> host -- hooks ----> scheduler (sched/)
 *	   ^                      |  ^                    |
 *	   +-------- done() ------+  +---- struct wake ---+
 *	                          |  ^
 *	          device_start()  v  |  done()
 *	                         device (slots, or a drive of flash/)
 *
 *   timeline	the time, and the events that will happen (timeline.h)
 *   load	the requests of one tenant, as host_io (load.h)
 *   host	flows, queues, requests; it calls the hooks of sched/core/sched.h
 *   device	serves dispatched requests and reports each end (device.h)
 *   tags	the scheduler tags, and the ios that wait for one (tags.h)
 *   audit	compares the scheduler's bookkeeping with the host's (audit.h)
 *   cpu		the time that submissions and completions take (cpu.h)
 *   rng, stats	chance from a seed; latencies and sums of each flow
 *   port.h	the primitives that sched/ uses, for one thread
 *
 * One thread runs everything.  An event of the timeline fires: a load submits,
 * a command of the device ends, a wake-up or a tick is due.  Its code calls
 * hooks of the scheduler, and the host acts on the struct wake that they leave,
 * by new events.  Hooks take no simulated time by themselves: a submission and a
 * completion may cost CPU time as a whole (cpu.h).  The same parameters and the
 * same seed give the same run on every machine.
 *
 * A test, with a device that serves a read of 4 KiB in 82 us:
 *
 *	struct host_params p = { .seed = 1, .nr_queues = 2, .ops = &mqfq_ops,
 *		.device = { .slots = 1, .base_ns = 80000, .ns_per_kib = 500 } };
 *	sched_params_init(&mqfq_ops, &p.sched);
 *	p.sched.depth = 8;
 *	h = host_create(&p);
 *	root = host_flow_create(h, NULL, 0);
 *	flow = host_flow_create(h, root, 100);
 *	load = load_create(h, &(struct load_params){ .flow = flow,
 *						     .depth = 32, .bytes = 4096 });
 *	host_run(h, 1000000000);	one second
 *	host_finish(h);			stops the load, waits for its ios
 *	if (host_failed(h)) ...		h->failure is a message
 *	host_destroy(h);
 *	load_destroy(load);
 *
 * After the second, flow->stats.ios is 12 195.  With a second flow of weight
 * 300 and a load like this one, the flows have 3 055 and 9 140 ios.
 *
 * The host obeys the contract of sched.h as the kernel does.  It does not ask a
 * queue that its driver has stopped.  Queue i belongs to simulated CPU i.
 *
 * The host audits every scheduler.  A run ends with a message in host.failure
 * on:
 *   - an io that is dispatched twice, or from another queue;
 *   - more slots in use than D;
 *   - a wake-up of a queue that does not exist;
 *   - ios that wait while nothing is left that could wake them;
 *   - more than a million events at one time;
 *   - bookkeeping that differs from the host's own: see audit.h.
 *
 * Units: times are nanoseconds, sizes bytes.  Ownership: host_create() and
 * host_flow_create() allocate, and host_destroy() frees both; loads and drives
 * belong to the test.
 */
#ifndef MQFAIR_SIM_HOST_H
#define MQFAIR_SIM_HOST_H

#include "audit.h"
#include "cpu.h"
#include "device.h"
#include "driver_tags.h"
#include "rng.h"
#include "stats.h"
#include "tags.h"
#include "ticks.h"

struct host;
struct host_io;

enum host_io_state {
	HOST_IO_IDLE,
	HOST_IO_NO_TAG,		/* waits for a scheduler tag */
	HOST_IO_QUEUED,
	HOST_IO_DEVICE,		/* in the driver or the device */
};

struct host_flow {
	struct host_flow *next;
	struct host *host;
	struct flow *flow;
	u32 id;			/* in order of creation; owner in a drive */
	u32 parent_id;		/* of a root: its own id */
	u32 queued;		/* ios waiting in the scheduler .. */
	u64 queued_ns;		/* .. and when that was last settled */
	u32 outstanding;	/* submitted and not completed */
	u64 dispatched_cost;	/* of all ios dispatched at least once */
	struct account account;
	struct flow_stats stats;
};

/*
 * A request of a load that is submitted in `left` parts.  The statistics count
 * it once, when the last part is done.  With `reaped` the load adds the latency.
 */
struct host_whole {
	u32 left;		/* parts that are not done */
	u64 submit_ns;		/* of the first part */
	bool reaped;		/* host_reaped() ends its latency */
};

/*
 * A request.  It belongs to the load, which sets flow, done, page, whole, reap_ns.
 * From host_submit() until done() the host uses it.
 */
struct host_io {
	struct io io;
	struct host_flow *flow;
	struct host_flow *task;		/* asks for the tag in its name, or NULL */
	struct host_whole *whole;	/* that it is a part of, or NULL */
	u64 reap_ns;			/* from the drive until it ends, if polled */
	void (*done)(struct host_io *hio);
	void (*got_tag)(struct host_io *hio);	/* after a wait; or NULL */
	bool waits_in_order;		/* for a tag, by `waiter` */
	struct event event;	/* the load may use it while idle */
	struct event wake;	/* its task has a tag, and wakes up */
	struct host_queue *submit_queue;
	struct tag_waiter waiter;	/* in a tag_waiters */
	struct device_cmd cmd;
	u32 page;		/* of a drive of flash/, by the load */
	enum host_io_state state;
	bool counted;		/* in host_flow.dispatched_cost */
	bool charged;		/* in account.charged */
	bool in_backlog;	/* in account.backlog */
	bool out;		/* dispatched, and not returned since */
	u64 inserted_ns;	/* for account.wait_ns */
	bool refused;		/* the driver sends it back this time */
	u64 submit_ns;
};

struct host_queue {
	struct queue q;
	struct host *host;
	struct cpu cpu;
	struct host_tags *tags;
	struct event wake_work;	/* a wake-up is under way */
	struct event unblock;
	u32 waiting;		/* ios in the scheduler */
	bool locked;
	bool blocked;		/* by host_block() */
	bool awaits_tag;	/* of `tags` */
	bool next_tag;		/* a free tag is for it: it is woken */
};

/*
 * With dispatch_delay_ns 0 a queue is dispatched after each insert until the
 * scheduler lets nothing more go.  Otherwise a random time of up to
 * dispatch_delay_ns passes before each single dispatch.  The kernel does so if
 * a submitter is plugged and a driver fetches one request at a time.  A queue
 * that is to wait after an insert counts as blocked until then.
 */
struct host_params {
	u64 seed;
	u32 nr_queues;
	u32 queues_per_core;		/* 0: 1 */
	u32 cores_per_socket;		/* 0: all cores are on one socket */
	const struct sched_ops *ops;
	struct sched_params sched;
	struct device_params device;
	u32 tags;			/* of each map; 0: any number */
	u32 tag_maps;			/* 0: one for each queue; see queue_tags() */
	u32 sched_tags;			/* of each map; 0: any number; see tags.h */
	bool quotas;			/* tags in the order of sched/core/limit.h */
	u64 wake_ns;			/* a wake-up takes 0 to this, at random */
	u64 task_wake_ns;		/* the same of a task that waits for a tag */
	u64 submit_ns, complete_ns;	/* CPU time of each io: cpu.h */
	u64 locked_ns;			/* .. and under the device's lock, if it moves */
	u64 dispatch_delay_ns;		/* see above */
	bool no_tick;			/* never call tick, to test liveness */
	u32 refuse_permille;		/* ios that the driver sends back .. */
	u64 refuse_ns;			/* .. after this time: see requeue */
	bool audit_at_end;		/* no audit at quiet moments: audit.h */
};

/* Callbacks by which a test watches a run; each member may be NULL. */
struct host_watch {
	void *arg;
	void (*inserted)(void *arg, struct host_io *hio);
	void (*dispatched)(void *arg, struct host_io *hio);
	void (*completed)(void *arg, struct host_io *hio);
	void (*step)(void *arg);	/* after every event */
	void (*quiet)(void *arg);	/* before time moves, no wake-up under way */
};

struct host {
	struct sched sched;
	struct host_params params;
	struct timeline timeline;
	struct device device;
	struct rng rng;
	struct host_watch watch;
	struct host_queue *queues;
	struct host_tags *tags;
	struct sched_tags *sched_tags;
	struct host_flow *flows;	/* the latest is first */
	struct topo_place *places;
	struct event tick;
	u32 nr_flows;
	u32 wakes;			/* wake-ups under way */
	u32 queued;			/* ios waiting in the scheduler */
	u32 outstanding;		/* ios submitted and not completed */
	u32 waiting_for_tags;		/* of these: ios without a tag */
	u32 waiting_for_lock;		/* ios of CPUs that wait for `lock` */
	struct cpu_lock lock;		/* of the scheduler */
	u32 slots;			/* ios with IO_SLOT that are not polled */
	u32 passers;			/* ios with IO_SLOT and IO_FIRST */
	u32 inside;			/* ios in the driver or the device */
	u64 inside_ns;			/* sum of the times of all ios there .. */
	u64 inside_at;			/* .. until this time: host_settle_inside() */
	u64 audits;			/* quiet moments so far */
	bool stopping;			/* loads submit nothing more */
	char failure[200];		/* the first message, or empty */
};

/* Returns NULL if memory is short or sched_init() refuses the parameters. */
struct host *host_create(const struct host_params *params);

/* Finishes the outstanding ios, then frees @h and its flows. */
void host_destroy(struct host *h);

/*
 * Returns a flow with @weight below @parent, or NULL if memory is short.  The
 * first flow is the root: its @parent is NULL, and it has no weight.
 */
struct host_flow *host_flow_create(struct host *h, struct host_flow *parent,
				   u32 weight);

/* @f gets its memory for @queue, if it has none yet. */
void host_add_queue(struct flow *f, u32 queue);

/* @hf has no outstanding io and no child.  Its parent inherits its pages. */
void host_flow_destroy(struct host_flow *hf);

/* Returns the flow of the host that @f is part of. */
struct host_flow *host_flow_of(const struct host *h, const struct flow *f);

/* Sets the weight of @hf. */
void host_flow_weigh(struct host_flow *hf, u32 weight);

/* Submits @hio on @queue: tag, insert, then dispatch.  @flags: enum io_flags. */
void host_submit(struct host_io *hio, u32 queue, enum io_op op, u32 bytes,
		 u16 flags);

/* Inserts @hio, which has its scheduler tag.  For tags.c. */
void host_insert(struct host_io *hio, struct host_queue *hq);

/* Does as a hook asks in @wake, with no lock held.  For ticks.c. */
void host_act(struct host *h, struct wake *wake);

/* Returns the CPU of @queue, on which a load submits in its turn. */
struct cpu *host_cpu(struct host *h, u32 queue);

/* The task has taken the completion of @whole: the latency ends. */
void host_reaped(struct host_flow *hf, const struct host_whole *whole);

/* Brings h->inside_ns up to the present. */
void host_settle_inside(struct host *h);

/* Merges a bio of @bytes into @hio, which is queued. */
void host_merge(struct host_io *hio, u32 bytes);

/* The driver does not run @queue until @until_ns. */
void host_block(struct host *h, u32 queue, u64 until_ns);

/* Sets the parameters @p, which are valid. */
void host_tune(struct host *h, const struct sched_params *p);

/* Has the scheduler drain: it delays nothing from now on. */
void host_drain(struct host *h);

/* Runs all events up to and including @until_ns, and sets the time to it. */
void host_run(struct host *h, u64 until_ns);

/* Stops the loads and runs until no io is outstanding. */
void host_finish(struct host *h);

/* Ends the run with a message.  The first message is kept. */
__attribute__((format(printf, 2, 3)))
void host_fail(struct host *h, const char *fmt, ...);

static inline bool host_failed(const struct host *h)
{
	return h->failure[0] != '\0';
}

/* A completion that makes room wakes the first queue that waits for a tag. */
static inline bool host_queue_is_full(const struct host_queue *hq)
{
	u32 tags = hq->host->params.tags;

	return tags &&
	       hq->tags->in_use + hq->tags->promised - hq->next_tag >= tags;
}

static inline u64 host_now(const struct host *h)
{
	return h->timeline.now;
}

/* Has @hq run in 0 to @most_ns, unless a wake-up is under way. */
void host_queue_wake(struct host_queue *hq, u64 most_ns);

/* Brings hf->stats.backlog_ns up to now. */
static inline void host_settle(struct host_flow *hf)
{
	u64 now = host_now(hf->host);

	if (hf->queued)
		hf->stats.backlog_ns += now - hf->queued_ns;
	hf->queued_ns = now;
}

#endif /* MQFAIR_SIM_HOST_H */
