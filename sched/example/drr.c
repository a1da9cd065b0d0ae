// SPDX-License-Identifier: GPL-2.0
/*
 * drr - deficit round robin, the worked example
 *
 * The problem.  Flows share a device by weight, and their requests have
 * different sizes.  A scheduler that sorts by tags needs a heap; drr does not.
 *
 * The idea (the paper, section 3).  The lanes of a queue that have requests
 * stand in a ring.  The head of the ring has the turn.  A lane that gets the
 * turn is granted its *quantum*, which is added to its *deficit*.  It sends
 * requests while the deficit is above 0, and each request's cost is subtracted.
 * Then the next lane gets the turn.  The last request of a turn may take the
 * deficit below 0 [R].  The lane then has a debt, which the next quantum
 * reduces.  So a request larger than the quantum needs no special rule.
 *
 *	shares 3/4 and 1/4, quanta of 192 and 64 KiB, requests of 128 KiB:
 *	A sends two (deficit 192 - 256 = -64), B sends one (64 - 128 = -64).
 *	A sends one (192 - 64 - 128 = 0), B sends none (64 - 64 = 0).
 *	In two rounds A has sent three and B one.
 *
 * The quantum is the flow's share of ROUND_BYTES.  A lane that becomes empty
 * forfeits a deficit above 0 and keeps a debt.
 *
 * Invariants
 *   I1  a lane is in the ring if and only if it has requests.
 *   I2  only the head of the ring has a deficit above 0.
 *
 * Limits.  Flows that meet in one queue share it by weight.  The queues share
 * the slots equally (slots.h), whatever their flows weigh.  A larger
 * ROUND_BYTES costs latency; a smaller one costs turns, for a lane with a debt
 * may wait many rounds.
 *
 * Source: Shreedhar, Varghese, Efficient Fair Queuing Using Deficit Round
 * Robin, SIGCOMM 1995.  Tested by tests/unit/drr.c, tests/sim, mt and vm.
 */
#include "core/engine.h"
#include "core/policies.h"

enum {
	ROUND_BYTES	= 1 << 16,	/* of all quanta in a round */
};

struct drr_lane {
	struct lane lane;
	struct drr_lane *next, *prev;	/* Q: in the ring */
	s64 deficit;			/* Q: bytes */
};

struct drr_queue {
	struct drr_lane *head;		/* Q: has the turn; NULL: empty ring */
};

static struct drr_lane *drr_lane_of(struct lane *lane)
{
	return container_of(lane, struct drr_lane, lane);
}

static s64 drr_quantum(struct flow *f)
{
	flow_refresh(f, 0);
	return (s64)mul_u64_u64_shr(flow_share(f), ROUND_BYTES, SHARE_SHIFT) +
	       1;
}

static void drr_give_turn(struct drr_queue *ring, struct drr_lane *l)
{
	ring->head = l;
	l->deficit += drr_quantum(l->lane.flow);
}

/* The lane goes behind all others: before the head of the ring. */
static void drr_join(struct queue *q, struct lane *lane)
{
	struct drr_queue *ring = q->own;
	struct drr_lane *l = drr_lane_of(lane);

	if (!ring->head) {
		l->next = l->prev = l;
		drr_give_turn(ring, l);
		return;
	}
	l->next = ring->head;
	l->prev = ring->head->prev;
	l->prev->next = l;
	l->next->prev = l;
}

static void drr_leave(struct queue *q, struct lane *lane)
{
	struct drr_queue *ring = q->own;
	struct drr_lane *l = drr_lane_of(lane);

	l->deficit = min(l->deficit, 0LL);
	l->prev->next = l->next;
	l->next->prev = l->prev;
	if (l->next == l)
		ring->head = NULL;
	else if (ring->head == l)
		drr_give_turn(ring, l->next);
}

/* The loop ends: a quantum is at least 1, so each round reduces every debt. */
static struct lane *drr_next(struct queue *q)
{
	struct drr_queue *ring = q->own;

	if (!ring->head)
		return NULL;
	while (ring->head->deficit <= 0)
		drr_give_turn(ring, ring->head->next);
	return &ring->head->lane;
}

static void drr_pay(struct queue *q, struct lane *lane, u32 cost)
{
	port_assert_queue_held(q);
	drr_lane_of(lane)->deficit -= cost;
}

static const struct engine_ops drr_lanes = {
	.join	= drr_join,
	.next	= drr_next,
	.pay	= drr_pay,
	.leave	= drr_leave,
};

static int drr_init(struct sched *s)
{
	return engine_init(s, &drr_lanes);
}

static const struct tunable drr_tunables[] = {
	{ TUNABLE_DEPTH_AUTO },
	{ TUNABLE_COST_OF(COST_BYTES) },
	{ TUNABLE_ISOLATION },
	{ }
};

const struct sched_ops drr_ops = {
	.name			= "drr",
	.tunables		= drr_tunables,
	.bytes			= sizeof(struct engine),
	.queue_bytes		= sizeof(struct drr_queue),
	.flow_queue_bytes	= sizeof(struct drr_lane),
	.init			= drr_init,
	ENGINE_HOOKS,
};
