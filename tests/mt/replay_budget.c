// SPDX-License-Identifier: GPL-2.0
/*
 * Budgets, with one or two processors that stand still in the middle of a hook.
 *
 * A random run of whole operations makes a scenario.  Then three more
 * operations are interleaved in every way that replay.h knows.  Then the wakes
 * and the ticks that they asked for are carried out.  A flow that still waits
 * must have a reason: it is exhausted, another flow is not, and a tick is
 * coming.  As time passes, all requests must be served.
 */
#include "threads.h"
#include "replay.h"
#include "tests/budget_mock.h"

enum {
	QUEUES	= 3,
	FLOWS	= 3,
	IOS	= 64,
	LARGE	= 65536,	/* a request, at most */
	OPS	= 3,
	HISTORY	= 40,		/* operations that make a scenario */
	FRESH	= 4,		/* the last of them: their wakes are under way */
	PERIOD	= 40 * 1000 * 1000,
	PERIODS	= 2000,		/* in which all requests must be served */
	DOMAINS	= 2,		/* at most */
};

static const struct topo_place square[QUEUES] = { { 0, 0 }, { 1, 0 },
						  { 2, 1 } };

struct op {
	enum { RUN, INSERT, FINISH, BLOCK, UNBLOCK, RESHARE, RELOCK, TICK } kind;
	u32 queue, flow, domain, bytes, pick;
};

struct params {
	enum budget_rule rule;
	u32 depth;
	u64 total;
	bool locks, urgent, domains;
	u32 donors;			/* mask of flows */
	bool over;			/* is the period, when the last three begin */
};

struct scenario {
	struct sched sched;
	struct queue queue[QUEUES];
	struct queue *index[QUEUES];
	struct flow *root, *flow[FLOWS];
	struct port_lock lock[FLOWS];
	struct io io[IOS];
	struct io *flight[IOS];
	u32 nr_ios, nr_flight, done;
	u32 wakes;			/* mask of queues to run */
	u32 blocked;			/* mask */
	u64 now, tick_ns;		/* 0: no tick was requested */
	struct params params;
	struct op history[HISTORY];
	struct op op[OPS];
};

static u32 domain_of(const struct io *io)
{
	return io->op;
}

static const struct budget_ops one_domain = {
	.nr_domains = 1, .predict = budget_mock_predict,
};
static const struct budget_ops two_domains = {
	.nr_domains = DOMAINS,
	.batch = { 2, 1 },
	.domain = domain_of,
	.predict = budget_mock_predict,
};

static bool always(const struct queue *q)
{
	(void)q;
	return true;
}

static struct budget *budget(const struct scenario *s)
{
	return s->sched.own;
}

/* --------------------------------------------------------- the operations */

/* Wakes and ticks come after all that is interleaved. */
static void act(struct scenario *s, struct wake *wake)
{
	u32 queue;

	while ((queue = wake_next(wake)) != QUEUES_MAX)
		s->wakes |= 1U << queue;
	if (wake->at_ns && (!s->tick_ns || wake->at_ns < s->tick_ns))
		s->tick_ns = wake->at_ns;
}

static void dispatch(struct scenario *s, u32 queue, struct wake *wake)
{
	struct io *io;

	if (s->blocked & (1U << queue)) {
		budget_block(&s->queue[queue], wake);
		return;
	}
	while (budget_dispatch(&s->queue[queue], s->now, &io, wake) ==
	       DISPATCH_IO)
		s->flight[s->nr_flight++] = io;
}

static void run_queue(struct scenario *s, u32 queue)
{
	struct wake wake;

	wake_init(&wake);
	dispatch(s, queue, &wake);
	act(s, &wake);
}

static void insert(struct scenario *s, const struct op *op)
{
	struct io *io;
	struct wake wake;

	if (s->nr_ios == IOS)
		return;
	io = &s->io[s->nr_ios++];
	*io = (struct io){ .flow = s->flow[op->flow],
			   .bytes = op->bytes,
			   .op = (u8)op->domain };
	if (s->params.urgent && op->pick % 16 == 0)
		io->flags = IO_URGENT;
	WRITE_ONCE(io->flow->isolation.pass_until,
		   s->params.urgent && op->pick % 8 == 1 ? UINT64_MAX : 0);
	wake_init(&wake);
	budget_insert(&s->queue[op->queue], io, s->now, &wake);
	dispatch(s, op->queue, &wake);
	act(s, &wake);
}

static void finish(struct scenario *s, u32 pick)
{
	struct wake wake;
	struct io *io;

	if (!s->nr_flight)
		return;
	pick %= s->nr_flight;
	io = s->flight[pick];
	s->flight[pick] = s->flight[--s->nr_flight];
	s->done++;
	wake_init(&wake);
	budget_complete(io, s->now, &wake);
	act(s, &wake);
}

static void tick(struct scenario *s)
{
	struct wake wake;

	s->tick_ns = 0;
	wake_init(&wake);
	round_tick(&s->sched, s->now, &wake);
	act(s, &wake);
}

static void reshare(struct scenario *s, const struct op *op)
{
	struct wake wake;

	flow_set_weight(s->flow[op->flow], 1 + op->pick);
	wake_init(&wake);
	budget_tune(&s->sched, NULL, &wake);
	act(s, &wake);
}

static void run(struct scenario *s, const struct op *op)
{
	switch (op->kind) {
	case RUN:
		run_queue(s, op->queue);
		break;
	case INSERT:
		insert(s, op);
		break;
	case FINISH:
		finish(s, op->pick);
		break;
	case BLOCK:
		s->blocked |= 1U << op->queue;
		run_queue(s, op->queue);
		break;
	case UNBLOCK:
		s->blocked &= ~(1U << op->queue);
		run_queue(s, op->queue);
		break;
	case RESHARE:
		reshare(s, op);
		break;
	case RELOCK:
		if (s->params.locks)
			budget_set_lock(s->flow[op->flow],
					&s->lock[op->pick % FLOWS]);
		break;
	case TICK:
		tick(s);
	}
}

static void follow(struct scenario *s)
{
	while (s->wakes || (s->tick_ns && s->tick_ns <= s->now)) {
		u32 queue;

		if (!s->wakes) {
			tick(s);
			continue;
		}
		queue = port_ffs64(s->wakes);
		s->wakes &= s->wakes - 1;
		run_queue(s, queue);
	}
}

static void run_op(void *arg, u32 i)
{
	struct scenario *s = arg;

	run(s, &s->op[i]);
}

/* ------------------------------------------- when all operations are done */

static bool is_exhausted(const struct flow *f)
{
	return credit_left(&budget_flow_of(f)->credit) <= 0;
}

static void check_lane(const struct scenario *s, const struct budget_lane *lane,
		       u32 queue)
{
	const struct budget_flow *bf = budget_flow_of(lane->flow);

	/* P2, P3: the flow is exhausted, and the queue has announced it. */
	threads_check(is_exhausted(lane->flow));
	threads_check((u64)atomic64_read(&bf->waits[0]) & BIT_ULL(queue));
	/* P1: a tick is coming, for each round has an end. */
	threads_check(s->tick_ns);
	/* P4: it comes soon, to see whether other flows leave the device idle. */
	if (s->params.rule == BUDGET_CONSERVING)
		threads_check(s->tick_ns <= s->now + PERIOD / 32);
	else
		threads_check(s->tick_ns <= budget(s)->start_ns + PERIOD);
}

static void check_queue(const struct scenario *s, u32 queue)
{
	const struct budget_queue *bq = budget_queue_of(&s->queue[queue]);
	const struct budget_lane *lane;
	bool runnable = s->queue[queue].passing.head != NULL;
	u32 i;

	/* A queue that does not wait for a slot is not in a set of slots.h. */
	for (i = 0; i < budget(s)->ops->nr_domains; i++)
		if (s->queue[queue].state != DISPATCH_NO_SLOT)
			threads_check(!queue_set_has(&budget(s)->slots[i].ready,
						     queue));
	if (!s->queue[queue].nr || s->blocked & (1U << queue))
		return;
	for (lane = bq->exhausted.head; lane; lane = lane->next)
		check_lane(s, lane, queue);
	for (i = 0; i < budget(s)->ops->nr_domains; i++) {
		threads_check(!slots_forgot(&budget(s)->slots[i], queue));
		runnable |= bq->runnable[i].head || bq->donors[i].head;
	}
	if (runnable)
		threads_check(s->queue[queue].state == DISPATCH_NO_SLOT);
	else
		threads_check(bq->exhausted.head);
}

/* P1: no end of a round is missed. */
static void check_refills(const struct scenario *s)
{
	const struct flow *f;
	bool runnable = false;

	for (f = s->sched.active; f; f = f->next_active)
		runnable |= !is_exhausted(f);
	if (s->sched.active && s->params.rule != BUDGET_PERIODIC)
		threads_check(runnable);
}

static void check_stalled(const struct scenario *s)
{
	s64 used[DOMAINS] = { 0 };
	u32 i;

	for (i = 0; i < s->nr_flight; i++)
		used[s->flight[i]->op] += !!(s->flight[i]->flags & IO_SLOT);
	for (i = 0; i < budget(s)->ops->nr_domains; i++)
		threads_check(slots_used(&budget(s)->slots[i]) == used[i]);
	for (i = 0; i < FLOWS; i++) {
		s64 left = credit_left(&budget_flow_of(s->flow[i])->credit);

		threads_check(budget_flow_of(s->flow[i])->granted ==
			      (s64)budget_spent(s->flow[i]) + left);
		/* Only the last request goes into debt. */
		if (!s->params.urgent)
			threads_check(left > -LARGE);
	}
	for (i = 0; i < QUEUES; i++)
		check_queue(s, i);
	check_refills(s);
}

/* ------------------------------------------------------------- a scenario */

static struct flow *flow_create(struct scenario *s, struct flow *parent,
				u32 weight)
{
	struct flow *f = port_zalloc(flow_size(&budget_mock_ops, QUEUES));

	threads_check(f);
	flow_init(f, &s->sched, parent, weight);
	return f;
}

static void reset(void *arg)
{
	struct scenario *s = arg;
	struct sched_params params;
	u32 i;

	budget_mock.ops = s->params.domains ? &two_domains : &one_domain;
	budget_mock.rule = s->params.rule;
	budget_mock.total = s->params.total;
	sched_params_init(&budget_mock_ops, &params);
	params.isolation = 0;
	params.depth = s->params.depth;
	budget_params(&params)->period_ns = PERIOD;
	s->sched = (struct sched){ .queue = s->index, .nr_queues = QUEUES };
	for (i = 0; i < QUEUES; i++) {
		queue_init(&s->queue[i], &s->sched, i);
		s->index[i] = &s->queue[i];
	}
	threads_check(!sched_init(&s->sched, &budget_mock_ops, &params,
				  square));
	s->root = flow_create(s, NULL, WEIGHT_DEFAULT);
	for (i = 0; i < FLOWS; i++) {
		s->flow[i] = flow_create(s, s->root, 100 << i);
		if (s->params.locks)
			budget_set_lock(s->flow[i], &s->lock[i]);
		if (s->params.donors & (1U << i))
			budget_flow_of(s->flow[i])->donor_until_ns = ~0ULL;
	}
	s->nr_ios = 0;
	s->nr_flight = 0;
	s->done = 0;
	s->blocked = 0;
	s->wakes = 0;
	s->now = 1;
	s->tick_ns = 0;
	for (i = 0; i < HISTORY; i++) {
		s->now += PERIOD / HISTORY / 2;
		run(s, &s->history[i]);
		if (i < HISTORY - FRESH)
			follow(s);
	}
	if (s->params.over)
		s->now += PERIOD;
}

static void drain(struct scenario *s)
{
	u32 i;

	for (i = 0; i < PERIODS && s->done < s->nr_ios; i++) {
		while (s->nr_flight) {
			finish(s, 0);
			follow(s);
		}
		if (s->tick_ns)
			s->now = max(s->now, s->tick_ns);
		follow(s);
	}
	threads_check(s->done == s->nr_ios);
}

static void check(void *arg)
{
	struct scenario *s = arg;
	u32 i;

	follow(s);
	check_stalled(s);
	for (i = 0; i < QUEUES; i++) {
		s->blocked &= ~(1U << i);
		run_queue(s, i);
	}
	follow(s);
	check_stalled(s);
	drain(s);
	check_stalled(s);
	for (i = 0; i < FLOWS; i++) {
		flow_exit(s->flow[i]);
		port_free(s->flow[i]);
	}
	flow_exit(s->root);
	port_free(s->root);
	sched_exit(&s->sched);
}

static struct op random_op(struct random *r, bool domains)
{
	static const u32 kinds[] = { RUN,     INSERT,  INSERT, INSERT, INSERT,
				     INSERT,  FINISH,  FINISH, FINISH, BLOCK,
				     UNBLOCK, RESHARE, RELOCK, TICK,   TICK };

	return (struct op){
		.kind = kinds[random_below(r, ARRAY_SIZE(kinds))],
		.queue = random_below(r, QUEUES),
		.flow = random_below(r, FLOWS),
		.domain = domains ? random_below(r, DOMAINS) : 0,
		.bytes = random_once_in(r, 4) ? LARGE : 4096,
		.pick = random_below(r, IOS),
	};
}

static void draw(struct scenario *s, struct random *r)
{
	u32 i, ticks = 0, first = random_below(r, QUEUES);

	s->params = (struct params){
		.rule = random_below(r, BUDGET_CONSERVING + 1),
		.depth = 1 + random_below(r, random_once_in(r, 2) ? 6 : IOS),
		.total = 4096ULL << random_below(r, 7),
		.locks = random_once_in(r, 3),
		.urgent = random_once_in(r, 2),
		.over = random_once_in(r, 2),
		.domains = random_once_in(r, 2),
		.donors = random_once_in(r, 2) ? random_below(r, 1 << FLOWS) :
						 0,
	};
	for (i = 0; i < HISTORY; i++)
		s->history[i] = random_op(r, s->params.domains);
	for (i = 0; i < OPS; i++) {
		s->op[i] = random_op(r, s->params.domains);
		/* Each has another queue, for its lock; ticks are serialised. */
		s->op[i].queue = (first + i) % QUEUES;
		if (s->op[i].kind == TICK && ticks++)
			s->op[i].kind = INSERT;
	}
	/* Refills beside a dispatch matter most. */
	if (!ticks && random_once_in(r, 2))
		s->op[random_below(r, 2)].kind = TICK;
}

/*
 * A flow is exhausted, and a queue waits for its credit in one domain.  Then a
 * request of another domain comes to that queue, beside a refill.
 */
static void wait_in_another_domain(struct scenario *s)
{
	static const struct op other = {
		.kind = INSERT, .queue = 1, .flow = 1, .bytes = 4096
	};
	static const struct op first = { .kind = INSERT, .bytes = 4096 };
	u32 i;

	s->params = (struct params){
		.rule = BUDGET_ALL_EXHAUSTED,
		.depth = IOS,
		.total = 32768, /* 10,922 and 21,845 */
		.over = true,
		.domains = true,
	};
	for (i = 0; i < HISTORY; i++)
		s->history[i] = (struct op){ .kind = RUN };
	s->history[0] = other;
	for (i = 1; i <= 4; i++)
		s->history[i] = first;
	s->op[0] = first;
	s->op[0].domain = 1;
	s->op[1] = (struct op){ .kind = TICK };
}

int main(void)
{
	struct random r = random_seeded("mt/replay_budget");
	static struct scenario s;
	struct replay two = { reset, run_op, 2, check, &s };
	struct replay three = { reset, run_op, 3, check, &s };
	u64 i, runs;

	port_queue_is_mine = always;
	for (i = 0; i < FLOWS; i++)
		port_lock_init(&s.lock[i]);
	wait_in_another_domain(&s);
	runs = replay_all(&two);
	for (i = 0; i < random_rounds(2000); i++) {
		draw(&s, &r);
		runs += replay_all(i % 10 ? &two : &three);
	}
	printf("replayed %llu interleavings of budgets\n", runs);
	return 0;
}
