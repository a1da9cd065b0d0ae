// SPDX-License-Identifier: GPL-2.0
#include "hooks.h"

const struct cost_model hooks_cost_by_size = {
	.kind = COST_LINEAR,
	.read = { .per_kib = 1024 },
};

static bool always(const struct queue *q)
{
	(void)q;
	return true;
}

static struct flow *flow_create(struct hooks *h, struct flow *parent,
				u32 weight)
{
	struct flow *f =
		port_zalloc(flow_size(h->sched.ops, h->sched.nr_queues));

	assert_non_null(f);
	flow_init(f, &h->sched, parent, weight);
	atomic64_set(&f->urgent.passing, -(s64)HOOKS_IOS);
	return f;
}

static void flow_destroy(struct flow *f)
{
	flow_exit(f);
	port_free(f);
}

void hooks_open(struct hooks *h, const struct sched_ops *ops,
		const struct sched_params *p, u32 nr_queues)
{
	static const struct host_map no_map;

	hooks_open_on(h, ops, p, nr_queues, 0, &no_map);
}

void hooks_open_on(struct hooks *h, const struct sched_ops *ops,
		   const struct sched_params *p, u32 nr_queues, u64 pages,
		   const struct host_map *map)
{
	struct topo_place place[HOOKS_QUEUES];
	u32 i;

	*h = (struct hooks){ .now = 1 };
	port_queue_is_mine = always;
	h->sched.queue = h->index;
	h->sched.nr_queues = nr_queues;
	h->sched.pages = pages;
	h->sched.map = *map;
	for (i = 0; i < nr_queues; i++) {
		queue_init(&h->queue[i], &h->sched, i);
		h->index[i] = &h->queue[i];
		place[i] = (struct topo_place){ .core = i };
	}
	assert_int_equal(sched_init(&h->sched, ops, p, place), 0);
	h->sched.urgent.rate = HOOKS_RATE;
	h->root = flow_create(h, NULL, WEIGHT_DEFAULT);
}

void hooks_close(struct hooks *h)
{
	u32 i;

	/* Children before their parents. */
	for (i = h->nr_flows; i--;)
		flow_destroy(h->flow[i]);
	flow_destroy(h->root);
	sched_exit(&h->sched);
}

struct flow *hooks_flow(struct hooks *h, u32 weight)
{
	return hooks_flow_below(h, h->root, weight);
}

struct flow *hooks_flow_below(struct hooks *h, struct flow *parent, u32 weight)
{
	struct flow *f = flow_create(h, parent, weight);

	assert_true(h->nr_flows < HOOKS_FLOWS);
	h->flow[h->nr_flows++] = f;
	return f;
}

void hooks_flow_gone(struct hooks *h, struct flow *f)
{
	u32 i = 0;

	while (h->flow[i] != f)
		assert_true(++i < h->nr_flows);
	h->flow[i] = h->flow[--h->nr_flows];
	flow_destroy(f);
	hooks_tune(h, NULL);
}

static void note(struct hooks *h, struct wake *wake)
{
	u32 queue;

	while ((queue = wake_next(wake)) != QUEUES_MAX)
		h->woken |= BIT_ULL(queue);
	h->pinned_by = wake->pinned_by;
	if (wake->at_ns && (!h->tick_ns || wake->at_ns < h->tick_ns))
		h->tick_ns = wake->at_ns;
}

struct io *hooks_insert(struct hooks *h, u32 queue, struct flow *f, u32 bytes,
			u8 flags)
{
	return hooks_insert_op(h, queue, f, IO_READ, bytes, flags);
}

/* The fields of the scheduler may have any value before insert. */
static struct io *new_io(struct hooks *h, struct flow *f, enum io_op op,
			 u32 bytes, u8 flags)
{
	struct io *io;
	u32 i = 0;

	while (h->busy[i])
		assert_true(++i < HOOKS_IOS);
	h->busy[i] = true;
	io = &h->io[i];
	memset(io, 0xa5, sizeof(*io));
	io->flow = f;
	io->bytes = bytes;
	io_set_page(io, 0);
	io->op = (u8)op;
	io->flags = flags;
	return io;
}

struct io *hooks_insert_op(struct hooks *h, u32 queue, struct flow *f,
			   enum io_op op, u32 bytes, u8 flags)
{
	struct io *io = new_io(h, f, op, bytes, flags);
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->insert(&h->queue[queue], io, h->now, &wake);
	note(h, &wake);
	return io;
}

struct io *hooks_send_run(struct hooks *h, u32 queue, struct flow *f,
			  const struct hooks_io *run, u32 n)
{
	struct io *first = NULL, *io;
	struct wake wake;
	bool sent;
	u32 i;

	for (i = n; i--;) {
		io = new_io(h, f, run[i].op, run[i].bytes, 0);
		io->next = first;
		first = io;
	}
	wake_init(&wake);
	sent = h->sched.ops->send(&h->queue[queue], first, n, h->now, &wake);
	note(h, &wake);
	for (io = first; io && !sent; io = io->next)
		h->busy[io - h->io] = false;
	return sent ? first : NULL;
}

struct io *hooks_dispatch(struct hooks *h, u32 queue,
			  enum dispatch_result expected)
{
	struct io *io = NULL;
	struct wake wake;

	wake_init(&wake);
	assert_int_equal(h->sched.ops->dispatch(&h->queue[queue], h->now, &io,
						&wake),
			 expected);
	note(h, &wake);
	return expected == DISPATCH_IO ? io : NULL;
}

struct io *hooks_read(struct hooks *h, u32 queue, struct flow *f)
{
	return hooks_insert(h, queue, f, HOOKS_BYTES, 0);
}

struct io *hooks_next(struct hooks *h, u32 queue)
{
	return hooks_dispatch(h, queue, DISPATCH_IO);
}

void hooks_expect_order(struct hooks *h, u32 queue, const char *digits)
{
	const char *at;

	for (at = digits; *at; at++) {
		const struct io *io = hooks_next(h, queue);
		u32 due = (u32)(*at - '0'), i = 0;

		while (i < HOOKS_FLOWS && h->flow[i] != io->flow)
			i++;
		if (i != due)
			fail_msg("io %td of \"%s\" is of flow %u, not %u",
				 at - digits + 1, digits, i, due);
	}
}

void hooks_send(struct hooks *h, u32 queue, struct flow *f, u32 n)
{
	while (n--) {
		hooks_read(h, queue, f);
		hooks_next(h, queue);
	}
}

void hooks_send_in_vain(struct hooks *h, u32 queue, struct flow *f)
{
	hooks_read(h, queue, f);
	hooks_dispatch(h, queue, DISPATCH_NO_SLOT);
}

void hooks_merge(struct hooks *h, struct io *io, u32 bytes)
{
	h->sched.ops->merge(io->queue, io, bytes);
}

void hooks_complete(struct hooks *h, struct io *io)
{
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->complete(io, h->now, &wake);
	note(h, &wake);
	h->busy[io - h->io] = false;
}

void hooks_requeue(struct hooks *h, struct io *io)
{
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->requeue(io, &wake);
	note(h, &wake);
}

void hooks_insert_again(struct hooks *h, struct io *io)
{
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->insert(io->queue, io, h->now, &wake);
	note(h, &wake);
}

void hooks_block(struct hooks *h, u32 queue)
{
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->block(&h->queue[queue], &wake);
	note(h, &wake);
}

void hooks_tick(struct hooks *h)
{
	struct wake wake;

	h->tick_ns = 0;
	wake_init(&wake);
	h->sched.ops->tick(&h->sched, h->now, &wake);
	note(h, &wake);
}

void hooks_tune(struct hooks *h, const struct sched_params *p)
{
	struct wake wake;

	wake_init(&wake);
	h->sched.ops->tune(&h->sched, p, &wake);
	note(h, &wake);
}

void hooks_run(struct hooks *h, u64 until_ns)
{
	while (h->tick_ns && h->tick_ns <= until_ns) {
		h->now = max(h->now, h->tick_ns);
		hooks_tick(h);
	}
	h->now = until_ns;
}

vtime_t hooks_tag(const struct io *io)
{
	u64 epoch;

	return flow_tag(io->flow, io->pos, &epoch);
}

u32 hooks_init_without_memory(const struct sched_ops *ops)
{
	static struct hooks h;
	struct sched_params p;
	u32 allowed = 0;
	int ret;

	sched_params_init(ops, &p);
	hooks_open(&h, ops, &p, HOOKS_QUEUES);
	hooks_close(&h);
	for (;; allowed++) {
		static const struct topo_place place[HOOKS_QUEUES];

		port_zalloc_fail_after(allowed);
		ret = sched_init(&h.sched, ops, &p, place);
		port_zalloc_fail_never();
		if (!ret)
			break;
		assert_int_equal(ret, -ENOMEM);
	}
	sched_exit(&h.sched);
	return allowed;
}

void hooks_refused_queue_hands_over(struct hooks *h)
{
	struct flow *f = hooks_flow(h, 100);
	struct io *io;

	hooks_read(h, 0, f);
	io = hooks_next(h, 0);
	hooks_send(h, 1, f, 3);
	hooks_send(h, 3, f, 4);
	hooks_send_in_vain(h, 1, f);
	hooks_send_in_vain(h, 2, f);
	hooks_complete(h, io);
	assert_int_equal(h->woken, BIT_ULL(1));
	hooks_send_in_vain(h, 3, f);
	assert_false(h->woken & BIT_ULL(2));
	/* The slot was given to queue 1 before queue 3 came: its part is smaller. */
	io = hooks_next(h, 1);
	hooks_complete(h, io);
	assert_true(h->woken & BIT_ULL(2));
	hooks_next(h, 2);
}

void hooks_last_io_hands_over(struct hooks *h)
{
	struct flow *f = hooks_flow(h, 100);
	struct io *io[2];
	u32 i;

	for (i = 0; i < 2; i++) {
		hooks_read(h, 0, f);
		io[i] = hooks_next(h, 0);
	}
	hooks_send(h, 2, f, 2);
	hooks_send_in_vain(h, 2, f);
	hooks_send_in_vain(h, 1, f);
	hooks_complete(h, io[0]);
	hooks_complete(h, io[1]);
	assert_int_equal(h->woken, BIT_ULL(1));
	hooks_next(h, 1);
	assert_int_equal(h->woken, BIT_ULL(1) | BIT_ULL(2));
	hooks_next(h, 2);
}

void hooks_set_drain(struct hooks *h, bool drain)
{
	u32 i;

	for (i = 0; i < h->sched.nr_queues; i++)
		h->queue[i].drain = drain;
}

void hooks_drain(struct hooks *h)
{
	u32 i;

	hooks_set_drain(h, true);
	for (i = 0; i < h->sched.nr_queues; i++)
		while (h->queue[i].nr)
			hooks_dispatch(h, i, DISPATCH_IO);
	for (i = 0; i < HOOKS_IOS; i++)
		if (h->io[i].flags & IO_OUT)
			hooks_complete(h, &h->io[i]);
	hooks_set_drain(h, false);
}
