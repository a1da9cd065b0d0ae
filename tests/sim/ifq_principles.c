// SPDX-License-Identifier: GPL-2.0
/* The four principles of the paper. */
#include <string.h>

#include "ifq.h"

/* A tenant: what it asks for. */
struct ask {
	u32 depth, bytes;	/* sizes from this up to twice as much */
	u64 think_ns;
	bool absent;
};

enum { ASKS = 4 };

/* Two tenants take all they can get, two wait for each request. */
static const struct ask mixed[ASKS] = {
	{ .depth = 64, .bytes = 8 * KIB },
	{ .depth = 128, .bytes = 8 * KIB },
	{ .depth = 1, .bytes = 4 * KIB, .think_ns = 900 * US },
	{ .depth = 1, .bytes = 4 * KIB, .think_ns = 150 * US },
};

/* On a drive of 80 us, and 5 us a KiB. */
enum { LONGEST_US = 80 + 5 * 16 };

/* What each gets in a second, after as long to settle. */
struct got {
	double bytes[ASKS];
	double wait_us[ASKS];	/* mean from insert to dispatch */
};

static struct got serve(struct test_case *t, const struct ask *ask, u32 slots)
{
	struct host_params p = ifq_host_params(t, 1);
	struct host_flow *flow[ASKS];
	u64 ios[ASKS], wait[ASKS], bytes[ASKS];
	struct got got;
	struct fixture r;
	u32 i;

	ifq_params(&p.sched)->window_ms = 100;
	p.sched.depth = slots;
	p.device.slots = slots;
	p.device.base_ns = 80 * US;
	p.device.ns_per_kib = 5 * US;
	fixture_open(&r, t, &p);
	for (i = 0; i < ASKS; i++) {
		struct load_params load = {
			.flow = flow[i] = fixture_flow(&r, NULL, 100),
			.depth = ask[i].depth,
			/* At random, or the slots would keep step. */
			.bytes = ask[i].bytes,
			.bytes_max = 2 * ask[i].bytes,
			.think_ns = ask[i].think_ns,
		};

		if (!ask[i].absent)
			fixture_load(&r, &load);
	}
	fixture_run(&r, SEC);
	for (i = 0; i < ASKS; i++) {
		ios[i] = flow[i]->stats.ios;
		wait[i] = flow[i]->stats.wait_ns;
		bytes[i] = flow[i]->stats.bytes;
	}
	fixture_run(&r, SEC);
	for (i = 0; i < ASKS; i++) {
		u64 n = max(flow[i]->stats.ios - ios[i], 1ULL);

		got.bytes[i] = (double)(flow[i]->stats.bytes - bytes[i]);
		got.wait_us[i] = (double)(flow[i]->stats.wait_ns - wait[i]) /
				 1000 / (double)n;
	}
	fixture_close(&r);
	return got;
}

/*
 * There is no preemption: a request waits until a slot is free, and perhaps for
 * that of another tenant that came just before.
 */
static double least_of_quarter(const struct ask *ask)
{
	double period_us = (double)ask->think_ns / 1000 + 80;

	if (!ask->think_ns)
		return 1;
	return period_us / (period_us + 2.0 * LONGEST_US / 8);
}

/* Sharing incentive: no tenant is worse off than with a quarter of the drive. */
void ifq_sharing_incentive(struct test_case *t)
{
	struct got shared = serve(t, mixed, 8);
	double least = 1e9;
	u32 i, k;

	for (i = 0; i < ASKS; i++) {
		struct ask alone[ASKS];
		struct got quarter;

		for (k = 0; k < ASKS; k++) {
			alone[k] = mixed[k];
			alone[k].absent = k != i;
		}
		quarter = serve(t, alone, 8 / ASKS);
		least = min(least, shared.bytes[i] / quarter.bytes[i]);
		if (shared.bytes[i] <
		    least_of_quarter(&mixed[i]) * quarter.bytes[i])
			case_fail(
				t,
				"tenant %u gets %.2f of what a quarter of the drive gave it",
				i, shared.bytes[i] / quarter.bytes[i]);
	}
	case_note(t, "at least %.2f of a quarter", least);
}

/*
 * The requests of interest of a tenant that sends others besides: one at a
 * time, with think times.
 */
struct reader {
	struct host_io hio;
	struct fixture *fixture;
	u64 done;
};

static void reader_submit(struct event *ev)
{
	struct host_io *hio = container_of(ev, struct host_io, event);
	struct reader *reader = container_of(hio, struct reader, hio);

	if (!reader->fixture->host->stopping)
		host_submit(hio, 0, IO_READ, 4 * KIB, 0);
}

static void reader_done(struct host_io *hio)
{
	struct reader *reader = container_of(hio, struct reader, hio);
	struct host *h = reader->fixture->host;

	reader->done++;
	event_init(&hio->event, reader_submit);
	event_arm(&h->timeline, &hio->event, host_now(h) + 900 * US);
}

/* Requests of interest in a second, beside @junk of no interest. */
static u64 useful(struct test_case *t, u32 junk)
{
	struct host_params p = ifq_host_params(t, 1);
	struct reader reader = { 0 };
	struct fixture r;
	u64 before;
	u32 i;

	ifq_params(&p.sched)->window_ms = 100;
	fixture_open(&r, t, &p);
	for (i = 0; i < 3; i++)
		fixture_closed(&r, fixture_flow(&r, NULL, 100), 64,
			       4 * KIB << i);
	reader.fixture = &r;
	reader.hio.flow = fixture_flow(&r, NULL, 100);
	reader.hio.done = reader_done;
	event_init(&reader.hio.event, reader_submit);
	event_arm(&r.host->timeline, &reader.hio.event, US);
	if (junk)
		fixture_closed(&r, reader.hio.flow, junk, 4 * KIB);
	fixture_run(&r, SEC);
	before = reader.done;
	fixture_run(&r, SEC);
	before = reader.done - before;
	fixture_close(&r);
	return before;
}

/* Strategy: asking for more than one needs, or deeper, gains nothing. */
void ifq_no_gain_from_more(struct test_case *t)
{
	struct ask deeper[ASKS];
	struct got plain, inflated;
	u64 honest, padded;

	honest = useful(t, 0);
	padded = useful(t, 32);
	if (padded > honest)
		case_fail(
			t,
			"with requests that it does not need a tenant has %llu of use, without %llu",
			padded, honest);
	memcpy(deeper, mixed, sizeof(deeper));
	deeper[0].depth *= 8;
	plain = serve(t, mixed, 8);
	inflated = serve(t, deeper, 8);
	if (inflated.bytes[0] > 1.01 * plain.bytes[0])
		case_fail(t,
			  "eight times as deep a tenant gets %.2f times as much",
			  inflated.bytes[0] / plain.bytes[0]);
	case_note(
		t,
		"padded: %llu requests of use instead of %llu; deeper: %.3f times as much",
		padded, honest, inflated.bytes[0] / plain.bytes[0]);
}

static double worst_change(const struct ask *ask, const struct got *from,
			   const struct got *to)
{
	double worst = 1e9;
	u32 i;

	for (i = 0; i < ASKS; i++)
		if (!ask[i].absent)
			worst = min(worst, to->bytes[i] / from->bytes[i]);
	return worst;
}

/* Monotonicity: with fewer tenants, or a larger drive, no tenant gets less. */
void ifq_monotony(struct test_case *t)
{
	struct got all = serve(t, mixed, 8), other;
	double worst;
	u32 i;

	for (i = 0; i < ASKS; i++) {
		struct ask without[ASKS];

		memcpy(without, mixed, sizeof(without));
		without[i].absent = true;
		other = serve(t, without, 8);
		worst = worst_change(without, &all, &other);
		if (worst < 0.99)
			case_fail(
				t,
				"without tenant %u another tenant gets %.3f of its earlier bytes",
				i, worst);
	}
	other = serve(t, mixed, 16);
	worst = worst_change(mixed, &all, &other);
	if (worst < 0.99)
		case_fail(
			t,
			"on a drive twice as large a tenant gets %.3f of its earlier bytes",
			worst);
}

/*
 * A tenant that is served less waits less.  Tenants that do not use their part
 * are next whenever they come; their waits differ by chance.
 */
void ifq_less_waits_less(struct test_case *t)
{
	static const struct ask asks[ASKS] = {
		{ .depth = 1, .bytes = 4 * KIB, .think_ns = 2 * MS },
		{ .depth = 4, .bytes = 4 * KIB, .think_ns = 300 * US },
		{ .depth = 8, .bytes = 4 * KIB, .think_ns = 300 * US },
		{ .depth = 256, .bytes = 4 * KIB },
	};
	struct got got = serve(t, asks, 8);
	u32 i;

	for (i = 1; i < ASKS; i++) {
		if (got.bytes[i] < got.bytes[i - 1] * 1.5)
			case_fail(t, "tenant %u does not move more than %u", i,
				  i - 1);
		if (got.wait_us[i] < 0.95 * got.wait_us[i - 1])
			case_fail(
				t,
				"tenant %u, which moves more, waits %.1f us, tenant %u %.1f us",
				i, got.wait_us[i], i - 1, got.wait_us[i - 1]);
	}
	if (got.wait_us[ASKS - 1] < 10 * got.wait_us[ASKS - 2])
		case_fail(
			t,
			"the tenant that takes all waits %.1f us, one that takes less %.1f us",
			got.wait_us[ASKS - 1], got.wait_us[ASKS - 2]);
	case_note(t, "waits %.1f, %.1f, %.1f, %.1f us", got.wait_us[0],
		  got.wait_us[1], got.wait_us[2], got.wait_us[3]);
}
