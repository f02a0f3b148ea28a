/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_keeper.c - the thread that sees to a volume's lost replicas.
 *
 * I/Os only note a loss and wake the keeper; what may block is done here: memory
 * is borrowed from another server, and given back. A round goes over all slabs
 * and does for each what rbx_slab_task() says. Slabs are rebuilt one at a time,
 * with RBX_COPIES_MAX cells under way; the copies go on by themselves, each
 * started by the end of the one before, and the last wakes the keeper. Meanwhile
 * I/Os go on as ever, writes to the new replica too.
 *
 * Where no server can take a replica it tries again every second. The memory of
 * the copies is had beforehand: a rebuild must not fail for the want of it, nor
 * may anything else here begin I/O to get memory.
 */
#include <linux/kthread.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kernel/lib/trace.h"
#include "kernel/lib/volume.h"

enum rbx_slab_task rbx_volume_task(struct rbx_volume *volume,
				   struct rbx_slab *slab)
{
	enum rbx_slab_task task;

	rbx_volume_lock(volume, slab);
	task = rbx_slab_task(slab);
	rbx_volume_unlock(volume, slab);
	return task;
}

void rbx_volume_keeper_wake(struct rbx_volume *volume)
{
	RBX_STORE_RELEASE(&volume->keeper_wanted, true);
	wake_up(&volume->keeper_changed);
}

/* ---- Rebuild ------------------------------------------------------------------*/

static void copy_start(struct rbx_volume *volume, struct rbx_piece *copy)
{
	struct rbx_piece_list list = { 0 };

	rbx_piece_list_add(&list, copy);
	rbx_volume_start(volume, &list);
}

/* Starts the next copy of a rebuild; false: there is none. */
static bool copy_next(struct rbx_volume *volume, struct rbx_slab *slab,
		      struct rbx_piece *copy)
{
	bool more;

	rbx_volume_lock(volume, slab);
	more = rbx_slab_copy_next(slab, copy);
	rbx_volume_unlock(volume, slab);
	if (more)
		copy_start(volume, copy);
	return more;
}

static void rebuild_set(struct rbx_volume *volume, struct rbx_slab *slab)
{
	RBX_STORE_RELEASE(&volume->rebuild.slab, slab);
	rbx_volume_keeper_wake(volume);
}

static bool is_rebuilding(const struct rbx_volume *volume)
{
	return RBX_LOAD_ACQUIRE(&volume->rebuild.slab) != NULL;
}

static void rebuild_start(struct rbx_volume *volume, struct rbx_slab *slab)
{
	bool any = false;
	uint32_t i;

	rebuild_set(volume, slab);
	for (i = 0; i < RBX_COPIES_MAX; i++) {
		/* The first may have gone over all cells already, and ended
		 * the rebuild; then this finds no more. */
		any |= copy_next(volume, slab, volume->rebuild.copies[i]);
	}
	if (!any) /* the target was lost before the first copy */
		rebuild_set(volume, NULL);
}

void rbx_volume_copy_ended(struct rbx_volume *volume, struct rbx_piece *piece)
{
	struct rbx_slab *slab = piece->slab;
	bool last, more;

	if (piece->status == 0)
		RBX_ADD_RELAXED(&volume->rebuilt_bytes, piece->length_bytes);
	rbx_volume_lock(volume, slab);
	last = rbx_slab_copy_done(slab, piece);
	more = !last && rbx_slab_copy_next(slab, piece);
	rbx_volume_unlock(volume, slab);
	/* Without more the piece may be part of the next rebuild by now. */
	if (more)
		copy_start(volume, piece);
	else if (last)
		rebuild_set(volume, NULL);
}

/* ---- A round ------------------------------------------------------------------*/

/* Returns whether no server could take the replica. */
static bool replace(struct rbx_volume *volume, struct rbx_slab *slab)
{
	if (!rbx_volume_borrow(volume, slab, RBX_REPLICA_REBUILDING))
		return false;
	rbx_volume_check_leaving(volume, slab);
	return true;
}

/* Returns whether the slab stays without a replica. */
static bool slab_tend(struct rbx_volume *volume, struct rbx_slab *slab)
{
	uint32_t i;

	/* Bounded: a slot can be given back once, and one more is borrowed. */
	for (i = 0; i < 2 * RBX_SLOTS_MAX; i++) {
		enum rbx_slab_task task = rbx_volume_task(volume, slab);

		if (task != RBX_TASK_NONE)
			trace_rdmabox_slab_task(slab->index, task);
		switch (task) {
		case RBX_TASK_GIVE_BACK:
			rbx_volume_give_back(volume, slab);
			break;
		case RBX_TASK_BORROW:
			if (replace(volume, slab))
				return true;
			break;
		case RBX_TASK_COPY:
			if (!is_rebuilding(volume))
				rebuild_start(volume, slab);
			return false;
		case RBX_TASK_NONE:
			return false;
		}
	}
	return false;
}

/* Marks what a dead server held as lost; fragments that failed there have done
 * so already for their slabs. */
static void server_down(struct rbx_volume *volume, uint32_t index)
{
	uint32_t i;

	spin_lock(&volume->servers_lock);
	rbx_volume_map_server_down(volume->map, index);
	spin_unlock(&volume->servers_lock);
	for (i = 0; i < volume->map->slab_count; i++) {
		struct rbx_slab *slab = &volume->map->slabs[i];

		rbx_volume_lock(volume, slab);
		rbx_slab_server_down(slab, index);
		rbx_volume_unlock(volume, slab);
	}
}

/* Returns whether it is to be tried again later. */
static bool keeper_round(struct rbx_volume *volume)
{
	uint32_t i, stuck_count = 0;

	for (i = 0; i < volume->server_count; i++)
		if (RBX_EXCHANGE(&volume->servers[i].went_down, false))
			server_down(volume, i);
	for (i = 0; i < volume->map->slab_count; i++) {
		stuck_count += slab_tend(volume, &volume->map->slabs[i]);
		cond_resched();
	}
	return rbx_volume_pay_owed(volume) || stuck_count > 0;
}

static bool is_wanted(struct rbx_volume *volume)
{
	return RBX_LOAD_ACQUIRE(&volume->keeper_wanted) ||
	       kthread_should_stop();
}

static int keeper_main(void *argument)
{
	unsigned int noio = memalloc_noio_save();
	struct rbx_volume *volume = argument;

	while (!kthread_should_stop()) {
		bool again;

		RBX_EXCHANGE(&volume->keeper_wanted, false);
		again = keeper_round(volume);
		wait_event_idle_timeout(volume->keeper_changed,
					is_wanted(volume),
					again ? HZ : MAX_SCHEDULE_TIMEOUT);
	}
	memalloc_noio_restore(noio);
	return 0;
}

/* ---- Start and stop ------------------------------------------------------------*/

static int copy_make(struct rbx_volume *volume, uint32_t index)
{
	size_t cell_bytes = (size_t)1 << volume->map->shape.cell_shift;
	struct ib_device *device = volume->ctx->device;
	uint32_t slots = volume->map->shape.slots;
	struct rbx_piece *copy = kzalloc(rbx_piece_size(slots), GFP_KERNEL);
	u64 dma;

	volume->rebuild.copies[index] = copy;
	volume->rebuild.memory[index] = kmalloc(cell_bytes, GFP_KERNEL);
	if (!copy || !volume->rebuild.memory[index])
		return -ENOMEM;
	dma = ib_dma_map_single(device, volume->rebuild.memory[index],
				cell_bytes, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device, dma))
		return -ENOMEM;
	rbx_piece_init(copy, slots, volume, rbx_volume_parts_done);
	copy->kind = RBX_PIECE_COPY;
	copy->local_addr = dma;
	return 0;
}

int rbx_volume_keeper_start(struct rbx_volume *volume)
{
	int err = 0;
	uint32_t i;

	for (i = 0; i < RBX_COPIES_MAX && !err; i++)
		err = copy_make(volume, i);
	if (err)
		return err;
	volume->keeper = kthread_run(keeper_main, volume, "rdmabox/volume");
	return PTR_ERR_OR_ZERO(volume->keeper);
}

void rbx_volume_keeper_stop(struct rbx_volume *volume)
{
	kthread_stop(volume->keeper);
}

void rbx_volume_keeper_free(struct rbx_volume *volume)
{
	size_t cell_bytes = (size_t)1 << volume->map->shape.cell_shift;
	uint32_t i;

	wait_event(volume->keeper_changed, !is_rebuilding(volume));
	rbx_poller_visit(&volume->ctx->poller); /* the last copy may be in hand */
	for (i = 0; i < RBX_COPIES_MAX; i++) {
		struct rbx_piece *copy = volume->rebuild.copies[i];

		if (copy && copy->local_addr)
			ib_dma_unmap_single(volume->ctx->device,
					    copy->local_addr, cell_bytes,
					    DMA_BIDIRECTIONAL);
		kfree(volume->rebuild.memory[i]);
		kfree(copy);
	}
}
