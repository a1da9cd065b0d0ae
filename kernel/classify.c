// SPDX-License-Identifier: GPL-2.0
/*
 * classify - request -> io: whose it is, what it is, may it be held
 *
 * The flow is that of the first bio's cgroup; the core merges bios of one
 * cgroup only.  The bio and its reference are gone before the request
 * completes, so the request takes a reference of its own, which also keeps
 * the flow: its policy data goes when the last reference to the blkg does.
 *
 * A cgroup removed before the scheduler was set has no policy data on this
 * queue; its last requests are charged to the root.
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
	/* A test build: one flow for all, so first come, first served. */
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
