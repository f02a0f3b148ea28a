/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * backup_state.h - what the files of a backup share.
 *
 *	backup.c	opens and closes, and the thread
 *	backup_submit.c	sends I/Os to the volume, and handles their end
 *	backup_disk.c	transfers to and from the disk
 *
 * The submitter of a write copies its blocks, and the poller's thread handles the
 * volume's answer. Neither may wait for a disk. So a thread of the backup does what may
 * block. It sends runs of neighbours to the disk, reads what the volume could not serve,
 * and submits the writes that waited for room. The interrupt handler of the disk notes
 * the transfers that have ended.
 *
 * One lock, taken with interrupts off, guards all that changes. Under it only the lock of
 * the wait queue is taken.
 */
#ifndef RBX_KERNEL_BACKUP_STATE_H
#define RBX_KERNEL_BACKUP_STATE_H

#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "kernel/block/backup.h"
#include "kernel/block/compat.h"

/* Transfers at a time: enough to keep a disk busy, but so few that a read need not wait
 * long behind writes. */
#define RBX_TRANSFERS 16u

/* A run of blocks on its way to or from the disk. */
struct rbx_transfer {
	struct rbx_backup *backup;
	struct rbx_transfer *next; /* in the list of free ones */
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
	struct rbx_plug plug; /* for writes that had waited for room */
	wait_queue_head_t changed;
	bool wanted; /* atomic: the thread has something to do */

	spinlock_t lock; /* guards all below */
	struct rbx_write_behind *behind;
	struct list_head reads; /* reads that wait for the disk */
	struct rbx_transfer *free_transfers;
	struct rbx_backup_status counts;
};

/* A page of the buffer. */
static inline void *rbx_backup_memory(const struct rbx_backup *backup,
				      const struct rbx_behind_page *page)
{
	return page_address(backup->pages[page->memory]);
}

/* Ends an I/O that the volume does not end. */
static inline void rbx_backup_io_end(struct rbx_backup_io *backup_io, int status)
{
	backup_io->io.status = status;
	backup_io->io.ended_ns = ktime_get_ns();
	backup_io->done(&backup_io->io);
}

/* Tells waiters of a change. Called with the lock. The thread that closes the backup
 * takes the lock before it frees the backup. */
static inline void rbx_backup_wake(struct rbx_backup *backup)
{
	WRITE_ONCE(backup->wanted, true);
	wake_up(&backup->changed);
}

/* 0 or -ENOMEM; some may have been made then. */
int rbx_backup_transfers_make(struct rbx_backup *backup);
/* No transfer may be in flight. */
void rbx_backup_transfers_free(struct rbx_backup *backup);

/* Called by the thread. Each does one thing, and returns whether there was one to do. */

/* Goes on with a read that the volume could not serve. */
bool rbx_backup_read(struct rbx_backup *backup);
/* Sends a run to the disk. */
bool rbx_backup_send(struct rbx_backup *backup);
/* Submits a write that has waited for room. If it fails, it wakes the thread and no more
 * writes are submitted now: the reason may be that earlier writes still wait in the plug
 * and hold what is missing. */
bool rbx_backup_admit(struct rbx_backup *backup);

#endif
