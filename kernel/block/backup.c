/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * backup.c - opens and closes a backup, and runs its thread; see backup.h.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kernel/block/backup_state.h"

#define BUFFER_BYTES_DEFAULT (16ull << 20)
#define BUFFER_BYTES_MIN (RBX_BEHIND_BLOCKS_MAX * RBX_PAGE_BYTES)
#define BUFFER_BYTES_MAX (1ull << 30)

/* ---- The thread -----------------------------------------------------------------*/

/* Starts transfers, reads first, as programs wait for them. Bounded: a disk without
 * interrupts may end each of them at once, and new ones may have come. Returns whether it
 * stopped at the bound. */
static bool transfers_start(struct rbx_backup *backup)
{
	struct blk_plug plug;
	u32 i = 0;

	blk_start_plug(&plug);
	while (i < RBX_TRANSFERS &&
	       (rbx_backup_read(backup) || rbx_backup_send(backup)))
		i++;
	blk_finish_plug(&plug);
	return i == RBX_TRANSFERS;
}

static void see_to_all(struct rbx_backup *backup)
{
	bool more;

	do {
		more = transfers_start(backup);
		while (rbx_backup_admit(backup))
			cond_resched();
		rbx_volume_unplug(backup->volume, &backup->plug);
		cond_resched();
	} while (more);
}

static int backup_thread(void *user)
{
	struct rbx_backup *backup = user;

	/* To free memory, pages may have to be written through this thread. */
	memalloc_noio_save();
	while (!kthread_should_stop()) {
		wait_event_idle(backup->changed,
				xchg(&backup->wanted, false) ||
					kthread_should_stop());
		see_to_all(backup);
	}
	return 0;
}

/* ---- Open and close -------------------------------------------------------------*/

void rbx_backup_options_defaults(struct rbx_backup_options *options)
{
	*options = (struct rbx_backup_options){
		.buffer_bytes = BUFFER_BYTES_DEFAULT,
	};
}

static int disk_claim(struct rbx_backup *backup, const char *path)
{
	u64 wanted_bytes = rbx_volume_size_bytes(backup->volume);
	u64 size_bytes;
	int err = rbx_claim_open(&backup->disk, path);

	if (err) {
		pr_err("rdmabox: cannot open %s for a backup: error %d\n", path,
		       err);
		return err == -EACCES ? -EROFS : err;
	}
	size_bytes = bdev_nr_bytes(backup->disk.device);
	if (size_bytes >= wanted_bytes)
		return 0;
	pr_err("rdmabox: %s has %llu bytes, less than the %llu that it is to back up\n",
	       path, size_bytes, wanted_bytes);
	rbx_claim_close(&backup->disk);
	return -EFBIG;
}

static void memory_free(struct rbx_backup *backup)
{
	u32 i;

	for (i = 0; i < backup->page_count; i++)
		__free_page(backup->pages[i]);
	kvfree(backup->pages);
	vfree(backup->behind);
}

static int memory_make(struct rbx_backup *backup, u64 buffer_bytes)
{
	u64 blocks = rbx_volume_size_bytes(backup->volume) / RBX_PAGE_BYTES;
	u32 pages = (u32)(buffer_bytes / RBX_PAGE_BYTES);
	void *memory = vzalloc(rbx_write_behind_size(blocks, pages));

	if (!memory)
		return -ENOMEM;
	backup->behind = rbx_write_behind_init(memory, blocks, pages);
	backup->pages = kvcalloc(pages, sizeof(*backup->pages), GFP_KERNEL);
	while (backup->pages && backup->page_count < pages) {
		struct page *page = alloc_page(GFP_KERNEL);

		if (!page)
			break;
		backup->pages[backup->page_count++] = page;
	}
	if (backup->page_count == pages)
		return 0;
	memory_free(backup);
	return -ENOMEM;
}

static struct rbx_backup *backup_make(struct rbx_volume *volume)
{
	struct rbx_backup *backup = kvzalloc(sizeof(*backup), GFP_KERNEL);

	if (!backup)
		return NULL;
	backup->volume = volume;
	rbx_plug_init(&backup->plug);
	init_waitqueue_head(&backup->changed);
	spin_lock_init(&backup->lock);
	INIT_LIST_HEAD(&backup->reads);
	return backup;
}

int rbx_backup_open(const struct rbx_backup_options *options,
		    struct rbx_volume *volume, struct rbx_backup **out)
{
	struct rbx_backup *backup;
	int err;

	if (options->buffer_bytes < BUFFER_BYTES_MIN ||
	    options->buffer_bytes > BUFFER_BYTES_MAX) {
		pr_err("rdmabox: backup_buffer is out of bounds\n");
		return -EINVAL;
	}
	backup = backup_make(volume);
	if (!backup)
		return -ENOMEM;
	err = disk_claim(backup, options->device);
	if (err)
		goto out_free;
	err = memory_make(backup, options->buffer_bytes);
	if (err)
		goto out_close;
	err = rbx_backup_transfers_make(backup);
	if (err)
		goto out_free_memory;
	backup->thread = kthread_run(backup_thread, backup, "rbx_backup");
	if (IS_ERR(backup->thread)) {
		err = PTR_ERR(backup->thread);
		goto out_free_memory;
	}
	*out = backup;
	return 0;

out_free_memory:
	rbx_backup_transfers_free(backup);
	memory_free(backup);
out_close:
	rbx_claim_close(&backup->disk);
out_free:
	kvfree(backup);
	return err;
}

static bool is_idle(struct rbx_backup *backup)
{
	bool idle;

	spin_lock_irq(&backup->lock);
	idle = rbx_write_behind_is_idle(backup->behind);
	spin_unlock_irq(&backup->lock);
	return idle;
}

void rbx_backup_close(struct rbx_backup *backup)
{
	wait_event(backup->changed, is_idle(backup));
	kthread_stop(backup->thread);
	rbx_backup_transfers_free(backup);
	memory_free(backup);
	rbx_claim_close(&backup->disk);
	kvfree(backup);
}

u32 rbx_backup_dma_alignment(const struct rbx_backup *backup)
{
	return bdev_dma_alignment(backup->disk.device);
}

void rbx_backup_status(struct rbx_backup *backup,
		       struct rbx_backup_status *status)
{
	spin_lock_irq(&backup->lock);
	*status = backup->counts;
	status->backup_waits = backup->behind->waits_count;
	status->backup_lag_bytes =
		(u64)backup->behind->behind_count * RBX_PAGE_BYTES;
	spin_unlock_irq(&backup->lock);
}
