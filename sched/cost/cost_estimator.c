// SPDX-License-Identifier: GPL-2.0
#include "cost_estimator.h"

enum {
	SECTOR_SHIFT	= 9,
	/* done: requests above, sectors below; 16 TiB between two ticks. */
	REQUESTS_SHIFT	= 35,

	/* In windows.  Prices: of a KiB every 4, of writes every 8. */
	KIB_PHASE	= 4,
	WRITE_PHASE	= 8,
	SETTLE		= 48,
	MEASURE		= 48,
	STAGE		= SETTLE + MEASURE,
	TRIAL		= 2 * STAGE,
	REST_SHIFT_MOST	= 5,
	APART_MOST	= 16,		/* tenants that spend their budgets in turn */

	CREDIT_SHIFT	= 2,		/* a quarter of what reads take */
	FEW_SHIFT	= 6,		/* too few writes to matter */
	CHEAP_STEP	= 2,
	CHEAP_MOST	= 4,
	/* What a trial counts for, in windows, of 2^7 that are remembered. */
	TRIAL_WEIGHT	= 32,
};

static bool offered(const struct sched *s)
{
	return tunable_find(s->ops->tunables, "cost");
}

int cost_estimator_init(struct sched *s)
{
	struct cost_estimator *l;

	s->cost_estimator = NULL;
	cost_learned_set(&s->params.cost, NULL);
	if (!offered(s))
		return 0;
	l = port_zalloc(sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->queue = port_zalloc(s->nr_queues * sizeof(*l->queue));
	if (!l->queue) {
		port_free(l);
		return -ENOMEM;
	}
	l->cost_rls.dithered = !s->ops->shifts_mix;
	s->cost_estimator = l;
	return 0;
}

void cost_estimator_deinit(struct sched *s)
{
	if (!s->cost_estimator)
		return;
	port_free(s->cost_estimator->queue);
	port_free(s->cost_estimator);
	s->cost_estimator = NULL;
}

void cost_estimator_add(const struct io *io, u64 now)
{
	const struct sched *s = io->queue->sched;
	struct cost_estimator_queue *lq;
	u32 kind;

	if (!io_op_transfers(io->op) || !(io->flags & IO_OUT) ||
	    now <= io->dispatch_ns)
		return;
	lq = &s->cost_estimator->queue[io->queue->index];
	kind = cost_rls_kind(io->op, io->bytes);
	atomic64_add((1LL << REQUESTS_SHIFT) + (io->bytes >> SECTOR_SHIFT),
		     &lq->done[kind]);
	atomic64_add((s64)(now - io->dispatch_ns), &lq->ns[kind]);
}

static void collect(struct cost_estimator *l, struct cost_estimator_queue *lq)
{
	u32 kind;
	u64 done;

	for (kind = 0; kind < COST_RLS_KINDS; kind++) {
		struct cost_rls_sums *sums = &l->sums[kind];

		if (!atomic64_read(&lq->done[kind]))
			continue;
		done = (u64)atomic64_xchg(&lq->done[kind], 0);
		sums->requests += done >> REQUESTS_SHIFT;
		sums->sectors += done & (BIT_ULL(REQUESTS_SHIFT) - 1);
		sums->ns += (u64)atomic64_xchg(&lq->ns[kind], 0);
	}
}

/* ----------------------------------------------------- writes on credit */

static struct cost_rls_sums class_sums(const struct cost_rls_sums *sums,
				       u32 class)
{
	struct cost_rls_sums all = { 0 };
	u32 i;

	for (i = 0; i < COST_RLS_SIZES; i++) {
		const struct cost_rls_sums *k =
			&sums[class * COST_RLS_SIZES + i];

		all.requests += k->requests;
		all.sectors += k->sectors;
		all.ns += k->ns;
	}
	return all;
}

static bool has_writes(const struct cost_rls_sums *sums)
{
	struct cost_rls_sums reads = class_sums(sums, IO_READ);
	struct cost_rls_sums writes = class_sums(sums, IO_WRITE);

	return writes.requests > reads.requests >> FEW_SHIFT;
}

static bool has_both(const struct cost_rls_sums *sums)
{
	return has_writes(sums) && class_sums(sums, IO_READ).requests;
}

static u64 mean_ns(const struct cost_rls_sums *sums)
{
	return div64_u64(sums->ns, max(sums->requests, 1ULL));
}

/* Of a window that has both. */
static bool is_deferred(const struct cost_rls_sums *sums)
{
	struct cost_rls_sums reads = class_sums(sums, IO_READ);
	struct cost_rls_sums writes = class_sums(sums, IO_WRITE);

	return mean_ns(&writes) < mean_ns(&reads) >> CREDIT_SHIFT;
}

/* What the window tells of credit. */
static void look(struct cost_estimator *l)
{
	if (has_both(l->sums) && is_deferred(l->sums))
		WRITE_ONCE(l->credit, true);
	l->unwritten = has_writes(l->sums) ? 0 : l->unwritten + 1;
}

static bool pays(const struct cost_rls_sums *sums)
{
	return has_both(sums) && !is_deferred(sums);
}

/* None before the first; the longest after one that told something. */
static u32 rest_windows(const struct cost_estimator *l)
{
	u32 shift = l->tried ? REST_SHIFT_MOST :
			       min(l->trials, (u32)REST_SHIFT_MOST);

	return (TRIAL << shift) - TRIAL;
}

/* The mean window of a stage of the trial, when it had settled. */
static void stage_mean(const struct cost_estimator *l, u32 stage,
		       struct cost_rls_sums *mean)
{
	const struct cost_rls_sums *total = l->total[stage - ESTIMATOR_TRIAL];
	u32 i;

	for (i = 0; i < COST_RLS_KINDS; i++)
		mean[i] = (struct cost_rls_sums){
			.requests = total[i].requests / MEASURE,
			.sectors = total[i].sectors / MEASURE,
			.ns = total[i].ns / MEASURE,
		};
}

static void trial_learn(struct cost_estimator *l)
{
	struct cost_rls_sums dear[COST_RLS_KINDS], cheap[COST_RLS_KINDS];
	u32 i;

	stage_mean(l, ESTIMATOR_TRIAL, dear);
	stage_mean(l, ESTIMATOR_TRIAL_CHEAP, cheap);
	/* What was learned before credit was known was wrong. */
	if (!l->tried)
		l->cost_rls = (struct cost_rls){ .dithered = true };
	l->tried = true;
	for (i = 0; i < TRIAL_WEIGHT / 2; i++) {
		cost_rls_settled(&l->cost_rls);
		cost_rls_add(&l->cost_rls, dear);
		cost_rls_settled(&l->cost_rls);
		cost_rls_add(&l->cost_rls, cheap);
	}
}

/* Long after writes became cheap the buffer is still not full: cheaper. */
static bool trial_lower(struct cost_estimator *l)
{
	if (l->stage != ESTIMATOR_TRIAL || l->passed != SETTLE ||
	    pays(l->sums) || l->cheap >= CHEAP_MOST)
		return false;
	l->cheap++;
	l->passed = 0;
	return true;
}

static void trial_next(struct cost_estimator *l)
{
	bool paid = pays(l->total[l->stage - ESTIMATOR_TRIAL]);

	if (paid && l->stage == ESTIMATOR_TRIAL) {
		l->stage = ESTIMATOR_TRIAL_CHEAP;
		return;
	}
	if (paid)
		trial_learn(l);
	l->stage = ESTIMATOR_REST;
	WRITE_ONCE(l->trials, l->trials + 1);
}

/* A rest is of windows with both; a trial that one of them leaves is over. */
static void stage_next(struct cost_estimator *l)
{
	bool rests = l->stage == ESTIMATOR_REST;

	l->apart = has_both(l->sums) ? 0 : l->apart + 1;
	if (rests && l->apart)
		return;
	if (l->apart > APART_MOST) {
		l->stage = ESTIMATOR_REST;
		l->passed = 0;
		return;
	}
	if (trial_lower(l))
		return;
	if (++l->passed < (rests ? rest_windows(l) : (u32)STAGE))
		return;
	l->passed = 0;
	if (rests)
		l->stage = ESTIMATOR_TRIAL;
	else
		trial_next(l);
}

/* ------------------------------------------------------------- learning */

static void trial_count(struct cost_estimator *l)
{
	struct cost_rls_sums *total = l->total[l->stage - ESTIMATOR_TRIAL];
	u32 i;

	if (l->passed < SETTLE)
		return;
	for (i = 0; i < COST_RLS_KINDS; i++) {
		if (l->passed == SETTLE)
			total[i] = (struct cost_rls_sums){ 0 };
		total[i].requests += l->sums[i].requests;
		total[i].sectors += l->sums[i].sectors;
		total[i].ns += l->sums[i].ns;
	}
}

static void learn(struct cost_estimator *l)
{
	if (!l->credit || l->unwritten > SETTLE)
		cost_rls_add(&l->cost_rls, l->sums);
	else if (l->stage != ESTIMATOR_REST)
		trial_count(l);
}

static u32 dithered(u32 price, bool dear)
{
	u64 to = dear ? price * 5ULL / 4 : price * 4ULL / 5;

	return (u32)min(to, (u64)COST_MOST);
}

static void vary_line(struct cost_line *line, bool dear)
{
	line->base = dithered(line->base, dear);
	line->per_kib = dithered(line->per_kib, dear);
}

static bool has_both_sizes(const struct cost_rls_sums *sums)
{
	u32 i, class;

	for (class = 0; class < COST_RLS_CLASSES; class ++) {
		i = class * COST_RLS_SIZES;
		if (sums[i].requests && sums[i + 1].requests)
			return true;
	}
	return false;
}

static void vary_sizes(const struct cost_estimator *l, struct cost_line *line)
{
	u32 class;

	if (!has_both_sizes(l->sums))
		return;
	for (class = 0; class < COST_RLS_CLASSES; class ++)
		line[class].per_kib =
			dithered(line[class].per_kib, l->phase & KIB_PHASE);
}

/* As far as it tells anything. */
static void vary(struct cost_estimator *l, struct cost_line *line)
{
	struct cost_line *read = &line[IO_READ], *write = &line[IO_WRITE];
	bool trial = l->stage != ESTIMATOR_REST;
	u32 cheap = l->cheap;

	l->phase++;
	if (trial) {
		if (l->stage == ESTIMATOR_TRIAL_CHEAP)
			cheap += CHEAP_STEP;
		write->base = read->base >> cheap;
		write->per_kib = read->per_kib >> cheap;
	} else if (!l->credit && has_both(l->sums)) {
		vary_line(write, l->phase & WRITE_PHASE);
	}
	if (trial || !l->credit)
		vary_sizes(l, line);
}

/* ---------------------------------------------- where the host has the map */

/* Instead of their time at the device, @ns for all of @class. */
static u64 class_tell(struct cost_rls_sums *sums, u32 class, u64 ns)
{
	u32 i;

	for (i = class * COST_RLS_SIZES; i < (class + 1) * COST_RLS_SIZES;
	     i++) {
		sums[i].ns = sums[i].requests ? ns : 0;
		if (sums[i].requests)
			ns = 0;
	}
	return ns;
}

/* What a class that is absent took is told with its next window. */
static void learn_exact(struct cost_estimator *l, const struct flash_time *time,
			bool dithered, struct cost_line *line)
{
	if (!l->cost_rls.exact_time)
		l->cost_rls = (struct cost_rls){ .exact_time = true };
	if (!l->exact_time_known) {
		l->exact_time_known = true;
		l->exact_time = *time;
	} else {
		l->exact_time.read_ns =
			time->read_ns -
			class_tell(l->sums, IO_READ,
				   time->read_ns - l->exact_time.read_ns);
		l->exact_time.write_ns =
			time->write_ns -
			class_tell(l->sums, IO_WRITE,
				   time->write_ns - l->exact_time.write_ns);
		cost_rls_add(&l->cost_rls, l->sums);
	}
	cost_rls_lines(&l->cost_rls, line);
	l->phase++;
	if (dithered)
		vary_sizes(l, line);
}

static bool window_collect(struct sched *s, struct cost_estimator *l, u64 now)
{
	u64 requests;
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		collect(l, &l->queue[i]);
	requests = class_sums(l->sums, IO_READ).requests +
		   class_sums(l->sums, IO_WRITE).requests;
	l->next_ns = now + ESTIMATOR_WINDOW_NS;
	return requests >=
	       (l->credit ? ESTIMATOR_WINDOW_DEFERRED : COST_RLS_WINDOW_LEAST);
}

static void learn_mix(struct cost_estimator *l, bool dithered,
		      struct cost_line *line)
{
	/* Nobody tells any more. */
	if (l->cost_rls.exact_time)
		l->cost_rls = (struct cost_rls){ .dithered = dithered };
	l->exact_time_known = false;
	if (l->cost_rls.dithered) {
		look(l);
		learn(l);
		if (l->credit)
			stage_next(l);
	} else {
		cost_rls_add(&l->cost_rls, l->sums);
	}
	cost_rls_lines(&l->cost_rls, line);
	if (l->cost_rls.dithered)
		vary(l, line);
}

static void window_end(struct sched *s, struct cost_estimator *l, u64 now)
{
	struct cost_line line[COST_RLS_CLASSES];
	struct flash_time time;
	u32 i;

	if (!window_collect(s, l, now))
		return;
	if (s->flash_time && s->flash_time(s, &time))
		learn_exact(l, &time, !s->ops->shifts_mix, line);
	else
		learn_mix(l, !s->ops->shifts_mix, line);
	cost_learned_set(&s->params.cost, line);
	for (i = 0; i < COST_RLS_KINDS; i++)
		l->sums[i] = (struct cost_rls_sums){ 0 };
}

void cost_estimator_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct cost_estimator *l = s->cost_estimator;

	if (!cost_estimator_runs(s)) {
		if (l)
			l->exact_time_known = false;
		return;
	}
	if (now >= l->next_ns)
		window_end(s, l, now);
	if (flow_any_active(s))
		wake_at(wake, l->next_ns);
}

void cost_estimator_report(const struct sched *s, struct report *r)
{
	static const struct {
		const char *part, *cost, *error;
	} names[COST_RLS_TERMS] = {
		[READ_REQUEST] = { "read", "request_ps", "request_error_ps" },
		[READ_SECTOR] = { "read", "sector_ps", "sector_error_ps" },
		[WRITE_REQUEST] = { "write", "request_ps", "request_error_ps" },
		[WRITE_SECTOR] = { "write", "sector_ps", "sector_error_ps" },
		[WRITTEN_SECTOR] = { "written", "sector_ps",
				     "sector_error_ps" },
	};
	const struct cost_rls *g;
	u32 i;

	if (!cost_estimator_runs(s))
		return;
	g = &s->cost_estimator->cost_rls;
	for (i = 0; i < COST_RLS_TERMS; i++) {
		report_part(r, names[i].cost, names[i].part,
			    (s64)cost_rls_cost_ps(g, i));
		report_part(r, names[i].error, names[i].part,
			    (s64)cost_rls_error_ps(g, i));
	}
	report_number(r, "windows", (s64)READ_ONCE(g->windows));
	report_number(r, "trials", (s64)READ_ONCE(s->cost_estimator->trials));
}
