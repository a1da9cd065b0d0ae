// SPDX-License-Identifier: GPL-2.0
/* Reads descriptions of runs: see describe.h. */
#include <stdarg.h>

#include "describe.h"

#include "comparators.h"
#include "none.h"
#include "text.h"
#include "sched/core/policies.h"

enum {
	WORDS_MAX	= 64,
	SECTOR		= 512,
	BYTES_MOST	= 1 << 30,
	WEIGHT_MOST	= 10000,
	MS_MOST		= 1000 * 1000 * 1000,
};

#define NUMBER_MOST	(1ULL << 62)

/* The words of a line that are still to be read. */
struct words {
	char *word[WORDS_MAX];
	u32 nr, at;
};

static const char *const fill_names[] = {
	[FILL_EMPTY]		= "empty",
	[FILL_SEQUENTIAL]	= "sequential",
	[FILL_RANDOM]		= "random",
	[FILL_STEADY]		= "steady",
};

static const char *const ftl_names[] = {
	[FLASH_FTL_DEVICE]	= "device",
	[FLASH_FTL_HOST]	= "host",
};

static const char *const order_names[] = { "random", "sequential" };
static const char *const arrival_names[] = { "even", "random" };
static const char *const series_names[] = { "whole" };
static const char *const audit_names[] = { "all", "end" };

static const char *const action_names[] = {
	[ACTION_RETIME]	= "retime",
	[ACTION_STALL]	= "stall",
	[ACTION_WEIGHT]	= "weight",
	[ACTION_SET]	= "set",
};

/* A number of a structure, by its word. */
struct number {
	const char *name;
	size_t offset;
	u64 least, most;
};

#define NUMBER(type, name, least, most) \
	{ #name, offsetof(struct type, name), least, most }

static const struct number run_numbers[] = {
	NUMBER(description, seed, 0, NUMBER_MOST),
	NUMBER(description, queues, 1, QUEUES_MAX),
	NUMBER(description, sockets, 1, QUEUES_MAX),
	NUMBER(description, tags, 0, 65536),
	NUMBER(description, tag_maps, 1, QUEUES_MAX),
	NUMBER(description, sched_tags, 0, 65536),
	NUMBER(description, most_bytes, 0, BYTES_MOST),
	NUMBER(description, wake_ns, 0, 1000 * 1000 * 1000),
	NUMBER(description, submit_ns, 0, 1000 * 1000 * 1000),
	NUMBER(description, complete_ns, 0, 1000 * 1000 * 1000),
	NUMBER(description, warm_ms, 0, MS_MOST),
	NUMBER(description, run_ms, 1, MS_MOST),
	NUMBER(description, time_scale, 1, 100000),
	NUMBER(description, write_times, 1, 100),
	{ NULL, 0, 0, 0 },
};

static const struct number load_numbers[] = {
	NUMBER(described_load, depth, 1, 65536),
	NUMBER(described_load, write, 0, 1000),
	NUMBER(described_load, queue, 0, QUEUES_MAX - 1),
	NUMBER(described_load, queues, 1, QUEUES_MAX),
	NUMBER(described_load, think_us, 0, 1000ULL * MS_MOST),
	NUMBER(described_load, reaped, 0, 1),
	NUMBER(described_load, on_ms, 1, MS_MOST),
	NUMBER(described_load, off_ms, 1, MS_MOST),
	NUMBER(described_load, start_ms, 0, MS_MOST),
	NUMBER(described_load, stop_ms, 1, MS_MOST),
	NUMBER(described_load, first_mib, 0, 1 << 23),
	NUMBER(described_load, mib, 1, 1 << 23),
	NUMBER(described_load, first_kib, 0, 1ULL << 33),
	NUMBER(described_load, kib, 1, 1ULL << 33),
	NUMBER(described_load, pace_ns, 1, 1000ULL * 1000 * MS_MOST),
	NUMBER(described_load, burst_ios, 1, NUMBER_MOST),
	NUMBER(described_load, burst_us, 1, 1000ULL * MS_MOST),
	{ NULL, 0, 0, 0 },
};

__attribute__((format(printf, 3, 4)))
static bool wrong_at(struct description *d, u32 line, const char *fmt, ...);

static bool wrong_at(struct description *d, u32 line, const char *fmt, ...)
{
	struct text out = text_of(d->wrong, sizeof(d->wrong));
	va_list args;
	char what[400];

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	if (line)
		text_add(&out, "line %u: ", line);
	text_add(&out, "%s", what);
	return false;
}

#define wrong(d, ...) wrong_at(d, (d)->line, __VA_ARGS__)

/* The fault is not one of a single line. */
#define wrong_whole(d, ...) wrong_at(d, 0, __VA_ARGS__)

/* ------------------------------------------------------------- single words */

static bool has_word(const struct words *w)
{
	return w->at < w->nr;
}

/* Returns the next word, or an empty one. */
static char *next_word(struct words *w)
{
	static char empty[1];

	return has_word(w) ? w->word[w->at++] : empty;
}

static bool take_number(struct description *d, struct words *w,
			const char *name, u64 least, u64 most, u64 *value)
{
	const char *word = next_word(w);

	if (text_number(word, least, most, value))
		return true;
	if (!*word)
		return wrong(d, "%s is missing: use a number from %llu to %llu",
			     name, least, most);
	return wrong(d, "%s '%s': use a number from %llu to %llu", name, word,
		     least, most);
}

/* @word is none of those @known, or missing. */
static bool wrong_word(struct description *d, const char *what,
		       const char *word, const char *known)
{
	if (!*word)
		return wrong(d, "%s is missing: use %s", what, known);
	return wrong(d, "%s '%s': use %s", what, word, known);
}

static bool take_name(struct description *d, struct words *w, const char *what,
		      const char *const *names, u32 nr, u32 *value)
{
	const char *word = next_word(w);
	char known[256];
	struct text out = text_of(known, sizeof(known));

	*value = text_find(names, nr, word);
	if (*value < nr)
		return true;
	text_list(&out, names, nr);
	return wrong_word(d, what, word, known);
}

static const struct number *find_number(const struct number *table,
					const char *name)
{
	for (; table->name; table++)
		if (!strcmp(table->name, name))
			return table;
	return NULL;
}

static bool take_listed(struct description *d, struct words *w,
			const struct number *n, void *object)
{
	return take_number(d, w, n->name, n->least, n->most,
			   (u64 *)((char *)object + n->offset));
}

/*
 * Tells that @word is none of @names and no number of @table.  @what begins the
 * message.
 */
static bool unknown(struct description *d, const char *what, const char *word,
		    const char *names, const struct number *table)
{
	char known[256];
	struct text out = text_of(known, sizeof(known));

	text_add(&out, "%s", names);
	for (; table->name; table++)
		text_add(&out, ", %s", table->name);
	return wrong(d, "%s '%s': use %s", what, word, known);
}

/* ---------------------------------------------------------------- statements */

static bool read_scheduler(struct description *d, struct words *w)
{
	const char *name = next_word(w);
	const struct sched_ops *const *p;
	char known[256];
	struct text out = text_of(known, sizeof(known));

	/* The lines that set its tunables would be of another scheduler. */
	if (d->ops)
		return wrong(d, "scheduler '%s': it is %s already", name,
			     d->ops->name);
	d->ops = strcmp(name, "none") ? sched_find(name) : &none_ops;
	if (!d->ops)
		d->ops = comparator_find(name);
	if (d->ops)
		return true;
	text_add(&out, "none");
	for (p = sched_policies; *p; p++)
		text_add(&out, ", %s", (*p)->name);
	for (p = comparators; *p; p++)
		text_add(&out, ", %s", (*p)->name);
	return wrong_word(d, "scheduler", name, known);
}

static bool take_setting(struct description *d, struct words *w,
			 struct setting *s)
{
	const char *name = next_word(w);
	char why[400];

	if (!d->ops)
		return wrong(d, "set: name the scheduler on a line before");
	if (!setting_parse(s, d->ops, name, w->word + w->at, w->nr - w->at, why,
			   sizeof(why)))
		return wrong(d, "set: %s", why);
	w->at = w->nr;
	return true;
}

static bool read_set(struct description *d, struct words *w)
{
	if (d->nr_settings == SETTINGS_MAX)
		return wrong(d, "set: at most %u of them", SETTINGS_MAX);
	return take_setting(d, w, &d->setting[d->nr_settings++]);
}

static bool read_device(struct description *d, struct words *w)
{
	return take_number(d, w, "SLOTS", 1, 65536, &d->slots) &&
	       take_number(d, w, "BASE_NS", 1, NUMBER_MOST, &d->base_ns) &&
	       take_number(d, w, "NS_PER_KIB", 0, 1ULL << 32, &d->ns_per_kib);
}

static bool read_drive(struct description *d, struct words *w)
{
	const char *name = next_word(w);
	const struct flash_params *p;
	char known[256];
	struct text out = text_of(known, sizeof(known));

	d->model = flash_model(name);
	if (d->model)
		return take_number(d, w, "SIZE_MIB", 1, 1 << 23,
				   &d->drive_mib) &&
		       take_name(d, w, "FILL", fill_names, FILLS, &d->fill) &&
		       (!has_word(w) ||
			take_number(d, w, "PERCENT", 0, 100, &d->fill_percent));
	for (p = flash_models; p->name; p++)
		text_add(&out, "%s%s", p == flash_models ? "" : ", ", p->name);
	return wrong_word(d, "drive", name, known);
}

static bool read_series(struct description *d, struct words *w)
{
	u32 whole;

	if (!take_number(d, w, "series", 1, MS_MOST, &d->series))
		return false;
	d->series_whole = has_word(w);
	return !d->series_whole ||
	       take_name(d, w, "series", series_names, 1, &whole);
}

static bool read_ftl(struct description *d, struct words *w)
{
	return take_name(d, w, "ftl", ftl_names, ARRAY_SIZE(ftl_names),
			 &d->ftl);
}

static bool read_audit(struct description *d, struct words *w)
{
	return take_name(d, w, "audit", audit_names, ARRAY_SIZE(audit_names),
			 &d->audit_end);
}

static u32 find_flow(const struct description *d, const char *name)
{
	u32 i;

	for (i = 0; i < d->nr_flows; i++)
		if (!strcmp(d->flow[i].name, name))
			break;
	return i;
}

/* Takes the name of a flow that a line above has described. */
static bool take_flow(struct description *d, struct words *w, u32 *flow)
{
	const char *name = next_word(w);

	*flow = find_flow(d, name);
	if (*flow < d->nr_flows)
		return true;
	if (!*name)
		return wrong(d,
			     "the flow is missing: name one of a line before");
	return wrong(d, "no flow '%s': describe it on a line before", name);
}

static bool read_part(struct description *d, struct words *w)
{
	struct described_part *p = &d->part[d->nr_parts];

	if (d->nr_parts == PARTS_MAX)
		return wrong(d, "part: at most %u of them", PARTS_MAX);
	p->line = d->line;
	d->nr_parts++;
	return take_flow(d, w, &p->flow) &&
	       take_number(d, w, "PERCENT", 1, 100, &p->percent) &&
	       take_number(d, w, "TIMES", 0, 1000, &p->times);
}

static bool name_valid(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_.-");

	return length && !name[length] && length < FLOW_NAME_MAX;
}

static bool read_flow(struct description *d, struct words *w)
{
	struct described_flow *f = &d->flow[d->nr_flows];
	const char *name = next_word(w), *word;

	if (d->nr_flows == FLOWS_MAX)
		return wrong(d, "flow: at most %u of them", FLOWS_MAX);
	if (!name_valid(name))
		return wrong(
			d,
			"flow '%s': use a name of letters, digits, '_', '.' and '-', up to %u",
			name, FLOW_NAME_MAX - 1);
	if (find_flow(d, name) < d->nr_flows)
		return wrong(d, "flow '%s': it is there already", name);
	strcpy(f->name, name);
	f->parent = NO_PARENT;
	while (has_word(w)) {
		word = next_word(w);
		if (!strcmp(word, "weight")) {
			if (!take_number(d, w, word, 1, WEIGHT_MOST,
					 &f->weight))
				return false;
		} else if (!strcmp(word, "parent")) {
			if (!take_flow(d, w, &f->parent))
				return false;
		} else {
			return wrong(d,
				     "flow: no word '%s': use weight, parent",
				     word);
		}
	}
	if (!f->weight)
		return wrong(d, "flow '%s': give its weight", name);
	d->nr_flows++;
	return true;
}

/* Takes the bytes of requests: N, or N-M. */
static bool take_bytes(struct description *d, struct words *w,
		       struct described_load *l)
{
	char *word = next_word(w), *dash = strchr(word, '-');
	bool valid;

	if (dash)
		*dash = '\0';
	valid = text_number(word, SECTOR, BYTES_MOST, &l->bytes) &&
		l->bytes % SECTOR == 0;
	if (valid && dash)
		valid = text_number(dash + 1, l->bytes, BYTES_MOST,
				    &l->bytes_max) &&
			l->bytes_max % SECTOR == 0;
	if (dash)
		*dash = '-';
	if (valid)
		return true;
	return wrong(
		d,
		"bytes '%s': use N or N-M, multiples of %u up to %u, the lesser first",
		word, SECTOR, BYTES_MOST);
}

/* Reads N/W into @size, and cuts @word apart. */
static bool size_parse(struct load_size *size, char *word)
{
	char *slash = strchr(word, '/');
	u64 bytes, weight;

	if (!slash)
		return false;
	*slash = '\0';
	if (!text_number(word, SECTOR, BYTES_MOST, &bytes) || bytes % SECTOR ||
	    !text_number(slash + 1, 1, 10000, &weight))
		return false;
	*size = (struct load_size){ (u32)bytes, (u32)weight };
	return true;
}

/* Takes N/W,N/W,.. */
static bool take_sizes(struct description *d, struct words *w,
		       struct described_load *l)
{
	char *word = next_word(w), *comma;

	l->nr_sizes = 0;
	for (; word; word = comma ? comma + 1 : NULL) {
		comma = strchr(word, ',');
		if (comma)
			*comma = '\0';
		if (l->nr_sizes == LOAD_SIZES_MAX ||
		    !size_parse(&l->size[l->nr_sizes++], word))
			return wrong(
				d,
				"sizes '%s': use N/W,N/W.. with multiples of %u and weights up to 10000, at most %u",
				word, SECTOR, LOAD_SIZES_MAX);
	}
	return true;
}

/* Takes one of two names; the second is true. */
static bool take_either(struct description *d, struct words *w,
			const char *what, const char *const *names, u32 *value)
{
	return take_name(d, w, what, names, 2, value);
}

/* Takes the name of a file, without blanks. */
static bool take_trace(struct description *d, struct words *w,
		       struct described_load *l)
{
	const char *word = next_word(w);

	if (!*word || strlen(word) >= TRACE_PATH_MAX)
		return wrong(d,
			     "trace '%s': name a file, in less than %u bytes",
			     word, TRACE_PATH_MAX);
	strcpy(l->trace, word);
	return true;
}

static bool take_load_word(struct description *d, struct words *w,
			   struct described_load *l)
{
	const char *word = next_word(w);
	const struct number *n = find_number(load_numbers, word);

	if (n)
		return take_listed(d, w, n, l);
	if (!strcmp(word, "bytes"))
		return take_bytes(d, w, l);
	if (!strcmp(word, "sizes"))
		return take_sizes(d, w, l);
	if (!strcmp(word, "order"))
		return take_either(d, w, word, order_names, &l->in_order);
	if (!strcmp(word, "arrivals"))
		return take_either(d, w, word, arrival_names,
				   &l->random_arrivals);
	if (!strcmp(word, "trace"))
		return take_trace(d, w, l);
	return unknown(d, "load: no word", word,
		       "bytes, sizes, order, arrivals, trace", load_numbers);
}

static bool read_load(struct description *d, struct words *w)
{
	struct described_load *l = &d->load[d->nr_loads];

	if (d->nr_loads == LOADS_MAX)
		return wrong(d, "load: at most %u of them", LOADS_MAX);
	*l = (struct described_load){ .line = d->line, .queues = 1 };
	if (!take_flow(d, w, &l->flow))
		return false;
	while (has_word(w))
		if (!take_load_word(d, w, l))
			return false;
	if (!l->depth || !l->bytes == !l->nr_sizes)
		return wrong(d,
			     "load: give its depth, and its bytes or its sizes");
	if (!l->on_ms != !l->off_ms)
		return wrong(d, "load: give both on_ms and off_ms, or neither");
	if (l->trace[0] && (!l->bytes || l->bytes_max || l->pace_ns))
		return wrong(
			d,
			"load: trace: give its largest size as bytes, and no pace_ns");
	d->nr_loads++;
	return true;
}

static bool read_at(struct description *d, struct words *w)
{
	struct described_action *a = &d->action[d->nr_actions];

	if (d->nr_actions == ACTIONS_MAX)
		return wrong(d, "at: at most %u of them", ACTIONS_MAX);
	a->line = d->line;
	d->nr_actions++;
	if (!take_number(d, w, "at", 0, MS_MOST, &a->at_ms) ||
	    !take_name(d, w, "at", action_names, ACTIONS, &a->kind))
		return false;
	switch (a->kind) {
	case ACTION_RETIME:
		return take_number(d, w, "retime", 1, 100000, &a->value);
	case ACTION_STALL:
		return take_number(d, w, "stall", 1, MS_MOST, &a->value);
	case ACTION_WEIGHT:
		return take_flow(d, w, &a->flow) &&
		       take_number(d, w, "weight", 1, WEIGHT_MOST, &a->value);
	default:
		return take_setting(d, w, &a->setting);
	}
}

/* --------------------------------------------------------------------- lines */

static const struct statement {
	const char *name;
	bool (*read)(struct description *d, struct words *w);
} statements[] = {
	{ "scheduler", read_scheduler },
	{ "set", read_set },
	{ "device", read_device },
	{ "drive", read_drive },
	{ "series", read_series },
	{ "ftl", read_ftl },
	{ "audit", read_audit },
	{ "flow", read_flow },
	{ "part", read_part },
	{ "load", read_load },
	{ "at", read_at },
};

static bool read_statement(struct description *d, struct words *w)
{
	const char *name = next_word(w);
	const struct number *n = find_number(run_numbers, name);
	char names[128];
	struct text out = text_of(names, sizeof(names));
	u32 i;

	if (n)
		return take_listed(d, w, n, d);
	for (i = 0; i < ARRAY_SIZE(statements); i++) {
		if (!strcmp(statements[i].name, name))
			return statements[i].read(d, w);
		text_add(&out, "%s%s", i ? ", " : "", statements[i].name);
	}
	return unknown(d, "no key", name, names, run_numbers);
}

bool describe_line(struct description *d, char *line)
{
	struct words w = { .nr = 0 };
	char *word;

	d->line++;
	if (strlen(line) + 1 >= LINE_BYTES)
		return wrong(d, "the line is too long: use less than %u bytes",
			     LINE_BYTES - 1);
	line[strcspn(line, "#")] = '\0';
	for (word = strtok(line, " \t\r\n"); word;
	     word = strtok(NULL, " \t\r\n")) {
		if (w.nr == WORDS_MAX)
			return wrong(d, "more than %u words", WORDS_MAX);
		w.word[w.nr++] = word;
	}
	if (!w.nr)
		return true;
	if (!read_statement(d, &w))
		return false;
	if (has_word(&w))
		return wrong(d, "'%s' follows the end of the statement",
			     next_word(&w));
	return true;
}

void describe_begin(struct description *d)
{
	*d = (struct description){ .seed = 1,
				   .queues = 1,
				   .sockets = 1,
				   .run_ms = 1000,
				   .time_scale = 1,
				   .write_times = 1,
				   .fill_percent = NO_PERCENT };
}

/* Checks the range of a load, and sets first_kib and kib of it. */
static bool check_range(struct description *d, struct described_load *l)
{
	u64 drive_kib = d->drive_mib << 10, most = max(l->bytes, l->bytes_max);
	u32 i;

	if (l->mib || l->first_mib) {
		l->first_kib = l->first_mib << 10;
		l->kib = l->mib << 10;
	}
	if (!l->kib && l->first_kib < drive_kib)
		l->kib = drive_kib - l->first_kib;
	if (l->first_kib + l->kib > drive_kib || !l->kib)
		return wrong_at(
			d, l->line,
			"load: the range ends at %llu MiB, the drive at %llu MiB",
			(l->first_kib + l->kib + 1023) >> 10, d->drive_mib);
	for (i = 0; i < l->nr_sizes; i++)
		most = max(most, (u64)l->size[i].bytes);
	if (most > l->kib << 10)
		return wrong_at(d, l->line,
				"load: a request is larger than the range");
	return true;
}

static bool check_load(struct description *d, struct described_load *l)
{
	if (l->queue + l->queues > d->queues)
		return wrong_at(
			d, l->line,
			"load: queues %llu to %llu, but the host has queues 0 to %llu",
			l->queue, l->queue + l->queues - 1, d->queues - 1);
	if (l->stop_ms && l->stop_ms <= l->start_ms)
		return wrong_at(d, l->line,
				"load: stop_ms %llu is not after start_ms %llu",
				l->stop_ms, l->start_ms);
	if (!d->model) {
		if (!l->mib && !l->first_mib && !l->kib && !l->first_kib)
			return true;
		return wrong_at(d, l->line,
				"load: first_mib and mib are for a drive");
	}
	return check_range(d, l);
}

static bool check_part(struct description *d, u32 i)
{
	u64 percent = 0;
	u32 j;

	for (j = 0; j <= i; j++)
		percent += d->part[j].percent;
	if (!d->model)
		return wrong_at(d, d->part[i].line, "part: it is for a drive");
	if (d->fill_percent != NO_PERCENT)
		return wrong_at(d, d->part[i].line,
				"part: leave out the PERCENT of the drive");
	if (percent > 100)
		return wrong_at(d, d->part[i].line,
				"part: %llu %% in all: use at most 100",
				percent);
	return true;
}

static bool check_action(struct description *d,
			 const struct described_action *a)
{
	u64 end_ms = d->warm_ms + d->run_ms;

	if (a->kind == ACTION_RETIME && !d->model)
		return wrong_at(d, a->line, "retime: it is for a drive");
	if (a->at_ms < end_ms)
		return true;
	return wrong_at(d, a->line,
			"at %llu: the run ends at %llu ms, warm_ms and run_ms",
			a->at_ms, end_ms);
}

bool describe_end(struct description *d)
{
	u32 i;

	if (!d->ops)
		return wrong_whole(d, "no scheduler: write scheduler NAME");
	if (!d->model == !d->slots)
		return wrong_whole(
			d,
			"write one of device SLOTS BASE_NS NS_PER_KIB and drive MODEL SIZE_MIB FILL");
	if (d->ftl != FLASH_FTL_DEVICE && !d->model)
		return wrong_whole(d, "ftl: it is for a drive");
	if ((d->time_scale > 1 || d->write_times > 1) && !d->model)
		return wrong_whole(
			d, "time_scale and write_times: they are for a drive");
	if (d->series_whole && d->warm_ms % d->series)
		return wrong_whole(
			d,
			"series %llu whole: warm_ms %llu is not a multiple of it",
			d->series, d->warm_ms);
	if (d->queues % d->sockets)
		return wrong_whole(
			d, "sockets %llu: use a divisor of %llu, the queues",
			d->sockets, d->queues);
	if (d->tag_maps > d->queues)
		return wrong_whole(d,
				   "tag_maps %llu: use at most %llu, the queues",
				   d->tag_maps, d->queues);
	if (d->most_bytes % SECTOR)
		return wrong_whole(d, "most_bytes %llu: use a multiple of %u",
				   d->most_bytes, SECTOR);
	for (i = 0; i < d->nr_parts; i++)
		if (!check_part(d, i))
			return false;
	if (!d->nr_loads)
		return wrong_whole(d,
				   "no load: write load FLOW depth N bytes N");
	for (i = 0; i < d->nr_loads; i++)
		if (!check_load(d, &d->load[i]))
			return false;
	for (i = 0; i < d->nr_actions; i++)
		if (!check_action(d, &d->action[i]))
			return false;
	return true;
}
