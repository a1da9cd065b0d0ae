// SPDX-License-Identifier: GPL-2.0
#include "budget.h"
#include "cost/cost_estimator.h"
#include "core/queue.h"

enum {
	SWEEP_NS = FLOW_GRACE_NS / 2,
	SUSPECT_SWEEPS = 10,	/* half a second, as in mqfq.c */
	/* How long a flow stays a donor: as long as a rate is known. */
	DONOR_PERIODS = 8,
	ROUND_PERIODS = 2,	/* most that a conserving one takes; .. */
	ROUND_TURNOVERS = 2,	/* .. but the device is turned over so often */
};

static struct budget_flow_queue *flow_queue_of(const struct flow *f, u32 queue)
{
	return flow_queue_own(f, queue);
}

static struct budget_queue *queue_of(const struct queue *q)
{
	return &budget_of(q->sched)->queue[q->index];
}

static u32 domain_of(const struct budget *b, const struct io *io)
{
	return b->ops->domain ? b->ops->domain(io) : 0;
}

static u32 charge_of(const struct budget *b, const struct io *io, u32 bytes)
{
	if (b->ops->charge)
		return b->ops->charge(b, io, bytes);
	return cost_of(&b->sched->params.cost, io->op, bytes);
}

static u64 period_ns(const struct budget *b)
{
	return READ_ONCE(budget_params(&b->sched->params)->period_ns);
}

static enum budget_rule rule_of(const struct budget *b)
{
	return READ_ONCE(b->rule);
}

/* ---------------------------------------------------------------- credit */

/* The lock that @bf spends under, taken; or NULL. */
static struct port_lock *credit_lock(struct budget_flow *bf,
				     unsigned long *flags)
{
	struct port_lock *lock;

	/* Pairs with budget_set_lock(). */
	while ((lock = smp_load_acquire(&bf->lock))) {
		*flags = port_lock(lock);
		if (lock == READ_ONCE(bf->lock))
			break;
		port_unlock(lock, *flags);
	}
	return lock;
}

void budget_set_lock(struct flow *f, struct port_lock *lock)
{
	struct budget_flow *bf = budget_flow_of(f);
	unsigned long flags;
	struct port_lock *old = credit_lock(bf, &flags);

	/* Pairs with credit_lock(): what was spent under the old is seen. */
	smp_store_release(&bf->lock, lock);
	if (old)
		port_unlock(old, flags);
}

static bool may_spend(const struct budget_flow *bf)
{
	return atomic64_read(&bf->left) > 0;
}

/*
 * Spends @cost if the flow may spend, or in any case if @always.  *@out: this
 * has taken the last of it.
 */
static bool credit_spend(struct budget_flow *bf, u32 cost, bool always,
			 bool *out)
{
	unsigned long flags;
	struct port_lock *lock = credit_lock(bf, &flags);
	s64 left = atomic64_read(&bf->left);
	bool spent = always || left > 0;

	if (lock) {
		if (spent)
			atomic64_set(&bf->left, left - cost);
		port_unlock(lock, flags);
	} else {
		while (spent &&
		       !atomic64_try_cmpxchg(&bf->left, &left, left - cost))
			spent = always || left > 0;
	}
	*out = spent && left > 0 && left <= (s64)cost;
	return spent;
}

/* What is left is forfeited, what is owed is kept. */
static void credit_grant(struct budget_flow *bf, u64 amount)
{
	unsigned long flags;
	struct port_lock *lock = credit_lock(bf, &flags);
	s64 left = atomic64_read(&bf->left);
	s64 then = min(left, (s64)0) + (s64)amount;

	if (lock) {
		atomic64_set(&bf->left, then);
		port_unlock(lock, flags);
	} else {
		while (!atomic64_try_cmpxchg(&bf->left, &left, then))
			then = min(left, (s64)0) + (s64)amount;
	}
	WRITE_ONCE(bf->granted, bf->granted + (then - left));
	bf->mark += then - left;
}

/* P1. */
static void request_tick(struct budget *b, u64 now, struct wake *wake)
{
	if (!atomic64_xchg(&b->tick_requested, 1))
		wake_at(wake, max(now, (u64)1)); /* 0 would be no time */
}

/* P1: does a tick have to look, now that the flow is out? */
static bool is_sentinel(struct budget *b, const struct budget_flow *bf)
{
	s64 sentinel = atomic64_fetch_add(0, &b->sentinel); /* full order */

	return !sentinel || sentinel == (s64)(unsigned long)bf;
}

/* ------------------------------------------------------------- who waits */

/*
 * P2.  The flow was out: has queue @q named when it gets credit.  True if it
 * has some by now.
 */
static bool announce(struct budget *b, struct budget_flow *bf, u32 queue,
		     u64 now, struct wake *wake)
{
	s64 bit = (s64)BIT_ULL(queue % 64);

	atomic64_fetch_or(bit, &bf->waits[queue / 64]);
	if (may_spend(bf)) {
		atomic64_fetch_andnot(bit, &bf->waits[queue / 64]);
		return true;
	}
	/* P4. */
	if (rule_of(b) == BUDGET_CONSERVING && !atomic64_read(&b->watched))
		request_tick(b, now, wake);
	return false;
}

/* P2, P3: names the queues in which the flow waits. */
static void wake_waiting(struct budget *b, struct budget_flow *bf,
			 struct wake *wake)
{
	u32 word, queue;
	u64 bits;

	for (word = 0; word * 64 < b->sched->nr_queues; word++)
		for (bits = (u64)atomic64_xchg(&bf->waits[word], 0); bits;
		     bits &= bits - 1) {
			queue = word * 64 + port_ffs64(bits);
			(void)atomic64_fetch_add(1, &b->queue[queue].grants);
			sched_wake(b->sched, queue, wake);
		}
}

/* --------------------------------------------------------------- granting */

static u64 grant_of(struct budget *b, struct flow *f)
{
	u64 generation, amount;
	u64 share = share_of(&b->sched->share, &f->group, &generation);

	if (b->ops->grant)
		amount = b->ops->grant(b, f, share);
	else
		amount = mul_u64_u64_shr(b->total, share, SHARE_SHIFT);
	return clamp(amount, 1ULL, 1ULL << BUDGET_MOST_SHIFT);
}

/*
 * The flow has just become active.  What it did before it was idle is not part
 * of this round.
 */
static void grant_initial(struct budget *b, struct flow *f, struct wake *wake)
{
	struct budget_flow *bf = budget_flow_of(f);
	unsigned long flags = port_lock(&b->sched->active_lock);

	if (bf->round != b->round) {
		bf->round = b->round;
		credit_grant(bf, grant_of(b, f));
		bf->mark = atomic64_read(&bf->left);
		wake_waiting(b, bf, wake);
	}
	port_unlock(&b->sched->active_lock, flags);
}

/* What each flow did in the round that ends; and all that nobody spared. */
static void account_round(struct budget *b, u64 now)
{
	struct budget_past *all = &b->past;
	u64 round_ns = now - b->start_ns, used = 0, longest_ns = 0;
	struct flow *f;

	all->exhausted = true;
	for (f = b->sched->active; f; f = f->next_active) {
		struct budget_flow *bf = budget_flow_of(f);
		struct budget_past *past = &bf->past;
		s64 left = atomic64_read(&bf->left);
		u64 exhausted_ns = (u64)atomic64_read(&bf->exhausted_ns);

		past->used = (u64)max(bf->mark - left, (s64)0);
		past->exhausted = left <= 0;
		past->ran_ns = round_ns;
		/* Spenders may stamp in any order, and of an earlier round. */
		if (past->exhausted)
			past->ran_ns = min(round_ns,
					   exhausted_ns > b->start_ns ?
						   exhausted_ns - b->start_ns :
						   0);
		used += past->used;
		bf->mark = left;
		if (past->exhausted)
			WRITE_ONCE(bf->donor_until_ns, 0);
		if (past->exhausted)
			longest_ns = max(longest_ns, past->ran_ns);
		else if (bf->donor_until_ns <= now)
			all->exhausted = false;
	}
	all->used = used;
	all->ran_ns = all->exhausted ? longest_ns : round_ns;
	b->used += used;
}

static u64 dispatched(const struct budget *b)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < b->sched->nr_queues; i++)
		sum += READ_ONCE(b->sched->queue[i]->stats.dispatched);
	return sum;
}

/* What the device was given to do; @used: in the round that is not over. */
static u64 work_done(const struct budget *b, u64 used)
{
	return b->ops->work ? b->ops->work(b) : b->used + used;
}

/* The drive's own account of its time; false: there is none. */
static bool drive_time(const struct budget *b, u64 now, struct drive_time *time)
{
	*time = (struct drive_time){ 0 };
	return b->ops->drive_time && b->ops->drive_time(b, now, time);
}

static void begin_account(struct budget *b, u64 now)
{
	struct drive_time time;

	drive_time(b, now, &time);
	throughput_begin_account(&b->throughput, now, &time);
}

/* Requests in the device; *@full: there is no room for more of some domain. */
static u64 in_device(const struct budget *b, bool *full)
{
	u32 domain;
	s64 out = 0, free;

	*full = false;
	for (domain = 0; domain < b->ops->nr_domains; domain++) {
		free = token_total(&b->slots[domain].tree);
		out += READ_ONCE(b->slots[domain].tree.depth) - free;
		*full |= free <= 0;
	}
	return (u64)max(out, (s64)0);
}

u64 budget_least_total(const struct budget *b)
{
	bool full;

	return ROUND_TURNOVERS *
	       throughput_turnover(&b->throughput, in_device(b, &full));
}

/* The counts of now; @used: credit spent in the present round. */
static void count(const struct budget *b, u64 used, u64 now,
		  struct throughput_counts *c)
{
	c->now = now;
	c->period_ns = period_ns(b);
	c->work = work_done(b, used);
	c->in_device = in_device(b, &c->full);
}

static bool is_donor(const struct budget *b, const struct budget_flow *bf,
		     u64 now)
{
	return bf->donor_until_ns > now || throughput_probes(&b->throughput);
}

/*
 * Rounds until the first flow may spend, for what it owes; not counting those
 * whom nobody waits for: beside a spare flow of weight 10000 one of weight 1
 * would get a request for every ten thousand that the other is given.
 */
static u64 rounds_due(struct budget *b, u64 now)
{
	u64 least = ~0ULL, rounds;
	struct flow *f;

	for (f = b->sched->active; f; f = f->next_active) {
		struct budget_flow *bf = budget_flow_of(f);
		s64 left = atomic64_read(&bf->left);

		bf->due = grant_of(b, f);
		if (left > 0 && is_donor(b, bf, now))
			continue;
		rounds = left > 0 ? 1 : div64_u64((u64)-left, bf->due) + 1;
		least = min(least, rounds);
	}
	return least == ~0ULL ? 1 : least;
}

static void refill(struct budget *b, u64 now, struct wake *wake)
{
	struct throughput_counts c;
	u64 rounds;
	struct flow *f;

	account_round(b, now);
	count(b, 0, now, &c);
	throughput_round(&b->throughput, &c, dispatched(b));
	b->least_used = budget_least_total(b);
	if (throughput_account_is_due(&b->throughput, now, c.period_ns))
		begin_account(b, now);
	b->ops->predict(b, now);
	WRITE_ONCE(b->total, clamp(b->total, 1ULL, 1ULL << BUDGET_MOST_SHIFT));
	rounds = rounds_due(b, now);
	b->round++;
	b->start_ns = now;
	for (f = b->sched->active; f; f = f->next_active) {
		struct budget_flow *bf = budget_flow_of(f);

		bf->round = b->round;
		credit_grant(bf, bf->due * rounds);
		if (may_spend(bf))
			wake_waiting(b, bf, wake);
	}
	WRITE_ONCE(b->refills, b->refills + 1);
}

/* ------------------------------------------------------ the end of a round */

struct round_state {
	u64 used;		/* since the round began */
	bool waits;		/* somebody who is out has requests */
	bool holds;		/* somebody who may spend is waited for */
	bool runnable;		/* somebody may spend */
	bool backlog;		/* .. and has requests that do not fit in */
};

static void scan_flows(const struct budget *b, u64 now, struct round_state *st)
{
	struct flow *f;

	*st = (struct round_state){ 0 };
	for (f = b->sched->active; f; f = f->next_active) {
		struct budget_flow *bf = budget_flow_of(f);
		s64 left = atomic64_read(&bf->left);

		st->used += (u64)max(bf->mark - left, (s64)0);
		if (left > 0) {
			st->runnable = true;
			st->backlog |= atomic64_read(&f->queued) > 0;
			st->holds |= !is_donor(b, bf, now);
		} else {
			st->waits |= atomic64_read(&f->queued) > 0;
		}
	}
}

static bool round_is_over(const struct budget *b, const struct round_state *st)
{
	if (rule_of(b) == BUDGET_PERIODIC)
		return false;
	return !st->runnable || (st->waits && !st->holds);
}

static void mark_donors(struct budget *b, u64 now)
{
	struct flow *f;

	for (f = b->sched->active; f; f = f->next_active) {
		struct budget_flow *bf = budget_flow_of(f);

		if (may_spend(bf))
			WRITE_ONCE(bf->donor_until_ns,
				   now + DONOR_PERIODS * period_ns(b));
	}
}

/*
 * Some flow waits for those in credit.  True when the round ends for that: they
 * leave the device idle, or a probe is to show whether they do.
 */
static bool watch(struct budget *b, const struct round_state *st,
		  const struct throughput_counts *c, struct wake *wake)
{
	struct drive_time time;
	bool known = drive_time(b, c->now, &time);
	enum throughput_result result = throughput_wait(&b->throughput, c,
							st->backlog,
							known ? &time : NULL);

	wake_at(wake, c->now + throughput_check_ns(c->period_ns));
	if (result == THROUGHPUT_IDLE)
		mark_donors(b, c->now);
	return result != THROUGHPUT_USED;
}

/* P4: who waits after this has `watched` to go by, or is seen here. */
static bool watch_waiting(struct budget *b, struct round_state *st, u64 now,
			  struct wake *wake)
{
	struct throughput *t = &b->throughput;
	struct throughput_counts c;

	count(b, st->used, now, &c);
	throughput_check_probe(t, &c);
	if (throughput_probes(t))
		wake_at(wake, t->probe_until_ns);
	if (rule_of(b) != BUDGET_CONSERVING || !st->waits) {
		throughput_end_wait(t, &c);
		return false;
	}
	atomic64_set(&b->watched, 1);
	return !throughput_probes(t) && watch(b, st, &c, wake);
}

/* P1: the one who is likely to be out last, for most is left to it. */
static void choose_sentinel(struct budget *b, u64 now)
{
	const struct budget_flow *sentinel = NULL;
	s64 most = 0;
	struct flow *f;

	for (f = b->sched->active; f; f = f->next_active) {
		const struct budget_flow *bf = budget_flow_of(f);
		s64 left = atomic64_read(&bf->left);

		if (left > most && !is_donor(b, bf, now)) {
			most = left;
			sentinel = bf;
		}
	}
	atomic64_set(&b->sentinel, (s64)(unsigned long)sentinel);
}

static void end_early(struct budget *b, u64 now, struct wake *wake)
{
	WRITE_ONCE(b->early, b->early + 1);
	refill(b, now, wake);
}

static u64 round_most_ns(const struct budget *b)
{
	if (rule_of(b) == BUDGET_CONSERVING)
		return ROUND_PERIODS * period_ns(b);
	return period_ns(b);
}

static bool round_is_overdue(const struct budget *b,
			     const struct round_state *st, u64 now)
{
	if (now - b->start_ns < round_most_ns(b))
		return false;
	return rule_of(b) != BUDGET_CONSERVING || st->used >= b->least_used;
}

static void tick_active(struct budget *b, u64 now, struct wake *wake)
{
	struct throughput_counts c;
	struct round_state st;
	u64 end_ns;

	if (b->idle) {
		b->idle = false;
		b->start_ns = now;
		begin_account(b, now);
		count(b, 0, now, &c);
		throughput_start(&b->throughput, &c, dispatched(b));
	}
	/* P4 */
	atomic64_xchg(&b->watched, 0);
	scan_flows(b, now, &st);
	if (round_is_overdue(b, &st, now)) {
		refill(b, now, wake);
		scan_flows(b, now, &st);
	}
	if (round_is_over(b, &st)) {
		end_early(b, now, wake);
		scan_flows(b, now, &st);
	}
	if (watch_waiting(b, &st, now, wake))
		end_early(b, now, wake);
	choose_sentinel(b, now);
	end_ns = b->start_ns + round_most_ns(b);
	wake_at(wake, end_ns > now ? end_ns : now + period_ns(b));
}

/* ------------------------------------------------------------ the watchdog */

/* I2, for a flow. */
static bool flow_forgotten(const struct budget *b, const struct budget_flow *bf)
{
	u32 word;

	for (word = 0; word * 64 < b->sched->nr_queues; word++)
		if (atomic64_read(&bf->waits[word]))
			return may_spend(bf);
	return false;
}

static bool queue_forgotten(const struct budget *b, const struct queue *q)
{
	u32 domain;

	if (READ_ONCE(q->wake_pending) || !READ_ONCE(q->nr))
		return false;
	for (domain = 0; domain < b->ops->nr_domains; domain++)
		if (slots_forgot(&b->slots[domain], q->index))
			return true;
	return false;
}

static void suspect(struct budget *b, u32 *sweeps, bool forgotten)
{
	if (!forgotten)
		*sweeps = 0;
	else if (++*sweeps == SUSPECT_SWEEPS)
		atomic64_inc(&b->sched->stats.watchdog);
}

/*
 * Counts who could have run for SUSPECT_SWEEPS and was not woken, and wakes
 * nobody, as in mqfq.c.
 */
static void watch_forgotten(struct budget *b)
{
	unsigned long flags = port_lock(&b->sched->active_lock);
	struct flow *f;
	u32 i;

	for (f = b->sched->active; f; f = f->next_active) {
		struct budget_flow *bf = budget_flow_of(f);

		suspect(b, &bf->suspect, flow_forgotten(b, bf));
	}
	port_unlock(&b->sched->active_lock, flags);
	for (i = 0; i < b->sched->nr_queues; i++) {
		struct queue *q = b->sched->queue[i];
		struct budget_queue *bq = &b->queue[i];
		u64 dispatched = READ_ONCE(q->stats.dispatched);

		suspect(b, &bq->suspect,
			queue_forgotten(b, q) && dispatched == bq->dispatched);
		bq->dispatched = dispatched;
	}
}

void budget_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct budget *b = budget_of(s);
	unsigned long flags;
	bool changed;

	cost_estimator_tick(s, now, wake);
	/* P1 */
	atomic64_xchg(&b->sentinel, 0);
	atomic64_xchg(&b->tick_requested, 0);
	if (now >= b->sweep_ns) {
		b->sweep_ns = now + SWEEP_NS;
		watch_forgotten(b);
		flow_sweep(s, now, &changed);
	}
	flags = port_lock(&s->active_lock);
	if (s->active) {
		tick_active(b, now, wake);
		wake_at(wake, b->sweep_ns);
	} else if (!b->idle) {
		/* Whoever comes next finds a round in which it had nothing. */
		b->idle = true;
		b->round++;
	}
	port_unlock(&s->active_lock, flags);
}

/* -------------------------------------------------------------- the queue */

static void lane_append(struct lane_list *l, struct budget_lane *lane)
{
	lane->next = NULL;
	if (l->head)
		l->tail->next = lane;
	else
		l->head = lane;
	l->tail = lane;
}

static void lane_prepend(struct lane_list *l, struct budget_lane *lane)
{
	lane->next = l->head;
	if (!l->head)
		l->tail = lane;
	l->head = lane;
}

/* The lane has something to do. */
static void lane_add(struct budget_queue *bq, struct budget_lane *lane, u64 now)
{
	struct lane_list *runnable = &bq->runnable[lane->domain];

	/* Who asks for less than its share need not wait for its turn. */
	if (READ_ONCE(budget_flow_of(lane->flow)->donor_until_ns) > now)
		lane_prepend(runnable, lane);
	else
		lane_append(runnable, lane);
}

static struct budget_lane *lane_take(struct lane_list *l)
{
	struct budget_lane *lane = l->head;

	l->head = lane->next;
	return lane;
}

void budget_insert(struct queue *q, struct io *io, u64 now, struct wake *wake)
{
	struct budget *b = budget_of(q->sched);
	bool urgent = io->flags & (IO_URGENT | IO_CHARGED);
	u32 domain = domain_of(b, io);
	struct budget_lane *lane;
	struct flow_start start;

	queue_inserted(q, io, now);
	if (likely(!(io->flags & IO_CHARGED))) {
		io->cost = charge_of(b, io, io->bytes);
		flow_charge(io->flow, io->cost, 0, !urgent, &start);
		io->pos = start.pos;
		if (unlikely(start.woke)) {
			grant_initial(b, io->flow, wake);
			request_tick(b, now, wake);
		}
	}
	if (unlikely(urgent)) {
		io->flags |= IO_URGENT;
		io_list_append(&q->urgent, io);
		return;
	}
	lane = &flow_queue_of(io->flow, q->index)->lane[domain];
	if (!lane->fifo.head)
		lane_add(queue_of(q), lane, now);
	io_list_append(&lane->fifo, io);
}

void budget_merge(struct queue *q, struct io *io, u32 bytes)
{
	u32 cost = charge_of(budget_of(q->sched), io, bytes);

	port_assert_queue_held(q);
	if (cost > io->cost)
		atomic64_add(cost - io->cost, &io->flow->pos);
	io->cost = max(cost, io->cost);
	io->bytes = bytes;
}

/* --------------------------------------------------------------- dispatch */

/* The queue is looked at: it waits for no slot while it is. */
static void withdraw(struct budget *b, const struct queue *q,
		     struct budget_queue *bq)
{
	while (unlikely(bq->waits)) {
		slots_withdraw(&b->slots[port_ffs64(bq->waits)], q->index);
		bq->waits &= bq->waits - 1;
	}
}

/* P3: has anybody got credit who was out? */
static void retry_exhausted(struct sched *s, struct budget_queue *bq)
{
	u64 grants = (u64)atomic64_read_acquire(&bq->grants);
	struct budget_lane *lane;

	if (likely(grants == bq->seen && !s->drain))
		return;
	bq->seen = grants;
	while (bq->exhausted.head) {
		lane = lane_take(&bq->exhausted);
		lane_append(&bq->runnable[lane->domain], lane);
	}
}

/* The first lane of @domain whose flow may spend; those before it are not able. */
static struct budget_lane *first_runnable(struct budget *b, struct queue *q,
					  u32 domain, u64 now,
					  struct wake *wake)
{
	struct budget_queue *bq = queue_of(q);
	struct budget_lane *lane;

	while ((lane = bq->runnable[domain].head)) {
		struct budget_flow *bf = budget_flow_of(lane->flow);

		if (may_spend(bf) || q->sched->drain ||
		    announce(b, bf, q->index, now, wake))
			break;
		lane_append(&bq->exhausted, lane_take(&bq->runnable[domain]));
	}
	return lane;
}

static bool get_slot(struct budget *b, struct queue *q, struct io *io,
		     u32 domain)
{
	bool waits = !(io->flags & IO_URGENT) && !q->sched->drain;

	if (io->flags & IO_EXEMPT)
		return true;
	if (waits ? slots_take(&b->slots[domain], q->index) :
		    slots_try(&b->slots[domain], q->index)) {
		io->flags |= IO_SLOT;
		return true;
	}
	if (waits)
		queue_of(q)->waits |= 1U << domain;
	return !waits;
}

static void put_slot(struct budget *b, struct io *io, struct wake *wake)
{
	if (!(io->flags & IO_SLOT))
		return;
	io->flags &= (u8)~IO_SLOT;
	slots_put(&b->slots[domain_of(b, io)], io->queue->index, wake);
}

/* False if the flow is out. */
static bool charge(struct budget *b, struct queue *q, struct io *io, u64 now,
		   struct wake *wake)
{
	struct budget_flow_queue *fq = flow_queue_of(io->flow, q->index);
	struct budget_flow *bf = budget_flow_of(io->flow);
	bool always = (io->flags & IO_URGENT) || q->sched->drain, out;

	if (io->flags & IO_CHARGED)
		return true;
	if (!credit_spend(bf, io->cost, always, &out))
		return false;
	io->flags |= IO_CHARGED;
	WRITE_ONCE(fq->spent, fq->spent + io->cost);
	if (unlikely(out)) {
		atomic64_set(&bf->exhausted_ns, (s64)now);
		if (rule_of(b) != BUDGET_PERIODIC && is_sentinel(b, bf))
			request_tick(b, now, wake);
	}
	return true;
}

/* The head of @lane, which is the first able one, is gone: the next's turn. */
static void rotate_lane(struct budget *b, struct budget_queue *bq,
			struct budget_lane *lane)
{
	struct lane_list *runnable = &bq->runnable[lane->domain];

	lane_take(runnable);
	io_list_take(&lane->fifo);
	if (lane->fifo.head)
		lane_append(runnable, lane);
	if (bq->domain != lane->domain) {
		bq->domain = lane->domain;
		bq->batch = 0;
	}
	if (++bq->batch >= b->ops->batch[lane->domain]) {
		bq->domain = (lane->domain + 1) % b->ops->nr_domains;
		bq->batch = 0;
	}
}

/* An io of @domain that has paid and has its slot; or NULL and why not. */
static struct io *take_domain(struct budget *b, struct queue *q, u32 domain,
			      u64 now, struct wake *wake,
			      enum dispatch_result *why)
{
	struct budget_lane *lane;
	struct io *io;

	while ((lane = first_runnable(b, q, domain, now, wake))) {
		io = lane->fifo.head;
		if (!get_slot(b, q, io, domain)) {
			*why = DISPATCH_NO_SLOT;
			return NULL;
		}
		if (likely(charge(b, q, io, now, wake))) {
			rotate_lane(b, queue_of(q), lane);
			atomic64_dec(&io->flow->queued);
			return io;
		}
		/* Another processor has spent the last of it. */
		put_slot(b, io, wake);
	}
	return NULL;
}

static struct io *take_next(struct budget *b, struct queue *q, u64 now,
			    struct wake *wake, enum dispatch_result *why)
{
	struct budget_queue *bq = queue_of(q);
	u32 i, domain = bq->domain;
	struct io *io = NULL;

	*why = DISPATCH_EMPTY;
	for (i = 0; i < b->ops->nr_domains && !io; i++) {
		io = take_domain(b, q, domain, now, wake, why);
		if (++domain == b->ops->nr_domains)
			domain = 0;
	}
	if (*why == DISPATCH_EMPTY && bq->exhausted.head)
		*why = DISPATCH_NO_BUDGET;
	return io;
}

static struct io *take_urgent(struct budget *b, struct queue *q, u64 now,
			      struct wake *wake)
{
	struct io *io = io_list_take(&q->urgent);

	get_slot(b, q, io, domain_of(b, io));
	charge(b, q, io, now, wake);
	WRITE_ONCE(q->stats.urgent, q->stats.urgent + 1);
	return io;
}

/* Slots that the queue was woken for are not its own any more. */
static void hand_over(struct budget *b, const struct queue *q,
		      struct wake *wake)
{
	u32 domain;

	for (domain = 0; domain < b->ops->nr_domains; domain++)
		slots_hand_over(&b->slots[domain], q->index, wake);
}

static enum dispatch_result give_up(struct budget *b, struct queue *q,
				    enum dispatch_result why, struct wake *wake)
{
	queue_set_state(q, why);
	if (why == DISPATCH_NO_BUDGET)
		WRITE_ONCE(q->stats.throttled, q->stats.throttled + 1);
	else if (why == DISPATCH_NO_SLOT)
		WRITE_ONCE(q->stats.no_slot, q->stats.no_slot + 1);
	hand_over(b, q, wake);
	return why;
}

enum dispatch_result budget_dispatch(struct queue *q, u64 now, struct io **out,
				     struct wake *wake)
{
	struct budget *b = budget_of(q->sched);
	struct budget_queue *bq = queue_of(q);
	enum dispatch_result why;
	struct io *io;

	queue_looked_at(q);
	withdraw(b, q, bq);
	retry_exhausted(q->sched, bq);
	if (unlikely(q->urgent.head))
		io = take_urgent(b, q, now, wake);
	else
		io = take_next(b, q, now, wake, &why);
	if (!io)
		return give_up(b, q, why, wake);
	queue_dispatched(q, io, now);
	queue_set_state(q, DISPATCH_IO);
	*out = io;
	return DISPATCH_IO;
}

void budget_block(struct queue *q, struct wake *wake)
{
	struct budget *b = budget_of(q->sched);

	port_assert_queue_held(q);
	withdraw(b, q, queue_of(q));
	queue_set_state(q, DISPATCH_IO);
	hand_over(b, q, wake);
}

void budget_requeue(struct io *io, struct wake *wake)
{
	if (io_returned(io))
		put_slot(budget_of(io->queue->sched), io, wake);
}

void budget_complete(struct io *io, u64 now, struct wake *wake)
{
	cost_estimator_done(io, now);
	budget_requeue(io, wake);
}

/* ------------------------------------------------------------ life, tuning */

void budget_set_rule(struct budget *b, enum budget_rule rule)
{
	WRITE_ONCE(b->rule, rule);
}

void budget_tune(struct sched *s, const struct sched_params *p,
		 struct wake *wake)
{
	struct budget *b = budget_of(s);

	if (p) {
		sched_params_take(s, p);
		if (b->ops->nr_domains == 1 && p->depth != s->params.depth) {
			WRITE_ONCE(s->params.depth, p->depth);
			slots_resize(&b->slots[0], p->depth, wake);
		}
	}
	/* Whoever all waited for may be gone: at once. */
	wake_at(wake, 1);
}

void budget_flow_init(struct flow *f)
{
	const struct budget *b = budget_of(f->sched);
	u32 i, domain;

	for (i = 0; i < f->nr_queues; i++)
		for (domain = 0; domain < b->ops->nr_domains; domain++) {
			struct budget_lane *lane =
				&flow_queue_of(f, i)->lane[domain];

			lane->flow = f;
			lane->domain = domain;
		}
}

u64 budget_spent(const struct flow *f)
{
	u64 spent = 0;
	u32 i;

	for (i = 0; i < f->nr_queues; i++)
		spent += READ_ONCE(flow_queue_of(f, i)->spent);
	return spent;
}

void budget_report(const struct sched *s, struct report *r)
{
	const struct budget *b = budget_of(s);

	report_number(r, "total", (s64)READ_ONCE(b->total));
	report_number(r, "refills", (s64)READ_ONCE(b->refills));
	report_number(r, "refills_early", (s64)READ_ONCE(b->early));
	cost_estimator_report(s, r);
}

void budget_report_flow(const struct flow *f, struct report *r)
{
	const struct budget_flow *bf = budget_flow_of(f);

	report_number(r, "credit", atomic64_read(&bf->left));
	report_number(r, "granted", READ_ONCE(bf->granted));
	report_number(r, "spent", (s64)budget_spent(f));
}

int budget_init(struct budget *b, struct sched *s, const struct budget_ops *ops,
		u64 total, const u32 *depth)
{
	u32 i;

	b->sched = s;
	b->ops = ops;
	b->rule = BUDGET_ALL_EXHAUSTED;
	b->total = total;
	b->round = 1;
	b->idle = true;
	b->queue = port_zalloc(s->nr_queues * sizeof(*b->queue));
	if (!b->queue)
		return -ENOMEM;
	if (cost_estimator_init(s))
		goto queue;
	for (i = 0; i < ops->nr_domains; i++)
		if (slots_init(&b->slots[i], s, depth[i], true))
			goto slots;
	return 0;
	slots:
	while (i--)
		slots_deinit(&b->slots[i]);
	cost_estimator_deinit(s);
queue:
	port_free(b->queue);
	return -ENOMEM;
}

void budget_deinit(struct budget *b)
{
	u32 i;

	for (i = b->ops->nr_domains; i--;)
		slots_deinit(&b->slots[i]);
	cost_estimator_deinit(b->sched);
	port_free(b->queue);
}
