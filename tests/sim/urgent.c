// SPDX-License-Identifier: GPL-2.0
/*
 * Tests that metadata and swap requests are bounded, and held back by no other
 * tenant's.
 *
 * Two queues, a drive of 16 slots and 100 us for a request of any size, so
 * 160,000 requests a second.  A light tenant of weight 10 is entitled to 1 %
 * beside a heavy one of weight 1000 that asks for all.
 */
#include "fixture.h"

enum {
	LIGHT		= 10,
	HEAVY		= 1000,
	ROOT		= WEIGHT_DEFAULT,
	IOPS		= 160000,
	STEP_MS		= 5,
	SECOND		= 1000 / STEP_MS,	/* steps */
	SETTLE_MS	= 2000,
	/*
	 * The bound over any second: the shares of the flow and of the root,
	 * and 100 ms of the flow's share.
	 */
	SECOND_PERMILLE	= 1000 * (LIGHT + LIGHT / 10 + ROOT) /
			  (LIGHT + HEAVY + ROOT),
	/* The part of the bound that metadata may add to data. */
	MORE_PERMILLE	= 1000 * (LIGHT / 10 + ROOT) / (LIGHT + HEAVY + ROOT),
	/* A tenant that sent requests for this long, and then none to SETTLE_MS. */
	SPOKE_MS	= 50,
	STARVED_MS	= 200,
	/* Reads of the light tenant afterwards, of those due to it. */
	READS_PERMILLE	= 900,
};

struct scene {
	struct fixture r;
	struct host_flow *light, *heavy;
	void (*completed)(void *arg, struct host_io *hio);
	u64 reads, writes;		/* of the light tenant */
	u64 longest_commit_ns;		/* of the root */
	u64 light_bytes, bytes;		/* at the last step */
	u64 light_step[SECOND], step[SECOND];
	u32 steps;
	u64 light_second, second;	/* sums over the steps */
	u64 most_permille;		/* of the light tenant in any second */
	u64 reads_seen, quiet_ms, starved_ms;
};

static void scene_completed(void *arg, struct host_io *hio)
{
	struct fixture *r = arg;
	struct scene *s = container_of(r, struct scene, r);
	u64 ns = host_now(r->host) - hio->submit_ns;

	s->completed(arg, hio);
	if (hio->flow == s->light && hio->io.op == IO_READ)
		s->reads++;
	if (hio->flow == s->light && hio->io.op == IO_WRITE)
		s->writes++;
	if (hio->flow == r->root)
		s->longest_commit_ns = max(s->longest_commit_ns, ns);
}

/* Flows that were active before the test, and are silent when it begins. */
enum silent {
	SILENT_ROOT	= 1,
	SILENT_LIGHT	= 2,
};

static void speak(struct scene *s, struct host_flow *f)
{
	fixture_add(&s->r, f, .nr_queues = 1, .depth = 1, .bytes = 4 * KIB,
		    .stop_ns = SPOKE_MS * MS);
}

static struct host_params scene_params(const struct test_case *t, u64 seed)
{
	struct host_params p = fixture_params(t, seed);

	p.nr_queues = 2;
	p.audit_at_end = true;
	return p;
}

/* @silent is of enum silent. */
static void scene_open_with(struct scene *s, struct test_case *t,
			    const struct host_params *p, u32 light, u32 silent)
{
	*s = (struct scene){ 0 };
	fixture_open(&s->r, t, p);
	s->completed = s->r.host->watch.completed;
	s->r.host->watch.completed = scene_completed;
	s->light = fixture_flow(&s->r, NULL, light);
	s->heavy = fixture_flow(&s->r, NULL, HEAVY);
	fixture_closed(&s->r, s->heavy, 64, 4 * KIB);
	if (silent & SILENT_ROOT)
		speak(s, s->r.root);
	if (silent & SILENT_LIGHT)
		speak(s, s->light);
	fixture_run(&s->r, SETTLE_MS * MS);
}

static void scene_open_after(struct scene *s, struct test_case *t, u32 light,
			     u32 silent)
{
	struct host_params p = scene_params(t, 1);

	scene_open_with(s, t, &p, light, silent);
}

static void scene_open(struct scene *s, struct test_case *t)
{
	scene_open_after(s, t, LIGHT, 0);
}

/* Counts the second that ends now. */
static void scene_count(struct scene *s)
{
	u64 light = s->light->stats.bytes;
	u64 all = light + s->heavy->stats.bytes + s->r.root->stats.bytes;
	u32 i = s->steps++ % SECOND;

	s->light_second += light - s->light_bytes - s->light_step[i];
	s->second += all - s->bytes - s->step[i];
	s->light_step[i] = light - s->light_bytes;
	s->step[i] = all - s->bytes;
	s->light_bytes = light;
	s->bytes = all;
	if (s->steps >= SECOND && s->second)
		s->most_permille = max(s->most_permille,
				       s->light_second * 1000 / s->second);
}

/* @reads: the light tenant has reads outstanding all the time. */
static void scene_run(struct scene *s, u64 ms, bool reads)
{
	u64 end = host_now(s->r.host) + ms * MS;

	s->quiet_ms = 0;
	while (host_now(s->r.host) < end && !case_failed(s->r.test_case)) {
		fixture_run(&s->r, STEP_MS * MS);
		scene_count(s);
		s->quiet_ms += STEP_MS;
		if (s->reads != s->reads_seen)
			s->quiet_ms = 0;
		s->reads_seen = s->reads;
		if (reads)
			s->starved_ms = max(s->starved_ms, s->quiet_ms);
	}
}

/*
 * A scheduler by budget may be off by a tenth, as its rounds do not end with the
 * second.
 */
static u64 in_a_second(const struct test_case *t, u64 permille)
{
	return t->ops->ordered ? permille : permille * 11 / 10;
}

/* By budget, a flow that becomes active has the grant of a round at once. */
static u64 in_a_burst(const struct test_case *t, u64 permille)
{
	return t->ops->ordered ? permille : permille * 22 / 10;
}

static void expect_bounds(struct scene *s)
{
	struct test_case *t = s->r.test_case;
	u64 most = in_a_second(t, SECOND_PERMILLE);

	if (s->most_permille > most)
		case_fail(
			t,
			"a tenant of weight %u got %llu permille in a second, and at most %llu is due",
			LIGHT, s->most_permille, most);
	if (s->starved_ms > STARVED_MS)
		case_fail(t, "a tenant's reads stood still for %llu ms",
			  s->starved_ms);
}

/* The light tenant sends requests for @ms, and @urgent_permille are metadata. */
static void requests(struct scene *s, u64 ms, u32 urgent_permille)
{
	struct load_params p = {
		.flow = s->light,
		.nr_queues = s->r.host->params.nr_queues,
		.depth = 40,
		.bytes = 4 * KIB,
		.urgent_permille = urgent_permille,
		.stop_ns = host_now(s->r.host) + ms * MS,
	};

	fixture_load(&s->r, &p);
}

/* The metadata of the light tenant, for @ms. */
static void metadata(struct scene *s, u64 ms)
{
	requests(s, ms, 1000);
}

/* Returns the part of the drive, in permille, that requests() get in @ms. */
static u64 part_of_requests(struct scene *s, u64 ms, u32 urgent_permille)
{
	u64 light = s->light->stats.bytes, heavy = s->heavy->stats.bytes;

	requests(s, ms, urgent_permille);
	scene_run(s, ms, false);
	light = s->light->stats.bytes - light;
	heavy = s->heavy->stats.bytes - heavy;
	return light * 1000 / max(light + heavy, 1ULL);
}

/* The light tenant reads data from now on. */
static void reads(struct scene *s, u32 nr_queues, u32 depth)
{
	fixture_add(&s->r, s->light, .nr_queues = nr_queues, .depth = depth,
		    .bytes = 4 * KIB);
}

/*
 * The light tenant reads metadata and then data.  Afterwards its reads go on at
 * once, at its share.
 */
static void burst(struct test_case *t, u64 ms)
{
	u64 part, got, due;
	struct scene s;

	scene_open(&s, t);
	part = part_of_requests(&s, ms, 1000);
	reads(&s, 2, 8);
	scene_run(&s, 1000, true);
	got = s.reads;
	scene_run(&s, 1000, true);
	got = s.reads - got;
	due = (u64)IOPS * LIGHT / (LIGHT + HEAVY);
	case_note(
		t,
		"burst %llu permille, second %llu, then %llu reads/s of %llu, starved %llu ms",
		part, s.most_permille, got, due, s.starved_ms);
	if (part > in_a_burst(t, SECOND_PERMILLE))
		case_fail(
			t,
			"in %llu ms of metadata a tenant got %llu permille, at most %llu is due; afterwards %llu reads/s of %llu, still for %llu ms",
			ms, part, in_a_burst(t, SECOND_PERMILLE), got, due,
			s.starved_ms);
	expect_bounds(&s);
	if (got * 1000 < due * READS_PERMILLE)
		case_fail(t, "after %llu ms of metadata %llu reads/s of %llu",
			  ms, got, due);
	fixture_close(&s.r);
}

static void test_burst(struct test_case *t)
{
	burst(t, 200);
}

static void test_seconds(struct test_case *t)
{
	burst(t, 2000);
}

static void test_long(struct test_case *t)
{
	burst(t, 20000);
}

/* Parts of the drive that the light tenant has, in permille. */
struct parts {
	u64 all, second;	/* in all of the time, in any second */
};

/* The light tenant sends requests for @ms, and then has one read at a time. */
static struct parts parts_after(struct test_case *t, u64 ms, u32 silent,
				u32 urgent_permille)
{
	struct parts parts;
	struct scene s;

	scene_open_after(&s, t, LIGHT, silent);
	parts.all = part_of_requests(&s, ms, urgent_permille);
	reads(&s, 1, 1);
	scene_run(&s, 1000, true);
	parts.second = s.most_permille;
	if (s.starved_ms > STARVED_MS)
		case_fail(t, "a tenant's reads stood still for %llu ms",
			  s.starved_ms);
	fixture_close(&s.r);
	return parts;
}

/*
 * Flows have been silent for long, so ifq gives them a large share at first.  By
 * its metadata a tenant gets no more than it would get by data, and the bound.
 */
static void silent(struct test_case *t, u64 ms, u32 silent)
{
	struct parts data = parts_after(t, ms, silent, 0);
	struct parts metadata = parts_after(t, ms, silent, 1000);

	case_note(
		t,
		"%llu ms: metadata %llu permille, second %llu; data %llu, second %llu",
		ms, metadata.all, metadata.second, data.all, data.second);
	if (metadata.all > data.all + in_a_burst(t, MORE_PERMILLE) ||
	    metadata.second > data.second + in_a_second(t, MORE_PERMILLE))
		case_fail(
			t,
			"in %llu ms a tenant got %llu permille by metadata, %llu in a second, and %llu and %llu by data",
			ms, metadata.all, metadata.second, data.all,
			data.second);
}

/* A long burst differs from one of 2 s only after the first second: test_long. */
static void test_silent_root(struct test_case *t)
{
	silent(t, 200, SILENT_ROOT);
	silent(t, 2000, SILENT_ROOT);
}

/* The tenant comes first, by metadata. */
static void test_silent_tenant(struct test_case *t)
{
	silent(t, 200, SILENT_LIGHT);
	silent(t, 2000, SILENT_LIGHT);
}

static void test_silent_both(struct test_case *t)
{
	silent(t, 200, SILENT_ROOT | SILENT_LIGHT);
	silent(t, 2000, SILENT_ROOT | SILENT_LIGHT);
}

/*
 * The light tenant swaps: it writes pages out all the time, and a task of it
 * waits for one page at a time.  A page that comes in is a plain read.
 */
static void test_swap(struct test_case *t)
{
	struct load_params out = {
		.nr_queues = 2,
		.depth = 40,
		.bytes = 4 * KIB,
		.write_permille = 1000,
		.urgent_permille = 1000,
	};
	struct load_params in = { .depth = 1, .bytes = 4 * KIB };
	struct scene s;

	scene_open(&s, t);
	out.flow = s.light;
	in.flow = s.light;
	fixture_load(&s.r, &out);
	fixture_load(&s.r, &in);
	scene_run(&s, 5000, true);
	case_note(
		t,
		"second %llu permille, %llu pages out, %llu in, still for %llu ms",
		s.most_permille, s.writes, s.reads, s.starved_ms);
	expect_bounds(&s);
	fixture_close(&s.r);
}

/*
 * Four queues with 16 scheduler tags each, and a task of the light tenant that
 * reads one block at a time in the first.  Wake-ups take up to 5 us.
 */
static void test_queues(struct test_case *t)
{
	struct load_params in = { .depth = 1, .bytes = 4 * KIB };
	u64 seed, longest_ms = 0;
	struct scene s;

	for (seed = 1; seed <= min(t->most_seeds, 12U); seed++) {
		struct host_params p = scene_params(t, seed);

		p.nr_queues = 4;
		p.sched_tags = 16;
		p.quotas = true;
		p.wake_ns = 5 * US;
		scene_open_with(&s, t, &p, LIGHT, 0);
		in.flow = s.light;
		metadata(&s, 60000);
		fixture_load(&s.r, &in);
		scene_run(&s, 1000, true);
		longest_ms = max(longest_ms, s.starved_ms);
		if (s.starved_ms > STARVED_MS)
			case_fail(t, "a tenant's reads stood still for %llu ms",
				  s.starved_ms);
		fixture_close(&s.r);
	}
	case_note(t, "still for %llu ms at most", longest_ms);
}

/*
 * The journal of the root: @depth requests, and the next @think_ns later.  They
 * are reads, which all schedulers charge alike.
 */
static void journal(struct scene *s, u32 depth, u64 think_ns)
{
	fixture_add(&s->r, s->r.root, .first_queue = 1, .depth = depth,
		    .bytes = 4 * KIB, .urgent_permille = 1000,
		    .think_ns = think_ns);
}

/* A load of the tenant beside a journal. */
struct beside {
	u32 weight, silent;
	u64 ms;
	u32 urgent_permille;
};

/* The longest commit of a journal that asks for a quarter of the root's share. */
static u64 longest_commit(struct test_case *t, const struct beside *b)
{
	struct scene s;
	u64 ns;

	scene_open_after(&s, t, b->weight, b->silent);
	if (b->ms)
		requests(&s, b->ms, b->urgent_permille);
	journal(&s, 4, 1100 * US);
	scene_run(&s, 2000, false);
	ns = s.longest_commit_ns;
	fixture_close(&s.r);
	return ns;
}

static void expect_commits(struct test_case *t, const struct beside *b)
{
	struct beside none = { .weight = b->weight, .silent = b->silent };
	u64 alone = longest_commit(t, &none), beside = longest_commit(t, b);

	case_note(t, "longest commit %llu us, beside a tenant %llu us",
		  alone / US, beside / US);
	/* One request may be in service in each of the slots. */
	if (beside > alone + 200 * US)
		case_fail(
			t,
			"the longest commit took %llu us beside a light tenant, and %llu us alone",
			beside / US, alone / US);
}

/* No commit waits for the metadata of a light tenant. */
static void test_commit(struct test_case *t)
{
	struct beside b = {
		.weight = LIGHT,
		.ms = 60000,
		.urgent_permille = 1000,
	};

	expect_commits(t, &b);
}

/*
 * Nor for the data of a tenant that was silent, which has a large share at first
 * under ifq.  The journal was silent, too.
 */
static void test_silent_commit(struct test_case *t)
{
	struct beside b = {
		.weight = WEIGHT_DEFAULT,
		.silent = SILENT_ROOT | SILENT_LIGHT,
		.ms = 60000,
	};

	expect_commits(t, &b);
}

/*
 * A journal asks for more than the root's share, and a light tenant sends more
 * metadata than that.  Virtual time gives the journal the root's share.  The
 * other schedulers let it have half of that at least, which passes.
 */
static void test_journal(struct test_case *t)
{
	u64 least =
		ROOT * (t->ops->ordered ? 850 : 500) / (LIGHT + HEAVY + ROOT);
	u64 bytes, all;
	struct scene s;

	scene_open(&s, t);
	metadata(&s, 60000);
	journal(&s, 32, 0);
	scene_run(&s, 500, false);
	bytes = s.r.root->stats.bytes;
	all = s.bytes;
	scene_run(&s, 2000, false);
	bytes = s.r.root->stats.bytes - bytes;
	all = max(s.bytes - all, 1ULL);
	case_note(
		t,
		"%llu permille, longest commit %llu us, the tenant's second %llu permille",
		bytes * 1000 / all, s.longest_commit_ns / US, s.most_permille);
	if (bytes * 1000 / all < least)
		case_fail(t, "a journal got %llu permille beside metadata",
			  bytes * 1000 / all);
	expect_bounds(&s);
	fixture_close(&s.r);
}

/* The metadata of the heavy tenant gets its share beside a third tenant. */
static void test_heavy(struct test_case *t)
{
	struct host_flow *third;
	struct scene s;
	u64 bytes, other;

	scene_open(&s, t);
	third = fixture_flow(&s.r, NULL, HEAVY);
	fixture_add(&s.r, third, .nr_queues = 2, .depth = 64, .bytes = 4 * KIB,
		    .urgent_permille = 1000);
	metadata(&s, 60000);
	scene_run(&s, 500, false);
	bytes = third->stats.bytes;
	other = s.heavy->stats.bytes;
	scene_run(&s, 2000, false);
	bytes = third->stats.bytes - bytes;
	other = max(s.heavy->stats.bytes - other, 1ULL);
	case_note(t, "%llu permille of its sibling's", bytes * 1000 / other);
	if (bytes * 100 < other * 90 || other * 100 < bytes * 90)
		case_fail(
			t,
			"a tenant's metadata got %llu permille of the bytes of a tenant of the same weight",
			bytes * 1000 / other);
	fixture_close(&s.r);
}

const struct test urgent_tests[] = {
	{ "urgent/burst", test_burst, true },
	{ "urgent/seconds", test_seconds, true },
	{ "urgent/long", test_long, false },
	{ "urgent/silent-root", test_silent_root, false },
	{ "urgent/silent-tenant", test_silent_tenant, false },
	{ "urgent/silent-both", test_silent_both, false },
	{ "urgent/swap", test_swap, true },
	{ "urgent/queues", test_queues, false },
	{ "urgent/commit", test_commit, false },
	{ "urgent/silent-commit", test_silent_commit, false },
	{ "urgent/journal", test_journal, true },
	{ "urgent/heavy", test_heavy, false },
	{ NULL, NULL, false },
};
