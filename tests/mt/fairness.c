// SPDX-License-Identifier: GPL-2.0
/*
 * The paper's fairness bound, on threads.  Every flow stays backlogged and
 * shares are constant.  So between any two meetings of the members
 *
 *	|Wf / rf - Wm / rm| <= (D + 1) (2 T + lf / rf + lm / rm)
 *
 * Threads have no common instant, so the test allows one more request of each
 * flow for each processor.
 *
 * Source: Hedayati et al., Multi-Queue Fair Queueing, ATC 2019, theorem 2.
 */
#include "threads.h"
#include "device.h"
#include "host.h"
#include "sched/mqfq/mqfq_params.h"
#include "tests/machine.h"

#include <string.h>

enum {
	FLOWS		= 4,
	DEPTH		= 64,		/* ios of a flow in the system */
	MEETINGS	= 25,
	COMPLETIONS	= 200,		/* per member, between meetings */
};

static const struct {
	u32 weight, bytes;
} tenants[FLOWS] = {
	{ 100, 4096 }, { 250, 65536 }, { 500, 4096 }, { 1000, 16384 },
};

struct setting {
	u32 depth, threshold;
};

struct scenario {
	const struct setting *setting;
	struct host host;
	struct device device;
	struct flow *root, *flow[FLOWS];
	struct io io[FLOWS][2 * DEPTH];
	u32 threads;
	u32 meetings;
	/* Extremes of the difference between two flows, over the meetings. */
	double most[FLOWS][FLOWS], least[FLOWS][FLOWS];
};

static void on_issue(struct host *h, struct io *io)
{
	struct scenario *s = h->arg;

	device_start(&s->device, io);
}

static double share(u32 f)
{
	u32 i, sum = 0;

	for (i = 0; i < FLOWS; i++)
		sum += tenants[i].weight;
	return (double)tenants[f].weight / sum;
}

static double bound(const struct scenario *s, u32 f, u32 m)
{
	double requests =
		tenants[f].bytes / share(f) + tenants[m].bytes / share(m);

	return (s->setting->depth + 1) *
		       (2.0 * s->setting->threshold + requests) +
	       s->threads * requests;
}

static void check_bound(void *arg)
{
	struct scenario *s = arg;
	double served[FLOWS];
	struct flow_totals t;
	u32 f, m;

	host_check(&s->host);
	for (f = 0; f < FLOWS; f++) {
		threads_check(atomic64_read(&s->flow[f]->queued) > 0);
		flow_totals(s->flow[f], &t);
		served[f] = (double)t.bytes / share(f);
	}
	for (f = 0; f < FLOWS; f++)
		for (m = 0; m < f; m++) {
			double d = served[f] - served[m];

			if (!s->meetings || d > s->most[f][m])
				s->most[f][m] = d;
			if (!s->meetings || d < s->least[f][m])
				s->least[f][m] = d;
			threads_check(s->most[f][m] - s->least[f][m] <=
				      bound(s, f, m));
		}
	s->meetings++;
}

static void work(struct member *me, void *arg)
{
	struct scenario *s = arg;
	u32 nr_queues = s->host.sched.nr_queues;
	u32 meetings = threads_meetings(MEETINGS);
	u32 steps = threads_steps(COMPLETIONS), meeting, i;

	for (meeting = 0; meeting < meetings; meeting++) {
		for (i = 0; i < steps; i++) {
			struct io *io = device_finish(&s->device, &me->random);

			if (!io)
				continue;
			host_complete(&s->host, io);
			io->flags = 0;
			host_insert(&s->host,
				    random_below(&me->random, nr_queues), io);
		}
		threads_meet(me, check_bound, s);
	}
}

static void scenario_init(struct scenario *s, const struct setting *setting,
			  struct random *r)
{
	struct sched_params params = { .depth = setting->depth };
	struct topo_place place[MACHINE_QUEUES];
	u32 f, i;

	mqfq_params(&params)->threshold = setting->threshold;
	memset(s, 0, sizeof(*s));
	s->setting = setting;
	s->threads = threads_size();
	s->host.issue = on_issue;
	s->host.arg = s;
	host_init(&s->host, "mqfq", &params, place, machine_random(r, place));
	device_init(&s->device, FLOWS * 2 * DEPTH);
	s->root = host_flow_create(&s->host, NULL, WEIGHT_DEFAULT);
	for (f = 0; f < FLOWS; f++)
		s->flow[f] =
			host_flow_create(&s->host, s->root, tenants[f].weight);
	/* These are more requests than the device takes, whatever D is. */
	for (i = 0; i < DEPTH + setting->depth; i++)
		for (f = 0; f < FLOWS; f++) {
			s->io[f][i] = (struct io){ .flow = s->flow[f],
						   .bytes = tenants[f].bytes };
			host_insert(&s->host,
				    random_below(r, s->host.sched.nr_queues),
				    &s->io[f][i]);
		}
}

static void scenario_deinit(struct scenario *s, struct random *r)
{
	struct io *io;
	u32 f;

	while ((io = device_finish(&s->device, r)))
		host_complete(&s->host, io);
	for (f = 0; f < FLOWS; f++)
		host_flow_destroy(&s->host, s->flow[f]);
	host_flow_destroy(&s->host, s->root);
	device_deinit(&s->device);
	host_deinit(&s->host);
}

int main(void)
{
	static const struct setting settings[] = {
		{ 8, 65536 }, { 1, 0 },	    { 8, 0 },	     { 64, 0 },
		{ 1, 65536 }, { 64, 4096 }, { 16, 1 << 18 },
	};
	struct random r = random_seeded("mt/fairness");
	static struct scenario s;
	u64 round;
	u32 i;

	for (round = 0; round < random_rounds(1); round++)
		for (i = 0; i < ARRAY_SIZE(settings); i++) {
			scenario_init(&s, &settings[i], &r);
			threads_run(s.threads, &r, work, &s);
			printf("D %u, T %u: between %s at most %.3g of %.3g\n",
			       settings[i].depth, settings[i].threshold,
			       "the heaviest and the lightest",
			       s.most[3][0] - s.least[3][0], bound(&s, 3, 0));
			fflush(stdout);
			scenario_deinit(&s, &r);
		}
	return 0;
}
