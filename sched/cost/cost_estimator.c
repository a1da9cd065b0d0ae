// SPDX-License-Identifier: GPL-2.0
#include "cost_estimator.h"

enum {
	SECTOR_SHIFT	= 9,
	/*
	 * Requests are in the upper bits of `done`, sectors in the lower ones.
	 * The sectors of 16 TiB fit between two ticks.
	 */
	REQUESTS_SHIFT	= 35,

	/* Price of a KiB: 4 samples high, 4 low; price of writes: 8 and 8. */
	KIB_PHASE	= 4,
	WRITE_PHASE	= 8,

	SETTLE_SAMPLES	= 48,
	MEASURE_SAMPLES	= 48,
	STAGE_SAMPLES	= SETTLE_SAMPLES + MEASURE_SAMPLES,
	TRIAL_SAMPLES	= 2 * STAGE_SAMPLES,
	PAUSE_SHIFT_MOST = 5,
	/*
	 * Tenants of a budget scheduler may spend their credit in turn, so a
	 * trial continues over this many samples without a mix.
	 */
	WITHOUT_MIX_MOST = 16,

	DEFERRED_SHIFT	= 2,		/* a quarter of the time of reads */
	FEW_WRITES_SHIFT = 6,		/* fewer than 1/64 of the reads */
	LOW_PRICE_SHIFT	= 2,		/* stage 2: a quarter of stage 1 */
	PRICE_SHIFT_MOST = 4,
	/* The weight of a trial in samples; RLS remembers 2^7 samples. */
	TRIAL_WEIGHT	= 32,
};

static bool is_offered(const struct sched *s)
{
	return tunable_find(s->ops->tunables, "cost");
}

int cost_estimator_init(struct sched *s)
{
	struct cost_estimator *e;

	cost_learned_set(&s->params.cost, NULL);
	if (!is_offered(s))
		return 0;
	e = port_zalloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->queue = port_zalloc(s->nr_queues * sizeof(*e->queue));
	if (!e->queue) {
		port_free(e);
		return -ENOMEM;
	}
	s->cost_estimator = e;
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
	struct cost_estimator_queue *eq;
	u32 kind;

	if (!io_op_transfers(io->op) || !(io->flags & IO_OUT) ||
	    now <= io->dispatch_ns)
		return;
	if (READ_ONCE(s->cost_estimator->hidden))
		return;
	eq = &s->cost_estimator->queue[io->queue->index];
	kind = cost_rls_kind(io->op, io->bytes);
	atomic64_add((1LL << REQUESTS_SHIFT) + (io->bytes >> SECTOR_SHIFT),
		     &eq->done[kind]);
	atomic64_add((s64)(now - io->dispatch_ns), &eq->ns[kind]);
}

static void queue_collect(struct cost_estimator *e,
			  struct cost_estimator_queue *eq)
{
	u32 kind;
	u64 done;

	for (kind = 0; kind < COST_RLS_KINDS; kind++) {
		struct cost_rls_sums *sums = &e->sums[kind];

		if (!atomic64_read(&eq->done[kind]))
			continue;
		done = (u64)atomic64_xchg(&eq->done[kind], 0);
		sums->requests += done >> REQUESTS_SHIFT;
		sums->sectors += done & (BIT_ULL(REQUESTS_SHIFT) - 1);
		sums->ns += (u64)atomic64_xchg(&eq->ns[kind], 0);
	}
}

/* ------------------------------------------------------ deferred writes */

static struct cost_rls_sums op_sums(const struct cost_rls_sums *sums, u32 op)
{
	struct cost_rls_sums all = { 0 };
	u32 i;

	for (i = 0; i < COST_RLS_SIZE_CLASSES; i++) {
		const struct cost_rls_sums *k =
			&sums[op * COST_RLS_SIZE_CLASSES + i];

		all.requests += k->requests;
		all.sectors += k->sectors;
		all.ns += k->ns;
	}
	return all;
}

static bool has_writes(const struct cost_rls_sums *sums)
{
	struct cost_rls_sums reads = op_sums(sums, IO_READ);
	struct cost_rls_sums writes = op_sums(sums, IO_WRITE);

	return writes.requests > reads.requests >> FEW_WRITES_SHIFT;
}

static bool has_both(const struct cost_rls_sums *sums)
{
	return has_writes(sums) && op_sums(sums, IO_READ).requests;
}

static u64 mean_ns(const struct cost_rls_sums *sums)
{
	return div64_u64(sums->ns, max(sums->requests, 1ULL));
}

/* Does the drive defer the writes of this sample?  It has reads and writes. */
static bool is_deferred(const struct cost_rls_sums *sums)
{
	struct cost_rls_sums reads = op_sums(sums, IO_READ);
	struct cost_rls_sums writes = op_sums(sums, IO_WRITE);

	return mean_ns(&writes) < mean_ns(&reads) >> DEFERRED_SHIFT;
}

/* Sets `deferred` by this sample, and counts samples without writes. */
static void detect_deferred(struct cost_estimator *e)
{
	if (has_both(e->sums) && is_deferred(e->sums))
		WRITE_ONCE(e->deferred, true);
	e->samples_without_writes =
		has_writes(e->sums) ? 0 : e->samples_without_writes + 1;
}

/* Do writes take their full time, because the buffer is full? */
static bool writes_pay(const struct cost_rls_sums *sums)
{
	return has_both(sums) && !is_deferred(sums);
}

/*
 * The length of a pause in samples.  There is none before the first trial; the
 * pause after a trial that told the costs is the longest.
 */
static u32 pause_samples(const struct cost_estimator *e)
{
	u32 shift = e->trial_learned ? PAUSE_SHIFT_MOST :
				       min(e->trials, (u32)PAUSE_SHIFT_MOST);

	return (TRIAL_SAMPLES << shift) - TRIAL_SAMPLES;
}

/* The mean sample of a trial stage, without the samples of its settling. */
static void stage_mean(const struct cost_estimator *e, u32 stage,
		       struct cost_rls_sums *mean)
{
	const struct cost_rls_sums *total =
		e->total[stage - ESTIMATOR_TRIAL_HIGH];
	u32 i;

	for (i = 0; i < COST_RLS_KINDS; i++)
		mean[i] = (struct cost_rls_sums){
			.requests = total[i].requests / MEASURE_SAMPLES,
			.sectors = total[i].sectors / MEASURE_SAMPLES,
			.ns = total[i].ns / MEASURE_SAMPLES,
		};
}

static void trial_learn(struct cost_estimator *e)
{
	struct cost_rls_sums high[COST_RLS_KINDS], low[COST_RLS_KINDS];
	u32 i;

	stage_mean(e, ESTIMATOR_TRIAL_HIGH, high);
	stage_mean(e, ESTIMATOR_TRIAL_LOW, low);
	/* Estimates from before writes were found to be deferred are wrong. */
	if (!e->trial_learned)
		e->cost_rls = (struct cost_rls){ 0 };
	e->trial_learned = true;
	for (i = 0; i < TRIAL_WEIGHT / 2; i++) {
		cost_rls_forget_written(&e->cost_rls);
		cost_rls_add(&e->cost_rls, high);
		cost_rls_forget_written(&e->cost_rls);
		cost_rls_add(&e->cost_rls, low);
	}
}

/* Lowers the price if the buffer is not full by the end of the settling. */
static bool trial_lower_price(struct cost_estimator *e)
{
	if (e->stage != ESTIMATOR_TRIAL_HIGH ||
	    e->stage_samples != SETTLE_SAMPLES || writes_pay(e->sums) ||
	    e->price_shift >= PRICE_SHIFT_MOST)
		return false;
	e->price_shift++;
	e->stage_samples = 0;
	return true;
}

/* Ends a stage: stage 2 follows stage 1 if writes paid, else a pause. */
static void trial_next(struct cost_estimator *e)
{
	bool paid = writes_pay(e->total[e->stage - ESTIMATOR_TRIAL_HIGH]);

	if (paid && e->stage == ESTIMATOR_TRIAL_HIGH) {
		e->stage = ESTIMATOR_TRIAL_LOW;
		return;
	}
	if (paid)
		trial_learn(e);
	e->stage = ESTIMATOR_PAUSE;
	WRITE_ONCE(e->trials, e->trials + 1);
}

/*
 * Counts a sample in the present stage.  A pause counts samples with reads and
 * writes only.  A trial is over when reads or writes stay away.
 */
static void stage_next(struct cost_estimator *e)
{
	bool pausing = e->stage == ESTIMATOR_PAUSE;

	e->samples_without_mix = has_both(e->sums) ? 0 :
						     e->samples_without_mix + 1;
	if (pausing && e->samples_without_mix)
		return;
	if (e->samples_without_mix > WITHOUT_MIX_MOST) {
		e->stage = ESTIMATOR_PAUSE;
		e->stage_samples = 0;
		return;
	}
	if (trial_lower_price(e))
		return;
	if (++e->stage_samples <
	    (pausing ? pause_samples(e) : (u32)STAGE_SAMPLES))
		return;
	e->stage_samples = 0;
	if (pausing)
		e->stage = ESTIMATOR_TRIAL_HIGH;
	else
		trial_next(e);
}

/* ------------------------------------------------------------- learning */

static void trial_count(struct cost_estimator *e)
{
	struct cost_rls_sums *total = e->total[e->stage - ESTIMATOR_TRIAL_HIGH];
	u32 i;

	if (e->stage_samples < SETTLE_SAMPLES)
		return;
	for (i = 0; i < COST_RLS_KINDS; i++) {
		if (e->stage_samples == SETTLE_SAMPLES)
			total[i] = (struct cost_rls_sums){ 0 };
		total[i].requests += e->sums[i].requests;
		total[i].sectors += e->sums[i].sectors;
		total[i].ns += e->sums[i].ns;
	}
}

static void learn(struct cost_estimator *e)
{
	if (!e->deferred || e->samples_without_writes > SETTLE_SAMPLES)
		cost_rls_add(&e->cost_rls, e->sums);
	else if (e->stage != ESTIMATOR_PAUSE)
		trial_count(e);
}

static u32 dithered(u32 price, bool high)
{
	u64 to = high ? price * 5ULL / 4 : price * 4ULL / 5;

	return (u32)min(to, (u64)COST_MOST);
}

static void dither_line(struct cost_line *line, bool high)
{
	line->base = dithered(line->base, high);
	line->per_kib = dithered(line->per_kib, high);
}

static bool has_both_sizes(const struct cost_rls_sums *sums)
{
	u32 i, op;

	for (op = 0; op < COST_RLS_OPS; op++) {
		i = op * COST_RLS_SIZE_CLASSES;
		if (sums[i].requests && sums[i + 1].requests)
			return true;
	}
	return false;
}

static void dither_sizes(const struct cost_estimator *e, struct cost_line *line)
{
	u32 op;

	if (!has_both_sizes(e->sums))
		return;
	for (op = 0; op < COST_RLS_OPS; op++)
		line[op].per_kib =
			dithered(line[op].per_kib, e->dither_phase & KIB_PHASE);
}

/* Dithers the prices where requests are there that it can tell apart. */
static void dither(struct cost_estimator *e, struct cost_line *line)
{
	struct cost_line *read = &line[IO_READ], *write = &line[IO_WRITE];
	bool trial = e->stage != ESTIMATOR_PAUSE;
	u32 price_shift = e->price_shift;

	e->dither_phase++;
	if (trial) {
		if (e->stage == ESTIMATOR_TRIAL_LOW)
			price_shift += LOW_PRICE_SHIFT;
		write->base = read->base >> price_shift;
		write->per_kib = read->per_kib >> price_shift;
	} else if (!e->deferred && has_both(e->sums)) {
		dither_line(write, e->dither_phase & WRITE_PHASE);
	}
	if (trial || !e->deferred)
		dither_sizes(e, line);
}

/* ----------------------------------------------------------- exact time */

/*
 * Replaces the times at the device by @ns for all requests of @op.  Returns the
 * rest: @ns if there are no such requests, else 0.
 */
static u64 assign_exact_time(struct cost_rls_sums *sums, u32 op, u64 ns)
{
	u32 i;

	for (i = op * COST_RLS_SIZE_CLASSES;
	     i < (op + 1) * COST_RLS_SIZE_CLASSES; i++) {
		sums[i].ns = sums[i].requests ? ns : 0;
		if (sums[i].requests)
			ns = 0;
	}
	return ns;
}

/* The time of an operation that is absent is added to its next sample. */
static void learn_exact(struct cost_estimator *e, const struct flash_time *time,
			bool dithered, struct cost_line *line)
{
	if (!e->cost_rls.exact_time)
		e->cost_rls = (struct cost_rls){ .exact_time = true };
	if (!e->exact_time_known) {
		e->exact_time_known = true;
		e->exact_time = *time;
	} else {
		e->exact_time.read_ns =
			time->read_ns -
			assign_exact_time(e->sums, IO_READ,
					  time->read_ns -
						  e->exact_time.read_ns);
		e->exact_time.write_ns =
			time->write_ns -
			assign_exact_time(e->sums, IO_WRITE,
					  time->write_ns -
						  e->exact_time.write_ns);
		cost_rls_add(&e->cost_rls, e->sums);
	}
	cost_rls_lines(&e->cost_rls, line);
	e->dither_phase++;
	if (dithered)
		dither_sizes(e, line);
}

static bool sample_collect(struct sched *s, struct cost_estimator *e)
{
	u64 requests;
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		queue_collect(e, &e->queue[i]);
	requests = op_sums(e->sums, IO_READ).requests +
		   op_sums(e->sums, IO_WRITE).requests;
	return requests >= (e->deferred ? ESTIMATOR_SAMPLE_DEFERRED :
					  COST_RLS_SAMPLE_LEAST);
}

/* Discards the costs that were learned from exact time. */
static void forget_exact(struct cost_estimator *e)
{
	if (e->cost_rls.exact_time)
		e->cost_rls = (struct cost_rls){ 0 };
	e->exact_time_known = false;
}

static void learn_mix(struct cost_estimator *e, struct cost_line *line)
{
	forget_exact(e);
	detect_deferred(e);
	learn(e);
	if (e->deferred)
		stage_next(e);
	cost_rls_lines(&e->cost_rls, line);
	dither(e, line);
}

static bool tells_time(const struct sched *s, struct flash_time *time)
{
	return s->map.flash_time && s->map.flash_time(s, time);
}

/* The drive hides its time, so a request costs its bytes. */
static void charge_bytes(struct sched *s, struct cost_estimator *e)
{
	forget_exact(e);
	cost_learned_set(&s->params.cost, NULL);
}

static void sample_end(struct sched *s, struct cost_estimator *e, u64 now)
{
	struct cost_line line[COST_RLS_OPS];
	struct flash_time time;
	bool told = tells_time(s, &time);
	u32 i;

	e->sample_end_ns = now + ESTIMATOR_SAMPLE_NS;
	WRITE_ONCE(e->hidden, s->ops->exact_costs && !told);
	if (e->hidden) {
		charge_bytes(s, e);
		return;
	}
	if (!sample_collect(s, e))
		return;
	if (told)
		learn_exact(e, &time, !s->ops->exact_costs, line);
	else
		learn_mix(e, line);
	cost_learned_set(&s->params.cost, line);
	for (i = 0; i < COST_RLS_KINDS; i++)
		e->sums[i] = (struct cost_rls_sums){ 0 };
}

void cost_estimator_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct cost_estimator *e = s->cost_estimator;

	if (!cost_estimator_runs(s)) {
		if (e)
			e->exact_time_known = false;
		return;
	}
	if (now >= e->sample_end_ns)
		sample_end(s, e, now);
	if (flow_any_active(s))
		wake_at(wake, e->sample_end_ns);
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
	report_number(r, "windows", (s64)READ_ONCE(g->samples));
	report_number(r, "trials", (s64)READ_ONCE(s->cost_estimator->trials));
}
