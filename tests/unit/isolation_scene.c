// SPDX-License-Identifier: GPL-2.0
#include "isolation_scene.h"
#include "sched/core/policies.h"

const struct act slow_reads = {
	.done = 2, .bytes = 4096, .service_ns = MS, .inside = 1,
};
const struct act fast_reads = {
	.done = 8, .bytes = 4096, .service_ns = MS / 4, .inside = 1,
};
const struct act deep = {
	.done = 100,
	.bytes = 65536,
	.service_ns = MS,
	.wait_ns = 3 * MS,
	.inside = 50,
};
const struct act nothing = { 0 };

struct isolation *iso(struct scene *x)
{
	return &x->h.sched.isolation;
}

struct slots *slots(struct scene *x)
{
	return &((struct engine *)x->h.sched.own)->slots;
}

struct isolation_flow *reader(struct scene *x)
{
	return &x->reader->isolation;
}

void first_io(struct scene *x, struct flow *f)
{
	struct io *io = hooks_insert(&x->h, 0, f, 4096, 0);

	assert_ptr_equal(hooks_dispatch(&x->h, 0, DISPATCH_IO), io);
	hooks_complete(&x->h, io);
}

void tick(struct scene *x)
{
	wake_init(&x->wake);
	isolation_tick(&x->h.sched, x->h.now, &x->wake);
}

void see(struct flow *f)
{
	struct flow_totals t;

	flow_totals(f, &t);
	f->isolation.seen = (struct isolation_counts){
		t.dispatched, t.done, t.cost, t.bytes, t.wait_ns, t.service_ns,
	};
}

void scene_open(struct scene *x, u32 percent)
{
	struct sched_params p;

	*x = (struct scene){ .reads = slow_reads, .other = deep };
	sched_params_init(&drr_ops, &p);
	p.depth = DEPTH;
	p.isolation = percent;
	hooks_open(&x->h, &drr_ops, &p, 2);
	x->reader = hooks_flow(&x->h, 1000);
	x->others = hooks_flow(&x->h, 100);
	first_io(x, x->reader);
	first_io(x, x->others);
	/* These two requests are not of a look. */
	see(x->reader);
	see(x->others);
	tick(x);
}

void scene_close(struct scene *x)
{
	assert_int_equal(slots_used(slots(x)), 0);
	hooks_close(&x->h);
}

void do_work(struct flow *f, const struct act *a, u64 ns)
{
	struct flow_queue *fq = f->fq[1];
	u64 now = a->done * ns / LOOK_NS,
	    done = (u64)atomic64_read(&fq->done) + now;

	fq->dispatched = done + a->inside;
	fq->inserted = fq->dispatched + a->waiting;
	fq->bytes += now * a->bytes;
	fq->wait_ns += now * a->wait_ns;
	atomic64_set(&fq->done, (s64)done);
	atomic64_add((s64)now * a->bytes, &fq->cost);
	atomic64_add((s64)(now * a->service_ns), &fq->service_ns);
}

void look_behind(struct scene *x)
{
	u64 ns = iso(x)->at_ns - x->h.now;

	do_work(x->reader, &x->reads, ns);
	do_work(x->others, &x->other, ns);
	x->h.now += ns;
	tick(x);
}

void look(struct scene *x)
{
	if (iso(x)->paces)
		atomic64_set(&iso(x)->next_ns, (s64)iso(x)->at_ns);
	look_behind(x);
}

void looks(struct scene *x, u32 n)
{
	while (n--)
		look(x);
}

void open_and_pace(struct scene *x, u32 percent)
{
	scene_open(x, percent);
	looks(x, KNOWN);
	assert_int_equal(iso(x)->state, ISOLATION_PACED);
}

void assert_open(struct scene *x)
{
	assert_int_equal(iso(x)->state, ISOLATION_OPEN);
	assert_false(iso(x)->paces);
	assert_int_equal(slots(x)->limit, DEPTH_MAX);
	assert_false(slots_held(slots(x)));
}

u64 rate_of_bytes(u64 bytes)
{
	return (bytes << 20) / LOOK_NS;
}

void assert_near(u64 got, u64 want, u64 permille)
{
	assert_in_range(got, want - want * permille / 1000,
			want + want * permille / 1000);
}

void hold_slots(struct scene *x, u32 n)
{
	struct io *io[HOOKS_IOS];
	u32 i;

	for (i = 0; i < n; i++) {
		hooks_insert(&x->h, 0, x->others, 65536, 0);
		io[i] = hooks_dispatch(&x->h, 0, DISPATCH_IO);
	}
	for (i = 0; i < n; i++)
		hooks_complete(&x->h, io[i]);
}

void waiting_look(struct scene *x)
{
	x->h.queue[1].stats.no_slot++;
	look(x);
}

void depth_scene(struct scene *x, u32 most)
{
	scene_open(x, 8);
	flow_set_weight(x->reader, 1);
	x->reads.bytes = 65536;
	x->h.sched.params.depth_most = most;
}
