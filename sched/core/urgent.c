// SPDX-License-Identifier: GPL-2.0
/* Debts of flows, the rate of the device, the root's part; see urgent.h. */
#include "urgent.h"
#include "sched.h"

enum {
	RATE_LEAST	= 1 << 10,	/* 1 MB/s: keeps times in 64 bits */
	MEAN_SHIFT	= 2,		/* of the rate: a quarter is new */
	/* After a longer time without a sweep the work tells no rate. */
	SWEEP_MOST_NS	= 4 * FLOW_GRACE_NS,
};

void urgent_init(struct urgent *u)
{
	*u = (struct urgent){ .rate = URGENT_RATE_FIRST };
}

/* Time in which the part of @share that pays earns @cost. */
static u64 paying_ns(const struct sched *s, u64 share, u32 cost)
{
	u64 rate = max(READ_ONCE(s->urgent.rate), (u64)RATE_LEAST);
	u64 ns = div64_u64((u64)cost << URGENT_RATE_SHIFT, rate);

	return mul_u64_u64_div_u64(ns, SHARE_ONE << URGENT_PAY_SHIFT, share);
}

static bool has_room(const struct flow *f)
{
	u32 most = READ_ONCE(f->sched->params.depth) >> URGENT_DEPTH_SHIFT;

	return atomic64_read(&f->urgent.passing) < (s64)max(most, 1U);
}

/* The share of @f.  If @f is idle, it is that which its weight will give it. */
static u64 coming_share(const struct flow *f)
{
	return flow_share(f) ?: share_by_weight(&f->sched->share, &f->group);
}

/* May the debt of a flow be paid @ns from now? */
static bool is_payable(s64 ns)
{
	return ns <= ((s64)URGENT_DEBT_NS << URGENT_PAY_SHIFT);
}

bool urgent_passes(struct flow *f, u32 cost, u64 now)
{
	s64 paid = atomic64_read(&f->urgent.paid_ns), from;
	u64 ns;

	WRITE_ONCE(f->urgent.cost, cost);
	if (!has_room(f))
		return false;
	ns = paying_ns(f->sched, coming_share(f), cost);
	do {
		from = max(paid, (s64)now);
		if (!is_payable(from + (s64)ns - (s64)now))
			return false;
	} while (!atomic64_try_cmpxchg(&f->urgent.paid_ns, &paid,
				       from + (s64)ns));
	return true;
}

bool urgent_may_pass(const struct flow *f, u64 now)
{
	s64 debt = max(atomic64_read(&f->urgent.paid_ns) - (s64)now, (s64)0);
	u32 cost = READ_ONCE(f->urgent.cost);

	return has_room(f) &&
	       is_payable(debt +
			  (s64)paying_ns(f->sched, coming_share(f), cost));
}

static struct flow *root_of(struct flow *f)
{
	struct share_group *g = &f->group;

	while (g->parent)
		g = g->parent;
	return container_of(g, struct flow, group);
}

struct flow *urgent_payer(struct flow *f)
{
	struct flow *root = root_of(f);

	if (f == root ||
	    coming_share(f) >= share_by_weight(&f->sched->share, &root->group))
		return f;
	return root;
}

void urgent_measure(struct urgent *u, u64 work, u64 ns)
{
	u64 rate;

	if (!work || !ns || ns >= SWEEP_MOST_NS)
		return;
	rate = mul_u64_u64_div_u64(work, 1ULL << URGENT_RATE_SHIFT, ns);
	WRITE_ONCE(u->rate,
		   u->rate - (u->rate >> MEAN_SHIFT) + (rate >> MEAN_SHIFT));
}

/*
 * The next io is charged now, so it starts behind the requests that the root
 * has in all lanes.  It wakes no flow: the root has had this io all the time.
 */
void urgent_release(struct queue *q, u64 now)
{
	struct io *next = q->to_adopt.head;
	struct wake wake;

	port_assert_queue_held(q);
	WRITE_ONCE(q->adopted, next);
	if (!next)
		return;
	q->to_adopt.head = next->next;
	wake_init(&wake);
	q->sched->ops->insert(q, next, now, &wake);
}
