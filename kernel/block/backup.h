/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * backup.h - a disk behind a volume: written later, read when the volume cannot.
 *
 * It stands between the block device and its volume, and takes I/Os as the volume
 * does. A write goes to the volume at once and ends with it; copies of its blocks
 * follow to the disk, out of a buffer. A read goes to the volume, and what that
 * cannot serve comes from the disk, or from a copy that is still on its way there.
 * So a volume whose servers are all gone goes on at the pace of the disk: what is
 * written then ends when the disk has it. Where another server has room, what was lost
 * is in memory again once it is written (core/lost_pages.h). Left out: writing to the
 * volume what was read from the disk.
 *
 * Normally writes do not wait for the disk. They do where the buffer is full: then
 * each waits for room before it goes anywhere, in the order in which they came. So
 * the disk is never further behind than the buffer is long.
 *
 * Failure. What the disk would not take is counted, said once in the log, and not
 * backed up until it is written again: if the volume cannot serve it either, it is
 * an I/O error, never what the disk held before. Blocks that were never written
 * read as zeros. The core keeps the order and knows what is where
 * (core/write_behind.h).
 *
 * Nothing here outlives the attached device: the disk is a part of memory, and
 * what is on it is of no use to anybody after that. So it is never flushed.
 *
 * Memory, all of it had at attach: the buffer (16 MiB by default); 56 bytes for
 * each of its pages, 224 KiB; 3 bits for each 4 KiB block, 96 KiB for a GiB; 16
 * transfers of 1 KiB. The disk must get along without memory that only paging can
 * free: a disk or a partition does, a file behind a loop device does not.
 */
#ifndef RBX_KERNEL_BACKUP_H
#define RBX_KERNEL_BACKUP_H

#include <linux/list.h>

#include "core/write_behind.h"
#include "kernel/api.h"

struct rbx_backup;

struct rbx_backup_options {
	const char *device; /* "/dev/sdb"; NULL: no backup */
	u64 buffer_bytes; /* 128 KiB to 1 GiB */
};

/* 16 MiB: all that 128 requests of 128 KiB hold. */
void rbx_backup_options_defaults(struct rbx_backup_options *options);

/*
 * Opens the disk for itself alone. Blocks. 0; -EINVAL a bad buffer; -EFBIG the
 * disk is smaller than the volume; -ENOENT, -ENOTBLK there is no such block device;
 * -EBUSY it is in use; -EROFS it cannot be written to; -ENOMEM. Said in the log.
 */
int rbx_backup_open(const struct rbx_backup_options *options,
		    struct rbx_volume *volume, struct rbx_backup **backup);

/* No I/O is outstanding. Waits until nothing is on its way to the disk. */
void rbx_backup_close(struct rbx_backup *backup);

/* An I/O with what the backup needs beside it. */
struct rbx_backup_io {
	struct rbx_io io;
	/* The backup's. */
	struct rbx_backup *backup;
	void (*done)(struct rbx_io *io); /* who submitted it */
	struct rbx_behind_write write; /* its blocks; those of a read, too */
	u32 served_count; /* of a read: blocks that are there */
	struct list_head link; /* of a read that waits for the disk */
};

/* As rbx_volume_submit(), of whole blocks, RBX_BEHIND_BLOCKS_MAX of them at most
 * and as many segments. io.done() is called in any context. */
int rbx_backup_submit(struct rbx_backup *backup,
		      struct rbx_backup_io *backup_io, struct rbx_plug *plug);

/* What the disk asks of the memory of I/Os: a mask of its address. */
u32 rbx_backup_dma_alignment(const struct rbx_backup *backup);

struct rbx_backup_status {
	u64 backup_writes; /* runs of neighbours that the disk was sent */
	u64 backup_reads; /* I/Os that the volume could not serve, or was not asked */
	u64 backup_waits; /* writes that had to wait for room */
	u64 backup_errors; /* transfers that failed */
	u64 backup_lag_bytes; /* acknowledged, and not on the disk yet */
};

void rbx_backup_status(struct rbx_backup *backup,
		       struct rbx_backup_status *status);

#endif
