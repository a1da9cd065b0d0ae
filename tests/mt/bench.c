// SPDX-License-Identifier: GPL-2.0
/*
 * bench - the cost of a request on real processors
 *
 * Each thread plays a processor with its own queue.  It inserts, dispatches and
 * completes.  It completes its requests in flight in order, as soon as it comes
 * round to them, so the drive takes no time.  The program thus measures the
 * scheduler and the host around it, which has a lock and a wake flag per
 * queue.  It reads the clock only at the start and at the end.  A thread with
 * nothing to do yields, so that on a busy machine the thread for which it waits
 * can run.
 *
 *	alone	a flow per thread, ample slots and threshold: threads never meet
 *	shared	one flow for all threads, the same otherwise
 *	scarce	a flow per thread of equal weight, half of the slots that they
 *		could use, and a tight threshold: queues are throttled, woken
 *		and steal all the time
 *
 * The program is linked once with the real structures, and once for each
 * structure that is replaced by a simpler one (ablation/).  The script bench.py
 * runs all of them in turn.  The program prints one line of JSON.
 */
#include "sched/mqfq/mqfq.h"
#include "sched/core/policies.h"
#include "tests/machine.h"

#include <sched.h>
#include <string.h>
#include <time.h>

enum {
	THREADS_MAX	= 64,
	BATCH		= 8,		/* ios per thread, idle or in flight */
	BYTES		= 4096,
	IDLE_SPINS	= 200,		/* before a thread yields */
};

enum workload {
	ALONE,
	SHARED,
	SCARCE,
	WORKLOADS,
};

static const char *const workload_names[WORKLOADS] = {
	[ALONE] = "alone", [SHARED] = "shared", [SCARCE] = "scarce",
};

/* A queue lock as in a kernel: it spins, and is cheap without contention. */
struct spin {
	atomic64_t taken;
};

static void spin_pause(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

static void spin_lock(struct spin *l)
{
	while (atomic64_xchg(&l->taken, 1))
		while (atomic64_read(&l->taken))
			spin_pause();
}

static void spin_unlock(struct spin *l)
{
	atomic64_set_release(&l->taken, 0);
}

/* A processor.  Its thread alone uses it, except for wakes_left. */
struct cpu {
	atomic64_t wakes_left __port_cacheline;
	struct spin lock __port_cacheline;	/* of the queue */
	struct queue q;
	struct io io[BATCH];
	struct io *idle[BATCH];
	struct io *flight[BATCH];	/* ring */
	u32 nr_idle, first, nr_flight;
	struct flow *flow;
	struct bench *bench;
	u64 done, wakes, looks;
	u64 poll_at_ns, cpu_ns;
} __port_cacheline;

struct bench {
	struct sched sched;
	struct cpu *cpu;
	struct queue **index;
	struct flow *root;
	enum workload workload;
	u32 threads;
	bool serial;		/* one lock around every call */
	u64 poll_ns;		/* throttled queues look by themselves */
	struct spin one __port_cacheline;
	atomic64_t stop __port_cacheline;
	pthread_barrier_t barrier;
};

static u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

static u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void enter(struct cpu *c)
{
	if (c->bench->serial)
		spin_lock(&c->bench->one);
	else
		spin_lock(&c->lock);
}

static void leave(struct cpu *c)
{
	if (c->bench->serial)
		spin_unlock(&c->bench->one);
	else
		spin_unlock(&c->lock);
}

static void act(struct cpu *c, struct wake *wake)
{
	u32 queue;

	while ((queue = wake_next(wake)) != QUEUES_MAX) {
		c->wakes++;
		atomic64_set_release(&c->bench->cpu[queue].wakes_left, 1);
	}
}

/* The queue lock is held. */
static void dispatch(struct cpu *c, struct wake *wake)
{
	const struct sched_ops *ops = c->bench->sched.ops;
	enum dispatch_result result;
	struct io *io;

	c->looks++;
	while ((result = ops->dispatch(&c->q, 0, &io, wake)) == DISPATCH_IO)
		c->flight[(c->first + c->nr_flight++) % BATCH] = io;
	if (c->bench->poll_ns && result == DISPATCH_THROTTLED)
		c->poll_at_ns = now_ns() + c->bench->poll_ns;
	else
		c->poll_at_ns = 0;
}

/* Inserts all idle ios and dispatches, under one lock as the kernel does. */
static void submit(struct cpu *c)
{
	const struct sched_ops *ops = c->bench->sched.ops;
	struct wake wake;

	wake_init(&wake);
	enter(c);
	while (c->nr_idle) {
		struct io *io = c->idle[--c->nr_idle];

		*io = (struct io){ .flow = c->flow, .bytes = BYTES };
		ops->insert(&c->q, io, 0, &wake);
	}
	dispatch(c, &wake);
	leave(c);
	act(c, &wake);
}

static void run(struct cpu *c)
{
	struct wake wake;

	wake_init(&wake);
	enter(c);
	dispatch(c, &wake);
	leave(c);
	act(c, &wake);
}

static void complete(struct cpu *c)
{
	struct io *io = c->flight[c->first];
	struct wake wake;

	c->first = (c->first + 1) % BATCH;
	c->nr_flight--;
	wake_init(&wake);
	if (c->bench->serial)
		spin_lock(&c->bench->one);
	c->bench->sched.ops->complete(io, 0, &wake);
	if (c->bench->serial)
		spin_unlock(&c->bench->one);
	act(c, &wake);
	c->idle[c->nr_idle++] = io;
	c->done++;
}

static bool poll_due(const struct cpu *c)
{
	return c->poll_at_ns && now_ns() >= c->poll_at_ns;
}

/* Returns false when there was nothing to do. */
static bool step(struct cpu *c)
{
	bool busy = c->nr_flight || c->nr_idle;

	if (c->nr_flight)
		complete(c);
	if (c->nr_idle)
		submit(c);
	if (atomic64_read_acquire(&c->wakes_left)) {
		atomic64_set(&c->wakes_left, 0);
		run(c);
		return true;
	}
	if (poll_due(c)) {
		run(c);
		return true;
	}
	return busy;
}

static void *thread(void *arg)
{
	struct cpu *c = arg;
	u32 spins = 0;

	pthread_barrier_wait(&c->bench->barrier);
	while (!atomic64_read(&c->bench->stop)) {
		if (step(c))
			spins = 0;
		else if (++spins % IDLE_SPINS)
			spin_pause();
		else
			sched_yield();
	}
	c->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static struct flow *flow_create(struct bench *b, struct flow *parent)
{
	struct flow *f = port_zalloc(flow_size(b->sched.ops, b->threads));

	port_assert(f);
	flow_init(f, &b->sched, parent, WEIGHT_DEFAULT);
	return f;
}

/* A guess at this machine: two threads per core, eight cores per socket. */
static void places(struct topo_place *place, u32 threads)
{
	u32 i;

	for (i = 0; i < threads; i++)
		place[i] =
			(struct topo_place){ .core = i / 2, .socket = i / 16 };
}

static void bench_init(struct bench *b)
{
	struct sched_params params = {
		.depth = b->workload == SCARCE ?
				 max(1U, b->threads * BATCH / 2) :
				 DEPTH_MAX,
	};
	struct topo_place place[THREADS_MAX];
	u32 i, j;

	mqfq_params(&params)->threshold = b->workload == SCARCE ? 16 * BYTES :
								  1 << 26;
	b->cpu = port_zalloc(b->threads * sizeof(*b->cpu));
	b->index = port_zalloc(b->threads * sizeof(*b->index));
	port_assert(b->cpu && b->index);
	for (i = 0; i < b->threads; i++) {
		queue_init(&b->cpu[i].q, &b->sched, i);
		b->index[i] = &b->cpu[i].q;
	}
	b->sched.queue = b->index;
	b->sched.nr_queues = b->threads;
	places(place, b->threads);
	if (sched_init(&b->sched, sched_find("mqfq"), &params, place))
		abort();
	b->root = flow_create(b, NULL);
	for (i = 0; i < b->threads; i++) {
		struct cpu *c = &b->cpu[i];

		c->bench = b;
		c->flow = i && b->workload == SHARED ? b->cpu[0].flow :
						       flow_create(b, b->root);
		for (j = 0; j < BATCH; j++)
			c->idle[c->nr_idle++] = &c->io[j];
	}
	pthread_barrier_init(&b->barrier, NULL, b->threads + 1);
}

static u64 sum_done(const struct bench *b)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < b->threads; i++)
		sum += READ_ONCE(b->cpu[i].done);
	return sum;
}

/* Spread of the threads' counts over their mean; all shares are equal. */
static double spread(const struct bench *b)
{
	u64 least = ~0ULL, most = 0;
	u32 i;

	for (i = 0; i < b->threads; i++) {
		least = min(least, b->cpu[i].done);
		most = max(most, b->cpu[i].done);
	}
	return (double)(most - least) * b->threads / (double)sum_done(b);
}

static void measure(struct bench *b, u64 milliseconds, const char *name)
{
	const struct timespec span = {
		.tv_sec = (time_t)(milliseconds / 1000),
		.tv_nsec = (long)(milliseconds % 1000) * 1000000,
	};
	pthread_t threads[THREADS_MAX];
	struct mqfq *m = b->sched.own;
	u64 from, ns, ops, cpu_ns = 0, wakes = 0, looks = 0;
	u32 i;

	for (i = 0; i < b->threads; i++)
		if (pthread_create(&threads[i], NULL, thread, &b->cpu[i]))
			abort();
	pthread_barrier_wait(&b->barrier);
	from = now_ns();
	nanosleep(&span, NULL);
	atomic64_set(&b->stop, 1);
	ns = now_ns() - from;
	for (i = 0; i < b->threads; i++) {
		pthread_join(threads[i], NULL);
		wakes += b->cpu[i].wakes;
		looks += b->cpu[i].looks;
		cpu_ns += b->cpu[i].cpu_ns;
	}
	ops = sum_done(b);
	printf("{\"variant\": \"%s\", \"workload\": \"%s\", \"threads\": %u, "
	       "\"ops_per_s\": %.0f, \"cpu_ns_per_op\": %.1f, "
	       "\"kicks_per_op\": %.4f, \"looks_per_op\": %.4f, "
	       "\"turns_per_op\": %.4f, \"spread\": %.4f}\n",
	       name, workload_names[b->workload], b->threads,
	       (double)ops * 1e9 / (double)ns, (double)cpu_ns / (double)ops,
	       (double)wakes / (double)ops, (double)looks / (double)ops,
	       (double)atomic64_read(&m->wheel.turns) / (double)ops, spread(b));
}

static enum workload workload_named(const char *name)
{
	u32 i;

	for (i = 0; i < WORKLOADS; i++)
		if (!strcmp(workload_names[i], name))
			break;
	return i;
}

static int usage(const char *program)
{
	fprintf(stderr,
		"%s: alone|shared|scarce THREADS MILLISECONDS VARIANT "
		"[serial] [poll=NANOSECONDS]\n",
		program);
	return 2;
}

int main(int argc, char **argv)
{
	static struct bench b;
	int i;

	if (argc < 5)
		return usage(argv[0]);
	b.workload = workload_named(argv[1]);
	b.threads = (u32)strtoul(argv[2], NULL, 10);
	if (b.workload == WORKLOADS || !b.threads || b.threads > THREADS_MAX)
		return usage(argv[0]);
	for (i = 5; i < argc; i++) {
		if (!strcmp(argv[i], "serial"))
			b.serial = true;
		else if (!strncmp(argv[i], "poll=", 5))
			b.poll_ns = strtoull(argv[i] + 5, NULL, 10);
		else
			return usage(argv[0]);
	}
	bench_init(&b);
	measure(&b, strtoull(argv[3], NULL, 10), argv[4]);
	return 0;
}
