/* SPDX-License-Identifier: GPL-2.0 */
/* trace - the tracepoints of a request, of throttling and of wake-ups */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mqfair

#if !defined(MQFAIR_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MQFAIR_TRACE_H

#include <linux/tracepoint.h>
#include "device.h"
#include "cgroup.h"

TRACE_EVENT(mqfair_insert,
	TP_PROTO(struct request *rq, struct queue *q, struct io *io),
	TP_ARGS(rq, q, io),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(void *, flow)
		__field(u64, cgroup)
		__field(u32, queue)
		__field(u32, bytes)
		__field(u32, cost)
		__field(u64, head_tag)
		__field(u16, flags)
	),
	TP_fast_assign(
		__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
		__entry->sector = blk_rq_pos(rq);
		__entry->flow = io->flow;
		__entry->cgroup = flow_cgroup_id(io->flow);
		__entry->queue = q->index;
		__entry->bytes = io->bytes;
		__entry->cost = io->cost;
		__entry->head_tag = q->head_tag;
		__entry->flags = io->flags;
	),
	TP_printk("%d,%d sector=%llu flow=%p cgroup=%llu queue=%u bytes=%u cost=%u head_tag=%llu flags=%x",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->sector, __entry->flow,
		  __entry->cgroup, __entry->queue, __entry->bytes,
		  __entry->cost, __entry->head_tag, __entry->flags)
);

TRACE_EVENT(mqfair_dispatch,
	TP_PROTO(struct request *rq, struct io *io),
	TP_ARGS(rq, io),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(void *, flow)
		__field(u64, cgroup)
		__field(u32, queue)
		__field(u32, bytes)
		__field(u64, wait_ns)
	),
	TP_fast_assign(
		__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
		__entry->sector = blk_rq_pos(rq);
		__entry->flow = io->flow;
		__entry->cgroup = flow_cgroup_id(io->flow);
		__entry->queue = io->queue->index;
		__entry->bytes = io->bytes;
		__entry->wait_ns = io_wait_ns(io);
	),
	TP_printk("%d,%d sector=%llu flow=%p cgroup=%llu queue=%u bytes=%u wait_ns=%llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  (unsigned long long)__entry->sector, __entry->flow,
		  __entry->cgroup, __entry->queue, __entry->bytes, __entry->wait_ns)
);

TRACE_EVENT(mqfair_throttle,
	TP_PROTO(struct request_queue *rq_queue, struct queue *q),
	TP_ARGS(rq_queue, q),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, queue)
		__field(u64, head_tag)
		__field(u32, waiting)
	),
	TP_fast_assign(
		__entry->dev = rq_queue->disk ? disk_devt(rq_queue->disk) : 0;
		__entry->queue = q->index;
		__entry->head_tag = q->head_tag;
		__entry->waiting = q->nr;
	),
	TP_printk("%d,%d queue=%u head_tag=%llu waiting=%u", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->queue, __entry->head_tag,
		  __entry->waiting)
);

TRACE_EVENT(mqfair_wake,
	TP_PROTO(struct request_queue *rq_queue, u32 queue),
	TP_ARGS(rq_queue, queue),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, queue)
	),
	TP_fast_assign(
		__entry->dev = rq_queue->disk ? disk_devt(rq_queue->disk) : 0;
		__entry->queue = queue;
	),
	TP_printk("%d,%d queue=%u", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->queue)
);

TRACE_EVENT(mqfair_complete,
	TP_PROTO(struct request *rq, struct io *io, u64 now),
	TP_ARGS(rq, io, now),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(void *, flow)
		__field(u64, cgroup)
		__field(u32, queue)
		__field(u32, bytes)
		__field(u64, device_ns)
	),
	TP_fast_assign(
		__entry->dev = rq->q->disk ? disk_devt(rq->q->disk) : 0;
		__entry->flow = io->flow;
		__entry->cgroup = flow_cgroup_id(io->flow);
		__entry->queue = io->queue->index;
		__entry->bytes = io->bytes;
		__entry->device_ns = now - io->dispatch_ns;
	),
	TP_printk("%d,%d flow=%p cgroup=%llu queue=%u bytes=%u device_ns=%llu",
		  MAJOR(__entry->dev), MINOR(__entry->dev), __entry->flow,
		  __entry->cgroup, __entry->queue, __entry->bytes, __entry->device_ns)
);

#endif /* MQFAIR_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
