// SPDX-License-Identifier: GPL-2.0
/* The model has double precision; other tests compare with the true costs. */
#include "unit.h"
#include <math.h>
#include "sched/cost/cost_rls.h"

enum {
	T	= COST_RLS_TERMS,
	SAMPLES	= 2000,
};

/* ------------------------------------------------------------------- model */

/* Damped recursive least squares as in the header, without limits. */
struct model {
	double r[T][T], phi[T], unit, written;
};

static void model_solve(double a[T][T], double *b, const bool *open, double *d)
{
	u32 i, j, k;

	for (i = 0; i < T; i++)
		if (!open[i])
			for (j = 0, b[i] = 0; j < T; j++)
				a[i][j] = a[j][i] = i == j;
	for (k = 0; k < T; k++)
		for (i = k + 1; i < T; i++) {
			double f = a[i][k] / a[k][k];

			for (j = k; j < T; j++)
				a[i][j] -= f * a[k][j];
			b[i] -= f * b[k];
		}
	for (i = T; i--;) {
		d[i] = b[i];
		for (j = i + 1; j < T; j++)
			d[i] -= a[i][j] * d[j];
		d[i] /= a[i][i];
	}
}

static void model_equation(struct model *t, double *g, const double *x,
			   double residual, double weight)
{
	u32 i, j;

	for (i = 0; i < T; i++)
		for (j = 0, g[i] += weight * x[i] * residual; j < T; j++)
			t->r[i][j] += weight * x[i] * x[j];
}

static void model_step(struct model *t, double *g, bool *open)
{
	double a[T][T], b[T], d[T], fixed[T] = { 0 };
	u32 i, j;

	for (;;) {
		for (i = 0; i < T; i++) {
			for (j = 0, b[i] = g[i]; j < T; j++) {
				a[i][j] = t->r[i][j] *
					  (i == j ? 1 + 1.0 / 4096 : 1);
				b[i] -= t->r[i][j] * fixed[j];
			}
			a[i][i] += 1e-12;
		}
		model_solve(a, b, open, d);
		for (i = 0; i < T && !(open[i] && t->phi[i] + d[i] < 0); i++)
			;
		if (i == T)
			break;
		open[i] = false;
		fixed[i] = -t->phi[i];
	}
	for (i = 0; i < T; i++)
		t->phi[i] += open[i] ? d[i] : fixed[i];
}

static void model_add(struct model *t, const struct cost_rls_sums *s)
{
	double raw[5][T] = { { 0 } }, x[T] = { 0 }, g[T] = { 0 };
	double norm = 0, ns = 0, sectors = 0, residual = 0;
	bool present[T] = { false };
	u32 i, j, k;

	for (k = 0; k < 4; k++) {
		ns += (double)s[k].ns;
		sectors += (double)s[k].sectors;
		present[k / 2 * 2] |= s[k].requests != 0;
		present[k / 2 * 2 + 1] = present[k / 2 * 2];
	}
	if (t->unit == 0) {
		t->unit = ns / sectors;
		t->phi[READ_SECTOR] = t->phi[WRITE_SECTOR] = 1;
	}
	/* The fifth term is the only one without a kind. */
	raw[4][WRITTEN_SECTOR] = t->unit * t->written;
	present[WRITTEN_SECTOR] = t->written > 0;
	for (k = 0; k < 4; k++) {
		raw[k][k / 2 * 2] = 8 * t->unit * (double)s[k].requests;
		raw[k][k / 2 * 2 + 1] = t->unit * (double)s[k].sectors;
	}
	for (k = 0; k < 5; k++)
		for (i = 0; i < T; i++)
			norm += raw[k][i] * t->phi[i];
	norm = fmax(norm, ns / 8);
	for (i = 0; i < T; i++)
		for (j = 0; j < T; j++)
			t->r[i][j] *= 1 - (present[i] + present[j]) / 256.0;
	for (k = 0; k < 5; k++) {
		double own[T],
			left = k < 4 ? fmin((double)s[k].ns / norm, 8) : 0;

		for (i = 0; i < T; i++) {
			own[i] = raw[k][i] / norm;
			x[i] += own[i];
			left -= own[i] * t->phi[i];
		}
		if (k < 4)
			model_equation(t, g, own, left, 1.0 / 4096);
		residual += left;
	}
	model_equation(t, g, x, residual, 1);
	model_step(t, g, present);
	t->written =
		floor((t->written + (double)(s[2].sectors + s[3].sectors)) / 2);
}

static double model_ns(const struct model *t, u32 op, u32 sectors)
{
	double sector = t->phi[2 * op + 1];

	if (op == IO_WRITE)
		sector += t->phi[WRITTEN_SECTOR];
	return (8 * t->phi[2 * op] + sectors * sector) * t->unit;
}

/* ------------------------------------------------------------------- drives */

/* Time at the device in ns, base and per sector, of reads and writes. */
struct drive {
	double base[2], sector[2];
	double noise;		/* of a sample */
	bool shared;		/* all requests wait equally long */
};

struct mix {
	u32 reads, writes;	/* at most, in a sample */
	u32 sectors_least, sectors_most;
	bool constant;		/* always exactly these numbers */
};

static u32 count(struct random *r, const struct mix *m, u32 most)
{
	return m->constant || !most ? most : 1 + random_below(r, most);
}

static void add_request(const struct drive *d, u32 op, u64 sectors,
			struct cost_rls_sums *s)
{
	struct cost_rls_sums *k = &s[cost_rls_kind(op, (u32)sectors * 512)];

	k->requests++;
	k->sectors += sectors;
	k->ns += (u64)(d->base[op] + (double)sectors * d->sector[op]);
}

/* Makes all requests of the sample wait equally long. */
static void share_time(struct cost_rls_sums *s)
{
	u64 requests = 0, ns = 0;
	u32 k;

	for (k = 0; k < 4; k++) {
		requests += s[k].requests;
		ns += s[k].ns;
	}
	for (k = 0; k < 4; k++)
		s[k].ns = ns * s[k].requests / requests;
}

static void draw_sample(struct random *r, const struct drive *d,
			const struct mix *m, struct cost_rls_sums *s)
{
	u32 n[2] = { count(r, m, m->reads), count(r, m, m->writes) }, i, k;
	u32 nr_sizes = m->sectors_most - m->sectors_least + 1;

	memset(s, 0, 4 * sizeof(*s));
	for (i = 0; i < 2; i++) {
		double noise =
			1 + d->noise * (random_below(r, 2001) / 1000.0 - 1);

		for (k = 0; k < n[i]; k++)
			add_request(d, i,
				    m->sectors_least +
					    random_below(r, nr_sizes),
				    s);
		for (k = 2 * i; k < 2 * i + 2; k++)
			s[k].ns = (u64)((double)s[k].ns * noise);
	}
	if (d->shared)
		share_time(s);
}

static double cost_ns(const struct cost_rls *g, u32 op, u32 sectors)
{
	u64 sector_ps = cost_rls_cost_ps(g, 2 * op + 1);

	if (op == IO_WRITE)
		sector_ps += cost_rls_cost_ps(g, WRITTEN_SECTOR);
	return (double)(cost_rls_cost_ps(g, 2 * op) + sector_ps * sectors) /
	       1000;
}

static void expect_near(const char *what, double got, double want, double off)
{
	if (fabs(got - want) > off * fabs(want))
		fail_msg("%s: %f instead of %f", what, got, want);
}

static void expect_costs(const struct cost_rls *g, const struct drive *d,
			 u32 sectors, double off)
{
	expect_near("read", cost_ns(g, IO_READ, sectors),
		    d->base[0] + sectors * d->sector[0], off);
	expect_near("write", cost_ns(g, IO_WRITE, sectors),
		    d->base[1] + sectors * d->sector[1], off);
}

static void feed(struct cost_rls *g, struct random *r, const struct drive *d,
		 const struct mix *m, u32 samples)
{
	struct cost_rls_sums s[4];

	while (samples) {
		draw_sample(r, d, m, s);
		samples -= cost_rls_add(g, s);
	}
}

static const struct drive fast = { { 60000, 20000 }, { 400, 1600 }, 0, false };
static const struct drive slower = { { 60000, 60000 }, { 400, 4800 }, 0, false };
static const struct mix mixed_sizes = { 400, 400, 1, 256, false };
static const struct mix pages = { 400, 400, 8, 8, false };

/* -------------------------------------------------------------------- tests */

TEST(costs_match_double_precision)
{
	static const double bases[] = { 3000, 60000, 5e6 };
	struct random r = random_seeded("cost_rls");
	u64 round;
	u32 i, k;

	for (round = 0; round < random_rounds(12); round++) {
		double scale = bases[round % 3];
		const struct drive d = {
			.base = { scale, scale * random_below(&r, 40) / 10 },
			.sector = { scale / 100,
				    scale * random_below(&r, 30) / 1000 },
			.noise = random_below(&r, 3) * 0.1,
			.shared = random_below(&r, 2),
		};
		struct cost_rls g = { 0 };
		struct model t = { 0 };

		for (i = 0; i < SAMPLES; i++) {
			struct cost_rls_sums s[4];
			struct mix m = mixed_sizes;

			/* First reads are absent for some time, then writes. */
			if (i / 100 % 5 == 3)
				m.reads = 0;
			else if (i / 100 % 5 == 4)
				m.writes = 0;
			draw_sample(&r, &d, &m, s);
			if (!cost_rls_add(&g, s))
				continue;
			model_add(&t, s);
			/* At first most directions are left to rounding. */
			for (k = 0; k < 4 && i >= 50; k++) {
				u32 sectors = k % 2 ? 128 : 8;
				double got = cost_ns(&g, k / 2, sectors);
				double want = model_ns(&t, k / 2, sectors);

				/* The cheaper one is a rest of the sum. */
				double both = model_ns(&t, 0, sectors) +
					      model_ns(&t, 1, sectors);

				if (fabs(got - want) > 0.01 * both)
					fail_msg("round %llu sample %u op %u, %u sectors: %f instead of %f",
						 round, i, k / 2, sectors, got,
						 want);
			}
		}
	}
}

TEST(fit_finds_the_true_costs)
{
	struct random r = random_seeded("cost_rls");
	struct cost_rls g = { 0 };

	feed(&g, &r, &fast, &mixed_sizes, 1000);
	expect_near("read", (double)cost_rls_cost_ps(&g, READ_REQUEST), 60e6,
		    0.005);
	expect_near("read sector", (double)cost_rls_cost_ps(&g, READ_SECTOR),
		    400e3, 0.005);
	expect_near("write", (double)cost_rls_cost_ps(&g, WRITE_REQUEST), 20e6,
		    0.02);
	expect_near("write sector", (double)cost_rls_cost_ps(&g, WRITE_SECTOR),
		    1600e3, 0.005);
}

/* 500 samples of 10 ms are five seconds. */
TEST(fit_follows_a_change_of_the_drive)
{
	struct random r = random_seeded("cost_rls");
	struct drive before = fast, after = slower;
	struct cost_rls g = { 0 };

	before.noise = after.noise = 0.2;
	feed(&g, &r, &before, &pages, 500);
	expect_costs(&g, &before, 8, 0.1);
	feed(&g, &r, &after, &pages, 1000);
	expect_costs(&g, &after, 8, 0.1);
	/* Noise hides the split into base and size, but not their sum. */
	feed(&g, &r, &after, &mixed_sizes, 1000);
	expect_costs(&g, &after, 128, 0.1);
}

/* All requests wait equally long: only the mix tells the costs. */
TEST(changing_mix_outweighs_latencies)
{
	struct random r = random_seeded("cost_rls");
	struct drive d = slower;
	struct cost_rls g = { 0 };

	d.shared = true;
	feed(&g, &r, &d, &pages, 1000);
	expect_costs(&g, &d, 8, 0.05);
}

/* The mix never changes: the time of each operation decides. */
TEST(latencies_split_a_constant_mix)
{
	static const struct mix constant = { 200, 100, 8, 8, true };
	struct random r = random_seeded("cost_rls");
	struct cost_rls g = { 0 };

	feed(&g, &r, &slower, &constant, 3000);
	expect_costs(&g, &slower, 8, 0.05);
}

/*
 * A drive completes a write in 20 us and needs 300 us for it later.  Reads,
 * which else take 100 us, wait for that.
 */
TEST(deferred_cost_is_found)
{
	struct random r = random_seeded("cost_rls");
	const struct drive truth = { { 100000, 320000 }, { 0, 0 }, 0, false };
	struct cost_rls g = { 0 };
	u64 owed = 0, writes;
	u32 i;

	for (i = 0; i < 3000; i++) {
		struct cost_rls_sums s[4] = { { 0 } };

		writes = i / 3 % 2 ? 1 + random_below(&r, 200) : 0;
		s[0] = (struct cost_rls_sums){ 100, 800,
					       100 * 100000 + owed * 300000 };
		s[2] = (struct cost_rls_sums){ writes, 8 * writes,
					       writes * 20000 };
		assert_true(cost_rls_add(&g, s));
		owed = (owed + writes) / 2;
	}
	expect_costs(&g, &truth, 8, 0.05);
}

/* The numbers of small and large requests never change. */
TEST(latencies_split_constant_sizes)
{
	struct random r = random_seeded("cost_rls");
	struct cost_rls_sums s[4] = { { 0 } };
	struct cost_rls g = { 0 };
	u32 i;

	for (i = 0; i < 3000; i++) {
		u64 more = random_below(&r, 1000);

		s[0] = (struct cost_rls_sums){ 64, 512,
					       64 * (60000 + 8 * 400 + more) };
		s[1] = (struct cost_rls_sums){ 8, 1024,
					       8 * (60000 + 128 * 400 + more) };
		assert_true(cost_rls_add(&g, s));
	}
	expect_near("4K", cost_ns(&g, IO_READ, 8), 63700, 0.02);
	expect_near("64K", cost_ns(&g, IO_READ, 128), 111700, 0.02);
}

/* The time of each operation is given as one sum, in place of request times. */
static void feed_exact(struct cost_rls *g, struct random *r,
		       const struct drive *d, const struct mix *m, u32 samples)
{
	struct cost_rls_sums s[4];

	while (samples) {
		u32 i;

		draw_sample(r, d, m, s);
		for (i = 0; i < 4; i += 2) {
			u32 small = s[i].requests ? i : i + 1;
			u64 ns = s[i].ns + s[i + 1].ns;

			s[i].ns = s[i + 1].ns = 0;
			s[small].ns = ns;
		}
		samples -= cost_rls_add(g, s);
	}
}

TEST(exact_time_needs_no_change_of_mix)
{
	static const struct mix constant = { 200, 100, 8, 8, true };
	struct random r = random_seeded("cost_rls");
	struct cost_rls g = { .exact_time = true };

	feed_exact(&g, &r, &fast, &constant, 200);
	expect_costs(&g, &fast, 8, 0.01);
	feed_exact(&g, &r, &slower, &constant, 1000);
	expect_costs(&g, &slower, 8, 0.01);
	g = (struct cost_rls){ .exact_time = true };
	feed_exact(&g, &r, &slower, &mixed_sizes, 1000);
	expect_costs(&g, &slower, 8, 0.05);
	expect_costs(&g, &slower, 128, 0.05);
}

TEST(absent_operation_keeps_its_cost)
{
	static const struct mix reads = { 400, 0, 1, 256, false };
	static const struct mix writes = { 0, 400, 1, 256, false };
	struct random r = random_seeded("cost_rls");
	struct drive d = fast;
	struct cost_rls g = { 0 };
	s64 phi[2];

	feed(&g, &r, &fast, &mixed_sizes, 1000);
	memcpy(phi, &g.phi[WRITE_REQUEST], sizeof(phi));
	d.base[IO_READ] *= 5;
	feed(&g, &r, &d, &reads, 20000);
	assert_memory_equal(phi, &g.phi[WRITE_REQUEST], sizeof(phi));
	expect_costs(&g, &d, 64, 0.01);
	memcpy(phi, &g.phi[READ_REQUEST], sizeof(phi));
	d.base[IO_WRITE] *= 5;
	feed(&g, &r, &d, &writes, 20000);
	assert_memory_equal(phi, &g.phi[READ_REQUEST], sizeof(phi));
	expect_costs(&g, &d, 64, 0.01);
	/* Entries of R that need both operations have not faded. */
	feed(&g, &r, &d, &mixed_sizes, 500);
	expect_costs(&g, &d, 64, 0.01);
}

TEST(no_coefficient_is_negative)
{
	/* Larger requests are faster here: a slope below 0 would fit best. */
	struct random r = random_seeded("cost_rls");
	struct cost_rls g = { 0 };
	u32 i, k;

	for (i = 0; i < 3000; i++) {
		u64 sectors = 100 * (8 + random_below(&r, 200));
		struct cost_rls_sums s[4] = {
			[1] = { 100, sectors, 40000000 - 900 * sectors },
			[2] = { 50 + random_below(&r, 100), 800, 100 },
		};

		assert_true(cost_rls_add(&g, s));
		for (k = 0; k < T; k++)
			assert_true(g.phi[k] >= 0);
	}
	assert_int_equal(cost_rls_cost_ps(&g, READ_SECTOR), 0);
	expect_near("mean", (double)cost_rls_cost_ps(&g, READ_REQUEST), 303e6,
		    0.1);
}

TEST(small_sample_is_left_for_the_next)
{
	const struct cost_rls_sums few[4] = { { 31, 248, 3100000 } };
	const struct cost_rls_sums empty[4] = { { 64, 0, 3100000 } };
	struct cost_rls g = { 0 }, none = { 0 };

	assert_false(cost_rls_add(&g, few));
	assert_false(cost_rls_add(&g, empty));
	assert_memory_equal(&g, &none, sizeof(g));
}

TEST(standard_errors_shrink_and_cover_the_truth)
{
	struct random r = random_seeded("cost_rls");
	struct drive d = fast;
	struct cost_rls g = { 0 };
	double error[2];

	d.noise = 0.3;
	feed(&g, &r, &d, &mixed_sizes, 20);
	error[0] = (double)cost_rls_error_ps(&g, READ_REQUEST);
	feed(&g, &r, &d, &mixed_sizes, 1000);
	error[1] = (double)cost_rls_error_ps(&g, READ_REQUEST);
	assert_true(error[1] > 0 && error[1] < error[0] / 2);
	assert_true(fabs((double)cost_rls_cost_ps(&g, READ_REQUEST) - 60e6) <
		    4 * error[1]);
}

/* The sums are such as no drive would give. */
TEST(random_sums_leave_all_values_in_range)
{
	struct random r = random_seeded("cost_rls");
	struct cost_rls g = { 0 };
	struct cost_line line[2];
	u32 i, k;

	for (i = 0; i < 20000; i++) {
		struct cost_rls_sums s[4];

		if (i == 10000)
			g = (struct cost_rls){ .exact_time = true };
		for (k = 0; k < 4; k++)
			s[k] = (struct cost_rls_sums){
				random_next(&r) >> (20 + random_below(&r, 44)),
				random_next(&r) >> (12 + random_below(&r, 52)),
				random_next(&r) >> random_below(&r, 64),
			};
		cost_rls_add(&g, s);
		cost_rls_lines(&g, line);
		for (k = 0; k < T; k++)
			assert_true(g.phi[k] >= 0 && g.r[k][k] >= 0);
		assert_true(line[0].base <= COST_MOST &&
			    line[1].base <= COST_MOST);
	}
}

TEST(lines_match_values_by_hand)
{
	/* A read of 4 KiB takes 80 us, of 64 KiB 320; a write 160, always. */
	struct cost_rls g = { .unit = 10000 * 256, .seen = 3 };
	struct cost_line line[2];

	g.phi[READ_REQUEST] = (64LL << 32) / 80;
	g.phi[READ_SECTOR] = (16LL << 32) / 80;
	g.phi[WRITE_REQUEST] = 2LL << 32;
	cost_rls_lines(&g, line);
	expect_near("read", line[0].base, 3276.8, 0.001);
	expect_near("read KiB", line[0].per_kib, 204.8, 0.005);
	assert_int_equal(line[1].base, 8192);
	assert_int_equal(line[1].per_kib, 0);
	/* The cost of a write is bounded, even if reads cost nothing. */
	g.phi[READ_REQUEST] = g.phi[READ_SECTOR] = 0;
	cost_rls_lines(&g, line);
	assert_int_equal(line[1].base, 32 * 4096);
	g.phi[READ_REQUEST] = (64LL << 32) / 80;
	g.phi[READ_SECTOR] = (16LL << 32) / 80;
	/* An operation that was never met costs as much as the other. */
	g.seen = 1 << IO_READ;
	cost_rls_lines(&g, line);
	assert_memory_equal(&line[0], &line[1], sizeof(line[0]));
	g.seen = 1 << IO_WRITE;
	cost_rls_lines(&g, line);
	assert_int_equal(line[0].base, 4096);
	assert_int_equal(line[1].base, 4096);
	/* Without a sample costs are by bytes. */
	g.unit = 0;
	cost_rls_lines(&g, line);
	assert_int_equal(line[0].base + line[1].base, 0);
	assert_int_equal(line[0].per_kib, 1024);
	assert_int_equal(line[1].per_kib, 1024);
}
