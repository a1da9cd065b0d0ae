// SPDX-License-Identifier: GPL-2.0
/*
 * Windows of random load in random trees, against a model of the rule.  The
 * model uses floating point and computes each tenant in each window.
 */
#include <math.h>

#include "unit.h"
#include "sched/ifq/ifq_weight.h"
#include "sched/ifq/logarithm.h"

enum {
	GROUPS		= 14,
	WINDOWS		= 60,
	WINDOW_MS	= 1000,
};

#define WINDOW_NS	(WINDOW_MS * 1000000ULL)

/* A cgroup among its siblings, or its own processes among its children. */
struct model_tenant {
	bool known;		/* was active once */
	double log_usage, served_bytes;
};

struct group {
	struct flow *flow;
	u32 parent, weight;
	bool active;
	u64 io;			/* bytes in this window */
	struct model_tenant group, own;
	/* The family when the last window ended: active children and own. */
	u32 nr;
	double sum, highest;
};

static struct group groups[GROUPS];
static struct sched sched;
static struct queue queue, *queues[1] = { &queue };
static struct ifq_weight ifq_weight;
static u64 now_ns, sweep_ns;

static const struct sched_ops ops = {
	.flow_bytes = sizeof(struct ifq_weight_flow),
};

static void open_tree(struct random *r, const struct ifq_params *params)
{
	u32 g;

	sched = (struct sched){
		.ops = &ops,
		.nr_queues = 1,
		.queue = queues,
	};
	*ifq_params(&sched.params) = *params;
	share_tree_init(&sched.share);
	port_lock_init(&sched.active_lock);
	queue_init(&queue, &sched, 0);
	ifq_weight_init(&ifq_weight);
	now_ns = WINDOW_NS / 2;
	for (g = 0; g < GROUPS; g++) {
		struct flow *f = port_zalloc(flow_size(&ops, 1));
		u32 parent = g ? random_below(r, g) : 0;
		static const u32 weights[] = {
			1, 50, 100, 100, 100, 800, 10000
		};

		groups[g] = (struct group){
			.flow = f,
			.parent = parent,
			.weight = weights[random_below(r, ARRAY_SIZE(weights))],
		};
		assert_non_null(f);
		flow_init(f, &sched, g ? groups[parent].flow : NULL,
			  groups[g].weight);
	}
}

static void close_tree(void)
{
	u32 g;

	for (g = GROUPS; g-- > 0;) {
		flow_exit(groups[g].flow);
		port_free(groups[g].flow);
	}
}

/* ----------------------------------------------------------------- the model */

static double goal(double served_bytes, u32 weight)
{
	double counted = served_bytes * WEIGHT_DEFAULT / weight;

	return log2(fmax(counted, ifq_params(&sched.params)->floor));
}

static bool below(u32 g, u32 of)
{
	for (;; g = groups[g].parent) {
		if (g == of)
			return true;
		if (!g)
			return false;
	}
}

static bool group_active(u32 of)
{
	u32 g;

	for (g = 0; g < GROUPS; g++)
		if (groups[g].active && below(g, of))
			return true;
	return false;
}

static void model_tenant_start(struct model_tenant *t,
			       const struct group *parent, u32 weight)
{
	if (t->known)
		return;
	t->known = true;
	t->log_usage = parent->nr ? parent->sum / parent->nr : goal(0, weight);
}

/* Ends a window; a tenant that is not active has no served bytes in it. */
static void model_tenant_close(struct model_tenant *t, u32 weight)
{
	double a = ifq_params(&sched.params)->damping / 100.0;

	if (t->known)
		t->log_usage +=
			a * (goal(t->served_bytes, weight) - t->log_usage);
	t->served_bytes = 0;
}

static void family_collect(struct group *family, const struct model_tenant *t,
			   bool active, bool *first)
{
	if (!active)
		return;
	if (*first) {
		family->nr = 0;
		family->sum = 0;
		family->highest = 0;
		*first = false;
	}
	family->nr++;
	family->sum += t->log_usage;
	family->highest = fmax(family->highest, t->log_usage);
}

static void family_close(u32 p)
{
	double most = log2(ifq_params(&sched.params)->clamp);
	struct group *family = &groups[p];
	bool first = true;
	u32 g;

	family_collect(family, &family->own, family->active, &first);
	for (g = 1; g < GROUPS; g++)
		if (groups[g].parent == p)
			family_collect(family, &groups[g].group,
				       group_active(g), &first);
	if (family->active)
		family->own.log_usage =
			fmax(family->own.log_usage, family->highest - most);
	for (g = 1; g < GROUPS; g++)
		if (groups[g].parent == p && group_active(g))
			groups[g].group.log_usage =
				fmax(groups[g].group.log_usage,
				     family->highest - most);
}

static void model_close(void)
{
	u32 g, k;

	for (g = 0; g < GROUPS; g++) {
		groups[g].own.served_bytes = (double)groups[g].io;
		for (k = 0; k < GROUPS; k++)
			if (below(k, g))
				groups[g].group.served_bytes +=
					(double)groups[k].io;
		groups[g].io = 0;
	}
	for (g = 0; g < GROUPS; g++) {
		model_tenant_close(&groups[g].own, WEIGHT_DEFAULT);
		if (g)
			model_tenant_close(&groups[g].group, groups[g].weight);
	}
	for (g = 0; g < GROUPS; g++)
		family_close(g);
}

static double model_scale(const struct model_tenant *t,
			  const struct group *family)
{
	double up = family->nr ? family->highest - t->log_usage : 0;

	return exp2(fmax(0, fmin(up, log2(ifq_params(&sched.params)->clamp))));
}

/* ------------------------------------------------------------------ the code */

static void request(u32 g)
{
	groups[g].flow->fq[0]->inserted++;
	atomic64_inc(&groups[g].flow->fq[0]->done);
}

static void flow_arrives(u32 g)
{
	struct flow_start start;
	u32 k;

	request(g);
	flow_charge(groups[g].flow, 4096, 0, false, &start);
	assert_int_equal(start.woke, !groups[g].active);
	if (!start.woke)
		return;
	ifq_weight_join(&ifq_weight, groups[g].flow, now_ns);
	groups[g].active = true;
	model_tenant_start(&groups[g].own, &groups[g], WEIGHT_DEFAULT);
	for (k = g; k; k = groups[k].parent)
		model_tenant_start(&groups[k].group, &groups[groups[k].parent],
				   groups[k].weight);
}

/* All active flows but @g send a request; then idle flows are swept. */
static void sweep_all_but(u32 g)
{
	bool changed;
	u32 k;

	for (k = 0; k < GROUPS; k++)
		if (k != g && groups[k].active)
			request(k);
	ifq_weight_account(&sched);
	flow_sweep(&sched, sweep_ns, &changed);
	sweep_ns += FLOW_GRACE_NS;
}

static void flow_leaves(u32 g)
{
	sweep_all_but(g);
	sweep_all_but(g);
	assert_true(flow_share(groups[g].flow) == 0);
	groups[g].active = false;
}

static void serve(u32 g, u64 bytes)
{
	atomic64_add((s64)bytes, &groups[g].flow->fq[0]->cost);
	groups[g].io += bytes;
}

/* Equal to a thousandth; the last of 16 bits of a logarithm is 1e-5. */
static void expect_near(double got, double want)
{
	assert_true(fabs(got / want - 1) < 1e-3);
}

static void check(void)
{
	u32 g;

	for (g = 0; g < GROUPS; g++) {
		const struct group *own = &groups[g];

		if (own->active)
			expect_near((double)own->flow->group.own_scale /
					    SCALE_ONE,
				    model_scale(&own->own, own));
		if (g && group_active(g))
			expect_near((double)own->flow->group.scale / SCALE_ONE,
				    model_scale(&own->group,
						&groups[own->parent]));
	}
}

/* All flows leave, and windows end without a tick. */
static void all_leave(struct random *r)
{
	u32 g, i;

	for (g = 0; g < GROUPS; g++)
		if (groups[g].active)
			flow_leaves(g);
	for (i = random_below(r, 4); i; i--) {
		model_close();
		now_ns += WINDOW_NS;
	}
}

static void one_window(struct random *r)
{
	u32 i;

	for (i = 0; i < 6; i++) {
		u32 g = random_below(r, GROUPS);

		if (groups[g].active && random_once_in(r, 3))
			flow_leaves(g);
		else
			flow_arrives(g);
		if (groups[g].active && !random_once_in(r, 4))
			serve(g, 1ULL << random_below(r, 40));
		if (random_once_in(r, 10))
			all_leave(r);
		check();
	}
}

static void next_window(void)
{
	now_ns += WINDOW_NS;
	model_close();
	/* While no flow is active, no tick ends a window: ifq_weight_join(). */
	if (!sched.active)
		return;
	ifq_weight_roll(&ifq_weight, &sched, now_ns);
	check();
}

TEST(scales_match_a_model)
{
	static const u32 dampings[] = { 100, 50, 25, 3 };
	struct random r = random_seeded("ifq_weight");
	u64 round;

	for (round = 0; round < random_rounds(200); round++) {
		const struct ifq_params params = {
			.window_ms = WINDOW_MS,
			.floor = 65536,
			.clamp = round % 3 ? 1000 : 20,
			.damping = dampings[round % 4],
		};
		u32 i;

		open_tree(&r, &params);
		for (i = 0; i < WINDOWS; i++) {
			one_window(&r);
			next_window();
		}
		close_tree();
	}
}

/* ------------------------------------------------------------- in small cases */

static const struct ifq_params paper = {
	.window_ms = WINDOW_MS, .floor = 4096, .clamp = 1000, .damping = 100,
};

/* A root and @n children of @weights, all of them active. */
static void open_siblings(const struct ifq_params *params, const u32 *weights,
			  u32 n)
{
	struct random r = random_seeded("siblings");
	u32 g;

	open_tree(&r, params);
	for (g = 1; g <= n; g++) {
		share_group_init(&groups[g].flow->group, &groups[0].flow->group,
				 weights[g - 1]);
		groups[g].parent = 0;
		groups[g].weight = weights[g - 1];
		flow_arrives(g);
	}
}

static void run_window(const u64 *served_bytes, u32 n)
{
	u32 g;

	for (g = 1; g <= n; g++)
		serve(g, served_bytes[g - 1]);
	now_ns += WINDOW_NS;
	ifq_weight_roll(&ifq_weight, &sched, now_ns);
}

static double share_at(u32 g)
{
	u64 generation;

	return (double)share_of(&sched.share, &groups[g].flow->group,
				&generation) /
	       (double)SHARE_ONE;
}

/* Sections 3.1, 3.3: 100 and 200 MB give 2 : 1; 18, 18, 36 give 2 : 2 : 1. */
TEST(weights_match_the_paper)
{
	const u32 equal[] = { 100, 100, 100 };
	const u64 two[] = { 100 << 20, 200 << 20 };
	const u64 three[] = { 18 << 20, 18 << 20, 36 << 20 };

	open_siblings(&paper, equal, 2);
	run_window(two, 2);
	expect_near(share_at(1) / share_at(2), 2);
	close_tree();

	open_siblings(&paper, equal, 3);
	run_window(three, 3);
	expect_near(share_at(1), 0.4);
	expect_near(share_at(2), 0.4);
	expect_near(share_at(3), 0.2);
	close_tree();
}

/* The ratio of two greedy tenants that start at @ratio : 1. */
static double after_windows(u32 damping, double ratio, const u32 *weights,
			    u32 windows)
{
	struct ifq_params params = paper;
	double got;

	params.damping = damping;
	open_siblings(&params, weights, 2);
	run_window((const u64[]){ (u64)(ratio * (1 << 20)), 1 << 20 }, 2);
	for (; windows; windows--)
		run_window((const u64[]){ (u64)(share_at(1) * (1 << 30)),
					  (u64)(share_at(2) * (1 << 30)) },
			   2);
	got = share_at(1) / share_at(2);
	close_tree();
	return got;
}

TEST(undamped_weights_swing)
{
	const u32 equal[] = { 100, 100 };
	u32 i;

	for (i = 0; i < 10; i++)
		expect_near(after_windows(100, 3, equal, i),
			    i % 2 ? 3 : 1.0 / 3);
	expect_near(after_windows(50, 3, equal, 1), 1);
	expect_near(after_windows(50, 3, equal, 10), 1);
}

TEST(weights_hold_between_greedy_tenants)
{
	const u32 four_to_one[] = { 400, 100 };

	expect_near(after_windows(50, 1, four_to_one, 6), 4);
	expect_near(after_windows(50, 100, four_to_one, 6), 4);
	expect_near(after_windows(25, 1, four_to_one, 40), 4);
}

TEST(scale_stays_within_the_clamp)
{
	const u32 equal[] = { 100, 100, 100 };
	const u64 served_bytes[] = { 1ULL << 40, 1ULL << 39, 4096 };

	open_siblings(&paper, equal, 3);
	run_window(served_bytes, 3);
	expect_near(share_at(3) / share_at(1), 1000);
	/* Heavy tenants keep their ratio. */
	expect_near(share_at(2) / share_at(1), 2);
	/* A silence saves up no more than that: one heavy window ends it. */
	run_window(served_bytes, 3);
	run_window((const u64[]){ 1 << 30, 1 << 30, 1 << 30 }, 3);
	expect_near(share_at(3) / share_at(1), 1);
	close_tree();
}

/* Eleven cgroups below one are served as much as a single one. */
TEST(spreading_over_cgroups_gains_nothing)
{
	const u32 equal[] = { 100, 100, 100, 100, 100, 100 };
	double crowd = 0;
	u32 g;

	open_siblings(&paper, equal, 2);
	for (g = 3; g < GROUPS; g++) {
		share_group_init(&groups[g].flow->group, &groups[2].flow->group,
				 100);
		groups[g].parent = 2;
		flow_arrives(g);
	}
	serve(1, 11 << 20);
	for (g = 3; g < GROUPS; g++)
		serve(g, 1 << 20);
	now_ns += WINDOW_NS;
	ifq_weight_roll(&ifq_weight, &sched, now_ns);
	for (g = 2; g < GROUPS; g++)
		crowd += share_at(g);
	expect_near(crowd / share_at(1), 1);
	close_tree();
}

/* A tenant is idle for one window, then for very many. */
TEST(idle_windows_count_as_no_served_bytes)
{
	const u32 equal[] = { 100, 100 };
	struct ifq_params params = paper;
	u32 i;

	params.damping = 50;
	open_siblings(&params, equal, 2);
	for (i = 0; i < 8; i++)
		run_window((const u64[]){ 1 << 20, 1 << 20 }, 2);
	expect_near(share_at(1) / share_at(2), 1);
	flow_leaves(1);
	run_window((const u64[]){ 0, 1 << 20 }, 2);
	flow_arrives(1);
	/* The log usage is half way from 2^20 to the floor, 2^12. */
	expect_near(share_at(1) / share_at(2), 16);
	flow_leaves(1);
	run_window((const u64[]){ 0, 1 << 20 }, 2);
	now_ns += 1000000 * WINDOW_NS;
	ifq_weight_roll(&ifq_weight, &sched, now_ns);
	flow_arrives(1);
	expect_near(share_at(1) / share_at(2), 1);
	close_tree();
}

/* A tenant of which no window was computed for 300 years of them. */
TEST(very_long_silence_takes_no_time)
{
	const u32 equal[] = { 100, 100 };
	struct ifq_params params = paper;

	params.damping = 50;
	open_siblings(&params, equal, 2);
	run_window((const u64[]){ 1 << 20, 1 << 20 }, 2);
	flow_leaves(1);
	now_ns += 9000000000ULL * WINDOW_NS;
	ifq_weight_roll(&ifq_weight, &sched, now_ns);
	flow_arrives(1);
	expect_near(share_at(1) / share_at(2), 1);
	close_tree();
}

/* Reports show the served bytes of the last window, and 0 for an idle one. */
TEST(last_window_is_kept_for_reports)
{
	const u32 equal[] = { 100, 100 };
	const struct tenant *tenant;

	open_siblings(&paper, equal, 2);
	tenant = &((struct ifq_weight_flow *)flow_own(groups[1].flow))->group;
	run_window((const u64[]){ 5 << 20, 1 << 20 }, 2);
	assert_int_equal(tenant->last_bytes, 5 << 20);
	run_window((const u64[]){ 2 << 20, 1 << 20 }, 2);
	assert_int_equal(tenant->last_bytes, 2 << 20);
	flow_leaves(1);
	run_window((const u64[]){ 0, 1 << 20 }, 2);
	run_window((const u64[]){ 0, 1 << 20 }, 2);
	flow_arrives(1);
	assert_int_equal(tenant->last_bytes, 0);
	close_tree();
}

/*
 * A tick on another CPU ends the window between the moment in which a flow
 * becomes active and its join.  The new tenant starts at the mean of its
 * siblings, and the window counts with no served bytes, as one after the join
 * would.
 */
TEST(window_may_end_before_the_join)
{
	const u32 equal[] = { 100, 100, 100 };
	struct ifq_params params = paper;
	struct flow_start start;
	u32 joined_before;
	double ratio[2];

	params.damping = 50;
	for (joined_before = 0; joined_before < 2; joined_before++) {
		open_siblings(&params, equal, 2);
		run_window((const u64[]){ 1 << 20, 1 << 20 }, 2);
		share_group_init(&groups[3].flow->group, &groups[0].flow->group,
				 100);
		request(3);
		flow_charge(groups[3].flow, 4096, 0, false, &start);
		assert_true(start.woke);
		if (joined_before)
			ifq_weight_join(&ifq_weight, groups[3].flow, now_ns);
		run_window((const u64[]){ 1 << 20, 1 << 20 }, 2);
		if (!joined_before)
			ifq_weight_join(&ifq_weight, groups[3].flow, now_ns);
		ratio[joined_before] = share_at(3) / share_at(1);
		assert_true(ratio[joined_before] > 1);
		close_tree();
	}
	expect_near(ratio[0], ratio[1]);
}

/* The clocks of two CPUs differ a little, so a time may be an older one. */
TEST(join_with_an_older_time_ends_no_window)
{
	struct random r = random_seeded("older");
	u64 window;

	open_tree(&r, &paper);
	flow_arrives(0);
	now_ns += 5 * WINDOW_NS;
	ifq_weight_roll(&ifq_weight, &sched, now_ns);
	window = ifq_weight.window;
	flow_leaves(0);
	now_ns = ifq_weight.start_ns - 1;
	flow_arrives(0);
	assert_int_equal(ifq_weight.window, window);
	close_tree();
}

/* A tenant of weight 100 and the root, which was silent for long. */
static void open_silent_root(void)
{
	const u32 weight[] = { 100 };
	struct ifq_params params = paper;
	u32 i;

	params.damping = 50;
	open_siblings(&params, weight, 1);
	flow_arrives(0);
	flow_leaves(0);
	for (i = 0; i < 8; i++)
		run_window((const u64[]){ 1 << 20 }, 1);
	flow_arrives(0);
	assert_true(share_at(0) > 0.9);
}

static bool adopt(void)
{
	return ifq_weight_adopt(&ifq_weight, groups[0].flow);
}

/* The root's scale is 1 in a window in which it adopts, and in the next one. */
TEST(root_that_adopts_has_no_scale)
{
	u32 i;

	open_silent_root();
	assert_true(adopt());
	expect_near(share_at(0), 0.5);
	assert_false(adopt());
	for (i = 0; i < 4; i++) {
		run_window((const u64[]){ 1 << 20 }, 1);
		expect_near(share_at(0), 0.5);
		assert_false(adopt());
	}
	run_window((const u64[]){ 1 << 20 }, 1);
	expect_near(share_at(0), 0.5);
	run_window((const u64[]){ 1 << 20 }, 1);
	assert_true(share_at(0) > 0.9);
	close_tree();
}

/* However long an adopted request waits. */
TEST(root_has_no_scale_while_it_has_adopted_requests)
{
	struct io io = { 0 };
	u32 i;

	open_silent_root();
	queue.adopted = &io;
	assert_true(adopt());
	for (i = 0; i < 4; i++) {
		run_window((const u64[]){ 1 << 20 }, 1);
		expect_near(share_at(0), 0.5);
	}
	queue.adopted = NULL;
	run_window((const u64[]){ 1 << 20 }, 1);
	expect_near(share_at(0), 0.5);
	run_window((const u64[]){ 1 << 20 }, 1);
	assert_true(share_at(0) > 0.9);
	close_tree();
}

/* Also if it gets active by adopting, or was idle for a part of a window. */
TEST(root_that_returns_and_adopts_has_no_scale)
{
	open_silent_root();
	assert_true(adopt());
	flow_leaves(0);
	flow_arrives(0);
	expect_near(share_at(0), 0.5);
	close_tree();
}
