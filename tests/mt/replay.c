// SPDX-License-Identifier: GPL-2.0
#include "replay.h"

struct inner {
	const struct replay *replay;
	u32 access;		/* number in the second operation */
	bool interrupted;
};

static void run_third(void *arg)
{
	const struct replay *r = arg;

	r->run(r->arg, 2);
}

static void run_inner(void *arg)
{
	struct inner *in = arg;
	const struct replay *r = in->replay;

	if (r->nr == 3)
		port_interrupt_at(in->access, run_third, (void *)r);
	r->run(r->arg, 1);
	if (r->nr == 3 && !port_interrupt_done())
		run_third((void *)r);
	else
		in->interrupted = true;
}

/* Returns false when the first operation has no access number @access. */
static bool run_once(const struct replay *r, u32 access, struct inner *in)
{
	bool interrupted;

	in->interrupted = false;
	r->reset(r->arg);
	port_interrupt_at(access, run_inner, in);
	r->run(r->arg, 0);
	interrupted = port_interrupt_done();
	if (!interrupted)
		run_inner(in);
	r->check(r->arg);
	return interrupted;
}

u64 replay_all(const struct replay *r)
{
	struct inner in = { .replay = r };
	bool outer = true;
	u32 access;
	u64 runs = 0;

	for (access = 0; outer; access++) {
		in.access = 0;
		do {
			outer = run_once(r, access, &in);
			runs++;
			in.access++;
		} while (r->nr == 3 && in.interrupted);
	}
	return runs;
}
