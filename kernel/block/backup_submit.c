/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * backup_submit.c - sends the I/Os of a backup to its volume, and handles their end.
 *
 * A write takes its pages, is copied, and goes to the volume. It ends with the volume's
 * answer, and its pages go to the disk later. If no replica is left, it ends when the
 * disk has them. A read is left to the thread if the volume could not serve it, or if the
 * volume may have older contents of a block than the disk.
 */
#include <linux/module.h>

#include "kernel/block/backup_state.h"

/* ---- Ended by the volume -----------------------------------------------------*/

/*
 * -EIO usually means that no replica is left. But a failed device of this machine ends
 * with -EIO too, and so may the first of several slabs. Then another replica may still
 * have the older contents of these blocks. And a slab may become readable again, when a
 * copy of it that was nearly complete is finished. So the volume is not asked for these
 * blocks any more until it has taken them. Any other error comes from this machine: it is
 * reported, and afterwards either contents may be found.
 */
static enum rbx_behind_end end_of(int status)
{
	if (!status)
		return RBX_BEHIND_WELL;
	return status == -EIO ? RBX_BEHIND_THROUGH : RBX_BEHIND_BADLY;
}

static void write_done(struct rbx_backup *backup,
		       struct rbx_backup_io *backup_io)
{
	enum rbx_behind_end end = end_of(backup_io->io.status);
	unsigned long flags;

	spin_lock_irqsave(&backup->lock, flags);
	rbx_write_behind_end(backup->behind, &backup_io->write, end);
	rbx_backup_wake(backup);
	spin_unlock_irqrestore(&backup->lock, flags);
	if (end != RBX_BEHIND_THROUGH)
		backup_io->done(&backup_io->io);
}

static void read_add_locked(struct rbx_backup *backup,
			    struct rbx_backup_io *backup_io)
{
	lockdep_assert_held(&backup->lock);
	backup_io->served_count = 0;
	backup->counts.backup_reads++;
	list_add_tail(&backup_io->link, &backup->reads);
	rbx_backup_wake(backup);
}

static void read_done(struct rbx_backup *backup,
		      struct rbx_backup_io *backup_io)
{
	unsigned long flags;

	if (!backup_io->io.status) {
		backup_io->done(&backup_io->io);
		return;
	}
	spin_lock_irqsave(&backup->lock, flags);
	read_add_locked(backup, backup_io);
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

/* Leaves a read to the thread if the volume must not be asked for its blocks. A write
 * that went through to the disk has ended before a program that relies on it submits a
 * read. So the check without the lock sees it. */
static bool read_around_volume(struct rbx_backup *backup,
			       struct rbx_backup_io *backup_io)
{
	const struct rbx_behind_write *blocks = &backup_io->write;
	unsigned long flags;
	bool around;

	if (!READ_ONCE(backup->behind->only_count))
		return false;
	spin_lock_irqsave(&backup->lock, flags);
	around = rbx_write_behind_is_only_here(backup->behind, blocks->block,
					       blocks->count);
	if (around) {
		backup_io->io.status = -EIO;
		read_add_locked(backup, backup_io);
	}
	spin_unlock_irqrestore(&backup->lock, flags);
	return around;
}

static int read_submit(struct rbx_backup *backup,
		       struct rbx_backup_io *backup_io, struct rbx_plug *plug)
{
	if (read_around_volume(backup, backup_io))
		return 0;
	return rbx_volume_submit(backup->volume, &backup_io->io, plug);
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
		return read_submit(backup, backup_io, plug);
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
		rbx_backup_io_end(backup_io, err == -ENOMEM ? -EAGAIN : err);
	return !err;
}
