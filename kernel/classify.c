// SPDX-License-Identifier: GPL-2.0
/*
 * classify - describes a request as an io: flow, operation, bytes, flags
 *
 * The flow of a request is that of its first bio's cgroup.  The block layer
 * merges only bios of one cgroup.  The bio and its reference on the blkg are
 * gone before the request completes, so the request takes a reference too.
 * That keeps the flow, which is freed with the last reference on its blkg.
 *
 * A cgroup that was removed before the scheduler was set has no policy data on
 * this request queue.  Its last requests are charged to the root.
 */
#include "classify.h"

#include "weights.h"

static enum io_op io_op_of(const struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return IO_READ;
	case REQ_OP_WRITE:
	case REQ_OP_ZONE_APPEND:
		return IO_WRITE;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return IO_DISCARD;
	default:
		return IO_OTHER;
	}
}

static struct blkcg_gq *owner_of(const struct request *rq)
{
	/* In this test build all requests are of one flow: first in, first out. */
	if (IS_ENABLED(MQFAIR_TEST_FIFO))
		return NULL;
	return rq->bio ? rq->bio->bi_blkg : NULL;
}

void classify(struct request *rq, struct request_host *r)
{
	struct blkcg_gq *blkg = owner_of(rq);
	struct flow *flow = blkg ? group_flow(blkg) : NULL;

	if (likely(flow)) {
		blkg_get(blkg);
		r->blkg = blkg;
	} else {
		flow = root_flow(rq->q);
		r->blkg = NULL;
	}
	r->io.flow = flow;
	r->io.op = io_op_of(rq);
	r->io.bytes = blk_rq_bytes(rq);
	r->io.page = (u32)(blk_rq_pos(rq) >> ilog2(SZ_4K >> SECTOR_SHIFT));
	r->io.flags = 0;
	if (rq->bio && bio_issue_as_root_blkg(rq->bio))
		r->io.flags |= IO_URGENT;
	if (rq->mq_hctx->type == HCTX_TYPE_POLL)
		r->io.flags |= IO_EXEMPT;
}
