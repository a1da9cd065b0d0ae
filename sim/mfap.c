// SPDX-License-Identifier: GPL-2.0
/*
 * mfap - MFAP: time slices that are inverse to the time that a flow used
 *
 * The flows take turns, and each has the drive for a time slice (service.h).
 * Time is divided into windows.  At the end of each, the flow that used the
 * drive for the longest time gets slices of slice_ms [P].  A flow that used it
 * for half of that time gets slices of twice that length.
 *
 *	Flows that used the drive for 10 and 20 s get slices of 200 and 100 ms.
 *
 * So two flows disturb each other by the same amount.  But a flow without a
 * slice waits for the next: with six others for up to 600 ms.  MFAP-S is the
 * same with slices of 10 ms [P].
 *
 * The paper says no more.  Our reading [R]:
 *   - A slice ends early if its flow has sent no request for idle_us, as in CFQ.
 *     The rest of it does not count as used.
 *   - A flow that did not use the drive in a window has slices of slice_ms.
 *   - No slice is longer than 1000 times slice_ms.
 *   - Slices are multiplied by weight / 100, so equal weights give the paper's.
 *   - The window is the paper's 100 s, and a test sets a shorter one.
 *
 * Source: section 2.2 of Sui, Ye, Yang, Tong (doc/ifq.md), which quotes Sui et
 * al., MFAP, ICCD 2016.  Tested by tests/sim/sim_run.py.
 */
#include "service.h"

enum {
	MS		= 1000 * 1000,
	US		= 1000,
	SLICES_MOST	= 1000,		/* of a slice, in times slice_ms */
};

struct mfap_params {
	struct service_params service;
	u32 slice_ms, window_ms;
};

/* The use of the drive in a window, and in the window before. */
struct use {
	u64 now_ns, before_ns;
};

struct mfap {
	struct service service;
	u64 turns;			/* so far */
	u64 window, window_end_ns;	/* number and end of the present one */
	struct use most;		/* of any flow */
};

struct mfap_flow {
	struct service_flow service;
	u64 turn;			/* number of its last turn */
	u64 window;			/* of its `use` */
	struct use use;
};

static const struct mfap_params *params_of(const struct sched *s)
{
	return (const void *)s->params.own;
}

static void use_roll(struct use *u, bool follows)
{
	u->before_ns = follows ? u->now_ns : 0;
	u->now_ns = 0;
}

/* Begins a new window if the last one is over. */
static void roll(struct sched *s, u64 now)
{
	struct mfap *m = s->own;

	if (now < m->window_end_ns)
		return;
	m->window++;
	m->window_end_ns = now + (u64)params_of(s)->window_ms * MS;
	use_roll(&m->most, true);
}

static struct use *use_of(const struct flow *f)
{
	const struct mfap *m = f->sched->own;
	struct mfap_flow *mf = flow_own(f);

	if (mf->window != m->window)
		use_roll(&mf->use, mf->window + 1 == m->window);
	mf->window = m->window;
	return &mf->use;
}

static u64 slice_ns(const struct flow *f)
{
	const struct mfap *m = f->sched->own;
	u64 before_ns = use_of(f)->before_ns;
	u64 slice = (u64)params_of(f->sched)->slice_ms * MS * f->group.weight /
		    WEIGHT_DEFAULT;

	if (!before_ns)
		return slice;
	return min(slice * (m->most.before_ns / US) / max(before_ns / US, 1ULL),
		   slice * SLICES_MOST);
}

/* The flow that waits for the longest time since its last turn. */
static struct flow *mfap_next(struct sched *s, u64 now, u64 *time_ns)
{
	struct mfap *m = s->own;
	struct mfap_flow *first = NULL;
	struct flow *f, *next = NULL;

	roll(s, now);
	comparator_each(s, f)
	{
		struct mfap_flow *mf = flow_own(f);

		if (!first || mf->turn < first->turn) {
			first = mf;
			next = f;
		}
	}
	if (!next)
		return NULL;
	first->turn = ++m->turns;
	*time_ns = slice_ns(next);
	return next;
}

static void mfap_end(struct sched *s, u64 since, u64 until)
{
	struct mfap *m = s->own;
	struct use *u = use_of(m->service.flow);

	u->now_ns += until - since;
	m->most.now_ns = max(m->most.now_ns, u->now_ns);
}

static const struct service_rule rule = {
	.next		= mfap_next,
	.end		= mfap_end,
};

static const struct engine_ops mfap_lanes = {
	.join	= comparator_join,
	SERVICE_LANES,
};

static int mfap_init(struct sched *s)
{
	return service_init(s, &rule, &mfap_lanes);
}

static const struct tunable mfap_tunables[] = {
	{ TUNABLE_U32("slice_ms", struct mfap_params, slice_ms, 1, 10000, 1,
		      100) },
	{ TUNABLE_U32("window_ms", struct mfap_params, window_ms, 1, 1000000, 1,
		      100000) },
	{ TUNABLE_SERVICE_IDLE },
	{ }
};

const struct sched_ops mfap_ops = {
	.name		= "mfap",
	.tunables	= mfap_tunables,
	.params_bytes	= sizeof(struct mfap_params),
	.bytes		= sizeof(struct mfap),
	.flow_bytes	= sizeof(struct mfap_flow),
	.init		= mfap_init,
	SERVICE_HOOKS,
};
