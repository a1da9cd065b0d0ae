// SPDX-License-Identifier: GPL-2.0
#include "budget_fixture.h"
#include "tests/budget_mock.h"

static const struct topo_place apart[QUEUES] = { { 0, 0 }, { 1, 0 }, { 2, 1 } };

struct scenario scenario;

const struct budget_ops one_domain = {
	.nr_domains = 1, .predict = budget_mock_predict,
};

static u32 domain_of(const struct io *io)
{
	return io->op == IO_WRITE;
}

const struct budget_ops two_domains = {
	.nr_domains = 2, .batch = { 3, 2 }, .domain = domain_of,
	.predict = budget_mock_predict,
};

static bool always(const struct queue *q)
{
	(void)q;
	return true;
}

void set_total(u64 total)
{
	budget_mock.total = total;
}

void set_on_predict(void (*on_predict)(void))
{
	budget_mock.on_predict = on_predict;
}

u32 predictions(void)
{
	return budget_mock.predicted;
}

static struct flow *flow_create(struct scenario *s, struct flow *parent,
				u32 weight)
{
	struct flow *f = port_zalloc(flow_size(&budget_mock_ops, QUEUES));

	assert_non_null(f);
	flow_init(f, &s->sched, parent, weight);
	return f;
}

static void flow_destroy(struct flow *f)
{
	flow_exit(f);
	port_free(f);
}

void scenario_init(const struct budget_ops *ops, enum budget_rule rule,
		   u64 total, u32 depth)
{
	static const u32 weights[FLOWS] = { 100, 250, 500, 1000 };
	struct scenario *s = &scenario;
	struct sched_params p;
	u32 i;

	*s = (struct scenario){ .now = 1 };
	budget_mock.ops = ops;
	budget_mock.rule = rule;
	budget_mock.total = total;
	budget_mock.predicted = 0;
	budget_mock.on_predict = NULL;
	port_queue_is_mine = always;
	s->sched.queue = s->index;
	s->sched.nr_queues = QUEUES;
	for (i = 0; i < QUEUES; i++) {
		queue_init(&s->queue[i], &s->sched, i);
		s->index[i] = &s->queue[i];
	}
	sched_params_init(&budget_mock_ops, &p);
	p.depth = depth;
	budget_params(&p)->period_ns = PERIOD;
	assert_int_equal(sched_init(&s->sched, &budget_mock_ops, &p, apart), 0);
	s->root = flow_create(s, NULL, WEIGHT_DEFAULT);
	for (i = 0; i < FLOWS; i++)
		s->flow[i] = flow_create(s, s->root, weights[i]);
}

void scenario_deinit(void)
{
	struct scenario *s = &scenario;
	u32 i;

	for (i = 0; i < FLOWS; i++)
		if (s->flow[i])
			flow_destroy(s->flow[i]);
	flow_destroy(s->root);
	sched_exit(&s->sched);
}

static void act(struct scenario *s, struct wake *wake)
{
	u32 queue;

	while ((queue = wake_next(wake)) != QUEUES_MAX)
		s->woken |= BIT_ULL(queue);
	if (wake->at_ns && (!s->tick_ns || wake->at_ns < s->tick_ns))
		s->tick_ns = wake->at_ns;
}

bool tick_is_requested(const struct scenario *s)
{
	return s->tick_ns && s->tick_ns <= s->now;
}

void tick(struct scenario *s)
{
	struct wake wake;

	s->tick_ns = 0;
	wake_init(&wake);
	budget_tick(&s->sched, s->now, &wake);
	act(s, &wake);
}

struct io *insert(struct scenario *s, u32 queue, u32 flow, u32 bytes,
		  enum io_op op, u8 flags)
{
	struct wake wake;
	u32 i = 0;

	while (i < IOS && s->busy[i])
		i++;
	if (i == IOS)
		return NULL;
	s->busy[i] = true;
	s->io[i] = (struct io){ .flow = s->flow[flow],
				.bytes = bytes,
				.op = (u8)op,
				.flags = flags };
	wake_init(&wake);
	budget_insert(&s->queue[queue], &s->io[i], s->now, &wake);
	act(s, &wake);
	return &s->io[i];
}

struct io *dispatch(struct scenario *s, u32 queue,
		    enum dispatch_result expected)
{
	struct io *io = NULL;
	struct wake wake;

	wake_init(&wake);
	assert_int_equal(budget_dispatch(&s->queue[queue], s->now, &io, &wake),
			 expected);
	act(s, &wake);
	return expected == DISPATCH_IO ? io : NULL;
}

void complete(struct scenario *s, struct io *io)
{
	struct wake wake;

	wake_init(&wake);
	budget_complete(io, s->now, &wake);
	act(s, &wake);
	s->busy[io - s->io] = false;
}

void reshare(struct scenario *s)
{
	struct wake wake;

	wake_init(&wake);
	budget_tune(&s->sched, NULL, &wake);
	act(s, &wake);
}

void destroy_flow(struct scenario *s, u32 flow)
{
	flow_destroy(s->flow[flow]);
	s->flow[flow] = NULL;
}

void drain(struct scenario *s)
{
	u32 q;

	s->sched.drain = true;
	for (q = 0; q < QUEUES; q++)
		while (s->queue[q].nr)
			complete(s, dispatch(s, q, DISPATCH_IO));
}

void complete_all(struct scenario *s)
{
	u32 i;

	for (i = 0; i < IOS; i++)
		if (s->io[i].flags & IO_OUT)
			complete(s, &s->io[i]);
}

s64 left(const struct scenario *s, u32 flow)
{
	return credit_left(&budget_flow_of(s->flow[flow])->credit);
}

void check_conservation(const struct scenario *s)
{
	u32 i;

	for (i = 0; i < FLOWS; i++)
		if (s->flow[i])
			assert_int_equal(budget_flow_of(s->flow[i])->granted,
					 (s64)budget_spent(s->flow[i]) +
						 left(s, i));
}

u64 part_of(const struct scenario *s, u32 flow, u64 total)
{
	u64 generation, share, part;

	share = share_of((struct share_tree *)&s->sched.share,
			 &s->flow[flow]->group, &generation);
	part = mul_u64_u64_shr(total, share, SHARE_SHIFT);
	return max(part, 1ULL);
}

u32 spend_all(struct scenario *s, u32 flow)
{
	u32 n = 0;

	for (; left(s, flow) > 0; n++) {
		insert(s, 0, flow, 4096, IO_READ, 0);
		complete(s, dispatch(s, 0, DISPATCH_IO));
	}
	return n;
}
