/* SPDX-License-Identifier: GPL-2.0 */
/*
 * elevator - the hooks that the block layer calls for each request
 *
 * register.c puts them into each elevator type.  They stand here in the order
 * of a request's life, which elevator.c tells.
 *
 *	hook			context		takes
 *	limit_depth		task, may sleep	nothing
 *	prepare_request		task		nothing
 *	insert_requests		task		queue_host.lock, hctx_host.lock
 *	dispatch_request	task		hctx_host.lock > queue_host.lock
 *	has_work		any		nothing
 *	bio_merge		task		queue_host.lock
 *	completed_request	any		nothing
 *	requeue_request		any		nothing
 *	finish_request		any		nothing
 *
 * "Nothing" means neither of the two locks: schedulers may take their own.
 */
#ifndef MQFAIR_ELEVATOR_H
#define MQFAIR_ELEVATOR_H

#include "device.h"

void el_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data);
void el_prepare_request(struct request *rq);
void el_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list,
			blk_insert_t flags);
struct request *el_dispatch_request(struct blk_mq_hw_ctx *hctx);
bool el_has_work(struct blk_mq_hw_ctx *hctx);
bool el_bio_merge(struct request_queue *q, struct bio *bio,
		  unsigned int nr_segs);
void el_completed_request(struct request *rq, u64 now);
void el_requeue_request(struct request *rq);
void el_finish_request(struct request *rq);

#endif /* MQFAIR_ELEVATOR_H */
