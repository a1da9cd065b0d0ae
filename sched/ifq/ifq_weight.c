// SPDX-License-Identifier: GPL-2.0
#include "ifq_weight.h"
#include "logarithm.h"

enum {
	PERCENT		= 100,
};

static struct ifq_weight_flow *weight_flow_of(struct share_group *g)
{
	return flow_own(container_of(g, struct flow, group));
}

static u64 window_ns(const struct sched *s)
{
	return READ_ONCE(ifq_params(&s->params)->window_ms) * 1000000ULL;
}

void ifq_weight_init(struct ifq_weight *e)
{
	*e = (struct ifq_weight){ .window = 1 };
}

u64 ifq_weight_end_ns(const struct ifq_weight *e, const struct sched *s)
{
	return READ_ONCE(e->start_ns) + window_ns(s);
}

/* ------------------------------------------------------------ served bytes */

static void tenant_add_bytes(struct tenant *t, u64 bytes)
{
	WRITE_ONCE(t->served_bytes, t->served_bytes + bytes);
}

static void flow_account(struct flow *f)
{
	struct ifq_weight_flow *own = flow_own(f);
	struct flow_totals totals;
	struct share_group *g;
	u64 bytes;

	flow_totals(f, &totals);
	bytes = totals.cost - own->counted_bytes;
	if (!bytes)
		return;
	own->counted_bytes = totals.cost;
	tenant_add_bytes(&own->own, bytes);
	for (g = &f->group; g; g = g->parent)
		tenant_add_bytes(&weight_flow_of(g)->group, bytes);
}

void ifq_weight_account(struct sched *s)
{
	struct flow_walk w;
	struct flow *f;

	for_each_active_flow(f, &w, s)
		flow_account(f);
}

/* --------------------------------------------------------------- log usages */

/* The logarithm of @served_bytes, as they count for a tenant of @weight. */
static u32 log_usage_of(const struct sched *s, u64 served_bytes, u32 weight)
{
	u64 least = max(READ_ONCE(ifq_params(&s->params)->floor), 1U);

	served_bytes = div64_u64(served_bytes * WEIGHT_DEFAULT, weight);
	return log2_fixed(max(served_bytes, least));
}

/* Brings @log_usage nearer to @goal: `damping` is the part of the way. */
static u32 log_usage_towards(const struct sched *s, u32 log_usage, u32 goal)
{
	u32 retain = PERCENT - READ_ONCE(ifq_params(&s->params)->damping);

	/* The product fits: it is at most 64 * LOG_ONE * 100. */
	if (log_usage > goal)
		return goal + (log_usage - goal) * retain / PERCENT;
	return goal - (goal - log_usage) * retain / PERCENT;
}

/* Brings a tenant from its last computed window to @window. */
static void tenant_step(struct tenant *t, const struct sched *s, u64 window,
			u32 weight)
{
	u64 idle = window - t->window - 1;
	u32 floor = log_usage_of(s, 0, weight), log_usage;

	t->log_usage =
		log_usage_towards(s, t->log_usage,
				  log_usage_of(s, t->served_bytes, weight));
	for (; idle; idle--) {
		log_usage = log_usage_towards(s, t->log_usage, floor);
		if (log_usage == t->log_usage)
			break;
		t->log_usage = log_usage;
	}
	WRITE_ONCE(t->last_bytes,
		   t->window + 1 == window ? t->served_bytes : 0);
	WRITE_ONCE(t->served_bytes, 0);
	t->window = window;
}

static void tenant_start(struct tenant *t, const struct family *family,
			 const struct sched *s, u64 window, u32 weight)
{
	t->log_usage = family->nr ? (u32)div64_u64(family->sum, family->nr) :
				    log_usage_of(s, 0, weight);
	t->window = window;
}

static u32 clamp_log(const struct sched *s)
{
	return log2_fixed(READ_ONCE(ifq_params(&s->params)->clamp));
}

/* The scale of a tenant with @log_usage in @family. */
static u32 scale_of(const struct sched *s, const struct family *family,
		    u32 log_usage)
{
	u32 highest = family->nr ? family->highest : log_usage;

	if (log_usage >= highest)
		return SCALE_ONE;
	return (u32)exp2_fixed(min(highest - log_usage, clamp_log(s)));
}

static_assert((u32)SCALE_ONE == (u32)LOG_ONE, "exp2_fixed() gives a scale");

/* ------------------------------------------------------------- a window ends */

static void family_add(struct family *family, u64 window, u32 log_usage)
{
	if (family->window != window)
		*family = (struct family){ .window = window };
	family->sum += log_usage;
	family->nr++;
	family->highest = max(family->highest, log_usage);
}

/*
 * Brings a tenant to @window.  A loop over flows meets a tenant once for each
 * flow below it; only the first time counts.  One without a window has come since
 * flow_start_tenants(), and joins by itself.
 */
static void tenant_close(struct tenant *t, struct family *family,
			 const struct sched *s, u64 window, u32 weight)
{
	if (!t->window || t->window == window)
		return;
	tenant_step(t, s, window, weight);
	family_add(family, window, t->log_usage);
}

/*
 * Bounds the log usage from below, when the highest of the family is known.  A
 * tenant saves up no more than the greatest scale is worth.
 */
static void tenant_clamp(struct tenant *t, const struct family *family,
			 const struct sched *s)
{
	u32 most = clamp_log(s);

	if (family->highest > t->log_usage + most)
		t->log_usage = family->highest - most;
}

/* New tenants start at the mean of their siblings, before these are counted anew. */
static void flow_start_tenants(struct flow *f, u64 window)
{
	struct sched *s = f->sched;
	struct ifq_weight_flow *i = flow_own(f);
	struct share_group *g;

	if (!i->own.window)
		tenant_start(&i->own, &i->family, s, window, WEIGHT_DEFAULT);
	for (g = &f->group; g->parent; g = g->parent)
		if (!weight_flow_of(g)->group.window)
			tenant_start(&weight_flow_of(g)->group,
				     &weight_flow_of(g->parent)->family, s,
				     window, share_group_weight(g));
}

static void flow_close(struct flow *f, u64 window)
{
	struct sched *s = f->sched;
	struct ifq_weight_flow *i = flow_own(f);
	struct share_group *g;

	tenant_close(&i->own, &i->family, s, window, WEIGHT_DEFAULT);
	for (g = &f->group; g->parent; g = g->parent)
		tenant_close(&weight_flow_of(g)->group,
			     &weight_flow_of(g->parent)->family, s, window,
			     share_group_weight(g));
}

/*
 * The scale of the cgroup's own processes.  It is 1 for the root while that
 * adopts.
 */
static u32 own_scale_of(const struct ifq_weight *e, const struct flow *f)
{
	const struct ifq_weight_flow *i = flow_own(f);

	if (!f->group.parent && e->adopted && e->adopted + 1 >= e->window)
		return SCALE_ONE;
	return scale_of(f->sched, &i->family, i->own.log_usage);
}

static void flow_scale(const struct ifq_weight *e, struct flow *f)
{
	struct sched *s = f->sched;
	struct ifq_weight_flow *i = flow_own(f);
	struct share_group *g;

	tenant_clamp(&i->own, &i->family, s);
	share_scale_own(&s->share, &f->group, own_scale_of(e, f));
	for (g = &f->group; g->parent; g = g->parent) {
		struct tenant *t = &weight_flow_of(g)->group;
		const struct family *family =
			&weight_flow_of(g->parent)->family;

		tenant_clamp(t, family, s);
		share_scale(&s->share, g, scale_of(s, family, t->log_usage));
	}
}

/* Counts the windows that ended until @now. */
static void end_windows(struct ifq_weight *e, const struct sched *s, u64 now)
{
	u64 ended;

	if (now < ifq_weight_end_ns(e, s))
		return;
	ended = div64_u64(now - e->start_ns, window_ns(s));
	WRITE_ONCE(e->window, e->window + ended);
	WRITE_ONCE(e->start_ns, e->start_ns + ended * window_ns(s));
}

/* Has the root an adopted io in any queue?  A snapshot. */
static bool any_adopted(const struct sched *s)
{
	u32 i;

	for (i = 0; i < s->nr_queues; i++)
		if (READ_ONCE(s->queue[i]->adopted))
			return true;
	return false;
}

/*
 * The scales follow from the highest log usage of a family, which is known once all
 * its tenants were visited.  A tenant that joins meanwhile has a scale from those
 * that were, until the second walk visits it or the window ends.
 */
void ifq_weight_roll(struct ifq_weight *e, struct sched *s, u64 now)
{
	bool adopted = any_adopted(s);
	unsigned long flags;
	struct flow_walk w;
	struct flow *f;

	ifq_weight_account(s);
	flags = port_lock(&s->active_lock);
	end_windows(e, s, now);
	if (adopted)
		WRITE_ONCE(e->adopted, e->window);
	port_unlock(&s->active_lock, flags);
	for_each_active_flow(f, &w, s)
		flow_start_tenants(f, e->window - 1);
	for_each_active_flow(f, &w, s)
		flow_close(f, e->window);
	for_each_active_flow(f, &w, s)
		flow_scale(e, f);
	share_scaled(&s->share);
}

/* -------------------------------------------------------------- coming back */

/*
 * Brings a returning tenant to @window and returns its scale.  Its siblings
 * count as they were at the end of the last window.
 */
static u32 tenant_join(struct tenant *t, const struct family *family,
		       const struct sched *s, u64 window, u32 weight)
{
	if (!t->window)
		tenant_start(t, family, s, window, weight);
	else if (t->window < window)
		tenant_step(t, s, window, weight);
	return scale_of(s, family, t->log_usage);
}

static void join(struct ifq_weight *e, struct flow *f)
{
	struct sched *s = f->sched;
	struct ifq_weight_flow *i = flow_own(f);
	struct share_group *g;

	tenant_join(&i->own, &i->family, s, e->window, WEIGHT_DEFAULT);
	share_scale_own(&s->share, &f->group, own_scale_of(e, f));
	for (g = &f->group; g->parent; g = g->parent)
		share_scale(&s->share, g,
			    tenant_join(&weight_flow_of(g)->group,
					&weight_flow_of(g->parent)->family, s,
					e->window, share_group_weight(g)));
	share_scaled(&s->share);
}

void ifq_weight_join(struct ifq_weight *e, struct flow *f, u64 now)
{
	struct sched *s = f->sched;
	unsigned long flags = port_lock(&s->active_lock);

	/* No flow was active, so no tick has ended the windows that went by. */
	if (s->active == f && !f->next_active)
		end_windows(e, s, now);
	join(e, f);
	port_unlock(&s->active_lock, flags);
}

bool ifq_weight_adopt(struct ifq_weight *e, struct flow *root)
{
	struct sched *s = root->sched;
	unsigned long flags;
	bool changes;

	if (likely(READ_ONCE(e->adopted) == READ_ONCE(e->window)))
		return false;
	flags = port_lock(&s->active_lock);
	WRITE_ONCE(e->adopted, e->window);
	changes = root->group.own_scale != SCALE_ONE;
	if (changes) {
		share_scale_own(&s->share, &root->group, SCALE_ONE);
		share_scaled(&s->share);
	}
	port_unlock(&s->active_lock, flags);
	return changes;
}
