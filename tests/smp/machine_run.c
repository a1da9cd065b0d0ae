// SPDX-License-Identifier: GPL-2.0
/*
 * machine_run - requests per second of a scheduler on a simulated machine
 *
 * Each CPU has a queue and a flow, keeps DEPTH requests of 1 KiB, and submits
 * another one for each that completes.  The drive serves 4 million requests a
 * second, as the target over the network in Hedayati et al.  A request costs
 * the CPU the instructions of the block layer, and what the scheduler does.
 *
 *	none	no scheduler: requests go to the drive at once
 *	serial	one lock for the insert and dispatch of all queues, with the code
 *		between block layer and scheduler
 *
 * CPU 0 has the timer for tick.  A hook that asks for an earlier time interrupts
 * it.
 *
 * It prints one line of JSON.
 */
#include "machine.h"
#include "sched/core/policies.h"
#include "sched/budget/budget.h"
#include "sched/mqfq/mqfq.h"
#include "tests/params.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	BYTES		= 1024,
	DEPTH		= 128,		/* requests of a CPU */
	HOT		= 8,		/* names in the output */
	RUN		= DEPTH * 2,	/* completions under way, a power of two */
};

#define NO_TICK	((s64)(~0ULL >> 1))

#define US	1000000ULL		/* picoseconds */

struct options {
	const struct machine *machine;
	const char *policy, *variant;
	u32 cpus, slots, threshold_kib, ms;
	bool none, serial, clusters, single_lock, flat;
	u64 poll_ps, stack_ps, host_ps, command_ps, latency_ps;
};

/* A CPU and its queue.  Other CPUs use only the first line. */
struct host_cpu {
	atomic64_t wake __port_cacheline;	/* 1: interrupted */
	struct queue_set forward;		/* queues that it wakes first */
	u64 wake_at;
	struct port_lock lock __port_cacheline;	/* of the queue */
	struct queue q;
	struct io io[DEPTH];
	struct io *idle[DEPTH];
	u32 nr_idle;
	struct {
		struct io *io;
		u64 at;
	} done[RUN];			/* completions, in order of time */
	u32 first, nr_done;
	u64 poll_at;			/* 0: not throttled */
	struct flow *flow;
	u64 completed, counted_from;
	u64 wakes, looks, hooks_ps;
} __port_cacheline;

static struct bench {
	struct options o;
	struct sched sched;
	struct host_cpu *cpu;
	struct queue **index;
	struct port_lock *one;
	atomic64_t tick_ns __port_cacheline;	/* of the timer */
	u64 warm_ps, end_ps, command_free_ps;
	u64 done_from[CPUS_MAX];
} *b;

static bool queue_is_mine(const struct queue *q)
{
	return port_lock_is_mine(b->o.serial ?
					 b->one :
					 &container_of(q, struct host_cpu, q)
						  ->lock);
}

/*
 * The drive takes one command at a time.  It is no CPU: the compiler reports no
 * access here, so this takes no time and no other CPU comes between.
 */
__attribute__((no_sanitize("thread"))) static void
drive_start(struct host_cpu *c, struct io *io)
{
	u64 starts = max(machine_now(), b->command_free_ps);
	u32 last = (c->first + c->nr_done++) % RUN;

	port_assert(c->nr_done <= RUN);
	b->command_free_ps = starts + b->o.command_ps;
	c->done[last].io = io;
	c->done[last].at = b->command_free_ps + b->o.latency_ps;
}

/* Arms the timer for @ns, unless it is armed for an earlier time. */
static void arm(u64 ns)
{
	s64 armed = atomic64_read(&b->tick_ns);

	while ((u64)armed > ns)
		if (atomic64_try_cmpxchg(&b->tick_ns, &armed, (s64)ns)) {
			machine_interrupt(0, ns * 1000);
			return;
		}
}

/* Interrupts the CPU of @queue, which wakes @others of @wake before it runs. */
static void wake_with(struct host_cpu *c, u32 queue, u32 others,
		      struct wake *wake)
{
	struct host_cpu *to = &b->cpu[queue];
	u32 other;

	c->wakes++;
	for (; others && (other = wake_next(wake)) != QUEUES_MAX; others--)
		queue_set_add(&to->forward, other);
	if (atomic64_xchg(&to->wake, 1))
		return;
	if (to != c)
		machine_spend(b->o.machine->interrupt_send_ps);
	to->wake_at = machine_now();
	machine_interrupt(queue, to->wake_at);
}

/* Does as the hooks ask: runs queues and arms the timer. */
static void act(struct host_cpu *c, struct wake *wake)
{
	u32 queue, part = b->o.flat ? 1 : wake_part(wake);

	if (wake->at_ns)
		arm(wake->at_ns);
	while ((queue = wake_next(wake)) != QUEUES_MAX)
		wake_with(c, queue, part - 1, wake);
}

static void wake_also(void *wake, u32 queue)
{
	wake_queue(wake, queue);
}

/* Wakes the queues that a hook has left to this CPU. */
static void pass_on(struct host_cpu *c)
{
	struct wake wake;

	if (!queue_set_any(&c->forward, b->o.cpus))
		return;
	wake_init(&wake);
	queue_set_drain(&c->forward, b->o.cpus, wake_also, &wake);
	act(c, &wake);
}

static struct port_lock *lock_of(struct host_cpu *c)
{
	return b->o.serial ? b->one : &c->lock;
}

static void dispatch(struct host_cpu *c, struct wake *wake)
{
	enum dispatch_result result;
	struct io *io;

	c->looks++;
	while ((result = b->sched.ops->dispatch(&c->q, machine_now() / 1000,
						&io, wake)) == DISPATCH_IO)
		drive_start(c, io);
	c->poll_at = b->o.poll_ps && result == DISPATCH_THROTTLED ?
			     machine_now() + b->o.poll_ps :
			     0;
}

static void submit(struct host_cpu *c)
{
	struct io *io = c->idle[--c->nr_idle];
	unsigned long flags;
	struct wake wake;

	*io = (struct io){ .flow = c->flow, .bytes = BYTES };
	machine_spend(b->o.stack_ps * 5 / 7);
	if (b->o.none) {
		drive_start(c, io);
		return;
	}
	wake_init(&wake);
	flags = port_lock(lock_of(c));
	machine_spend(b->o.host_ps);
	b->sched.ops->insert(&c->q, io, machine_now() / 1000, &wake);
	dispatch(c, &wake);
	port_unlock(lock_of(c), flags);
	act(c, &wake);
}

static void run(struct host_cpu *c)
{
	unsigned long flags;
	struct wake wake;

	wake_init(&wake);
	flags = port_lock(lock_of(c));
	dispatch(c, &wake);
	port_unlock(lock_of(c), flags);
	act(c, &wake);
}

static void complete(struct host_cpu *c)
{
	struct io *io = c->done[c->first].io;
	struct wake wake;

	c->first = (c->first + 1) % RUN;
	c->nr_done--;
	machine_spend(b->o.stack_ps * 2 / 7);
	if (!b->o.none) {
		wake_init(&wake);
		b->sched.ops->complete(io, machine_now() / 1000, &wake);
		act(c, &wake);
	}
	c->idle[c->nr_idle++] = io;
	c->completed++;
}

static void tick(struct host_cpu *c)
{
	struct wake wake;

	atomic64_xchg(&b->tick_ns, NO_TICK);
	machine_spend(b->o.machine->interrupt_take_ps);
	wake_init(&wake);
	b->sched.ops->tick(&b->sched, machine_now() / 1000, &wake);
	act(c, &wake);
}

static bool tick_is_due(const struct host_cpu *c)
{
	return c == b->cpu &&
	       (u64)atomic64_read(&b->tick_ns) <= machine_now() / 1000;
}

/* The time of the next event of @c, or the end. */
static u64 next_event(const struct host_cpu *c)
{
	u64 at = b->end_ps, tick_ns;

	if (c == b->cpu) {
		tick_ns = (u64)atomic64_read(&b->tick_ns);
		if (tick_ns < at / 1000)
			at = tick_ns * 1000 + 1000;
	}

	if (c->nr_done)
		at = min(at, c->done[c->first].at);
	if (c->poll_at)
		at = min(at, c->poll_at);
	return at;
}

static void step(struct host_cpu *c)
{
	u64 now = machine_now();

	if (!b->o.none && tick_is_due(c)) {
		tick(c);
	} else if (atomic64_read_acquire(&c->wake)) {
		atomic64_xchg(&c->wake, 0);
		machine_spend(b->o.machine->interrupt_take_ps);
		pass_on(c);
		run(c);
	} else if (c->poll_at && c->poll_at <= now) {
		machine_spend(b->o.machine->interrupt_take_ps);
		run(c);
	} else if (c->nr_done && c->done[c->first].at <= now) {
		complete(c);
	} else if (c->nr_idle) {
		submit(c);
	} else {
		machine_sleep(next_event(c));
	}
}

static void work(u32 cpu, void *arg)
{
	struct host_cpu *c = &b->cpu[cpu];
	bool warm = false;

	(void)arg;
	while (machine_now() < b->end_ps) {
		step(c);
		if (warm || machine_now() < b->warm_ps)
			continue;
		warm = true;
		b->done_from[cpu] = c->completed;
	}
}

/* ------------------------------------------------------------------- results */

static double all_done;

static void print_hot(const char *name, u64 ps)
{
	static bool more;

	printf("%s\"%s\": %.1f", more ? ", " : "", name,
	       (double)ps / 1000 / all_done);
	more = true;
}

static void report(void)
{
	struct machine_counts sum = { 0 };
	double span = (double)(b->end_ps - b->warm_ps) / 1e12;
	double done = 0, squares = 0, all = 0, wakes = 0, looks = 0;
	u32 i, d;

	for (i = 0; i < b->o.cpus; i++) {
		const struct machine_counts *c = machine_counts(i);
		double mine = (double)(b->cpu[i].completed - b->done_from[i]);

		done += mine;
		squares += mine * mine;
		all += (double)b->cpu[i].completed;
		wakes += (double)b->cpu[i].wakes;
		looks += (double)b->cpu[i].looks;
		sum.accesses += c->accesses;
		sum.locked += c->locked;
		for (d = 0; d < DISTANCES; d++)
			sum.misses[d] += c->misses[d];
		sum.busy_ps += c->busy_ps;
		sum.lock_ps += c->lock_ps;
	}
	printf("{\"machine\": \"%s\", \"variant\": \"%s\", \"cpus\": %u, "
	       "\"requests_per_s\": %.0f, \"jain\": %.4f, "
	       "\"accesses\": %.1f, \"locked\": %.2f, "
	       "\"misses\": [%.3f, %.3f, %.3f, %.3f], "
	       "\"line_wait_ns\": %.1f, \"lock_wait_ns\": %.1f, "
	       "\"wakes\": %.3f, \"looks\": %.3f, \"hot\": {",
	       b->o.machine->name, b->o.variant, b->o.cpus, done / span,
	       squares > 0 ? done * done / (squares * b->o.cpus) : 0,
	       (double)sum.accesses / all, (double)sum.locked / all,
	       (double)sum.misses[SAME_CORE] / all,
	       (double)sum.misses[SAME_CLUSTER] / all,
	       (double)sum.misses[SAME_SOCKET] / all,
	       (double)sum.misses[OTHER_SOCKET] / all,
	       (double)sum.busy_ps / 1000 / all,
	       (double)sum.lock_ps / 1000 / all, wakes / all, looks / all);
	all_done = all;
	machine_hot(HOT, print_hot);
	printf("}}\n");
}

/* -------------------------------------------------------------------- set-up */

static struct flow *flow_create(struct flow *parent)
{
	struct flow *f = port_zalloc(flow_size(b->sched.ops, b->o.cpus));

	flow_init(f, &b->sched, parent, WEIGHT_DEFAULT);
	return f;
}

static void name_budget_lines(void)
{
	struct budget *own = b->sched.own;
	struct slots *sl = own->slots;

	machine_name("budget", own, offsetof(struct budget, slots));
	machine_name("ready set", &sl->ready, sizeof(sl->ready));
	machine_name("slots: leaves", sl->tree.leaf,
		     b->o.cpus * sizeof(*sl->tree.leaf));
	machine_name("slots: root", &sl->tree.root, sizeof(sl->tree.root));
	machine_name("slots: tree", &sl->tree,
		     offsetof(struct token_tree, root));
	machine_name("queues: budget", b->cpu[0].q.own,
		     b->o.cpus * whole_lines(b->sched.ops->queue_bytes));
}

static void name_lines(void)
{
	struct mqfq *m = b->sched.own;
	const struct topology *t = &b->sched.topo;

	machine_name("stats", &b->sched.stats, sizeof(b->sched.stats));
	machine_name("sched", &b->sched, offsetof(struct sched, stats));
	if (!b->sched.ops->ordered) {
		name_budget_lines();
		return;
	}
	machine_name("virtual time", &m->vt, sizeof(m->vt));
	machine_name("ready set", &m->slots.ready, sizeof(m->slots.ready));
	machine_name("queues", b->cpu[0].q.own,
		     b->o.cpus * whole_lines(b->sched.ops->queue_bytes));
	if (m->wheel.mask) /* polling needs no wheel */
		machine_name("wheel", m->wheel.mask,
			     8 * WHEEL_BUCKETS * m->wheel.groups);
	machine_name("wheel turned", &m->wheel, sizeof(m->wheel));
	machine_name("tags: leaves", m->tags.node,
		     t->nr_queues * sizeof(*m->tags.node));
	machine_name("tags: inner nodes", &m->tags.node[t->nr_queues],
		     (t->nr_nodes - t->nr_queues - 1) * sizeof(*m->tags.node));
#ifdef TOKEN_TREE_REPLACED
	if (m->slots.tree.leaf) /* the counter has its root alone */
		machine_name("slots", m->slots.tree.leaf,
			     (b->o.slots + 63) / 64 *
				     sizeof(*m->slots.tree.leaf));
#else
	machine_name("slots: leaves", m->slots.tree.leaf,
		     t->nr_queues * sizeof(*m->slots.tree.leaf));
#endif
	machine_name("slots: root", &m->slots.tree.root,
		     sizeof(m->slots.tree.root));
	machine_name("tags: root", &m->tags.node[t->root],
		     sizeof(*m->tags.node));
}

static void set_threshold(const struct sched_ops *ops, struct sched_params *p)
{
	const struct tunable *t = tunable_find(ops->tunables, "threshold_kb");

	if (!t)
		return;
	if (b->o.threshold_kib)
		tunable_put(t, p, b->o.threshold_kib << 10);
	else
		tunables_set_auto(ops->tunables, BIT_ULL(t - ops->tunables), 0,
				  p);
}

static void set_up(void)
{
	struct topo_place place[CPUS_MAX];
	struct sched_params params;
	const struct sched_ops *ops = sched_find(b->o.policy);
	u32 core[CPUS_MAX], cluster[CPUS_MAX], socket[CPUS_MAX], i, j;
	struct flow *root;

	port_queue_is_mine = queue_is_mine;
	b->cpu = port_zalloc(b->o.cpus * sizeof(*b->cpu));
	b->index = port_zalloc(b->o.cpus * sizeof(*b->index));
	b->one = port_zalloc(sizeof(*b->one));
	for (i = 0; i < b->o.cpus; i++) {
		queue_init(&b->cpu[i].q, &b->sched, i);
		b->index[i] = &b->cpu[i].q;
	}
	b->sched.queue = b->index;
	b->sched.nr_queues = b->o.cpus;
	machine_places(b->o.machine, b->o.cpus, core, cluster, socket);
	for (i = 0; i < b->o.cpus; i++)
		place[i] = (struct topo_place){
			core[i],
			b->o.clusters ? cluster[i] : socket[i],
		};
	sched_params_init(ops, &params);
	params.isolation = 0;
	params.depth = b->o.slots;
	set_threshold(ops, &params);
	params_put(ops, &params, "single_lock", b->o.single_lock);
	if (sched_init(&b->sched, ops, &params, place))
		abort();
	atomic64_set(&b->tick_ns, NO_TICK);
	name_lines();
	machine_name("hosts", b->cpu, b->o.cpus * sizeof(*b->cpu));
	root = flow_create(NULL);
	for (i = 0; i < b->o.cpus; i++) {
		struct host_cpu *c = &b->cpu[i];

		c->flow = flow_create(root);
		machine_name("flows", c->flow, flow_size(ops, b->o.cpus));
		for (j = 0; j < DEPTH; j++)
			c->idle[c->nr_idle++] = &c->io[j];
	}
}

/* ------------------------------------------------------------------ options */

static int usage(const char *program)
{
	fprintf(stderr,
		"usage: %s [NAME=VALUE...]\n"
		"  machine=NAME     %s\n"
		"  cpus=N           1 to the CPUs of the machine, default 1\n"
		"  policy=NAME      scheduler, default mqfq; none: no scheduler\n"
		"  variant=NAME     the name of the run in the output\n"
		"  serial=1         one lock for all queues\n"
		"  single_lock=1    that tunable of wdt: one lock for all credit\n"
		"  flat=1           a hook wakes all queues by itself\n"
		"  clusters=1       the topology has clusters for sockets\n"
		"  slots=N          D, default 128\n"
		"  threshold_kib=N  T, default auto\n"
		"  poll_ns=N        throttled queues look by themselves\n"
		"  stack_ns=N       of a request without scheduler, default 2800\n"
		"  host_ns=N        of the code between block layer and scheduler\n"
		"  drive=N          commands per second in thousands, default 4000\n"
		"  ms=N             simulated time, default 10\n",
		program, machine_names());
	return 2;
}

static bool number(const char *text, u64 least, u64 most, u64 *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno &&
	       *value >= least && *value <= most;
}

static bool set_number(struct options *o, const char *name, u64 n)
{
	if (!strcmp(name, "cpus"))
		o->cpus = (u32)n;
	else if (!strcmp(name, "serial"))
		o->serial = n;
	else if (!strcmp(name, "single_lock"))
		o->single_lock = n;
	else if (!strcmp(name, "clusters"))
		o->clusters = n;
	else if (!strcmp(name, "flat"))
		o->flat = n;
	else if (!strcmp(name, "slots"))
		o->slots = (u32)n;
	else if (!strcmp(name, "threshold_kib"))
		o->threshold_kib = (u32)n;
	else if (!strcmp(name, "poll_ns"))
		o->poll_ps = n * 1000;
	else if (!strcmp(name, "stack_ns"))
		o->stack_ps = n * 1000;
	else if (!strcmp(name, "host_ns"))
		o->host_ps = n * 1000;
	else if (!strcmp(name, "drive"))
		o->command_ps = 1000000000 / max(n, 1ULL);
	else if (!strcmp(name, "ms"))
		o->ms = (u32)n;
	else
		return false;
	return true;
}

/* Returns false if @text is no option or its value is out of range. */
static bool set_option(struct options *o, char *text)
{
	char *value = strchr(text, '=');
	u64 n;

	if (!value)
		return false;
	*value++ = 0;
	if (!strcmp(text, "machine"))
		return (o->machine = machine_find(value));
	if (!strcmp(text, "variant")) {
		o->variant = value;
		return true;
	}
	if (!strcmp(text, "policy")) {
		o->none = !strcmp(value, "none");
		o->policy = o->none ? "mqfq" : value;
		return sched_find(o->policy);
	}
	return number(value, 0, 1 << 24, &n) && set_number(o, text, n);
}

static bool in_range(const struct options *o)
{
	const struct machine *m = o->machine;

	return o->cpus >= 1 &&
	       o->cpus <= m->sockets * m->clusters * m->cores * m->threads &&
	       o->slots >= DEPTH_MIN && o->slots <= DEPTH_MAX && o->ms >= 1 &&
	       o->ms <= 10000;
}

int main(int argc, char **argv)
{
	struct options o = {
		.machine = machine_find("two-sockets"),
		.policy = "mqfq",
		.variant = "mqfq",
		.cpus = 1,
		.slots = 128,
		.ms = 10,
		.stack_ps = 2800 * 1000,
		.host_ps = 355 * 1000,
		.command_ps = 250 * 1000,
		.latency_ps = 18 * US,
	};
	int i;

	for (i = 1; i < argc; i++)
		if (!set_option(&o, argv[i]))
			return usage(argv[0]);
	if (!in_range(&o))
		return usage(argv[0]);
	b = port_zalloc(sizeof(*b));
	b->o = o;
	b->end_ps = o.ms * 1000 * US;
	b->warm_ps = b->end_ps / 5;
	set_up();
	machine_run(o.machine, o.cpus, work, NULL);
	report();
	return 0;
}
