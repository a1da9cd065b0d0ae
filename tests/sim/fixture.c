// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>

#include "sched/mqfq/mqfq.h"
#include "tests/params.h"
#include "sched/core/policies.h"
#include "budget.h"
#include "fixture.h"

void case_fail(struct test_case *t, const char *fmt, ...)
{
	va_list args;

	if (case_failed(t))
		return;
	va_start(args, fmt);
	vsnprintf(t->failure, sizeof(t->failure), fmt, args);
	va_end(args);
}

void case_note(struct test_case *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(t->note, sizeof(t->note), fmt, args);
	va_end(args);
}

/* ------------------------------------------------------------- invariants */

/* mqfq or ifq, which has its engine. */
static bool fixture_is_mqfq(const struct fixture *r)
{
	return r->test_case->ops == &mqfq_ops || r->test_case->ops == &ifq_ops;
}

static void check_slots(struct fixture *r, const struct mqfq *m)
{
	struct host *h = r->host;
	s64 total = token_total(&m->slots.tree);
	s64 used = h->slots + slots_leased(&m->slots);

	if (total + used != (s64)m->slots.tree.depth)
		host_fail(h,
			  "%llu ns: %lld slots free and %lld in use, D is %u",
			  host_now(h), total, used, m->slots.tree.depth);
}

static void check_vt(struct fixture *r, const struct mqfq *m)
{
	vtime_t vt = (vtime_t)atomic64_read(&m->vt);

	if (vtime_before(vt, r->vt))
		host_fail(r->host,
			  "%llu ns: virtual time went from %llu back to %llu",
			  host_now(r->host), r->vt, vt);
	if (vt == VTIME_NONE)
		host_fail(r->host, "%llu ns: virtual time is no time",
			  host_now(r->host));
	r->vt = vt;
}

static void fixture_step(void *arg)
{
	struct fixture *r = arg;
	const struct mqfq *m = r->host->sched.own;

	check_slots(r, m);
	check_vt(r, m);
}

/* How much later than due the wheel may let a queue go. */
static u64 fixture_wheel_late(const struct mqfq *m)
{
	return mqfq_params(&m->sched->params)->threshold ?
		       BIT_ULL(m->wheel.shift) :
		       0;
}

/*
 * Slots are free and all wake-ups have been acted on: a queue that
 * still waits must be throttled, by a head tag beyond VT + T.
 */
static void check_waiting(struct fixture *r, const struct mqfq *m,
			  const struct host_queue *hq)
{
	struct host *h = r->host;
	u64 limit = r->vt + mqfq_params(&h->sched.params)->threshold;

	if (!hq->waiting || hq->blocked)
		return;
	if (hq->q.state != DISPATCH_THROTTLED)
		host_fail(
			h,
			"%llu ns: %u ios wait in queue %u (state %u) beside free slots",
			host_now(h), hq->waiting, hq->q.index, hq->q.state);
	else if (!vtime_before(limit, hq->q.head_tag + fixture_wheel_late(m)))
		host_fail(
			h,
			"%llu ns: queue %u, head tag VT + %lld, is still throttled",
			host_now(h), hq->q.index,
			(s64)(hq->q.head_tag - r->vt));
}

/* Virtual time is no less than the least start tag that waits. */
static void check_vt_follows(struct fixture *r)
{
	const struct host *h = r->host;
	vtime_t least = VTIME_NONE;
	u32 i;

	for (i = 0; i < h->params.nr_queues; i++)
		if (h->queues[i].waiting && !h->queues[i].blocked)
			least = vtime_min_tag(least, h->queues[i].q.head_tag);
	if (least != VTIME_NONE && vtime_before(r->vt, least))
		host_fail(
			r->host,
			"%llu ns: virtual time is %lld behind the least head tag",
			host_now(r->host), (s64)(least - r->vt));
}

static void fixture_quiet(void *arg)
{
	struct fixture *r = arg;
	const struct mqfq *m = r->host->sched.own;
	u32 i;

	check_vt_follows(r);
	if (token_total(&m->slots.tree) <= 0)
		return;
	for (i = 0; i < r->host->params.nr_queues; i++)
		check_waiting(r, m, &r->host->queues[i]);
}

/* ------------------------------------------------------------------ bounds */

/* W / r in units of virtual time. */
static s64 weighted(const struct bound *b, u32 id, u64 w)
{
	return (s64)mul_u64_u64_shr(w, b->inv[id], INV_SHIFT);
}

static s64 pair_x(const struct bound *b, u32 f, u32 m, const u64 *w)
{
	return weighted(b, f, w[f]) - weighted(b, m, w[m]);
}

static void pair_open(struct pair *p, s64 x)
{
	p->open = true;
	p->least = x;
	p->most = x;
}

static void pair_see(struct pair *p, s64 x)
{
	p->least = min(p->least, x);
	p->most = max(p->most, x);
	p->range = max(p->range, p->most - p->least);
}

/* X of (m, f) is -X of (f, m): one of the two is enough. */
static struct pair *pair_at(struct pair table[RIG_FLOWS][RIG_FLOWS], u32 f,
			    u32 m)
{
	return &table[min(f, m)][max(f, m)];
}

static void bound_inserted(struct fixture *r, const struct host_flow *f,
			   const struct host_io *hio)
{
	struct bound *b = &r->bound;
	const struct host_flow *m;

	b->largest[f->id] = max(b->largest[f->id], hio->io.cost);
	for (m = r->host->flows; m; m = m->next) {
		u32 lo = min(f->id, m->id), hi = max(f->id, m->id);

		if (m == f || !m->queued || b->at_dispatch[lo][hi].open)
			continue;
		pair_open(&b->at_dispatch[lo][hi],
			  pair_x(b, lo, hi, b->dispatched));
		pair_open(&b->at_completion[lo][hi],
			  pair_x(b, lo, hi, b->completed));
	}
}

static void bound_see(struct fixture *r, const struct host_flow *f,
		      const u64 *w, struct pair table[RIG_FLOWS][RIG_FLOWS])
{
	const struct host_flow *m;

	for (m = r->host->flows; m; m = m->next) {
		struct pair *p = pair_at(table, f->id, m->id);

		if (m != f && p->open)
			pair_see(p, pair_x(&r->bound, min(f->id, m->id),
					   max(f->id, m->id), w));
	}
}

/* The dispatch that leaves a flow without requests still counts. */
static void bound_close(struct fixture *r, const struct host_flow *f)
{
	struct bound *b = &r->bound;
	const struct host_flow *m;

	if (f->queued)
		return;
	for (m = r->host->flows; m; m = m->next) {
		pair_at(b->at_dispatch, f->id, m->id)->open = false;
		pair_at(b->at_completion, f->id, m->id)->open = false;
	}
}

void bound_start(struct fixture *r)
{
	const struct host_flow *hf;
	u64 sum = 0;

	for (hf = r->host->flows; hf; hf = hf->next)
		if (hf != r->root)
			sum += hf->flow->group.weight;
	for (hf = r->host->flows; hf; hf = hf->next) {
		u64 share = SHARE_ONE * hf->flow->group.weight / sum;

		if (hf == r->root)
			continue;
		r->bound.inv[hf->id] = share_inverse(share);
		if (fixture_is_mqfq(r) &&
		    (u64)atomic64_read(&hf->flow->inv) != r->bound.inv[hf->id])
			case_fail(r->test_case, "flow %u has the wrong share",
				  hf->id);
	}
	r->bound.on = true;
}

/* Tags are rounded down to even numbers. */
enum { TAG_SLACK = 8 };

static void bound_check_pair(struct fixture *r, u32 f, u32 m)
{
	const struct bound *b = &r->bound;
	const struct sched_params *p = &r->host->sched.params;
	u64 limit = 2ULL * mqfq_params(p)->threshold +
		    (u64)weighted(b, f, b->largest[f]) +
		    (u64)weighted(b, m, b->largest[m]) + TAG_SLACK;
	u64 at_dispatch = (u64)b->at_dispatch[f][m].range;
	u64 at_completion = (u64)b->at_completion[f][m].range;
	u64 depth = p->depth + 1;

	if (at_dispatch > limit)
		case_fail(
			r->test_case,
			"flows %u and %u: dispatched service differs by %llu, at most %llu allowed (T %u, D %u)",
			f, m, at_dispatch, limit, mqfq_params(p)->threshold,
			p->depth);
	if (at_completion > depth * limit)
		case_fail(
			r->test_case,
			"flows %u and %u: completed service differs by %llu, at most %llu allowed (T %u, D %u)",
			f, m, at_completion, depth * limit,
			mqfq_params(p)->threshold, p->depth);
	r->bound.tightest = max(r->bound.tightest, at_dispatch * 1000 / limit);
}

void bound_check(struct fixture *r)
{
	const struct host_flow *f, *m;

	for (f = r->host->flows; f; f = f->next)
		for (m = f->next; m; m = m->next)
			if (m != r->root)
				bound_check_pair(r, m->id, f->id);
}

/* ------------------------------------------------------------------- watch */

/* What the others believe of a queue is what it is, as soon as it dispatched. */
static void check_published(struct fixture *r, const struct queue *q)
{
	const struct mqfq *m = r->host->sched.own;
	vtime_t believed = mindicator_tag(&m->tags, q->index);

	if (believed !=
	    (mqfq_queue_of(q)->published ? q->head_tag : VTIME_NONE))
		host_fail(
			r->host,
			"%llu ns: queue %u publishes %llu, its head tag is %llu",
			host_now(r->host), q->index, believed, q->head_tag);
}

static void fixture_digest(struct fixture *r, const struct host_io *hio)
{
	r->digest = (r->digest ^ (host_now(r->host) << 8 | hio->flow->id)) *
		    0x100000001b3;
}

static void fixture_inserted(void *arg, struct host_io *hio)
{
	struct fixture *r = arg;

	r->inserted++;
	if (r->bound.on)
		bound_inserted(r, hio->flow, hio);
}

static void fixture_dispatched(void *arg, struct host_io *hio)
{
	struct fixture *r = arg;

	r->dispatched++;
	fixture_digest(r, hio);
	if (r->watch_urgent && io_is_counted(&hio->io) &&
	    host_now(r->host) > hio->io.insert_ns)
		case_fail(r->test_case, "an urgent io waited for %llu ns",
			  host_now(r->host) - hio->io.insert_ns);
	if (fixture_is_mqfq(r) && !(hio->io.flags & IO_URGENT))
		check_published(r, hio->io.queue);
	if ((hio->io.flags & IO_FIRST) && !(hio->io.flags & IO_SLOT) &&
	    !hio->io.queue->drain)
		case_fail(r->test_case, "an io passes without a slot");
	if (!r->bound.on)
		return;
	r->bound.dispatched[hio->flow->id] += hio->io.cost;
	bound_see(r, hio->flow, r->bound.dispatched, r->bound.at_dispatch);
	bound_close(r, hio->flow);
}

static void fixture_completed(void *arg, struct host_io *hio)
{
	struct fixture *r = arg;

	r->completed++;
	fixture_digest(r, hio);
	if (!r->bound.on)
		return;
	r->bound.completed[hio->flow->id] += hio->io.cost;
	bound_see(r, hio->flow, r->bound.completed, r->bound.at_completion);
}

/* -------------------------------------------------------------------- life */

void fixture_defaults(const struct sched_ops *ops, struct sched_params *p)
{
	unsigned long automatic = 0;
	u32 i;

	sched_params_init(ops, p);
	for (i = 0; ops->tunables[i].name; i++)
		if (ops->tunables[i].automatic != AUTO_NOT)
			automatic |= BIT_ULL(i);
	tunables_set_auto(ops->tunables, automatic, 0, p);
}

struct flash *fixture_full_drive(enum flash_ftl ftl, u32 mib, u32 owners)
{
	const struct flash_config config = {
		.params = flash_model("980pro"),
		.bytes = (u64)mib * MIB,
		.owners = owners,
		.ftl = ftl,
	};
	struct flash *f = flash_create(&config);
	struct flash_fill fill = { .seed = 1, .shuffled = true };

	port_assert(f);
	fill.pages = flash_pages(f);
	while (flash_fill(f, &fill, fill.pages))
		;
	return f;
}

struct host_params fixture_params(const struct test_case *t, u64 seed)
{
	struct host_params p = {
		.seed = seed,
		.nr_queues = 1,
		.ops = t->ops,
		.device = { .slots = 16, .base_ns = 100 * US },
	};

	sched_params_init(t->ops, &p.sched);
	p.sched.depth = 16;
	/* The papers know no isolation; isolation.c tests it. */
	p.sched.isolation = 0;
	params_put(t->ops, &p.sched, "threshold_kb", 64 * KIB);
	return p;
}

void fixture_open(struct fixture *r, struct test_case *t,
		  const struct host_params *params)
{
	*r = (struct fixture){ .test_case = t };
	r->host = host_create(params);
	port_assert(r->host);
	r->host->watch = (struct host_watch){
		.arg = r,
		.inserted = fixture_inserted,
		.dispatched = fixture_dispatched,
		.completed = fixture_completed,
	};
	if (fixture_is_mqfq(r)) {
		const struct mqfq *m = r->host->sched.own;

		r->host->watch.step = fixture_step;
		r->host->watch.quiet = fixture_quiet;
		r->vt = (vtime_t)atomic64_read(&m->vt);
	}
	if (budget_family(params->ops)) {
		r->host->watch.step = budget_step;
		r->host->watch.quiet = budget_quiet;
	}
	r->root = fixture_flow(r, NULL, WEIGHT_DEFAULT);
}

struct host_flow *fixture_flow(struct fixture *r, struct host_flow *parent,
			       u32 weight)
{
	struct host_flow *hf;

	hf = host_flow_create(r->host, parent ? parent : r->root, weight);
	port_assert(hf);
	return hf;
}

struct load *fixture_load(struct fixture *r, const struct load_params *params)
{
	struct load *l = load_create(r->host, params);

	port_assert(l && r->nr_loads < RIG_LOADS);
	r->load[r->nr_loads++] = l;
	return l;
}

struct load *fixture_closed(struct fixture *r, struct host_flow *flow,
			    u32 depth, u32 bytes)
{
	struct load_params params = {
		.flow = flow,
		.nr_queues = r->host->params.nr_queues,
		.depth = depth,
		.bytes = bytes,
	};

	return fixture_load(r, &params);
}

void fixture_drop_load(struct fixture *r, struct load *l)
{
	u32 i;

	for (i = 0; r->load[i] != l; i++)
		;
	r->load[i] = r->load[--r->nr_loads];
	load_destroy(l);
}

/* Takes over the message of the host, if it is the first one. */
static void check_host(struct fixture *r)
{
	struct test_case *t = r->test_case;

	if (!host_failed(r->host) || case_failed(t))
		return;
	case_fail(t, "%s", r->host->failure);
	t->host_failed = true;
}

void fixture_run(struct fixture *r, u64 ns)
{
	host_run(r->host, host_now(r->host) + ns);
	/* The test must not judge shares after that. */
	check_host(r);
}

static void fixture_check_end(struct fixture *r)
{
	struct host *h = r->host;
	u64 watchdog = (u64)atomic64_read(&h->sched.stats.watchdog);

	if (r->inserted != r->dispatched || h->queued || h->slots)
		host_fail(h,
			  "%llu ios inserted, %llu dispatched, %u slots kept",
			  r->inserted, r->dispatched, h->slots);
	if (watchdog)
		host_fail(h, "the watchdog found %llu queues forgotten",
			  watchdog);
}

void fixture_close(struct fixture *r)
{
	u32 i;

	host_finish(r->host);
	fixture_check_end(r);
	check_host(r);
	host_destroy(r->host);
	for (i = 0; i < r->nr_loads; i++)
		load_destroy(r->load[i]);
}

/* ------------------------------------------------------------------ shares */

void fixture_bytes(struct host_flow *const *flow, u64 *bytes, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		bytes[i] = flow[i]->stats.bytes;
}

u64 fixture_part(struct host_flow *const *flow, const u64 *before, u32 n, u32 i)
{
	u64 total = 0;
	u32 k;

	for (k = 0; k < n; k++)
		total += flow[k]->stats.bytes - before[k];
	if (!total)
		return 0;
	return (flow[i]->stats.bytes - before[i]) * 1000000 / total;
}

void fixture_expect_parts(struct fixture *r, struct host_flow *const *flow,
			  const u32 *parts, u32 n, u64 ns, u32 permille,
			  const char *what)
{
	u64 before[RIG_FLOWS], sum = 0;
	u32 i;

	for (i = 0; i < n; i++)
		sum += parts[i];
	fixture_bytes(flow, before, n);
	fixture_run(r, ns);
	for (i = 0; i < n; i++) {
		u64 want = parts[i] * 1000000ULL / sum;
		u64 got = fixture_part(flow, before, n, i);
		u64 off = got > want ? got - want : want - got;

		if (off * 1000 > want * permille)
			case_fail(
				r->test_case,
				"%s: flow %u of %u got %llu ppm, entitled to %llu",
				what, i, n, got, want);
	}
}
