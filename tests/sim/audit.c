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

static struct flow_queue *counters_of(const struct io *io)
{
	return io->flow->fq[io->queue->index];
}

static void insert_counts_twice(struct queue *q, struct io *io, u64 now,
				struct wake *wake)
{
	real->insert(q, io, now, wake);
	counters_of(io)->inserted++;
}

static void insert_moves_start(struct queue *q, struct io *io, u64 now,
			       struct wake *wake)
{
	real->insert(q, io, now, wake);
	io->pos += 512;
}

static void insert_is_free(struct queue *q, struct io *io, u64 now,
			   struct wake *wake)
{
	real->insert(q, io, now, wake);
	if (io->cost)
		atomic64_add(-(s64)io->cost, &io->flow->pos);
	io->cost = 0;
}

static void insert_charges_more(struct queue *q, struct io *io, u64 now,
				struct wake *wake)
{
	real->insert(q, io, now, wake);
	atomic64_add(512, &io->flow->pos);
}

/* A requeued io is charged again. */
static void insert_forgets_charge(struct queue *q, struct io *io, u64 now,
				  struct wake *wake)
{
	bool again = io->flags & IO_CHARGED;

	real->insert(q, io, now, wake);
	if (again)
		atomic64_add(io->cost, &io->flow->pos);
}

static void insert_asks_no_tick(struct queue *q, struct io *io, u64 now,
				struct wake *wake)
{
	real->insert(q, io, now, wake);
	wake->at_ns = 0;
}

static enum dispatch_result dispatch_keeps_nr(struct queue *q, u64 now,
					      struct io **io, struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		q->nr++;
	return result;
}

static enum dispatch_result dispatch_counts_twice(struct queue *q, u64 now,
						  struct io **io,
						  struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		counters_of(*io)->dispatched++;
	return result;
}

static enum dispatch_result dispatch_counts_no_bytes(struct queue *q, u64 now,
						     struct io **io,
						     struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		counters_of(*io)->bytes -= (*io)->bytes;
	return result;
}

static enum dispatch_result
dispatch_adds_wait(struct queue *q, u64 now, struct io **io, struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		counters_of(*io)->wait_ns++;
	return result;
}

static enum dispatch_result dispatch_keeps_backlog(struct queue *q, u64 now,
						   struct io **io,
						   struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		atomic64_inc(&(*io)->flow->queued);
	return result;
}

static enum dispatch_result
dispatch_keeps_wake(struct queue *q, u64 now, struct io **io, struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	q->wake_pending = true;
	return result;
}

static enum dispatch_result dispatch_keeps_state(struct queue *q, u64 now,
						 struct io **io,
						 struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		q->state = DISPATCH_EMPTY;
	return result;
}

/* A queue without a slot says that it is empty. */
static enum dispatch_result
dispatch_says_empty(struct queue *q, u64 now, struct io **io, struct wake *wake)
{
	enum dispatch_result result = real->dispatch(q, now, io, wake);

	if (result == DISPATCH_IO)
		return result;
	q->state = DISPATCH_EMPTY;
	return DISPATCH_EMPTY;
}

static void merge_is_free(struct queue *q, struct io *io, u32 bytes)
{
	s64 pos = atomic64_read(&io->flow->pos);

	real->merge(q, io, bytes);
	atomic64_set(&io->flow->pos, pos);
}

static void merge_lowers_cost(struct queue *q, struct io *io, u32 bytes)
{
	u32 cost = io->cost;

	real->merge(q, io, bytes);
	io->cost = cost - 1;
}

static void merge_forgets_bytes(struct queue *q, struct io *io, u32 bytes)
{
	u32 before = io->bytes;

	real->merge(q, io, bytes);
	io->bytes = before;
}

static void complete_counts_twice(struct io *io, u64 now, struct wake *wake)
{
	real->complete(io, now, wake);
	atomic64_inc(&counters_of(io)->done);
}

static void requeue_counts_twice(struct io *io, struct wake *wake)
{
	real->requeue(io, wake);
	atomic64_inc(&counters_of(io)->done);
}

static void tick_asks_no_tick(struct sched *s, u64 now, struct wake *wake)
{
	real->tick(s, now, wake);
	wake->at_ns = 0;
}

/* All flows leave the shares, although they have requests. */
static void tick_retires(struct sched *s, u64 now, struct wake *wake)
{
	struct flow *f;

	real->tick(s, now, wake);
	while ((f = s->active)) {
		s->active = f->next_active;
		share_deactivate(&s->share, &f->group);
		f->share = 0;
		atomic64_set(&f->active, 0);
	}
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

/* One broken hook, the others are the real ones. */
struct breakage {
	const char *what;
	const char *message;	/* part of the audit's */
	struct sched_ops hook;
};

static struct sched_ops broken_ops(const struct sched_ops *hook)
{
	struct sched_ops ops = *real;

	if (hook->insert)
		ops.insert = hook->insert;
	if (hook->merge)
		ops.merge = hook->merge;
	if (hook->dispatch)
		ops.dispatch = hook->dispatch;
	if (hook->complete)
		ops.complete = hook->complete;
	if (hook->requeue)
		ops.requeue = hook->requeue;
	if (hook->tick)
		ops.tick = hook->tick;
	return ops;
}

static void break_each(struct test_case *t, const struct breakage *b, u32 n)
{
	u32 i;

	real = t->ops;
	for (i = 0; i < n; i++) {
		struct sched_ops ops = broken_ops(&b[i].hook);
		struct host *h = host_open(&ops);

		host_run(h, 3 * SEC);
		expect(t, h, b[i].what, b[i].message);
	}
}

static void test_queues(struct test_case *t)
{
	static const struct breakage breakages[] = {
		{ "keeps queue.nr at dispatch",
		  " counts ",
		  { .dispatch = dispatch_keeps_nr } },
		{ "leaves a wake-up pending",
		  "is pending",
		  { .dispatch = dispatch_keeps_wake } },
		{ "does not set queue.state",
		  "has state",
		  { .dispatch = dispatch_keeps_state } },
		{ "calls a waiting queue empty",
		  "is called empty",
		  { .dispatch = dispatch_says_empty } },
	};

	break_each(t, breakages, ARRAY_SIZE(breakages));
}

static void test_counters(struct test_case *t)
{
	static const struct breakage breakages[] = {
		{ "counts an insert twice",
		  "has inserted",
		  { .insert = insert_counts_twice } },
		{ "counts a dispatch twice",
		  "has dispatched",
		  { .dispatch = dispatch_counts_twice } },
		{ "counts no bytes",
		  "has bytes",
		  { .dispatch = dispatch_counts_no_bytes } },
		{ "adds to the wait",
		  "has wait_ns",
		  { .dispatch = dispatch_adds_wait } },
		{ "keeps flow.queued at dispatch",
		  "has queued",
		  { .dispatch = dispatch_keeps_backlog } },
		{ "counts a completion twice",
		  "has done",
		  { .complete = complete_counts_twice } },
		{ "counts a requeue twice",
		  "has done",
		  { .requeue = requeue_counts_twice } },
	};

	break_each(t, breakages, ARRAY_SIZE(breakages));
}

static void test_charges(struct test_case *t)
{
	static const struct breakage breakages[] = {
		{ "starts an io at a wrong position",
		  "starts at position",
		  { .insert = insert_moves_start } },
		{ "charges nothing", "for free", { .insert = insert_is_free } },
		{ "charges more than the cost",
		  "position",
		  { .insert = insert_charges_more } },
		{ "charges a requeued io again",
		  "position",
		  { .insert = insert_forgets_charge } },
		{ "does not charge for a merge",
		  "position",
		  { .merge = merge_is_free } },
		{ "lowers a cost at a merge",
		  "merging lowered",
		  { .merge = merge_lowers_cost } },
		{ "forgets the bytes of a merge",
		  "a merged io has",
		  { .merge = merge_forgets_bytes } },
	};

	break_each(t, breakages, ARRAY_SIZE(breakages));
}

static void test_activity(struct test_case *t)
{
	static const struct breakage breakages[] = {
		{ "asks for no tick",
		  "no tick is armed",
		  { .insert = insert_asks_no_tick,
		    .tick = tick_asks_no_tick } },
		{ "asks for no tick after a tick",
		  "no tick is armed",
		  { .tick = tick_asks_no_tick } },
		{ "retires a busy flow",
		  "has active",
		  { .tick = tick_retires } },
	};

	break_each(t, breakages, ARRAY_SIZE(breakages));
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
