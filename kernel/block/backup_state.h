/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * backup_state.h - what the files of a backup share.
 *
 *	backup.c	opens and closes, and the thread
 *	backup_submit.c	the way of an I/O through the volume
 *	backup_disk.c	transfers to the disk and from it
 *
 * Whoever submits an I/O copies the blocks of a write, and the poller's thread
 * hears what the volume says; neither may wait for a disk. So a thread of the
 * backup does what may block: it sends runs of neighbours to the disk, reads what
 * the volume could not serve, and submits the writes that waited for room. What
 * the disk has done is taken note of where its interrupt is served.
 *
 * One lock, taken with interrupts off, guards all that changes. No other is taken
 * under it but that of the wait queue.
 */
#ifndef RBX_KERNEL_BACKUP_STATE_H
#define RBX_KERNEL_BACKUP_STATE_H

#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "kernel/block/backup.h"
#include "kernel/block/compat.h"

/* Transfers under way at a time: enough to keep a disk busy, and not so many that
 * a read would have to queue up behind writes in the disk. */
#define RBX_TRANSFERS 16u

/* A run on its way to the disk or from it. */
struct rbx_transfer {
	struct rbx_backup *backup;
	struct rbx_transfer *next; /* where it is free */
	struct rbx_backup_io *read; /* NULL: it writes the pages of the run */
	struct rbx_behind_run run;
	struct bio bio;
	struct bio_vec vecs[RBX_BEHIND_BLOCKS_MAX];
};

struct rbx_backup {
	struct rbx_claim disk;
	struct rbx_volume *volume;
	struct page **pages; /* of the buffer */
	u32 page_count;
	struct task_struct *thread;
	struct rbx_plug plug; /* of the writes that had waited */
	wait_queue_head_t changed;
	bool wanted; /* atomic: the thread has something to see to */

	spinlock_t lock; /* guards all below */
	struct rbx_write_behind *behind;
	struct list_head reads; /* that the disk is to serve */
	struct rbx_transfer *free_transfers;
	struct rbx_backup_status counts;
};

/* A page of the buffer. */
static inline void *rbx_backup_memory(const struct rbx_backup *backup,
				      const struct rbx_behind_page *page)
{
	return page_address(backup->pages[page->memory]);
}

/* An I/O ends that the volume has not ended. */
static inline void rbx_backup_io_end(struct rbx_backup_io *backup_io, int status)
{
	backup_io->io.status = status;
	backup_io->io.ended_ns = ktime_get_ns();
	backup_io->done(&backup_io->io);
}

/* Something has changed. With the lock, since who closes the backup takes it
 * before he lets it go. */
static inline void rbx_backup_wake(struct rbx_backup *backup)
{
	WRITE_ONCE(backup->wanted, true);
	wake_up(&backup->changed);
}

/* 0 or -ENOMEM, and some may be there. */
int rbx_backup_transfers_make(struct rbx_backup *backup);
/* None is under way. */
void rbx_backup_transfers_free(struct rbx_backup *backup);

/* For the thread: each does one thing, and says whether there was one to do. */

/* Goes on with a read that the volume could not serve. */
bool rbx_backup_read(struct rbx_backup *backup);
/* Sends a run to the disk. */
bool rbx_backup_send(struct rbx_backup *backup);
/* Submits a write that has waited for room. One that fails wakes the thread and is the
 * last: what failed it may be held by those that wait in the plug for its start. */
bool rbx_backup_admit(struct rbx_backup *backup);

#endif
