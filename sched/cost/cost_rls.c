// SPDX-License-Identifier: GPL-2.0
#include "cost_rls.h"
#include "core/rate.h"

/*
 * Fixed point.  Regressors and residuals have 24 bits of fraction, products
 * of two of them have 40, coefficients have 32, and ratios inside the solution
 * have 30.  With regressors below 2^6 and a memory of 2^8 samples R stays below
 * 2^61.
 */
enum {
	X_SHIFT		= 24,
	R_SHIFT		= 40,
	PHI_SHIFT	= 32,
	L_SHIFT		= 30,
	PRODUCT_SHIFT	= 2 * X_SHIFT - R_SHIFT,
	UNIT_SHIFT	= 8,		/* unit: 2^-8 ns */

	X_MOST_SHIFT	= 6,
	/* No sample counts for more than eight times its predicted time. */
	RESIDUAL_MOST	= 8,
	/*
	 * The weight of the equations by request kind.  If a drive changes and
	 * the mix does not, they outweigh the old mixes after
	 * MEMORY * ln(2^KIND_WEIGHT_SHIFT), 11 s.  A heavier weight is faster.
	 */
	KIND_WEIGHT_SHIFT	= 12,
	DAMP_SHIFT	= 12,

	SECTORS_PER_UNIT = 8,		/* in COST_UNIT */
	WRITE_COST_MOST	= 32,		/* in reads, both of 4 KiB */
	TERMS_PER_OP	= 2,
};

#define PHI_ONE		(1LL << PHI_SHIFT)
#define PHI_MOST	(PHI_ONE << 15)
/* This bound keeps all sums of a sample in range, whatever they are. */
#define NS_MOST		(1ULL << 44)

static u32 op_of(u32 kind)
{
	return kind / COST_RLS_SIZE_CLASSES;
}

/* The first of a kind's two terms, which are base and size. */
static u32 first_term(u32 kind)
{
	return op_of(kind) * TERMS_PER_OP;
}

static bool is_sector(u32 term)
{
	return term != READ_REQUEST && term != WRITE_REQUEST;
}

static u32 terms_of(u32 op)
{
	return ((1U << TERMS_PER_OP) - 1) << (op * TERMS_PER_OP);
}

/* -------------------------------------------------------- signed arithmetic */

static u64 magnitude(s64 a)
{
	return a < 0 ? 0 - (u64)a : (u64)a;
}

static s64 with_sign(u64 a, bool negative)
{
	return negative ? -(s64)a : (s64)a;
}

static s64 mul_shr(s64 a, s64 b, u32 shift)
{
	return with_sign(mul_u64_u64_shr(magnitude(a), magnitude(b), shift),
			 (a < 0) != (b < 0));
}

/* a * 2^shift / b, for b > 0; the result is at most 2^62. */
static s64 ratio(s64 a, s64 b, u32 shift)
{
	u64 most = 1ULL << 62, m = magnitude(a);

	if (m >> (62 - shift) >= (u64)b)
		return with_sign(most, a < 0);
	return with_sign(mul_u64_u64_div_u64(m, 1ULL << shift, (u64)b), a < 0);
}

/* ------------------------------------------------------------ the equations */

/* The factors of R in R d = g, restricted to the terms in `term`. */
struct system {
	u32 n;
	u32 term[COST_RLS_TERMS];
	s64 l[COST_RLS_TERMS][COST_RLS_TERMS];
	s64 d[COST_RLS_TERMS];
};

/* R = L D L', restricted to the terms in @mask. */
static void factor(struct system *s, const struct cost_rls *g, u32 mask)
{
	s64 u[COST_RLS_TERMS];
	u32 i, j, k;

	s->n = 0;
	for (i = 0; i < COST_RLS_TERMS; i++)
		if (mask & (1U << i))
			s->term[s->n++] = i;
	for (i = 0; i < s->n; i++) {
		s64 diagonal = g->r[s->term[i]][s->term[i]];

		diagonal += (diagonal >> DAMP_SHIFT) + 1;
		s->d[i] = diagonal;
		for (j = 0; j < i; j++) {
			u[j] = g->r[s->term[i]][s->term[j]];
			for (k = 0; k < j; k++)
				u[j] -= mul_shr(u[k], s->l[j][k], L_SHIFT);
			s->l[i][j] = ratio(u[j], s->d[j], L_SHIFT);
			s->d[i] -= mul_shr(u[j], s->l[i][j], L_SHIFT);
		}
		/* Only rounding can make it smaller than the damping. */
		s->d[i] = max(s->d[i], (diagonal >> (DAMP_SHIFT + 1)) + 1);
	}
}

/* Solves for @d, by term, with the right side @b. */
static void solve(const struct system *s, const s64 *b, s64 *d)
{
	s64 y[COST_RLS_TERMS];
	u32 i, k;

	for (i = 0; i < s->n; i++) {
		y[i] = b[s->term[i]];
		for (k = 0; k < i; k++)
			y[i] -= mul_shr(s->l[i][k], y[k], L_SHIFT);
	}
	for (i = s->n; i--;) {
		s64 x = ratio(y[i], s->d[i], PHI_SHIFT);

		for (k = i + 1; k < s->n; k++)
			x -= mul_shr(s->l[k][i], d[s->term[k]], L_SHIFT);
		d[s->term[i]] = clamp(x, -PHI_MOST, PHI_MOST);
	}
}

/* ----------------------------------------------------------------- a sample */

/* A sample in normal form, with the right side g of its R d = g. */
struct sample {
	u64 norm;			/* predicted time, 2^-8 ns */
	s64 g[COST_RLS_TERMS];
	s64 residual;
	u32 mask;			/* terms of the operations in it */
};

static u64 device_time(const struct cost_rls_sums *k)
{
	return min(k->ns, NS_MOST) << UNIT_SHIFT;
}

/* The time of @count requests or sectors if phi is 1, in units of 2^-8 ns. */
static u64 unscaled(const struct cost_rls *g, u64 count, u32 per)
{
	u64 most = NS_MOST << (UNIT_SHIFT + X_MOST_SHIFT);

	if (count > div64_u64(most, per * g->unit))
		return most;
	return count * per * g->unit;
}

static u64 unscaled_term(const struct cost_rls *g,
			 const struct cost_rls_sums *k, u32 term)
{
	return is_sector(term) ? unscaled(g, k->sectors, 1) :
				 unscaled(g, k->requests, SECTORS_PER_UNIT);
}

static u64 predicted_part(const struct cost_rls *g, u64 unscaled, u32 term)
{
	return min(mul_u64_u64_shr(unscaled, (u64)g->phi[term], PHI_SHIFT),
		   NS_MOST << UNIT_SHIFT);
}

static u64 predicted_time(const struct cost_rls *g,
			  const struct cost_rls_sums *sums)
{
	u64 sum, all = 0;
	u32 kind, i;

	sum = predicted_part(g, unscaled(g, g->written_before, 1),
			     WRITTEN_SECTOR);
	for (kind = 0; kind < COST_RLS_KINDS; kind++) {
		all += device_time(&sums[kind]);
		for (i = first_term(kind); i <= first_term(kind) + 1; i++)
			sum += predicted_part(g,
					      unscaled_term(g, &sums[kind], i),
					      i);
	}
	/* The cost of an operation may have been 0 so far. */
	return max(sum, all / RESIDUAL_MOST + 1);
}

static s64 regressor(const struct sample *w, u64 unscaled)
{
	return ratio((s64)min(unscaled, w->norm << X_MOST_SHIFT), (s64)w->norm,
		     X_SHIFT);
}

/* The part of @kind in the regressors of the sample. */
static void regressors(const struct cost_rls *g, const struct sample *w,
		       const struct cost_rls_sums *k, u32 kind, s64 *x)
{
	u32 i;

	for (i = first_term(kind); i <= first_term(kind) + 1; i++)
		x[i] = regressor(w, unscaled_term(g, k, i));
}

/* The excess over the predicted time of @kind, as a part of the sample. */
static s64 kind_residual(const struct cost_rls *g, const struct sample *w,
			 const struct cost_rls_sums *k, u32 kind, const s64 *x)
{
	u32 i = first_term(kind);
	u64 ns = min(device_time(k), w->norm * RESIDUAL_MOST);

	return ratio((s64)ns, (s64)w->norm, X_SHIFT) -
	       mul_shr(x[i], g->phi[i], PHI_SHIFT) -
	       mul_shr(x[i + 1], g->phi[i + 1], PHI_SHIFT);
}

/* Adds one equation, with 2^-@weight_shift of the weight. */
static void add_equation(struct cost_rls *g, struct sample *w, const s64 *x,
			 s64 residual, u32 weight_shift)
{
	u32 i, j;

	for (i = 0; i < COST_RLS_TERMS; i++) {
		w->g[i] +=
			mul_shr(x[i], residual, PRODUCT_SHIFT + weight_shift);
		for (j = 0; j < COST_RLS_TERMS; j++)
			g->r[i][j] += mul_shr(x[i], x[j],
					      PRODUCT_SHIFT + weight_shift);
	}
}

/*
 * Fades R for the terms in @mask.  Entries without such a term do not fade;
 * entries with one such term and one other fade half as fast.
 */
static void forget(struct cost_rls *g, u32 mask)
{
	u32 i, j;

	for (i = 0; i < COST_RLS_TERMS; i++)
		for (j = 0; j < COST_RLS_TERMS; j++) {
			u32 present = ((mask >> i) & 1) + ((mask >> j) & 1);
			s64 part = g->r[i][j] >> (COST_RLS_MEMORY_SHIFT + 1);

			g->r[i][j] -= part * present;
		}
}

/* Adds the kinds from @from to @to to @x and to the residual. */
static s64 kinds_add(struct sample *w, struct cost_rls *g,
		     const struct cost_rls_sums *sums, u32 from, u32 to, s64 *x)
{
	s64 all = 0;
	u32 kind, i;

	for (kind = from; kind < to; kind++) {
		s64 own[COST_RLS_TERMS] = { 0 }, residual;

		if (!sums[kind].requests)
			continue;
		regressors(g, w, &sums[kind], kind, own);
		residual = kind_residual(g, w, &sums[kind], kind, own);
		if (!g->exact_time)
			add_equation(g, w, own, residual, KIND_WEIGHT_SHIFT);
		all += residual;
		for (i = 0; i < COST_RLS_TERMS; i++)
			x[i] += own[i];
	}
	w->residual += all;
	return all;
}

/* With exact time each operation has an equation of its own. */
static void ops_add(struct sample *w, struct cost_rls *g,
		    const struct cost_rls_sums *sums)
{
	u32 op;

	for (op = 0; op < COST_RLS_OPS; op++) {
		s64 x[COST_RLS_TERMS] = { 0 }, residual;

		residual = kinds_add(w, g, sums, op * COST_RLS_SIZE_CLASSES,
				     (op + 1) * COST_RLS_SIZE_CLASSES, x);
		add_equation(g, w, x, residual, 0);
	}
}

static void mix_add(struct sample *w, struct cost_rls *g,
		    const struct cost_rls_sums *sums)
{
	s64 x[COST_RLS_TERMS] = { 0 };

	kinds_add(w, g, sums, 0, COST_RLS_KINDS, x);
	x[WRITTEN_SECTOR] = regressor(w, unscaled(g, g->written_before, 1));
	w->residual -=
		mul_shr(x[WRITTEN_SECTOR], g->phi[WRITTEN_SECTOR], PHI_SHIFT);
	add_equation(g, w, x, w->residual, 0);
}

static void sample_add(struct sample *w, struct cost_rls *g,
		       const struct cost_rls_sums *sums)
{
	u32 kind;

	*w = (struct sample){ .norm = predicted_time(g, sums) };
	if (g->written_before)
		w->mask = 1U << WRITTEN_SECTOR;
	for (kind = 0; kind < COST_RLS_KINDS; kind++)
		if (sums[kind].requests)
			w->mask |= terms_of(op_of(kind));
	forget(g, w->mask);
	if (g->exact_time)
		ops_add(w, g, sums);
	else
		mix_add(w, g, sums);
}

/* The last sample counts one half, the one before a quarter, and so on. */
static void remember_written(struct cost_rls *g,
			     const struct cost_rls_sums *sums)
{
	u32 first = IO_WRITE * COST_RLS_SIZE_CLASSES, i;
	u64 sectors = 0;

	for (i = first; i < first + COST_RLS_SIZE_CLASSES; i++)
		sectors += sums[i].sectors;
	g->written_before = (g->written_before + sectors) / 2;
}

/* A term that the step would make negative, or COST_RLS_TERMS. */
static u32 first_negative(const struct cost_rls *g, const s64 *d, u32 mask)
{
	u32 i;

	for (i = 0; i < COST_RLS_TERMS; i++)
		if ((mask & (1U << i)) && g->phi[i] + d[i] < 0)
			break;
	return i;
}

/* Least squares under the condition that no coefficient is negative. */
static void update(struct cost_rls *g, struct sample *w)
{
	s64 d[COST_RLS_TERMS] = { 0 };
	u32 free_terms = w->mask, i, j;
	struct system s;

	for (;;) {
		factor(&s, g, free_terms);
		solve(&s, w->g, d);
		i = first_negative(g, d, free_terms);
		if (i == COST_RLS_TERMS)
			break;
		free_terms &= ~(1U << i);
		d[i] = -g->phi[i];
		for (j = 0; j < COST_RLS_TERMS; j++)
			w->g[j] -= mul_shr(g->r[j][i], d[i], PHI_SHIFT);
	}
	for (i = 0; i < COST_RLS_TERMS; i++)
		WRITE_ONCE(g->phi[i], min(g->phi[i] + d[i], PHI_MOST));
}

/* ----------------------------------------------------------------- confidence */

static u32 seen_terms(const struct cost_rls *g)
{
	u32 mask = 0, i;

	for (i = 0; i < COST_RLS_OPS; i++)
		if (g->seen & (1U << i))
			mask |= terms_of(i);
	if (g->seen & (1U << IO_WRITE))
		mask |= 1U << WRITTEN_SECTOR;
	return mask;
}

static void learn_variance(struct cost_rls *g, s64 residual)
{
	s64 square = mul_shr(residual, residual, PRODUCT_SHIFT);
	s64 known = (s64)g->variance;
	u32 i, shift = 0;

	/* The variance is a plain mean while there are few samples. */
	for (i = 1; i < COST_RLS_MEMORY_SHIFT && g->samples >> i; i++)
		shift = i;
	g->variance = (u64)(known + ((square - known) >> shift));
}

/* Standard errors: sqrt(variance * diagonal of the inverse of R). */
static void learn_errors(struct cost_rls *g)
{
	u32 mask = seen_terms(g), i;
	s64 d[COST_RLS_TERMS];
	struct system s;

	factor(&s, g, mask);
	for (i = 0; i < COST_RLS_TERMS; i++) {
		s64 one[COST_RLS_TERMS] = { 0 };
		u64 square;

		if (!(mask & (1U << i)))
			continue;
		one[i] = 1LL << R_SHIFT;
		solve(&s, one, d);
		square = mul_u64_u64_shr(g->variance, (u64)max(d[i], 0LL),
					 R_SHIFT);
		square = min(square, (1ULL << (PHI_SHIFT + 15)) - 1);
		WRITE_ONCE(g->error[i], square_root(square << (PHI_SHIFT / 2))
						<< (PHI_SHIFT / 4));
	}
}

/* ---------------------------------------------------------------- interface */

/* Begins with a cost by bytes that explains the first sample. */
static bool first_sample(struct cost_rls *g, const struct cost_rls_sums *sums)
{
	u64 sectors = 0, ns = 0;
	u32 kind;

	for (kind = 0; kind < COST_RLS_KINDS; kind++) {
		sectors += sums[kind].sectors;
		ns += device_time(&sums[kind]);
	}
	if (!sectors)
		return false;
	/* The unit is between 2^-8 ns and 2^33 ns, which is 8.6 s. */
	WRITE_ONCE(g->unit, clamp(div64_u64(ns, sectors), 1ULL, NS_MOST >> 3));
	g->phi[READ_SECTOR] = PHI_ONE;
	g->phi[WRITE_SECTOR] = PHI_ONE;
	return true;
}

bool cost_rls_add(struct cost_rls *g, const struct cost_rls_sums *sums)
{
	u64 requests = 0;
	struct sample w;
	u32 kind;

	for (kind = 0; kind < COST_RLS_KINDS; kind++)
		requests += sums[kind].requests;
	if (requests < COST_RLS_SAMPLE_LEAST)
		return false;
	if (!g->unit && !first_sample(g, sums))
		return false;
	sample_add(&w, g, sums);
	for (kind = 0; kind < COST_RLS_KINDS; kind++)
		if (sums[kind].requests)
			WRITE_ONCE(g->seen, g->seen | 1U << op_of(kind));
	update(g, &w);
	WRITE_ONCE(g->samples, g->samples + 1);
	if (!g->exact_time)
		remember_written(g, sums);
	learn_variance(g, w.residual);
	learn_errors(g);
	return true;
}

static u64 to_ps(const struct cost_rls *g, u32 term, u64 phi)
{
	u64 per = is_sector(term) ? 1 : SECTORS_PER_UNIT;
	u64 ps = mul_u64_u64_shr(READ_ONCE(g->unit) * per, phi, PHI_SHIFT);

	return mul_u64_u32_shr(ps, 1000, UNIT_SHIFT);
}

u64 cost_rls_cost_ps(const struct cost_rls *g, enum cost_rls_term term)
{
	return to_ps(g, term, (u64)READ_ONCE(g->phi[term]));
}

u64 cost_rls_error_ps(const struct cost_rls *g, enum cost_rls_term term)
{
	return to_ps(g, term, READ_ONCE(g->error[term]));
}

static u32 to_cost(s64 phi, s64 per_unit)
{
	return (u32)min(ratio(phi, per_unit, 0), (s64)COST_MOST);
}

/* The coefficients of the cost line of @op. */
static void op_coefficients(const struct cost_rls *g, u32 op, s64 *request,
			    s64 *sector)
{
	/* An operation that was never met costs as much as the other. */
	if (!(g->seen & (1U << op)))
		op = !op;
	*request = g->phi[op * TERMS_PER_OP];
	*sector = g->phi[op * TERMS_PER_OP + 1];
	if (op == IO_WRITE)
		*sector += g->phi[WRITTEN_SECTOR];
}

void cost_rls_lines(const struct cost_rls *g,
		    struct cost_line line[COST_RLS_OPS])
{
	s64 request, sector, per_unit;
	u32 i;

	for (i = 0; i < COST_RLS_OPS && !g->unit; i++)
		line[i] = (struct cost_line){ .per_kib = 1024 };
	if (!g->unit)
		return;
	op_coefficients(g, IO_WRITE, &request, &sector);
	per_unit = (request + sector) / WRITE_COST_MOST;
	op_coefficients(g, IO_READ, &request, &sector);
	per_unit = max(per_unit, request + sector);
	/* A read of 4 KiB may not cost 0: other costs are relative to it. */
	per_unit = max(per_unit, PHI_ONE >> 10);
	for (i = 0; i < COST_RLS_OPS; i++) {
		op_coefficients(g, i, &request, &sector);
		line[i] = (struct cost_line){
			.base = to_cost(request * COST_UNIT, per_unit),
			.per_kib = to_cost(sector * 1024, per_unit),
		};
	}
}
