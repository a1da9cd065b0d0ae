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
	NULL,
};

static const char *const ftl_names[] = {
	[FLASH_FTL_DEVICE]	= "device",
	[FLASH_FTL_HOST]	= "host",
	NULL,
};

static const char *const order_names[] = { "random", "sequential", NULL };
static const char *const arrival_names[] = { "even", "random", NULL };
static const char *const series_names[] = { "whole", NULL };
static const char *const audit_names[] = { "all", "end", NULL };

static const char *const action_names[] = {
	[ACTION_RETIME]	= "retime",
	[ACTION_STALL]	= "stall",
	[ACTION_WEIGHT]	= "weight",
	[ACTION_SET]	= "set",
	NULL,
};

/* A word that a value follows.  Without read() it is for a member of a structure. */
struct key {
	const char *name;		/* NULL ends a table */
	bool (*read)(struct description *d, struct words *w);
	size_t offset;
	const char *const *names;	/* a u32 is the index of one of these .. */
	u64 least, most;		/* .. or a u64 is a number */
};

#define NUMBER(type, member, from, to) \
	{ .name = #member, .offset = offsetof(struct type, member), \
	  .least = from, .most = to }
#define CHOICE(type, key, member, names_) \
	{ .name = key, .offset = offsetof(struct type, member), \
	  .names = names_ }

__attribute__((format(printf, 2, 3)))
static bool wrong(struct description *d, const char *fmt, ...);

/* With d->line 0 the fault is not one of a single line. */
static bool wrong(struct description *d, const char *fmt, ...)
{
	struct text out = text_of(d->wrong, sizeof(d->wrong));
	va_list args;
	char what[400];

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	if (d->line)
		text_add(&out, "line %u: ", d->line);
	text_add(&out, "%s", what);
	return false;
}

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
		      const char *const *names, u32 *value)
{
	const char *word = next_word(w);
	char known[256];
	struct text out = text_of(known, sizeof(known));

	*value = text_find(names, word);
	if (names[*value])
		return true;
	text_list(&out, names);
	return wrong_word(d, what, word, known);
}

/* Takes a key of @table, and its value.  @what begins the message. */
static bool take_key(struct description *d, struct words *w, const char *what,
		     const struct key *table, void *object)
{
	const char *word = next_word(w);
	const struct key *k;
	char known[256];
	struct text out = text_of(known, sizeof(known));

	for (k = table; k->name && strcmp(k->name, word); k++)
		text_add(&out, "%s%s", k == table ? "" : ", ", k->name);
	if (!k->name)
		return wrong_word(d, what, word, known);
	if (k->read)
		return k->read(d, w);
	object = (char *)object + k->offset;
	if (k->names)
		return take_name(d, w, k->name, k->names, object);
	return take_number(d, w, k->name, k->least, k->most, object);
}

static bool name_valid(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_.-");

	return length && !name[length] && length < FLOW_NAME_MAX;
}

static bool wrong_name(struct description *d, const char *what,
		       const char *name)
{
	return wrong(
		d,
		"%s '%s': use a name of letters, digits, '_', '.' and '-', up to %u",
		what, name, FLOW_NAME_MAX - 1);
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

/* Takes a field of the described model, and its value. */
static bool take_field(struct description *d, struct words *w)
{
	const char *name = next_word(w);
	const struct flash_field *field = flash_field(name);
	char known[512];
	struct text out = text_of(known, sizeof(known));
	u64 value;

	if (field) {
		if (!take_number(d, w, name, 0, field->most, &value))
			return false;
		flash_field_set(&d->own, field, value);
		return true;
	}
	for (field = flash_fields; field->name; field++)
		text_add(&out, "%s%s", field == flash_fields ? "" : ", ",
			 field->name);
	return wrong_word(d, "model: no field", name, known);
}

static bool read_model(struct description *d, struct words *w)
{
	const char *name = next_word(w), *why;

	if (d->own.name)
		return wrong(d, "model '%s': it is %s already", name,
			     d->own.name);
	if (!name_valid(name))
		return wrong_name(d, "model", name);
	strcpy(d->own_name, name);
	d->own.name = d->own_name;
	while (has_word(w))
		if (!take_field(d, w))
			return false;
	why = flash_params_wrong(&d->own);
	return !why || wrong(d, "model %s: %s", name, why);
}

static bool read_drive(struct description *d, struct words *w)
{
	const char *name = next_word(w);
	const struct flash_params *p;
	char known[256];
	struct text out = text_of(known, sizeof(known));

	d->model = !strcmp(name, d->own_name) && *name ? &d->own :
							 flash_model(name);
	if (d->model)
		return take_number(d, w, "SIZE_MIB", 1, 1 << 23,
				   &d->drive_mib) &&
		       take_name(d, w, "FILL", fill_names, &d->fill) &&
		       (!has_word(w) ||
			take_number(d, w, "PERCENT", 0, 100, &d->fill_percent));
	for (p = flash_models; p->name; p++)
		text_add(&out, "%s%s", p == flash_models ? "" : ", ", p->name);
	if (d->own.name)
		text_add(&out, ", %s", d->own.name);
	return wrong_word(d, "drive", name, known);
}

static bool read_answers(struct description *d, struct words *w)
{
	return take_number(d, w, "answers", 1, 65536, &d->answers) &&
	       take_number(d, w, "US", 1, 1000 * 1000, &d->answers_us);
}

static bool read_series(struct description *d, struct words *w)
{
	u32 whole;

	if (!take_number(d, w, "series", 1, MS_MOST, &d->series))
		return false;
	d->series_whole = has_word(w);
	return !d->series_whole ||
	       take_name(d, w, "series", series_names, &whole);
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

static bool take_parent(struct description *d, struct words *w)
{
	return take_flow(d, w, &d->flow[d->nr_flows].parent);
}

static const struct key flow_keys[] = {
	NUMBER(described_flow, weight, 1, WEIGHT_MOST),
	{ .name = "parent", .read = take_parent },
	{ }
};

static bool read_flow(struct description *d, struct words *w)
{
	struct described_flow *f = &d->flow[d->nr_flows];
	const char *name = next_word(w);

	if (d->nr_flows == FLOWS_MAX)
		return wrong(d, "flow: at most %u of them", FLOWS_MAX);
	if (!name_valid(name))
		return wrong_name(d, "flow", name);
	if (find_flow(d, name) < d->nr_flows)
		return wrong(d, "flow '%s': it is there already", name);
	strcpy(f->name, name);
	f->parent = NO_PARENT;
	while (has_word(w))
		if (!take_key(d, w, "flow: no word", flow_keys, f))
			return false;
	if (!f->weight)
		return wrong(d, "flow '%s': give its weight", name);
	d->nr_flows++;
	return true;
}

/* Takes the bytes of requests: N, or N-M. */
static bool take_bytes(struct description *d, struct words *w)
{
	struct described_load *l = &d->load[d->nr_loads];
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
static bool take_sizes(struct description *d, struct words *w)
{
	struct described_load *l = &d->load[d->nr_loads];
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

/* Takes the name of a file, without blanks. */
static bool take_trace(struct description *d, struct words *w)
{
	const char *word = next_word(w);

	if (!*word || strlen(word) >= TRACE_PATH_MAX)
		return wrong(d,
			     "trace '%s': name a file, in less than %u bytes",
			     word, TRACE_PATH_MAX);
	strcpy(d->load[d->nr_loads].trace, word);
	return true;
}

static const struct key load_keys[] = {
	{ .name = "bytes", .read = take_bytes },
	{ .name = "sizes", .read = take_sizes },
	CHOICE(described_load, "order", in_order, order_names),
	CHOICE(described_load, "arrivals", random_arrivals, arrival_names),
	{ .name = "trace", .read = take_trace },
	NUMBER(described_load, depth, 1, 65536),
	NUMBER(described_load, write, 0, 1000),
	NUMBER(described_load, discard, 0, 1),
	NUMBER(described_load, urgent, 0, 1000),
	NUMBER(described_load, queue, 0, QUEUES_MAX - 1),
	NUMBER(described_load, queues, 1, QUEUES_MAX),
	NUMBER(described_load, move_ms, 1, MS_MOST),
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
	{ }
};

static bool read_load(struct description *d, struct words *w)
{
	struct described_load *l = &d->load[d->nr_loads];

	if (d->nr_loads == LOADS_MAX)
		return wrong(d, "load: at most %u of them", LOADS_MAX);
	*l = (struct described_load){ .line = d->line, .queues = 1 };
	if (!take_flow(d, w, &l->flow))
		return false;
	while (has_word(w))
		if (!take_key(d, w, "load: no word", load_keys, l))
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
	    !take_name(d, w, "at", action_names, &a->kind))
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

static const struct key statements[] = {
	{ .name = "scheduler", .read = read_scheduler },
	{ .name = "set", .read = read_set },
	{ .name = "device", .read = read_device },
	{ .name = "model", .read = read_model },
	{ .name = "drive", .read = read_drive },
	{ .name = "answers", .read = read_answers },
	{ .name = "series", .read = read_series },
	CHOICE(description, "ftl", ftl, ftl_names),
	CHOICE(description, "audit", audit_end, audit_names),
	{ .name = "flow", .read = read_flow },
	{ .name = "part", .read = read_part },
	{ .name = "load", .read = read_load },
	{ .name = "at", .read = read_at },
	NUMBER(description, seed, 0, NUMBER_MOST),
	NUMBER(description, queues, 1, QUEUES_MAX),
	NUMBER(description, sockets, 1, QUEUES_MAX),
	NUMBER(description, tags, 0, 65536),
	NUMBER(description, tag_maps, 1, QUEUES_MAX),
	NUMBER(description, fetch, 0, 65536),
	NUMBER(description, sched_tags, 0, 65536),
	NUMBER(description, most_bytes, 0, BYTES_MOST),
	NUMBER(description, wake_ns, 0, 1000 * 1000 * 1000),
	NUMBER(description, submit_ns, 0, 1000 * 1000 * 1000),
	NUMBER(description, complete_ns, 0, 1000 * 1000 * 1000),
	NUMBER(description, locked_ns, 0, 1000 * 1000 * 1000),
	NUMBER(description, warm_ms, 0, MS_MOST),
	NUMBER(description, run_ms, 1, MS_MOST),
	NUMBER(description, time_scale, 1, 100000),
	NUMBER(description, write_times, 1, 100),
	{ }
};

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
	if (!take_key(d, &w, "no key", statements, d))
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
		return wrong(
			d,
			"load: the range ends at %llu MiB, the drive at %llu MiB",
			(l->first_kib + l->kib + 1023) >> 10, d->drive_mib);
	for (i = 0; i < l->nr_sizes; i++)
		most = max(most, (u64)l->size[i].bytes);
	if (most > l->kib << 10)
		return wrong(d, "load: a request is larger than the range");
	return true;
}

static bool check_load(struct description *d, struct described_load *l)
{
	d->line = l->line;
	if (l->queue + l->queues > d->queues)
		return wrong(
			d,
			"load: queues %llu to %llu, but the host has queues 0 to %llu",
			l->queue, l->queue + l->queues - 1, d->queues - 1);
	if (l->stop_ms && l->stop_ms <= l->start_ms)
		return wrong(d, "load: stop_ms %llu is not after start_ms %llu",
			     l->stop_ms, l->start_ms);
	if (!d->model) {
		if (!l->mib && !l->first_mib && !l->kib && !l->first_kib)
			return true;
		return wrong(d, "load: first_mib and mib are for a drive");
	}
	return check_range(d, l);
}

static bool check_part(struct description *d, u32 i)
{
	u64 percent = 0;
	u32 j;

	for (j = 0; j <= i; j++)
		percent += d->part[j].percent;
	d->line = d->part[i].line;
	if (!d->model)
		return wrong(d, "part: it is for a drive");
	if (d->fill_percent != NO_PERCENT)
		return wrong(d, "part: leave out the PERCENT of the drive");
	if (percent > 100)
		return wrong(d, "part: %llu %% in all: use at most 100",
			     percent);
	return true;
}

static bool check_action(struct description *d,
			 const struct described_action *a)
{
	u64 end_ms = d->warm_ms + d->run_ms;

	d->line = a->line;
	if (a->kind == ACTION_RETIME && !d->model)
		return wrong(d, "retime: it is for a drive");
	if (a->at_ms < end_ms)
		return true;
	return wrong(d, "at %llu: the run ends at %llu ms, warm_ms and run_ms",
		     a->at_ms, end_ms);
}

bool describe_end(struct description *d)
{
	u32 i;

	d->line = 0;
	if (!d->ops)
		return wrong(d, "no scheduler: write scheduler NAME");
	if (!d->model == !d->slots)
		return wrong(
			d,
			"write one of device SLOTS BASE_NS NS_PER_KIB and drive MODEL SIZE_MIB FILL");
	if (d->ftl != FLASH_FTL_DEVICE && !d->model)
		return wrong(d, "ftl: it is for a drive");
	if ((d->time_scale > 1 || d->write_times > 1) && !d->model)
		return wrong(d,
			     "time_scale and write_times: they are for a drive");
	if (d->series_whole && d->warm_ms % d->series)
		return wrong(
			d,
			"series %llu whole: warm_ms %llu is not a multiple of it",
			d->series, d->warm_ms);
	if (d->queues % d->sockets)
		return wrong(d,
			     "sockets %llu: use a divisor of %llu, the queues",
			     d->sockets, d->queues);
	if (d->tag_maps > d->queues)
		return wrong(d, "tag_maps %llu: use at most %llu, the queues",
			     d->tag_maps, d->queues);
	if (d->most_bytes % SECTOR)
		return wrong(d, "most_bytes %llu: use a multiple of %u",
			     d->most_bytes, SECTOR);
	for (i = 0; i < d->nr_parts; i++)
		if (!check_part(d, i))
			return false;
	d->line = 0;
	if (!d->nr_loads)
		return wrong(d, "no load: write load FLOW depth N bytes N");
	for (i = 0; i < d->nr_loads; i++)
		if (!check_load(d, &d->load[i]))
			return false;
	for (i = 0; i < d->nr_actions; i++)
		if (!check_action(d, &d->action[i]))
			return false;
	return true;
}
