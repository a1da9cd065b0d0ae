// SPDX-License-Identifier: GPL-2.0
/* The order of deficit round robin, request by request. */
#include "fixture.h"
#include "sched/core/policies.h"

enum {
	/* Quanta are 192 and 64 KiB, the shares of ROUND_BYTES. */
	IO_BYTES	= 128 * 1024,
	MOST		= 64,
};

struct order {
	struct fixture *fixture;
	char flow[MOST + 1];		/* a letter for each dispatch */
	u32 n;
};

static void order_inserted(void *arg, struct host_io *hio)
{
	struct order *o = arg;

	(void)hio;
	o->fixture->inserted++;
}

static void order_dispatched(void *arg, struct host_io *hio)
{
	struct order *o = arg;

	o->fixture->dispatched++;
	if (o->n < MOST)
		o->flow[o->n++] = (char)('A' + hio->flow->id - 1);
}

/* Runs A of share 3/4 and B of share 1/4, one request at a time. */
static void order_of(struct test_case *t, struct order *o)
{
	static const u32 weights[] = { 300, 100 };
	struct host_params p = fixture_params(t, 1);
	struct fixture r;
	u32 i;

	p.sched.depth = 1;
	p.device.slots = 1;
	fixture_open(&r, t, &p);
	*o = (struct order){ .fixture = &r };
	r.host->watch = (struct host_watch){
		.arg = o,
		.inserted = order_inserted,
		.dispatched = order_dispatched,
	};
	for (i = 0; i < 2; i++)
		fixture_closed(&r, fixture_flow(&r, NULL, weights[i]), 16,
			       IO_BYTES);
	fixture_run(&r, 20 * MS);
	fixture_close(&r);
}

/*
 * The example of drr.c.  A sends two requests and has a debt, then B sends one.
 * A sends one, which leaves it a deficit of 0, and B pays its debt.
 */
static void test_example(struct test_case *t)
{
	struct order o;
	u32 i;

	order_of(t, &o);
	case_note(t, "%s", o.flow);
	/* The first request of A went before B was there. */
	for (i = 8; i + 8 <= MOST; i += 4)
		if (memcmp(o.flow + i, o.flow + i + 4, 4))
			case_fail(t, "the order is %s", o.flow);
	if (!strstr(o.flow, "AABAAABA"))
		case_fail(t, "the order is %s", o.flow);
}

const struct test drr_tests[] = {
	{ "drr/example", test_example, true },
	{ NULL, NULL, false },
};
