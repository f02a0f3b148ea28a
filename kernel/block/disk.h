/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk.h - a block device over a volume, /dev/rdmabox0 and so on.
 *
 *	disk.c     the device: its limits, and the way of its requests
 *	tally.h    what it counts of them; attributes.c shows it in sysfs
 *	ending.h   where its requests end
 *	bounce.h   memory for requests that are not of whole blocks in memory
 *	backup.h   a disk behind the volume, where one is asked for
 *	control.c  devices are made and ended by hand, in configfs: the module
 */
#ifndef RBX_KERNEL_DISK_H
#define RBX_KERNEL_DISK_H

#include "kernel/api.h"
#include "kernel/block/backup.h"
#include "kernel/block/tally.h"

struct attribute_group;
struct rbx_disk;

/* What a request of the device may hold. */
#define RBX_DISK_SEGMENTS 32u /* scatter entries of a work request */
#define RBX_DISK_BYTES_MAX (128u << 10) /* the paper's block, and a cell */
#define RBX_DISK_QUEUE_DEPTH_MAX 1024u /* reads, and as many writes */

/* Opens the volume, and its backup where the options name one, and shows the
 * device. ios_max of the options is its queue depth, from 1 to
 * RBX_DISK_QUEUE_DEPTH_MAX: so many reads, and as many writes. io_segments_max is the
 * device's, and with a backup nothing is lent on_demand. name: what udev calls it,
 * borrowed until detach.
 * As rbx_volume_open(), rbx_backup_open(). */
int rbx_disk_attach(const struct rbx_volume_options *wanted,
		    const struct rbx_backup_options *backup_options,
		    const char *name,
		    struct rbx_disk **disk);

/* -EBUSY: somebody has it open. 0: from here on nobody can. */
int rbx_disk_leave(struct rbx_disk *disk);
/* It has left. When it returns it is gone, and its memory given back. */
void rbx_disk_detach(struct rbx_disk *disk);

/* "rdmabox0". */
const char *rbx_disk_name(const struct rbx_disk *disk);
/* That of rbx_disk_attach(). */
const char *rbx_disk_volume_name(const struct rbx_disk *disk);
struct rbx_volume *rbx_disk_volume(const struct rbx_disk *disk);
/* NULL: it has none. */
struct rbx_backup *rbx_disk_backup(const struct rbx_disk *disk);
/* Of its reads, or of its writes. */
const struct rbx_disk_tally *rbx_disk_tally(const struct rbx_disk *disk,
					    enum rbx_io_op op);

/* attributes.c: /sys/block/rdmabox0/rdmabox/. */
extern const struct attribute_group *rbx_disk_attribute_groups[];

#endif
