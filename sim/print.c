// SPDX-License-Identifier: GPL-2.0
/* The output of sim-run: see run.h. */
#include "run.h"
#include "sched/core/log_bucket.h"

struct json_report {
	struct report report;
	FILE *out;
	bool more;
};

static void put_number(struct report *r, const char *name, const char *part,
		       s64 value)
{
	struct json_report *jr = container_of(r, struct json_report, report);

	fprintf(jr->out, "%s\"%s%s%s\": %lld", jr->more ? ", " : "", name,
		part ? "." : "", part ? part : "", value);
	jr->more = true;
}

static void print_report(FILE *out, const struct sched *s, const struct flow *f)
{
	struct json_report jr = { .report.put = put_number, .out = out };

	fprintf(out, "\"report\": {");
	if (f && s->ops->report_flow)
		s->ops->report_flow(f, &jr.report);
	if (!f && s->ops->report)
		s->ops->report(s, &jr.report);
	fprintf(out, "}");
}

static void print_rates(FILE *out, const struct run *r, u64 ios, u64 bytes)
{
	u64 run_ms = r->described.run_ms;

	fprintf(out,
		"\"ios\": %llu, \"bytes\": %llu, \"iops\": %.1f, \"bytes_per_s\": %.1f",
		ios, bytes, (double)ios * 1000 / (double)run_ms,
		(double)bytes * 1000 / (double)run_ms);
}

static void print_series(FILE *out, const struct run *r,
			 const struct run_flow *f)
{
	u32 i;

	fprintf(out, ", \"series\": [");
	for (i = 0; i < r->intervals; i++)
		fprintf(out,
			"%s{\"ios\": %llu, \"bytes\": %llu, \"mean_ns\": %llu, \"p99_ns\": %llu}",
			i ? ", " : "", f->interval[i].ios, f->interval[i].bytes,
			f->interval[i].mean_ns, f->interval[i].p99_ns);
	fprintf(out, "]");
}

/* The buckets with an io: the last latency of each, and the number of ios. */
static void print_histogram(FILE *out, const struct histogram *h)
{
	const char *comma = "";
	u32 i;

	fprintf(out, ", \"histogram\": [");
	for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!h->bucket[i])
			continue;
		fprintf(out, "%s[%llu, %u]", comma,
			log_bucket_start(i + 1, HISTOGRAM_SHIFT) - 1,
			h->bucket[i]);
		comma = ", ";
	}
	fprintf(out, "]");
}

static void print_flow(FILE *out, const struct run *r, const struct run_flow *f)
{
	const struct histogram *h = &f->sum.latency;

	print_rates(out, r, f->sum.ios, f->sum.bytes);
	fprintf(out,
		", \"mean_ns\": %llu, \"p50_ns\": %llu, \"p99_ns\": %llu, \"p999_ns\": %llu, \"max_ns\": %llu, \"wait_ns\": %llu, \"backlog_permille\": %llu, \"cost\": %llu, ",
		mean(h->sum_ns, h->count), histogram_at(h, 500),
		histogram_at(h, 990), histogram_at(h, 999), h->max_ns,
		mean(f->sum.wait_ns, f->sum.ios),
		mean(f->sum.backlog_ns, r->described.run_ms * 1000),
		f->flow->dispatched_cost - f->warm_cost);
	print_report(out, &r->host->sched, f->flow->flow);
	print_histogram(out, h);
	if (r->described.series)
		print_series(out, r, f);
}

static void print_flows(FILE *out, const struct run *r)
{
	const struct description *d = &r->described;
	const struct host *h = r->host;
	u64 ios = 0, bytes = 0;
	u32 i;

	fprintf(out, " \"flows\": {\n");
	for (i = 0; i < d->nr_flows; i++) {
		fprintf(out, "  \"%s\": {", d->flow[i].name);
		print_flow(out, r, &r->flow[i]);
		fprintf(out, "}%s\n", i + 1 < d->nr_flows ? "," : "");
		ios += r->flow[i].sum.ios;
		bytes += r->flow[i].sum.bytes;
	}
	fprintf(out, " },\n \"totals\": {");
	print_rates(out, r, ios, bytes);
	/* Over the whole run. */
	fprintf(out, ", \"ticks_per_s\": %.0f},\n",
		(double)h->sched.stats.ticks * 1e9 / (double)host_now(h));
}

static void print_tunable(FILE *out, const struct run *r,
			  const struct tunable *t)
{
	const struct sched_params *p = &r->host->sched.params;

	if (t->kind == TUNABLE_COST)
		fprintf(out, "\"%s\": \"%s\"", t->name,
			cost_names[tunable_get_cost(t, p)->kind]);
	else if (t->kind == TUNABLE_CHOICE)
		fprintf(out, "\"%s\": \"%s\"", t->name,
			t->choices[tunable_get(t, p)]);
	else
		fprintf(out, "\"%s\": %u", t->name, tunable_get(t, p));
}

static void print_sched(FILE *out, const struct run *r)
{
	const struct sched *s = &r->host->sched;
	const struct tunable *t;

	fprintf(out, " \"depth\": %u,\n \"tunables\": {", s->params.depth);
	for (t = s->ops->tunables; t->name; t++) {
		fprintf(out, "%s", t == s->ops->tunables ? "" : ", ");
		print_tunable(out, r, t);
	}
	fprintf(out, "},\n ");
	print_report(out, s, NULL);
	fprintf(out, ",\n");
}

static void print_whole_series(FILE *out, const struct run *r)
{
	u32 i;

	fprintf(out, " \"series\": [");
	for (i = 0; i < r->intervals; i++) {
		const struct run_interval *at = &r->interval[i];

		fprintf(out, "%s{\"inside\": %.3f, \"window\": ", i ? ", " : "",
			(double)at->inside_ns / 1e6 / (double)at->ms);
		if (at->window < 0)
			fprintf(out, "null}");
		else
			fprintf(out, "%lld}", at->window);
	}
	fprintf(out, "],\n");
}

/* ------------------------------------------------- where the limit is */

/* Prints @ns of work of @parts resources, as a part of the measured time. */
static void print_part(FILE *out, const struct run *r, const char *name, u64 ns,
		       u64 parts)
{
	fprintf(out, "\"%s\": %.4f, ", name,
		(double)ns / 1e6 / (double)(r->described.run_ms * parts));
}

static u64 planes_of(const struct flash_params *p)
{
	return (u64)p->channels * p->dies * p->planes;
}

static void print_flash_pressure(FILE *out, const struct run *r)
{
	const struct flash_stats *was = &r->before.flash;
	const struct flash_params *p = flash_params_of(r->flash);
	struct flash_stats now = flash_stats(r->flash);
	u64 reads = now.read - was->read, writes = now.written - was->written;
	u64 transfers = reads - (now.buffer_hits - was->buffer_hits) +
			now.copied - was->copied +
			(now.programs - was->programs) * p->program_pages;
	u64 die_ns = now.program_busy_ns - was->program_busy_ns +
		     now.gc_busy_ns - was->gc_busy_ns;

	print_part(out, r, "controller",
		   (r->host->device.commands - r->before.commands) *
			   p->command_ns,
		   1);
	/* The link has both directions. */
	print_part(out, r, "link", max(reads, writes) * p->link_ns, 1);
	if (!p->in_place)
		print_part(out, r, "channels", transfers * p->channel_ns,
			   p->channels);
	print_part(out, r, "planes",
		   now.read_busy_ns - was->read_busy_ns + p->planes * die_ns,
		   planes_of(p));
}

static void print_pressure(FILE *out, const struct run *r)
{
	u64 all_ns = 0, most_ns = 0, ns;
	u32 i;

	for (i = 0; i < r->described.queues; i++) {
		ns = r->host->queues[i].cpu.busy_ns - r->before.cpu_ns[i];
		all_ns += ns;
		most_ns = max(most_ns, ns);
	}
	fprintf(out, " \"pressure\": {");
	if (r->flash)
		print_flash_pressure(out, r);
	else
		print_part(out, r, "slots",
			   r->host->device.served_ns - r->before.served_ns,
			   r->described.slots);
	print_part(out, r, "cpus", all_ns, r->described.queues);
	fprintf(out, "\"busiest_cpu\": %.4f},\n",
		(double)most_ns / 1e6 / (double)r->described.run_ms);
}

static void print_drive(FILE *out, const struct run *r)
{
	const struct flash_stats *was = &r->before.flash;
	struct flash_stats now;

	if (!r->flash)
		return;
	now = flash_stats(r->flash);
	fprintf(out,
		" \"drive\": {\"read\": %llu, \"written\": %llu, \"copied\": %llu, \"read_busy_ns\": %llu, \"program_busy_ns\": %llu, \"gc_busy_ns\": %llu},\n",
		now.read - was->read, now.written - was->written,
		now.copied - was->copied, now.read_busy_ns - was->read_busy_ns,
		now.program_busy_ns - was->program_busy_ns,
		now.gc_busy_ns - was->gc_busy_ns);
}

void run_print(FILE *out, const struct run *r)
{
	const struct description *d = &r->described;

	fprintf(out,
		"{\n \"scheduler\": \"%s\",\n \"seed\": %llu,\n \"run_ms\": %llu,\n",
		d->ops->name, d->seed, d->run_ms);
	print_sched(out, r);
	print_flows(out, r);
	if (d->series)
		print_whole_series(out, r);
	print_drive(out, r);
	print_pressure(out, r);
}
