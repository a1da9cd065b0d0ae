// SPDX-License-Identifier: GPL-2.0
/*
 * sim-run - runs one described simulation and prints its figures as JSON
 *
 * usage: sim-run < DESCRIPTION, or sim-run --help
 *
 * describe.h has the format of the description, and run.h that of the output.
 * The same description gives the same figures on every machine; only wall_s
 * differs, the seconds that the run took.  The text `help` has the exit status.
 */
#include <time.h>

#include "run.h"
#include "sched/core/policies.h"

#define US	1000ULL
#define MS	(1000 * US)

enum {
	STATUS_FAILED	= 1,
	STATUS_USAGE	= 2,
	FILL_BUDGET	= 1 << 20,
	/* Random overwrites of 1.5 times the capacity: see flash.h. */
	STEADY_PERCENT	= 150,
	/* The same of the virtual SSD, which fills a part of itself. */
	SSD_STEADY_PERCENT = 200,
	FILL_TURNS	= 1000,	/* in which parts are overwritten */
};

/* --------------------------------------------------------------------- drive */

/* Returns @percent of the times of the model, stretched as described. */
static struct flash_params params_scaled(const struct description *d,
					 u64 percent)
{
	struct flash_params p = *d->model;
	u64 scale = d->time_scale * percent, write = scale * d->write_times;

	/* The drive model wants some times above 0. */
	p.command_ns = max(1ULL, p.command_ns * scale / 100);
	p.read_fixed_ns = p.read_fixed_ns * scale / 100;
	p.write_fixed_ns = p.write_fixed_ns * scale / 100;
	p.link_ns = p.link_ns * scale / 100;
	p.channel_ns = p.channel_ns * scale / 100;
	p.read_ns = max(1ULL, p.read_ns * scale / 100);
	p.program_ns = max(1ULL, p.program_ns * write / 100);
	p.erase_ns = p.erase_ns * write / 100;
	return p;
}

static void fill_go_on(struct run *r, struct flash_fill *fill)
{
	while (flash_fill(r->flash, fill, FILL_BUDGET))
		;
}

/*
 * Fills each part once, then overwrites all parts in turns, so that pages of
 * different parts lie side by side.
 */
static void fill_parts(struct run *r)
{
	const struct description *d = &r->described;
	struct flash_fill fill[PARTS_MAX] = { 0 };
	u64 pages = flash_pages(r->flash), percent = 0;
	u32 turn, i;

	for (i = 0; i < d->nr_parts; i++) {
		fill[i].first = (u32)(pages * percent / 100);
		percent += d->part[i].percent;
		fill[i].pages = (u32)(pages * percent / 100) - fill[i].first;
		/* Flow 0 of the host is the root. */
		fill[i].owner = d->part[i].flow + 1;
		fill[i].seed = d->seed + i;
		fill[i].shuffled = d->fill != FILL_SEQUENTIAL;
	}
	for (turn = 0; turn <= FILL_TURNS; turn++)
		for (i = 0; i < d->nr_parts; i++) {
			fill[i].overwrites = (u64)fill[i].pages *
					     d->part[i].times * turn /
					     FILL_TURNS;
			fill_go_on(r, &fill[i]);
		}
}

static void drive_fill(struct run *r)
{
	const struct description *d = &r->described;
	u64 times = STEADY_PERCENT;
	struct flash_fill fill = {
		.pages = flash_pages(r->flash),
		.owner = FLASH_NO_OWNER,
		.seed = d->seed,
		.shuffled = d->fill != FILL_SEQUENTIAL,
	};

	if (d->fill == FILL_EMPTY)
		return;
	if (d->fill_percent != NO_PERCENT) {
		fill.pages = (u32)(fill.pages * d->fill_percent / 100);
		times = SSD_STEADY_PERCENT;
	}
	if (d->fill == FILL_STEADY)
		fill.overwrites = (u64)fill.pages * times / 100;
	if (d->nr_parts)
		fill_parts(r);
	else if (fill.pages)
		fill_go_on(r, &fill);
}

/* Returns the exit status. */
static int drive_open(struct run *r)
{
	const struct description *d = &r->described;
	const struct flash_params params = d->model ? params_scaled(d, 100) :
						      flash_models[0];
	const struct flash_config c = {
		.params = &params,
		.bytes = d->drive_mib << 20,
		.owners = d->nr_flows + 1,
		.ftl = (enum flash_ftl)d->ftl,
		.seed = d->seed,
	};
	const char *wrong;

	if (!d->model)
		return 0;
	wrong = flash_config_wrong(&c);
	if (wrong) {
		fprintf(stderr, "sim-run: drive %s of %llu MiB: %s\n",
			d->model->name, d->drive_mib, wrong);
		return STATUS_USAGE;
	}
	r->flash = flash_create(&c);
	if (!r->flash) {
		fprintf(stderr, "sim-run: not enough memory for the drive\n");
		return STATUS_FAILED;
	}
	drive_fill(r);
	return 0;
}

/* ------------------------------------------------------------------- actions */

static void act(struct event *ev)
{
	struct run_action *ra = container_of(ev, struct run_action, event);
	const struct described_action *a = ra->action;
	struct run *r = ra->run;
	struct flash_params params;

	switch (a->kind) {
	case ACTION_RETIME:
		params = params_scaled(&r->described, a->value);
		flash_retime(r->flash, &params);
		break;
	case ACTION_STALL:
		device_stall(&r->host->device,
			     host_now(r->host) + a->value * MS);
		break;
	case ACTION_WEIGHT:
		host_flow_weigh(r->flow[a->flow].flow, (u32)a->value);
		break;
	default:
		tuning_set(&r->tuning, &a->setting);
		host_tune(r->host, &r->tuning.params);
		break;
	}
}

static void actions_arm(struct run *r)
{
	u32 i;

	for (i = 0; i < r->described.nr_actions; i++) {
		struct run_action *ra = &r->action[i];

		ra->run = r;
		ra->action = &r->described.action[i];
		event_init(&ra->event, act);
		event_arm(&r->host->timeline, &ra->event,
			  ra->action->at_ms * MS);
	}
}

/* ------------------------------------------------------------------- set-up */

static void tune(struct run *r)
{
	const struct description *d = &r->described;
	u32 i;

	tuning_init(&r->tuning, d->ops,
		    (u32)(d->tags * (d->tag_maps ? d->tag_maps : d->queues)));
	for (i = 0; i < d->nr_settings; i++)
		tuning_set(&r->tuning, &d->setting[i]);
}

static bool flows_open(struct run *r)
{
	const struct description *d = &r->described;
	struct host_flow *root = host_flow_create(r->host, NULL, 0);
	u32 i;

	if (!root)
		return false;
	for (i = 0; i < d->nr_flows; i++) {
		const struct described_flow *f = &d->flow[i];
		struct host_flow *parent =
			f->parent == NO_PARENT ? root : r->flow[f->parent].flow;

		r->flow[i].flow =
			host_flow_create(r->host, parent, (u32)f->weight);
		r->flow[i].interval = port_zalloc(r->intervals *
						  sizeof(*r->flow[i].interval));
		if (!r->flow[i].flow || !r->flow[i].interval)
			return false;
	}
	return true;
}

static u32 pages_of(const struct run *r, u64 kib)
{
	if (!r->flash)
		return 0;
	return (u32)((kib << 10) / flash_params_of(r->flash)->page_bytes);
}

static bool loads_open(struct run *r)
{
	const struct description *d = &r->described;
	u32 i;

	for (i = 0; i < d->nr_loads; i++) {
		const struct described_load *l = &d->load[i];
		const struct load_params p = {
			.flow = r->flow[l->flow].flow,
			.first_queue = (u32)l->queue,
			.nr_queues = (u32)l->queues,
			.depth = (u32)l->depth,
			.bytes = (u32)l->bytes,
			.bytes_max = (u32)l->bytes_max,
			.sizes = l->size,
			.nr_sizes = l->nr_sizes,
			.most_bytes = (u32)d->most_bytes,
			.write_permille = (u32)l->write,
			.discards = l->discard,
			.urgent_permille = (u32)l->urgent,
			.first_page = pages_of(r, l->first_kib),
			.pages = pages_of(r, l->kib),
			.in_order = l->in_order,
			.move_ns = l->move_ms * MS,
			.think_ns = l->think_us * US,
			.pace_ns = l->pace_ns,
			.reaped = l->reaped,
			.pace_random = l->random_arrivals,
			.trace = l->trace[0] ? l->trace : NULL,
			.burst_ios = l->burst_ios,
			.burst_ns = l->burst_us * US,
			.start_ns = l->start_ms * MS,
			.stop_ns = l->stop_ms * MS,
			.on_ns = l->on_ms * MS,
			.off_ns = l->off_ms * MS,
		};

		r->load[i] = load_create(r->host, &p);
		if (!r->load[i])
			return false;
	}
	return true;
}

static u32 intervals(const struct description *d)
{
	u64 ms = d->run_ms + (d->series_whole ? d->warm_ms : 0);

	return d->series ? (u32)((ms + d->series - 1) / d->series) : 1;
}

static bool run_open(struct run *r)
{
	const struct description *d = &r->described;
	struct host_params p = {
		.seed = d->seed,
		.nr_queues = (u32)d->queues,
		.cores_per_socket = (u32)(d->queues / d->sockets),
		.ops = d->ops,
		.device = {
			.slots = (u32)d->slots,
			.base_ns = d->base_ns,
			.ns_per_kib = d->ns_per_kib,
			.flash = r->flash,
			.fetch = (u32)d->fetch,
			.answers = (u32)d->answers,
			.answers_ns = d->answers_us * US,
		},
		.tags = (u32)d->tags,
		.tag_maps = (u32)d->tag_maps,
		.sched_tags = (u32)d->sched_tags,
		/* Only the kernel module has them. */
		.quotas = sched_find(d->ops->name) == d->ops,
		.wake_ns = d->wake_ns,
		.submit_ns = d->submit_ns,
		.complete_ns = d->complete_ns,
		.locked_ns = d->locked_ns,
		.audit_at_end = d->audit_end,
	};

	tune(r);
	p.sched = r->tuning.params;
	r->intervals = intervals(d);
	r->interval = port_zalloc(r->intervals * sizeof(*r->interval));
	r->host = host_create(&p);
	if (!r->interval || !r->host || !flows_open(r) || !loads_open(r))
		return false;
	actions_arm(r);
	return true;
}

static void run_close(struct run *r)
{
	u32 i;

	if (r->host)
		host_destroy(r->host);
	for (i = 0; i < r->described.nr_loads; i++)
		load_destroy(r->load[i]);
	for (i = 0; i < r->described.nr_flows; i++)
		port_free(r->flow[i].interval);
	port_free(r->interval);
}

/* ----------------------------------------------------------------- measuring */

static void histogram_merge(struct histogram *to, const struct histogram *from)
{
	u32 i;

	to->count += from->count;
	to->sum_ns += from->sum_ns;
	to->max_ns = max(to->max_ns, from->max_ns);
	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

/* Takes the figures since the last call as those of @interval. */
static void flow_take(struct run_flow *f, u32 interval)
{
	struct flow_stats *now = &f->flow->stats;

	f->interval[interval] = (struct interval){
		.ios = now->ios,
		.bytes = now->bytes,
		.mean_ns = mean(now->latency.sum_ns, now->latency.count),
		.p99_ns = histogram_at(&now->latency, 990),
	};
}

/* Adds the figures since the last call to the measured ones. */
static void flow_count(struct run_flow *f)
{
	struct flow_stats *now = &f->flow->stats;

	f->sum.ios += now->ios;
	f->sum.bytes += now->bytes;
	f->sum.wait_ns += now->wait_ns;
	f->sum.backlog_ns += now->backlog_ns;
	histogram_merge(&f->sum.latency, &now->latency);
}

struct window_report {
	struct report report;
	s64 window;
};

static void find_window(struct report *r, const char *name, const char *part,
			s64 value)
{
	(void)part;
	if (!strcmp(name, "window"))
		container_of(r, struct window_report, report)->window = value;
}

static void host_take(struct run *r, u64 ms, struct run_interval *to)
{
	struct window_report found = {
		.report.put = find_window,
		.window = -1,
	};
	const struct sched *s = &r->host->sched;

	if (s->ops->report)
		s->ops->report(s, &found.report);
	if (found.window >= DEPTH_MAX) /* it bounds nothing */
		found.window = -1;
	*to = (struct run_interval){ r->host->inside_ns, ms, found.window };
}

/* Runs to @ms; @interval is that of the series, if @taken. */
static void run_to(struct run *r, u64 ms, bool taken, u32 interval)
{
	u64 began_ms = host_now(r->host) / MS;
	u32 flow;

	host_run(r->host, ms * MS);
	host_settle_inside(r->host);
	if (taken)
		host_take(r, ms - began_ms, &r->interval[interval]);
	r->host->inside_ns = 0;
	for (flow = 0; flow < r->described.nr_flows; flow++) {
		struct run_flow *f = &r->flow[flow];

		host_settle(f->flow);
		if (taken)
			flow_take(f, interval);
		if (ms > r->described.warm_ms)
			flow_count(f);
		else
			f->warm_cost = f->flow->dispatched_cost;
		f->flow->stats = (struct flow_stats){ 0 };
	}
}

static void use_begin(struct run *r)
{
	struct run_used *used = &r->before;
	u32 i;

	if (r->flash)
		used->flash = flash_stats(r->flash);
	used->commands = r->host->device.commands;
	used->served_ns = r->host->device.served_ns;
	for (i = 0; i < r->described.queues; i++)
		used->cpu_ns[i] = r->host->queues[i].cpu.busy_ns;
}

static void measure(struct run *r)
{
	const struct description *d = &r->described;
	u64 step = d->series ? d->series : d->run_ms;
	u64 end_ms = d->warm_ms + d->run_ms, ms = 0;
	u32 i = 0;

	/* The intervals of a whole series end at the end of the warm-up, too. */
	while (d->series_whole && ms < d->warm_ms) {
		ms += step;
		run_to(r, ms, true, i++);
	}
	if (!d->series_whole)
		run_to(r, d->warm_ms, false, 0);
	use_begin(r);
	ms = d->warm_ms;
	while (ms < end_ms) {
		ms = min(ms + step, end_ms);
		run_to(r, ms, true, i++);
	}
	port_assert(i == r->intervals);
}

/* ---------------------------------------------------------------------- main */

static double wall(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool read_description(struct description *d)
{
	char line[LINE_BYTES];

	describe_begin(d);
	while (fgets(line, sizeof(line), stdin))
		if (!describe_line(d, line))
			return false;
	return describe_end(d);
}

/* Runs to the end and prints the figures; returns the exit status. */
static int play(struct run *r)
{
	double begin = wall();
	char *figures = NULL;
	size_t size;
	FILE *out = open_memstream(&figures, &size);
	int status = 0;

	if (!out || !run_open(r)) {
		fprintf(stderr, "sim-run: not enough memory for the run\n");
		status = STATUS_FAILED;
		goto close;
	}
	measure(r);
	run_print(out, r);
	host_finish(r->host);
	if (host_failed(r->host)) {
		fprintf(stderr, "sim-run: %s\n", r->host->failure);
		status = STATUS_FAILED;
	}
close:
	if (out)
		fclose(out);
	if (!status)
		printf("%s \"wall_s\": %.3f\n}\n", figures, wall() - begin);
	free(figures);
	run_close(r);
	return status;
}

static const char help[] =
	"usage: sim-run < DESCRIPTION\n"
	"\n"
	"Runs the described simulation and prints its figures as JSON. A description\n"
	"has one statement on each line; sim/describe.h lists them all. An example:\n"
	"\n"
	"    scheduler mqfq          # or none, ifq, kyber-fair, wdt, hwabc\n"
	"    set depth 16            # tunables as in queue/iosched/\n"
	"    device 2 80000 500      # 2 slots, a request takes 80000 ns + 500 ns/KiB\n"
	"    run_ms 2000\n"
	"    flow big weight 300\n"
	"    flow small weight 100\n"
	"    load big depth 32 bytes 4096\n"
	"    load small depth 32 bytes 4096\n"
	"\n"
	"Exit status: 0; 1 if the host's audit failed or memory is short; 2 for a wrong\n"
	"description.\n";

int main(int argc, char **argv)
{
	static struct run run;
	int status;

	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(help, stdout);
		return 0;
	}
	if (argc > 1) {
		fprintf(stderr,
			"sim-run: '%s': the description comes from standard input: sim-run < FILE\n",
			argv[1]);
		return STATUS_USAGE;
	}
	if (!read_description(&run.described)) {
		fprintf(stderr, "sim-run: %s\n", run.described.wrong);
		return STATUS_USAGE;
	}
	status = drive_open(&run);
	if (!status)
		status = play(&run);
	if (run.flash)
		flash_destroy(run.flash);
	return status;
}
