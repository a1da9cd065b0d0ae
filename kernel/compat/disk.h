/* SPDX-License-Identifier: GPL-2.0 */
/* disk - the part of compat.h that the block driver in kernel/ssd/ needs */
#ifndef MQFAIR_COMPAT_DISK_H
#define MQFAIR_COMPAT_DISK_H

#include "compat.h"

/* Older kernels merge only for drivers that ask; newer ones always merge. */
#if MQFAIR_HAVE_BLK_MQ_F_SHOULD_MERGE
#define COMPAT_BLK_MQ_F_SHOULD_MERGE	BLK_MQ_F_SHOULD_MERGE
#else
#define COMPAT_BLK_MQ_F_SHOULD_MERGE	0
#endif

/*
 * The limits of a drive without moving parts. Its driver copies the data, so
 * segments are not limited.
 */
struct compat_limits {
	u32 logical_block_bytes;
	u32 physical_block_bytes;	/* also the grain of discards */
	u32 max_bytes;
	u32 max_discard_bytes;
	bool write_cache;		/* flushes and FUA reach the driver */
};

#if MQFAIR_HAVE_ALLOC_DISK_LIMITS
static inline struct gendisk *compat_alloc_disk(struct blk_mq_tag_set *set,
						const struct compat_limits *l,
						void *queuedata)
{
	struct queue_limits limits = {
		.logical_block_size = l->logical_block_bytes,
		.physical_block_size = l->physical_block_bytes,
		.max_hw_sectors = l->max_bytes >> SECTOR_SHIFT,
		.max_segments = USHRT_MAX,
		.max_segment_size = UINT_MAX,
		.discard_granularity = l->physical_block_bytes,
		.max_hw_discard_sectors = l->max_discard_bytes >> SECTOR_SHIFT,
#if MQFAIR_HAVE_LIMITS_FEATURES
		.features = l->write_cache ?
				    BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA :
				    0,
#endif
	};
	struct gendisk *disk = blk_mq_alloc_disk(set, &limits, queuedata);

#if !MQFAIR_HAVE_LIMITS_FEATURES
	if (!IS_ERR(disk)) {
		blk_queue_flag_set(QUEUE_FLAG_NONROT, disk->queue);
		blk_queue_write_cache(disk->queue, l->write_cache,
				      l->write_cache);
	}
#endif
	return disk;
}
#else
static inline struct gendisk *compat_alloc_disk(struct blk_mq_tag_set *set,
						const struct compat_limits *l,
						void *queuedata)
{
	struct gendisk *disk = blk_mq_alloc_disk(set, queuedata);
	struct request_queue *q;

	if (IS_ERR(disk))
		return disk;
	q = disk->queue;
	blk_queue_logical_block_size(q, l->logical_block_bytes);
	blk_queue_physical_block_size(q, l->physical_block_bytes);
	blk_queue_max_hw_sectors(q, l->max_bytes >> SECTOR_SHIFT);
	blk_queue_max_segments(q, USHRT_MAX);
	blk_queue_max_segment_size(q, UINT_MAX);
	blk_queue_max_discard_sectors(q, l->max_discard_bytes >> SECTOR_SHIFT);
	q->limits.discard_granularity = l->physical_block_bytes;
	blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
	blk_queue_write_cache(q, l->write_cache, l->write_cache);
	return disk;
}
#endif

#endif
