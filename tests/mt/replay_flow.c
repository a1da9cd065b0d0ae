// SPDX-License-Identifier: GPL-2.0
/*
 * Flows, with one or two processors that stop half-way.
 *
 * Requests arrive at flows that tick is about to take out of the shares, while
 * weights change.  A flow with requests must stay active, and its position must
 * be the sum of its charges.
 */
#include "threads.h"
#include "replay.h"
#include "sched/core/queue.h"
#include "sched/core/policies.h"

enum {
	QUEUES	= 3,
	FLOWS	= 2,
	OPS	= 3,
	COST	= 4096,
	GRACE	= 2 * FLOW_GRACE_NS,
	VT	= 1 << 20,	/* ahead of every flow: each catches up */
};

static const struct topo_place row[QUEUES] = { { 0, 0 }, { 1, 0 }, { 2, 0 } };

struct op {
	enum { ARRIVE, SWEEP, RESHARE, KINDS } kind;
	u32 queue, flow, weight;
};

struct scenario {
	struct sched sched;
	struct queue queue[QUEUES];
	struct queue *index[QUEUES];
	struct sched_params params;
	struct flow *root, *flow[FLOWS];
	struct op op[OPS];
	bool active[FLOWS];	/* the flow had requests some time ago */
	u64 charged[FLOWS];
};

/* As insert has it: the io is counted, and then charged. */
static void arrive(struct scenario *s, const struct op *op)
{
	struct flow *f = s->flow[op->flow];
	struct flow_queue *fq = f->fq[op->queue];
	struct flow_start start;

	WRITE_ONCE(fq->inserted, fq->inserted + 1);
	s->charged[op->flow] += COST;
	flow_charge(f, COST, VT, true, &start);
}

static void sweep(struct scenario *s)
{
	bool changed;

	flow_sweep(&s->sched, GRACE, &changed);
}

static void run(struct scenario *s, const struct op *op)
{
	switch (op->kind) {
	case ARRIVE:
		arrive(s, op);
		break;
	case SWEEP:
		sweep(s);
		break;
	default:
		flow_set_weight(s->flow[op->flow], op->weight);
	}
}

static void run_op(void *arg, u32 i)
{
	struct scenario *s = arg;

	run(s, &s->op[i]);
}

static struct flow *flow_create(struct scenario *s, struct flow *parent)
{
	struct flow *f = port_zalloc(flow_size(s->sched.ops, QUEUES));

	threads_check(f);
	flow_init(f, &s->sched, parent, WEIGHT_DEFAULT);
	return f;
}

/* An active flow had one request, which is done: the next sweep may retire it. */
static void reset(void *arg)
{
	struct scenario *s = arg;
	struct flow_start start;
	bool changed;
	u32 i;

	s->sched = (struct sched){ .queue = s->index, .nr_queues = QUEUES };
	for (i = 0; i < QUEUES; i++) {
		queue_init(&s->queue[i], &s->sched, i);
		s->index[i] = &s->queue[i];
	}
	threads_check(!sched_init(&s->sched, sched_find("mqfq"), &s->params,
				  row));
	s->root = flow_create(s, NULL);
	for (i = 0; i < FLOWS; i++) {
		s->flow[i] = flow_create(s, s->root);
		s->charged[i] = 0;
		if (!s->active[i])
			continue;
		s->flow[i]->fq[0]->inserted++;
		flow_charge(s->flow[i], COST, 0, true, &start);
		s->charged[i] = COST;
		atomic64_dec(&s->flow[i]->queued);
		atomic64_inc(&s->flow[i]->fq[0]->done);
	}
	/* The sweep sees the requests now, and that no more came at GRACE. */
	flow_sweep(&s->sched, 1, &changed);
}

static void check(void *arg)
{
	struct scenario *s = arg;
	struct flow_totals t;
	u32 i, active = 0;

	for (i = 0; i < FLOWS; i++) {
		struct flow *f = s->flow[i];

		flow_totals(f, &t);
		threads_check(t.inserted == t.done ||
			      atomic64_read(&f->active));
		threads_check((u64)atomic64_read(&f->pos) == s->charged[i]);
		threads_check((u64)atomic64_read(&f->queued) ==
			      t.inserted - t.done);
		active += (u32)atomic64_read(&f->active);
		threads_check(f->group.own_active ==
			      (bool)atomic64_read(&f->active));
	}
	threads_check(s->sched.share.nr_active == active);
	for (i = 0; i < FLOWS; i++) {
		atomic64_set(&s->flow[i]->queued, 0);
		flow_exit(s->flow[i]);
		port_free(s->flow[i]);
	}
	flow_exit(s->root);
	port_free(s->root);
	sched_exit(&s->sched);
}

static void draw(struct scenario *s, struct random *r)
{
	u32 i, sweeps = 0;

	for (i = 0; i < FLOWS; i++)
		s->active[i] = random_once_in(r, 2);
	for (i = 0; i < OPS; i++) {
		s->op[i] = (struct op){
			.kind = random_below(r, KINDS),
			.queue = i,
			.flow = random_below(r, FLOWS),
			.weight = 1 + random_below(r, WEIGHT_MAX),
		};
		/* Tick is serialised. */
		if (s->op[i].kind == SWEEP && sweeps++)
			s->op[i].kind = ARRIVE;
	}
}

static bool always(const struct queue *q)
{
	(void)q;
	return true;
}

int main(void)
{
	struct random r = random_seeded("mt/replay_flow");
	static struct scenario s;
	struct replay three = { reset, run_op, 3, check, &s };
	u64 i, runs = 0;

	port_queue_is_mine = always;
	sched_params_init(sched_find("mqfq"), &s.params);
	for (i = 0; i < random_rounds(300); i++) {
		draw(&s, &r);
		runs += replay_all(&three);
	}
	printf("replayed %llu interleavings of flows\n", runs);
	return 0;
}
