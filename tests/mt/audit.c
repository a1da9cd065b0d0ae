// SPDX-License-Identifier: GPL-2.0
/*
 * host_audit() finds wrong bookkeeping of a scheduler: one hook of each
 * scheduler is replaced by one that calls the real hook and breaks one count.
 * One thread is enough for that.
 */
#include <stdio.h>
#include <string.h>

#include "device.h"
#include "host.h"
#include "sched/core/policies.h"
#include "threads.h"

enum {
	QUEUES	= 2,
	IOS	= 64,
};

static const struct sched_ops *real;

static struct flow_queue *counters_of(const struct io *io)
{
	return io->flow->fq[io->queue->index];
}

static void broken_insert(struct queue *q, struct io *io, u64 now,
			  struct wake *wake)
{
	real->insert(q, io, now, wake);
	counters_of(io)->inserted++;
}

static void costly_insert(struct queue *q, struct io *io, u64 now,
			  struct wake *wake)
{
	real->insert(q, io, now, wake);
	atomic64_inc(&io->flow->pos);
}

static void tickless_insert(struct queue *q, struct io *io, u64 now,
			    struct wake *wake)
{
	real->insert(q, io, now, wake);
	wake->at_ns = 0;
}

static void backlog_insert(struct queue *q, struct io *io, u64 now,
			   struct wake *wake)
{
	real->insert(q, io, now, wake);
	atomic64_inc(&io->flow->queued);
}

static void retiring_insert(struct queue *q, struct io *io, u64 now,
			    struct wake *wake)
{
	real->insert(q, io, now, wake);
	atomic64_set(&io->flow->active, 0);
	q->sched->active = NULL;
}

static enum dispatch_result nr_dispatch(struct queue *q, u64 now,
					struct io **io, struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		q->nr++;
	return result;
}

static enum dispatch_result wake_dispatch(struct queue *q, u64 now,
					  struct io **io, struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	q->wake_pending = true;
	return result;
}

static enum dispatch_result count_dispatch(struct queue *q, u64 now,
					   struct io **io, struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		counters_of(*io)->dispatched++;
	return result;
}

static enum dispatch_result bytes_dispatch(struct queue *q, u64 now,
					   struct io **io, struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		counters_of(*io)->bytes++;
	return result;
}

static enum dispatch_result tickless_dispatch(struct queue *q, u64 now,
					      struct io **io, struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	wake->at_ns = 0;
	return result;
}

static void tickless_complete(struct io *io, u64 now, struct wake *wake)
{
	real->complete(io, now, wake);
	wake->at_ns = 0;
}

static void done_complete(struct io *io, u64 now, struct wake *wake)
{
	real->complete(io, now, wake);
	atomic64_inc(&counters_of(io)->done);
}

static void on_issue(struct host *h, struct io *io)
{
	device_start(h->arg, io);
}

static const struct topo_place place[QUEUES];

/*
 * A broken scheduler cannot be taken down.  Its memory stays reachable from
 * here for the leak check.
 */
struct scenario {
	struct scenario *before;
	struct host host;
	struct device device;
	struct flow *root, *flow;
	struct io io[IOS];
};

static struct scenario *kept;

/* Inserts some ios, completes half of them, and audits. */
static const char *audit(const struct sched_ops *ops)
{
	struct scenario *s = port_zalloc(sizeof(*s));
	struct random random = { .state = 1 };
	struct sched_params params;
	u32 i;

	port_assert(s);
	s->before = kept;
	kept = s;
	sched_params_init(ops, &params);
	params.isolation = 0;
	s->host.issue = on_issue;
	s->host.arg = &s->device;
	device_init(&s->device, IOS);
	host_init_ops(&s->host, ops, &params, place, QUEUES);
	s->root = host_flow_create(&s->host, NULL, WEIGHT_DEFAULT);
	s->flow = host_flow_create(&s->host, s->root, WEIGHT_DEFAULT);
	for (i = 0; i < IOS; i++) {
		s->io[i] = (struct io){ .flow = s->flow, .bytes = 4096 };
		host_insert(&s->host, i % QUEUES, &s->io[i]);
	}
	for (i = 0; i < IOS / 2; i++) {
		struct io *io = device_finish(&s->device, &random);

		if (io)
			host_complete(&s->host, io);
	}
	return host_audit(&s->host);
}

static const struct {
	const char *count;
	struct sched_ops hook;
} breaks[] = {
	{ "flow_queue.inserted", { .insert = broken_insert } },
	{ "flow.pos", { .insert = costly_insert } },
	{ "wake.at_ns", { .insert = tickless_insert,
			  .dispatch = tickless_dispatch,
			  .complete = tickless_complete } },
	{ "flow.queued", { .insert = backlog_insert } },
	{ "flow.active", { .insert = retiring_insert } },
	{ "queue.nr", { .dispatch = nr_dispatch } },
	{ "queue.wake_pending", { .dispatch = wake_dispatch } },
	{ "flow_queue.dispatched", { .dispatch = count_dispatch } },
	{ "flow_queue.bytes", { .dispatch = bytes_dispatch } },
	{ "flow_queue.done", { .complete = done_complete } },
};

static void check_breaks(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(breaks); i++) {
		struct sched_ops ops = *real;
		const char *found;

		if (breaks[i].hook.insert)
			ops.insert = breaks[i].hook.insert;
		if (breaks[i].hook.dispatch)
			ops.dispatch = breaks[i].hook.dispatch;
		if (breaks[i].hook.complete)
			ops.complete = breaks[i].hook.complete;
		found = audit(&ops);
		if (!found || strcmp(found, breaks[i].count))
			fprintf(stderr, "%s: %s is broken, found is %s\n",
				real->name, breaks[i].count,
				found ? found : "nothing");
		threads_check(found && !strcmp(found, breaks[i].count));
	}
}

/* Each tunable that differs is named. */
static void check_tunables(void)
{
	const struct tunable *t;

	for (t = real->tunables; t->name; t++) {
		struct sched_params other = kept->host.sched.params;
		struct cost_model cost;
		const char *found;

		if (t->kind == TUNABLE_COST) {
			cost = *tunable_get_cost(t, &other);
			cost.read.per_kib++;
			threads_check(!tunable_set_cost(t, &other, &cost));
		} else if (tunable_set(t, &other, tunable_get(t, &other) + 1)) {
			threads_check(!tunable_set(t, &other,
						   tunable_get(t, &other) - 1));
		}
		found = host_audit_tune(&kept->host, &other);
		threads_check(found && !strcmp(found, t->name));
	}
}

int main(void)
{
	const struct sched_ops *const *ops;

	for (ops = sched_policies; *ops; ops++) {
		real = *ops;
		check_breaks();
		threads_check(!audit(real));
		check_tunables();
		printf("%s: all breaks are found\n", real->name);
	}
	return 0;
}
