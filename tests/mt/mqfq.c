// SPDX-License-Identifier: GPL-2.0
/*
 * mqfq, ifq upon it, and drr and sfq upon the engine, on threads.  Members submit, complete, requeue,
 * block and tune at random.  No member calls tick unless the workload says so:
 * a queue that waits must be woken by the thread that made it runnable.  When
 * all members stand still, every queue with requests must have a reason to
 * wait.  When the device has been emptied, no request is left.
 */
#include "threads.h"
#include "sched/core/policies.h"
#include "device.h"
#include "host.h"
#include "sched/ifq/ifq.h"
#include "stall.h"
#include "tests/machine.h"
#include "tests/params.h"

enum {
	MEETINGS	= 25,
	STEPS		= 500,		/* per member, between meetings */
	FLOWS		= 5,
	IOS		= 60,		/* per member, at most */
};

struct test_io {
	struct io io;
	struct scenario *scenario;
	atomic64_t state;	/* enum io_state */
	bool counted;		/* in scenario.slots */
	struct test_io *next;	/* in its member's list of free ones */
};

enum io_state {
	IDLE,
	WAITING,
	DEVICE,
	DONE,
};

/* The actions of a workload are done once in this number of steps; 0: never. */
struct workload {
	const char *policy, *name;
	u32 depth, threshold;
	u32 ticks, tunes, blocks, requeues, weights, odd;
	u32 isolation;		/* percent; then D is set or found, by tunes */
};

struct scenario {
	const struct workload *workload;
	struct host host;
	struct device device;
	struct flow *root, *flow[FLOWS];
	u32 threads;
	/* Tick and tune run side by side, so tune reads nothing of tick's. */
	struct port_lock ticking, tuning;
	struct sched_params params;	/* as tuned */
	atomic64_t slots;	/* in use, as the test counts them */
	s64 most;		/* slots ever allowed */
	u32 trials;		/* of windows, by the end */
	vtime_t seen;		/* virtual time, by check_any_time() */
	atomic64_t submitted, dispatched, completed;
	struct random random;	/* for the member that checks */
	struct test_io *io;	/* [threads][IOS] */
};

/* Does the scheduler stand on the engine? */
static bool is_simple(const struct scenario *s)
{
	return s->host.sched.ops == &drr_ops || s->host.sched.ops == &sfq_ops;
}

static const struct engine *engine_state(const struct scenario *s)
{
	return s->host.sched.own;
}

/* Of mqfq and ifq. */
static struct mqfq *mqfq_of(const struct scenario *s)
{
	return s->host.sched.own;
}

static struct test_io *test_io_of(struct io *io)
{
	return container_of(io, struct test_io, io);
}

static void io_move(struct test_io *t, enum io_state from, enum io_state to)
{
	s64 was = from;

	threads_check(atomic64_try_cmpxchg(&t->state, &was, to));
}

/* Returns the slots ever allowed, with those for requests that pass. */
static s64 with_beyond(const struct scenario *s)
{
	return s->most + slots_beyond((u32)s->most);
}

static void on_issue(struct host *h, struct io *io)
{
	struct scenario *s = h->arg;
	struct test_io *t = test_io_of(io);

	io_move(t, WAITING, DEVICE);
	atomic64_inc(&s->dispatched);
	/* The lease of a polled request may end before it. */
	t->counted = (io->flags & (IO_SLOT | IO_POLLED)) == IO_SLOT;
	if (t->counted)
		threads_check(atomic64_inc_return(&s->slots) <= with_beyond(s));
	device_start(&s->device, io);
}

/* Virtual time never decreases (I1), in the view of any member. */
static void check_vt(struct scenario *s, vtime_t *seen)
{
	vtime_t vt = (vtime_t)atomic64_read(&mqfq_of(s)->vt);

	threads_check(!vtime_before(vt, *seen));
	*seen = vt;
}

/* At any time: D bounds the slots, and virtual time never decreases (I1). */
static void check_any_time(void *arg)
{
	struct scenario *s = arg;

	threads_check(atomic64_read(&s->slots) <= with_beyond(s));
	if (is_simple(s))
		return;
	check_vt(s, &s->seen);
	if (!s->workload->tunes && !s->workload->isolation)
		threads_check(token_total(&mqfq_of(s)->slots.tree) +
				      atomic64_read(&s->slots) <=
			      s->most);
}

/* If time passes, flows come and go: two of them are in use at a time. */
static struct flow *any_flow(struct scenario *s, struct random *r)
{
	u64 era = (u64)atomic64_read(&s->host.now_ns) / (3ULL * FLOW_GRACE_NS);

	if (!s->workload->ticks)
		return s->flow[random_below(r, FLOWS)];
	return s->flow[(era + random_below(r, 2)) % FLOWS];
}

static void submit(struct scenario *s, struct random *r, struct test_io *t)
{
	static const u32 sizes[] = { 512, 4096, 4096, 65536, 1 << 20 };
	u32 queue = random_below(r, s->host.sched.nr_queues);

	t->scenario = s;
	t->io = (struct io){
		.flow = any_flow(s, r),
		.bytes = sizes[random_below(r, ARRAY_SIZE(sizes))],
		.op = (u8)random_below(r, IO_OPS),
	};
	if (s->workload->odd && random_once_in(r, s->workload->odd))
		t->io.flags = random_once_in(r, 2) ? IO_URGENT : IO_POLLED;
	io_move(t, IDLE, WAITING);
	atomic64_inc(&s->submitted);
	host_insert(&s->host, queue, &t->io);
}

static void leave_device(struct scenario *s, struct test_io *t,
			 enum io_state to)
{
	io_move(t, DEVICE, to);
	if (t->counted)
		atomic64_dec(&s->slots);
	t->counted = false;
}

/* Returns false when the device is empty. */
static bool finish(struct scenario *s, struct random *r)
{
	struct io *io = device_finish(&s->device, r);

	if (!io)
		return false;
	if (s->workload->requeues && random_once_in(r, s->workload->requeues)) {
		leave_device(s, test_io_of(io), WAITING);
		host_requeue(&s->host, io);
		return true;
	}
	leave_device(s, test_io_of(io), DONE);
	atomic64_inc(&s->completed);
	host_complete(&s->host, io);
	atomic64_set_release(&test_io_of(io)->state, IDLE);
	return true;
}

static void tune_mqfq(struct sched_params *p, struct random *r)
{
	static const u32 thresholds[] = { 0, 4096, 65536, 1 << 20 };

	if (random_once_in(r, 2))
		mqfq_params(p)->threshold = thresholds[random_below(r, 4)];
	if (random_once_in(r, 4))
		p->cost.kind = random_below(r, COST_KINDS);
}

static void tune_ifq(struct sched_params *p, struct random *r)
{
	ifq_params(p)->window_ms = 50 + random_below(r, 200);
	ifq_params(p)->damping = random_below(r, 101);
	ifq_params(p)->clamp = 1 + random_below(r, 10000);
	if (random_once_in(r, 2))
		ifq_params(p)->virtual_time = IFQ_MIN + random_below(r, 3);
}

/* Mostly on.  A D that is set is in force after tune: host_tune() checks it. */
static void tune_isolation(const struct scenario *s, struct sched_params *p,
			   struct random *r)
{
	p->isolation = random_once_in(r, 4) ? 0 : s->workload->isolation;
	p->depth_most = random_once_in(r, 2) ? (u32)s->most : 0;
}

static bool is_ifq(const struct scenario *s)
{
	return s->host.sched.ops == &ifq_ops;
}

static void tune(struct scenario *s, struct random *r)
{
	struct sched_params params = s->params;

	if (random_once_in(r, 2))
		params.depth = 1 + random_below(r, (u32)s->most);
	if (s->workload->isolation)
		tune_isolation(s, &params, r);
	if (is_ifq(s))
		tune_ifq(&params, r);
	else if (!is_simple(s))
		tune_mqfq(&params, r);
	host_tune(&s->host, &params);
	s->params = params;
}

static void slow_work(struct scenario *s, struct random *r)
{
	const struct workload *p = s->workload;
	unsigned long flags;

	if (p->ticks && random_once_in(r, p->ticks)) {
		flags = port_lock(&s->ticking);
		atomic64_add(p->isolation ? LOOK_LEAST_NS : FLOW_GRACE_NS / 3,
			     &s->host.now_ns);
		host_tick(&s->host);
		port_unlock(&s->ticking, flags);
	}
	if (p->tunes && random_once_in(r, p->tunes)) {
		flags = port_lock(&s->tuning);
		tune(s, r);
		port_unlock(&s->tuning, flags);
	}
	if (p->weights && random_once_in(r, p->weights))
		host_flow_weigh(&s->host, s->flow[random_below(r, FLOWS)],
				1 + random_below(r, WEIGHT_MAX));
}

static void block_or_unblock(struct scenario *s, struct random *r)
{
	u32 queue = random_below(r, s->host.sched.nr_queues);

	if (!s->workload->blocks || !random_once_in(r, s->workload->blocks))
		return;
	if (random_once_in(r, 3))
		host_block(&s->host, queue);
	else
		host_unblock(&s->host, queue);
}

/* ------------------------------------------------------------- the checks */

/*
 * The watchdog counts nothing between two ticks.  No member is about to wake a
 * queue between the two, because all of them stand still.
 */
static void check_watchdog(struct scenario *s)
{
	s64 before;

	host_tick(&s->host);
	before = atomic64_read(&s->host.sched.stats.watchdog);
	host_tick(&s->host);
	threads_check(atomic64_read(&s->host.sched.stats.watchdog) == before);
}

static void check_queue_of_mqfq(const struct mqfq *m,
				const struct host_queue *q)
{
	if (q->q.nr && !q->blocked)
		stall_check_waiting(m, &q->q);
	else
		threads_check(mindicator_tag(&m->tags, q->q.index) ==
			      VTIME_NONE);
}

/* Does @q wait for its turn, and another queue is ahead?  Of equal tags the first is. */
static bool is_throttled(const struct queue *q)
{
	const struct queue *first = q;
	u32 i;

	for (i = 0; i < q->sched->nr_queues; i++) {
		const struct queue *other = q->sched->queue[i];

		if (vtime_min_tag(first->head_tag, other->head_tag) !=
		    first->head_tag)
			first = other;
		else if (other->head_tag == first->head_tag && i < first->index)
			first = other;
	}
	return q->state == DISPATCH_THROTTLED && first != q;
}

/*
 * A queue with requests waits for a slot, and none is free that it may have.  Or
 * another queue is ahead of it, under sfq.
 */
static void check_queue_of_engine(const struct engine *e,
				  const struct host_queue *q)
{
	bool waits = queue_set_has(&e->slots.ready, q->q.index);
	bool must_wait = q->q.nr && !q->blocked;

	threads_check(waits + is_throttled(&q->q) == must_wait);
	threads_check(!slots_forgot(&e->slots, q->q.index));
	if (!must_wait)
		threads_check(q->q.head_tag == VTIME_NONE);
}

/*
 * Free, leased and in use: these are all slots.  The window limits them, or the one
 * that is tried.
 */
static void check_slots(const struct scenario *s)
{
	const struct slots *sl = is_simple(s) ? &engine_state(s)->slots :
						&mqfq_of(s)->slots;
	const struct sched_params *p = &s->host.sched.params;
	const struct window *w = &s->host.sched.isolation.window;
	s64 all = token_total(&sl->tree) + slots_leased(sl) +
		  atomic64_read(&s->slots);

	threads_check(all == sl->tree.depth);
	threads_check(sl->tree.depth == min(sl->depth, sl->limit));
	threads_check(sl->depth == (p->depth_most ? p->depth_most : p->depth));
	threads_check(sl->limit == w->size ||
		      (w->other && sl->limit == w->other));
	threads_check(!p->depth_most || p->depth == sl->limit);
}

static void check_stopped(void *arg)
{
	struct scenario *s = arg;
	u32 i;

	host_check(&s->host);
	check_slots(s);
	for (i = 0; i < s->host.sched.nr_queues; i++) {
		if (is_simple(s))
			check_queue_of_engine(engine_state(s),
					      &s->host.queue[i]);
		else
			check_queue_of_mqfq(mqfq_of(s), &s->host.queue[i]);
	}
	if (s->workload->ticks)
		check_watchdog(s);
}

/* Only completes requests: that alone must bring all of them out. */
static void drain(void *arg)
{
	struct scenario *s = arg;
	u32 i;

	check_stopped(s);
	for (i = 0; i < s->host.sched.nr_queues; i++)
		host_unblock(&s->host, i);
	check_stopped(s);
	while (finish(s, &s->random))
		;
	s->trials = s->host.sched.isolation.window.trials;
	threads_check(atomic64_read(&s->completed) ==
		      atomic64_read(&s->submitted));
	check_stopped(s);
	if (!is_simple(s))
		stall_check_empty(mqfq_of(s));
}

/* ------------------------------------------------------------- the members */

static struct test_io *free_io(struct scenario *s, u32 member, struct random *r)
{
	struct test_io *t = &s->io[member * IOS + random_below(r, IOS)];

	return smp_load_acquire(&t->state.counter) == IDLE ? t : NULL;
}

static void work(struct member *me, void *arg)
{
	struct scenario *s = arg;
	vtime_t seen = is_simple(s) ? 0 : mqfq_vt(mqfq_of(s));
	struct random *r = &me->random;
	u32 meetings = threads_meetings(MEETINGS), steps = threads_steps(STEPS);
	u32 meeting, i;

	for (meeting = 0; meeting < meetings; meeting++) {
		/* Members submit more than they complete, then less. */
		u32 submits = meeting % 2 ? 40 : 60;

		for (i = 0; i < steps; i++) {
			struct test_io *t = free_io(s, me->index, r);

			if (t && random_below(r, 100) < submits)
				submit(s, r, t);
			else
				finish(s, r);
			slow_work(s, r);
			block_or_unblock(s, r);
			if (!is_simple(s))
				check_vt(s, &seen);
		}
		threads_meet(me, meeting + 1 < meetings ? check_stopped : drain,
			     s);
	}
}

static void scenario_init(struct scenario *s, const struct workload *workload,
			  struct random *r)
{
	static const u32 weights[FLOWS] = { 1, 100, 250, 1000, 10000 };
	struct sched_params params;
	struct topo_place place[MACHINE_QUEUES];
	u32 i;

	*s = (struct scenario){ .workload = workload,
				.threads = threads_size() };
	s->random.state = random_next(r);
	s->most = workload->depth;
	s->host.issue = on_issue;
	s->host.arg = s;
	sched_params_init(sched_find(workload->policy), &params);
	params.isolation = workload->isolation;
	params.depth = workload->depth;
	params_put(sched_find(workload->policy), &params, "threshold_kb",
		   workload->threshold);
	s->params = params;
	host_init(&s->host, workload->policy, &params, place,
		  machine_random(r, place));
	device_init(&s->device, s->threads * IOS);
	port_lock_init(&s->ticking);
	port_lock_init(&s->tuning);
	s->root = host_flow_create(&s->host, NULL, WEIGHT_DEFAULT);
	for (i = 0; i < FLOWS; i++)
		s->flow[i] = host_flow_create(&s->host,
					      i < 3 ? s->root : s->flow[i - 2],
					      weights[i]);
	s->seen = is_simple(s) ? 0 : mqfq_vt(mqfq_of(s));
	s->io = port_zalloc(s->threads * IOS * sizeof(*s->io));
	threads_check(s->io);
}

static void scenario_deinit(struct scenario *s)
{
	u32 i;

	for (i = FLOWS; i-- > 0;)
		host_flow_destroy(&s->host, s->flow[i]);
	host_flow_destroy(&s->host, s->root);
	port_free(s->io);
	port_lock_deinit(&s->tuning);
	port_lock_deinit(&s->ticking);
	device_deinit(&s->device);
	host_deinit(&s->host);
}

int main(void)
{
	static const struct workload workloads[] = {
		{ "mqfq", "wide", 64, 1 << 20, 0, 0, 0, 0, 0, 0, 0 },
		{ "mqfq", "narrow", 3, 65536, 0, 0, 0, 0, 0, 0, 0 },
		{ "mqfq", "one slot", 1, 4096, 0, 0, 0, 0, 0, 0, 0 },
		{ "mqfq", "exact order", 4, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ "mqfq", "exact order, one slot", 1, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ "mqfq", "blocked", 4, 65536, 0, 0, 20, 0, 0, 0, 0 },
		{ "mqfq", "blocked, exact order", 4, 0, 0, 0, 20, 0, 0, 0, 0 },
		{ "mqfq", "odd requests", 4, 65536, 0, 0, 0, 10, 0, 10, 0 },
		{ "mqfq", "tuned", 16, 65536, 200, 100, 0, 0, 50, 0, 0 },
		{ "mqfq", "everything", 8, 65536, 200, 100, 20, 10, 50, 10, 0 },
		{ "mqfq", "isolated", 16, 65536, 20, 0, 0, 0, 0, 0, 8 },
		{ "mqfq", "isolated, everything", 16, 65536, 10, 2000, 40, 10,
		  2000, 10, 50 },
		{ "ifq", "windows", 4, 0, 200, 0, 0, 0, 0, 0, 0 },
		{ "ifq", "tuned", 8, 0, 200, 100, 0, 0, 50, 0, 0 },
		{ "ifq", "everything", 8, 0, 200, 100, 20, 10, 50, 10, 0 },
		{ "drr", "narrow", 3, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ "drr", "one slot", 1, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ "drr", "blocked", 4, 0, 0, 0, 20, 0, 0, 0, 0 },
		{ "drr", "everything", 8, 0, 200, 100, 20, 10, 50, 10, 0 },
		{ "drr", "isolated, everything", 16, 0, 10, 2000, 40, 10, 2000,
		  10, 50 },
		{ "sfq", "narrow", 3, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ "sfq", "one slot", 1, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ "sfq", "blocked", 4, 0, 0, 0, 20, 0, 0, 0, 0 },
		{ "sfq", "everything", 8, 0, 200, 100, 20, 10, 50, 10, 0 },
	};
	struct random r = random_seeded("mt/mqfq");
	struct scenario s;
	u64 round, trials = 0;
	u32 i;

	for (round = 0; round < random_rounds(1); round++)
		for (i = 0; i < ARRAY_SIZE(workloads); i++) {
			scenario_init(&s, &workloads[i], &r);
			threads_watch(check_any_time, &s);
			threads_run(s.threads, &r, work, &s);
			printf("%s, %s: %lld requests, %u trials of windows\n",
			       workloads[i].policy, workloads[i].name,
			       atomic64_read(&s.completed), s.trials);
			fflush(stdout);
			trials += s.trials;
			scenario_deinit(&s);
		}
	threads_seen(trials > 0, "a trial of a window");
	return 0;
}
