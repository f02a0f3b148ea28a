/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * compat.h - the differences between kernels; all are here.
 *
 * Either a disk is allocated with its limits, or they are set on its queue afterwards.
 * BLK_FEAT_STABLE_WRITES tells which: if a queue has features, they are part of the
 * limits. The open callback gets a disk or a block device; BLK_OPEN_READ tells which.
 * Opening another device gives a file or a block device.
 */
#ifndef RBX_KERNEL_COMPAT_H
#define RBX_KERNEL_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/blkdev.h>

/* In disk.c: 0, or why the disk cannot be opened. */
int rbx_disk_may_open(struct gendisk *disk);

#ifdef BLK_OPEN_READ

static inline int rbx_disk_open(struct gendisk *disk, blk_mode_t mode)
{
	return rbx_disk_may_open(disk);
}

#else

static inline int rbx_disk_open(struct block_device *device, fmode_t mode)
{
	return rbx_disk_may_open(device->bd_disk);
}

#endif

/* Another block device, opened for reading and writing, exclusively. */
struct rbx_claim {
	struct block_device *device;
	struct file *file; /* if the kernel gives one */
};

#ifdef BLK_OPEN_READ

static inline int rbx_claim_open(struct rbx_claim *claim, const char *path)
{
	claim->file = bdev_file_open_by_path(
		path, BLK_OPEN_READ | BLK_OPEN_WRITE, claim, NULL);
	if (IS_ERR(claim->file))
		return PTR_ERR(claim->file);
	claim->device = file_bdev(claim->file);
	return 0;
}

static inline void rbx_claim_close(struct rbx_claim *claim)
{
	bdev_fput(claim->file);
}

#else

#define RBX_CLAIM_MODE (FMODE_READ | FMODE_WRITE | FMODE_EXCL)

static inline int rbx_claim_open(struct rbx_claim *claim, const char *path)
{
	claim->device = blkdev_get_by_path(path, RBX_CLAIM_MODE, claim);
	return PTR_ERR_OR_ZERO(claim->device);
}

static inline void rbx_claim_close(struct rbx_claim *claim)
{
	blkdev_put(claim->device, RBX_CLAIM_MODE);
}

#endif

struct rbx_disk_limits {
	u32 block_bytes;
	u32 request_bytes; /* no request crosses a multiple of it, either */
	u16 segments;
	u32 dma_alignment; /* a mask of the address of each segment */
	bool stable_writes; /* pages must not change while they are written */
	u64 discard_bytes; /* the unit of a discard; 0: no discards */
};

/* As many as the block layer can count in bytes. A long discard takes no more time than a
 * short one. */
#define RBX_DISCARD_SECTORS_MAX (UINT_MAX >> SECTOR_SHIFT)

#ifdef BLK_FEAT_STABLE_WRITES

static inline struct gendisk *
rbx_disk_alloc(struct blk_mq_tag_set *tag_set,
	       const struct rbx_disk_limits *limits, void *user)
{
	struct queue_limits queue_limits = {
		.features = limits->stable_writes ? BLK_FEAT_STABLE_WRITES : 0,
		.logical_block_size = limits->block_bytes,
		.physical_block_size = limits->block_bytes,
		.io_min = limits->block_bytes,
		.io_opt = limits->request_bytes,
		.max_hw_sectors = limits->request_bytes >> SECTOR_SHIFT,
		.chunk_sectors = limits->request_bytes >> SECTOR_SHIFT,
		.max_segments = limits->segments,
		.max_segment_size = limits->request_bytes,
		.dma_alignment = limits->dma_alignment,
		.discard_granularity = (u32)limits->discard_bytes,
		.max_hw_discard_sectors =
			limits->discard_bytes ? RBX_DISCARD_SECTORS_MAX : 0,
	};

	return blk_mq_alloc_disk(tag_set, &queue_limits, user);
}

#else

static inline struct gendisk *
rbx_disk_alloc(struct blk_mq_tag_set *tag_set,
	       const struct rbx_disk_limits *limits, void *user)
{
	struct gendisk *disk = blk_mq_alloc_disk(tag_set, user);
	struct request_queue *queue;

	if (IS_ERR(disk))
		return disk;
	queue = disk->queue;
	blk_queue_logical_block_size(queue, limits->block_bytes);
	blk_queue_physical_block_size(queue, limits->block_bytes);
	blk_queue_io_min(queue, limits->block_bytes);
	blk_queue_io_opt(queue, limits->request_bytes);
	blk_queue_max_hw_sectors(queue, limits->request_bytes >> SECTOR_SHIFT);
	blk_queue_chunk_sectors(queue, limits->request_bytes >> SECTOR_SHIFT);
	blk_queue_max_segments(queue, limits->segments);
	blk_queue_max_segment_size(queue, limits->request_bytes);
	blk_queue_dma_alignment(queue, (int)limits->dma_alignment);
	queue->limits.discard_granularity = (u32)limits->discard_bytes;
	if (limits->discard_bytes)
		blk_queue_max_discard_sectors(queue, RBX_DISCARD_SECTORS_MAX);
	blk_queue_flag_set(QUEUE_FLAG_NONROT, queue);
	if (limits->stable_writes)
		blk_queue_flag_set(QUEUE_FLAG_STABLE_WRITES, queue);
	return disk;
}

#endif

#endif
