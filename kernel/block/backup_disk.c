/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * backup_disk.c - transfers to and from the disk of a backup.
 *
 * The thread starts them, since that may block. The disk's interrupt ends them, and wakes
 * the thread for the next.
 *
 * A read takes blocks that are in the buffer at once, and the others from the disk, run
 * by run. In between a block may move from one to the other; the read looks again when it
 * comes to the block. A write that begins during the read has no order with it.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/block/backup_state.h"

/* ---- Transfers ------------------------------------------------------------------*/

static struct rbx_transfer *transfer_take_locked(struct rbx_backup *backup)
{
	struct rbx_transfer *transfer = backup->free_transfers;

	lockdep_assert_held(&backup->lock);
	if (transfer)
		backup->free_transfers = transfer->next;
	return transfer;
}

static void transfer_give_locked(struct rbx_transfer *transfer)
{
	lockdep_assert_held(&transfer->backup->lock);
	transfer->next = transfer->backup->free_transfers;
	transfer->backup->free_transfers = transfer;
}

static void failed_locked(struct rbx_backup *backup,
			  const struct rbx_transfer *transfer)
{
	lockdep_assert_held(&backup->lock);
	if (backup->counts.backup_errors++)
		return;
	pr_err("rdmabox: the backup on %pg cannot %s %u blocks at %llu (%d); backup_errors counts what comes after it\n",
	       backup->disk.device, transfer->read ? "read" : "write",
	       transfer->run.count, transfer->run.block,
	       blk_status_to_errno(transfer->bio.bi_status));
}

/* Ends the writes that only the disk has. */
static void writes_end(struct rbx_node *ended)
{
	struct rbx_node *next;

	for (; ended; ended = next) {
		struct rbx_backup_io *backup_io =
			container_of(ended, struct rbx_backup_io, write.node);

		next = ended->next;
		rbx_backup_io_end(backup_io,
				  backup_io->write.failed ? -EIO : 0);
	}
}

/* Called by an interrupt. Once the lock is released the backup may have been freed. */
static void transfer_done(struct bio *bio)
{
	struct rbx_transfer *transfer =
		container_of(bio, struct rbx_transfer, bio);
	struct rbx_backup *backup = transfer->backup;
	struct rbx_backup_io *read = transfer->read, *read_ended = NULL;
	struct rbx_node *ended = NULL;
	unsigned long flags;

	spin_lock_irqsave(&backup->lock, flags);
	if (bio->bi_status)
		failed_locked(backup, transfer);
	if (!read) {
		ended = rbx_write_behind_sent(backup->behind, &transfer->run,
					      !bio->bi_status);
	} else if (bio->bi_status) {
		read_ended = read; /* with the status of the volume */
	} else {
		read->served_count += transfer->run.count;
		list_add(&read->link, &backup->reads);
	}
	transfer_give_locked(transfer);
	rbx_backup_wake(backup);
	spin_unlock_irqrestore(&backup->lock, flags);
	writes_end(ended);
	if (read_ended)
		rbx_backup_io_end(read_ended, read_ended->io.status);
}

static void transfer_prepare(struct rbx_transfer *transfer, blk_opf_t opf)
{
	struct bio *bio = &transfer->bio;

	bio_reset(bio, transfer->backup->disk.device, opf);
	bio->bi_iter.bi_sector = transfer->run.block *
				 (RBX_PAGE_BYTES >> SECTOR_SHIFT);
	bio->bi_end_io = transfer_done;
}

int rbx_backup_transfers_make(struct rbx_backup *backup)
{
	struct rbx_transfer *transfer;
	u32 i;

	for (i = 0; i < RBX_TRANSFERS; i++) {
		transfer = kzalloc(sizeof(*transfer), GFP_KERNEL);
		if (!transfer)
			return -ENOMEM;
		transfer->backup = backup;
		bio_init(&transfer->bio, backup->disk.device, transfer->vecs,
			 RBX_BEHIND_BLOCKS_MAX, REQ_OP_READ);
		spin_lock_irq(&backup->lock);
		transfer_give_locked(transfer);
		spin_unlock_irq(&backup->lock);
	}
	return 0;
}

void rbx_backup_transfers_free(struct rbx_backup *backup)
{
	struct rbx_transfer *transfer, *next;

	for (transfer = backup->free_transfers; transfer; transfer = next) {
		next = transfer->next;
		bio_uninit(&transfer->bio);
		kfree(transfer);
	}
}

/* ---- To the disk ----------------------------------------------------------------*/

/* The disk's throttling of writes does not apply, as with direct I/O: the number of
 * transfers is the bound. */
#define WRITE_FLAGS (REQ_OP_WRITE | REQ_SYNC | REQ_IDLE)

bool rbx_backup_send(struct rbx_backup *backup)
{
	struct rbx_transfer *transfer;
	u32 i;

	spin_lock_irq(&backup->lock);
	transfer = transfer_take_locked(backup);
	if (transfer &&
	    !rbx_write_behind_send(backup->behind, &transfer->run)) {
		transfer_give_locked(transfer);
		transfer = NULL;
	}
	backup->counts.backup_writes += transfer != NULL;
	spin_unlock_irq(&backup->lock);
	if (!transfer)
		return false;
	transfer->read = NULL;
	transfer_prepare(transfer, WRITE_FLAGS);
	for (i = 0; i < transfer->run.count; i++)
		__bio_add_page(&transfer->bio,
			       backup->pages[transfer->run.pages[i]->memory],
			       RBX_PAGE_BYTES, 0);
	submit_bio(&transfer->bio);
	return true;
}

/* ---- From the disk --------------------------------------------------------------*/

/* Finds the run of blocks of a read, from its next one on, that are on the disk. */
static void run_find_locked(struct rbx_transfer *transfer)
{
	const struct rbx_backup_io *backup_io = transfer->read;
	u32 left = backup_io->write.count - backup_io->served_count;
	struct rbx_behind_run *run = &transfer->run;
	const struct rbx_behind_page *page;

	lockdep_assert_held(&transfer->backup->lock);
	run->block = backup_io->write.block + backup_io->served_count;
	run->count = 1;
	while (run->count < left &&
	       rbx_write_behind_find(transfer->backup->behind,
				     run->block + run->count,
				     &page) == RBX_BEHIND_DISK)
		run->count++;
}

/* Serves the next block if it is in the buffer. Returns where it was found. If it is on
 * the disk, the run has to be read. */
static enum rbx_behind_held block_serve(struct rbx_transfer *transfer)
{
	struct rbx_backup *backup = transfer->backup;
	struct rbx_backup_io *backup_io = transfer->read;
	u64 block = backup_io->write.block + backup_io->served_count;
	off_t at_bytes = (off_t)backup_io->served_count * RBX_PAGE_BYTES;
	const struct rbx_behind_page *page;
	struct rbx_io *io = &backup_io->io;
	enum rbx_behind_held held;

	spin_lock_irq(&backup->lock);
	held = rbx_write_behind_find(backup->behind, block, &page);
	if (held == RBX_BEHIND_DISK)
		run_find_locked(transfer);
	if (held == RBX_BEHIND_PAGE)
		sg_pcopy_from_buffer(io->sg, io->sg_count,
				     rbx_backup_memory(backup, page),
				     RBX_PAGE_BYTES, at_bytes);
	spin_unlock_irq(&backup->lock);
	if (held == RBX_BEHIND_NEW)
		sg_zero_buffer(io->sg, io->sg_count, RBX_PAGE_BYTES, at_bytes);
	return held;
}

/* Goes on with a read until it needs the disk. False: it did not need it, and has ended. */
static bool read_needs_disk(struct rbx_transfer *transfer)
{
	struct rbx_backup_io *backup_io = transfer->read;

	for (; backup_io->served_count < backup_io->write.count;
	     backup_io->served_count++) {
		switch (block_serve(transfer)) {
		case RBX_BEHIND_DISK:
			return true;
		case RBX_BEHIND_LOST: /* with the status of the volume */
			rbx_backup_io_end(backup_io, backup_io->io.status);
			return false;
		default:
			break;
		}
	}
	rbx_backup_io_end(backup_io, 0);
	return false;
}

/* Adds the memory of a read from an offset on. */
static void bio_add_range(struct bio *bio, const struct rbx_io *io,
			  u32 skip_bytes, u32 length_bytes)
{
	struct scatterlist *sg;
	u32 i;

	for_each_sg(io->sg, sg, io->sg_count, i) {
		u32 skip = min(skip_bytes, sg->length);
		u32 take = min(length_bytes, sg->length - skip);

		if (take)
			__bio_add_page(bio, sg_page(sg), take,
				       sg->offset + skip);
		skip_bytes -= skip;
		length_bytes -= take;
	}
}

static void run_read(struct rbx_transfer *transfer)
{
	const struct rbx_backup_io *backup_io = transfer->read;

	transfer_prepare(transfer, REQ_OP_READ | REQ_SYNC);
	bio_add_range(&transfer->bio, &backup_io->io,
		      backup_io->served_count * RBX_PAGE_BYTES,
		      transfer->run.count * RBX_PAGE_BYTES);
	submit_bio(&transfer->bio);
}

bool rbx_backup_read(struct rbx_backup *backup)
{
	struct rbx_backup_io *backup_io;
	struct rbx_transfer *transfer = NULL;

	spin_lock_irq(&backup->lock);
	backup_io = list_first_entry_or_null(&backup->reads,
					     struct rbx_backup_io, link);
	if (backup_io && backup->free_transfers &&
	    rbx_write_behind_read_may_go(backup->behind))
		transfer = transfer_take_locked(backup);
	if (transfer)
		list_del(&backup_io->link);
	spin_unlock_irq(&backup->lock);
	if (!transfer)
		return false;
	transfer->read = backup_io;
	if (read_needs_disk(transfer)) {
		run_read(transfer);
		return true;
	}
	spin_lock_irq(&backup->lock);
	transfer_give_locked(transfer);
	spin_unlock_irq(&backup->lock);
	return true;
}
