/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * volume_keeper.c - the thread that makes the rounds of a volume's upkeep
 * (core/upkeep.h), and tells the log what it finds.
 *
 * Nothing here may begin I/O to get memory, as that I/O may be what waits for us;
 * the memory of a rebuild is had beforehand.
 */
#include <linux/kthread.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kernel/lib/trace.h"
#include "kernel/lib/volume.h"

void rbx_volume_tell(struct rbx_upkeep *upkeep, enum rbx_news news,
		     uint32_t count, uint32_t server, int err)
{
	struct rbx_volume *volume = rbx_volume_of_upkeep(upkeep);
	struct rbx_census census;

	rbx_upkeep_census(upkeep, &census);
	switch (news) {
	case RBX_NEWS_SERVER_DOWN:
		pr_warn("rdmabox: server %s is gone, and with it replicas of %u slabs\n",
			rbx_session_name(volume->servers[server].peer->session),
			count);
		break;
	case RBX_NEWS_REBUILD_STARTED:
		pr_info("rdmabox: %u slabs lack replicas, which are made anew; %u are one death from loss\n",
			count, census.last);
		break;
	case RBX_NEWS_REBUILD_DONE:
		pr_info("rdmabox: %u replicas were made anew, all are live\n",
			count);
		break;
	case RBX_NEWS_REBUILD_STUCK:
		pr_warn("rdmabox: no server takes the missing replicas of %u slabs (%d); %u are one death from loss\n",
			count, err, census.last);
		break;
	case RBX_NEWS_DATA_LOST:
		pr_err("rdmabox: the last replica of %u slabs is gone, what was on them cannot be read\n",
		       count);
		break;
	}
}

void rbx_volume_trace_task(struct rbx_upkeep *upkeep,
			   const struct rbx_slab *slab,
			   enum rbx_slab_task task)
{
	trace_rdmabox_slab_task(slab->index, task);
}

void rbx_volume_keeper_wake(struct rbx_volume *volume)
{
	RBX_STORE_RELEASE(&volume->keeper_wanted, true);
	wake_up(&volume->keeper_changed);
}

static bool is_wanted(struct rbx_volume *volume)
{
	return RBX_LOAD_ACQUIRE(&volume->keeper_wanted) ||
	       kthread_should_stop();
}

static int keeper_main(void *argument)
{
	const long retry_jiffies = msecs_to_jiffies(RBX_UPKEEP_RETRY_MS);
	unsigned int noio = memalloc_noio_save();
	struct rbx_volume *volume = argument;

	while (!kthread_should_stop()) {
		bool again;

		RBX_EXCHANGE(&volume->keeper_wanted, false);
		again = rbx_upkeep_round(&volume->upkeep);
		wait_event_idle_timeout(volume->keeper_changed,
					is_wanted(volume),
					again ? retry_jiffies :
						MAX_SCHEDULE_TIMEOUT);
	}
	memalloc_noio_restore(noio);
	return 0;
}

/* ---- Start and stop ------------------------------------------------------------*/

static int copy_make(struct rbx_volume *volume, uint32_t index)
{
	const struct rbx_slab_shape *shape = &volume->flow.map->shape;
	struct rbx_piece *copy;

	volume->copies_memory[index] =
		kmalloc((size_t)1 << shape->cell_shift, GFP_KERNEL);
	copy = kzalloc(rbx_piece_size(shape->slots, 0), GFP_KERNEL);
	if (!volume->copies_memory[index] || !copy) {
		kfree(copy);
		return -ENOMEM;
	}
	copy->memory = volume->copies_memory[index];
	/* Any slab, until it copies one: it is relocated under the lock of its slab. */
	copy->slab = rbx_slab_at(&volume->flow.map->shape, 0);
	rbx_rebuild_lend(&volume->flow, index, copy, 0);
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
	err = rbx_volume_mappings_open(volume);
	if (err)
		goto out_close;
	volume->keeper = kthread_run(keeper_main, volume, "rdmabox/volume");
	err = PTR_ERR_OR_ZERO(volume->keeper);
	if (!err)
		return 0;
out_close:
	rbx_volume_mappings_close(volume);
	return err;
}

void rbx_volume_keeper_stop(struct rbx_volume *volume)
{
	kthread_stop(volume->keeper);
}

void rbx_volume_copies_end(struct rbx_volume *volume)
{
	wait_event(volume->keeper_changed,
		   !rbx_rebuild_is_under_way(&volume->flow));
	rbx_volume_mappings_close(volume); /* the last copy may be in hand */
}

void rbx_volume_keeper_free(struct rbx_volume *volume)
{
	uint32_t i;

	for (i = 0; i < RBX_COPIES_MAX; i++) {
		kfree(volume->copies_memory[i]);
		kfree(volume->flow.rebuild.copies[i]);
	}
}
