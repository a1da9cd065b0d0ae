// SPDX-License-Identifier: GPL-2.0
#include "host.h"

#include "sched/core/slots.h"

enum {
	/* The check of the flows takes time by flows and queues. */
	FLOWS_SELDOM	= 16,
};

/* --------------------------------------------------------- the life of an io */

struct host_flow *audit_payer(const struct host_io *hio)
{
	if (hio->io.flow == hio->flow->flow)
		return hio->flow;
	return host_flow_of(hio->flow->host, hio->io.flow);
}

static struct account *account_of(const struct host_io *hio)
{
	return &audit_payer(hio)->account;
}

/* An io that waits to be adopted is charged after its insert (urgent.h). */
static void audit_charge(struct host_io *hio)
{
	struct account *a = account_of(hio);
	struct host *h = hio->flow->host;

	if (hio->charged || (hio->io.flags & IO_TO_ADOPT))
		return;
	hio->charged = true;
	if (!hio->io.cost)
		host_fail(h, "%llu ns: an io of flow %u was inserted for free",
			  host_now(h), hio->flow->id);
	if (hio->io.pos != a->charged)
		host_fail(
			h,
			"%llu ns: an io of flow %u starts at position %llu, the flow's was %llu",
			host_now(h), hio->flow->id, hio->io.pos, a->charged);
	a->charged += hio->io.cost;
}

void audit_inserted(struct host_io *hio)
{
	struct account *a = account_of(hio);

	a->inserted++;
	/* The scheduler may have made it urgent, or not: isolation.h, urgent.h. */
	hio->in_backlog = !(hio->io.flags & IO_URGENT);
	if (hio->in_backlog)
		a->backlog++;
	audit_charge(hio);
}

void audit_merged(struct host_io *hio, u32 cost, u32 bytes)
{
	struct host *h = hio->flow->host;

	if (hio->io.bytes != bytes)
		host_fail(h, "%llu ns: a merged io has %u bytes, not %u",
			  host_now(h), hio->io.bytes, bytes);
	if (hio->io.cost < cost)
		host_fail(h, "%llu ns: merging lowered a cost from %u to %u",
			  host_now(h), cost, hio->io.cost);
	if (hio->charged)
		account_of(hio)->charged += hio->io.cost - cost;
}

void audit_dispatched(struct host_io *hio)
{
	struct account *a = account_of(hio);

	a->dispatched++;
	if (io_op_transfers(hio->io.op))
		a->bytes += hio->io.bytes;
	a->wait_ns += host_now(hio->flow->host) - hio->inserted_ns;
	if (hio->in_backlog)
		a->backlog--;
	hio->in_backlog = false;
	hio->out = true;
}

void audit_returned(struct host_io *hio)
{
	if (hio->out)
		account_of(hio)->done++;
	hio->out = false;
}

/* --------------------------------------------------------------------- slots */

/* A polled io has a lease, which may end before it. */
static bool has_slot(const struct host_io *hio)
{
	return (hio->io.flags & (IO_SLOT | IO_POLLED)) == IO_SLOT;
}

void audit_slot(const struct host_io *hio, s32 n)
{
	struct host *h = hio->flow->host;

	if (has_slot(hio))
		h->slots += n;
	if ((hio->io.flags & (IO_SLOT | IO_FIRST)) == (IO_SLOT | IO_FIRST))
		h->passers += n;
}

/*
 * One slot beyond D may be in use for each io that passes.  If @hio passes, D may have
 * been lowered below the slots in use.  Several slots[] of a scheduler have D each, and
 * the host counts them as one, so it cannot tell.
 */
bool audit_has_room(const struct host_io *hio)
{
	const struct host *h = hio->flow->host;
	u32 depth = h->sched.params.depth, beyond = slots_beyond(depth);

	if (!(hio->io.flags & IO_FIRST))
		beyond = min(h->passers, beyond);
	return !has_slot(hio) || h->sched.isolation.nr_slots > 1 ||
	       h->slots < depth + beyond;
}

void audit_result(const struct host_queue *hq, enum dispatch_result result)
{
	struct io *adopted = hq->q.adopted;
	struct host *h = hq->host;

	/* Dispatch may have adopted an io, and charged it. */
	if (adopted)
		audit_charge(container_of(adopted, struct host_io, io));

	if (hq->q.state != result)
		host_fail(
			h,
			"%llu ns: queue %u has state %u after dispatch gave %u",
			host_now(h), hq->q.index, hq->q.state, result);
	if (result == DISPATCH_EMPTY && hq->waiting)
		host_fail(h,
			  "%llu ns: queue %u is called empty, but %u ios wait",
			  host_now(h), hq->q.index, hq->waiting);
}

/* ------------------------------------------------------------------ tunables */

static bool line_equals(const struct cost_line *a, const struct cost_line *b)
{
	return a->base == b->base && a->per_kib == b->per_kib;
}

static bool reads_back(const struct tunable *t, const struct sched_params *have,
		       const struct sched_params *given)
{
	const struct cost_model *a, *b;

	if (t->kind != TUNABLE_COST)
		return tunable_get(t, have) == tunable_get(t, given);
	a = tunable_get_cost(t, have);
	b = tunable_get_cost(t, given);
	return a->kind == b->kind && line_equals(&a->read, &b->read) &&
	       line_equals(&a->write, &b->write);
}

void audit_tuned(struct host *h, const struct sched_params *p)
{
	const struct tunable *t;

	for (t = h->sched.ops->tunables; t->name; t++)
		if (!reads_back(t, &h->sched.params, p))
			host_fail(
				h,
				"%llu ns: tunable %s does not read back as set",
				host_now(h), t->name);
}

/* --------------------------------------------------------- flows and queues */

static void check_count(const struct host_flow *hf, const char *what,
			u64 scheduler, u64 host)
{
	struct host *h = hf->host;

	if (scheduler != host)
		host_fail(h,
			  "%llu ns: flow %u has %s %llu, the host counts %llu",
			  host_now(h), hf->id, what, scheduler, host);
}

void audit_flow(const struct host_flow *hf)
{
	const struct account *a = &hf->account;
	const struct flow *f = hf->flow;
	struct flow_totals totals;

	flow_totals(f, &totals);
	check_count(hf, "inserted", totals.inserted, a->inserted);
	check_count(hf, "dispatched", totals.dispatched, a->dispatched);
	check_count(hf, "done", totals.done, a->done);
	check_count(hf, "bytes", totals.bytes, a->bytes);
	check_count(hf, "wait_ns", totals.wait_ns, a->wait_ns);
	check_count(hf, "queued", (u64)atomic64_read(&f->queued),
		    (u64)a->backlog);
	check_count(hf, "position", (u64)atomic64_read(&f->pos), a->charged);
	if (a->inserted != a->done)
		check_count(hf, "active", (u64)atomic64_read(&f->active), 1);
}

static void audit_flows(struct host *h)
{
	const struct host_flow *hf;

	for (hf = h->flows; hf; hf = hf->next)
		audit_flow(hf);
}

static void audit_queue(const struct host_queue *hq)
{
	struct host *h = hq->host;

	if (hq->q.nr != hq->waiting)
		host_fail(h, "%llu ns: queue %u counts %u ios, %u wait",
			  host_now(h), hq->q.index, hq->q.nr, hq->waiting);
	/* The host has not called dispatch for a queue that cannot run. */
	if (hq->q.wake_pending && !hq->blocked && !host_queue_is_full(hq))
		host_fail(
			h,
			"%llu ns: a wake-up of queue %u is pending, and it has run",
			host_now(h), hq->q.index);
}

static void audit_queues(struct host *h)
{
	u32 i;

	for (i = 0; i < h->params.nr_queues; i++)
		audit_queue(&h->queues[i]);
}

static void audit_tick(struct host *h)
{
	if (h->sched.active && !h->tick.armed && !h->params.no_tick)
		host_fail(h, "%llu ns: flows are active, and no tick is armed",
			  host_now(h));
}

void audit_quiet(struct host *h)
{
	audit_tick(h);
	audit_queues(h);
	if (h->audits++ % FLOWS_SELDOM == 0)
		audit_flows(h);
}

void audit_end(struct host *h)
{
	audit_tick(h);
	audit_flows(h);
	/* Wake-ups may be under way, of which audit_queues() knows nothing. */
	if (!h->wakes)
		audit_queues(h);
}
