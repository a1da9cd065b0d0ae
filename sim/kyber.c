// SPDX-License-Identifier: GPL-2.0
/*
 * kyber - Kyber of Linux: a depth for each kind of request, by its latency
 *
 * Reads, writes, discards and the others are a *domain* each.  A request takes
 * a token of its domain while it is in the drive.  Each queue goes round the
 * domains, with a batch of each, and sends the oldest request of a domain.  No flow
 * has a share.
 *
 * A tenth of a second after a completion, the latencies of each domain are compared
 * with its target, in quarters of it.  A domain is *late* if more than a tenth of
 * its requests were longer in the drive than the target.  If any domain is late,
 * each domain gets a new depth: its depth times the 99th percentile of its
 * latencies, divided by its target.  So domains within their targets shrink, and
 * others grow, up to the depth that they began with.
 *
 *	Targets 2 ms for reads and 10 ms for writes.  Reads take 3 ms, and writes 5 ms
 *	at the 99th percentile: the depth of writes is halved from 128 to 64.
 *
 * A percentile is taken from 500 latencies, or from those of a second.
 *
 * Departures.  A request does not pass another one of its flow and CPU, whatever
 * their domains.  Writes may use all scheduler tags.  A completion wakes the next
 * queue in turn that waits for a token of its domain, and not the one that has
 * waited longest.
 *
 * Source: Documentation/block/kyber-iosched.rst and the comments of
 * block/kyber-iosched.c, Linux 6.12.  These are its depths, batches and targets.
 * Tested by tests/sim/sim_run.py.
 */
#include "comparators.h"

enum {
	MS		= 1000 * 1000,
	LOOK_NS		= 100 * MS,
	SAMPLES		= 500,		/* of a percentile .. */
	SAMPLES_NS	= 1000 * MS,	/* .. or those of this time */
	QUARTERS	= 4,		/* of a target */
	BUCKETS		= 8,		/* of a quarter each; the last: and more */
	NOT_KNOWN	= BUCKETS,	/* a percentile with too few latencies */
	HAS_TOKEN	= IO_OWN_0,
};

enum domain {
	READS,
	WRITES,
	DISCARDS,
	OTHERS,
	DOMAINS,
};

/* A target of 0 ns: none. */
static const struct {
	u32 depth, batch;
	u64 target_ns;
} domains[DOMAINS] = {
	[READS]		= { 256, 16, 0 },	/* target: a tunable */
	[WRITES]	= { 128, 8, 0 },	/* the same */
	[DISCARDS]	= { 64, 1, 5000ULL * MS },
	[OTHERS]	= { 16, 1, 0 },
};

struct kyber_params {
	u32 read_lat_nsec, write_lat_nsec;
};

/* Latencies of a domain, by quarters of its target. */
struct histogram {
	u32 bucket[BUCKETS];
	u64 since_ns;			/* the first one; 0: none */
};

struct kyber_domain {
	u32 depth, out;
	u32 p99;			/* a bucket, for the next look; or NOT_KNOWN */
	struct histogram inside, whole;	/* in the drive, and since insert */
};

struct kyber {
	struct engine engine;		/* first */
	struct kyber_domain domain[DOMAINS];
	u64 look_ns;			/* the next look; 0: after a completion */
	u32 woken;			/* the queue that got a token last */
};

struct kyber_queue {
	u32 domain, sent;		/* of the batch */
};

static struct kyber *kyber_of(const struct sched *s)
{
	return s->own;
}

static enum domain domain_of(const struct io *io)
{
	return io->op == IO_READ    ? READS :
	       io->op == IO_WRITE   ? WRITES :
	       io->op == IO_DISCARD ? DISCARDS :
				      OTHERS;
}

static u64 target_ns(const struct sched *s, u32 domain)
{
	const struct kyber_params *p = (const void *)s->params.own;

	if (domain == READS)
		return p->read_lat_nsec;
	return domain == WRITES ? p->write_lat_nsec : domains[domain].target_ns;
}

static bool has_token(const struct sched *s, u32 domain)
{
	const struct kyber_domain *kd = &kyber_of(s)->domain[domain];

	return kd->out < kd->depth;
}

/* ----------------------------------------------------------------- dispatch */

/* The oldest io of @domain in @q; @domain DOMAINS: of all. */
static const struct io *oldest(const struct queue *q, u32 domain)
{
	const struct io *first = NULL;
	struct flow *f;

	comparator_each(q->sched, f)
	{
		const struct io *io = comparator_head(q, f);

		if (!io || (domain != DOMAINS && domain_of(io) != domain))
			continue;
		if (!first || io->insert_ns < first->insert_ns)
			first = io;
	}
	return first;
}

static const struct io *oldest_with_token(const struct queue *q, u32 domain)
{
	return has_token(q->sched, domain) ? oldest(q, domain) : NULL;
}

/* Goes on to the next domain that may send a request.  Returns that, or NULL. */
static const struct io *next_domain(struct queue *q)
{
	struct kyber_queue *kq = q->own;
	u32 i;

	kq->sent = 0;
	for (i = 0; i < DOMAINS; i++) {
		const struct io *io;

		kq->domain = (kq->domain + 1) % DOMAINS;
		io = oldest_with_token(q, kq->domain);
		if (io)
			return io;
	}
	return NULL;
}

static struct lane *kyber_next(struct queue *q)
{
	const struct kyber_queue *kq = q->own;
	const struct io *io = NULL;

	if (kq->sent < domains[kq->domain].batch)
		io = oldest_with_token(q, kq->domain);
	if (!io)
		io = next_domain(q);
	if (!io)
		io = oldest(q, DOMAINS);
	return io ? flow_queue_own(io->flow, q->index) : NULL;
}

static bool kyber_may_go(struct queue *q, struct lane *lane, u64 now,
			 struct wake *wake)
{
	if (has_token(q->sched, domain_of(lane->fifo.head)))
		return true;
	wake_at(wake, now + LOOK_NS);
	return false;
}

static void kyber_pay(struct queue *q, struct lane *lane, u32 cost)
{
	struct kyber_queue *kq = q->own;

	(void)lane;
	(void)cost;
	kq->sent++;
}

/* Wakes the next queue in turn that waits for a token, if one is free. */
static void wake_waiter(struct sched *s, struct wake *wake)
{
	struct kyber *k = kyber_of(s);
	u32 i, domain;

	for (i = 1; i <= s->nr_queues; i++) {
		u32 index = (k->woken + i) % s->nr_queues;
		const struct queue *q = s->queue[index];

		if (q->state != DISPATCH_NO_BUDGET || q->wake_pending)
			continue;
		for (domain = 0; domain < DOMAINS; domain++)
			if (oldest_with_token(q, domain))
				break;
		if (domain == DOMAINS)
			continue;
		k->woken = index;
		sched_wake(s, index, wake);
		return;
	}
}

/* A request that passes or drains takes a token, too, and does not wait for it. */
static enum dispatch_result kyber_dispatch(struct queue *q, u64 now,
					   struct io **out, struct wake *wake)
{
	enum dispatch_result why = engine_dispatch(q, now, out, wake);

	if (why == DISPATCH_IO) {
		(*out)->flags |= HAS_TOKEN;
		kyber_of(q->sched)->domain[domain_of(*out)].out++;
	}
	if (why != DISPATCH_IO || !q->nr)
		wake_waiter(q->sched, wake);
	return why;
}

static void give_token_back(struct io *io, struct wake *wake)
{
	struct kyber *k = kyber_of(io->queue->sched);

	if (!(io->flags & HAS_TOKEN))
		return;
	io->flags &= (u16)~HAS_TOKEN;
	k->domain[domain_of(io)].out--;
	wake_waiter(io->queue->sched, wake);
}

static void kyber_requeue(struct io *io, struct wake *wake)
{
	engine_requeue(io, wake);
	give_token_back(io, wake);
}

/* ---------------------------------------------------------------- latencies */

static void record(struct histogram *h, u64 ns, u64 target, u64 now)
{
	u64 quarter = max(target / QUARTERS, (u64)1);

	h->bucket[ns ? min((ns - 1) / quarter, (u64)BUCKETS - 1) : 0]++;
	if (!h->since_ns)
		h->since_ns = now;
}

/*
 * Returns the bucket of this percentile and empties @h, or NOT_KNOWN if the
 * latencies are too few.
 */
static u32 percentile(struct histogram *h, u32 percent, u64 now)
{
	u32 i, all = 0, below = 0, rank;

	for (i = 0; i < BUCKETS; i++)
		all += h->bucket[i];
	if (!all || (all < SAMPLES && now < h->since_ns + SAMPLES_NS))
		return NOT_KNOWN;
	rank = (all * percent + 99) / 100;
	for (i = 0; i < BUCKETS - 1; i++) {
		below += h->bucket[i];
		if (below >= rank)
			break;
	}
	*h = (struct histogram){ 0 };
	return i;
}

static void kyber_complete(struct io *io, u64 now, struct wake *wake)
{
	struct sched *s = io->queue->sched;
	struct kyber *k = kyber_of(s);
	struct kyber_domain *kd = &k->domain[domain_of(io)];
	u64 target = target_ns(s, domain_of(io));

	if (target && (io->flags & IO_OUT)) {
		record(&kd->inside, now - io->dispatch_ns, target, now);
		record(&kd->whole, now - io->insert_ns, target, now);
	}
	if (!k->look_ns)
		k->look_ns = now + LOOK_NS;
	wake_at(wake, k->look_ns);
	engine_complete(io, now, wake);
	give_token_back(io, wake);
}

/* Did more than a tenth of the requests of a domain miss its target? */
static bool any_is_late(struct kyber *k, u64 now)
{
	bool late = false;
	u32 i;

	for (i = 0; i < DOMAINS; i++) {
		u32 p90 = percentile(&k->domain[i].inside, 90, now);

		late |= p90 != NOT_KNOWN && p90 >= QUARTERS;
	}
	return late;
}

/* The percentile of @kd to act on.  One that no late domain made matter is kept. */
static u32 p99_of(struct kyber_domain *kd, bool late, u64 now)
{
	u32 p99 = percentile(&kd->whole, 99, now);

	if (!late) {
		if (p99 != NOT_KNOWN)
			kd->p99 = p99;
		return p99;
	}
	if (p99 == NOT_KNOWN)
		p99 = kd->p99;
	kd->p99 = NOT_KNOWN;
	return p99;
}

static void look(struct kyber *k, u64 now)
{
	bool late = any_is_late(k, now);
	u32 i;

	for (i = 0; i < DOMAINS; i++) {
		struct kyber_domain *kd = &k->domain[i];
		u32 p99 = p99_of(kd, late, now);

		if (p99 != NOT_KNOWN && (late || p99 >= QUARTERS))
			kd->depth = clamp(kd->depth * (p99 + 1) / QUARTERS, 1U,
					  domains[i].depth);
	}
}

static void kyber_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct kyber *k = kyber_of(s);
	u32 i;

	engine_tick(s, now, wake);
	if (k->look_ns && now >= k->look_ns) {
		k->look_ns = 0;
		look(k, now);
	}
	if (k->look_ns)
		wake_at(wake, k->look_ns);
	for (i = 0; i < s->nr_queues; i++) {
		if (s->queue[i]->state != DISPATCH_NO_BUDGET)
			continue;
		sched_wake(s, i, wake);
		wake_at(wake, now + LOOK_NS);
	}
}

static const struct engine_ops kyber_lanes = {
	.join	= comparator_join,
	.next	= kyber_next,
	.pay	= kyber_pay,
	.leave	= comparator_join,
	.may_go	= kyber_may_go,
};

static int kyber_init(struct sched *s)
{
	struct kyber *k = kyber_of(s);
	u32 i;

	for (i = 0; i < DOMAINS; i++) {
		k->domain[i].depth = domains[i].depth;
		k->domain[i].p99 = NOT_KNOWN;
	}
	return engine_init(s, &kyber_lanes);
}

static void kyber_report(const struct sched *s, struct report *r)
{
	const struct kyber *k = kyber_of(s);

	engine_report(s, r);
	report_number(r, "read_depth", k->domain[READS].depth);
	report_number(r, "write_depth", k->domain[WRITES].depth);
}

static const struct tunable kyber_tunables[] = {
	{ TUNABLE_U32("read_lat_nsec", struct kyber_params, read_lat_nsec, 1,
		      0xffffffff, 1, 2 * MS) },
	{ TUNABLE_U32("write_lat_nsec", struct kyber_params, write_lat_nsec, 1,
		      0xffffffff, 1, 10 * MS) },
	{ }
};

const struct sched_ops kyber_ops = {
	.name			= "kyber",
	.tunables		= kyber_tunables,
	.params_bytes		= sizeof(struct kyber_params),
	.bytes			= sizeof(struct kyber),
	.queue_bytes		= sizeof(struct kyber_queue),
	.flow_queue_bytes	= sizeof(struct lane),
	.unweighted		= true,
	.init			= kyber_init,
	.exit			= engine_exit,
	.insert			= engine_insert,
	.merge			= engine_merge,
	.dispatch		= kyber_dispatch,
	.block			= engine_block,
	.complete		= kyber_complete,
	.requeue		= kyber_requeue,
	.tick			= kyber_tick,
	.tune			= engine_tune,
	.report			= kyber_report,
};
