// SPDX-License-Identifier: GPL-2.0
/*
 * Each value of each tunable acts: two runs that differ in this value alone differ.
 * A scheduler could otherwise accept and show a value that it then ignores.
 *
 * The values of a number are its least, one between and its greatest, and `auto`.
 * A scene is one in which some tunables matter; a value has to differ from each
 * other one in some scene.
 */
#include <string.h>

#include "fixture.h"

enum {
	TENANTS		= 3,
	VALUES_MAX	= 8,
	RUN_MS		= 600,
};

/* A tunable with one value; the value of a cost is its kind. */
struct setting {
	const struct tunable *tunable;
	u32 value;
	bool automatic;
};

/* These change no order of requests, and no run of the simulator. */
static const char *const inert[] = {
	"single_lock",		/* the price of a lock, which the simulator has not */
};

/*
 * While another tunable is judged these have other values than by default: the runs
 * are short, and a limit has to be reached.
 */
static const struct {
	const char *name;
	u32 value;
} beside[] = {
	{ "damping", 100 },
	{ "window_ms", 60 },
	{ "budget_ms", 100 },
	{ "interval_ms", 10 },
	/* Both, or neither acts. */
	{ "read_lat_us", 500 },
	{ "write_lat_us", 10000 },
	/* With isolation, a D that is set is only the most that is tried. */
	{ "isolation", 0 },
};

struct tenant {
	u32 weight, depth, bytes, bytes_max, write_permille;
};

struct scene {
	const char *name;
	u64 request_ns;			/* of a fixed drive; 0: on flash */
	enum flash_ftl ftl;
	struct tenant tenant[TENANTS];
};

static const struct scene scenes[] = {
	{ "mixed", 100 * US, FLASH_FTL_DEVICE,
	  { { 900, 32, 4 * KIB, 64 * KIB, 300 },
	    { 100, 32, 4 * KIB, 0, 0 },
	    { 300, 200, 64 * KIB, 0, 500 } } },
	{ "a reader beside jobs", 0, FLASH_FTL_DEVICE,
	  { { 10000, 1, 4 * KIB, 0, 0 },
	    { 1, 128, 64 * KIB, 0, 0 },
	    { 300, 128, 64 * KIB, 0, 300 } } },
	{ "a short tenant with much of the work", 0, FLASH_FTL_DEVICE,
	  { { 1000, 16, 64 * KIB, 0, 0 },
	    { 100, 128, 64 * KIB, 0, 0 },
	    { 100, 128, 64 * KIB, 0, 0 } } },
	{ "a slow drive", 10 * MS, FLASH_FTL_DEVICE,
	  { { 100, 16, 4 * KIB, 0, 1000 },
	    { 100, 16, 4 * KIB, 0, 500 },
	    { 300, 1, 4 * KIB, 0, 0 } } },
	{ "writers on a full drive", 0, FLASH_FTL_HOST,
	  { { 100, 64, 4 * KIB, 0, 1000 },
	    { 100, 64, 16 * KIB, 0, 500 },
	    { 300, 64, 4 * KIB, 0, 0 } } },
};

static void apply(const struct sched_ops *ops, struct sched_params *p,
		  const struct setting *s)
{
	const struct tunable *table = ops->tunables;
	struct cost_model cost = {
		.kind = s->value,
		.read = { 3 * COST_UNIT, COST_UNIT / 16 },
		.write = { COST_UNIT, COST_UNIT / 2 },
	};

	if (s->automatic)
		tunables_set_auto(table, BIT_ULL(s->tunable - table), 0, p);
	else if (s->tunable->kind == TUNABLE_COST)
		port_assert(!tunable_set_cost(s->tunable, p, &cost));
	else
		port_assert(!tunable_set(s->tunable, p, s->value));
}

static void set_others(const struct sched_ops *ops, struct sched_params *p)
{
	const struct tunable *t;
	u32 i;

	sched_params_init(ops, p);
	for (i = 0; i < ARRAY_SIZE(beside); i++) {
		t = tunable_find(ops->tunables, beside[i].name);
		if (t)
			port_assert(!tunable_set(t, p, beside[i].value));
	}
}

/* The figures of a run. */
struct outcome {
	u64 digest;			/* of all dispatches and completions */
	u64 relative_cost;		/* of a request of the last tenant to one .. */
};					/* .. of the second, which is small */

/* The mean cost of the requests that @f completed, in thousandths. */
static u64 mean_cost(const struct host_flow *f)
{
	struct flow_totals total;

	flow_totals(f->flow, &total);
	return max(1000 * total.cost / max(total.done, 1ULL), 1ULL);
}

static void run_scene(struct test_case *t, const struct scene *c,
		      const struct setting *s, struct outcome *o)
{
	struct host_flow *flow[TENANTS];
	struct host_params p = fixture_params(t, 1);
	struct flash *f = c->request_ns ? NULL :
					  fixture_full_drive(c->ftl, 256, 16);
	struct load_params load = { .nr_queues = 4 };
	struct fixture r;
	u32 i;

	set_others(t->ops, &p.sched);
	apply(t->ops, &p.sched, s);
	p.nr_queues = load.nr_queues;
	p.device.base_ns = c->request_ns;
	p.device.ns_per_kib = 500;
	p.device.flash = f;
	fixture_open(&r, t, &p);
	for (i = 0; i < TENANTS; i++) {
		const struct tenant *tenant = &c->tenant[i];

		flow[i] = fixture_flow(&r, NULL, tenant->weight);
		load.flow = flow[i];
		load.depth = tenant->depth;
		load.bytes = tenant->bytes;
		load.bytes_max = tenant->bytes_max;
		load.write_permille = tenant->write_permille;
		fixture_load(&r, &load);
	}
	fixture_run(&r, RUN_MS * MS);
	o->relative_cost = 1000 * mean_cost(flow[2]) / mean_cost(flow[1]);
	o->digest = r.digest;
	fixture_close(&r);
	if (f)
		flash_destroy(f);
}

/* Did the tunable act?  A cost does so if requests of two sizes cost otherwise. */
static bool differ(const struct tunable *t, const struct outcome *a,
		   const struct outcome *b)
{
	if (t->kind != TUNABLE_COST)
		return a->digest != b->digest;
	return max(a->relative_cost, b->relative_cost) * 20 >
	       min(a->relative_cost, b->relative_cost) * 21;
}

/* Is the automatic value of @t another one than the default? */
static bool auto_differs(const struct sched_ops *ops, const struct tunable *t)
{
	const struct setting automatic = { t, 0, true };
	struct sched_params p, given;

	set_others(ops, &p);
	given = p;
	apply(ops, &p, &automatic);
	return memcmp(&p, &given, sizeof(p)) != 0;
}

/* Returns the number of values of @t that are to differ. */
static u32 values_of(const struct sched_ops *ops, const struct tunable *t,
		     struct setting *s)
{
	struct sched_params p;
	u32 n = 0, i, middle;

	if (t->kind == TUNABLE_CHOICE) {
		for (i = 0; t->choices[i]; i++)
			s[n++] = (struct setting){ t, i, false };
		return n;
	}
	if (t->kind == TUNABLE_COST) {
		for (i = 0; i < COST_KINDS; i++)
			s[n++] = (struct setting){ t, i, false };
		return n;
	}
	if (t->automatic != AUTO_NOT && auto_differs(ops, t))
		s[n++] = (struct setting){ t, 0, true };
	set_others(ops, &p);
	middle = tunable_get(t, &p);
	s[n++] = (struct setting){ t, t->least, false };
	if (middle != t->least)
		s[n++] = (struct setting){ t, middle, false };
	if (middle != t->most)
		s[n++] = (struct setting){ t, t->most, false };
	return n;
}

static void value_name(const struct setting *s, char *text, size_t bytes)
{
	if (s->automatic)
		snprintf(text, bytes, "auto");
	else if (s->tunable->kind == TUNABLE_COST)
		snprintf(text, bytes, "%s", cost_names[s->value]);
	else if (s->tunable->kind == TUNABLE_CHOICE)
		snprintf(text, bytes, "%s", s->tunable->choices[s->value]);
	else
		snprintf(text, bytes, "%u", s->value);
}

static bool is_inert(const struct tunable *t)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(inert); i++)
		if (!strcmp(t->name, inert[i]))
			return true;
	return false;
}

/* The pairs of values of a tunable that differ in one of the scenes so far. */
struct pairs {
	bool differ[VALUES_MAX][VALUES_MAX];	/* [i][j], j < i */
	u32 left;				/* pairs that do not */
};

static void compare(struct pairs *p, const struct tunable *tunable,
		    const struct outcome *o, u32 n)
{
	u32 i, j;

	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			if (!p->differ[i][j] && differ(tunable, &o[i], &o[j])) {
				p->differ[i][j] = true;
				p->left--;
			}
}

static void judge_pairs(struct test_case *t, const struct pairs *p,
			const struct tunable *tunable, const struct setting *s,
			u32 n)
{
	bool inert = is_inert(tunable);
	char one[32], other[32];
	u32 i, j;

	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++) {
			if (p->differ[i][j] != inert)
				continue;
			value_name(&s[i], one, sizeof(one));
			value_name(&s[j], other, sizeof(other));
			case_fail(
				t, "%s: %s and %s %s", tunable->name, one,
				other,
				inert ? "differ, though one lock costs nothing" :
					"are alike in every scene");
		}
}

/* Plays scenes until all pairs of values differ. */
static void check_tunable(struct test_case *t, const struct tunable *tunable)
{
	struct setting s[VALUES_MAX];
	struct outcome o[VALUES_MAX];
	u32 n = values_of(t->ops, tunable, s), i, k;
	struct pairs p = { .left = n * (n - 1) / 2 };

	for (k = 0; k < ARRAY_SIZE(scenes) && p.left; k++) {
		for (i = 0; i < n; i++)
			run_scene(t, &scenes[k], &s[i], &o[i]);
		compare(&p, tunable, o, n);
	}
	judge_pairs(t, &p, tunable, s, n);
}

static void test_act(struct test_case *t)
{
	const struct tunable *tunable;

	for (tunable = t->ops->tunables; tunable->name; tunable++)
		check_tunable(t, tunable);
}

const struct test tunable_tests[] = {
	{ "tunables/act", test_act, false },
	{ NULL, NULL, false },
};
