// SPDX-License-Identifier: GPL-2.0
/*
 * Every audit of sim/audit.h finds a broken scheduler.  Each test takes the
 * scheduler under test, replaces one hook by one that calls the real hook and
 * breaks one thing, and expects the message of the audit in question.
 */
#include "fixture.h"
#include "tests/params.h"

/* The scheduler that is wrapped. */
static const struct sched_ops *real;

/* ------------------------------------------------------------- broken hooks */

/* What the broken hooks do wrong. */
enum fault {
	NO_FAULT,
	INSERT_COUNTS_TWICE,
	INSERT_MOVES_START,
	INSERT_IS_FREE,
	INSERT_CHARGES_MORE,
	INSERT_FORGETS_CHARGE,		/* a requeued io is charged again */
	INSERT_AND_TICK_ASK_NO_TICK,
	DISPATCH_KEEPS_NR,
	DISPATCH_COUNTS_TWICE,
	DISPATCH_COUNTS_NO_BYTES,
	DISPATCH_ADDS_WAIT,
	DISPATCH_KEEPS_BACKLOG,
	DISPATCH_KEEPS_WAKE,
	DISPATCH_KEEPS_STATE,
	DISPATCH_SAYS_EMPTY,		/* of a queue without a slot */
	MERGE_IS_FREE,
	MERGE_LOWERS_COST,
	MERGE_FORGETS_BYTES,
	COMPLETE_COUNTS_TWICE,
	REQUEUE_COUNTS_TWICE,
	TICK_ASKS_NO_TICK,
	TICK_RETIRES,			/* all flows, although they have requests */
};

static enum fault fault;

static struct flow_queue *counters_of(const struct io *io)
{
	return io->flow->fq[io->queue->index];
}

static void broken_insert(struct queue *q, struct io *io, u64 now,
			  struct wake *wake)
{
	bool again = io->flags & IO_CHARGED;

	real->insert(q, io, now, wake);
	if (fault == INSERT_COUNTS_TWICE)
		counters_of(io)->inserted++;
	if (fault == INSERT_MOVES_START)
		io->pos += 512;
	if (fault == INSERT_IS_FREE) {
		atomic64_add(-(s64)io->cost, &io->flow->pos);
		io->cost = 0;
	}
	if (fault == INSERT_CHARGES_MORE)
		atomic64_add(512, &io->flow->pos);
	if (fault == INSERT_FORGETS_CHARGE && again)
		atomic64_add(io->cost, &io->flow->pos);
	if (fault == INSERT_AND_TICK_ASK_NO_TICK)
		wake->at_ns = 0;
}

static void break_dispatched(struct queue *q, const struct io *io)
{
	if (fault == DISPATCH_KEEPS_NR)
		q->nr++;
	if (fault == DISPATCH_COUNTS_TWICE)
		counters_of(io)->dispatched++;
	if (fault == DISPATCH_COUNTS_NO_BYTES)
		counters_of(io)->bytes -= io->bytes;
	if (fault == DISPATCH_ADDS_WAIT)
		counters_of(io)->wait_ns++;
	if (fault == DISPATCH_KEEPS_BACKLOG)
		atomic64_inc(&io->flow->queued);
	if (fault == DISPATCH_KEEPS_STATE)
		q->state = DISPATCH_EMPTY;
}

static enum dispatch_result broken_dispatch(struct queue *q, u64 now,
					    struct io **io, struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (fault == DISPATCH_KEEPS_WAKE)
		q->wake_pending = true;
	if (result == DISPATCH_IO) {
		break_dispatched(q, *io);
	} else if (fault == DISPATCH_SAYS_EMPTY) {
		q->state = DISPATCH_EMPTY;
		return DISPATCH_EMPTY;
	}
	return result;
}

static void broken_merge(struct queue *q, struct io *io, u32 bytes)
{
	s64 pos = atomic64_read(&io->flow->pos);
	u32 cost = io->cost, before = io->bytes;

	real->merge(q, io, bytes);
	if (fault == MERGE_IS_FREE)
		atomic64_set(&io->flow->pos, pos);
	if (fault == MERGE_LOWERS_COST)
		io->cost = cost - 1;
	if (fault == MERGE_FORGETS_BYTES)
		io->bytes = before;
}

static void broken_complete(struct io *io, u64 now, struct wake *wake)
{
	real->complete(io, now, wake);
	if (fault == COMPLETE_COUNTS_TWICE)
		atomic64_inc(&counters_of(io)->done);
}

static void broken_requeue(struct io *io, struct wake *wake)
{
	real->requeue(io, wake);
	if (fault == REQUEUE_COUNTS_TWICE)
		atomic64_inc(&counters_of(io)->done);
}

static void retire_all(struct sched *s)
{
	struct flow *f;

	while ((f = s->active)) {
		s->active = f->next_active;
		share_deactivate(&s->share, &f->group);
		f->share = 0;
		atomic64_set(&f->active, 0);
	}
}

static void broken_tick(struct sched *s, u64 now, struct wake *wake)
{
	real->tick(s, now, wake);
	if (fault == TICK_ASKS_NO_TICK || fault == INSERT_AND_TICK_ASK_NO_TICK)
		wake->at_ns = 0;
	if (fault == TICK_RETIRES)
		retire_all(s);
}

/* ---------------------------------------------------------------- the tests */

/*
 * After a failed audit the state of a scheduler is undefined, so sched_exit()
 * is not called.  These pointers keep its memory reachable for the leak check.
 */
enum {
	KEPT_MOST	= 1024,
};

/* volatile: or the compiler would leave the pointers out. */
static void *volatile kept[KEPT_MOST];

static void keep(void *p)
{
	static u32 n;

	port_assert(n < KEPT_MOST);
	kept[n++] = p;
}

/* Two flows on two queues; merged, urgent, polled and requeued requests. */
static struct host *host_open(const struct sched_ops *ops)
{
	struct host_params p = {
		.seed = 1,
		.nr_queues = 2,
		.ops = ops,
		.device = { .slots = 4, .base_ns = 100 * US },
		.refuse_permille = 100,
		.refuse_ns = 10 * US,
	};
	struct load_params load = {
		.nr_queues = 2,
		.depth = 16,
		.bytes = 4 * KIB,
		.write_permille = 300,
		.urgent_permille = 50,
		.polled_permille = 50,
		.merge_bytes = 4 * KIB,
	};
	struct host_flow *root;
	struct host *h;
	u32 i;

	sched_params_init(real, &p.sched);
	p.sched.isolation = 0;
	params_put(real, &p.sched, "depth", 4);
	h = host_create(&p);
	port_assert(h);
	keep(h);
	root = host_flow_create(h, NULL, 0);
	for (i = 0; i < 2; i++) {
		load.flow = host_flow_create(h, root, 100);
		port_assert(load.flow);
		keep(load_create(h, &load));
	}
	return h;
}

static void expect(struct test_case *t, const struct host *h, const char *what,
		   const char *message)
{
	if (!host_failed(h))
		case_fail(t, "no audit finds a scheduler that %s", what);
	else if (!strstr(h->failure, message))
		case_fail(t, "a scheduler that %s fails by '%s'", what,
			  h->failure);
}

struct breakage {
	enum fault fault;
	const char *what;
	const char *message;	/* part of the audit's */
};

static struct sched_ops broken_ops(void)
{
	struct sched_ops ops = *real;

	ops.insert = broken_insert;
	ops.merge = broken_merge;
	ops.dispatch = broken_dispatch;
	ops.complete = broken_complete;
	ops.requeue = broken_requeue;
	ops.tick = broken_tick;
	return ops;
}

static void break_each(struct test_case *t, const struct breakage *b, u32 n)
{
	struct sched_ops ops;
	u32 i;

	real = t->ops;
	ops = broken_ops();
	for (i = 0; i < n; i++) {
		struct host *h;

		fault = b[i].fault;
		h = host_open(&ops);
		host_run(h, 3 * SEC);
		expect(t, h, b[i].what, b[i].message);
	}
	fault = NO_FAULT;
}

static const struct breakage of_queues[] = {
	{ DISPATCH_KEEPS_NR, "keeps queue.nr at dispatch", " counts " },
	{ DISPATCH_KEEPS_WAKE, "leaves a wake-up pending", "is pending" },
	{ DISPATCH_KEEPS_STATE, "does not set queue.state", "has state" },
	{ DISPATCH_SAYS_EMPTY, "calls a waiting queue empty", "is called empty" },
};

static const struct breakage of_counters[] = {
	{ INSERT_COUNTS_TWICE, "counts an insert twice", "has inserted" },
	{ DISPATCH_COUNTS_TWICE, "counts a dispatch twice", "has dispatched" },
	{ DISPATCH_COUNTS_NO_BYTES, "counts no bytes", "has bytes" },
	{ DISPATCH_ADDS_WAIT, "adds to the wait", "has wait_ns" },
	{ DISPATCH_KEEPS_BACKLOG, "keeps flow.queued at dispatch", "has queued" },
	{ COMPLETE_COUNTS_TWICE, "counts a completion twice", "has done" },
	{ REQUEUE_COUNTS_TWICE, "counts a requeue twice", "has done" },
};

static const struct breakage of_charges[] = {
	{ INSERT_MOVES_START, "starts an io at a wrong position", "starts at position" },
	{ INSERT_IS_FREE, "charges nothing", "for free" },
	{ INSERT_CHARGES_MORE, "charges more than the cost", "position" },
	{ INSERT_FORGETS_CHARGE, "charges a requeued io again", "position" },
	{ MERGE_IS_FREE, "does not charge for a merge", "position" },
	{ MERGE_LOWERS_COST, "lowers a cost at a merge", "merging lowered" },
	{ MERGE_FORGETS_BYTES, "forgets the bytes of a merge", "a merged io has" },
};

static const struct breakage of_activity[] = {
	{ INSERT_AND_TICK_ASK_NO_TICK, "asks for no tick", "no tick is armed" },
	{ TICK_ASKS_NO_TICK, "asks for no tick after a tick", "no tick is armed" },
	{ TICK_RETIRES, "retires a busy flow", "has active" },
};

static void test_queues(struct test_case *t)
{
	break_each(t, of_queues, ARRAY_SIZE(of_queues));
}

static void test_counters(struct test_case *t)
{
	break_each(t, of_counters, ARRAY_SIZE(of_counters));
}

static void test_charges(struct test_case *t)
{
	break_each(t, of_charges, ARRAY_SIZE(of_charges));
}

static void test_activity(struct test_case *t)
{
	break_each(t, of_activity, ARRAY_SIZE(of_activity));
}

/* ----------------------------------------------------------------- tunables */

/* The tunable that the broken tune ignores. */
static const struct tunable *ignored;

static void tune_ignores(struct sched *s, const struct sched_params *p,
			 struct wake *wake)
{
	struct sched_params without;

	if (!p) {
		real->tune(s, NULL, wake);
		return;
	}
	without = *p;
	if (ignored->kind == TUNABLE_COST)
		tunable_set_cost(ignored, &without,
				 tunable_get_cost(ignored, &s->params));
	else
		tunable_set(ignored, &without,
			    tunable_get(ignored, &s->params));
	real->tune(s, &without, wake);
}

/* Another valid value of the tunable. */
static void change(const struct tunable *t, struct sched_params *p)
{
	struct cost_model cost;

	if (t->kind == TUNABLE_COST) {
		cost = *tunable_get_cost(t, p);
		cost.write.base++;
		port_assert(!tunable_set_cost(t, p, &cost));
	} else if (tunable_set(t, p, tunable_get(t, p) + 1)) {
		port_assert(!tunable_set(t, p, tunable_get(t, p) - 1));
	}
}

static void test_tunables(struct test_case *t)
{
	struct sched_ops ops = *t->ops;
	struct sched_params p;
	char what[64];

	real = t->ops;
	ops.tune = tune_ignores;
	for (ignored = real->tunables; ignored->name; ignored++) {
		struct host *h = host_open(&ops);

		host_run(h, 10 * MS);
		p = h->sched.params;
		change(ignored, &p);
		host_tune(h, &p);
		snprintf(what, sizeof(what), "ignores tunable %s",
			 ignored->name);
		expect(t, h, what, ignored->name);
	}
}

/* The audits have no objection to the scheduler itself. */
static void test_honest(struct test_case *t)
{
	const struct tunable *tunable;
	struct sched_params p;
	struct host *h;

	real = t->ops;
	h = host_open(real);
	host_run(h, SEC);
	for (tunable = real->tunables; tunable->name; tunable++) {
		p = h->sched.params;
		change(tunable, &p);
		host_tune(h, &p);
		host_run(h, host_now(h) + 100 * MS);
	}
	host_finish(h);
	if (host_failed(h))
		case_fail(t, "%s", h->failure);
}

const struct test audit_tests[] = {
	{ "audit/honest", test_honest, false },
	{ "audit/queues", test_queues, false },
	{ "audit/counters", test_counters, false },
	{ "audit/charges", test_charges, false },
	{ "audit/activity", test_activity, false },
	{ "audit/tunables", test_tunables, false },
	{ NULL, NULL, false },
};
