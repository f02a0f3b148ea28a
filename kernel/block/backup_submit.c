/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * backup_submit.c - the way of an I/O through the volume of a backup.
 *
 * A write takes its pages, is copied, and goes to the volume. What the volume says
 * ends it: its pages go to the disk behind it; or, where no replica is left, it
 * ends with them. A read that the volume could not serve is left to the thread.
 */
#include <linux/module.h>

#include "kernel/block/backup_state.h"

/* ---- Back from the volume -------------------------------------------------------*/

static void write_done(struct rbx_backup *backup,
		       struct rbx_backup_io *backup_io)
{
	/* No replica has it. Any other error is one of this machine: it is told,
	 * and either content may be found then. */
	bool through = backup_io->io.status == -EIO;
	unsigned long flags;

	spin_lock_irqsave(&backup->lock, flags);
	rbx_write_behind_end(backup->behind, &backup_io->write, through);
	rbx_backup_wake(backup);
	spin_unlock_irqrestore(&backup->lock, flags);
	if (!through)
		backup_io->done(&backup_io->io);
}

static void read_done(struct rbx_backup *backup,
		      struct rbx_backup_io *backup_io)
{
	unsigned long flags;

	if (!backup_io->io.status) {
		backup_io->done(&backup_io->io);
		return;
	}
	backup_io->served_count = 0;
	spin_lock_irqsave(&backup->lock, flags);
	backup->counts.backup_reads++;
	list_add_tail(&backup_io->link, &backup->reads);
	rbx_backup_wake(backup);
	spin_unlock_irqrestore(&backup->lock, flags);
}

static void volume_done(struct rbx_io *io)
{
	struct rbx_backup_io *backup_io =
		container_of(io, struct rbx_backup_io, io);

	if (io->op == RBX_IO_WRITE)
		write_done(backup_io->backup, backup_io);
	else
		read_done(backup_io->backup, backup_io);
}

/* ---- To the volume --------------------------------------------------------------*/

static void pages_fill(struct rbx_backup *backup,
		       struct rbx_backup_io *backup_io)
{
	struct rbx_behind_page *page = backup_io->write.pages;
	struct rbx_io *io = &backup_io->io;
	off_t at_bytes = 0;

	for (; page; page = page->next) {
		sg_pcopy_to_buffer(io->sg, io->sg_count,
				   rbx_backup_memory(backup, page),
				   RBX_PAGE_BYTES, at_bytes);
		at_bytes += RBX_PAGE_BYTES;
	}
}

/* A write that has its pages. */
static int write_submit(struct rbx_backup *backup,
			struct rbx_backup_io *backup_io, struct rbx_plug *plug)
{
	unsigned long flags;
	int err;

	pages_fill(backup, backup_io);
	err = rbx_volume_submit(backup->volume, &backup_io->io, plug);
	if (!err)
		return 0;
	spin_lock_irqsave(&backup->lock, flags);
	rbx_write_behind_cancel(backup->behind, &backup_io->write);
	rbx_backup_wake(backup);
	spin_unlock_irqrestore(&backup->lock, flags);
	return err;
}

static u32 blocks_of(const struct rbx_io *io)
{
	struct scatterlist *sg;
	u32 bytes = 0, i;

	for_each_sg(io->sg, sg, io->sg_count, i)
		bytes += sg->length;
	return bytes / RBX_PAGE_BYTES;
}

int rbx_backup_submit(struct rbx_backup *backup,
		      struct rbx_backup_io *backup_io, struct rbx_plug *plug)
{
	struct rbx_io *io = &backup_io->io;
	unsigned long flags;
	bool begun;

	backup_io->backup = backup;
	backup_io->done = io->done;
	io->done = volume_done;
	backup_io->write.block = io->offset_bytes / RBX_PAGE_BYTES;
	backup_io->write.count = blocks_of(io);
	if (io->op == RBX_IO_READ)
		return rbx_volume_submit(backup->volume, io, plug);
	spin_lock_irqsave(&backup->lock, flags);
	begun = rbx_write_behind_begin(backup->behind, &backup_io->write);
	spin_unlock_irqrestore(&backup->lock, flags);
	return begun ? write_submit(backup, backup_io, plug) : 0;
}

bool rbx_backup_admit(struct rbx_backup *backup)
{
	struct rbx_behind_write *write;
	struct rbx_backup_io *backup_io;
	int err;

	spin_lock_irq(&backup->lock);
	write = rbx_write_behind_admit(backup->behind);
	spin_unlock_irq(&backup->lock);
	if (!write)
		return false;
	backup_io = container_of(write, struct rbx_backup_io, write);
	err = write_submit(backup, backup_io, &backup->plug);
	if (err)
		rbx_backup_io_end(backup_io, err);
	return true;
}
