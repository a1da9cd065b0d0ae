// SPDX-License-Identifier: GPL-2.0
/* Accounts of a run that has been sent; see send.h. */
#include "send.h"

void run_sent(struct queue *q, const struct run *r, u64 pos, u64 now)
{
	struct flow_queue *fq = r->first->flow->fq[q->index];
	struct io *io;
	u64 bytes = 0;

	for (io = r->first; io; io = io->next) {
		io->queue = q;
		io->pos = pos;
		pos += io->cost;
		io->insert_ns = now;
		io->dispatch_ns = now;
		io->flags |= IO_CHARGED | IO_SLOT | IO_OUT;
		bytes += io_transferred(io);
	}
	WRITE_ONCE(fq->bytes, fq->bytes + bytes);
	WRITE_ONCE(fq->dispatched, fq->dispatched + r->nr);
	WRITE_ONCE(q->stats.dispatched, q->stats.dispatched + r->nr);
	queue_set_state(q, DISPATCH_IO);
}
