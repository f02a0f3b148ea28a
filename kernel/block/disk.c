/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk.c - the block device: its limits and its requests; see disk.h.
 *
 * A request of the block layer is one I/O of the volume. The I/O is in the memory that
 * comes with the request, so nothing is allocated for it. A request never crosses a
 * multiple of the largest length, which is two of the shortest slabs. So it has at most
 * one piece for each of its segments, and one more. There are so many pieces for each
 * tag, so a request that has a tag always finds room.
 *
 * Reads have their own hardware queue, and so their own tags. If a system is short of
 * memory it writes many pages at once, and a program waits for each page that is read. If
 * both took their tags from one set, writes to a slow server could hold all tags, and a
 * read from another server would not even reach the driver. A bound on writes in
 * queue_rq() would not help: without a scheduler a request has its tag before the driver
 * sees it, and keeps the tag while it is refused; and requests behind it in the queue
 * wait too. Here nothing is refused, so nothing has to be restarted. The block layer
 * wakes what waits for a tag when one of its own queue is free.
 *
 * Requests that come together (blk-mq says which is the last) wait in the plug of their
 * hardware queue. They are submitted to the volume in the caller's context. The thread of
 * a poller gets them back and counts them, and a softirq ends them (ending.h).
 *
 * There is no write cache: acknowledged data are in the memory of all replicas. So the
 * block layer sends no flush, and each write is FUA anyway. With replicas, a backup or
 * checksums, pages must not change while they are being written, or the copies would
 * differ (stable_writes).
 *
 * Slabs that are discarded as a whole go back to the servers and read as zeros. Slabs
 * that are discarded in part stay as they are. A slab that was never written has no
 * memory either. A backup does not know this and would read older contents of its disk.
 * So a device with a backup borrows all its memory when it is attached, and keeps it.
 */
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "kernel/block/bounce.h"
#include "kernel/block/compat.h"
#include "kernel/block/disk.h"
#include "kernel/block/ending.h"

#define BLOCK_BYTES 4096u

struct rbx_disk {
	struct rbx_volume *volume;
	struct rbx_backup *backup; /* NULL: none */
	struct rbx_bounces *bounces; /* NULL: there are no checksums */
	struct blk_mq_tag_set tag_set;
	struct gendisk *disk;
	struct rbx_disk_tally *tallies; /* by enum rbx_io_op */
	spinlock_t tally_lock; /* guards them: requests end in several threads */
	int number;
	const char *name; /* of the volume */
	struct rbx_disk_events events;
	bool leaving; /* guarded by open_mutex of the disk */
};

/* The state of each request. */
struct command {
	struct rbx_backup_io io;
	struct rbx_ending ending;
	u64 begin_ns;
	struct rbx_bounce *bounce; /* NULL: it uses its own memory */
	struct scatterlist sg[RBX_DISK_SEGMENTS];
};
static_assert(RBX_DISK_BYTES_MAX <= RBX_BEHIND_BLOCKS_MAX * BLOCK_BYTES);
static_assert(RBX_DISK_SEGMENTS <= RBX_BEHIND_BLOCKS_MAX);
static_assert(RBX_DISK_BYTES_MAX <= 2 * RBX_SLAB_BYTES_MIN);
/* Writes, and reads. It has a price: blk-mq adds the kobject of a processor to both
 * queues, but it can only be below one. So when the device is removed the kernel leaks
 * that of the first (4 KiB; 6.1 to 6.12). */
#define QUEUES 2u
static_assert(HCTX_TYPE_DEFAULT == 0 && HCTX_TYPE_READ == 1);
static_assert(QUEUES * RBX_DISK_QUEUE_DEPTH_MAX * (RBX_DISK_SEGMENTS + 1) <=
	      RBX_PIECES_MAX);

static DEFINE_IDA(numbers);

/* ---- Requests ----------------------------------------------------------------*/

static void tally(struct rbx_disk *disk, struct request *rq,
		  const struct command *command)
{
	const struct rbx_io *io = &command->io.io;
	unsigned long flags;

	spin_lock_irqsave(&disk->tally_lock, flags);
	rbx_disk_tally_add(&disk->tallies[io->op], blk_rq_bytes(rq),
			   io->status, command->begin_ns, io->ended_ns);
	spin_unlock_irqrestore(&disk->tally_lock, flags);
}

static void io_done(struct rbx_io *io)
{
	struct command *command = container_of(io, struct command, io.io);
	struct request *rq = blk_mq_rq_from_pdu(command);

	/* Otherwise it did not begin (see complete_rq), so it is not counted. */
	if (io->status != -EAGAIN)
		tally(rq->q->queuedata, rq, command);
	rbx_ending_begin(&command->ending, rq);
}

static void complete_rq(struct request *rq)
{
	struct command *command = blk_mq_rq_to_pdu(rq);
	struct rbx_io *io = &command->io.io;

	if (command->bounce)
		rbx_bounce_end(command->bounce, io);
	/* A write that waited for the backup's memory found too little of something else.
	 * It comes again, like one that queue_rq() refused. */
	if (io->status == -EAGAIN) {
		blk_mq_requeue_request(rq, true);
		return;
	}
	blk_mq_end_request(rq, errno_to_blk_status(io->status));
}

static void command_fill(struct request *rq)
{
	struct command *command = blk_mq_rq_to_pdu(rq);

	/* Not all entries: this would clear 1 KiB for each page. */
	sg_init_table(command->sg, blk_rq_nr_phys_segments(rq));
	/* The block layer has no start time if queue/iostats is 0. */
	command->begin_ns = rq->start_time_ns ?: ktime_get_ns();
	command->io.io = (struct rbx_io){
		.op = op_is_write(req_op(rq)) ? RBX_IO_WRITE : RBX_IO_READ,
		.urgent = req_op(rq) == REQ_OP_READ, /* a program waits for it */
		.offset_bytes = (u64)blk_rq_pos(rq) << SECTOR_SHIFT,
		.sg = command->sg,
		.sg_count = (u32)blk_rq_map_sg(rq->q, rq, command->sg),
		.done = io_done,
	};
}

/* A discard comes after the writes that were submitted before it and wait in the plug. */
static blk_status_t discard(struct rbx_disk *disk, struct request *rq,
			    struct rbx_plug *plug)
{
	int err;

	blk_mq_start_request(rq);
	rbx_volume_unplug(disk->volume, plug);
	err = rbx_volume_discard(disk->volume,
				 (u64)blk_rq_pos(rq) << SECTOR_SHIFT,
				 blk_rq_bytes(rq));
	blk_mq_end_request(rq, errno_to_blk_status(err));
	return BLK_STS_OK;
}

static int command_submit(struct rbx_disk *disk, struct command *command,
			  struct rbx_plug *plug)
{
	struct rbx_io *io = &command->io.io;
	int err;

	command->bounce = NULL;
	if (disk->bounces && !rbx_bounce_spares(io)) {
		command->bounce = rbx_bounce_begin(disk->bounces, io);
		if (!command->bounce)
			return -EAGAIN;
	}
	if (disk->backup)
		err = rbx_backup_submit(disk->backup, &command->io, plug);
	else
		err = rbx_volume_submit(disk->volume, io, plug);
	if (err && command->bounce) {
		io->status = err;
		rbx_bounce_end(command->bounce, io);
	}
	return err;
}

static blk_status_t queue_rq(struct blk_mq_hw_ctx *hctx,
			     const struct blk_mq_queue_data *data)
{
	struct rbx_disk *disk = hctx->queue->queuedata;
	struct rbx_plug *plug = hctx->driver_data;
	int err;

	if (req_op(data->rq) == REQ_OP_DISCARD)
		return discard(disk, data->rq, plug);
	if (req_op(data->rq) != REQ_OP_READ && req_op(data->rq) != REQ_OP_WRITE)
		return BLK_STS_NOTSUPP;
	blk_mq_start_request(data->rq);
	command_fill(data->rq);
	err = command_submit(disk, blk_mq_rq_to_pdu(data->rq), plug);
	/* Also after a failure: it may be the last of a batch. */
	if (data->last || err)
		rbx_volume_unplug(disk->volume, plug);
	/* The block layer tries again when a request of this queue has ended, or after
	 * some milliseconds. */
	if (err == -EAGAIN || err == -ENOMEM)
		return BLK_STS_RESOURCE;
	return errno_to_blk_status(err);
}

static void commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	struct rbx_disk *disk = hctx->queue->queuedata;

	rbx_volume_unplug(disk->volume, hctx->driver_data);
}

static int init_hctx(struct blk_mq_hw_ctx *hctx, void *user, unsigned int index)
{
	struct rbx_plug *plug = kzalloc(sizeof(*plug), GFP_KERNEL);

	if (!plug)
		return -ENOMEM;
	rbx_plug_init(plug);
	hctx->driver_data = plug;
	return 0;
}

static void exit_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	kfree(hctx->driver_data);
}

/* One queue for each type, for all processors. So as many requests of a type may be in
 * flight, whichever processors they come from. A kernel that writes a crash dump has only
 * one type. */
static void map_queues(struct blk_mq_tag_set *set)
{
	unsigned int type;

	for (type = 0; type < set->nr_maps; type++) {
		set->map[type].nr_queues = 1;
		set->map[type].queue_offset = type;
		blk_mq_map_queues(&set->map[type]);
	}
}

static const struct blk_mq_ops operations = {
	.queue_rq = queue_rq,
	.commit_rqs = commit_rqs,
	.map_queues = map_queues,
	.complete = complete_rq,
	.init_hctx = init_hctx,
	.exit_hctx = exit_hctx,
};

int rbx_disk_may_open(struct gendisk *disk)
{
	return ((struct rbx_disk *)disk->private_data)->leaving ? -ENXIO : 0;
}

static const struct block_device_operations device_operations = {
	.owner = THIS_MODULE,
	.open = rbx_disk_open,
};

/* ---- Attach and detach ----------------------------------------------------------*/

static int disk_show(struct rbx_disk *disk, u32 queue_depth,
		     const struct rbx_volume_options *options)
{
	struct rbx_disk_limits limits = {
		.block_bytes = BLOCK_BYTES,
		.request_bytes = RBX_DISK_BYTES_MAX,
		.segments = RBX_DISK_SEGMENTS,
		.dma_alignment = SECTOR_SIZE - 1,
		.stable_writes = rbx_volume_replicas(disk->volume) > 1 ||
				 disk->backup || disk->bounces,
		.discard_bytes = options->on_demand && !options->volume ?
					 rbx_volume_slab_bytes(disk->volume) :
					 0,
	};
	int err;

	if (disk->backup)
		limits.dma_alignment |= rbx_backup_dma_alignment(disk->backup);
	disk->tag_set = (struct blk_mq_tag_set){
		.ops = &operations,
		.nr_hw_queues = QUEUES,
		.nr_maps = QUEUES,
		.queue_depth = queue_depth,
		.numa_node = rbx_volume_node(disk->volume),
		.cmd_size = sizeof(struct command),
		.flags = BLK_MQ_F_SHOULD_MERGE | BLK_MQ_F_NO_SCHED_BY_DEFAULT,
	};
	err = blk_mq_alloc_tag_set(&disk->tag_set);
	if (err)
		return err;
	disk->disk = rbx_disk_alloc(&disk->tag_set, &limits, disk);
	if (IS_ERR(disk->disk)) {
		err = PTR_ERR(disk->disk);
		goto out_free_tags;
	}
	snprintf(disk->disk->disk_name, DISK_NAME_LEN, "rdmabox%d",
		 disk->number);
	disk->disk->fops = &device_operations;
	disk->disk->private_data = disk;
	disk->disk->flags |= GENHD_FL_NO_PART;
	set_capacity(disk->disk,
		     rbx_volume_size_bytes(disk->volume) >> SECTOR_SHIFT);
	err = device_add_disk(NULL, disk->disk,
			      rbx_disk_attribute_groups);
	if (!err) {
		rbx_disk_events_show(&disk->events, disk->disk);
		return 0;
	}
	put_disk(disk->disk);
out_free_tags:
	blk_mq_free_tag_set(&disk->tag_set);
	return err;
}

static bool options_are_good(const struct rbx_volume_options *options,
			     const struct rbx_backup_options *backup)
{
	if (options->ios_max < 1 || options->ios_max > RBX_DISK_QUEUE_DEPTH_MAX)
		pr_err("rdmabox: queue_depth is out of bounds\n");
	else if (options->volume && backup->device)
		pr_err("rdmabox: a named volume has no backup: the disk has nothing of what was written before\n");
	else
		return true;
	return false;
}

int rbx_disk_attach(const struct rbx_volume_options *wanted,
		    const struct rbx_backup_options *backup_options,
		    const char *name,
		    struct rbx_disk **out)
{
	struct rbx_volume_options options = *wanted;
	struct rbx_disk *disk;
	int err;

	if (!options_are_good(&options, backup_options))
		return -EINVAL;
	options.checksums &= !options.volume; /* its record says whether it has any */
	disk = kzalloc(sizeof(*disk), GFP_KERNEL);
	if (!disk)
		return -ENOMEM;
	disk->name = name;
	spin_lock_init(&disk->tally_lock);
	rbx_disk_events_init(&disk->events);
	disk->tallies = kvcalloc(2, sizeof(*disk->tallies), GFP_KERNEL);
	disk->number = ida_alloc(&numbers, GFP_KERNEL);
	if (disk->number < 0) {
		err = disk->number;
		goto out_free;
	}
	err = -ENOMEM;
	if (!disk->tallies)
		goto out_free_number;
	options.ios_max *= QUEUES;
	options.io_segments_max = RBX_DISK_SEGMENTS + 1;
	options.on_demand &= !backup_options->device;
	options.state_changed = rbx_disk_state_changed;
	options.user = &disk->events;
	err = rbx_volume_open(&options, &disk->volume);
	if (err)
		goto out_free_number;
	if (rbx_volume_has_checksums(disk->volume)) {
		disk->bounces = rbx_bounces_make(RBX_DISK_BYTES_MAX);
		err = disk->bounces ? 0 : -ENOMEM;
	}
	if (!err && backup_options->device)
		err = rbx_backup_open(backup_options, disk->volume,
				      &disk->backup);
	if (err)
		goto out_close;
	err = disk_show(disk, wanted->ios_max, &options);
	if (err)
		goto out_close_backup;
	*out = disk;
	return 0;

out_close_backup:
	if (disk->backup)
		rbx_backup_close(disk->backup);
out_close:
	rbx_volume_close(disk->volume);
out_free_number:
	ida_free(&numbers, disk->number);
out_free:
	rbx_bounces_free(disk->bounces);
	kvfree(disk->tallies);
	kfree(disk);
	return err;
}

int rbx_disk_leave(struct rbx_disk *disk)
{
	mutex_lock(&disk->disk->open_mutex);
	disk->leaving = !disk_openers(disk->disk);
	mutex_unlock(&disk->disk->open_mutex);
	return disk->leaving ? 0 : -EBUSY;
}

void rbx_disk_detach(struct rbx_disk *disk)
{
	rbx_disk_events_show(&disk->events, NULL);
	del_gendisk(disk->disk);
	put_disk(disk->disk);
	blk_mq_free_tag_set(&disk->tag_set);
	if (disk->backup)
		rbx_backup_close(disk->backup);
	rbx_volume_close(disk->volume);
	ida_free(&numbers, disk->number);
	rbx_bounces_free(disk->bounces);
	kvfree(disk->tallies);
	kfree(disk);
}

const char *rbx_disk_name(const struct rbx_disk *disk)
{
	return disk->disk->disk_name;
}

const char *rbx_disk_volume_name(const struct rbx_disk *disk)
{
	return disk->name;
}

struct rbx_volume *rbx_disk_volume(const struct rbx_disk *disk)
{
	return disk->volume;
}

const struct rbx_disk_tally *rbx_disk_tally(const struct rbx_disk *disk,
					    enum rbx_io_op op)
{
	return &disk->tallies[op];
}

struct rbx_backup *rbx_disk_backup(const struct rbx_disk *disk)
{
	return disk->backup;
}
