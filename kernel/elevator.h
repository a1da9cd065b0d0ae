/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MQFAIR_ELEVATOR_H
#define MQFAIR_ELEVATOR_H

#include "device.h"

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
