// SPDX-License-Identifier: GPL-2.0
#include "learner.h"

enum {
	SECTOR_SHIFT	= 9,
	/* done: requests above, sectors below; 16 TiB between two ticks. */
	REQUESTS_SHIFT	= 35,
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

void learner_done(const struct io *io, u64 now)
{
	const struct sched *s = io->queue->sched;
	struct learner_queue *lq;
	u32 kind;

	if (!learner_runs(s) || !io_op_transfers(io->op) ||
	    !(io->flags & IO_OUT) || now <= io->dispatch_ns)
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

static void learn(struct sched *s, struct learner *l)
{
	struct cost_line line[REGRESSION_CLASSES];
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		collect(l, &l->queue[i]);
	if (!regression_add(&l->regression, l->sums))
		return;
	for (i = 0; i < REGRESSION_KINDS; i++)
		l->sums[i] = (struct regression_sums){ 0 };
	regression_lines(&l->regression, line);
	cost_learned_set(&s->params.cost, line);
}

void learner_tick(struct sched *s, u64 now, struct wake *wake)
{
	struct learner *l = s->learner;

	if (!learner_runs(s))
		return;
	if (now >= l->next_ns) {
		l->next_ns = now + LEARNER_WINDOW_NS;
		learn(s, l);
	}
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
}
