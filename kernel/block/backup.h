/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * backup.h - a backup: a disk behind a volume, written later, and read if the volume
 * fails.
 *
 * It is between the block device and its volume, and takes I/Os as the volume does. A
 * write goes to the volume at once and ends with it. Copies of its blocks go into a
 * buffer, and from there to the disk. A read goes to the volume. What the volume cannot
 * serve comes from the disk, or from a copy in the buffer. So a volume that has lost all
 * its servers goes on, as slowly as the disk is: a write then ends when the disk has it.
 * If another server has room, lost blocks are in memory again once they are written
 * (core/lost_pages.h). Left out: writing to the volume what was read from the disk.
 *
 * Normally writes do not wait for the disk. If the buffer is full each write waits for
 * room before it goes anywhere, in the order in which they came. So the disk is never
 * further behind than the length of the buffer.
 *
 * Failure: blocks that the disk failed to write are counted and logged once. They have no
 * backup until they are written again: if the volume cannot serve them either, the read
 * fails, and never returns the disk's older contents. Blocks that were never written read
 * as zeros. The core keeps the order and knows where each block is (core/write_behind.h).
 *
 * The contents of the disk are of no use after the device is detached: the disk is a part
 * of memory. So it is never flushed.
 *
 * Memory, all allocated at attach: the buffer (16 MiB by default); 56 bytes for each of
 * its pages, 224 KiB; 3 bits for each 4 KiB block, 96 KiB for a GiB; 16 transfers of 1
 * KiB. The disk must work without memory that only paging can free. A disk or a partition
 * does; a file behind a loop device does not.
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

/* 16 MiB: what 128 requests of 128 KiB hold. */
void rbx_backup_options_defaults(struct rbx_backup_options *options);

/*
 * Opens the disk for exclusive use. Blocks. 0; -EINVAL: a bad buffer size; -EFBIG: the
 * disk is smaller than the volume; -ENOENT, -ENOTBLK: there is no such block device;
 * -EBUSY: it is in use; -EROFS: it is read-only; -ENOMEM. Each is logged.
 */
int rbx_backup_open(const struct rbx_backup_options *options,
		    struct rbx_volume *volume, struct rbx_backup **backup);

/* No I/O may be outstanding. Waits until all transfers to the disk have ended. */
void rbx_backup_close(struct rbx_backup *backup);

/* An I/O, with what the backup needs for it. */
struct rbx_backup_io {
	struct rbx_io io;
	/* Used by the backup. */
	struct rbx_backup *backup;
	void (*done)(struct rbx_io *io); /* of the submitter */
	struct rbx_behind_write write; /* its blocks; used for a read too */
	u32 served_count; /* of a read: the blocks that were read */
	struct list_head link; /* in the list of reads that wait for the disk */
};

/* As rbx_volume_submit(), but for whole blocks only: RBX_BEHIND_BLOCKS_MAX at most, and
 * as many segments. io.done() is called in any context. */
int rbx_backup_submit(struct rbx_backup *backup,
		      struct rbx_backup_io *backup_io, struct rbx_plug *plug);

/* The disk's alignment for the memory of I/Os, as a mask of the address. */
u32 rbx_backup_dma_alignment(const struct rbx_backup *backup);

struct rbx_backup_status {
	u64 backup_writes; /* runs of neighbours that were sent to the disk */
	u64 backup_reads; /* I/Os that the volume could not serve, or was not asked for */
	u64 backup_waits; /* writes that had to wait for room */
	u64 backup_errors; /* transfers that failed */
	u64 backup_lag_bytes; /* acknowledged, but not on the disk yet */
};

void rbx_backup_status(struct rbx_backup *backup,
		       struct rbx_backup_status *status);

#endif
