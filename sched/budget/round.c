// SPDX-License-Identifier: GPL-2.0
/*
 * Rounds: which flow gets how much credit, and when.  The story, the table of
 * states and the orderings P1 to P4 are in budget.h.
 */
#include "round.h"

enum {
	/* A donor for so long: a mark by mistake costs shares for under a second. */
	DONOR_PERIODS = 8,
	/*
	 * Between two checks of the device, while a flow waits.  More than FREE_PART
	 * of it may idle for as long before a donor is known.
	 */
	CHECK_NS = 1000 * 1000,
	/*
	 * The device is idle if more than this part of D is free.  A flow with D requests
	 * has a few outside at any moment, which it is about to send again.
	 */
	FREE_PART = 8,
	/* Grants for so long: each round causes two ticks. */
	GRANTS_NS = 2 * CHECK_NS,
	/* A check reads some lines of each flow, and one for each of a donor's queues. */
	CHECK_LINE_NS = 50,
	CHECK_LINES = 4,
	/* Most periods that a conserving round lasts, unless .. */
	ROUND_PERIODS = 2,
	/* .. the device has not been turned over so often. */
	ROUND_TURNOVERS = 2,
	/* A total is so many requests of each flow, on average, at least. */
	FLOW_REQUESTS = 4,
	/* Most grants at once: no flow gets more than 2^62. */
	ROUNDS_MOST = 1 << (62 - BUDGET_MOST_SHIFT),
};

static u64 nr_active(const struct budget *b)
{
	return READ_ONCE(b->sched->share.nr_active);
}

static u64 period_ns(const struct budget *b)
{
	return READ_ONCE(budget_params(&b->sched->params)->period_ns);
}

static u64 check_ns(const struct budget *b)
{
	u64 lines = nr_active(b) * (CHECK_LINES + b->sched->nr_queues);

	return max((u64)CHECK_NS, CHECK_LINE_NS * lines);
}

static void request_tick(struct budget *b, u64 now, struct wake *wake)
{
	/* P1: pairs with round_tick().  At 0 no time would be asked for. */
	if (!atomic64_xchg(&b->tick_requested, 1))
		wake_at(wake, max(now, (u64)1));
}

/* ---------------------------------------------- waiting for credit, wakes */

void round_exhausted(struct budget *b, struct budget_flow *bf, u64 now,
		     struct wake *wake)
{
	s64 sentinel;

	atomic64_set(&bf->exhausted_ns, (s64)now);
	if (round_rule(b) == BUDGET_PERIODIC)
		return;
	/* P1: a full order after the spending.  Pairs with round_tick(). */
	sentinel = atomic64_fetch_add(0, &b->sentinel);
	if (!sentinel || sentinel == (s64)(unsigned long)bf)
		request_tick(b, now, wake);
}

bool round_announce(struct budget *b, struct budget_flow *bf, u32 queue,
		    u64 now, struct wake *wake)
{
	s64 bit = (s64)BIT_ULL(queue % 64);
	/* P2: full order.  Pairs with take_waiting(). */
	bool first = !(atomic64_fetch_or(bit, &bf->waits[queue / 64]) & bit);

	if (credit_may_spend(&bf->credit)) {
		/* Else a lane of another domain waits, and the bit is its. */
		if (first)
			atomic64_fetch_andnot(bit, &bf->waits[queue / 64]);
		return true;
	}
	/* P4: pairs with tick_active(). */
	if (round_rule(b) == BUDGET_CONSERVING && !atomic64_read(&b->watched))
		request_tick(b, now, wake);
	return false;
}

/* Queues that waited for credit, and are to be woken. */
struct waiting {
	u64 word[QUEUE_WORDS];
};

/* The flow has been granted credit: takes the queues that wait for it. */
static void take_waiting(const struct budget *b, struct budget_flow *bf,
			 struct waiting *w)
{
	u32 word;

	/* P2: full order after the grant.  Pairs with round_announce(). */
	for (word = 0; word * 64 < b->sched->nr_queues; word++)
		w->word[word] |= (u64)atomic64_xchg(&bf->waits[word], 0);
}

static void wake_waiting(struct budget *b, const struct waiting *w,
			 struct wake *wake)
{
	u32 word, queue;
	u64 bits;

	for (word = 0; word * 64 < b->sched->nr_queues; word++)
		for (bits = w->word[word]; bits; bits &= bits - 1) {
			queue = word * 64 + port_ffs64(bits);
			/* P3: pairs with retry_exhausted(). */
			(void)atomic64_fetch_add(
				1, &budget_queue_of(b->sched->queue[queue])
					    ->grants);
			sched_wake(b->sched, queue, wake);
		}
}

/* --------------------------------------------------------------- granting */

static u64 grant_of(struct budget *b, struct flow *f)
{
	u64 share = flow_present_share(f), amount;

	if (b->ops->grant)
		amount = b->ops->grant(b, f, share);
	else
		amount = mul_u64_u64_shr(READ_ONCE(b->total), share,
					 SHARE_SHIFT);
	return clamp(amount, 1ULL, 1ULL << BUDGET_MOST_SHIFT);
}

static void grant(struct budget_flow *bf, u64 round, u64 amount)
{
	s64 grown = credit_grant(&bf->credit, amount);

	bf->round = round;
	WRITE_ONCE(bf->granted, bf->granted + grown);
	bf->mark += grown;
}

/*
 * The flow has just become active.  Credit that it spent before it was idle is
 * not counted in this round.
 */
static void grant_initial(struct budget *b, struct flow *f, struct wake *wake)
{
	struct budget_flow *bf = budget_flow_of(f);
	struct waiting waiting = { 0 };
	unsigned long flags = port_lock(&b->sched->active_lock);

	if (bf->round != b->round) {
		grant(bf, b->round, grant_of(b, f));
		bf->mark = credit_left(&bf->credit);
		take_waiting(b, bf, &waiting);
	}
	port_unlock(&b->sched->active_lock, flags);
	wake_waiting(b, &waiting, wake);
}

void round_join(struct budget *b, struct flow *f, u64 now, struct wake *wake)
{
	grant_initial(b, f, wake);
	request_tick(b, now, wake);
}

/*
 * Grants until the debt of the first flow is paid, and the flows that are not donors
 * have the work of GRANTS_NS together, or the total.  Donors do not use their grants.
 * Beside a donor of weight 10000 a flow of weight 1 has one request in a grant.  It
 * would end a round, and cause a tick, with each of its requests.
 */
static u64 rounds_due(struct budget *b, u64 now)
{
	u64 least = ~0ULL, sum = 0, work, rounds;
	struct flow_walk w;
	struct flow *f;

	for_each_active_flow(f, &w, b->sched) {
		struct budget_flow *bf = budget_flow_of(f);
		s64 left = credit_left(&bf->credit);

		if (bf->round == b->round)
			continue;
		bf->due = grant_of(b, f);
		if (left > 0 && round_is_donor(f, now))
			continue;
		sum += bf->due;
		rounds = left > 0 ? 1 : div64_u64((u64)-left, bf->due) + 1;
		least = min(least, rounds);
	}
	if (!sum)
		return 1;
	work = min(turnover_in(&b->turnover, GRANTS_NS), READ_ONCE(b->total));
	rounds = max(least, div64_u64(work + sum / 2, sum));
	return min(rounds, (u64)ROUNDS_MOST);
}

/* ------------------------------------------ the round that ends: accounts */

static void account_flow(const struct budget *b, struct budget_flow *bf,
			 u64 round_ns)
{
	struct budget_past *past = &bf->past;
	u64 exhausted_ns = (u64)atomic64_read(&bf->exhausted_ns);
	s64 left = credit_left(&bf->credit);

	past->used = (u64)max(bf->mark - left, (s64)0);
	past->exhausted = left <= 0;
	past->ran_ns = round_ns;
	bf->mark = left;
	if (!past->exhausted)
		return;
	/* Spenders may stamp in any order, and in an earlier round. */
	past->ran_ns = min(round_ns, exhausted_ns > b->start_ns ?
					     exhausted_ns - b->start_ns :
					     0);
	WRITE_ONCE(bf->donor_until_ns, 0);
}

/*
 * Records the round that has ended: the usage and the exhaustion of each flow, and
 * in b->past the sums over the flows that are not donors.
 */
static void account_round(struct budget *b, u64 now)
{
	struct budget_past *all = &b->past;
	u64 round_ns = now - b->start_ns, used = 0, longest_ns = 0;
	struct flow_walk w;
	struct flow *f;

	all->exhausted = true;
	for_each_active_flow(f, &w, b->sched) {
		struct budget_flow *bf = budget_flow_of(f);

		account_flow(b, bf, round_ns);
		used += bf->past.used;
		if (bf->past.exhausted)
			longest_ns = max(longest_ns, bf->past.ran_ns);
		else if (bf->donor_until_ns <= now)
			all->exhausted = false;
	}
	all->used = used;
	all->ran_ns = all->exhausted ? longest_ns : round_ns;
	b->used += used;
}

/* ------------------------------------------- what the device holds and did */

/* Requests in the device. */
static u64 in_device(const struct budget *b)
{
	return isolation_slots_used(&b->sched->isolation);
}

/* Some domain has no more than a part of its slots left. */
static bool is_full(const struct budget *b)
{
	const struct token_tree *t;
	u32 domain;

	for (domain = 0; domain < b->ops->nr_domains; domain++) {
		t = &b->slots[domain].tree;
		if (token_total(t) <= (s64)READ_ONCE(t->depth) / FREE_PART)
			return true;
	}
	return false;
}

/* At the end of a round.  Credit that is spent in the next one is not counted. */
static void count(const struct budget *b, u64 now, struct turnover_counts *c)
{
	c->now = now;
	c->work = b->used;
	c->dispatched = sched_dispatched(b->sched);
}

/* Credit that is spent in a round before its time is over. */
static u64 least_used(const struct budget *b)
{
	return ROUND_TURNOVERS * turnover_of(&b->turnover, in_device(b));
}

u64 round_least_total(const struct budget *b)
{
	return max(least_used(b),
		   turnover_of(&b->turnover, FLOW_REQUESTS * nr_active(b)));
}

u64 round_longer_total(const struct budget *b, u64 now, u64 least_ns)
{
	bool was_short = b->past.exhausted && now - b->start_ns < least_ns;

	return was_short ? b->total * 2 : b->total;
}

/* ----------------------------------------------------------------- refill */

static void measure_round(struct budget *b, u64 now)
{
	struct turnover_counts c;

	count(b, now, &c);
	turnover_round(&b->turnover, &c, period_ns(b));
	b->least_used = least_used(b);
}

/*
 * Begins a round, and returns how many grants each flow gets.  A flow that becomes
 * active from now on has its grant from grant_initial() alone.
 */
static u64 begin_round(struct budget *b, u64 now)
{
	unsigned long flags = port_lock(&b->sched->active_lock);

	b->round++;
	port_unlock(&b->sched->active_lock, flags);
	b->start_ns = now;
	return rounds_due(b, now);
}

static void grant_all(struct budget *b, u64 rounds, struct wake *wake)
{
	struct waiting waiting = { 0 };
	struct flow_walk w;
	struct flow *f;

	for_each_active_flow(f, &w, b->sched) {
		struct budget_flow *bf = budget_flow_of(f);

		/* Without a due, the flow became active after begin_round(). */
		if (bf->round != b->round && bf->due) {
			grant(bf, b->round, bf->due * rounds);
			if (credit_may_spend(&bf->credit))
				take_waiting(b, bf, &waiting);
		}
		bf->due = 0;
	}
	wake_waiting(b, &waiting, wake);
}

static void refill(struct budget *b, u64 now, struct wake *wake)
{
	u64 rounds;

	account_round(b, now);
	measure_round(b, now);
	b->ops->predict(b, now);
	WRITE_ONCE(b->total, clamp(b->total, 1ULL, 1ULL << BUDGET_MOST_SHIFT));
	rounds = begin_round(b, now);
	grant_all(b, rounds, wake);
	WRITE_ONCE(b->refills, b->refills + 1);
}

static void refill_early(struct budget *b, u64 now, struct wake *wake)
{
	WRITE_ONCE(b->early, b->early + 1);
	refill(b, now, wake);
}

/* ----------------------------------------------------- the end of a round */

/* Of some flows, the one with the most credit, which is probably exhausted last. */
struct in_credit {
	const struct budget_flow *flow;	/* or NULL */
	s64 left;			/* its credit */
};

/* The active flows, each at the moment of its visit. */
struct round_state {
	u64 used;		/* credit, since the round began */
	bool waits;		/* an exhausted flow has requests */
	bool runnable;		/* a flow has credit, .. */
	bool backlog;		/* .. and requests that are queued */
	/* requests of donors with credit, waiting or in the device; not all if too many */
	u64 donated;
	struct in_credit donor;		/* the last of the donors */
	/* P1: the last of the flows for which the round waits */
	struct in_credit sentinel;
};

/* Have the donors with credit a request for each place of the device? */
static bool donors_fill(const struct budget *b, const struct round_state *st)
{
	return st->donated >= READ_ONCE(b->sched->isolation.size);
}

/* Returns the requests of @f, waiting or in the device.  Counters are read one by one. */
static u64 requests_of(const struct flow *f)
{
	struct flow_totals t;

	flow_totals(f, &t);
	return t.inserted > t.done ? t.inserted - t.done : 0;
}

static void see_in_credit(const struct budget *b, struct round_state *st,
			  const struct flow *f, s64 left, u64 now)
{
	struct in_credit *c = &st->sentinel;

	st->runnable = true;
	st->backlog |= atomic64_read(&f->queued) > 0;
	if (round_is_donor(f, now)) {
		if (!donors_fill(b, st))
			st->donated += requests_of(f);
		c = &st->donor;
	}
	if (left >= c->left)
		*c = (struct in_credit){ budget_flow_of(f), left };
}

static void scan_flows(struct budget *b, u64 now, struct round_state *st)
{
	struct flow_walk w;
	struct flow *f;

	*st = (struct round_state){ 0 };
	for_each_active_flow(f, &w, b->sched) {
		struct budget_flow *bf = budget_flow_of(f);
		s64 left = credit_left(&bf->credit);

		st->used += (u64)max(bf->mark - left, (s64)0);
		if (left > 0)
			see_in_credit(b, st, f, left, now);
		else
			st->waits |= atomic64_read(&f->queued) > 0;
	}
	if (donors_fill(b, st) && st->donor.left > st->sentinel.left)
		st->sentinel = st->donor;
}

static u64 round_most_ns(const struct budget *b)
{
	if (round_rule(b) == BUDGET_CONSERVING)
		return ROUND_PERIODS * period_ns(b);
	return period_ns(b);
}

/* The time of the round is over. */
static bool round_is_overdue(const struct budget *b,
			     const struct round_state *st, u64 now)
{
	if (now - b->start_ns < round_most_ns(b))
		return false;
	return round_rule(b) != BUDGET_CONSERVING || st->used >= b->least_used;
}

/* All flows are exhausted, or those that wait do so for donors that leave places free. */
static bool round_is_over(const struct budget *b, const struct round_state *st)
{
	if (round_rule(b) == BUDGET_PERIODIC)
		return false;
	return !st->runnable || (st->waits && !st->sentinel.flow);
}

static void mark_donors(struct budget *b, u64 now)
{
	struct flow_walk w;
	struct flow *f;

	for_each_active_flow(f, &w, b->sched) {
		struct budget_flow *bf = budget_flow_of(f);

		if (credit_may_spend(&bf->credit))
			WRITE_ONCE(bf->donor_until_ns,
				   now + DONOR_PERIODS * period_ns(b));
	}
}

/*
 * Looks at the device while a flow waits for those with credit.  True if the round
 * ends because they leave it idle.
 */
static bool watch(struct budget *b, const struct round_state *st, u64 now,
		  struct wake *wake)
{
	if (round_rule(b) != BUDGET_CONSERVING || !st->waits)
		return false;
	atomic64_set(&b->watched, 1);
	wake_at(wake, now + check_ns(b));
	if (st->backlog || is_full(b))
		return false;
	mark_donors(b, now);
	return true;
}

static void start(struct budget *b, u64 now)
{
	struct turnover_counts c;

	b->idle = false;
	b->start_ns = now;
	count(b, now, &c);
	turnover_start(&b->turnover, &c);
}

static void tick_active(struct budget *b, u64 now, struct wake *wake)
{
	struct round_state st;
	u64 end_ns;

	if (b->idle)
		start(b, now);
	/* P4: full order.  Pairs with round_announce(). */
	atomic64_xchg(&b->watched, 0);
	scan_flows(b, now, &st);
	if (round_is_overdue(b, &st, now)) {
		refill(b, now, wake);
		scan_flows(b, now, &st);
	}
	if (round_is_over(b, &st)) {
		refill_early(b, now, wake);
		scan_flows(b, now, &st);
	}
	if (watch(b, &st, now, wake)) {
		refill_early(b, now, wake);
		scan_flows(b, now, &st);
	}
	atomic64_set(&b->sentinel, (s64)(unsigned long)st.sentinel.flow);
	end_ns = b->start_ns + round_most_ns(b);
	wake_at(wake, end_ns > now ? end_ns : now + period_ns(b));
}

/* ----------------------------------------------------------- the watchdog */

static void note_waits(struct budget *b, const struct budget_flow *bf)
{
	bool has_credit = credit_may_spend(&bf->credit);
	u32 word;

	for (word = 0; word * 64 < b->sched->nr_queues; word++) {
		u64 bits = (u64)atomic64_read(&bf->waits[word]);

		b->announced[word] |= bits;
		b->granted[word] |= has_credit ? bits : 0;
	}
}

/* Notes the queues that wait for credit.  Later announcements show in the next sweep. */
static void note_all_waits(struct budget *b)
{
	struct flow_walk w;
	struct flow *f;
	u32 word;

	for (word = 0; word < QUEUE_WORDS; word++)
		b->announced[word] = b->granted[word] = 0;
	for_each_active_flow(f, &w, b->sched)
		note_waits(b, budget_flow_of(f));
}

/* I2: the queue waits for a flow that has credit, or waits unannounced. */
static bool credit_forgot(const struct budget *b, const struct queue *q)
{
	u64 bit = BIT_ULL(q->index % 64);

	if (READ_ONCE(q->state) == DISPATCH_NO_BUDGET &&
	    !(b->announced[q->index / 64] & bit))
		return true;
	return b->granted[q->index / 64] & bit;
}

static bool queue_is_forgotten(const struct queue *q)
{
	const struct budget *b = budget_of(q->sched);
	u32 domain;

	if (credit_forgot(b, q))
		return true;
	for (domain = 0; domain < b->ops->nr_domains; domain++)
		if (slots_forgot(&b->slots[domain], q->index))
			return true;
	return false;
}

void round_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct budget *b = budget_of(s);
	unsigned long flags;
	bool any;

	chassis_tick(&b->chassis, s, now, wake);
	/* P1: full order.  Pairs with round_exhausted(), request_tick(). */
	atomic64_xchg(&b->sentinel, 0);
	atomic64_xchg(&b->tick_requested, 0);
	/* The sweep judges queues by these. */
	if (chassis_sweep_is_due(&b->chassis, now))
		note_all_waits(b);
	chassis_sweep(&b->chassis, s, now, queue_is_forgotten, wake);
	flags = port_lock(&s->active_lock);
	any = s->active;
	if (!any && !b->idle) {
		/* The next flow that comes finds a round without a grant. */
		b->idle = true;
		b->round++;
	}
	port_unlock(&s->active_lock, flags);
	if (any)
		tick_active(b, now, wake);
}
