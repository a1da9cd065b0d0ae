// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>

#include "fifo.h"
#include "scenario.h"
#include "sched/cost/cost_estimator.h"

void note(struct test_case *t, const char *fmt, ...)
{
	size_t used = strlen(t->note);
	va_list args;

	va_start(args, fmt);
	vsnprintf(t->note + used, sizeof(t->note) - used, fmt, args);
	va_end(args);
}

void scenario_open(struct scenario *s, struct test_case *t,
		   const struct host_params *p, const struct tenant *tenant,
		   u32 n)
{
	u32 i;

	*s = (struct scenario){ .tenant = tenant, .n = n };
	fixture_open(&s->r, t, p);
	for (i = 0; i < n; i++) {
		const struct load_params load = {
			.flow = s->flow[i] =
				fixture_flow(&s->r, NULL, tenant[i].weight),
			.nr_queues = p->nr_queues,
			.depth = tenant[i].depth,
			.bytes = tenant[i].bytes,
			.write_permille = tenant[i].write_permille,
			.pages = tenant[i].pages,
			.think_ns = tenant[i].think_ns,
			.think_random = true,
			.start_ns = tenant[i].start_ns,
			.stop_ns = tenant[i].stop_ns,
			.on_ns = tenant[i].on_ns,
			.off_ns = tenant[i].off_ns,
		};

		fixture_load(&s->r, &load);
	}
}

void scenario_close(struct scenario *s)
{
	fixture_close(&s->r);
}

void scenario_begin(struct scenario *s)
{
	u32 i;

	fixture_bytes(s->flow, s->before, s->n);
	for (i = 0; i < s->n; i++)
		s->flow[i]->stats.latency = (struct histogram){ 0 };
}

void scenario_end(const struct scenario *s, struct outcome *o)
{
	double sum = 0, squares = 0;
	u32 i;

	*o = (struct outcome){ 0 };
	for (i = 0; i < s->n; i++) {
		double x;

		o->bytes[i] = s->flow[i]->stats.bytes - s->before[i];
		o->p50_ns[i] = histogram_at(&s->flow[i]->stats.latency, 500);
		o->p99_ns[i] = histogram_at(&s->flow[i]->stats.latency, 990);
		o->total += o->bytes[i];
		x = (double)o->bytes[i] / s->tenant[i].weight;
		sum += x;
		squares += x * x;
	}
	o->index = squares > 0 ? sum * sum / (s->n * squares) : 0;
}

void scenario_play(struct test_case *t, const struct host_params *p,
		   const struct tenant *tenant, u32 n, u64 warm_ns, u64 ns,
		   struct outcome *o)
{
	struct scenario s;

	scenario_open(&s, t, p, tenant, n);
	fixture_run(&s.r, warm_ns);
	scenario_begin(&s);
	fixture_run(&s.r, ns);
	scenario_end(&s, o);
	scenario_close(&s);
}

u64 scenario_none(const struct host_params *p, const struct tenant *tenant,
		  u32 n, u64 warm_ns, u64 ns)
{
	struct test_case t = { .ops = &fifo_ops };
	struct host_params none = *p;
	struct outcome o;

	none.ops = &fifo_ops;
	none.sched.depth = DEPTH_MAX;
	scenario_play(&t, &none, tenant, n, warm_ns, ns, &o);
	return o.total;
}

void scenario_light(struct test_case *t, const struct host_params *p,
		    u32 permille)
{
	static const struct {
		u64 base_ns;
		u32 bytes;
	} drives[] = {
		{ 4 * MS, 4 * KIB },
		{ 16 * MS, 4 * KIB },
		{ 16 * MS, 1 * MIB },
		{ 64 * MS, 4 * KIB },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(drives); i++) {
		u32 bytes = drives[i].bytes;
		const struct tenant tenant[] = {
			{ .weight = 100, .depth = 1, .bytes = bytes },
			{ .weight = 100, .depth = 64, .bytes = bytes },
			{ .weight = 250, .depth = 64, .bytes = bytes },
			{ .weight = 500, .depth = 64, .bytes = bytes },
		};
		struct host_params slow = *p;
		struct outcome o;
		u64 none;

		slow.nr_queues = 1;
		slow.tags = 64;
		slow.device = (struct device_params){
			.slots = 64,
			.base_ns = drives[i].base_ns,
		};
		none = scenario_none(&slow, tenant, 4, 2 * SEC, 8 * SEC);
		scenario_play(t, &slow, tenant, 4, 2 * SEC, 8 * SEC, &o);
		if (o.total * 1000 < none * permille)
			case_fail(
				t,
				"%llu ms for %u KiB: %llu bytes, %llu without a scheduler",
				drives[i].base_ns / MS, bytes / KIB, o.total,
				none);
		note(t,
		     "%llu ms for %u KiB %llu, the light one %llu a second; ",
		     drives[i].base_ns / MS, bytes / KIB, o.total * 1000 / none,
		     o.bytes[0] / bytes / 8);
	}
}

void scenario_four(struct tenant *tenant, u32 depth, u32 bytes,
		   u32 write_permille)
{
	static const u32 weights[] = { 100, 250, 500, 1000 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(weights); i++)
		tenant[i] = (struct tenant){
			.weight = weights[i],
			.depth = depth,
			.bytes = bytes,
			.write_permille = write_permille,
		};
}

struct host_params scenario_params(const struct test_case *t,
				   const struct sched_ops *ops)
{
	struct host_params p = {
		.seed = 1,
		.nr_queues = 4,
		.ops = t->ops,
		.device = { .slots = 16, .base_ns = 100 * US },
	};

	sched_params_init(ops, &p.sched);
	p.sched.isolation = 0;
	return p;
}

void scenario_expect_total(struct test_case *t, u64 total, u64 none,
			   u32 permille, const char *what)
{
	if (total * 1000 < none * permille)
		case_fail(t, "%s: %llu bytes, %llu without a scheduler", what,
			  total, none);
}

void scenario_expect_index(struct test_case *t, const struct outcome *o,
			   double least, const char *what)
{
	if (o->index < least)
		case_fail(t, "%s: index %.4f", what, o->index);
}

void scenario_note_outcome(struct test_case *t, const struct outcome *o,
			   u64 none, const char *what)
{
	note(t, "%s%s %.4f, %llu permille", *t->note ? "; " : "", what,
	     o->index, o->total * 1000 / none);
}

void scenario_fair(struct test_case *t, const struct host_params *p,
		   const struct fair_case *c, const char *what,
		   struct outcome *o)
{
	struct tenant tenant[4];
	u64 none;

	scenario_four(tenant, c->depth, c->bytes, c->write_permille);
	none = scenario_none(p, tenant, 4, c->warm_ns, c->ns);
	scenario_play(t, p, tenant, 4, c->warm_ns, c->ns, o);
	scenario_expect_index(t, o, c->index, what);
	scenario_expect_total(t, o->total, none, c->permille, what);
	scenario_note_outcome(t, o, none, what);
}

void scenario_kinds(struct test_case *t, const struct host_params *p,
		    const struct fair_case *c, u32 large, bool mixed)
{
	static const struct {
		const char *what;
		bool sequential;
		u32 write_permille;
	} kinds[] = {
		{ "random read", false, 0 },
		{ "random write", false, 1000 },
		{ "sequential read", true, 0 },
		{ "sequential write", true, 1000 },
		{ "random mix", false, 500 },
	};
	u32 i, n = ARRAY_SIZE(kinds) - !mixed;

	for (i = 0; i < n; i++) {
		struct host_params params = *p;
		struct fair_case kind = *c;
		struct outcome o;

		kind.bytes = kinds[i].sequential ? large : 4 * KIB;
		kind.write_permille = kinds[i].write_permille;
		params.device.ns_per_kib = kinds[i].sequential ? 2 * US : 0;
		scenario_fair(t, &params, &kind, kinds[i].what, &o);
	}
}

enum {
	DRIVE_BYTES	= 1024 * MIB,
	DRIVE_FULL	= 85,		/* percent */
};

struct flash *scenario_drive(enum flash_ftl ftl, u32 *pages)
{
	const struct flash_config config = {
		.params = flash_model("p4500"),
		.bytes = DRIVE_BYTES,
		.owners = 8,
		.ftl = ftl,
	};
	struct flash *f = flash_create(&config);
	struct flash_fill fill = { .seed = 1, .shuffled = true };

	port_assert(f);
	*pages = flash_pages(f) / 100 * DRIVE_FULL;
	fill.pages = *pages;
	fill.overwrites = 2ULL * *pages;
	while (flash_fill(f, &fill, *pages))
		;
	return f;
}

double scenario_learned_us(const struct host *h, u32 op)
{
	const struct cost_rls *g = &h->sched.cost_estimator->cost_rls;
	u64 sector_ps = cost_rls_cost_ps(g, 2 * op + 1);

	if (op == IO_WRITE)
		sector_ps += cost_rls_cost_ps(g, WRITTEN_SECTOR);
	return (double)(cost_rls_cost_ps(g, 2 * op) + 8 * sector_ps) / 1e6;
}
