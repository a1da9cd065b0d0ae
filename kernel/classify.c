// SPDX-License-Identifier: GPL-2.0
/*
 * classify - describes a request as an io: flow, operation, bytes, flags
 *
 * The flow of a request is that of its first bio's cgroup.  The block layer
 * merges only bios of one cgroup.  The bio and its reference on the blkg are
 * gone before the request completes, so the caller takes a reference too.
 * That keeps the flow, which is freed with the last reference on its blkg.
 *
 * A cgroup that was removed before the scheduler was set has no policy data on
 * this request queue.  Its last requests are charged to the root.  So is a
 * request with a blkg of another request queue.  A driver makes one if it moves
 * a bio to another disk and does not move the blkg with it.  The flow of such a
 * blkg has counters for the queues of that other disk.
 */
#include "classify.h"

#include "cgroup.h"

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

/* The blkg of the same cgroup on another disk, or @blkg if there is none. */
static struct blkcg_gq *on_another_disk(struct blkcg_gq *blkg)
{
	struct blkcg_gq *other, *found = blkg;

	rcu_read_lock();
	hlist_for_each_entry_rcu(other, &blkg->blkcg->blkg_list, blkcg_node)
		if (other->q != blkg->q && blkg_to_pd(other, &mqfair_policy))
			found = other;
	rcu_read_unlock();
	return found;
}

static struct blkcg_gq *owner_of(const struct request *rq)
{
	struct blkcg_gq *blkg = rq->bio ? rq->bio->bi_blkg : NULL;

	/* In this test build all requests are of one flow: first in, first out. */
	if (IS_ENABLED(MQFAIR_TEST_FIFO))
		return NULL;
	/* In this one a driver has moved each bio here from another disk. */
	if (IS_ENABLED(MQFAIR_TEST_REMAP) && blkg)
		return on_another_disk(blkg);
	return blkg;
}

void classify(struct request *rq, struct request_host *r)
{
	struct blkcg_gq *blkg = owner_of(rq);
	struct flow *flow = NULL;

	if (likely(blkg && blkg->q == rq->q))
		flow = group_flow(blkg);
	if (likely(flow)) {
		r->blkg = blkg;
	} else {
		flow = root_flow(rq->q);
		r->blkg = NULL;
	}
	r->io.flow = flow;
	r->io.op = io_op_of(rq);
	r->io.bytes = blk_rq_bytes(rq);
	io_set_page(&r->io, blk_rq_pos(rq) >> ilog2(SZ_4K >> SECTOR_SHIFT));
	r->io.flags = 0;
	if (rq->bio && bio_issue_as_root_blkg(rq->bio))
		r->io.flags |= IO_URGENT;
	if (rq->mq_hctx->type == HCTX_TYPE_POLL)
		r->io.flags |= IO_POLLED;
}
