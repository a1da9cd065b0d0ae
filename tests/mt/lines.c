// SPDX-License-Identifier: GPL-2.0
/*
 * The cache lines that a request makes processors share.
 *
 * Without contention insert, dispatch and complete write only one line that
 * another processor has: that of the flow.  The test counts and names all other
 * shared lines, but for the requests that are samples of the latency.  Once in T bytes a queue of mqfq advances virtual time.  When
 * slots or virtual time are contended, queues use the trees as intended.  The
 * budget schedulers share nothing between two refills.
 */
#include "trace.h"
#include "sched/core/policies.h"
#include "tests/params.h"
#include "sched/budget/budget.h"
#include "sched/mqfq/mqfq.h"
#include "tests/random.h"

#include <string.h>

enum {
	CPUS	= 4,		/* two cores of two sockets */
	BYTES	= 4096,
};

/* The objects that a processor has on its stack or gets from the driver. */
struct cpu {
	struct io io;
	struct io *out;
	struct wake wake;
} __port_cacheline;

struct scenario {
	struct sched sched;
	struct queue *queue[CPUS];
	struct flow *root, *flow[CPUS];
	struct cpu cpu[CPUS];
	u32 rounds;			/* of requests that are watched */
};

struct line_report {
	bool print;
	u32 foreign;		/* shared lines that belong to no flow */
	u32 flows;
};

static bool queue_is_mine(const struct queue *q)
{
	(void)q;
	return true;
}

static void name_flow(const struct flow *f, const char *line, const char *rest,
		      const char *queues)
{
	const char *first = (const char *)f->fq[0];

	trace_name(line, f, offsetof(struct flow, lock));
	trace_name(rest, &f->lock,
		   offsetof(struct flow, fq) - offsetof(struct flow, lock));
	/* flow_size() is one piece, so the queues stand at equal distances. */
	trace_name(queues, first,
		   (size_t)((const char *)f->fq[1] - first) * CPUS);
}

static void name_mqfq(struct scenario *s)
{
	struct mqfq *m = s->sched.own;

	trace_name("virtual time", &m->vt, 64);
	trace_name("ready set", &m->slots.ready, sizeof(m->slots.ready));
	trace_name("throttled set", &m->throttled, sizeof(m->throttled));
	trace_name("token tree", &m->slots.tree.root,
		   sizeof(m->slots.tree.root));
	trace_name("mqfq", m, sizeof(*m));
	trace_name("mindicator", m->tags.node,
		   s->sched.topo.nr_nodes * sizeof(m->tags.node[0]));
	trace_name("token tree", m->slots.tree.leaf,
		   CPUS * sizeof(m->slots.tree.leaf[0]));
	trace_name("wheel", m->wheel.mask,
		   WHEEL_BUCKETS * m->wheel.groups * sizeof(m->wheel.mask[0]));
}

static void name_budget(struct scenario *s)
{
	struct budget *b = s->sched.own;
	u32 i;

	for (i = 0; i < b->ops->nr_domains; i++)
		trace_name("token tree", &b->slots[i].tree.root,
			   sizeof(b->slots[i].tree.root));
	trace_name("budget", b, sizeof(*b));
	trace_name("budget: queues", s->queue[0]->own,
		   CPUS * whole_lines(s->sched.ops->queue_bytes));
	for (i = 0; i < b->ops->nr_domains; i++)
		trace_name("token tree", b->slots[i].tree.leaf,
			   CPUS * sizeof(b->slots[i].tree.leaf[0]));
	for (i = 0; i < CPUS; i++)
		trace_name("flow: credit", flow_own(s->flow[i]),
			   s->sched.ops->flow_bytes);
}

static void name_all(struct scenario *s)
{
	u32 i;

	if (s->sched.ops->ordered)
		name_mqfq(s);
	else
		name_budget(s);
	trace_name("sched", &s->sched, sizeof(s->sched));
	for (i = 0; i < CPUS; i++) {
		trace_name("queue", s->queue[i], sizeof(struct queue));
		name_flow(s->flow[i], "flow: I/O line", "flow: the rest",
			  "flow: per queue");
	}
}

static struct flow *flow_create(struct scenario *s, struct flow *parent)
{
	struct flow *f = port_zalloc(flow_size(s->sched.ops, CPUS));

	port_assert(f);
	flow_init(f, &s->sched, parent, WEIGHT_DEFAULT);
	/* No request is a sample.  Of a fast flow few are: see latency.h. */
	f->latency.mask = ~0U;
	return f;
}

static void scenario_init(struct scenario *s, const char *policy, u32 rounds,
			  u32 threshold)
{
	static const struct topo_place place[CPUS] = {
		{ 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 1 }
	};
	const struct sched_ops *ops = sched_find(policy);
	struct sched_params params;
	u32 i;

	sched_params_init(ops, &params);
	params.isolation = 0;
	params.depth = 64;
	params_put(ops, &params, "threshold_kb", threshold);
	memset(s, 0, sizeof(*s));
	s->rounds = rounds;
	port_queue_is_mine = queue_is_mine;
	for (i = 0; i < CPUS; i++) {
		s->queue[i] = port_zalloc(sizeof(struct queue));
		port_assert(s->queue[i]);
		queue_init(s->queue[i], &s->sched, i);
	}
	s->sched.queue = s->queue;
	s->sched.nr_queues = CPUS;
	port_assert(!sched_init(&s->sched, ops, &params, place));
	s->root = flow_create(s, NULL);
	for (i = 0; i < CPUS; i++)
		s->flow[i] = flow_create(s, s->root);
	name_all(s);
}

static void on_shared(void *arg, const char *name, size_t offset, u32 writers,
		      u32 users)
{
	struct line_report *r = arg;

	if (!strncmp(name, "flow", 4))
		r->flows++;
	else
		r->foreign++;
	if (r->print)
		printf("\t%s + %zu, written by %x of %x\n", name, offset,
		       writers, users);
}

static struct line_report shared(bool print)
{
	struct line_report r = { .print = print };

	trace_shared(on_shared, &r);
	return r;
}

/* One request, from its arrival to its end, on one processor. */
static void request(struct scenario *s, u32 cpu, struct flow *f)
{
	const struct sched_ops *ops = s->sched.ops;
	struct queue *q = s->queue[cpu];
	struct cpu *c = &s->cpu[cpu];

	trace_cpu(cpu);
	c->io = (struct io){ .flow = f, .bytes = BYTES };
	wake_init(&c->wake);
	ops->insert(q, &c->io, 0, &c->wake);
	port_assert(ops->dispatch(q, 0, &c->out, &c->wake) == DISPATCH_IO);
	port_assert(c->out == &c->io);
	/* The host dispatches until the queue is empty. */
	port_assert(ops->dispatch(q, 0, &c->out, &c->wake) == DISPATCH_EMPTY);
	ops->complete(&c->io, 0, &c->wake);
	port_assert(wake_next(&c->wake) == QUEUES_MAX);
	trace_off();
}

static void round_of_requests(struct scenario *s, bool one_flow)
{
	u32 cpu;

	for (cpu = 0; cpu < CPUS; cpu++)
		request(s, cpu, s->flow[one_flow ? 0 : cpu]);
}

/* Each processor has its own flow: within T they share no line. */
static void own_flows(struct scenario *s)
{
	struct line_report r;
	u32 i;

	for (i = 0; i < s->rounds / 8; i++)
		round_of_requests(s, false);
	trace_reset();
	for (i = 0; i < s->rounds; i++)
		round_of_requests(s, false);
	r = shared(true);
	printf("own flows: %u lines shared, %u of flows\n", r.foreign + r.flows,
	       r.flows);
	port_assert(r.foreign == 0 && r.flows == 0);
}

/* All processors have one flow: they share its lines, and no other. */
static void one_flow(struct scenario *s, u32 lines)
{
	struct line_report r;
	u32 i;

	for (i = 0; i < s->rounds / 8; i++)
		round_of_requests(s, true);
	trace_reset();
	for (i = 0; i < s->rounds; i++)
		round_of_requests(s, true);
	r = shared(true);
	printf("one flow: %u lines shared, %u of the flow\n",
	       r.foreign + r.flows, r.flows);
	port_assert(r.foreign == 0);
	/* One has position and backlog, one has credit; queues add none. */
	port_assert(r.flows == lines);
}

/* Beyond T virtual time advances: once in T bytes, not once per request. */
static void long_run(struct scenario *s, u32 threshold)
{
	const u32 rounds = 10 * 1000;
	u32 i, moving = 0, most = (u32)((u64)rounds * CPUS * BYTES / threshold);

	for (i = 0; i < rounds; i++) {
		trace_reset();
		round_of_requests(s, false);
		moving += shared(false).foreign > 0;
	}
	printf("long run: %u of %u rounds share a line, at most %u may\n",
	       moving, rounds, most * 2);
	port_assert(moving > 0 && moving <= most * 2);
}

int main(void)
{
	static const char *const budgets[] = { "kyber-fair", "wdt" };
	static struct scenario s;
	u32 i;

	scenario_init(&s, "mqfq", 64, 8 << 20);
	own_flows(&s);
	one_flow(&s, 1);
	scenario_init(&s, "mqfq", 64, 1 << 20);
	long_run(&s, 1 << 20);
	for (i = 0; i < ARRAY_SIZE(budgets); i++) {
		printf("%s\n", budgets[i]);
		/* They are few: the first grant suffices for all. */
		scenario_init(&s, budgets[i], 8, 0);
		own_flows(&s);
		one_flow(&s, 2);
	}
	return 0;
}
