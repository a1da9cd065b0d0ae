// SPDX-License-Identifier: GPL-2.0
/*
 * mqfq_send - may a run of requests go at once by virtual time?
 *
 * core/send.h has the story.  A run may go if its last request may, by the T of the
 * cheapest: the tags of the others are less.
 *
 *	8 reads of 4 KiB of one flow, T = 64 KiB, share 1: the last one starts 28
 *	KiB after the first.  If the first has a tag of VT + 36 KiB or less, all go.
 *
 * Each invariant of mqfq.c holds.  A queue that publishes a tag sends no run.
 *
 * A flow on several CPUs.  Another CPU may charge the flow after the look at its tag.
 * So it is charged only at the position of that look: this keeps I2.
 *
 * Tested by tests/unit/send.c beside insert and dispatch, tests/sim, tests/mt.
 */
#include "mqfq.h"
#include "core/send.h"

/*
 * The tag at which @f starts when @span of the run is charged.  The run starts at
 * @pos, with @tag.
 */
static vtime_t run_tag(const struct flow *f, u64 pos, vtime_t tag, u64 span,
		       vtime_t vt)
{
	u64 epoch;

	/* flow_catch_up() would have the run start at @vt. */
	if (vtime_before(tag, vt))
		return vtime_at(vt, 0, (u64)atomic64_read(&f->inv), span);
	return span ? flow_tag(f, pos + span, &epoch) : tag;
}

/*
 * No queue publishes a tag, so no other queue needs virtual time where it is.  Each
 * io that is too far ahead raises it, as throttle() in mqfq.c does.
 */
static void raise_for_run(struct mqfq *m, const struct run *r, u64 pos,
			  vtime_t tag, vtime_t vt)
{
	const struct flow *f = r->first->flow;
	const struct io *io;
	vtime_t next;
	u64 span = 0;

	for (io = r->first; io; io = io->next) {
		next = run_tag(f, pos, tag, span, vt);
		if (vtime_before(mqfq_vt(m) +
					 mqfq_threshold(m->sched, f, io->cost),
				 next))
			mqfq_raise_vt(m, next);
		span += io->cost;
	}
}

/*
 * May all of @r go, if the flow has @tag at @pos, and virtual time is @vt?  The
 * T of the scheduler alone is the lesser one, and tells most of the time.
 */
static bool may_send(struct mqfq *m, const struct run *r, u64 pos, vtime_t tag,
		     vtime_t vt)
{
	const struct flow *f = r->first->flow;
	vtime_t last = run_tag(f, pos, tag, r->before_last, vt);

	if (likely(!vtime_before(vt + mqfq_least_threshold(m->sched), last)) ||
	    !vtime_before(vt + mqfq_threshold(m->sched, f, r->least), last))
		return true;
	if (mindicator_min(&m->tags) != VTIME_NONE)
		return false;
	raise_for_run(m, r, pos, tag, vt);
	return true;
}

/* Charges the flow for all ios at once, at the position of the look at its tag. */
static bool charge(struct queue *q, struct run *r, struct flow_start *start)
{
	struct mqfq *m = q->sched->own;
	struct flow *f = r->first->flow;
	vtime_t vt, tag;
	bool behind;
	u64 epoch;

	start->pos = (u64)atomic64_read(&f->pos);
	do {
		vt = mqfq_vt(m);
		tag = flow_tag(f, start->pos, &epoch);
		behind = vtime_before(tag, vt);
		/* A backlogged flow does not catch up. */
		if ((behind && atomic64_read(&f->queued) > 0) ||
		    !may_send(m, r, start->pos, tag, vt))
			return false;
	} while (unlikely(!flow_charge_at(f, r->cost, vt, behind, start)));
	return true;
}

static u32 cost_here(const struct queue *q, const struct io *io)
{
	return cost_of(&q->sched->params.cost, io->op, io->bytes);
}

static __always_inline bool send_run(struct queue *q, struct run *r, u64 now,
				     struct wake *wake)
{
	struct mqfq *m = q->sched->own;

	return !mqfq_queue_of(q)->published &&
	       run_send(q, r, &m->slots, cost_here, charge, now, wake);
}

bool mqfq_send_run(struct queue *q, struct run *r, u64 now, struct wake *wake)
{
	return send_run(q, r, now, wake);
}

bool mqfq_send(struct queue *q, struct io *first, u32 nr, u64 now,
	       struct wake *wake)
{
	struct run r = { .first = first, .nr = nr };

	return send_run(q, &r, now, wake);
}
