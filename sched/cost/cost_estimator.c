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

int learner_init(struct sched *s)
{
	struct learner *l;

	s->learner = NULL;
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
	l->regression.varied = !s->ops->varies_mix;
	s->learner = l;
	return 0;
}

void learner_deinit(struct sched *s)
{
	if (!s->learner)
		return;
	port_free(s->learner->queue);
	port_free(s->learner);
	s->learner = NULL;
}

void learner_add(const struct io *io, u64 now)
{
	const struct sched *s = io->queue->sched;
	struct learner_queue *lq;
	u32 kind;

	if (!io_op_transfers(io->op) || !(io->flags & IO_OUT) ||
	    now <= io->dispatch_ns)
		return;
	lq = &s->learner->queue[io->queue->index];
	kind = regression_kind(io->op, io->bytes);
	atomic64_add((1LL << REQUESTS_SHIFT) + (io->bytes >> SECTOR_SHIFT),
		     &lq->done[kind]);
	atomic64_add((s64)(now - io->dispatch_ns), &lq->ns[kind]);
}

static void collect(struct learner *l, struct learner_queue *lq)
{
	u32 kind;
	u64 done;

	for (kind = 0; kind < REGRESSION_KINDS; kind++) {
		struct regression_sums *sums = &l->sums[kind];

		if (!atomic64_read(&lq->done[kind]))
			continue;
		done = (u64)atomic64_xchg(&lq->done[kind], 0);
		sums->requests += done >> REQUESTS_SHIFT;
		sums->sectors += done & (BIT_ULL(REQUESTS_SHIFT) - 1);
		sums->ns += (u64)atomic64_xchg(&lq->ns[kind], 0);
	}
}

/* ----------------------------------------------------- writes on credit */

static struct regression_sums class_sums(const struct regression_sums *sums,
					 u32 class)
{
	struct regression_sums all = { 0 };
	u32 i;

	for (i = 0; i < REGRESSION_SIZES; i++) {
		const struct regression_sums *k =
			&sums[class * REGRESSION_SIZES + i];

		all.requests += k->requests;
		all.sectors += k->sectors;
		all.ns += k->ns;
	}
	return all;
}

static bool has_writes(const struct regression_sums *sums)
{
	struct regression_sums reads = class_sums(sums, IO_READ);
	struct regression_sums writes = class_sums(sums, IO_WRITE);

	return writes.requests > reads.requests >> FEW_SHIFT;
}

static bool has_both(const struct regression_sums *sums)
{
	return has_writes(sums) && class_sums(sums, IO_READ).requests;
}

static u64 mean_ns(const struct regression_sums *sums)
{
	return div64_u64(sums->ns, max(sums->requests, 1ULL));
}

/* Of a window that has both. */
static bool on_credit(const struct regression_sums *sums)
{
	struct regression_sums reads = class_sums(sums, IO_READ);
	struct regression_sums writes = class_sums(sums, IO_WRITE);

	return mean_ns(&writes) < mean_ns(&reads) >> CREDIT_SHIFT;
}

/* What the window tells of credit. */
static void look(struct learner *l)
{
	if (has_both(l->sums) && on_credit(l->sums))
		WRITE_ONCE(l->credit, true);
	l->unwritten = has_writes(l->sums) ? 0 : l->unwritten + 1;
}

static bool pays(const struct regression_sums *sums)
{
	return has_both(sums) && !on_credit(sums);
}

/* None before the first; the longest after one that told something. */
static u32 rest_windows(const struct learner *l)
{
	u32 shift = l->tried ? REST_SHIFT_MOST :
		min(l->trials, (u32)REST_SHIFT_MOST);

	return (TRIAL << shift) - TRIAL;
}

/* The mean window of a stage of the trial, when it had settled. */
static void stage_mean(const struct learner *l, u32 stage,
		       struct regression_sums *mean)
{
	const struct regression_sums *total = l->total[stage - LEARNER_TRIAL];
	u32 i;

	for (i = 0; i < REGRESSION_KINDS; i++)
		mean[i] = (struct regression_sums){
			.requests = total[i].requests / MEASURE,
			.sectors = total[i].sectors / MEASURE,
			.ns = total[i].ns / MEASURE,
		};
}

static void trial_learn(struct learner *l)
{
	struct regression_sums dear[REGRESSION_KINDS], cheap[REGRESSION_KINDS];
	u32 i;

	stage_mean(l, LEARNER_TRIAL, dear);
	stage_mean(l, LEARNER_TRIAL_CHEAP, cheap);
	/* What was learned before credit was known was wrong. */
	if (!l->tried)
		l->regression = (struct regression){ .varied = true };
	l->tried = true;
	for (i = 0; i < TRIAL_WEIGHT / 2; i++) {
		regression_settled(&l->regression);
		regression_add(&l->regression, dear);
		regression_settled(&l->regression);
		regression_add(&l->regression, cheap);
	}
}

/* Long after writes became cheap the buffer is still not full: cheaper. */
static bool trial_lower(struct learner *l)
{
	if (l->stage != LEARNER_TRIAL || l->passed != SETTLE ||
	    pays(l->sums) || l->cheap >= CHEAP_MOST)
		return false;
	l->cheap++;
	l->passed = 0;
	return true;
}

static void trial_next(struct learner *l)
{
	bool paid = pays(l->total[l->stage - LEARNER_TRIAL]);

	if (paid && l->stage == LEARNER_TRIAL) {
		l->stage = LEARNER_TRIAL_CHEAP;
		return;
	}
	if (paid)
		trial_learn(l);
	l->stage = LEARNER_REST;
	WRITE_ONCE(l->trials, l->trials + 1);
}

/* A rest is of windows with both; a trial that one of them leaves is over. */
static void stage_next(struct learner *l)
{
	bool rests = l->stage == LEARNER_REST;

	l->apart = has_both(l->sums) ? 0 : l->apart + 1;
	if (rests && l->apart)
		return;
	if (l->apart > APART_MOST) {
		l->stage = LEARNER_REST;
		l->passed = 0;
		return;
	}
	if (trial_lower(l))
		return;
	if (++l->passed < (rests ? rest_windows(l) : (u32)STAGE))
		return;
	l->passed = 0;
	if (rests)
		l->stage = LEARNER_TRIAL;
	else
		trial_next(l);
}

/* ------------------------------------------------------------- learning */

static void trial_count(struct learner *l)
{
	struct regression_sums *total = l->total[l->stage - LEARNER_TRIAL];
	u32 i;

	if (l->passed < SETTLE)
		return;
	for (i = 0; i < REGRESSION_KINDS; i++) {
		if (l->passed == SETTLE)
			total[i] = (struct regression_sums){ 0 };
		total[i].requests += l->sums[i].requests;
		total[i].sectors += l->sums[i].sectors;
		total[i].ns += l->sums[i].ns;
	}
}

static void learn(struct learner *l)
{
	if (!l->credit || l->unwritten > SETTLE)
		regression_add(&l->regression, l->sums);
	else if (l->stage != LEARNER_REST)
		trial_count(l);
}

static u32 varied(u32 price, bool dear)
{
	u64 to = dear ? price * 5ULL / 4 : price * 4ULL / 5;

	return (u32)min(to, (u64)COST_MOST);
}

static void vary_line(struct cost_line *line, bool dear)
{
	line->base = varied(line->base, dear);
	line->per_kib = varied(line->per_kib, dear);
}

static bool has_both_sizes(const struct regression_sums *sums)
{
	u32 i, class;

	for (class = 0; class < REGRESSION_CLASSES; class++) {
		i = class * REGRESSION_SIZES;
		if (sums[i].requests && sums[i + 1].requests)
			return true;
	}
	return false;
}

static void vary_sizes(const struct learner *l, struct cost_line *line)
{
	u32 class;

	if (!has_both_sizes(l->sums))
		return;
	for (class = 0; class < REGRESSION_CLASSES; class++)
		line[class].per_kib = varied(line[class].per_kib,
					     l->phase & KIB_PHASE);
}

/* As far as it tells anything. */
static void vary(struct learner *l, struct cost_line *line)
{
	struct cost_line *read = &line[IO_READ], *write = &line[IO_WRITE];
	bool trial = l->stage != LEARNER_REST;
	u32 cheap = l->cheap;

	l->phase++;
	if (trial) {
		if (l->stage == LEARNER_TRIAL_CHEAP)
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
static u64 class_tell(struct regression_sums *sums, u32 class, u64 ns)
{
	u32 i;

	for (i = class * REGRESSION_SIZES;
	     i < (class + 1) * REGRESSION_SIZES; i++) {
		sums[i].ns = sums[i].requests ? ns : 0;
		if (sums[i].requests)
			ns = 0;
	}
	return ns;
}

/* What a class that is absent took is told with its next window. */
static void learn_told(struct learner *l, const struct flash_time *time,
		       bool varied, struct cost_line *line)
{
	if (!l->regression.told)
		l->regression = (struct regression){ .told = true };
	if (!l->telling) {
		l->telling = true;
		l->told = *time;
	} else {
		l->told.read_ns = time->read_ns -
			class_tell(l->sums, IO_READ,
				   time->read_ns - l->told.read_ns);
		l->told.write_ns = time->write_ns -
			class_tell(l->sums, IO_WRITE,
				   time->write_ns - l->told.write_ns);
		regression_add(&l->regression, l->sums);
	}
	regression_lines(&l->regression, line);
	l->phase++;
	if (varied)
		vary_sizes(l, line);
}

static bool window_collect(struct sched *s, struct learner *l, u64 now)
{
	u64 requests;
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		collect(l, &l->queue[i]);
	requests = class_sums(l->sums, IO_READ).requests +
		   class_sums(l->sums, IO_WRITE).requests;
	l->next_ns = now + LEARNER_WINDOW_NS;
	return requests >= (l->credit ? LEARNER_WINDOW_CREDIT :
					REGRESSION_WINDOW_LEAST);
}

static void learn_mix(struct learner *l, bool varied, struct cost_line *line)
{
	/* Nobody tells any more. */
	if (l->regression.told)
		l->regression = (struct regression){ .varied = varied };
	l->telling = false;
	if (l->regression.varied) {
		look(l);
		learn(l);
		if (l->credit)
			stage_next(l);
	} else {
		regression_add(&l->regression, l->sums);
	}
	regression_lines(&l->regression, line);
	if (l->regression.varied)
		vary(l, line);
}

static void window_end(struct sched *s, struct learner *l, u64 now)
{
	struct cost_line line[REGRESSION_CLASSES];
	struct flash_time time;
	u32 i;

	if (!window_collect(s, l, now))
		return;
	if (s->flash_time && s->flash_time(s, &time))
		learn_told(l, &time, !s->ops->varies_mix, line);
	else
		learn_mix(l, !s->ops->varies_mix, line);
	cost_learned_set(&s->params.cost, line);
	for (i = 0; i < REGRESSION_KINDS; i++)
		l->sums[i] = (struct regression_sums){ 0 };
}

void learner_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct learner *l = s->learner;

	if (!learner_runs(s)) {
		if (l)
			l->telling = false;
		return;
	}
	if (now >= l->next_ns)
		window_end(s, l, now);
	if (flow_any_active(s))
		wake_at(wake, l->next_ns);
}

void learner_report(const struct sched *s, struct report *r)
{
	static const struct {
		const char *part, *cost, *error;
	} names[REGRESSION_TERMS] = {
		[READ_REQUEST]	= { "read", "request_ps", "request_error_ps" },
		[READ_SECTOR]	= { "read", "sector_ps", "sector_error_ps" },
		[WRITE_REQUEST]	= { "write", "request_ps", "request_error_ps" },
		[WRITE_SECTOR]	= { "write", "sector_ps", "sector_error_ps" },
		[WRITTEN_SECTOR] = { "written", "sector_ps", "sector_error_ps" },
	};
	const struct regression *g;
	u32 i;

	if (!learner_runs(s))
		return;
	g = &s->learner->regression;
	for (i = 0; i < REGRESSION_TERMS; i++) {
		report_part(r, names[i].cost, names[i].part,
			    (s64)regression_cost_ps(g, i));
		report_part(r, names[i].error, names[i].part,
			    (s64)regression_error_ps(g, i));
	}
	report_number(r, "windows", (s64)READ_ONCE(g->windows));
	report_number(r, "trials", (s64)READ_ONCE(s->learner->trials));
}
