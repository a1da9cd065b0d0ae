/* SPDX-License-Identifier: GPL-2.0 */
/*
 * classify - describes a request as an io: flow, operation, bytes, flags
 *
 * elevator.c calls classify() at the first insertion.  A request that a driver sent
 * back keeps its flow.
 *
 * The flow of a request is that of its first bio's cgroup.  The block layer
 * merges only bios of one cgroup.
 *
 * Who keeps the flow.  The kernel frees a flow with the last reference on its blkg.
 * The bio has a reference until the drive has served the request.  By then the flow has
 * been active since the insertion, and an active flow has a reference too (struct
 * host_hooks).  A request that a driver sent back has its own: request_host.kept.
 *
 * A cgroup that was removed before the scheduler was set has no policy data on
 * this request queue.  Its last requests are charged to the root.  So is a
 * request with a blkg of another request queue.  A driver makes one if it moves
 * a bio to another disk and does not move the blkg with it.  The flow of such a
 * blkg has counters for the queues of that other disk.
 *
 * No lock is needed: between its insertion and its end a request_host belongs to
 * its request alone.
 */
#ifndef MQFAIR_CLASSIFY_H
#define MQFAIR_CLASSIFY_H

#include "cgroup.h"
#include "device.h"

static inline enum io_op io_op_of(const struct request *rq)
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
static inline struct blkcg_gq *on_another_disk(struct blkcg_gq *blkg)
{
	struct blkcg_gq *other, *found = blkg;

	rcu_read_lock();
	hlist_for_each_entry_rcu(other, &blkg->blkcg->blkg_list, blkcg_node)
		if (other->q != blkg->q && blkg_to_pd(other, &mqfair_policy))
			found = other;
	rcu_read_unlock();
	return found;
}

static inline struct flow *flow_of(const struct request *rq)
{
	struct blkcg_gq *blkg = rq->bio ? rq->bio->bi_blkg : NULL;
	struct flow *flow = NULL;

	/* In this test build all requests are of one flow: first in, first out. */
	if (IS_ENABLED(MQFAIR_TEST_FIFO))
		blkg = NULL;
	/* In this one a driver has moved each bio here from another disk. */
	if (IS_ENABLED(MQFAIR_TEST_REMAP) && blkg)
		blkg = on_another_disk(blkg);
	if (likely(blkg && blkg->q == rq->q))
		flow = group_flow(blkg);
	return likely(flow) ? flow : root_flow(rq->q);
}

/* Task context, with the request's bios still attached. */
static inline void classify(struct request *rq, struct request_host *r)
{
	r->rq = rq;
	r->io.flow = flow_of(rq);
	r->io.op = io_op_of(rq);
	r->io.bytes = blk_rq_bytes(rq);
	io_set_page(&r->io, blk_rq_pos(rq) >> ilog2(SZ_4K >> SECTOR_SHIFT));
	r->io.flags = 0;
	if (rq->bio && bio_issue_as_root_blkg(rq->bio))
		r->io.flags |= IO_URGENT;
	if (rq->mq_hctx->type == HCTX_TYPE_POLL)
		r->io.flags |= IO_POLLED;
}

#endif /* MQFAIR_CLASSIFY_H */
