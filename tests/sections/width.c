// SPDX-License-Identifier: GPL-2.0
/*
 * width - whether a request costs more if its hardware queue has more CPUs
 *
 * A drive with one hardware queue has a queue of the scheduler for each CPU of
 * the machine.  This program plays the host of such a drive, as kernel/stage.c
 * does.  Tasks on four CPUs ask for more slots than there are, and the drive
 * serves them in order of arrival.  The program counts the accesses to memory in
 * insert, dispatch and complete, for eight CPUs and for 128.  With 128 a request
 * may have PERCENT_MOST more of them; otherwise the status is 1.  A set of queues
 * has a word for each 64 CPUs (queue_set.h), so 128 CPUs cost one more word.
 *
 * mqfq and ifq may have CORE_MOST more for each core of a socket.  A queue that
 * withdraws the least tag of its socket reads the tags of the socket's cores
 * (mindicator.h), once in T bytes.
 *
 *	width mqfq
 *
 * tick is left out: it looks at all queues, every 50 ms.
 */
#include "meter.h"
#include "sched/core/flow.h"
#include "sched/core/policies.h"
#include "sched/core/queue.h"

#include <stdio.h>

enum {
	USED		= 4,		/* CPUs with tasks */
	FEW		= 8,
	MANY		= 128,
	SLOTS		= 8,
	FLOWS		= 3,
	DEPTH		= 16,		/* requests of a flow on each of the four */
	IOS		= FLOWS * USED * DEPTH,
	BYTES		= 4096,
	SERVICE_NS	= 50000,
	RUN		= 40000,	/* requests */
	PERCENT_MOST	= 8,
	CORES_MORE	= (MANY - FEW) / 4,	/* of a socket */
	CORE_MOST	= 6,
};

/* One hardware queue, with the queues of all CPUs. */
static struct hctx {
	struct sched sched;
	struct queue queue[MANY], *index[MANY];
	struct flow *root, *flow[FLOWS];
	struct io io[IOS];
	struct queue *submits[IOS];	/* the queue of the io's CPU */
	struct io *out[IOS];		/* in the drive, a ring */
	u32 first, nr_out, turn;
	u64 now, tick_ns, work;
	bool woken;
} h;

/* port.h calls these at locks. */
void section_begins(void)
{
}

void section_ends(const char *function, int line)
{
	(void)function;
	(void)line;
}

/* There is one thread, so each queue is the caller's. */
void port_assert_queue_held(const struct queue *queue)
{
	(void)queue;
}

static void act(struct wake *wake)
{
	while (wake_next(wake) != QUEUES_MAX)
		h.woken = true;
	if (wake->at_ns && (!h.tick_ns || wake->at_ns < h.tick_ns))
		h.tick_ns = wake->at_ns;
}

static enum dispatch_result ask(struct queue *q)
{
	struct wake wake;
	struct io *io;
	u64 before;
	enum dispatch_result result;

	wake_init(&wake);
	before = meter_now();
	result = h.sched.ops->dispatch(q, h.now, &io, &wake);
	h.work += meter_now() - before;
	if (result == DISPATCH_IO) {
		port_assert(h.nr_out < IOS);
		h.out[(h.first + h.nr_out++) % IOS] = io;
	}
	act(&wake);
	return result;
}

/* As dispatch_least() of kernel/stage.c. */
static bool stage_least(void)
{
	struct queue *next, *last = NULL;
	enum dispatch_result result;
	u32 i;

	for (;;) {
		next = NULL;
		for (i = 0; i < USED; i++) {
			struct queue *q = &h.queue[i];

			if (q->nr && (!next || vtime_before(q->head_tag,
							    next->head_tag)))
				next = q;
		}
		if (!next || next == last)
			return false;
		result = ask(next);
		if (result != DISPATCH_THROTTLED)
			return result == DISPATCH_IO;
		last = next;
	}
}

/* As dispatch_in_turn() of kernel/stage.c. */
static bool stage_in_turn(void)
{
	u32 i, at;

	for (i = 0; i < USED; i++) {
		at = (h.turn + i) % USED;
		if (h.queue[at].nr && ask(&h.queue[at]) == DISPATCH_IO) {
			h.turn = (at + 1) % USED;
			return true;
		}
	}
	return false;
}

static void stage(void)
{
	bool again;

	do {
		h.woken = false;
		again = h.sched.ops->ordered ? stage_least() : stage_in_turn();
	} while (again || h.woken);
}

static void insert(struct io *io)
{
	struct wake wake;
	u64 before;

	io->flags = 0;
	io->bytes = BYTES;
	io->op = IO_READ;
	wake_init(&wake);
	before = meter_now();
	h.sched.ops->insert(h.submits[io - h.io], io, h.now, &wake);
	h.work += meter_now() - before;
	act(&wake);
	stage();
}

static struct io *complete(void)
{
	struct io *io = h.out[h.first];
	struct wake wake;
	u64 before;

	h.first = (h.first + 1) % IOS;
	h.nr_out--;
	wake_init(&wake);
	before = meter_now();
	h.sched.ops->complete(io, h.now, &wake);
	h.work += meter_now() - before;
	act(&wake);
	stage();
	return io;
}

static void tick_if_due(void)
{
	struct wake wake;

	if (!h.tick_ns || h.now < h.tick_ns)
		return;
	h.tick_ns = 0;
	wake_init(&wake);
	h.sched.ops->tick(&h.sched, h.now, &wake);
	act(&wake);
	stage();
}

static struct flow *flow_create(struct flow *parent, u32 weight)
{
	struct flow *f = port_zalloc(flow_size(h.sched.ops, h.sched.nr_queues));

	port_assert(f);
	flow_init(f, &h.sched, parent, weight);
	return f;
}

/* Two sockets, and cores of two hardware threads. */
static void hctx_open(const struct sched_ops *ops, u32 queues)
{
	struct topo_place place[MANY];
	struct sched_params params;
	u32 i;

	h = (struct hctx){ .now = 1000 };
	sched_params_init(ops, &params);
	params.depth = SLOTS;
	for (i = 0; i < queues; i++) {
		queue_init(&h.queue[i], &h.sched, i);
		h.queue[i].home = 0;
		h.index[i] = &h.queue[i];
		place[i].core = i / 2;
		place[i].socket = i / (queues / 2);
	}
	h.sched.queue = h.index;
	h.sched.nr_queues = queues;
	port_assert(!sched_init(&h.sched, ops, &params, place));
	h.root = flow_create(NULL, WEIGHT_DEFAULT);
	for (i = 0; i < FLOWS; i++)
		h.flow[i] = flow_create(h.root, 100 * (i + 1));
	for (i = 0; i < IOS; i++) {
		h.io[i].flow = h.flow[i % FLOWS];
		h.submits[i] = &h.queue[i / FLOWS % USED];
	}
}

static void hctx_close(void)
{
	u32 i;

	while (h.nr_out || h.queue[0].nr || h.queue[1].nr || h.queue[2].nr ||
	       h.queue[3].nr) {
		h.now += SERVICE_NS;
		tick_if_due();
		if (h.nr_out)
			(void)complete();
	}
	for (i = 0; i < FLOWS; i++) {
		flow_exit(h.flow[i]);
		port_free(h.flow[i]);
	}
	flow_exit(h.root);
	port_free(h.root);
	sched_exit(&h.sched);
}

/* Accesses for each request on a hardware queue of @queues CPUs. */
static double accesses(const struct sched_ops *ops, u32 queues)
{
	double found;
	u32 i, served = 0;

	hctx_open(ops, queues);
	for (i = 0; i < IOS; i++)
		insert(&h.io[i]);
	h.work = 0;
	while (served < RUN) {
		h.now += SERVICE_NS;
		tick_if_due();
		if (!h.nr_out)
			continue;
		insert(complete());
		served++;
	}
	found = (double)h.work / RUN;
	hctx_close();
	return found;
}

int main(int argc, char **argv)
{
	const struct sched_ops *ops = argc == 2 ? sched_find(argv[1]) : NULL;
	double few, many, most;

	if (!ops) {
		fprintf(stderr, "usage: width SCHEDULER\n");
		return 2;
	}
	few = accesses(ops, FEW);
	many = accesses(ops, MANY);
	printf("%s: %.1f accesses for each request with %d CPUs, %.1f with %d\n",
	       ops->name, few, FEW, many, MANY);
	most = few * (100 + PERCENT_MOST) / 100;
	if (ops->ordered)
		most += CORES_MORE * CORE_MOST;
	return many > most;
}
