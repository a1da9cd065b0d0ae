// SPDX-License-Identifier: GPL-2.0
/*
 * sched_ops.send of each scheduler beside insert and dispatch.  Two instances get the
 * same requests.  One sends each run if it may, and the other inserts and dispatches
 * the requests of a run in turn.  Both are in the same state afterwards.
 */
#include "hooks.h"
#include "sched/budget/budget.h"
#include "sched/core/policies.h"
#include "sched/mqfq/mqfq.h"

enum {
	KIB	= 1024,
	T	= 32 * KIB,
	DEPTH	= 12,
	RUN	= 4,
	FLOWS	= 3,
};

struct side {
	struct hooks h;
	struct flow *flow[FLOWS];
	struct io *out[HOOKS_IOS];
	u32 nr_out;
};

static struct side sides[2];

/* A scheduler with its own tunables; @extra sets more of them, or is NULL. */
static void open_side(struct side *s, const struct sched_ops *ops,
		      void (*extra)(struct sched_params *p))
{
	struct sched_params p;
	u32 i;

	sched_params_init(ops, &p);
	p.depth = DEPTH;
	p.isolation = 0;
	p.cost = hooks_cost_by_size;
	if (extra)
		extra(&p);
	hooks_open(&s->h, ops, &p, HOOKS_QUEUES);
	for (i = 0; i < FLOWS; i++)
		s->flow[i] = hooks_flow(&s->h, 100 * (i + 1));
	s->nr_out = 0;
}

/* Dispatches what may go, as a host does after insert and for a woken queue. */
static void run_queue(struct side *s, u32 queue)
{
	struct io *io;
	struct wake wake;

	wake_init(&wake);
	while (s->h.sched.ops->dispatch(&s->h.queue[queue], s->h.now, &io,
					&wake) == DISPATCH_IO)
		s->out[s->nr_out++] = io;
	if (wake.at_ns && (!s->h.tick_ns || wake.at_ns < s->h.tick_ns))
		s->h.tick_ns = wake.at_ns;
	while ((queue = wake_next(&wake)) != QUEUES_MAX)
		s->h.woken |= BIT_ULL(queue);
}

static void run_woken(struct side *s)
{
	while (s->h.woken) {
		u32 queue = port_ffs64(s->h.woken);

		s->h.woken &= ~BIT_ULL(queue);
		run_queue(s, queue);
	}
}

static void submit(struct side *s, u32 queue, u32 flow,
		   const struct hooks_io *io, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		hooks_insert_op(&s->h, queue, s->flow[flow], io[i].op,
				io[i].bytes, 0);
		run_queue(s, queue);
	}
}

/* Returns whether the run was sent. */
static bool submit_run(struct side *s, u32 queue, u32 flow,
		       const struct hooks_io *run, u32 n)
{
	struct io *io, *next;

	io = hooks_send_run(&s->h, queue, s->flow[flow], run, n);
	if (!io) {
		submit(s, queue, flow, run, n);
		return false;
	}
	for (; io; io = next) {
		next = io->next;
		s->out[s->nr_out++] = io;
	}
	run_queue(s, queue);
	return true;
}

/* Rounds end and windows roll. */
static void pass_time(struct side *s)
{
	s->h.now += 20 * 1000;
	if (s->h.tick_ns && s->h.tick_ns <= s->h.now)
		hooks_tick(&s->h);
}

static void complete(struct side *s, u32 i)
{
	struct io *io = s->out[i];

	s->out[i] = s->out[--s->nr_out];
	hooks_complete(&s->h, io);
}

static void same_flow(const struct flow *f, const struct flow *g)
{
	struct flow_totals t, u;
	u64 epoch;

	assert_int_equal(atomic64_read(&f->pos), atomic64_read(&g->pos));
	assert_int_equal(atomic64_read(&f->queued), atomic64_read(&g->queued));
	assert_int_equal(flow_tag(f, (u64)atomic64_read(&f->pos), &epoch),
			 flow_tag(g, (u64)atomic64_read(&g->pos), &epoch));
	flow_totals(f, &t);
	flow_totals(g, &u);
	assert_memory_equal(&t, &u, sizeof(t));
}

static void same_order(struct sched *a, struct sched *b)
{
	struct mqfq *m = a->own, *n = b->own;

	assert_int_equal(mqfq_vt(m), mqfq_vt(n));
	assert_int_equal(mindicator_min(&m->tags), mindicator_min(&n->tags));
	assert_int_equal(slots_used(&m->slots), slots_used(&n->slots));
}

static void same_credit(const struct flow *f, const struct flow *g)
{
	assert_int_equal(credit_left(&budget_flow_of(f)->credit),
			 credit_left(&budget_flow_of(g)->credit));
	assert_int_equal(budget_spent(f), budget_spent(g));
	assert_int_equal(budget_flow_of(f)->granted,
			 budget_flow_of(g)->granted);
}

static void same_budget(struct side *a, struct side *b)
{
	struct budget *c = budget_of(&a->h.sched), *d = budget_of(&b->h.sched);
	u32 i;

	assert_int_equal(c->round, d->round);
	assert_int_equal(c->total, d->total);
	for (i = 0; i < c->ops->nr_domains; i++)
		assert_int_equal(slots_used(&c->slots[i]),
				 slots_used(&d->slots[i]));
	for (i = 0; i < FLOWS; i++)
		same_credit(a->flow[i], b->flow[i]);
}

static void same_state(struct side *a, struct side *b)
{
	u32 i;

	if (a->h.sched.ops->ordered)
		same_order(&a->h.sched, &b->h.sched);
	else
		same_budget(a, b);
	for (i = 0; i < FLOWS; i++)
		same_flow(a->flow[i], b->flow[i]);
	for (i = 0; i < HOOKS_QUEUES; i++) {
		assert_int_equal(a->h.queue[i].nr, b->h.queue[i].nr);
		assert_int_equal(a->h.queue[i].state, b->h.queue[i].state);
		assert_int_equal(a->h.queue[i].head_tag,
				 b->h.queue[i].head_tag);
	}
	assert_int_equal(a->nr_out, b->nr_out);
	for (i = 0; i < a->nr_out; i++) {
		assert_int_equal(a->out[i]->pos, b->out[i]->pos);
		assert_int_equal(a->out[i]->cost, b->out[i]->cost);
		assert_int_equal(a->out[i]->flags, b->out[i]->flags);
	}
}

/* Some requests wait, so that there is room for a run in any case. */
static bool is_full(const struct side *s)
{
	u32 i, nr = s->nr_out;

	for (i = 0; i < HOOKS_QUEUES; i++)
		nr += s->h.queue[i].nr;
	return nr + RUN > HOOKS_IOS;
}

static void expect_same(const struct sched_ops *ops,
			void (*extra)(struct sched_params *p))
{
	struct random r = random_seeded("send");
	u32 i, j, n, sent = 0, runs = 0;
	u32 queue, flow, done, ops_of_run;
	struct hooks_io run[RUN];

	open_side(&sides[0], ops, extra);
	open_side(&sides[1], ops, extra);
	for (i = 0; i < random_rounds(20000); i++) {
		if (random_below(&r, 2) && !is_full(&sides[0])) {
			queue = random_below(&r, HOOKS_QUEUES);
			flow = random_below(&r, FLOWS);
			n = 1 + random_below(&r, RUN);
			/* Reads, writes, or both. */
			ops_of_run = random_below(&r, 3);
			for (j = 0; j < n; j++)
				run[j] = (struct hooks_io){
					.op = ops_of_run < 2 ?
						      ops_of_run :
						      random_below(&r, 2),
					.bytes = 512 << random_below(&r, 6),
				};
			sent += submit_run(&sides[0], queue, flow, run, n);
			submit(&sides[1], queue, flow, run, n);
			runs++;
		}
		/* The drive is the limit for a while, and then it is not. */
		done = i / 500 % 2 ? RUN : !!random_below(&r, 3);
		for (; done && sides[0].nr_out; done--) {
			j = random_below(&r, sides[0].nr_out);
			complete(&sides[0], j);
			complete(&sides[1], j);
		}
		for (j = 0; j < 2; j++) {
			pass_time(&sides[j]);
			run_woken(&sides[j]);
		}
		same_state(&sides[0], &sides[1]);
	}
	print_message("# %u of %u runs were sent\n", sent, runs);
	assert_true(sent > runs / 10);
	assert_true(sent < runs - runs / 10);
	for (j = 0; j < 2; j++) {
		while (sides[j].nr_out) {
			complete(&sides[j], 0);
			run_woken(&sides[j]);
		}
		hooks_close(&sides[j].h);
	}
}

static void set_threshold(struct sched_params *p)
{
	mqfq_params(p)->threshold = T;
	mqfq_params(p)->least_ios = 0;
}

/* T is that of each request: two of the flow, of 4 KiB at most. */
static void set_least_ios(struct sched_params *p)
{
	mqfq_params(p)->threshold = T / 8;
	mqfq_params(p)->least_ios = 2;
}

TEST(send_is_insert_and_dispatch_in_turn)
{
	expect_same(&mqfq_ops, set_threshold);
}

TEST(send_knows_the_automatic_threshold)
{
	expect_same(&mqfq_ops, set_least_ios);
}

TEST(send_knows_a_threshold_of_zero)
{
	expect_same(&ifq_ops, NULL);
}

TEST(send_spends_credit)
{
	expect_same(&wdt_ops, NULL);
}

TEST(send_knows_domains)
{
	expect_same(&kyber_fair_ops, NULL);
}

TEST(send_counts_writes_for_factors)
{
	expect_same(&hwabc_ops, NULL);
}
