// SPDX-License-Identifier: GPL-2.0
/*
 * kyber-fair, wdt and hwabc on threads.  Members submit, complete, send back,
 * block, tune and tick in random order.  Each has a cgroup of its own, which
 * comes and goes while others refill.  When all members stand still, all credit
 * and all slots are accounted for.  A request that waits has its reason: its
 * flow is exhausted, or its domain has no slot.  In the end completions and
 * ticks bring everything out.
 */
#include "threads.h"
#include "tests/params.h"
#include "sched/core/policies.h"
#include "device.h"
#include "host.h"
#include "sched/hwabc/hwabc.h"
#include "sched/kyber_fair/kyber_fair.h"
#include "sched/wdt/wdt.h"
#include "tests/machine.h"

enum {
	MEETINGS	= 20,
	STEPS		= 400,		/* a member, between meetings */
	FLOWS		= 5,
	THREADS_MOST	= 64,
	IOS		= 120,		/* a member's, at most */
	STEP_NS		= 20 * 1000,	/* without the ticks */
	PERIODS		= 5000,		/* in which all requests must end */
};

/* Probabilities are once in a number of steps; 0: never. */
struct workload {
	const char *policy, *name;
	u32 conserving, predict, period_ms;
	u32 tunes, blocks, requeues, weights, odd, deaths;
	u32 isolation;		/* percent */
};

enum io_state {
	IDLE,
	WAITING,
	DEVICE,
	DONE,
};

struct test_io {
	struct io io;
	atomic64_t state;		/* enum io_state */
	struct mortal *mortal;		/* owner of its flow, or NULL */
	bool counted;			/* as one of the slots in use */
};

struct scenario {
	const struct workload *workload;
	struct host host;
	struct device device;
	struct flow *root, *flow[FLOWS];
	struct mortal {			/* a member's own, under its lock */
		struct port_lock lock;
		struct flow *flow;
		atomic64_t requests;	/* that have it */
	} mortal[THREADS_MOST];
	u32 threads;
	struct port_lock slow;		/* tick, tune */
	atomic64_t slots[BUDGET_DOMAINS];	/* in use, by this test */
	atomic64_t submitted, completed;
	struct random random;		/* of the member that checks */
	struct test_io *io;		/* [threads][IOS] */
};

static const struct budget *budget(const struct scenario *s)
{
	return s->host.sched.own;
}

static u32 domain_of(const struct scenario *s, const struct io *io)
{
	const struct budget_ops *ops = budget(s)->ops;

	return ops->domain ? ops->domain(io) : 0;
}

/* Returns D of the domain of @io, with the slots beyond it. */
static s64 most_slots(const struct scenario *s, const struct io *io)
{
	u32 depth = budget(s)->ops->domain ? domain_depth_most(io->op) :
					     s->host.sched.params.depth;

	return (s64)depth + slots_beyond(depth);
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

static void on_issue(struct host *h, struct io *io)
{
	struct scenario *s = h->arg;
	struct test_io *t = test_io_of(io);

	io_move(t, WAITING, DEVICE);
	/* The lease of a polled request may end before it. */
	t->counted = (io->flags & (IO_SLOT | IO_POLLED)) == IO_SLOT;
	if (t->counted)
		threads_check(atomic64_inc_return(&s->slots[domain_of(s, io)]) <=
			      most_slots(s, io));
	device_start(&s->device, io);
}

/* Any flow, or that of member @m. */
static struct flow *any_flow(struct scenario *s, struct random *r,
			     struct mortal *m)
{
	struct flow *f;
	unsigned long flags;

	if (!m)
		return s->flow[random_below(r, FLOWS)];
	flags = port_lock(&m->lock);
	atomic64_inc(&m->requests);
	f = m->flow;
	port_unlock(&m->lock, flags);
	return f;
}

static void submit(struct scenario *s, struct random *r, struct test_io *t,
		   struct mortal *m)
{
	static const u32 sizes[] = { 512, 4096, 4096, 65536, 1 << 20 };

	t->mortal = s->workload->deaths && random_once_in(r, 4) ? m : NULL;
	t->io = (struct io){
		.flow = any_flow(s, r, t->mortal),
		.bytes = sizes[random_below(r, ARRAY_SIZE(sizes))],
		.page = random_below(r, 1 << 16),
		.op = (u8)random_below(r, IO_OPS),
	};
	if (s->workload->odd && random_once_in(r, s->workload->odd))
		t->io.flags = random_once_in(r, 2) ? IO_URGENT : IO_POLLED;
	io_move(t, IDLE, WAITING);
	atomic64_inc(&s->submitted);
	host_insert(&s->host, random_below(r, s->host.sched.nr_queues), &t->io);
}

static void leave_device(struct scenario *s, struct test_io *t,
			 enum io_state to)
{
	io_move(t, DEVICE, to);
	if (t->counted)
		atomic64_dec(&s->slots[domain_of(s, &t->io)]);
	t->counted = false;
}

/* False when the device is empty. */
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
	host_complete(&s->host, io);
	if (test_io_of(io)->mortal)
		atomic64_dec(&test_io_of(io)->mortal->requests);
	atomic64_set_release(&test_io_of(io)->state, IDLE);
	atomic64_inc(&s->completed);
	return true;
}

static void tune(struct scenario *s, struct random *r)
{
	const struct sched_ops *ops = s->host.sched.ops;
	struct sched_params params = s->host.sched.params, *p = &params;
	u32 period_ms;

	if (random_once_in(r, 2))
		params_flip(ops, p, "work_conserving");
	if (random_once_in(r, 2))
		params_flip(ops, p, "predict");
	if (random_once_in(r, 2)) {
		period_ms = 1 + random_below(r, 50);
		params_set(ops, p, "period_ms", period_ms);
		params_set(ops, p, "interval_ms", period_ms);
	}
	if (random_once_in(r, 2))
		params_set(ops, p, "read_lat_us", 1 + random_below(r, 100000));
	if (random_once_in(r, 2))
		params_flip(ops, p, "single_lock");
	if (random_once_in(r, 4))
		params_flip(ops, p, "total");
	if (random_once_in(r, 8))
		params_set(ops, p, "caps_mbps",
			   params_get(ops, p, "caps_mbps") ? 0 : 100);
	if (random_once_in(r, 2))
		params_set(ops, p, "alpha_pct", random_below(r, 101));
	if (random_once_in(r, 4))
		params_flip(ops, p, "gc_share");
	if (random_once_in(r, 8))
		params.cost.kind = random_below(r, COST_KINDS);
	if (s->workload->isolation)
		params.isolation =
			random_once_in(r, 4) ? 0 : s->workload->isolation;
	host_tune(&s->host, &params);
}

static void slow_work(struct scenario *s, struct random *r)
{
	const struct workload *p = s->workload;
	unsigned long flags;

	atomic64_add(STEP_NS, &s->host.now_ns);
	if (random_once_in(r, 8)) {
		flags = port_lock(&s->slow);
		if (random_once_in(r, 10))
			atomic64_add(FLOW_GRACE_NS / 3, &s->host.now_ns);
		host_tick(&s->host);
		port_unlock(&s->slow, flags);
	}
	if (p->tunes && random_once_in(r, p->tunes)) {
		flags = port_lock(&s->slow);
		tune(s, r);
		port_unlock(&s->slow, flags);
	}
	if (p->weights && random_once_in(r, p->weights))
		host_flow_weigh(&s->host, s->flow[random_below(r, FLOWS)],
				1 + random_below(r, WEIGHT_MAX));
}

/* The member's cgroup is removed, and another made, if nothing is left of it. */
static void bury(struct scenario *s, struct mortal *m, struct random *r)
{
	struct flow *f;
	unsigned long flags;

	if (!s->workload->deaths || !random_once_in(r, s->workload->deaths))
		return;
	f = host_flow_create(&s->host, s->flow[random_below(r, FLOWS)],
			     1 + random_below(r, WEIGHT_MAX));
	flags = port_lock(&m->lock);
	/* Pairs with finish(): its requests are done with the flow. */
	if (!atomic64_read_acquire(&m->requests)) {
		struct flow *old = m->flow;

		m->flow = f;
		f = old;
	}
	port_unlock(&m->lock, flags);
	host_flow_destroy(&s->host, f);
}

static void block_some(struct scenario *s, struct random *r)
{
	u32 queue = random_below(r, s->host.sched.nr_queues);

	if (!s->workload->blocks || !random_once_in(r, s->workload->blocks))
		return;
	if (random_once_in(r, 3))
		host_block(&s->host, queue);
	else
		host_unblock(&s->host, queue);
}

/* ---------------------------------------------- when all members stand still */

static void check_credit(const struct flow *f)
{
	const struct budget_flow *bf = budget_flow_of(f);

	threads_check(bf->granted ==
		      (s64)budget_spent(f) + credit_left(&bf->credit));
}

static u32 requests_from(const struct io *io)
{
	u32 nr = 0;

	for (; io; io = io->next)
		nr++;
	return nr;
}

static u32 requests_in(const struct budget_lane *lane)
{
	u32 nr = 0;

	for (; lane; lane = lane->next)
		nr += requests_from(lane->fifo.head);
	return nr;
}

static void check_waiting(const struct scenario *s, const struct queue *q)
{
	const struct budget_queue *bq = budget_queue_of(q);
	const struct budget_lane *lane;
	u32 runnable = requests_from(q->passing.head), domain;

	for (domain = 0; domain < budget(s)->ops->nr_domains; domain++) {
		threads_check(!slots_forgot(&budget(s)->slots[domain],
					    q->index));
		runnable += requests_in(bq->runnable[domain].head) +
			    requests_in(bq->donors[domain].head);
	}
	threads_check(runnable + requests_in(bq->exhausted.head) +
			      requests_from(q->to_adopt.head) ==
		      q->nr);
	threads_check(!runnable || q->state == DISPATCH_NO_SLOT);
	for (lane = bq->exhausted.head; lane; lane = lane->next)
		threads_check(credit_left(&budget_flow_of(lane->flow)->credit) <=
			      0);
}

static void check_slots(const struct scenario *s, u32 domain)
{
	const struct window *w = &s->host.sched.isolation.window;
	const struct slots *sl = &budget(s)->slots[domain];

	threads_check(slots_used(sl) ==
		      atomic64_read(&s->slots[domain]) + slots_leased(sl));
	threads_check(sl->tree.depth == min(sl->depth, sl->limit));
	threads_check(sl->limit == w->size ||
		      (w->other && sl->limit == w->other));
}

static void check(void *arg)
{
	struct scenario *s = arg;
	u32 i;

	host_check(&s->host);
	for (i = 0; i < budget(s)->ops->nr_domains; i++)
		check_slots(s, i);
	for (i = 0; i < FLOWS; i++)
		check_credit(s->flow[i]);
	for (i = 0; i < s->threads; i++)
		check_credit(s->mortal[i].flow);
	for (i = 0; i < s->host.sched.nr_queues; i++)
		if (!s->host.queue[i].blocked)
			check_waiting(s, &s->host.queue[i].q);
	threads_check(atomic64_read(&s->host.sched.stats.watchdog) == 0);
}

/* Completions and the clock alone must end all requests. */
static void drain(void *arg)
{
	struct scenario *s = arg;
	u32 i;

	check(s);
	for (i = 0; i < s->host.sched.nr_queues; i++)
		host_unblock(&s->host, i);
	for (i = 0; i < PERIODS &&
		    atomic64_read(&s->completed) < atomic64_read(&s->submitted);
	     i++) {
		while (finish(s, &s->random))
			;
		atomic64_add(50 * 1000 * 1000, &s->host.now_ns);
		host_tick(&s->host);
	}
	threads_check(i < PERIODS);
	check(s);
}

/* ------------------------------------------------------------- the members */

static struct test_io *free_io(struct scenario *s, u32 member, struct random *r)
{
	struct test_io *t = &s->io[member * IOS + random_below(r, IOS)];

	return smp_load_acquire(&t->state.counter) == IDLE ? t : NULL;
}

static void work(struct member *me, void *arg)
{
	struct random *r = &me->random;
	struct scenario *s = arg;
	struct mortal *m = &s->mortal[me->index];
	u32 meetings = threads_meetings(MEETINGS), steps = threads_steps(STEPS);
	u32 meeting, i;

	for (meeting = 0; meeting < meetings; meeting++) {
		/* Tides: more comes than goes, and the other way round. */
		u32 submits = meeting % 2 ? 35 : 70;

		for (i = 0; i < steps; i++) {
			struct test_io *t = free_io(s, me->index, r);

			if (t && random_below(r, 100) < submits)
				submit(s, r, t, m);
			else
				finish(s, r);
			slow_work(s, r);
			block_some(s, r);
			bury(s, m, r);
		}
		threads_meet(me, meeting + 1 < meetings ? check : drain, s);
	}
}

/* A drive that tells its map at some times and not at others. */
static bool flow_pages(const struct sched *sched, struct flow *f,
		       struct flow_pages *pages)
{
	const struct host *h = container_of(sched, struct host, sched);
	u64 now = (u64)atomic64_read(&h->now_ns);

	*pages = (struct flow_pages){
		.valid = now % 1009,
		.invalid = now % 101,
		.copied = (u64)atomic64_read(&f->pos) / 8192,
	};
	return now / (10 * FLOW_GRACE_NS) % 2;
}

static bool flash_time(const struct sched *sched, struct flash_time *time)
{
	const struct host *h = container_of(sched, struct host, sched);
	u64 now = (u64)atomic64_read(&h->now_ns);

	*time = (struct flash_time){
		.read_ns = now,
		.write_ns = now / 3,
		.busy_ns = now,
		.planes = 2,
	};
	return now / (7 * FLOW_GRACE_NS) % 2;
}

static void scenario_init(struct scenario *s, const struct workload *workload,
			  struct random *r)
{
	static const u32 weights[FLOWS] = { 1, 100, 250, 1000, 10000 };
	struct topo_place place[MACHINE_QUEUES];
	const struct sched_ops *ops = sched_find(workload->policy);
	struct sched_params params;
	u32 i;

	*s = (struct scenario){ .workload = workload,
				.threads = threads_size() };
	s->random.state = random_next(r);
	s->host.issue = on_issue;
	s->host.arg = s;
	sched_params_init(ops, &params);
	params.isolation = workload->isolation;
	budget_params(&params)->work_conserving = workload->conserving;
	budget_params(&params)->period_ns = workload->period_ms * 1000000;
	params_set(ops, &params, "predict", workload->predict);
	params_set(ops, &params, "total", workload->predict);
	params_set(ops, &params, "gc_share", workload->predict);
	s->host.sched.map.flow_pages = flow_pages;
	s->host.sched.map.flash_time = flash_time;
	host_init(&s->host, workload->policy, &params, place,
		  machine_random(r, place));
	device_init(&s->device, s->threads * IOS);
	port_lock_init(&s->slow);
	s->root = host_flow_create(&s->host, NULL, WEIGHT_DEFAULT);
	for (i = 0; i < FLOWS; i++)
		s->flow[i] = host_flow_create(&s->host,
					      i < 3 ? s->root : s->flow[i - 2],
					      weights[i]);
	threads_check(s->threads <= THREADS_MOST);
	for (i = 0; i < s->threads; i++) {
		port_lock_init(&s->mortal[i].lock);
		s->mortal[i].flow =
			host_flow_create(&s->host, s->root, WEIGHT_DEFAULT);
	}
	s->io = port_zalloc(s->threads * IOS * sizeof(*s->io));
	threads_check(s->io);
}

static void scenario_deinit(struct scenario *s)
{
	u32 i;

	for (i = 0; i < s->threads; i++) {
		host_flow_destroy(&s->host, s->mortal[i].flow);
		port_lock_deinit(&s->mortal[i].lock);
	}
	for (i = FLOWS; i-- > 0;)
		host_flow_destroy(&s->host, s->flow[i]);
	host_flow_destroy(&s->host, s->root);
	port_free(s->io);
	port_lock_deinit(&s->slow);
	device_deinit(&s->device);
	host_deinit(&s->host);
}

int main(void)
{
	static const struct workload workloads[] = {
		{ "kyber-fair", "as published", 0, KYBER_TOTAL, 100, 0, 0, 0, 0,
		  0, 0, 0 },
		{ "kyber-fair", "flow by flow", 0, KYBER_PER_FLOW, 10, 0, 0, 0,
		  0, 0, 0, 0 },
		{ "kyber-fair", "work conserving", 1, KYBER_TOTAL, 100, 0, 0, 0,
		  0, 0, 0, 0 },
		{ "kyber-fair", "short periods", 1, KYBER_TOTAL, 1, 0, 0, 0, 0,
		  0, 0, 0 },
		{ "kyber-fair", "blocked", 1, KYBER_TOTAL, 20, 0, 20, 0, 0, 0,
		  0, 0 },
		{ "kyber-fair", "odd requests", 1, KYBER_TOTAL, 20, 0, 0, 10, 0,
		  10, 0, 0 },
		{ "kyber-fair", "tuned", 1, KYBER_TOTAL, 20, 100, 0, 0, 50, 0,
		  0, 0 },
		{ "kyber-fair", "everything", 1, KYBER_TOTAL, 20, 100, 20, 10,
		  50, 10, 20, 0 },
		{ "wdt", "by the clock", 0, WDT_SUM, 100, 0, 0, 0, 0, 0, 0, 0 },
		{ "wdt", "short intervals", 1, WDT_MEET, 1, 0, 0, 0, 0, 0, 0,
		  0 },
		{ "wdt", "blocked", 1, WDT_SUM, 20, 0, 20, 0, 0, 0, 0, 0 },
		{ "wdt", "odd requests", 1, WDT_SUM, 20, 0, 0, 10, 0, 10, 0,
		  0 },
		{ "wdt", "locks that change", 1, WDT_SUM, 20, 20, 0, 0, 50, 0,
		  0, 0 },
		{ "wdt", "cgroups that go", 1, WDT_SUM, 5, 0, 0, 0, 50, 0, 10,
		  0 },
		{ "wdt", "everything", 1, WDT_SUM, 20, 100, 20, 10, 50, 10, 20,
		  0 },
		{ "hwabc", "until all are out", 0, GC_SHARE_FLOW, 1000, 0, 0, 0,
		  0, 0, 0, 0 },
		{ "hwabc", "work conserving", 1, GC_SHARE_VICTIM, 100, 0, 0, 0,
		  0, 0, 0, 0 },
		{ "hwabc", "cgroups that go", 1, GC_SHARE_FLOW, 5, 0, 0, 0, 50,
		  0, 10, 0 },
		{ "hwabc", "everything", 1, GC_SHARE_VICTIM, 20, 100, 20, 10,
		  50, 10, 20, 0 },
		{ "kyber-fair", "isolated", 1, KYBER_TOTAL, 100, 0, 0, 40, 0,
		  40, 20, 50 },
		{ "wdt", "isolated", 1, WDT_SUM, 100, 0, 0, 40, 0, 40, 0, 50 },
		{ "hwabc", "isolated", 1, GC_SHARE_VICTIM, 100, 0, 0, 0, 0, 0,
		  0, 50 },
	};
	struct random r = random_seeded("mt/budget");
	struct scenario s;
	u64 round, all = 0;
	u32 i, trials;

	for (round = 0; round < random_rounds(1); round++)
		for (i = 0; i < ARRAY_SIZE(workloads); i++) {
			scenario_init(&s, &workloads[i], &r);
			threads_run(s.threads, &r, work, &s);
			trials = s.host.sched.isolation.window.trials;
			printf("%s, %s: %lld requests, %u trials of windows\n",
			       workloads[i].policy, workloads[i].name,
			       atomic64_read(&s.completed), trials);
			fflush(stdout);
			all += trials;
			scenario_deinit(&s);
		}
	threads_seen(all > 0, "a trial of a window");
	return 0;
}
