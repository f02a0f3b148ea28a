/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk.h - a block device over a volume, /dev/rdmabox0 and so on.
 *
 *	disk.c     the device: its limits and its requests
 *	tally.h    counters of its requests; attributes.c shows them in sysfs
 *	state.c    its files of the state of the volume and its servers, and its uevents
 *	ending.h   ends its requests
 *	bounce.h   bounce buffers for requests that are not whole blocks in memory
 *	backup.h   a disk behind the volume, if the user wants one
 *	control.c  devices are made and removed in configfs; the module
 *	item.h     a directory there; change.c attaches and detaches its volume
 */
#ifndef RBX_KERNEL_DISK_H
#define RBX_KERNEL_DISK_H

#include "kernel/api.h"
#include "kernel/block/backup.h"
#include "kernel/block/tally.h"

struct attribute_group;
struct device_attribute;
struct gendisk;
struct rbx_disk;

/* The largest request of the device. */
#define RBX_DISK_SEGMENTS 32u /* scatter entries of a work request */
#define RBX_DISK_BYTES_MAX (128u << 10) /* the paper's block, and a cell */
#define RBX_DISK_QUEUE_DEPTH_MAX 1024u /* reads, and as many writes */

/* Opens the volume and, if the options name one, its backup, and adds the device. ios_max
 * is the queue depth, from 1 to RBX_DISK_QUEUE_DEPTH_MAX: so many reads, and as many
 * writes. The device sets io_segments_max. With a backup, on_demand is ignored, and for a
 * named volume checksums. A named volume has no backup. name: the
 * name for udev, borrowed until detach. Errors as rbx_volume_open() and
 * rbx_backup_open(). */
int rbx_disk_attach(const struct rbx_volume_options *wanted,
		    const struct rbx_backup_options *backup_options,
		    const char *name,
		    struct rbx_disk **disk);

/* -EBUSY: the device is open. 0: from now on it cannot be opened. */
int rbx_disk_leave(struct rbx_disk *disk);
/* rbx_disk_leave() was called before. When it returns, the device and its memory are
 * gone. */
void rbx_disk_detach(struct rbx_disk *disk);

/* "rdmabox0". */
const char *rbx_disk_name(const struct rbx_disk *disk);
/* The name given to rbx_disk_attach(). */
const char *rbx_disk_volume_name(const struct rbx_disk *disk);
struct rbx_volume *rbx_disk_volume(const struct rbx_disk *disk);
/* NULL: it has none. */
struct rbx_backup *rbx_disk_backup(const struct rbx_disk *disk);
/* The counters of its reads, or of its writes. */
const struct rbx_disk_tally *rbx_disk_tally(const struct rbx_disk *disk,
					    enum rbx_io_op op);

/* attributes.c: /sys/block/rdmabox0/rdmabox/. */
extern const struct attribute_group *rbx_disk_attribute_groups[];

/* state.c: two files there. */
extern struct device_attribute rbx_disk_attribute_state;
extern struct device_attribute rbx_disk_attribute_servers;

/* The uevents of a device. */
struct rbx_disk_events {
	struct mutex lock; /* guards disk; held while one is sent */
	struct gendisk *disk; /* NULL: it is not shown, yet or any more */
};

void rbx_disk_events_init(struct rbx_disk_events *events);
/* The device is shown from now on; NULL: soon it is not any more. Blocks. */
void rbx_disk_events_show(struct rbx_disk_events *events, struct gendisk *disk);
/* state_changed() of the volume; user: struct rbx_disk_events. */
void rbx_disk_state_changed(void *user, enum rbx_volume_state state);

#endif
