// SPDX-License-Identifier: GPL-2.0
/* Queues, lanes and dispatch.  The story is in budget.h. */
#include "round.h"
#include "core/send.h"
#include "cost/cost_estimator.h"

static struct budget_flow_queue *flow_queue_of(const struct flow *f, u32 queue)
{
	return flow_queue_own(f, queue);
}

static u32 domain_of(const struct budget *b, const struct io *io)
{
	return b->ops->domain ? b->ops->domain(io) : 0;
}

static __always_inline u32 charge_of(const struct budget *b,
				     const struct io *io, u32 bytes)
{
	if (b->ops->charge)
		return b->ops->charge(b, io, bytes);
	return cost_of(&b->sched->params.cost, io->op, bytes);
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

/* Puts a lane with requests behind the others of donors, or of flows that are none. */
static void lane_add(struct budget_queue *bq, struct budget_lane *lane, u64 now)
{
	struct lane_list *lanes =
		round_is_donor(lane->flow, now) ? bq->donors : bq->runnable;

	lane_append(&lanes[lane->domain], lane);
}

/* The lanes of @domain of which one goes next. */
static struct lane_list *next_lanes(struct budget_queue *bq, u32 domain)
{
	if (unlikely(bq->donors[domain].head))
		return &bq->donors[domain];
	return &bq->runnable[domain];
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
	u32 cost = charge_of(b, io, io->bytes), domain = domain_of(b, io);
	struct budget_lane *lane;
	struct flow_start start;
	bool waits = engine_arrive(q, io, cost, 0, now, &start, wake);

	if (unlikely(start.woke))
		round_join(b, io->flow, now, wake);
	if (unlikely(!waits))
		return;
	lane = &flow_queue_of(io->flow, q->index)->lane[domain];
	if (!lane->fifo.head) {
		lane->flow = io->flow;
		lane->domain = domain;
		lane_add(budget_queue_of(q), lane, now);
	}
	io_list_append(&lane->fifo, io);
}

void budget_merge(struct queue *q, struct io *io, u32 bytes)
{
	engine_grow(q, io, charge_of(budget_of(q->sched), io, bytes), bytes);
}

/* --------------------------------------------------------------- dispatch */

/* The queue dispatches.  A change of D may have taken it out of a set. */
static void look_at_sets(struct budget *b, const struct queue *q,
			 struct budget_queue *bq)
{
	u32 left = bq->waits, domain;

	for (; unlikely(left); left &= left - 1) {
		domain = port_ffs64(left);
		if (!slots_waits(&b->slots[domain], q->index))
			bq->waits &= ~(1U << domain);
	}
}

/* P3: pairs with wake_waiting().  Have exhausted flows been granted credit? */
static void retry_exhausted(const struct queue *q, struct budget_queue *bq)
{
	u64 grants = (u64)atomic64_read_acquire(&bq->grants);
	struct budget_lane *lane;

	if (likely(grants == bq->seen && !q->drain))
		return;
	bq->seen = grants;
	while (bq->exhausted.head) {
		lane = lane_take(&bq->exhausted);
		lane_append(&bq->runnable[lane->domain], lane);
	}
}

/* The first lane of @domain with credit.  Those before it are put aside. */
static struct budget_lane *first_runnable(struct budget *b, struct queue *q,
					  u32 domain, u64 now,
					  struct wake *wake)
{
	struct budget_queue *bq = budget_queue_of(q);
	struct budget_lane *lane;

	while ((lane = next_lanes(bq, domain)->head)) {
		struct budget_flow *bf = budget_flow_of(lane->flow);

		if (credit_may_spend(&bf->credit) || q->drain ||
		    round_announce(b, bf, q->index, now, wake))
			break;
		lane_append(&bq->exhausted, lane_take(next_lanes(bq, domain)));
	}
	return lane;
}

static __always_inline void put_slot(struct budget *b, struct io *io,
				     struct wake *wake)
{
	struct slots *sl = &b->slots[domain_of(b, io)];

	if (slots_take_back(sl, io->queue->index, io))
		slots_put(sl, io->queue->index, wake);
}

/* False if the flow is exhausted. */
static bool charge(struct budget *b, struct queue *q, struct io *io, u64 now,
		   struct wake *wake)
{
	struct budget_flow_queue *fq = flow_queue_of(io->flow, q->index);
	struct budget_flow *bf = budget_flow_of(io->flow);
	bool always = (io->flags & IO_URGENT) || q->drain, exhausted;

	if (io->flags & IO_PAID)
		return true;
	if (!credit_spend(&bf->credit, io->cost, always ? CREDIT_ANY : 0,
			  &exhausted))
		return false;
	io->flags |= IO_PAID;
	WRITE_ONCE(fq->spent, fq->spent + io->cost);
	if (unlikely(exhausted))
		round_exhausted(b, bf, now, wake);
	return true;
}

/* An io of @domain goes: after a batch of them it is the next domain's turn. */
static void rotate_domain(const struct budget *b, struct budget_queue *bq,
			  u32 domain)
{
	if (bq->domain != domain) {
		bq->domain = domain;
		bq->batch = 0;
	}
	if (++bq->batch >= b->ops->batch[domain]) {
		bq->domain = (domain + 1) % b->ops->nr_domains;
		bq->batch = 0;
	}
}

/* The head of @lane, the first runnable one, goes: the next lane's turn. */
static void rotate_lane(struct budget *b, struct budget_queue *bq,
			struct budget_lane *lane, u64 now)
{
	lane_take(next_lanes(bq, lane->domain));
	io_list_take(&lane->fifo);
	if (lane->fifo.head)
		lane_add(bq, lane, now);
	rotate_domain(b, bq, lane->domain);
}

/* The queue is in the set of @domain: another may be due a slot that is free. */
static void wait_for_slot(struct budget *b, struct queue *q, u32 domain,
			  struct wake *wake)
{
	struct budget_queue *bq = budget_queue_of(q);

	if (bq->waits & (1U << domain))
		return;
	bq->waits |= 1U << domain;
	slots_hand_over(&b->slots[domain], q->index, wake);
}

/* The queue sends no more of @domain.  A slot in its leaf may be of use to another. */
static void leave(struct budget *b, struct queue *q, u32 domain,
		  struct wake *wake)
{
	struct budget_queue *bq = budget_queue_of(q);

	if (bq->waits & (1U << domain)) {
		bq->waits &= ~(1U << domain);
		slots_withdraw(&b->slots[domain], q->index);
	}
	slots_hand_over(&b->slots[domain], q->index, wake);
}

static void leave_all(struct budget *b, struct queue *q, struct wake *wake)
{
	u32 domain;

	for (domain = 0; domain < b->ops->nr_domains; domain++)
		leave(b, q, domain, wake);
}

/* A donor's queue needs a rank if its part of D is less than what the flow is due. */
static bool needs_rank(const struct slots *sl, const struct flow *f, u64 now)
{
	u64 part;

	if (!round_is_donor(f, now))
		return false;
	part = mul_u64_u64_shr(READ_ONCE(f->sched->isolation.size),
			       READ_ONCE(f->share), SHARE_SHIFT);
	return slots_part_is_below(sl, (s64)max(part, 1ULL));
}

/* The queue waits for a slot of @domain, with a rank if the io goes @first. */
static void no_slot(struct budget *b, struct queue *q, u32 domain, bool first,
		    struct wake *wake)
{
	slots_rank(&b->slots[domain], q->index, first);
	wait_for_slot(b, q, domain, wake);
}

/*
 * Returns an io that passes for isolation with its slot, or NULL.  Then the queue waits
 * for a slot of each domain with such an io, and `passing` names those domains.
 */
static struct io *take_passer(struct budget *b, struct queue *q, u64 now,
			      struct wake *wake)
{
	struct budget_queue *bq = budget_queue_of(q);
	u32 all = (1U << b->ops->nr_domains) - 1, domain;
	struct io *io, *before = NULL;

	bq->passing = 0;
	for (io = q->passing.head; io && bq->passing != all;
	     before = io, io = io->next) {
		domain = domain_of(b, io);
		if (bq->passing & (1U << domain))
			continue;
		if (engine_get_slot(&b->slots[domain], q, io)) {
			io_list_remove(&q->passing, before, io);
			charge(b, q, io, now, wake);
			return io;
		}
		bq->passing |= 1U << domain;
		no_slot(b, q, domain, true, wake);
	}
	return NULL;
}

static struct io *take_urgent(struct budget *b, struct queue *q, u64 now,
			      struct wake *wake)
{
	struct io *io = io_list_take(&q->urgent);

	engine_get_slot(&b->slots[domain_of(b, io)], q, io);
	charge(b, q, io, now, wake);
	return io;
}

/* Returns an io that passes all lanes, or NULL. */
static struct io *take_before_lanes(struct budget *b, struct queue *q, u64 now,
				    struct wake *wake)
{
	struct io *io = q->urgent.head ? take_urgent(b, q, now, wake) :
					 take_passer(b, q, now, wake);

	if (io)
		WRITE_ONCE(q->stats.urgent, q->stats.urgent + 1);
	return io;
}

/* An io of @domain with a slot, for which its flow has paid; or NULL and why. */
static struct io *take_domain(struct budget *b, struct queue *q, u32 domain,
			      u64 now, struct wake *wake,
			      enum dispatch_result *why)
{
	struct budget_lane *lane;
	struct io *io;

	/* One that passes has found no slot: the next is for that one. */
	if (unlikely(q->passing.head) &&
	    (budget_queue_of(q)->passing & (1U << domain))) {
		*why = DISPATCH_NO_SLOT;
		return NULL;
	}
	while ((lane = first_runnable(b, q, domain, now, wake))) {
		io = lane->fifo.head;
		if (!engine_get_slot(&b->slots[domain], q, io)) {
			no_slot(b, q, domain,
				needs_rank(&b->slots[domain], lane->flow, now),
				wake);
			*why = DISPATCH_NO_SLOT;
			return NULL;
		}
		if (likely(charge(b, q, io, now, wake))) {
			rotate_lane(b, budget_queue_of(q), lane, now);
			atomic64_dec(&io->flow->queued);
			return io;
		}
		/* Another CPU has spent the last credit. */
		put_slot(b, io, wake);
	}
	leave(b, q, domain, wake);
	return NULL;
}

static struct io *take_next(struct budget *b, struct queue *q, u64 now,
			    struct wake *wake, enum dispatch_result *why)
{
	struct budget_queue *bq = budget_queue_of(q);
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

static enum dispatch_result give_up(struct queue *q, enum dispatch_result why)
{
	queue_set_state(q, why);
	if (why == DISPATCH_NO_BUDGET)
		WRITE_ONCE(q->stats.throttled, q->stats.throttled + 1);
	else if (why == DISPATCH_NO_SLOT)
		WRITE_ONCE(q->stats.no_slot, q->stats.no_slot + 1);
	return why;
}

enum dispatch_result budget_dispatch(struct queue *q, u64 now, struct io **out,
				     struct wake *wake)
{
	struct budget *b = budget_of(q->sched);
	struct budget_queue *bq = budget_queue_of(q);
	enum dispatch_result why;
	struct io *io = NULL;

	queue_looked_at(q);
	look_at_sets(b, q, bq);
	retry_exhausted(q, bq);
	if (unlikely(queue_passes(q)))
		io = take_before_lanes(b, q, now, wake);
	if (!io)
		io = take_next(b, q, now, wake, &why);
	if (!io)
		return give_up(q, why);
	queue_dispatched(q, io, now);
	queue_set_state(q, DISPATCH_IO);
	/* A host may ask an empty queue no more, and others are due more now. */
	if (unlikely(bq->waits && !q->nr))
		leave_all(b, q, wake);
	*out = io;
	return DISPATCH_IO;
}

/* -------------------------------------------------------------------- send */

static u32 cost_in_run(const struct queue *q, const struct io *io)
{
	return charge_of(budget_of(q->sched), io, io->bytes);
}

/*
 * The flow spends for all ios at once, if its credit was above 0 before the last
 * one: each of them could have gone.
 */
static __always_inline bool charge_run(struct queue *q, struct run *r)
{
	struct flow *f = r->first->flow;
	struct budget_flow_queue *fq = flow_queue_of(f, q->index);

	if (!credit_spend(&budget_flow_of(f)->credit, r->cost,
			  (s64)r->before_last, &r->exhausted))
		return false;
	WRITE_ONCE(fq->spent, fq->spent + r->cost);
	r->pos = (u64)atomic64_read(&f->pos);
	while (unlikely(!run_charge_at(r, 0, false)))
		;
	return true;
}

/* Are all ios from @first on of one domain? */
static bool same_domain(const struct budget *b, const struct io *first)
{
	const struct io *io;

	for (io = first->next; io && b->ops->domain; io = io->next)
		if (b->ops->domain(io) != b->ops->domain(first))
			return false;
	return true;
}

bool budget_send(struct queue *q, struct io *first, u32 nr, u64 now,
		 struct wake *wake)
{
	struct budget *b = budget_of(q->sched);
	struct budget_queue *bq = budget_queue_of(q);
	struct run r = { .first = first, .nr = nr };
	u32 domain = domain_of(b, first);
	struct flow *f = first->flow;
	struct io *io;

	/* The queue may wait for slots, and have no io. */
	if (bq->waits || !same_domain(b, first) ||
	    !run_send(q, &r, &b->slots[domain], cost_in_run, charge_run, now,
		      wake))
		return false;
	for (io = first; io; io = io->next) {
		io->flags |= IO_PAID;
		rotate_domain(b, bq, domain);
	}
	if (unlikely(r.woke))
		round_join(b, f, now, wake);
	if (unlikely(r.exhausted))
		round_exhausted(b, budget_flow_of(f), now, wake);
	return true;
}

void budget_block(struct queue *q, struct wake *wake)
{
	struct budget *b = budget_of(q->sched);

	port_assert_queue_held(q);
	queue_set_state(q, DISPATCH_IO);
	leave_all(b, q, wake);
}

static __always_inline void give_back(struct io *io, struct wake *wake)
{
	if (io_returned(io))
		put_slot(budget_of(io->queue->sched), io, wake);
}

void budget_requeue(struct io *io, struct wake *wake)
{
	if (!(io->flags & IO_OUT))
		return;
	give_back(io, wake);
	queue_requeued(io);
}

void budget_complete(struct io *io, u64 now, struct wake *wake)
{
	u32 ios = !!(io->flags & IO_OUT);

	cost_estimator_done(io, now);
	give_back(io, wake);
	queue_completed(io, ios, now);
}

/* ----------------------------------------------------------- life, tuning */

void budget_set_lock(struct flow *f, struct port_lock *lock)
{
	credit_set_lock(&budget_flow_of(f)->credit, lock);
}

void budget_set_rule(struct budget *b, enum budget_rule rule)
{
	WRITE_ONCE(b->rule, rule);
}

void budget_tune(struct sched *s, const struct sched_params *p,
		 struct wake *wake)
{
	if (p)
		isolation_tune(s, p, wake);
	/* At once: all may have waited for a flow that has left. */
	wake_at(wake, 1);
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
	chassis_report(s, r);
}

void budget_report_flow(const struct flow *f, struct report *r)
{
	const struct budget_flow *bf = budget_flow_of(f);

	isolation_report_flow(&f->isolation, r);
	report_number(r, "credit", credit_left(&bf->credit));
	report_number(r, "granted", READ_ONCE(bf->granted));
	report_number(r, "spent", (s64)budget_spent(f));
}

int budget_init(struct budget *b, struct sched *s, const struct budget_ops *ops,
		u64 total, const u32 *depth)
{
	b->sched = s;
	b->ops = ops;
	b->rule = BUDGET_ALL_EXHAUSTED;
	b->total = total;
	b->round = 1;
	b->idle = true;
	return chassis_init(&b->chassis, s, b->slots, ops->nr_domains, depth,
			    true);
}

void budget_deinit(struct budget *b)
{
	chassis_exit(&b->chassis, b->sched);
}
