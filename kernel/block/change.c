/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * change.c - attaches and detaches the volume of a directory, and adds servers to it; see item.h.
 */
#include <linux/slab.h>

#include "kernel/block/item.h"

/* 0: only the caller may change it now. -EBUSY: another thread is changing it. */
static int change_begin(struct volume_item *volume, struct rbx_disk **disk)
{
	int err = -EBUSY;

	mutex_lock(&volume->lock);
	if (!volume->changing) {
		volume->changing = true;
		*disk = volume->disk;
		err = 0;
	}
	mutex_unlock(&volume->lock);
	return err;
}

static void disk_set(struct volume_item *volume, struct rbx_disk *disk)
{
	mutex_lock(&volume->lock);
	volume->disk = disk;
	mutex_unlock(&volume->lock);
}

static void change_end(struct volume_item *volume)
{
	mutex_lock(&volume->lock);
	volume->changing = false;
	mutex_unlock(&volume->lock);
}

static int attach(struct volume_item *volume, struct configfs_subsystem *subsystem)
{
	struct rbx_volume_options options = volume->options;
	char holder[RBX_HOLDER_BYTES] = "";
	struct rbx_disk *disk;
	/* From now on its directory stays as long as it is attached. Later this could not
	 * be undone, as the device may be in use. */
	int err = configfs_depend_item_unlocked(subsystem, &volume->item);

	if (err)
		return err;
	options.holder = holder;
	err = rbx_disk_attach(&options, &volume->backup,
			      config_item_name(&volume->item), &disk);
	mutex_lock(&volume->lock);
	strscpy(volume->holder, holder, sizeof(volume->holder));
	mutex_unlock(&volume->lock);
	if (err)
		configfs_undepend_item(&volume->item);
	else
		disk_set(volume, disk);
	return err;
}

static int detach(struct volume_item *volume, struct configfs_subsystem *subsystem,
		  struct rbx_disk *disk)
{
	int err = rbx_disk_leave(disk);

	if (err)
		return err;
	disk_set(volume, NULL); /* no thread reads its numbers after this */
	rbx_disk_detach(disk);
	configfs_undepend_item(&volume->item);
	return 0;
}

int rbx_item_attach(struct volume_item *volume, struct configfs_subsystem *subsystem, bool wanted)
{
	struct rbx_disk *disk;
	int err = change_begin(volume, &disk);

	if (err)
		return err;
	if (wanted)
		err = disk ? -EBUSY : attach(volume, subsystem);
	else if (disk)
		err = detach(volume, subsystem, disk);
	change_end(volume);
	return err;
}

/* ---- One more server -------------------------------------------------------------------*/

static bool is_listed(const char *servers, const char *server)
{
	size_t length = strlen(server);
	const char *at = servers;

	for (; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, server, length) && (!at[length] || at[length] == ','))
			return true;
	return false;
}

/* The next attach needs it as well. */
static int server_add(struct volume_item *volume, struct rbx_disk *disk, const char *server)
{
	char *servers = is_listed(volume->options.servers, server) ?
				kstrdup(volume->options.servers, GFP_KERNEL) :
				kasprintf(GFP_KERNEL, "%s,%s", volume->options.servers, server);
	int err;

	if (!servers)
		return -ENOMEM;
	err = rbx_volume_add_server(rbx_disk_volume(disk), server);
	if (!err) {
		mutex_lock(&volume->lock);
		swap(servers, *(char **)&volume->options.servers);
		mutex_unlock(&volume->lock);
	}
	kfree(servers);
	return err;
}

int rbx_item_add_server(struct volume_item *volume, const char *server)
{
	struct rbx_disk *disk;
	int err = change_begin(volume, &disk);

	if (err)
		return err;
	err = disk ? server_add(volume, disk, server) : -ENXIO;
	change_end(volume);
	return err;
}
