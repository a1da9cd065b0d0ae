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
 * No queue publishes a tag, so no other queue needs virtual time where it is.  Each
 * io that is too far ahead raises it, as throttle() in mqfq.c does.  The tags of the
 * run, which starts at @pos, are on @line.
 */
static void raise_for_run(struct mqfq *m, const struct io *io,
			  struct flow_line line, u64 pos)
{
	const struct flow *f = io->flow;
	vtime_t tag;

	for (; io; io = io->next) {
		tag = flow_line_tag(&line, pos);
		if (vtime_before(mqfq_vt(m) + mqfq_least_threshold(m->sched),
				 tag) &&
		    vtime_before(mqfq_vt(m) +
					 mqfq_threshold(m->sched, f, io->cost),
				 tag))
			mqfq_raise_vt(m, tag);
		pos += io->cost;
	}
}

/*
 * May all of @r go, if the tags are on @line, the first one is @tag, and virtual time
 * is @vt?  The T of the scheduler alone is the lesser one, and tells most of the time.
 */
static __always_inline bool may_send(struct mqfq *m, const struct run *r,
				     const struct flow_line *line, vtime_t tag,
				     vtime_t vt)
{
	const struct flow *f = r->first->flow;
	vtime_t last = r->before_last ?
			       flow_line_tag(line, r->pos + r->before_last) :
			       tag;

	if (likely(!vtime_before(vt + mqfq_least_threshold(m->sched), last)) ||
	    !vtime_before(vt + mqfq_threshold(m->sched, f, r->least), last))
		return true;
	if (mindicator_min(&m->tags) != VTIME_NONE)
		return false;
	raise_for_run(m, r->first, *line, r->pos);
	return true;
}

/* Charges the flow for all ios at once, at the position of the look at its tag. */
static __always_inline bool charge(struct queue *q, struct run *r)
{
	struct mqfq *m = q->sched->own;
	struct flow *f = r->first->flow;
	struct flow_line line;
	vtime_t vt, tag;
	bool behind;

	r->pos = (u64)atomic64_read(&f->pos);
	do {
		vt = mqfq_vt(m);
		line = flow_line(f);
		tag = flow_line_tag(&line, r->pos);
		behind = vtime_before(tag, vt);
		if (behind) {
			/* A backlogged flow does not catch up. */
			if (atomic64_read(&f->queued) > 0)
				return false;
			/* The line that flow_catch_up() makes. */
			line.base = tag = vt;
			line.base_pos = r->pos;
		}
		if (!may_send(m, r, &line, tag, vt))
			return false;
	} while (unlikely(!run_charge_at(r, vt, behind)));
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
