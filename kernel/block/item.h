/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * item.h - a directory of configfs, which is a volume: its options, and its device while it is
 * attached. control.c has its files; change.c attaches, detaches, and changes it meanwhile.
 */
#ifndef RBX_KERNEL_ITEM_H
#define RBX_KERNEL_ITEM_H

#include <linux/configfs.h>

#include "kernel/block/disk.h"

struct volume_item {
	struct config_item item;
	struct mutex lock; /* guards all below; held for a short time */
	struct rbx_volume_options options; /* its texts are copies */
	struct rbx_backup_options backup; /* the same */
	struct rbx_disk *disk; /* NULL: not attached */
	char holder[RBX_HOLDER_BYTES]; /* who had it open when it was to be attached; or "" */
	/* A thread is attaching or detaching it, or changes it while it is attached, without the
	 * lock, as that takes time. No other thread changes anything meanwhile. */
	bool changing;
};

/* Whether its options cannot be changed. */
static inline bool rbx_item_is_used_locked(const struct volume_item *volume)
{
	lockdep_assert_held(&volume->lock);
	return volume->disk || volume->changing;
}

/* Attaches or detaches it. 0; -EBUSY: its device is in use, or another thread is changing it, or
 * it is attached already; as rbx_disk_attach(). Blocks. */
int rbx_item_attach(struct volume_item *volume, struct configfs_subsystem *subsystem, bool wanted);
/* 0; -ENXIO: it is not attached; -EBUSY: another thread is changing it; as
 * rbx_volume_add_server(). Blocks. */
int rbx_item_add_server(struct volume_item *volume, const char *server);

/*
 * Sets an option. While it is attached: servers that are new in the list are added, until one
 * fails; those that are not in it stay. The secret is for connections from then on. 0; -EBUSY:
 * another thread is changing it; -EINVAL: the device would not be attached with it; -ENOMEM; as
 * rbx_volume_add_server(). Blocks.
 */
int rbx_item_set_servers(struct volume_item *volume, const char *servers);
int rbx_item_set_peer_timeout(struct volume_item *volume, u32 peer_timeout_ms);
int rbx_item_set_secret(struct volume_item *volume, const void *secret, size_t secret_bytes);

#endif
